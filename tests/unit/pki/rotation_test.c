#include "pki/rotation.h"

#include "lib/folder.h"
#include "sys/durable.h"

#include <sys/stat.h>

#define NODE   "node_01jd4z5x9f0123456789abcdef"
#define DAY_MS ((int64_t)24 * 60 * 60 * 1000)

static const struct wall now = {1800000000000};
static char path[512];

static int setup(void **state)
{
	struct error error;

	if (folder_make(state) != 0)
		return -1;
	str_copy(path, sizeof path, folder_path(state, "pki"));
	expect_ok(pki_folder_init(path, now, &error), &error);
	return 0;
}

#define PKI_TEST(function) cmocka_unit_test_setup_teardown(function, setup, folder_remove)

static void load(struct pki_folder *folder)
{
	struct error error;

	pki_folder_deinit(folder);
	expect_ok(pki_folder_load(path, folder, &error), &error);
}

static bool exists(const char *name)
{
	char file[600];
	struct stat info;

	snprintf(file, sizeof file, "%s/%s", path, name);
	return stat(file, &info) == 0;
}

/* proves: JOIN-37 */
static void test_pins_go_from_one_to_two_to_the_other(void **state)
{
	struct pki_folder folder = {0};
	struct pki_pin_texts before, during, after;
	char both[PKI_PINS_SIZE];
	struct pki_pins next;
	struct error error;

	(void)state;
	load(&folder);
	assert_int_equal(pki_folder_stage(&folder, now), PKI_STEADY);
	pki_folder_pin_texts(&folder, &before);
	expect_error(pki_rotate_finish(path, now, &error), &error, ERROR_INVALID_STATE,
		     "no change of keys is under way");

	expect_ok(pki_rotate_begin(path, false, now, &error), &error);
	load(&folder);
	assert_int_equal(pki_folder_stage(&folder, now), PKI_CHANGING);
	pki_folder_pin_texts(&folder, &during);
	pki_folder_pins(folder.next, &next);
	snprintf(both, sizeof both, "%s,%s", before.gateway_ca, next.gateway_ca);
	assert_string_equal(during.gateway_ca, both);
	snprintf(both, sizeof both, "%s,%s", before.join_signing, next.join_signing);
	assert_string_equal(during.join_signing, both);
	snprintf(both, sizeof both, "%s,%s", before.join_encryption, next.join_encryption);
	assert_string_equal(during.join_encryption, both);
	expect_error(pki_rotate_begin(path, true, now, &error), &error, ERROR_INVALID_STATE,
		     "under way already");

	expect_ok(pki_rotate_finish(path, now, &error), &error);
	load(&folder);
	assert_int_equal(pki_folder_stage(&folder, now), PKI_RENEWING);
	pki_folder_pin_texts(&folder, &after);
	assert_string_equal(after.gateway_ca, next.gateway_ca);
	assert_string_equal(after.join_signing, next.join_signing);
	assert_string_equal(after.join_encryption, next.join_encryption);
	assert_false(exists(PKI_NEXT));
	pki_folder_deinit(&folder);
}

static void issue(const struct pki_folder *folder, struct buf *ret_pem)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	struct error error;

	expect_ok(pki_key_generate(&key, &error), &error);
	expect_ok(cert_issue_node(&(struct cert_issuer){folder->node_ca_pem, folder->node_ca_key},
				  key, NODE, CERT_ROLE_NODE, now, ret_pem, &error),
		  &error);
}

/* A node's certificate is good through the whole change, and until no such one is left.
 * proves: JOIN-41 */
static void test_nodes_of_before_are_let_in(void **state)
{
	struct pki_folder folder = {0};
	CLEANUP(buf) struct buf old = {0};
	CLEANUP(buf) struct buf fresh = {0};
	struct wall end = {now.ms + PKI_OLD_NODE_MS};
	struct error error;

	(void)state;
	load(&folder);
	issue(&folder, &old);
	expect_ok(pki_rotate_begin(path, false, now, &error), &error);
	load(&folder);
	expect_ok(pki_folder_verify_node(&folder, buf_text(&old), now, now, &error), &error);
	issue(folder.next, &fresh);
	expect_ok(pki_folder_verify_node(&folder, buf_text(&fresh), now, now, &error), &error);
	expect_ok(pki_rotate_finish(path, now, &error), &error);
	load(&folder);
	expect_ok(pki_folder_verify_node(&folder, buf_text(&fresh), now, now, &error), &error);
	expect_ok(pki_folder_verify_node(&folder, buf_text(&old), now, now, &error), &error);
	end.ms--;
	expect_ok(pki_folder_verify_node(&folder, buf_text(&old), now, end, &error), &error);
	expect_error(pki_rotate_begin(path, false, end, &error), &error, ERROR_INVALID_STATE,
		     "node CA before");
	end.ms++;
	assert_int_equal(pki_folder_stage(&folder, end), PKI_STEADY);
	expect_error(pki_folder_verify_node(&folder, buf_text(&old), now, end, &error), &error,
		     ERROR_FORBIDDEN, "not trusted");
	expect_ok(pki_rotate_begin(path, false, end, &error), &error);
	expect_ok(pki_rotate_finish(path, end, &error), &error);
	load(&folder);
	expect_error(pki_folder_verify_node(&folder, buf_text(&old), now, end, &error), &error,
		     ERROR_FORBIDDEN, "not trusted");
	pki_folder_deinit(&folder);
}

