#include "pki/folder.h"

#include "lib/test.h"

#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct wall now = {1800000000000};

static char home[64];
static char path[96];

static int remove_entry(const char *name, const struct stat *info, int kind, struct FTW *at)
{
	(void)info, (void)kind, (void)at;
	return remove(name);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(home, sizeof home, "/tmp/pki-folder-test-XXXXXX");
	if (!mkdtemp(home))
		return -1;
	snprintf(path, sizeof path, "%s/pki", home);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return nftw(home, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static size_t entries(const char *folder)
{
	DIR *dir = opendir(folder);
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static mode_t mode_of(const char *name)
{
	char file[160];
	struct stat info;

	snprintf(file, sizeof file, "%s/%s", path, name);
	assert_int_equal(stat(file, &info), 0);
	return info.st_mode & 07777;
}

/* proves: JOIN-17 JOIN-18 */
static void test_made_and_loaded(void **state)
{
	static const char *const secret[] = {"serving-ca.key", "node-ca.key", "join-encryption.jwk",
					     "join-signing.jwk"};
	struct pki_folder folder = {0};
	struct pki_pins pins;
	struct pin_list list;
	struct error error;

	(void)state;
	expect_error(pki_folder_load(path, &folder, &error), &error, ERROR_NOT_FOUND,
		     "serving-ca.key");
	expect_ok(pki_folder_init(path, now, &error), &error);
	assert_int_equal(entries(path), 6);
	assert_int_equal(entries(home), 1); /* no draft is left */
	for (size_t i = 0; i < ARRAY_SIZE(secret); i++)
		assert_int_equal(mode_of(secret[i]), 0600);
	assert_int_equal(mode_of("."), 0700);
	expect_ok(pki_folder_load(path, &folder, &error), &error);
	pki_folder_pins(&folder, &pins);
	expect_ok(pin_list_parse(pins.gateway_ca, "a", &list, &error), &error);
	expect_ok(pin_list_parse(pins.join_signing, "b", &list, &error), &error);
	expect_ok(pin_list_parse(pins.join_encryption, "c", &list, &error), &error);
	assert_string_not_equal(pins.join_signing, pins.join_encryption);
	pki_folder_deinit(&folder);
	expect_error(pki_folder_init(path, now, &error), &error, ERROR_CONFLICT, "there already");
}

static void test_whole_or_not_at_all(void **state)
{
	char blocked[128];
	struct error error;

	(void)state;
	snprintf(blocked, sizeof blocked, "%s/none/below", "/proc");
	assert_false(pki_folder_init(blocked, now, &error));
	assert_int_equal(entries(home), 0);
}

static void test_spoilt(void **state)
{
	static const char *const names[] = {"serving-ca.key",      "serving-ca.pem",
					    "node-ca.key",         "node-ca.pem",
					    "join-encryption.jwk", "join-signing.jwk"};
	struct pki_folder folder = {0};
	struct error error;
	char file[160], kept[176];

	(void)state;
	expect_ok(pki_folder_init(path, now, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		FILE *out;

		snprintf(file, sizeof file, "%s/%s", path, names[i]);
		snprintf(kept, sizeof kept, "%s.kept", file);
		assert_int_equal(rename(file, kept), 0);
		expect_error(pki_folder_load(path, &folder, &error), &error, ERROR_NOT_FOUND,
			     names[i]);
		assert_int_equal(mkdir(file, 0700), 0); /* a folder where a file should be */
		assert_false(pki_folder_load(path, &folder, &error));
		assert_int_equal(rmdir(file), 0);
		out = fopen(file, "w");
		fchmod(fileno(out), 0600);
		fputs("rubbish", out);
		fclose(out);
		expect_error(pki_folder_load(path, &folder, &error), &error, ERROR_INVALID_INPUT,
			     names[i]);
		assert_int_equal(rename(kept, file), 0);
	}
	/* keys that belong together must: swap the two CAs' certificates */
	snprintf(file, sizeof file, "%s/serving-ca.pem", path);
	snprintf(kept, sizeof kept, "%s/node-ca.pem", path);
	assert_int_equal(rename(kept, file), 0);
	expect_error(pki_folder_load(path, &folder, &error), &error, ERROR_FORBIDDEN,
		     "another key");
}

/* proves: JOIN-14 */
static void test_world_readable(void **state)
{
	struct pki_folder folder = {0};
	struct error error;
	char file[160];

	(void)state;
	expect_ok(pki_folder_init(path, now, &error), &error);
	snprintf(file, sizeof file, "%s/node-ca.key", path);
	assert_int_equal(chmod(file, 0640), 0);
	expect_error(pki_folder_load(path, &folder, &error), &error, ERROR_FORBIDDEN,
		     "others may read");
}

static void gateway(const struct pki_folder *folder, const char *name, struct wall at,
		    char serial[CERT_SERIAL_SIZE])
{
	CLEANUP(buf) struct buf certificate = {0};
	struct buf secret = {0};
	struct cert_info info;
	struct error error;

	expect_ok(pki_folder_gateway(folder, name, at, &certificate, &secret, &error), &error);
	assert_true(cert_has_dns_name(buf_text(&certificate), name));
	expect_ok(cert_read(buf_text(&certificate), certificate.length, &info, &error), &error);
	memcpy(serial, info.serial, CERT_SERIAL_SIZE);
	pki_wipe(&secret);
}

static void test_gateway(void **state)
{
	struct pki_folder folder = {0};
	char first[CERT_SERIAL_SIZE], next[CERT_SERIAL_SIZE];
	const int64_t day = (int64_t)24 * 60 * 60 * 1000;
	struct error error;
	char file[160];
	FILE *out;

	(void)state;
	expect_ok(pki_folder_init(path, now, &error), &error);
	expect_ok(pki_folder_load(path, &folder, &error), &error);
	gateway(&folder, "gw.example.com", now, first);
	assert_int_equal(mode_of("gateway.key"), 0600);
	gateway(&folder, "gw.example.com", (struct wall){now.ms + 200 * day}, next);
	assert_string_equal(first, next); /* kept */
	gateway(&folder, "gw.example.com", (struct wall){now.ms + 300 * day}, next);
	assert_string_not_equal(first, next); /* near its end */
	gateway(&folder, "gw2.example.com", now, first);
	assert_string_not_equal(first, next); /* another name */
	snprintf(file, sizeof file, "%s/gateway.pem", path);
	out = fopen(file, "w");
	fputs("rubbish", out);
	fclose(out);
	gateway(&folder, "gw2.example.com", now, next);
	assert_string_not_equal(first, next);
	pki_folder_deinit(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_made_and_loaded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_whole_or_not_at_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_spoilt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_world_readable, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gateway, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
