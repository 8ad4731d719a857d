#include "fixture.h"

/* --- the record --- */

static void make(struct releases *releases)
{
	struct inventory inventory = {0};
	struct holds holds = {0};
	struct atom atoms[2];

	fixture_inventory(&inventory);
	atoms[0] = fixture_gpu(&inventory, 0);
	atoms[1] = fixture_mig(&inventory, 1);
	fixture_bind(&holds, &inventory, ALC_A, atoms, 2);
	atoms[0] = fixture_gpu(&inventory, 1);
	fixture_bind(&holds, &inventory, ALC_B, atoms, 1);
	releases_add(releases, &holds.items[0], (struct wall){1764547200000}, (struct mono){5000},
		     "boot-1");
	releases_add(releases, &holds.items[0], (struct wall){1}, (struct mono){2}, "boot-2");
	releases_add(releases, &holds.items[1], (struct wall){1764547200000}, (struct mono){5000},
		     "boot-1");
	holds_deinit(&holds);
	inventory_deinit(&inventory);
}

/* proves: REL-46 */
static void test_record_comes_back(void **state)
{
	struct releases releases = {0}, back = {0};
	struct buf text = {0}, again = {0};
	struct error error;

	(void)state;
	make(&releases);
	assert_int_equal(releases.entries.count, 2); /* added twice is there once */
	releases_format(&releases, &text);
	expect_ok(releases_parse(buf_text(&text), text.length, &back, &error), &error);
	releases_format(&back, &again);
	assert_string_equal(buf_text(&text), buf_text(&again));
	assert_int_equal(back.entries.items[0].since, 1764547200);
	releases_deinit(&releases);
	releases_deinit(&back);
	buf_deinit(&text);
	buf_deinit(&again);
}

/* Bound again after its release was reported, and then released again: pods may hold it anew. */
static void test_a_reported_release_begins_anew(void **state)
{
	struct inventory inventory = {0};
	struct releases releases = {0};
	struct holds holds = {0};
	struct atom atom;

	(void)state;
	fixture_inventory(&inventory);
	atom = fixture_gpu(&inventory, 0);
	fixture_bind(&holds, &inventory, ALC_A, &atom, 1);
	releases_add(&releases, &holds.items[0], (struct wall){1000}, (struct mono){1}, "b");
	releases.entries.items[0].reported = true;
	releases_add(&releases, &holds.items[0], (struct wall){9000}, (struct mono){9}, "b");
	assert_int_equal(releases.entries.count, 1);
	assert_false(releases.entries.items[0].reported);
	assert_int_equal(releases.entries.items[0].since_boot_ms, 9);
	releases_deinit(&releases);
	holds_deinit(&holds);
	inventory_deinit(&inventory);
}

/* Truncated anywhere, or with anything behind it. proves: REL-30 */
static void test_damage_is_never_empty(void **state)
{
	static const char *const texts[] = {
		"",
		"{}",
		"null",
		"[]",
		"0",
		"{\"version\":1}",
		"{\"releases\":[]}",
		"{\"version\":2,\"releases\":[]}",
		"{\"version\":1,\"releases\":{}}",
		"{\"version\":1,\"version\":1,\"releases\":[]}",
		"{\"version\":1,\"releases\":[]}x",
		"{\"version\":1,\"releases\":[{}]}",
		"{\"version\":1,\"releases\":[3]}",
	};
	struct releases releases = {0}, back = {0};
	struct buf text = {0};
	struct error error;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (releases_parse(texts[i], strlen(texts[i]), &back, &error))
			fail_msg("'%s' was taken", texts[i]);
	assert_false(releases_parse("{\"version\":1,\"releases\":[]}\0", 29, &back, &error));
	make(&releases);
	releases_format(&releases, &text);
	for (size_t length = 0; length + 1 < text.length; length++)
		if (releases_parse(buf_text(&text), length, &back, &error))
			fail_msg("the first %zu bytes were taken", length);
	releases_deinit(&releases);
	buf_deinit(&text);
}

/* A newer bcd's members survive a round through this one. */
static void test_keeps_what_it_does_not_know(void **state)
{
	struct releases releases = {0}, back = {0};
	struct buf text = {0}, again = {0};
	struct error error;
	const char *at;

	(void)state;
	make(&releases);
	releases_format(&releases, &text);
	at = strstr(buf_text(&text), "\"since\"");
	buf_add(&again, text.data, (size_t)(at - buf_text(&text)));
	buf_add_text(&again, "\"evicted\": [1, 2], ");
	buf_add_text(&again, at);
	expect_ok(releases_parse(buf_text(&again), again.length, &back, &error), &error);
	buf_clear(&again);
	releases_format(&back, &again);
	assert_non_null(strstr(buf_text(&again), "\"evicted\""));
	releases_deinit(&releases);
	releases_deinit(&back);
	buf_deinit(&text);
	buf_deinit(&again);
}

/* --- the decision: every view --- */

static const int64_t times[] = {0, 999, 1000, 5000, 9999, 10000, 299999, 300000};

