/* The keyring: read anew when the folder changes, and when the gateway's certificate is near its
 * end. The wall clock is the test's own. */
#include "serve/keyring.h"

#include "lib/folder.h"
#include "sys/clock.h"

#include <time.h>

#define NAME    "gateway.test"
#define LOOK_MS 500 /* between two looks; half of it is enough for one, on a busy machine too */
#define DAY_MS  ((int64_t)24 * 60 * 60 * 1000)

static struct wall now = {1800000000000};

struct wall clock_wall(void)
{
	return now;
}

static int64_t boot_us(void)
{
	struct timespec time;

	assert_int_equal(clock_gettime(CLOCK_BOOTTIME, &time), 0);
	return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static int64_t ahead_ms;

struct mono clock_mono(void)
{
	return (struct mono){boot_us() / 1000 + ahead_ms};
}

int64_t clock_us(void)
{
	return boot_us();
}

void clock_boot_id(char out[CLOCK_BOOT_ID_SIZE])
{
	out[0] = '\0';
}

/* --- a keyring on a folder of its own --- */

static char path[512];
static struct loop *loop;
static struct keyring *keyring;
static int changes;

static void on_change(void *arg UNUSED)
{
	changes++;
	loop_stop(loop);
}

static int setup(void **state)
{
	struct error error;

	if (folder_make(state) != 0)
		return -1;
	now.ms = 1800000000000;
	changes = 0;
	str_copy(path, sizeof path, folder_path(state, "pki"));
	expect_ok(pki_folder_init(path, now, &error), &error);
	loop = loop_create();
	expect_ok(keyring_create(loop, path, NAME, &keyring, &error), &error);
	keyring_watch(keyring, LOOK_MS, on_change, NULL);
	return 0;
}

static int teardown(void **state)
{
	keyring_destroy(keyring);
	loop_run(loop);
	loop_destroy(loop);
	return folder_remove(state);
}

#define KEYRING_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static void on_late(void *arg UNUSED)
{
	loop_stop(loop);
}

/* Runs until the keys were read once more, or for so long. */
static void run_for(int64_t ms)
{
	struct loop_timer *late = loop_timer_create(loop, on_late, NULL);

	loop_timer_start(late, ms);
	loop_run(loop);
	loop_timer_destroy(late);
}

/* The same for a look without anything new. */
static void run(void)
{
	run_for(LOOK_MS + LOOK_MS / 2);
}

static void run_until_changed(void)
{
	int before = changes;

	run_for(TEST_PATIENCE_MS);
	assert_true(changes > before);
}

/* The first look sees the gateway's certificate, which start-up has written. */
static void settle(void)
{
	run_until_changed();
	changes = 0;
}

static void test_a_certificate_is_made_anew_before_its_end(void **state)
{
	struct wall end = keyring_gateway_end(keyring);
	struct rpc_tls *tls = keyring_tls(keyring);

	(void)state;
	assert_int_equal(end.ms / 1000, (now.ms + CERT_GATEWAY_DAYS * DAY_MS) / 1000);
	settle();
	now.ms += (CERT_GATEWAY_DAYS * 2 / 3 - 1) * DAY_MS;
	run();
	assert_int_equal(changes, 0);
	now.ms += 3 * DAY_MS;
	run_until_changed();
	assert_int_equal(changes, 1);
	assert_true(keyring_tls(keyring) != tls);
	assert_int_equal(keyring_gateway_end(keyring).ms / 1000,
			 (now.ms + CERT_GATEWAY_DAYS * DAY_MS) / 1000);
}

/* proves: JOIN-37 */
static void test_a_change_of_keys_is_noticed(void **state)
{
	struct error error;

	(void)state;
	settle();
	expect_ok(pki_rotate_begin(path, false, now, &error), &error);
	run_until_changed();
	assert_int_equal(changes, 1);
	assert_int_equal(pki_folder_stage(keyring_pki(keyring), now), PKI_CHANGING);
	expect_ok(pki_rotate_finish(path, now, &error), &error);
	run_until_changed();
	assert_true(changes >= 2);
	assert_int_equal(pki_folder_stage(keyring_pki(keyring), now), PKI_RENEWING);
}

/* TLS trusts the node CA before the change for as long as rotation.h says, also when nothing else
 * happens. proves: JOIN-41 */
static void test_the_node_ca_before_ends_by_itself(void **state)
{
	struct error error;

	(void)state;
	expect_ok(pki_rotate_begin(path, false, now, &error), &error);
	expect_ok(pki_rotate_finish(path, now, &error), &error);
	run_until_changed();
	run();
	changes = 0;
	now.ms += PKI_OLD_NODE_MS - 1;
	run();
	assert_int_equal(changes, 0);
	now.ms += 1;
	run_until_changed();
	assert_int_equal(changes, 1);
	run();
	assert_int_equal(changes, 1);
}

/* Jobs may still look at what was read before; once none can, it goes. */
static void test_what_was_read_before_is_forgotten(void **state UNUSED)
{
	struct error error;
	size_t kept;

	settle();
	expect_ok(pki_rotate_begin(path, false, now, &error), &error);
	run_until_changed();
	expect_ok(pki_rotate_cancel(path, now, &error), &error);
	run_until_changed();
	assert_int_equal(pki_folder_stage(keyring_pki(keyring), now), PKI_STEADY);
	kept = keyring_kept(keyring);
	assert_true(kept >= 3);
	ahead_ms += KEYRING_KEEP_MS - LOOK_MS * 10;
	run();
	assert_int_equal(keyring_kept(keyring), kept);
	ahead_ms += LOOK_MS * 20;
	for (int i = 0; i < TEST_PATIENCE_MS / LOOK_MS && keyring_kept(keyring) != 1; i++)
		run();
	assert_int_equal(keyring_kept(keyring), 1);
	assert_int_equal(pki_folder_stage(keyring_pki(keyring), now), PKI_STEADY);
}

/* What can't be read leaves what was read. */
static void test_a_broken_folder_changes_nothing(void **state)
{
	const struct pki_folder *pki;
	char file[600];

	(void)state;
	settle();
	pki = keyring_pki(keyring);
	snprintf(file, sizeof file, "%s/node-ca.pem", path);
	assert_int_equal(remove(file), 0);
	run();
	assert_int_equal(changes, 0);
	assert_ptr_equal(keyring_pki(keyring), pki);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		KEYRING_TEST(test_a_certificate_is_made_anew_before_its_end),
		KEYRING_TEST(test_a_change_of_keys_is_noticed),
		KEYRING_TEST(test_the_node_ca_before_ends_by_itself),
		KEYRING_TEST(test_what_was_read_before_is_forgotten),
		KEYRING_TEST(test_a_broken_folder_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
