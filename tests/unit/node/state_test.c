/* bcd's state files as earlier versions left them, as a newer one would, and damaged in every way.
 * argv[1] is tests/unit/node/state: one folder a shape that a released bcd wrote, taken from machines that ran it. */
#include "cluster.h"
#include "core/fixture.h"
#include "gpu/core/belief.h"
#include "lib/folder.h"
#include "lib/nodecert.h"
#include "node/core/prepared.h"
#include "node/core/release.h"
#include "node/core/reports.h"
#include "node/core/spec.h"
#include "node/identity.h"
#include "node/status.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_FILE ((size_t)1 << 20)
#define HOLD     "bcd.dev-" ALC_C ".json"
/* That of the health.json that is read. */
#define HEALTH_BOOT "6c9bd5a5-1f2b-4a3e-9d5e-000000000001"

#define DATA    "var/lib/bcd/"
#define CDI     "etc/cdi/"
#define KUBELET "var/lib/kubelet/"

static const char *fixtures;

/* --- each kind of file, and its reader --- */

static bool read_spec(const char *name UNUSED, const struct buf *text, struct error *error)
{
	CLEANUP(spec) struct spec spec = {0};

	if (!spec_parse(buf_text(text), text->length, &spec, error))
		return false;
	assert_int_equal(spec.assignments.count, 1);
	assert_int_equal(spec.assignments.items[0].devices.count, 1);
	assert_true(spec.generation > 0);
	return true;
}

static bool read_releases(const char *name UNUSED, const struct buf *text, struct error *error)
{
	CLEANUP(releases) struct releases releases = {0};

	if (!releases_parse(buf_text(text), text->length, &releases, error))
		return false;
	assert_int_equal(releases.entries.count, 1);
	assert_int_equal(releases.entries.items[0].devices.count, 2);
	assert_false(releases.entries.items[0].reported);
	return true;
}

static bool read_reports(const char *name UNUSED, const struct buf *text, struct error *error)
{
	struct reports reports = {0};
	bool released = false;

	if (!reports_parse(buf_text(text), text->length, &reports, error))
		return false;
	vec_each (&reports.queue, const struct report *report)
		released |= report->kind == REPORT_RELEASED;
	assert_true(released);
	assert_true(reports.sequence > 0);
	reports_deinit(&reports);
	return true;
}

static bool read_hold(const char *name, const struct buf *text, struct error *error)
{
	CLEANUP(hold) struct hold hold = {0};

	if (!holds_parse(buf_text(text), text->length, name, &hold, error))
		return false;
	assert_non_null(strstr(name, hold.allocation));
	assert_int_equal(hold.devices.count, 1);
	return true;
}

static bool read_prepared(const char *name UNUSED, const struct buf *text, struct error *error)
{
	CLEANUP(prepared) struct prepared prepared = {0};

	if (!prepared_parse(buf_text(text), text->length, &prepared, error))
		return false;
	assert_true(prepared.claims.count > 0);
	return true;
}

static bool read_health(const char *name, const struct buf *text, struct error *error)
{
	CLEANUP(belief) struct belief belief = {.boot_id = HEALTH_BOOT};
	CLEANUP(tree) json_t *tree = NULL;

	if (!tree_parse(text->data, text->length, MAX_FILE, name, &tree, error) ||
	    !belief_read_record(&belief, tree, error))
		return false;
	assert_true(belief.gpus.count > 0);
	return true;
}

/* The id in it: of whatever version, the certificate beside it is that node's. */
static void node_of(const struct buf *text, char out[ID_SIZE])
{
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	expect_ok(tree_parse(text->data, text->length, MAX_FILE, "identity", &tree, &error),
		  &error);
	str_copy(out, ID_SIZE, json_string_value(json_object_get(tree, "nodeId")));
}

