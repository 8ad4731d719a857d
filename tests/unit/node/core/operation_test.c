#include "node/core/operation.h"

#include "fixture.h"

struct world {
	struct inventory inventory;
	struct holds holds;
	struct releases releases;
	struct converge_view claims;
	char reason[REPORTS_REASON_SIZE], message[REPORTS_MESSAGE_SIZE];
};

/* ALC_A has GPU 0, ALC_B's release of a slot of GPU 7 is pending. */
static int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	struct holds gone = {0};
	struct atom atom;

	fixture_inventory(&world->inventory);
	atom = fixture_gpu(&world->inventory, 0);
	fixture_bind(&world->holds, &world->inventory, ALC_A, &atom, 1);
	atom = fixture_slot(&world->inventory, 1);
	fixture_bind(&gone, &world->inventory, ALC_B, &atom, 1);
	releases_add(&world->releases, &gone.items[0], (struct wall){1}, (struct mono){1}, "b");
	holds_deinit(&gone);
	world->claims = (struct converge_view){.holds = &world->holds,
					       .releases = &world->releases,
					       .inventory = &world->inventory};
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	holds_deinit(&world->holds);
	releases_deinit(&world->releases);
	inventory_deinit(&world->inventory);
	free(world);
	return 0;
}

static bool may(struct world *world, const char *kind, int gpu)
{
	char uuid[ATOM_UUID_SIZE], argument[80] = "";

	if (gpu >= 0) {
		atom_uuid_format(uuid, world->inventory.gpus.items[gpu].uuid);
		snprintf(argument, sizeof argument, "{\"gpu\": \"GPU-%s\"}", uuid);
	}
	return operation_may(&world->claims, kind, argument, world->reason, world->message);
}

/* proves: REL-4 REL-5 HOST-11 HOST-14 */
static void test_claims_are_named(void **state)
{
	static const char *const kinds[] = {"gpu.reset", "diag.dcgm", "host.mig-layout"};
	struct world *world = *state;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_true(may(world, kinds[i], 1));
		assert_false(may(world, kinds[i], 7));
		assert_string_equal(world->reason, "claimed");
		assert_non_null(strstr(world->message, "by the pending release of " ALC_B));
		assert_false(may(world, kinds[i], 0));
		assert_non_null(strstr(world->message, "claimed by " ALC_A));
		assert_false(may(world, kinds[i], -1)); /* the whole machine */
	}
	assert_true(may(world, "node.labels", -1));
	/* told: nobody's any more */
	world->releases.entries.items[0].reported = true;
	assert_true(may(world, "gpu.reset", 7));
}

/* proves: REL-14 REL-33 */
static void test_doubt_is_a_claim(void **state)
{
	struct world *world = *state;

	world->claims.releases_unreadable = true;
	assert_false(may(world, "gpu.reset", 3));
	assert_non_null(strstr(world->message, RELEASES_CLAIMED_BY));
	assert_false(may(world, "diag.dcgm", 3));
	assert_non_null(strstr(world->message, RELEASES_CLAIMED_BY));
	world->claims.releases_unreadable = false;
	world->claims.holds = NULL;
	assert_false(may(world, "gpu.reset", 3));
	assert_false(operation_may(&world->claims, "gpu.reset", "{\"gpu\": 7}", world->reason,
				   world->message));
	assert_string_equal(world->reason, "invalid-argument");
	assert_false(
		operation_may(&world->claims, "gpu.reset", "[", world->reason, world->message));
}

/* What bcd never does, claimed or not, and who does it.  proves: GW-21 GW-22 HOSTED-27 HOSTED-28 */
static void test_never_done(void **state)
{
	static const struct {
		const char *kind;
		bool hosted;
		const char *reason, *message;
	} rows[] = {
		{"daemon.upgrade", true, "self-update-refused", "no [update] release_pins"},
		{"daemon.upgrade", true, "self-update-refused", "roll out a new image"},
		{"daemon.upgrade", false, "self-update-refused", "no [update] release_pins"},
		{"daemon.rollback", true, "self-update-refused", "doesn't update itself"},
		{"node.reboot", true, "reboot-refused", "[host] units = false"},
		{"node.reboot", false, "reboot-refused", "bcd never reboots a node"},
		{"node.labels", true, "unsupported", "managed by others"},
		{"gpu.reset", false, "claimed", "claimed by"},
	};
	struct world *world = *state;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		operation_refuse(&world->claims, rows[i].hosted, rows[i].kind, "", world->reason,
				 world->message);
		assert_string_equal(world->reason, rows[i].reason);
		assert_non_null(strstr(world->message, rows[i].message));
	}
	/* what is claimed isn't asked first */
	world->claims.releases_unreadable = true;
	operation_refuse(&world->claims, true, "node.reboot", "[", world->reason, world->message);
	assert_string_equal(world->reason, "reboot-refused");
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_claims_are_named),
		WITH_WORLD(test_doubt_is_a_claim),
		WITH_WORLD(test_never_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
