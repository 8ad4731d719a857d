/* A node's identity as it is found on disk: whole, or refused with the file and the next step. */
#include "node/identity.h"

#include "lib/folder.h"
#include "lib/nodecert.h"
#include "pki/keys.h"
#include "sys/durable.h"

#include <sys/stat.h>

#define NODE  "node_01kb00000000000000000000aa"
#define OTHER "node_01kb00000000000000000000bb"

static const char *const FILES[] = {IDENTITY_FILE, IDENTITY_KEY, IDENTITY_CERTIFICATE};

static void put(void **state, const char *name, const void *data, size_t length)
{
	struct error error;

	expect_ok(durable_replace(folder_path(state, name), data, length, 0600, &error), &error);
}

static void get(void **state, const char *name, struct buf *ret_content)
{
	struct error error;

	expect_ok(durable_read(folder_path(state, name), PKI_PEM_MAX, ret_content, &error), &error);
}

static int setup(void **state)
{
	CLEANUP(identity) struct identity identity = {0};
	struct error error;

	if (folder_make(state) != 0)
		return -1;
	nodecert_identity(&identity, NODE, 0);
	expect_ok(identity_store(*state, &identity, &error), &error);
	return 0;
}

/* --- what befalls a file --- */

static void is_absent(void **state, const char *name)
{
	assert_int_equal(unlink(folder_path(state, name)), 0);
}

static void is_empty(void **state, const char *name)
{
	put(state, name, "", 0);
}

static void is_torn(void **state, const char *name)
{
	CLEANUP(buf) struct buf content = {0};

	get(state, name, &content);
	put(state, name, content.data, content.length / 3);
}

static void has_a_torn_end(void **state, const char *name)
{
	CLEANUP(buf) struct buf content = {0};

	get(state, name, &content);
	put(state, name, content.data, content.length - 40);
}

static void is_garbage(void **state, const char *name)
{
	put(state, name, "\0\1\2garbage", 10);
}

static void is_too_large(void **state, const char *name)
{
	char *large = mem_alloc(PKI_PEM_MAX + 1);

	put(state, name, large, PKI_PEM_MAX + 1);
	free(large);
}

static void is_a_folder(void **state, const char *name)
{
	is_absent(state, name);
	assert_int_equal(mkdir(folder_path(state, name), 0700), 0);
}

static void is_a_fifo(void **state, const char *name)
{
	is_absent(state, name);
	assert_int_equal(mkfifo(folder_path(state, name), 0600), 0);
}

static void is_a_link_to_nowhere(void **state, const char *name)
{
	is_absent(state, name);
	assert_int_equal(symlink("/nonexistent/file", folder_path(state, name)), 0);
}

static void others_may_read(void **state, const char *name)
{
	assert_int_equal(chmod(folder_path(state, name), 0640), 0);
}

static void others_may_write(void **state, const char *name)
{
	assert_int_equal(chmod(folder_path(state, name), 0602), 0);
}

static void is_of_another_user(void **state, const char *name)
{
	assert_int_equal(chown(folder_path(state, name), 12345, 12345), 0);
}

/* The whole of another node, of which only this file got here. */
static void is_of_another_node(void **state, const char *name)
{
	CLEANUP(identity) struct identity other = {0};
	CLEANUP(buf) struct buf record = {0};

	nodecert_identity(&other, OTHER, 0);
	identity_format(&other, &record);
	if (str_equal(name, IDENTITY_FILE))
		put(state, name, record.data, record.length);
	else if (str_equal(name, IDENTITY_KEY))
		put(state, name, other.key_pem.data, other.key_pem.length);
	else
		put(state, name, other.certificate_pem.data, other.certificate_pem.length);
}

/* This node's key, another one's name. */
static void is_for_another_name(void **state, const char *name)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(buf) struct buf pem = {0};
	struct error error;

	expect_ok(identity_load_key(*state, &key, &error), &error);
	nodecert_issue(key, OTHER, 0, &pem);
	put(state, name, pem.data, pem.length);
}

