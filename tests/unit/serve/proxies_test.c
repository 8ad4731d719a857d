#include "serve/proxies.h"

#include "base/buf.h"
#include "lib/test.h"

#include <stdio.h>

static struct address at(const char *host)
{
	struct address address;
	char text[ADDRESS_SIZE];
	struct error error;

	snprintf(text, sizeof text, strchr(host, ':') ? "[%s]:1" : "%s:1", host);
	expect_ok(address_parse(text, &address, &error), &error);
	return address;
}

static struct proxies trust(const char *const *networks)
{
	struct proxies proxies = {0};
	struct error error;

	for (; *networks; networks++)
		expect_ok(proxies_add(&proxies, *networks, &error), &error);
	return proxies;
}

#define TRUST(...) trust((const char *const[]){__VA_ARGS__, NULL})

static void check(const struct proxies *proxies, const char *peer, const char *forwarded,
		  const char *wanted)
{
	const struct address from = at(peer), caller = proxies_caller(proxies, &from, forwarded);
	const struct address expected = at(wanted);
	char have[INET6_ADDRSTRLEN], want[INET6_ADDRSTRLEN];

	address_network(&caller, have);
	address_network(&expected, want);
	if (!str_equal(have, want))
		fail_msg("'%s' from %s is %s, not %s", forwarded, peer, have, want);
}

static void test_networks(void **state UNUSED)
{
	static const struct {
		const char *network, *address;
		bool inside;
	} rows[] = {
		{"10.0.0.0/8", "10.255.0.1", true},
		{"10.0.0.0/8", "11.0.0.1", false},
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", "10.1.2.4", false},
		{"10.1.2.128/25", "10.1.2.200", true},
		{"10.1.2.128/25", "10.1.2.127", false},
		{"0.0.0.0/0", "203.0.113.9", true},
		{"0.0.0.0/0", "2001:db8::1", false},
		{"10.0.0.0/8", "::ffff:10.0.0.1", true},
		{"fd00::/8", "fd12::1", true},
		{"fd00::/8", "fe80::1", false},
		{"2001:db8::1", "2001:db8::1", true},
		{"2001:db8::1", "2001:db8::2", false},
		{"::/0", "2001:db8::1", true},
		{"2001:db8:8000::/33", "2001:db8::", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct proxies proxies = TRUST(rows[i].network);
		const struct address address = at(rows[i].address);

		if (proxies_trust(&proxies, &address) != rows[i].inside)
			fail_msg("%s in %s", rows[i].address, rows[i].network);
	}
}

/* What whoever calls wrote into the list itself counts for nothing. */
static void test_the_caller_is_the_last_one_nobody_vouches_for(void **state UNUSED)
{
	const struct proxies none = {0};
	const struct proxies one = TRUST("10.0.0.1");
	const struct proxies chain = TRUST("10.0.0.0/8", "fd00::/8");

	check(&none, "203.0.113.5", "198.51.100.1", "203.0.113.5");
	check(&one, "203.0.113.5", "198.51.100.1", "203.0.113.5");
	check(&one, "10.0.0.1", NULL, "10.0.0.1");
	check(&one, "10.0.0.1", "", "10.0.0.1");
	check(&one, "10.0.0.1", "198.51.100.1", "198.51.100.1");
	check(&one, "10.0.0.1", "10.0.0.1,198.51.100.1", "198.51.100.1");
	check(&one, "10.0.0.1", "192.0.2.1, 198.51.100.1", "198.51.100.1");
	check(&one, "10.0.0.1", "192.0.2.1,198.51.100.1 , 10.0.0.1", "198.51.100.1");
	check(&chain, "10.9.9.9", "192.0.2.1, 198.51.100.1, fd00::1, 10.2.3.4", "198.51.100.1");
	check(&chain, "10.9.9.9", "[2001:db8::7]:4711", "2001:db8::7");
	check(&chain, "10.9.9.9", "2001:db8::7", "2001:db8::7");
	check(&chain, "10.9.9.9", "198.51.100.1:80", "198.51.100.1");
	/* Nobody but proxies: the first of them. */
	check(&chain, "10.9.9.9", "10.0.0.7,10.0.0.8", "10.0.0.7");
}

/* Then the last hop that is known for sure. */
static void test_what_cannot_be_read_ends_it(void **state UNUSED)
{
	static const char *const broken[] = {
		"unknown",        "_hidden",
		"198.51.100.1,",  "198.51.100.1, ",
		"1.2.3",          "[2001:db8::1",
		"198.51.100.1,,", "198.51.100.1;x",
		"999.1.1.1",      "198.51.100.1 198.51.100.2",
	};
	const struct proxies proxies = TRUST("10.0.0.0/8");
	char longest[4096];

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++)
		check(&proxies, "10.0.0.1", broken[i], "10.0.0.1");
	check(&proxies, "10.0.0.1", "198.51.100.1,unknown,10.0.0.2", "10.0.0.2");
	memset(longest, '1', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	check(&proxies, "10.0.0.1", longest, "10.0.0.1");
}

/* A list that never ends costs no more than so many hops. */
static void test_hops_are_bounded(void **state UNUSED)
{
	const struct proxies proxies = TRUST("10.0.0.0/8");
	CLEANUP(buf) struct buf list = {0};

	buf_add_text(&list, "198.51.100.1");
	for (int i = 1; i <= PROXIES_MAX_HOPS; i++)
		buf_printf(&list, ",10.0.0.%d", i);
	check(&proxies, "10.0.0.200", buf_text(&list), "10.0.0.1");
}

static void test_malformed(void **state UNUSED)
{
	static const char *const bad[] = {
		"",
		"/8",
		"10.0.0.0/",
		"10.0.0.0/33",
		"10.0.0.0/-1",
		"10.0.0.0/8x",
		"10.0.0/8",
		"host",
		"fd00::/129",
		"10.0.0.0/8/8",
		"10.0.0.0/00000008",
		"00000000000000000000000000000000000000000000000000/8",
	};
	struct proxies proxies = {0};
	struct error error;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_error(proxies_add(&proxies, bad[i], &error), &error, ERROR_INVALID_INPUT,
			     "is no network of addresses");
	for (int i = 0; i < PROXIES_MAX; i++)
		expect_ok(proxies_add(&proxies, "10.0.0.0/8", &error), &error);
	expect_error(proxies_add(&proxies, "10.0.0.0/8", &error), &error, ERROR_INVALID_INPUT,
		     "more than 64");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_networks),
		cmocka_unit_test(test_the_caller_is_the_last_one_nobody_vouches_for),
		cmocka_unit_test(test_what_cannot_be_read_ends_it),
		cmocka_unit_test(test_hops_are_bounded),
		cmocka_unit_test(test_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
