#include "serve/address.h"

#include "lib/test.h"

#include <unistd.h>

static void check_loopback(const char *text, bool wanted)
{
	struct address address;
	struct error error;

	expect_ok(address_parse(text, &address, &error), &error);
	assert_int_equal(address_is_loopback(&address), wanted);
}

/* Figures are told to who asks from there, and plain HTTP is spoken there alone. */
static void test_loopback(void **state UNUSED)
{
	check_loopback("127.0.0.1:80", true);
	check_loopback("127.9.9.9:80", true);
	check_loopback("[::1]:80", true);
	check_loopback("[::ffff:127.0.0.1]:80", true);
	check_loopback("0.0.0.0:80", false);
	check_loopback("[::]:80", false);
	check_loopback("10.0.0.1:80", false);
	check_loopback("[::ffff:10.0.0.1]:80", false);
}

static void test_malformed(void **state UNUSED)
{
	static const char *const bad[] = {
		"", ":80", "localhost", "127.0.0.1", "127.0.0.1:x", "[::1]", "localhost:80"};
	struct address address;
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		expect_error(address_parse(bad[i], &address, &error), &error, ERROR_INVALID_INPUT,
			     "is not ADDRESS:PORT");
		assert_non_null(strstr(error.hint, "numeric"));
	}
}

static void check_network(const char *text, const char *wanted)
{
	struct address address;
	char network[INET6_ADDRSTRLEN];
	struct error error;

	expect_ok(address_parse(text, &address, &error), &error);
	address_network(&address, network);
	assert_string_equal(network, wanted);
}

/* One subscriber has one IPv4 address, or 2^64 IPv6 ones. */
static void test_networks(void **state UNUSED)
{
	check_network("10.1.2.3:80", "10.1.2.3");
	check_network("[::ffff:10.1.2.3]:80", "10.1.2.3");
	check_network("[::ffff:10.1.2.4]:80", "10.1.2.4");
	check_network("[2001:db8:1:2:3:4:5:6]:80", "2001:db8:1:2::");
	check_network("[2001:db8:1:2::7]:80", "2001:db8:1:2::");
}

static void test_listen(void **state UNUSED)
{
	char bound[ADDRESS_SIZE], again[ADDRESS_SIZE];
	struct address address;
	struct error error;
	int fd, second = -1;

	expect_ok(address_parse("127.0.0.1:0", &address, &error), &error);
	expect_ok(address_listen(&address, 1, &fd, bound, &error), &error);
	assert_true(str_starts(bound, "127.0.0.1:") && !str_equal(bound, "127.0.0.1:0"));
	expect_ok(address_parse(bound, &address, &error), &error);
	expect_error(address_listen(&address, 1, &second, again, &error), &error, ERROR_INTERNAL,
		     "listen on '127.0.0.1:");
	assert_int_equal(second, -1);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loopback),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_networks),
		cmocka_unit_test(test_listen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