/* A change that broke off in its making leaves what was. */
static void test_a_broken_next_is_told(void **state)
{
	struct pki_folder folder = {0};
	char file[600];
	struct error error;

	(void)state;
	expect_ok(pki_rotate_begin(path, false, now, &error), &error);
	snprintf(file, sizeof file, "%s/next/serving-ca.pem", path);
	assert_int_equal(remove(file), 0);
	expect_error(pki_folder_load(path, &folder, &error), &error, ERROR_INVALID_CONFIG,
		     "the next keys");
	expect_error(pki_rotate_finish(path, now, &error), &error, ERROR_INVALID_CONFIG,
		     "the next keys");
	assert_true(exists("serving-ca.pem"));
}

/* Whatever became of the next keys; the current ones are as they were.
 * proves: JOIN-37 */
static void test_a_change_can_be_cancelled(void **state)
{
	struct pki_folder folder = {0};
	struct pki_pin_texts before = {0}, after = {0};
	char file[600];
	struct error error;

	(void)state;
	load(&folder);
	pki_folder_pin_texts(&folder, &before);
	expect_error(pki_rotate_cancel(path, now, &error), &error, ERROR_INVALID_STATE,
		     "no change of keys is under way");
	expect_ok(pki_rotate_begin(path, false, now, &error), &error);
	snprintf(file, sizeof file, "%s/next/serving-ca.pem", path);
	assert_int_equal(remove(file), 0);
	expect_ok(pki_rotate_cancel(path, now, &error), &error);
	assert_false(exists(PKI_NEXT));
	load(&folder);
	assert_int_equal(pki_folder_stage(&folder, now), PKI_STEADY);
	pki_folder_pin_texts(&folder, &after);
	assert_memory_equal(&before, &after, sizeof before);
	expect_ok(pki_rotate_begin(path, false, now, &error), &error);
	pki_folder_deinit(&folder);
}

/* Of a finish and a cancel at a time one is refused: keys that are gone never become the current. */
static void test_one_at_a_time_decides_over_the_next_keys(void **state)
{
	char next[600];
	struct durable_lock *lock;
	struct error error;

	(void)state;
	snprintf(next, sizeof next, "%s/" PKI_NEXT, path);
	expect_ok(pki_rotate_begin(path, false, now, &error), &error);
	expect_ok(durable_lock_folder(next, &lock, &error), &error);
	expect_error(pki_rotate_finish(path, now, &error), &error, ERROR_CONFLICT,
		     "somebody else holds it");
	expect_error(pki_rotate_cancel(path, now, &error), &error, ERROR_CONFLICT,
		     "somebody else holds it");
	durable_lock_destroy(lock);
	expect_ok(pki_rotate_finish(path, now, &error), &error);
}

/* What somebody is at stays; what a kill left of it doesn't. */
static void test_what_was_left_is_removed(void **state)
{
	char beside[600], inside[600];
	struct durable_lock *lock;
	struct error error;

	(void)state;
	snprintf(beside, sizeof beside, "%s.new_01jd4z5x9f0123456789abcdef", path);
	snprintf(inside, sizeof inside, "%s/new_01jd4z5x9f0123456789abcdef", path);
	expect_ok(pki_folder_init(beside, now, &error), &error);
	expect_ok(pki_rotate_begin(beside, false, now, &error), &error);
	expect_ok(pki_folder_init(inside, now, &error), &error);
	expect_ok(durable_lock_folder(beside, &lock, &error), &error);
	pki_folder_tidy(path, now);
	assert_true(durable_absent(inside));
	assert_false(durable_absent(beside));
	durable_lock_destroy(lock);
	pki_folder_tidy(path, now);
	assert_true(durable_absent(beside));
	assert_true(exists("node-ca.key"));
}

static void test_a_certificate_is_due_in_its_last_third(void **state)
{
	const struct wall begin = {0}, end = {300 * DAY_MS};

	(void)state;
	assert_false(pki_gateway_due(begin, end, (struct wall){199 * DAY_MS}));
	assert_true(pki_gateway_due(begin, end, (struct wall){200 * DAY_MS}));
	assert_true(pki_gateway_due(begin, end, (struct wall){400 * DAY_MS}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PKI_TEST(test_pins_go_from_one_to_two_to_the_other),
		PKI_TEST(test_nodes_of_before_are_let_in),
		PKI_TEST(test_a_broken_next_is_told),
		PKI_TEST(test_a_change_can_be_cancelled),
		PKI_TEST(test_one_at_a_time_decides_over_the_next_keys),
		PKI_TEST(test_what_was_left_is_removed),
		cmocka_unit_test(test_a_certificate_is_due_in_its_last_third),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
