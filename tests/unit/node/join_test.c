/* `bcd join`: once, with which files and pins, and what is there already. */
#include "join_world.h"

#include "lib/folder.h"
#include "sys/clock.h"
#include "sys/durable.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* proves: JOIN-6 JOIN-7 JOIN-12 JOIN-14 JOIN-38 JOIN-42 */
static void test_joins_once(void **state)
{
	static const char *const files[] = {"identity.json", "node.key", "node.pem"};
	CLEANUP(identity) struct identity first = {0}, second = {0};
	struct world *world = *state;
	struct error error = {0};
	bool already;

	start_service(world, MODE_HONEST);
	assert_int_equal(join_run(&world->config, world->token, &first, &already, &error),
			 JOIN_DONE);
	assert_false(already);
	assert_string_equal(first.trust, "platform");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		CLEANUP(free) char *path = identity_path(world->config.data, files[i]);
		struct stat info;

		assert_int_equal(stat(path, &info), 0);
		assert_int_equal(info.st_mode & 0777, 0600);
	}
	/* again: nobody to ask, no token, and it is fine */
	stop_service(world);
	assert_int_equal(unlink(world->token), 0);
	assert_int_equal(join_run(&world->config, NULL, &second, &already, &error), JOIN_DONE);
	assert_true(already);
	assert_string_equal(first.node_id, second.node_id);
}

/* proves: JOIN-8 JOIN-9 JOIN-10 JOIN-42 */
static void test_token_files_that_are_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"\xef\xbb\xbf" TOKEN "\n", "a byte order mark comes before it"},
		{" " TOKEN, "white space comes before it"},
		{"\n" TOKEN, "white space comes before it"},
		{"\"" TOKEN "\"", "it is in quotation marks"},
		{"'" TOKEN "'", "it is in quotation marks"},
		{"{\"token\":\"" TOKEN "\"}", "it is JSON"},
		{"token=" TOKEN, "doesn't begin with bcj1_"},
		{TOKEN " # ours", "something comes after it"},
		{TOKEN "\n" TOKEN, "something comes after it"},
		{TOKEN "A", "missing, or changed"},
		{"bcj1_jt_01kb00000000000000000000aa_BBBBBBBBBBBB", "missing, or changed"},
	};
	struct world *world = *state;
	char link[600], large[5000];
	struct error error;

	for (mode_t mode = 1; mode < 0100; mode <<= 1) {
		assert_int_equal(chmod(world->token, 0600 | mode), 0);
		if (mode & 077)
			expect_join(world, JOIN_TOKEN_FILE, "others may read");
	}
	assert_int_equal(chmod(world->token, 0600), 0);
	/* a link, as in a Secret volume, is followed */
	snprintf(link, sizeof link, "%s.link", world->token);
	assert_int_equal(symlink(world->token, link), 0);
	str_copy(world->token, sizeof world->token, link);
	expect_join(world, JOIN_NETWORK, NULL);
	memset(large, 'x', sizeof large);
	expect_ok(durable_replace(world->token, large, sizeof large, 0600, &error), &error);
	expect_join(world, JOIN_TOKEN_FILE, "larger than");
	expect_ok(durable_replace(world->token, "\n", 1, 0600, &error), &error);
	expect_join(world, JOIN_TOKEN_FILE, "holds none");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *text = bad[i].text;

		expect_ok(durable_replace(world->token, text, strlen(text), 0600, &error), &error);
		world->config.in_pod = false;
		expect_next(world, JOIN_TOKEN_FILE, bad[i].why, "Write it there alone");
		expect_next(world, JOIN_TOKEN_FILE, world->token, NULL);
		world->config.in_pod = true;
		expect_next(world, JOIN_TOKEN_FILE, bad[i].why, "Apply a Secret");
	}
	str_copy(world->token, sizeof world->token, "/dev/null");
	expect_join(world, JOIN_TOKEN_FILE, "not a file but");
	str_copy(world->token, sizeof world->token, "/nonexistent/token");
	expect_join(world, JOIN_TOKEN_FILE, "/nonexistent/token");
}