/* The leaf, and the CA of another control plane behind it. */
static void has_another_authority(void **state, const char *name)
{
	CLEANUP(identity) struct identity other = {0};
	CLEANUP(buf) struct buf pem = {0}, mixed = {0};
	const char *end = "-----END CERTIFICATE-----\n";
	const char *rest, *others;

	get(state, name, &pem);
	nodecert_identity(&other, OTHER, 0);
	rest = strstr(buf_text(&pem), end) + strlen(end);
	others = strstr(buf_text(&other.certificate_pem), end) + strlen(end);
	buf_add(&mixed, pem.data, (size_t)(rest - buf_text(&pem)));
	buf_add_text(&mixed, others);
	put(state, name, mixed.data, mixed.length);
}

#define IN_RECORD      1U
#define IN_KEY         2U
#define IN_CERTIFICATE 4U
#define IN_ALL         7U

static const struct damage {
	void (*befalls)(void **state, const char *name);
	unsigned files;
	const char *what; /* of the message */
	const char *hint; /* NULL: as the file's own */
} DAMAGE[] = {
	{is_absent, IN_KEY | IN_CERTIFICATE, "No such file", NULL},
	{is_empty, IN_ALL, "it is empty", NULL},
	{is_torn, IN_ALL, "can't be used", NULL},
	{has_a_torn_end, IN_ALL, "can't be used", NULL},
	{is_garbage, IN_ALL, "can't be used", NULL},
	{is_too_large, IN_ALL, "larger than", NULL},
	{is_a_folder, IN_ALL, "not a file but a folder", NULL},
	{is_a_fifo, IN_ALL, "not a file but a fifo", NULL},
	{is_a_link_to_nowhere, IN_ALL, "is a link to nowhere", NULL},
	{others_may_read, IN_ALL, "others may read", "chmod 600 '"},
	{others_may_write, IN_ALL, "others may read", "chmod 600 '"},
	{is_of_another_user, IN_ALL, "belongs to another user (uid 12345)", "chown it"},
	{is_of_another_node, IN_RECORD, "is of '" NODE "', but identity.json says '" OTHER "'",
	 "move identity.json away and run bcd join"},
	{is_of_another_node, IN_KEY, "for another key than node.key holds", "move identity.json"},
	{is_of_another_node, IN_CERTIFICATE, "is of '" OTHER "' and for another key",
	 "move identity.json"},
	{is_for_another_name, IN_CERTIFICATE, "is of '" OTHER "', but identity.json says",
	 "move identity.json away and run bcd join"},
	{has_another_authority, IN_CERTIFICATE, "is not signed by the one that follows it", NULL},
};

/* What is to be done about one that is lost. */
static const char *const NEXT[] = {"move it away and run bcd join, which gets it again",
				   "joins as a new node: move identity.json, node.key and node.pem",
				   "by its key this machine is the same node"};

static void stamps(void **state, struct durable_stamp out[ARRAY_SIZE(FILES)])
{
	for (size_t i = 0; i < ARRAY_SIZE(FILES); i++)
		out[i] = durable_stamp(folder_path(state, FILES[i]));
}

static void expect_refused(void **state, const struct damage *damage, size_t file)
{
	struct durable_stamp before[ARRAY_SIZE(FILES)], after[ARRAY_SIZE(FILES)];
	const char *name = FILES[file], *hint = damage->hint ? damage->hint : NEXT[file];
	CLEANUP(identity) struct identity identity = {0};
	struct error error = {0};

	damage->befalls(state, name);
	stamps(state, before);
	if (identity_load(*state, &identity, &error))
		fail_msg("damage %td of %s was not noticed", damage - DAMAGE, name);
	if (!strstr(error.what, damage->what) || !strstr(error.what, name) ||
	    !str_starts(error.what, "this node's identity: ") || !strstr(error.hint, hint))
		fail_msg("damage %td of %s: '%s' '%s' lacks '%s' or '%s'", damage - DAMAGE, name,
			 error.what, error.hint, damage->what, hint);
	/* Never "hasn't joined": that would make another node of it. */
	assert_int_not_equal(error.code, ERROR_NOT_FOUND);
	assert_null(strstr(error.what, "PRIVATE"));
	stamps(state, after);
	for (size_t i = 0; i < ARRAY_SIZE(FILES); i++)
		assert_true(durable_stamp_equal(before[i], after[i]));
	/* what befell it says nothing of the file of the next one */
	if (damage->befalls == is_a_folder)
		assert_int_equal(rmdir(folder_path(state, name)), 0);
}