/* Through the folder, as bcd does: beside the record there are a key and a certificate. */
static bool read_identity(const char *name, const struct buf *text, struct error *error)
{
	CLEANUP(identity) struct identity identity = {0}, whole = {0};
	char node[ID_SIZE];
	void *folder = NULL;
	bool done;

	assert_int_equal(folder_make(&folder), 0);
	node_of(text, node);
	nodecert_identity(&whole, node, 0);
	expect_ok(identity_store(folder, &whole, error), error);
	expect_ok(
		durable_replace(folder_path(&folder, name), text->data, text->length, 0600, error),
		error);
	done = identity_load(folder, &identity, error);
	assert_int_equal(folder_remove(&folder), 0);
	if (done)
		assert_true(*identity.gateway_address && *identity.node_id);
	return done;
}

struct kind {
	const char *name; /* of the file, or how it begins */
	bool (*read)(const char *name, const struct buf *text, struct error *error);
	const char *version, *newer; /* in its text */
};

static const struct kind KINDS[] = {
	{"spec.json", read_spec, "\"version\": 1", "\"version\": 2, \"newer\": {}"},
	{"releasing.json", read_releases, "\"version\": 1", "\"version\": 2, \"newer\": {}"},
	{"reports.json", read_reports, "\"version\": 1", "\"version\": 2, \"newer\": {}"},
	{"identity.json", read_identity, "\"version\": 1", "\"version\": 2, \"newer\": {}"},
	{HOLDS_PREFIX, read_hold, "\"bcd.dev/form\": \"1\"", "\"bcd.dev/form\": \"2\""},
	{"prepared.json", read_prepared, "\"version\": 1", "\"version\": 2"},
	{"health.json", read_health, "\"version\": 1", "\"version\": 2"},
};

static const struct kind *kind_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++)
		if (str_starts(name, KINDS[i].name))
			return &KINDS[i];
	fail_msg("nothing reads '%s'", name);
	return NULL;
}

/* --- as they were, and as they will be --- */

static void list(const char *folder, struct durable_names *names)
{
	struct error error;

	expect_ok(durable_list(folder, 100, names, &error), &error);
	assert_true(names->count > 0);
}

static void in_fixtures(char path[512], const char *shape, const char *name)
{
	snprintf(path, 512, "%s/%s%s%s", fixtures, shape, *name ? "/" : "", name);
}

static void replace_once(struct buf *text, const char *from, const char *to)
{
	CLEANUP(free) char *before = buf_take_text(text);
	const char *at = strstr(before, from);

	assert_non_null(at);
	buf_printf(text, "%.*s%s%s", (int)(at - before), before, to, at + strlen(from));
}

/* What earlier versions wrote is read; what a later one writes is refused by its version, by the file's name,
 * however much else is in it. */
static void test_versions(void **state UNUSED)
{
	struct durable_names shapes = {0};
	size_t files = 0;

	list(fixtures, &shapes);
	assert_int_equal(shapes.count, 4);
	for (size_t i = 0; i < shapes.count; i++) {
		struct durable_names names = {0};
		char path[512];

		in_fixtures(path, shapes.names[i], "");
		list(path, &names);
		for (size_t j = 0; j < names.count; j++, files++) {
			const struct kind *kind = kind_of(names.names[j]);
			CLEANUP(buf) struct buf text = {0};
			struct error error = {0};

			in_fixtures(path, shapes.names[i], names.names[j]);
			expect_ok(durable_read(path, MAX_FILE, &text, &error), &error);
			if (!kind->read(names.names[j], &text, &error))
				fail_msg("%s: %s", path, error.what);
			replace_once(&text, kind->version, kind->newer);
			assert_false(kind->read(names.names[j], &text, &error));
			if (!strstr(error.what, "2") ||
			    (!strstr(error.what, "version") && !strstr(error.what, "form")))
				fail_msg("%s: %s", path, error.what);
		}
		durable_names_deinit(&names);
	}
	durable_names_deinit(&shapes);
	assert_int_equal(files, 3 * 5 + 2 + 1);
}

