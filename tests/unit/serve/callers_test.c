#include "serve/callers.h"

#include "lib/test.h"

#include <stdio.h>

static const struct ratelimit_rate key_rate = {.per_second = 10, .burst = 20};
static const struct ratelimit_rate address_rate = {.per_second = 2, .burst = 4};
static const struct mono now = {1000};

static struct address here(const char *text)
{
	struct address address;
	struct error error;

	expect_ok(address_parse(text, &address, &error), &error);
	return address;
}

/* One call: may it be made, and if so, what came of its key? */
static bool call(struct callers *callers, const char *key, const char *from, enum callers_key came)
{
	const struct address address = here(from);
	struct caller caller;
	int64_t wait_ms;

	if (!callers_may(callers, key, &address, now, &caller, &wait_ms))
		return false;
	callers_note(callers, &caller, came, now);
	return true;
}

/* proves: ADM-5 */
static void test_a_key_that_opens_has_its_own_rate(void **state UNUSED)
{
	struct callers *callers = callers_create(key_rate, address_rate);
	int calls = 0;

	while (calls < 1000 && call(callers, "good", "10.0.0.1:1", CALLERS_OPENED))
		calls++;
	assert_int_equal(calls, 20);
	assert_true(call(callers, "other", "10.0.0.1:1", CALLERS_OPENED));
	callers_destroy(callers);
}

/* proves: ADM-5 */
static void test_guesses_count_for_their_address(void **state UNUSED)
{
	struct callers *callers = callers_create(key_rate, address_rate);
	char key[16];
	int guesses = 0;

	assert_true(call(callers, "good", "10.0.0.1:1", CALLERS_OPENED));
	do {
		snprintf(key, sizeof key, "bad%d", guesses);
	} while (guesses < 1000 && call(callers, key, "10.0.0.1:2", CALLERS_REFUSED) && ++guesses);
	assert_int_equal(guesses, 4);
	/* Who has a key that opened goes on, and so does every other address. */
	assert_true(call(callers, "good", "10.0.0.1:1", CALLERS_OPENED));
	assert_true(call(callers, "bad", "10.0.0.2:1", CALLERS_REFUSED));
	assert_true(call(callers, "bad", "[::ffff:10.0.0.3]:1", CALLERS_REFUSED));
	assert_false(call(callers, "bad", "[::ffff:10.0.0.1]:1", CALLERS_REFUSED));
	callers_destroy(callers);
}

/* An answer that didn't depend on the key makes a guess no known key: its next one counts. */
static void test_an_open_call_makes_no_key_known(void **state UNUSED)
{
	struct callers *callers = callers_create(key_rate, address_rate);
	char key[16];
	int guesses = 0;

	while (guesses < 1000) {
		snprintf(key, sizeof key, "bad%d", guesses);
		if (!call(callers, key, "10.0.0.1:1", CALLERS_UNASKED) ||
		    !call(callers, key, "10.0.0.1:1", CALLERS_REFUSED))
			break;
		guesses++;
	}
	assert_int_equal(guesses, 4);
	callers_destroy(callers);
}

/* Health checks come often and show nothing. */
static void test_no_key(void **state UNUSED)
{
	struct callers *callers = callers_create(key_rate, address_rate);

	for (int i = 0; i < 1000; i++)
		assert_true(call(callers, NULL, "10.0.0.1:1", CALLERS_UNASKED));
	for (int i = 0; i < 4; i++)
		assert_true(call(callers, NULL, "10.0.0.1:1", CALLERS_REFUSED));
	assert_false(call(callers, NULL, "10.0.0.1:1", CALLERS_REFUSED));
	callers_destroy(callers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_key_that_opens_has_its_own_rate),
		cmocka_unit_test(test_guesses_count_for_their_address),
		cmocka_unit_test(test_an_open_call_makes_no_key_known),
		cmocka_unit_test(test_no_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
