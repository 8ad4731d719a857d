#include "pki/seal.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "pki/keys.h"
#include "sys/durable.h"

#include <sys/stat.h>

#define NOW ((struct wall){1800000000000})

#define KEY "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define ID  "sek_01mcc5rm00683hr49zhqf83t6v"
#define FILE_WITH(version, id, key, more)                                                          \
	"{\"version\":" version ",\"keys\":[{\"id\":\"" id "\",\"key\":\"" key "\"}]" more "}"

static char path[512];

static int setup(void **state)
{
	if (folder_make(state) != 0)
		return -1;
	str_copy(path, sizeof path, folder_path(state, "secret.key"));
	return 0;
}

static struct seal_keys *load(void)
{
	struct seal_keys *keys;
	struct error error;

	expect_ok(seal_keys_load(path, &keys, &error), &error);
	return keys;
}

/* proves: POOL-24 */
static void test_what_is_sealed_opens_for_its_owner_alone(void **state)
{
	static const char value[] = "correct horse\nbattery";
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;
	CLEANUP(buf) struct buf sealed = {0};
	CLEANUP(buf) struct buf again = {0};
	struct buf opened = {0};
	struct error error;

	(void)state;
	expect_ok(seal_file_init(path, NOW, &error), &error);
	expect_error(seal_file_init(path, NOW, &error), &error, ERROR_CONFLICT, "secret.key");
	keys = load();
	expect_ok(seal(keys, "sec_1", value, strlen(value), &sealed, &error), &error);
	expect_ok(seal(keys, "sec_1", value, strlen(value), &again, &error), &error);
	assert_string_not_equal(buf_text(&sealed), buf_text(&again));
	assert_null(strstr(buf_text(&sealed), "horse"));
	expect_ok(
		seal_open(keys, seal_keys_id(keys, 0), "sec_1", buf_text(&sealed), &opened, &error),
		&error);
	assert_string_equal(buf_text(&opened), value);
	pki_wipe(&opened);
	expect_error(
		seal_open(keys, seal_keys_id(keys, 0), "sec_2", buf_text(&sealed), &opened, &error),
		&error, ERROR_INTERNAL, "isn't its owner's");
	/* Each byte counts. */
	for (size_t i = 0; i < sealed.length; i += 3) {
		uint8_t was = sealed.data[i];

		sealed.data[i] = was == 'A' ? 'B' : 'A';
		expect_error(seal_open(keys, seal_keys_id(keys, 0), "sec_1", buf_text(&sealed),
				       &opened, &error),
			     &error, ERROR_INTERNAL, "stored secret");
		sealed.data[i] = was;
	}
	expect_error(seal_open(keys, seal_keys_id(keys, 0), "sec_1", "AAAA", &opened, &error),
		     &error, ERROR_INTERNAL, "broken");
	assert_int_equal(opened.length, 0);
}

static void test_old_keys_open_until_they_are_dropped(void **state)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;
	CLEANUP(buf) struct buf sealed = {0};
	struct buf opened = {0};
	char first[ID_SIZE];
	struct error error;

	(void)state;
	expect_ok(seal_file_init(path, NOW, &error), &error);
	keys = load();
	str_copy(first, ID_SIZE, seal_keys_id(keys, 0));
	expect_ok(seal(keys, "x", "value", 5, &sealed, &error), &error);
	expect_ok(seal_file_rotate(path, NOW, &error), &error);
	seal_keys_destroy(keys);
	keys = load();
	assert_int_equal(seal_keys_count(keys), 2);
	assert_string_not_equal(seal_keys_id(keys, 0), first);
	assert_string_equal(seal_keys_id(keys, 1), first);
	expect_ok(seal_open(keys, first, "x", buf_text(&sealed), &opened, &error), &error);
	pki_wipe(&opened);
	for (int i = 2; i < SEAL_MAX_KEYS; i++)
		expect_ok(seal_file_rotate(path, NOW, &error), &error);
	expect_error(seal_file_rotate(path, NOW, &error), &error, ERROR_INVALID_STATE, "8 keys");
	expect_ok(seal_file_drop_old(path, &error), &error);
	seal_keys_destroy(keys);
	keys = load();
	assert_int_equal(seal_keys_count(keys), 1);
	expect_error(seal_open(keys, first, "x", buf_text(&sealed), &opened, &error), &error,
		     ERROR_NOT_FOUND, first);
}

static void test_files_that_are_refused(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"version\":1,\"keys\":[]}",
		"{\"version\":1,\"keys\":[{\"id\":\"" ID "\",\"key\":1}]}",
		FILE_WITH("2", ID, KEY, ""),
		FILE_WITH("1", ID, KEY "A", ""),
		FILE_WITH("1", "x" ID, KEY, ""),
		FILE_WITH("1", ID, KEY, ",\"more\":1"),
	};
	struct seal_keys *keys;
	struct error error;

	(void)state;
	expect_error(seal_keys_load(path, &keys, &error), &error, ERROR_NOT_FOUND, "secret key");
	expect_ok(seal_file_init(path, NOW, &error), &error);
	assert_int_equal(chmod(path, 0640), 0);
	expect_error(seal_keys_load(path, &keys, &error), &error, ERROR_FORBIDDEN, "0640");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		expect_ok(durable_replace(path, bad[i], strlen(bad[i]), 0600, &error), &error);
		expect_error(seal_keys_load(path, &keys, &error), &error, ERROR_INVALID_CONFIG,
			     "is no secret key file");
		assert_null(strstr(error.what, KEY));
	}
	expect_ok(durable_replace(path, "[", 1, 0600, &error), &error);
	expect_error(seal_keys_load(path, &keys, &error), &error, ERROR_INVALID_INPUT,
		     "the secret key file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_sealed_opens_for_its_owner_alone,
						setup, folder_remove),
		cmocka_unit_test_setup_teardown(test_old_keys_open_until_they_are_dropped, setup,
						folder_remove),
		cmocka_unit_test_setup_teardown(test_files_that_are_refused, setup, folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
