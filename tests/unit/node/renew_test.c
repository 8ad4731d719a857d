/* A certificate that has expired, or whose time isn't ours, at the next `bcd join`. */
#include "join_world.h"

#include "lib/nodecert.h"
#include "pki/cert.h"
#include "sys/clock.h"
#include "sys/durable.h"

#include <sys/stat.h>

/* Off for weeks, and the token's Secret is long gone: the key says who it is.
 * proves: JOIN-7 JOIN-41 JOIN-42 HOSTED-14 */
static void test_an_expired_certificate_is_renewed_by_its_key(void **state)
{
	struct world *world = *state;

	start_service(world, MODE_BY_KEY);
	have_joined(world, 33);
	say(world, NULL, JOIN_DONE);
	expect_node(world, true, false);
	have_joined(world, 33);
	say(world, "/nonexistent/token", JOIN_DONE);
	expect_node(world, true, false);
	/* A token that is too old doesn't stand in the way. */
	have_joined(world, 33);
	say(world, world->token, JOIN_DONE);
	expect_node(world, true, false);
	/* One that others can read does, as always. */
	have_joined(world, 33);
	assert_int_equal(chmod(world->token, 0644), 0);
	assert_non_null(strstr(say(world, world->token, JOIN_TOKEN_FILE), "others may read"));
	stop_service(world);
	assert_non_null(strstr(say(world, NULL, JOIN_NETWORK), "join at"));
}

static void read_certificate(struct world *world, struct buf *ret_pem)
{
	CLEANUP(free) char *path = identity_path(world->config.data, IDENTITY_CERTIFICATE);
	struct error error;

	expect_ok(durable_read(path, PKI_PEM_MAX, ret_pem, &error), &error);
}

/* What it would get is no good here, and would be renewed again and again.  proves: JOIN-41 */
static void test_clocks_that_differ_are_told(void **state)
{
	CLEANUP(buf) struct buf before = {0}, after = {0};
	struct world *world = *state;
	const char *said;

	have_joined(world, 33);
	read_certificate(world, &before);
	start_service(world, MODE_BEHIND);
	said = say(world, NULL, JOIN_FAILED);
	assert_non_null(strstr(said, "clock and the control plane's differ by 40 days"));
	assert_non_null(strstr(said, "has expired"));
	assert_non_null(strstr(said, "this machine's is ahead of the control plane's"));
	stop_service(world);
	start_service(world, MODE_AHEAD);
	said = say(world, world->token, JOIN_FAILED);
	assert_non_null(strstr(said, "clock and the control plane's differ by 3 days"));
	assert_non_null(strstr(said, "isn't valid yet"));
	assert_non_null(strstr(said, "this machine's is behind the control plane's"));
	read_certificate(world, &after);
	assert_string_equal(buf_text(&before), buf_text(&after));
}

/* proves: JOIN-41 JOIN-42 */
static void test_what_is_too_late_for_the_key_needs_a_token(void **state)
{
	struct world *world = *state;
	const char *said;

	have_joined(world, 40);
	start_service(world, MODE_REFUSES);
	said = say(world, NULL, JOIN_TOKEN);
	assert_non_null(strstr(said, "'" NODE "' can't be renewed by its key: "));
	assert_non_null(strstr(said, "expired too long ago"));
	assert_non_null(strstr(said, "join-tokens create"));
	assert_non_null(strstr(said, "bcd join --token-file 'FILE'"));
	said = say(world, "/nonexistent/token", JOIN_TOKEN_FILE);
	assert_non_null(strstr(said, "open '/nonexistent/token': No such file"));
	assert_non_null(strstr(said, "nor can '" NODE "' be renewed by its key: "));
	assert_non_null(strstr(said, "bcd join --token-file '/nonexistent/token'"));
	said = say(world, world->token, JOIN_TOKEN);
	assert_non_null(strstr(said, "the join token has expired; nor can '" NODE));
	stop_service(world);
	start_service(world, MODE_BY_TOKEN);
	say(world, world->token, JOIN_DONE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		WITH_WORLD(test_an_expired_certificate_is_renewed_by_its_key),
		WITH_WORLD(test_clocks_that_differ_are_told),
		WITH_WORLD(test_what_is_too_late_for_the_key_needs_a_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
