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
	holds.items[0].share = (struct admission_share){4, 1 << 20, {{2 << 20, 0}}};
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
	assert_int_equal(back.entries.items[0].share.vcpus, 4);
	assert_int_equal(back.entries.items[0].share.hugepages.bytes[HUGEPAGES_2MI], 2 << 20);
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

/* A crash left the record of the Spec that waits for it, but not that Spec: what was said under the one before it
 * is nothing to the control plane. proves: REL-3 GW-17 */
static void test_said_too_early(void **state UNUSED)
{
	CLEANUP(releases) struct releases releases = {0};
	CLEANUP(spec) struct spec before = {0}, next = {0};
	const struct holds holds = {0};
	struct release_entry *entry;

	str_copy(vec_push(&next.withdrawn)->allocation, ID_SIZE, ALC_A);
	assert_true(releases_add_withdrawn(&releases, &next, &holds, (struct wall){1000},
					   (struct mono){5000}, "boot-1"));
	entry = releases_find(&releases, ALC_A);
	assert_false(releases_say_again(&releases, &before, &next)); /* it wasn't said yet */
	entry->reported = true;
	assert_false(releases_say_again(&releases, &next, &next)); /* it counts */
	assert_false(releases_say_again(&releases, &before, &before));
	assert_true(entry->reported);
	assert_true(releases_say_again(&releases, &before, &next));
	assert_false(entry->reported);
}

static void add_numbered(struct release_pods *pods, int from, int count)
{
	char uid[GIVEN_UID_SIZE];

	for (int i = from; i < from + count; i++) {
		snprintf(uid, sizeof uid, "00000000-0000-4000-8000-%012d", i);
		assert_true(release_pods_add(pods, uid));
		assert_false(release_pods_add(pods, uid));
	}
}

/* proves: REL-46 */
static void test_pods_that_had_a_device(void **state UNUSED)
{
	struct releases releases = {0}, back = {0}, copy = {0};
	struct release_pods pods = {0};
	struct releases_room room, before;
	struct buf text = {0};
	struct error error;

	make(&releases);
	add_numbered(&pods, 1, 2);
	room = before = releases_room(&releases);
	assert_true(releases_lack_pods(&releases, ALC_A, &pods));
	assert_true(releases_add_pods(&releases, &room, ALC_A, &pods));
	assert_in_range(releases_room(&releases).bytes, room.bytes, before.bytes - 1);
	assert_false(releases_lack_pods(&releases, ALC_A, &pods));
	assert_false(releases_add_pods(&releases, &room, ALC_A, &pods)); /* nothing new */
	assert_false(releases_lack_pods(&releases, ALC_C, &pods));
	assert_false(releases_add_pods(&releases, &room, ALC_C, &pods)); /* no such entry */
	releases_find(&releases, ALC_B)->reported = true;
	assert_false(releases_add_pods(&releases, &room, ALC_B, &pods));
	releases_copy(&releases, &copy);
	releases_format(&copy, &text);
	expect_ok(releases_parse(buf_text(&text), text.length, &back, &error), &error);
	assert_int_equal(back.entries.items[0].pods.count, 2);
	assert_string_equal(back.entries.items[0].pods.items[1].uid,
			    "00000000-0000-4000-8000-000000000002");
	assert_int_equal(back.entries.items[1].pods.count, 0);
	/* of very many the last */
	add_numbered(&pods, 3, RELEASE_MAX_PODS);
	assert_int_equal(pods.count, RELEASE_MAX_PODS);
	assert_string_equal(pods.items[0].uid, "00000000-0000-4000-8000-000000000003");
	/* and none where the record fills up with releases */
	room.bytes = RELEASES_MAX_FILE / 2 + (pods.count + 1) * RELEASE_POD_BYTES - 1;
	assert_false(releases_add_pods(&releases, &room, ALC_A, &pods));
	assert_true(releases_lack_pods(&releases, ALC_A, &pods));
	room.bytes++;
	assert_true(releases_add_pods(&releases, &room, ALC_A, &pods));
	assert_int_equal(room.bytes, RELEASES_MAX_FILE / 2);
	vec_deinit(&pods);
	releases_deinit(&releases);
	releases_deinit(&back);
	releases_deinit(&copy);
	buf_deinit(&text);
}

static void add_users(struct release_users *users, int count)
{
	for (int i = 0; i < count; i++) {
		struct release_user *user = vec_push(users);

		str_copy(user->allocation, sizeof user->allocation, ALC_A);
		snprintf(user->pod.uid, sizeof user->pod.uid, "00000000-0000-4000-8000-%012d", i);
		memset(user->pod.name, 'n', sizeof user->pod.name - 1);
		user->pod.grace_s = user->pod.deletion_s = (int64_t)1 << 40;
		user->pod.deleted.ms = user->pod.lost.ms = user->pod.missing.ms = (int64_t)1 << 50;
		user->pod.is_static = user->pod.over = true;
	}
}