/* --- a bcd that starts on them --- */

static bool has_condition(void *type)
{
	return cluster_condition(&cluster, type);
}

/* What is kept of it: in its place, or aside. */
static size_t count_kept(void **state, const char *name, const struct buf *text)
{
	struct durable_names names = {0};
	size_t count = 0;

	list(folder_path(state, DATA), &names);
	for (size_t i = 0; i < names.count; i++) {
		CLEANUP(buf) struct buf path = {0}, kept = {0};
		struct error ignored;
		struct stat info;

		if (!str_starts(names.names[i], name))
			continue;
		buf_printf(&path, DATA "%s", names.names[i]);
		if (stat(folder_path(state, buf_text(&path)), &info) != 0)
			continue;
		if (!text)
			count += S_ISDIR(info.st_mode);
		else if (S_ISREG(info.st_mode) &&
			 chmod(folder_path(state, buf_text(&path)), 0600) == 0 &&
			 durable_read(folder_path(state, buf_text(&path)), 2 * MAX_FILE + 1, &kept,
				      &ignored))
			count += kept.length == text->length &&
				 (kept.length == 0 ||
				  memcmp(kept.data, text->data, kept.length) == 0);
	}
	durable_names_deinit(&names);
	return count;
}

static const struct damaged {
	const char *path;
	const char *condition; /* NULL: told only until what was lost is told anew, at once here */
	bool stays;            /* it is nobody's to move: bcd reads it again each time */
} DAMAGED[] = {
	{DATA "spec.json", "SpecUnreadable", false},
	{DATA "reports.json", NULL, false},
	{DATA "releasing.json", "KubernetesReleasesUnreadable", false},
	{CDI HOLD, "HoldsUnreadable", true},
	{KUBELET PREPARED_FILE, "PreparedClaimsUnreadable", true},
};

enum damage {
	DAMAGE_EMPTY,
	DAMAGE_TORN,
	DAMAGE_NULLS,
	DAMAGE_NEWER,
	DAMAGE_LARGE,
	DAMAGE_FOLDER,
	DAMAGE_FORBIDDEN,
	DAMAGES,
};

static void damage_text(enum damage damage, struct buf *text)
{
	switch (damage) {
	case DAMAGE_EMPTY:
		break;
	case DAMAGE_TORN:
		buf_add_text(text, "{\"version\": 1, \"re");
		break;
	case DAMAGE_NULLS:
		memset(buf_extend(text, 4096), 0, 4096);
		break;
	case DAMAGE_NEWER:
		buf_add_text(text, "{\"version\": 7, \"cdiVersion\": \"0.6.0\", \"newer\": 1}");
		break;
	case DAMAGE_LARGE:
		memset(buf_extend(text, 2 * MAX_FILE), ' ', 2 * MAX_FILE);
		break;
	case DAMAGE_FOLDER:
	case DAMAGE_FORBIDDEN:
	case DAMAGES:
		buf_add_text(text, "{\"version\": 1}");
		break;
	}
}

static void do_damage(void **state, const char *name, enum damage damage, const struct buf *text)
{
	const char *path = folder_path(state, name);
	struct error error;

	if (damage == DAMAGE_FOLDER)
		assert_int_equal(mkdir(path, 0700), 0);
	else
		expect_ok(durable_replace(path, text->data, text->length,
					  damage == DAMAGE_FORBIDDEN ? 0 : 0600, &error),
			  &error);
}

static void prepare(void **state)
{
	struct error error;

	cluster_prepare(
		&cluster, state,
		&(struct cluster_options){
			.api = {.aside = "/", .aside_answer = {.status = 200, .body = "{}"}}});
	expect_ok(durable_make_folder(folder_path(state, "etc/cdi"), 0755, &error), &error);
	expect_ok(durable_make_folder(folder_path(state, KUBELET "plugins/gpu.bcd.dev"), 0700,
				      &error),
		  &error);
}

