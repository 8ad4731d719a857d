#include "node/core/clinging.h"

#include "fixture.h"

#define SINCE 1796090400 /* 2026-12-01T02:00:00Z */

/* What the rule makes of a state and its times. */
static void test_what_was_done_and_comes_next(void **state UNUSED)
{
	static const struct {
		enum reap_state state;
		int64_t done_s, next_s; /* after SINCE */
		const char *text;
	} CASES[] = {
		{REAP_HOLDING, 0, 30, "to be asked to go at 02:00:30Z, forced at 02:01:30Z"},
		{REAP_ASKED, 31, 91, "asked to go at 02:00:31Z, to be forced at 02:01:31Z"},
		{REAP_FORCED, 92, 0,
		 "deleted by force at 02:01:32Z, still there: now only its kubelet can end it"},
		{REAP_HOLDING, 0, 79185,
		 "to be asked to go at 23:59:45Z, forced at 2026-12-02T00:00:45Z"},
		{REAP_FORCED, 86400, 0,
		 "deleted by force at 2026-12-02T02:00:00Z, still there: now only its kubelet can "
		 "end it"},
		{REAP_ASKED, 0, 0, "asked to go"}, /* just now */
		{REAP_STATIC, 31, 0, "static: only removing its manifest ends it"},
		{REAP_NAMELESS, 0, 0, "its UID is unknown, so it isn't touched"},
		{REAP_NOTHING, 0, 0, ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
		int64_t done = CASES[i].done_s ? SINCE + CASES[i].done_s : 0;
		int64_t next = CASES[i].next_s ? SINCE + CASES[i].next_s : 0;
		struct reap_times times = {.done = {done * 1000}, .next = {next * 1000}};
		CLEANUP(buf) struct buf text = {0};

		clinging_plan(CASES[i].state, &times, (struct wall){SINCE * (int64_t)1000}, &text);
		assert_string_equal(buf_text(&text), CASES[i].text);
	}
}

/* Who isn't listed is asked to go, and not forced. proves: REL-23 */
static void test_of_one_that_is_not_listed(void **state UNUSED)
{
	const struct wall since = {SINCE * (int64_t)1000};
	const struct reap_times before = {.next = {since.ms + 30000}, .unlisted = true},
				after = {.done = {since.ms + 31000}, .unlisted = true};
	CLEANUP(buf) struct buf text = {0};

	clinging_plan(REAP_HOLDING, &before, since, &text);
	buf_add_char(&text, '\n');
	clinging_plan(REAP_ASKED, &after, since, &text);
	assert_string_equal(buf_text(&text),
			    "to be asked to go at 02:00:30Z\n"
			    "asked to go at 02:00:31Z, and not forced unless the kubelet lists it "
			    "with a device");
}

struct world {
	struct inventory inventory;
	struct release_entry entry;
	char ids[6][HOLDS_ID_SIZE];
};

static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);

	fixture_inventory(&world->inventory);
	str_copy(world->entry.allocation, sizeof world->entry.allocation, ALC_A);
	world->entry.since = SINCE;
	for (size_t i = 0; i < ARRAY_SIZE(world->ids); i++) {
		vec_push(&world->entry.devices)->atom = fixture_gpu(&world->inventory, i);
		fixture_id(world->ids[i], fixture_gpu(&world->inventory, i), ALC_A);
	}
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	inventory_deinit(&world->inventory);
	release_entry_deinit(&world->entry);
	free(world);
	return 0;
}

/* Each holder with the devices that it has, and no others beside them. proves: REL-19 */
static void test_each_has_its_own(void **state)
{
	struct world *world = *state;
	const struct clinging_holder holders[] = {
		{"ns/a (c)", "u-a", world->ids[1], "asked to go"},
		{"ns/b (c)", "u-b", world->ids[4], ""},
		{"ns/a (c)", "u-a", world->ids[3], "asked to go"},
		{"process 7 (x) of pod u-c", "u-c", "", "had a device"},
	};
	char first[ATOM_TEXT_SIZE], second[ATOM_TEXT_SIZE], third[ATOM_TEXT_SIZE], wanted[512];
	CLEANUP(buf) struct buf text = {0};

	atom_format(first, &world->entry.devices.items[1].atom);
	atom_format(second, &world->entry.devices.items[3].atom);
	atom_format(third, &world->entry.devices.items[4].atom);
	assert_true(clinging_describe(&world->entry, holders, ARRAY_SIZE(holders), &text));
	snprintf(wanted, sizeof wanted,
		 "held since 2026-12-01T02:00:00Z by ns/a (c), 2 of its 6 devices (%s, %s): asked "
		 "to go"
		 ", and by ns/b (c), 1 of its 6 devices (%s), and by process 7 (x) of pod u-c: had "
		 "a "
		 "device",
		 first, second, third);
	assert_string_equal(buf_text(&text), wanted);
}

/* Who has them all needs no list; of whom it isn't known which, none is made up. */
static void test_all_or_unknown(void **state)
{
	struct world *world = *state;
	struct clinging_holder holders[ARRAY_SIZE(world->ids)];
	CLEANUP(buf) struct buf text = {0}, unknown = {0}, nobody = {0};

	for (size_t i = 0; i < ARRAY_SIZE(holders); i++)
		holders[i] = (struct clinging_holder){"ns/a (c)", "u-a", world->ids[i], ""};
	assert_false(clinging_describe(&world->entry, holders, ARRAY_SIZE(holders), &text));
	assert_string_equal(buf_text(&text),
			    "held since 2026-12-01T02:00:00Z by ns/a (c), all its 6 devices");
	holders[0].id = "";
	world->entry.since = 0; /* an entry that doesn't say */
	assert_false(clinging_describe(&world->entry, holders, 1, &unknown));
	assert_string_equal(buf_text(&unknown), "held by ns/a (c)");
	assert_false(clinging_describe(&world->entry, holders, 0, &nobody));
	assert_string_equal(buf_text(&nobody), "");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_was_done_and_comes_next),
		cmocka_unit_test(test_of_one_that_is_not_listed),
		cmocka_unit_test_setup_teardown(test_each_has_its_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_or_unknown, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