/* proves: JOIN-19 JOIN-20 JOIN-37 JOIN-42 */
static void test_wrong_pins(void **state)
{
	static const char other[] = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
	struct world *world = *state;
	const char *right;

	start_service(world, MODE_HONEST);
	right = world->config.encryption_pins;
	world->config.encryption_pins = other;
	expect_join(world, JOIN_PINS, "encryption key");
	world->config.encryption_pins = right;
	right = world->config.ca_pins;
	world->config.ca_pins = other;
	expect_join(world, JOIN_PINS, "pin");
	world->config.ca_pins = right;
	right = world->config.signing_pins;
	world->config.signing_pins = other;
	expect_join(world, JOIN_PINS, "join answer");
	world->config.signing_pins = right;
	right = world->config.server_name;
	world->config.server_name = "other.test";
	expect_join(world, JOIN_PINS, NULL);
	world->config.server_name = right;
	expect_join(world, JOIN_DONE, NULL);
}

/* Whatever it is that a pod, or a machine, can't join for: the message says what comes next there.
 * proves: JOIN-42 */
static void test_each_failure_says_what_to_do(void **state)
{
	static const char other[] = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
	struct world *world = *state;
	char url[128], *token = mem_strdup(world->token);
	const char *jwk = world->config.encryption_jwk, *pins = world->config.encryption_pins;

	for (int pod = 0; pod < 2; pod++) {
		const char *again = pod ? "this container" : "bcd join --token-file";
		const char *later = pod ? "This container is started again" : "run this again";

		world->config.host_units =
			false; /* as both a machine's config.toml and a pod's say */
		world->config.in_pod = pod;
		expect_next(world, JOIN_NETWORK, NULL, later); /* nobody is at 127.0.0.1:1 */
		str_copy(world->token, sizeof world->token, "/nonexistent/token");
		expect_next(world, JOIN_TOKEN_FILE, "/nonexistent/token", again);
		str_copy(world->token, sizeof world->token, "/dev/null");
		expect_next(world, JOIN_TOKEN_FILE, "not a file", again);
		str_copy(world->token, sizeof world->token, token);
		start_service(world, MODE_REFUSES);
		expect_next(world, JOIN_TOKEN, "has expired", again);
		world->config.encryption_pins = other;
		expect_next(world, JOIN_PINS, "encryption key",
			    pod ? "render the manifests anew" : "put the new pin there");
		world->config.encryption_pins = pins;
		world->config.encryption_jwk = "";
		world->config.join_server = "";
		expect_next(world, JOIN_FAILED, "neither", "pki show");
		snprintf(url, sizeof url, "https://%s", world->address);
		world->config.join_server =
			url; /* of an authority that this machine doesn't know */
		expect_next(world, JOIN_NETWORK, NULL, "join.ca_file");
		world->config.encryption_jwk = jwk;
		stop_service(world);
		start_service(world, MODE_AHEAD);
		expect_next(world, JOIN_FAILED, "clock", "Set the clock");
		stop_service(world);
		world->config.addresses[0] = "127.0.0.1:1";
	}
	free(token);
}

static void test_answers_that_are_refused(void **state)
{
	struct world *world = *state;

	start_service(world, MODE_REFUSES);
	expect_join(world, JOIN_TOKEN, "has expired");
	stop_service(world);
	start_service(world, MODE_OTHER_SIGNER);
	expect_join(world, JOIN_PINS, "join answer");
	stop_service(world);
	start_service(world, MODE_OTHER_NONCE);
	expect_join(world, JOIN_PINS, "join answer");
	stop_service(world);
	start_service(world, MODE_BUSY); /* nothing is wrong with the way there */
	expect_next(world, JOIN_NETWORK, "later", "The control plane is reached");
	/* the second address answers */
	world->config.addresses[1] = world->address;
	world->config.addresses[0] = "127.0.0.1:1";
	world->config.address_count = 2;
	stop_service(world);
	expect_join(world, JOIN_NETWORK, NULL);
	/* An address that can't be right isn't one to try again. */
	world->config.encryption_jwk = "";
	world->config.join_server = "http://127.0.0.1:1";
	expect_join(world, JOIN_FAILED, "not https");
	world->config.join_server = "https://127.0.0.1:1";
	expect_join(world, JOIN_NETWORK, NULL);
}