/* proves: JOIN-6 JOIN-14 */
static void test_damage(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(DAMAGE); i++)
		for (size_t file = 0; file < ARRAY_SIZE(FILES); file++) {
			CLEANUP(identity) struct identity identity = {0};
			struct error error;

			if (!(DAMAGE[i].files & (1U << file)))
				continue;
			if (DAMAGE[i].befalls == is_of_another_user && geteuid() != 0)
				continue; /* only root can give a file away */
			nodecert_identity(&identity, NODE, 0);
			expect_ok(identity_store(*state, &identity, &error), &error);
			expect_refused(state, &DAMAGE[i], file);
		}
}

static void test_absent(void **state)
{
	CLEANUP(identity) struct identity identity = {0}, rest = {0};
	struct error error;

	is_absent(state, IDENTITY_FILE);
	expect_error(identity_load(*state, &identity, &error), &error, ERROR_NOT_FOUND,
		     IDENTITY_FILE);
	/* The key and its certificate say who it was. */
	expect_ok(identity_load_rest(*state, &rest, &error), &error);
	assert_string_equal(rest.node_id, NODE);
	is_absent(state, IDENTITY_CERTIFICATE);
	assert_false(identity_load_rest(*state, &identity, &error));
}

/* It is how a node is found after weeks, and no damage. proves: JOIN-41 */
static void test_expired(void **state)
{
	CLEANUP(identity) struct identity old = {0}, found = {0};
	struct error error;

	nodecert_identity(&old, NODE, 40);
	old.fresh = true;
	expect_ok(identity_store(*state, &old, &error), &error);
	expect_ok(identity_load(*state, &found, &error), &error);
	assert_true(found.fresh);
	assert_true(identity_expired(&found, clock_wall()));
	assert_false(
		identity_expired(&found, (struct wall){clock_wall().ms - 20 * NODECERT_DAY_MS}));
}

/* A bcd that runs takes over what `bcd join` stored meanwhile, if it is for the same node. */
static void test_refresh(void **state)
{
	CLEANUP(identity) struct identity mine = {0}, newer = {0}, other = {0};
	struct error error;

	nodecert_identity(&mine, NODE, 40);
	expect_ok(identity_store(*state, &mine, &error), &error);
	assert_false(identity_refresh(&mine, *state)); /* it is what we have */
	nodecert_identity(&other, OTHER, 0);
	expect_ok(identity_store(*state, &other, &error), &error);
	assert_false(identity_refresh(&mine, *state));
	nodecert_identity(&newer, NODE, 0);
	expect_ok(identity_store(*state, &newer, &error), &error);
	assert_true(identity_refresh(&mine, *state));
	assert_false(identity_expired(&mine, clock_wall()));
	assert_string_equal(buf_text(&mine.key_pem), buf_text(&newer.key_pem));
	is_torn(state, IDENTITY_CERTIFICATE); /* being written just now */
	assert_false(identity_refresh(&mine, *state));
}

int main(void)
{
#define WITH_IDENTITY(test) cmocka_unit_test_setup_teardown(test, setup, folder_remove)
	const struct CMUnitTest tests[] = {
		WITH_IDENTITY(test_damage),
		WITH_IDENTITY(test_absent),
		WITH_IDENTITY(test_expired),
		WITH_IDENTITY(test_refresh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