static void finish(void)
{
	cluster_finish(&cluster);
	fake_api_destroy(cluster.api);
}

/* Each file at once, by each kind of damage: nothing of it is taken as "none", each is named by a condition, and
 * what was there is still there. proves: REL-9 REL-30 REL-31 REL-35 */
static void test_damage(void **state)
{
	for (enum damage damage = 0; damage < DAMAGES; damage++) {
		CLEANUP(buf) struct buf text = {0};

		damage_text(damage, &text);
		prepare(state);
		for (size_t i = 0; i < ARRAY_SIZE(DAMAGED); i++)
			do_damage(state, DAMAGED[i].path, damage, &text);
		cluster_begin(&cluster, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(DAMAGED); i++)
			if (DAMAGED[i].condition)
				kubelet_until(cluster.loop, has_condition,
					      (void *)(uintptr_t)DAMAGED[i].condition, 9000,
					      DAMAGED[i].condition);
		finish();
		for (size_t i = 0; i < ARRAY_SIZE(DAMAGED); i++)
			if (!DAMAGED[i].stays &&
			    count_kept(state, DAMAGED[i].path + strlen(DATA),
				       damage == DAMAGE_FOLDER ? NULL : &text) == 0)
				fail_msg("damage %d of %s isn't kept", damage, DAMAGED[i].path);
			else if (DAMAGED[i].stays)
				assert_int_equal(access(folder_path(state, DAMAGED[i].path), F_OK),
						 0);
		assert_int_equal(access(folder_path(state, DATA "releasing.unreadable"), F_OK), 0);
		assert_int_equal(folder_remove(state), 0);
		assert_int_equal(folder_make(state), 0);
	}
}

/* A bcd that begins with what an earlier one left has it all, and sets nothing aside. */
static void test_an_update(void **state)
{
	struct durable_names shapes = {0};

	list(fixtures, &shapes);
	for (size_t i = 0; i < shapes.count; i++) {
		struct durable_names names = {0};
		char path[512];

		prepare(state);
		in_fixtures(path, shapes.names[i], "");
		list(path, &names);
		for (size_t j = 0; j < names.count; j++) {
			CLEANUP(buf) struct buf text = {0}, to = {0};
			struct error error;

			if (str_equal(names.names[j], "prepared.json") ||
			    str_equal(names.names[j], "health.json"))
				continue;
			in_fixtures(path, shapes.names[i], names.names[j]);
			expect_ok(durable_read(path, MAX_FILE, &text, &error), &error);
			buf_printf(&to, "%s%s",
				   str_starts(names.names[j], HOLDS_PREFIX) ? CDI : DATA,
				   names.names[j]);
			cluster_write(&cluster, buf_text(&to), buf_text(&text));
		}
		durable_names_deinit(&names);
		cluster_begin(&cluster, NULL);
		kubelet_run(cluster.loop, 500);
		for (size_t j = 0; j < ARRAY_SIZE(DAMAGED); j++)
			assert_false(DAMAGED[j].condition &&
				     has_condition((void *)(uintptr_t)DAMAGED[j].condition));
		finish();
		list(folder_path(state, DATA), &names);
		for (size_t j = 0; j < names.count; j++)
			assert_null(strstr(names.names[j], "unreadable"));
		durable_names_deinit(&names);
		assert_int_equal(folder_remove(state), 0);
		assert_int_equal(folder_make(state), 0);
	}
	durable_names_deinit(&shapes);
}

/* As anybody's process, root's too: modes count. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	assert_int_equal(syscall(SYS_capset, &header, data), 0);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
		IN_FOLDER(test_an_update),
		IN_FOLDER(test_damage),
	};

	if (argc != 2)
		return 2;
	fixtures = argv[1];
	drop_capabilities();
	return cmocka_run_group_tests(tests, cluster_set_up, cluster_tear_down);
}