/* proves: REL-2 REL-6 REL-14 REL-16 REL-17 REL-18 */
static void check(const struct release_view *view, struct mono now)
{
	struct release_plan plan = release_decide(view, now);
	int64_t settled = view->withdrawn.ms;

	if (view->given.ms + RELEASE_SETTLE_MS > settled)
		settled = view->given.ms + RELEASE_SETTLE_MS;
	if (view->kubelet_since.ms + RELEASE_KUBELET_SETTLE_MS > settled)
		settled = view->kubelet_since.ms + RELEASE_KUBELET_SETTLE_MS;
	assert_non_null(plan.why);
	assert_true(*release_step_name(plan.step));
	/* the promise: reported only if nobody can hold it */
	if (plan.step == RELEASE_REPORT) {
		assert_false(view->bound);
		assert_false(view->reported);
		assert_true(!view->worker ||
			    (view->answer == RELEASE_ANSWER_FREE && view->answered.ms >= settled));
	}
	/* liveness: a free answer that counts leads on at once */
	if (!view->bound && !view->reported && view->worker &&
	    view->answer == RELEASE_ANSWER_FREE && view->answered.ms >= settled)
		assert_int_equal(plan.step, RELEASE_REPORT);
	if (view->bound)
		assert_int_equal(plan.step, view->wanted ? RELEASE_FORGET : RELEASE_WITHDRAW);
	if (plan.step == RELEASE_ASK) {
		assert_true(plan.again.ms >= settled);
		assert_true(plan.again.ms - now.ms <= 30000);
		assert_int_equal(plan.stuck, now.ms - view->asked.ms >= RELEASE_STUCK_MS);
		/* an answer that can't count delays no question */
		if (view->answered.ms < settled)
			assert_int_equal(plan.again.ms, settled);
	} else {
		assert_false(plan.stuck);
	}
}

static void test_every_view(void **state)
{
	static const int64_t given[] = {0, 9500};
	size_t n = ARRAY_SIZE(times);

	(void)state;
	for (unsigned flags = 0, g = 0; flags < 16; g = !g, flags += !g)
		for (int answer = 0; answer <= RELEASE_ANSWER_FREE; answer++)
			for (size_t w = 0; w < n; w++)
				for (size_t a = 0; a < n; a++)
					for (size_t k = 0; k < n; k++) {
						struct release_view view = {
							.wanted = flags & 1,
							.bound = flags & 2,
							.reported = flags & 4,
							.worker = flags & 8,
							.answer = (enum release_answer)answer,
							.withdrawn = {times[w]},
							.answered = {times[a]},
							.given = {given[g]},
							.kubelet_since = {times[k]},
						};

						for (size_t t = 0; t < n; t++)
							if (times[t] >= times[w] &&
							    times[t] >= times[a] &&
							    times[t] >= times[k])
								check(&view,
								      (struct mono){times[t]});
					}
}

/* What this node never bound: nothing to withdraw, and yet the kubelet is asked before it is said.
 * proves: REL-2 REL-14 */
static void test_withdrawn_before_it_was_bound(void **state)
{
	struct releases releases = {0};
	struct inventory inventory = {0};
	struct holds holds = {0};
	struct spec spec = {0};
	struct atom atom;
	struct release_view view = {.worker = true, .answer = RELEASE_ANSWER_NONE};

	(void)state;
	fixture_inventory(&inventory);
	atom = fixture_gpu(&inventory, 0);
	fixture_bind(&holds, &inventory, ALC_B, &atom, 1);
	str_copy(vec_push(&spec.withdrawn)->allocation, ID_SIZE, ALC_A);
	str_copy(vec_push(&spec.withdrawn)->allocation, ID_SIZE, ALC_B);
	assert_true(releases_add_withdrawn(&releases, &spec, &holds, (struct wall){1000},
					   (struct mono){5000}, "boot-1"));
	assert_int_equal(releases.entries.count, 1); /* what is bound goes the usual way */
	assert_string_equal(releases.entries.items[0].allocation, ALC_A);
	assert_int_equal(releases.entries.items[0].devices.count, 0);
	assert_false(releases_add_withdrawn(&releases, &spec, &holds, (struct wall){1000},
					    (struct mono){5000}, "boot-1"));
	view.asked = view.withdrawn = (struct mono){60000};
	assert_int_equal(release_decide(&view, (struct mono){60000}).step, RELEASE_ASK);
	view.answer = RELEASE_ANSWER_HELD;
	view.answered = (struct mono){60000};
	assert_int_equal(release_decide(&view, (struct mono){60001}).step, RELEASE_ASK);
	view.answer = RELEASE_ANSWER_FREE;
	assert_int_equal(release_decide(&view, (struct mono){60001}).step, RELEASE_REPORT);
	/* found to be bound after all: its devices are recorded before they are withdrawn */
	str_copy(holds.items[0].allocation, ID_SIZE, ALC_A);
	releases_add(&releases, &holds.items[0], (struct wall){1000}, (struct mono){5000},
		     "boot-1");
	assert_int_equal(releases.entries.count, 1);
	assert_int_equal(releases.entries.items[0].devices.count, 1);
	releases_deinit(&releases);
	spec_deinit(&spec);
	holds_deinit(&holds);
	inventory_deinit(&inventory);
}

/* proves: REL-49 */
static void test_waiting_survives_a_restart_not_a_boot(void **state)
{
	struct release_entry entry = {.since_boot_ms = 5000, .boot_id = "boot-1"};

	(void)state;
	assert_int_equal(release_asked(&entry, "boot-1", (struct mono){9000}).ms, 5000);
	assert_int_equal(release_asked(&entry, "boot-2", (struct mono){9000}).ms, 9000);
	assert_int_equal(release_asked(&entry, "", (struct mono){9000}).ms, 9000);
	assert_int_equal(release_asked(&entry, "boot-1", (struct mono){4000}).ms, 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_comes_back),
		cmocka_unit_test(test_a_reported_release_begins_anew),
		cmocka_unit_test(test_damage_is_never_empty),
		cmocka_unit_test(test_keeps_what_it_does_not_know),
		cmocka_unit_test(test_every_view),
		cmocka_unit_test(test_withdrawn_before_it_was_bound),
		cmocka_unit_test(test_waiting_survives_a_restart_not_a_boot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