/* What is known of their pods' ends comes back, and never fills the half that is for releases. proves: REL-46 */
static void test_users(void **state UNUSED)
{
	CLEANUP(releases) struct releases releases = {0}, back = {0}, copy = {0};
	struct release_users users = {0};
	struct buf text = {0};
	struct error error;

	make(&releases);
	add_users(&users, 2);
	assert_true(releases_set_users(&releases, &users, "boot-1"));
	assert_false(releases_set_users(&releases, &users, "boot-1"));
	releases_copy(&releases, &copy);
	releases_format(&copy, &text);
	expect_ok(releases_parse(buf_text(&text), text.length, &back, &error), &error);
	assert_string_equal(back.users_boot_id, "boot-1");
	assert_false(releases_set_users(&back, &users, "boot-1"));
	assert_true(releases_set_users(&back, &users, "boot-2"));
	assert_string_equal(back.users_boot_id, "boot-2");
	assert_false(releases_set_users(&back, &users, "boot-2"));
	back.users.items[1].pod.over = false;
	assert_true(releases_set_users(&back, &users, "boot-1"));
	add_users(&users, 3 * RELEASES_MAX_USERS);
	assert_true(releases_set_users(&back, &users, "boot-1"));
	assert_false(releases_set_users(&back, &users, "boot-1"));
	assert_in_range(back.users.count, 500, RELEASES_MAX_USERS);
	assert_true(releases_room(&back).bytes > RELEASES_MAX_FILE / 2 - RELEASES_USER_BYTES);
	users.count = 0;
	assert_true(releases_set_users(&back, &users, "boot-1"));
	assert_int_equal(back.users.count, 0);
	vec_deinit(&users);
	buf_deinit(&text);
}

/* Every order of the three: a listing counts from the last of them on. */
static void test_what_counts_as_evidence(void **state UNUSED)
{
	static const struct {
		int64_t from, given, kubelet, evidence;
	} TABLE[] = {
		{50000, 1, 1, 50000},
		{1, 50000, 1, 50000 + RELEASE_SETTLE_MS},
		{1, 1, 50000, 50000 + RELEASE_KUBELET_SETTLE_MS},
		{1, 50000, 50000, 50000 + RELEASE_KUBELET_SETTLE_MS},
		{70000, 50000, 50000, 70000},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		struct mono from = release_evidence_from((struct mono){TABLE[i].from},
							 (struct mono){TABLE[i].given},
							 (struct mono){TABLE[i].kubelet});

		assert_int_equal(from.ms, TABLE[i].evidence);
		assert_false(release_counts(from, (struct mono){TABLE[i].evidence - 1}));
		assert_true(release_counts(from, (struct mono){TABLE[i].evidence}));
	}
}

/* A restart keeps how long it waits and who had it; a reboot ends both, once; what can't be told keeps whom it names.
 * Only what was withdrawn before has outlived them. proves: REL-49 REL-2 */
static void test_waiting_survives_a_restart_not_a_boot(void **state UNUSED)
{
	static const struct {
		const char *of, *boot;
		bool bound, unread; /* the holds */
		bool any, pods, outlived;
		int64_t since;
	} TABLE[] = {
		{"boot-1", "boot-1", false, false, false, true, false, 5000},
		{"boot-1", "", false, false, false, true, false, 1000},
		{"boot-1", "boot-2", false, false, true, false, true, 900},
		{"boot-1", "boot-2", true, false, true, false, false, 900},
		{"boot-1", "boot-2", false, true, true, false, false, 900},
		{"", "boot-2", false, false, true, true, false, 900},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(inventory) struct inventory inventory = {0};
		CLEANUP(releases) struct releases releases = {0}, back = {0};
		CLEANUP(buf) struct buf text = {0};
		struct holds holds = {0}, none = {0};
		struct release_entry *entry;
		struct error error;
		struct atom atom;

		fixture_inventory(&inventory);
		atom = fixture_gpu(&inventory, 0);
		fixture_bind(&holds, &inventory, ALC_A, &atom, 1);
		releases_add(&releases, &holds.items[0], (struct wall){1000}, (struct mono){5000},
			     TABLE[i].of);
		entry = &releases.entries.items[0];
		release_pods_add(&entry->pods, "u-1");
		for (int again = 0; again < 2; again++)
			assert_int_equal(releases_begin_boot(&releases,
							     TABLE[i].unread  ? NULL
							     : TABLE[i].bound ? &holds
									      : &none,
							     TABLE[i].boot,
							     (struct mono){again ? 1000 : 900}),
					 TABLE[i].any && !again);
		assert_int_equal(entry->pods.count, TABLE[i].pods);
		assert_int_equal(entry->outlived, TABLE[i].outlived);
		assert_int_equal(entry->since_boot_ms, TABLE[i].since);
		/* and so it comes back */
		releases_format(&releases, &text);
		expect_ok(releases_parse(buf_text(&text), text.length, &back, &error), &error);
		assert_int_equal(back.entries.items[0].outlived, TABLE[i].outlived);
		/* bound again, pods may have it */
		releases_add(&releases, &holds.items[0], (struct wall){1000}, (struct mono){6000},
			     "boot-2");
		assert_false(releases.entries.items[0].outlived);
		assert_int_equal(releases.entries.items[0].since_boot_ms, TABLE[i].since);
		holds_deinit(&holds);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_comes_back),
		cmocka_unit_test(test_a_reported_release_begins_anew),
		cmocka_unit_test(test_what_counts_as_evidence),
		cmocka_unit_test(test_damage_is_never_empty),
		cmocka_unit_test(test_keeps_what_it_does_not_know),
		cmocka_unit_test(test_every_view),
		cmocka_unit_test(test_withdrawn_before_it_was_bound),
		cmocka_unit_test(test_said_too_early),
		cmocka_unit_test(test_pods_that_had_a_device),
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_waiting_survives_a_restart_not_a_boot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