/* A join that was killed left its key half-written.  proves: JOIN-14 */
static void test_what_a_killed_one_left_goes(void **state)
{
	const struct timespec then = {.tv_sec = clock_wall().ms / 1000 - 60};
	struct world *world = *state;
	CLEANUP(free) char *left = identity_path(world->config.data, ".tmp-0123456789abcdef");
	struct error error;

	have_joined(world, 3);
	expect_ok(durable_create(left, "a key", 5, 0600, &error), &error);
	assert_int_equal(utimensat(AT_FDCWD, left, (struct timespec[]){then, then}, 0), 0);
	expect_join(world, JOIN_DONE, NULL);
	assert_true(durable_absent(left));
}

/* proves: JOIN-5 JOIN-6 JOIN-40 */
static void test_a_lost_identity_is_got_again_by_key_or_token(void **state)
{
	struct world *world = *state;

	start_service(world, MODE_BY_KEY);
	have_joined(world, 0);
	lose(world, IDENTITY_FILE);
	say(world, NULL, JOIN_DONE);
	expect_node(world, true, false);
	/* Without the certificate it can't say of which node the key is; the token's side knows. */
	lose(world, IDENTITY_FILE);
	lose(world, IDENTITY_CERTIFICATE);
	assert_non_null(strstr(say(world, NULL, JOIN_USAGE), "has not joined"));
	assert_non_null(strstr(say(world, world->token, JOIN_TOKEN), "the join token has expired"));
	stop_service(world);
	start_service(world, MODE_HONEST);
	say(world, world->token, JOIN_DONE);
	expect_node(world, false, true); /* this service makes a node of each token */
}

/* Nothing of it is touched, and nobody is asked: what is there may be put in order yet. The key makes the
 * node, so without it there is another one, and only if somebody says so. proves: JOIN-6 JOIN-40 */
static void test_a_damaged_identity_is_left_as_it_is(void **state)
{
	struct world *world = *state;
	CLEANUP(free) char *key = identity_path(world->config.data, IDENTITY_KEY);
	CLEANUP(free) char *certificate = identity_path(world->config.data, IDENTITY_CERTIFICATE);
	CLEANUP(free) char *record = identity_path(world->config.data, IDENTITY_FILE);
	struct durable_stamp before;

	have_joined(world, 0);
	assert_int_equal(truncate(record, 20), 0);
	before = durable_stamp(record);
	assert_non_null(strstr(say(world, world->token, JOIN_FAILED), "run bcd join, which gets"));
	assert_true(durable_stamp_equal(before, durable_stamp(record)));
	have_joined(world, 0);
	lose(world, IDENTITY_KEY);
	assert_non_null(strstr(say(world, world->token, JOIN_FAILED), "joins as a new node"));
	assert_false(durable_stamp(key).exists);
	/* What can't be written in the end is found before a use is spent. */
	lose(world, IDENTITY_FILE);
	lose(world, IDENTITY_CERTIFICATE);
	assert_int_equal(mkdir(certificate, 0700), 0);
	assert_non_null(strstr(say(world, world->token, JOIN_FAILED), "it is a folder"));
	assert_int_equal(rmdir(certificate), 0);
	start_service(world, MODE_HONEST);
	say(world, world->token, JOIN_DONE);
	expect_node(world, false, true);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_WORLD(test_joins_once),
		WITH_WORLD(test_token_files_that_are_refused),
		WITH_WORLD(test_wrong_pins),
		WITH_WORLD(test_each_failure_says_what_to_do),
		WITH_WORLD(test_answers_that_are_refused),
		WITH_WORLD(test_what_a_killed_one_left_goes),
		WITH_WORLD(test_a_lost_identity_is_got_again_by_key_or_token),
		WITH_WORLD(test_a_damaged_identity_is_left_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
