/* Commands about bookings, and what happens to them. */
#include "unit/cli/verbs.h"

#include <signal.h>
#include <unistd.h>

#define BODY_8                                                                                     \
	"{\"devices\":[{\"class\":\"gpu\",\"count\":8}],\"tenantId\":\"" TENANT                    \
	"\",\"poolId\":\"" POOL                                                                    \
	"\",\"duration\":\"8h\",\"binding\":\"kubernetes\",\"gang\":{\"nodes\":2,\"topology\":{"   \
	"\"same\":\"rack\"}},\"spot\":true}"
#define ENDS "\"duration\":\"8h\",\"endAt\":\"2026-11-30T08:00:00.000Z\""

#define REQUESTS "\"requests\":{\"bcd.dev/gpu\":\"2\",\"cpu\":\"10666m\",\"memory\":\"256Gi\"}"

#define HELD(message)                                                                              \
	"\"state\":\"released\",\"conditions\":[{\"type\":\"DevicesHeld\",\"message\":\"" message  \
	"\",\"next\":\"Should node_1 never\"}]"

/* proves: GANG-8 HOST-13 */
static void test_reservations(void **state)
{
	static const struct row rows[] = {
		{"reserve --gpus 8 --for 8h --kubernetes --tenant " TENANT " --pool " POOL,
		 {OK(ITEM(RSV,
			  ",\"state\":\"pending\",\"tenantId\":\"" TENANT
			  "\",\"duration\":\"8h\",\"reasons\":[{\"reason\":\"DevicesBusy\"}]")),
		  OK("{\"fits\":false,\"firstFitAt\":\"2099-11-30T02:00:00.000Z\"}"), OK(LIST(""))},
		 {"POST /v1/reservations ", "POST /v1/capacity/preview ",
		  "{\"tenantId\":\"" TENANT "\",\"duration\":\"8h\"}"},
		 .out = " (2099-11-30 02:00 UTC)\n"},
		{"reserve --gpus 2 --for 8h --kubernetes --wait --tenant " TENANT " --pool " POOL,
		 {OK(ITEM(RSV, ",\"state\":\"placed\"")),
		  OK(ITEM(RSV, ",\"state\":\"active\",\"conditions\":[{\"type\":\"Unconfirmed\","
			       "\"message\":\"no kubelet says\"}]")),
		  OK(LIST(""))},
		 {"POST /v1/reservations "},
		 .err = "note: Unconfirmed: no kubelet says"},
		{"reserve --gpus 8 --for 8h --kubernetes --nodes 2 --same rack --spot "
		 "--tenant " TENANT " --pool " POOL " --idempotency-key k1 -o name",
		 {OK(ITEM(RSV, ",\"state\":\"pending\""))},
		 {"POST /v1/reservations ",
		  "\"gang\":{\"nodes\":2,\"topology\":{\"same\":\"rack\"}},\"spot\":true",
		  "\"idempotencyKey\":\"k1\""},
		 .out = RSV "\n"},
		{"capacity",
		 {OK("{\"items\":[{\"poolId\":\"" POOL
		     "\",\"class\":\"gpu\",\"total\":8,\"free\":0,"
		     "\"booked\":2,\"unhealthy\":0,\"unavailable\":6,\"nodes\":1}]}"),
		  OK(LIST("")), OK(LIST(""))},
		 {"GET /v1/capacity "},
		 .out = "CLOSED"},
		{"capacity",
		 {OK("{\"items\":[{\"poolId\":\"" POOL
		     "\",\"class\":\"gpu\",\"total\":8,\"free\":8,\"spotOnly\":8,"
		     "\"booked\":0,\"unhealthy\":0,\"unavailable\":0,\"nodes\":1}]}"),
		  OK(LIST("")), OK(LIST(""))},
		 {"GET /v1/capacity "},
		 .out = "SPOT ONLY"},
		{"capacity --preview --gpus 8 --for 8h --kubernetes --nodes 2 --same rack --spot "
		 "--tenant " TENANT " --pool " POOL,
		 {OK("{\"fits\":false,\"nodes\":[],\"firstFitAt\":\"2026-11-30T02:00:00.000Z\","
		     "\"reasons\":[{\"reason\":\"DevicesBusy\",\"nodes\":9,\"largest\":4},"
		     "{\"reason\":\"ForeignGpuExposure\",\"nodes\":2}]}"),
		  OK(LIST(""))},
		 {BODY_8},
		 .out = "does not fit now: 2 × 8 gpu, spot\n",
		 .status = 3},
		{"reserve --gpus 2 --for 8h --kubernetes --start 2099-11-30T00:00:00Z --dry-run "
		 "--tenant " TENANT " --pool " POOL,
		 {OK("{\"fits\":true,\"nodes\":[{\"id\":\"" NODE "\",\"devices\":[\"a\"]}]}"),
		  OK(LIST(""))},
		 {"POST /v1/capacity/preview ", "\"startAt\":\"2099-11-30T00:00:00.000Z\""},
		 .out = "fits then: 2 gpu\n"},
		{"reserve --gpus 2 --for 8h --kubernetes --start 2099-11-30T00:00:00Z --dry-run "
		 "--tenant " TENANT " --pool " POOL,
		 {OK("{\"fits\":true,\"nodes\":[]}"), OK(LIST(""))},
		 {NULL},
		 .out = "(2099-11-30 00:00 UTC)\n  ends      in "},
		{"reserve --gpus 2 --for 8h --kubernetes --start 2099-11-30T00:00:00Z --dry-run "
		 "--tenant " TENANT " --pool " POOL,
		 {OK("{\"fits\":true,\"nodes\":[]}"), OK(LIST(""))},
		 {NULL},
		 .out = "(2099-11-30 08:00 UTC)\n"},
		{"reserve --gpus 2 --for 8h --kubernetes --start 2099-11-30T00:00:00Z --dry-run "
		 "--tenant " TENANT " --pool " POOL,
		 {OK("{\"fits\":false,\"nodes\":[],\"reasons\":[]}"), OK(LIST(""))},
		 {NULL},
		 .out = "does not fit then: 2 gpu\n",
		 .status = 3},
		{"capacity --preview --gpus 2 --for 8h --kubernetes --tenant " TENANT
		 " --pool " POOL,
		 {OK("{\"fits\":true,\"nodes\":[]}"), OK(LIST(""))},
		 {NULL},
		 .out = "fits now: 2 gpu\n  ends      in "},
		{"reservations extend " RSV " --by 2h",
		 {OK(ITEM(RSV, "," ENDS)), OK(ITEM(RSV, ",\"state\":\"active\"," ENDS)),
		  OK(LIST(""))},
		 {"PATCH /v1/reservations/" RSV " ", "{\"endAt\":\"2026-11-30T10:00:00.000Z\"}"},
		 .out = RSV "  active"},
		{"reservations shorten " RSV " --until 2026-11-30T09:00:00Z",
		 {OK(ITEM(RSV, "," ENDS))},
		 {NULL},
		 .err = "it ends at 2026-11-30 08:00 UTC, which is not later",
		 .status = 2},
		{"reservations shorten " RSV " --by 90m",
		 {OK(ITEM(RSV, ",\"state\":\"pending\",\"duration\":\"8h\"")),
		  OK(ITEM(RSV, ",\"state\":\"pending\"")), OK(LIST(""))},
		 {"{\"duration\":\"6h30m\"}"},
		 .out = NULL},
		{"reservations",
		 {OK(LIST(""))},
		 {"GET /v1/reservations?live=true&limit="},
		 .err = "no reservations now"},
		{"reservations --pool " POOL " --tenant " TENANT,
		 {OK(LIST(""))},
		 {"GET /v1/reservations?live=true&poolId=" POOL "&tenantId=" TENANT "&limit="},
		 .out = NULL},
		{"reservations --all",
		 {OK(LIST(""))},
		 {"GET /v1/reservations?limit="},
		 .err = "no reservations yet"},
		{"reservations --state-is denied --from 2026-11-29T00:00:00Z --to "
		 "2026-11-30T00:00:00Z",
		 {OK(LIST(""))},
		 {"GET "
		  "/v1/reservations?state=denied&from=2026-11-29T00%3A00%3A00.000Z&to=2026-11-30T"},
		 .err = "no reservations of this kind"},
		/* As the table says it: to the API it is released, and devices are held. */
		{"reservations --state-is releasing --pool " POOL " -o name",
		 {OK(LIST(ITEM(RSV "1", ",\"state\":\"active\"") "," ITEM(
			 RSV "2",
			 ",\"state\":\"released\",\"conditions\":[{\"type\":"
			 "\"DevicesHeld\"}]") "," ITEM(RSV "3", ",\"state\":\"placed\"")))},
		 {"GET /v1/reservations?live=true&state=released&poolId=" POOL "&limit="},
		 .out = RSV "2\n"},
		{"reservations --state-is releasing",
		 {OK(LIST(ITEM(RSV, ",\"state\":\"active\"")))},
		 {NULL},
		 .err = "no reservations of this kind"},
		{"reservations --state-is over",
		 {OK("{}")},
		 {NULL},
		 .err = "'over' is not one of pending, placed, active, releasing, released, ",
		 .status = 2},
		{"reservations pod-requests " RSV " --devices 2 --class gpu",
		 {OK(ITEM(RSV, ",\"devices\":2,\"pods\":4,\"resources\":{" REQUESTS "}"))},
		 {"GET /v1/reservations/" RSV "/pod-requests?devices=2&class=gpu "},
		 .out = "# " RSV ": enough for 4 such containers\nresources:\n  requests:\n    "
			"bcd.dev/gpu: \"2\"\n    cpu: \"10666m\"\n    memory: \"256Gi\"\n"},
		{"reservations pod-requests " RSV " -o json",
		 {OK(ITEM(RSV, ",\"resources\":{" REQUESTS "}"))},
		 {"GET /v1/reservations/" RSV "/pod-requests "},
		 .out = "\"cpu\": \"10666m\""},
		{"reservations move " RSV " --start 2026-12-01T00:00:00Z",
		 {OK(ITEM(RSV, ",\"state\":\"pending\"")), OK(LIST(""))},
		 {"PATCH /v1/reservations/" RSV " ", "{\"startAt\":\"2026-12-01T00:00:00.000Z\"}"},
		 .out = NULL},
		{"reservations show " RSV,
		 {OK(ITEM(RSV, "," HELD("node_1 says: held by a/b."))), OK(LIST("")), OK(LIST("")),
		  OK(LIST(""))},
		 {NULL},
		 .out = "DevicesHeld  node_1 says: held by a/b. Should node_1 never"},
		/* bcd and events know it by its parts. */
		{"reservations show alc_" ULID "x -o json",
		 {OK(LIST(ITEM(RSV, ",\"allocations\":[{\"id\":\"alc_" ULID "y\"}]"))),
		  OK(LIST(ITEM(RSV, ",\"allocations\":[{\"id\":\"alc_" ULID "y\"},"
				    "{\"id\":\"alc_" ULID "x\"}]"))),
		  OK(ITEM(RSV, ""))},
		 {"GET /v1/reservations?live=true",
		  "GET /v1/reservations?limit=", "GET /v1/reservations/" RSV " "},
		 .out = "\"" RSV "\""},
		{"release alc_" ULID "z",
		 {OK(LIST("")), OK(LIST(""))},
		 {NULL},
		 .err = "no reservation has an allocation 'alc_" ULID
			"z'\n  All reservations: better-compute reservations",
		 .status = 1},
		/* Many ids begin so. */
		{"release alc_01m8",
		 {OK(LIST(""))},
		 {NULL},
		 .err = "'alc_01m8' is no whole id of an allocation\n  Give it whole",
		 .status = 2},
		/* Two parts of one are one. */
		{"release alc_" ULID "x alc_" ULID "y",
		 {OK(LIST(ITEM(RSV, ",\"allocations\":[{\"id\":\"alc_" ULID "x\"},"
				    "{\"id\":\"alc_" ULID "y\"}]"))),
		  OK(LIST(ITEM(RSV, ",\"allocations\":[{\"id\":\"alc_" ULID "x\"},"
				    "{\"id\":\"alc_" ULID "y\"}]"))),
		  OK(ITEM(RSV, ",\"state\":\"released\""))},
		 {"GET /v1/reservations?live=true", "GET /v1/reservations?live=true",
		  "POST /v1/reservations/" RSV "/release "},
		 .out = NULL},
		{"reservations release " RSV " rsv_nobody",
		 {OK(LIST(""))},
		 {"GET /v1/reservations"},
		 .err = "nothing was done: reservation 'rsv_nobody' not found",
		 .status = 1},
		/* What the API refuses is said of the flag. */
		{"reserve --gpus 1 --for 1h --kubernetes --tenant " TENANT " --pool " POOL
		 " --cpus 99999",
		 {REFUSED_FIELD("resources.vcpu", "is 99999, must be between 1 and 4096")},
		 {"\"vcpu\":99999"},
		 .err = "error: --cpus: is 99999, must be between 1 and 4096\n",
		 .status = 2},
		{"reserve --gpus 1 --mig 1g=1 --for 1h --kubernetes --tenant " TENANT
		 " --pool " POOL,
		 {REFUSED_FIELD("devices[1].profile", "'1g' is not a profile")},
		 {NULL},
		 .err = "error: --mig: '1g' is not a profile\n",
		 .status = 2},
		{"reserve --gpus 1 --for 1h --kubernetes --nodes 300 --tenant " TENANT
		 " --pool " POOL,
		 {REFUSED_FIELD("gang.nodes", "is 300, must be between 1 and 256")},
		 {NULL},
		 .err = "error: --nodes: is 300",
		 .status = 2},
		/* What is refused of one keeps nothing from the others, and is how it ends. */
		{"reservations cancel " RSV " " RSV2 " " RSV3,
		 {REFUSED(404, "NOT_FOUND", "no such reservation"),
		  OK(ITEM(RSV2, ",\"state\":\"cancelled\"")),
		  REFUSED(409, "INVALID_STATE", "it is active")},
		 {"POST /v1/reservations/" RSV "/cancel ", "POST /v1/reservations/" RSV2 "/cancel ",
		  "POST /v1/reservations/" RSV3 "/cancel "},
		 .out = RSV2 "  cancelled\n",
		 .err = "error: cancel " RSV ": no such reservation\n  All reservations: "
			"better-compute reservations\nerror: cancel " RSV3 ": it is active\n",
		 .status = 1},
		{"release " RSV " " RSV2,
		 {REFUSED(403, "FORBIDDEN", "not yours"),
		  OK(ITEM(RSV2, ",\"state\":\"released\""))},
		 {"POST /v1/reservations/" RSV2 "/release "},
		 .out = RSV2 "  released",
		 .err = "error: release " RSV ": not yours",
		 .status = 5},
		/* Whatever is found of the others: it is the refusal that a script hears of. */
		{"release " RSV " " RSV2 " --dry-run --exit-code",
		 {OK(ITEM(RSV, "")), REFUSED(404, "NOT_FOUND", "no such reservation")},
		 {"/" RSV "/release?dryRun=true ", "/" RSV2 "/release?dryRun=true "},
		 .out = "would send POST /v1/reservations/" RSV "/release\n",
		 .err = "error: release " RSV2 ": no such reservation",
		 .status = 1},
		{"release " RSV " " RSV2 " --dry-run --exit-code",
		 {REFUSED(404, "NOT_FOUND", "no such reservation"), OK(ITEM(RSV2, ""))},
		 {NULL},
		 .out = "would send POST /v1/reservations/" RSV2 "/release\n",
		 .status = 1},
		{"reservations cancel " RSV " " RSV2 " --dry-run --exit-code",
		 {OK(ITEM(RSV, "")), REFUSED(403, "FORBIDDEN", "not yours")},
		 {NULL},
		 .out = NULL,
		 .status = 5},
		{"release " RSV " " RSV2 " --dry-run --exit-code --wait",
		 {OK(ITEM(RSV, "")), OK(ITEM(RSV2, ""))},
		 {NULL},
		 .out = NULL,
		 .status = 6},
		/* Whom nobody knows is told so once. */
		{"release " RSV " " RSV2 " " RSV3,
		 {REFUSED(401, "UNAUTHENTICATED", "the key is not known")},
		 {"POST /v1/reservations/" RSV "/release "},
		 .err = "note: not tried: " RSV2 ", " RSV3 "\n",
		 .status = 5},
		{"release " RSV " " RSV2 " " RSV3 " --wait",
		 {OK(ITEM(RSV, ",\"state\":\"released\"")),
		  REFUSED(401, "UNAUTHENTICATED", "the key is not known")},
		 {NULL},
		 .out = RSV "  released",
		 .err = "note: not tried: " RSV3 "\nnote: not waited for, the release goes on: " RSV
			"\n",
		 .status = 5},
		{"release rsv_01",
		 {OK(LIST(ITEM(RSV, "")))},
		 {NULL},
		 .err = "error: reservation 'rsv_01' is too short to name one\n  Give 4 characters "
			"or more after 'rsv_'. All reservations: better-compute reservations\n",
		 .status = 2},
		{"release rsv_02", /* more of it would name nothing either */
		 {OK(LIST(ITEM(RSV, "")))},
		 {NULL},
		 .err = "reservation 'rsv_02' not found",
		 .status = 1},
		{"reservations release " RSV " -v",
		 {REFUSED(404, "NOT_FOUND", "no such reservation")},
		 {"POST /v1/reservations/" RSV "/release "},
		 .err = "release " RSV ": no such reservation\n  All reservations: better-compute "
			"reservations\n  NOT_FOUND, request req_7",
		 .status = 1},
		{"reservations cancel " RSV,
		 {REFUSED(404, "NOT_FOUND", "no such reservation")},
		 {NULL},
		 .err = "All reservations: better-compute reservations",
		 .status = 1},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
}

/* What is over at once is not explained, and the line is the guide's; what isn't, is, once. */
static void test_waiting_for_a_release(void **state)
{
	static const char HELD_STILL[] = ITEM(
		RSV,
		"," HELD("node_1 says: held by a/b (gpu/0123456789-abcdef0123-4567). It goes."));
	const struct fake_answer soon[] = {OK(HELD_STILL), OK(HELD_STILL),
					   OK(ITEM(RSV, ",\"state\":\"released\""))};
	struct fake_answer late[10];
	static struct outcome outcome;
	const char *said;

	run_line(state, "release " RSV " --wait", "", soon, ARRAY_SIZE(soon), &outcome);
	assert_int_equal(outcome.status, 0);
	assert_int_equal(strncmp(outcome.out, RSV "  released  (0.", strlen(RSV "  released  (0.")),
			 0);
	assert_null(strstr(outcome.err, "node_1"));
	for (size_t i = 0; i < ARRAY_SIZE(late); i++)
		late[i] = (struct fake_answer)OK(HELD_STILL);
	run_line(state, "release " RSV " --wait --timeout 3s", "", late, ARRAY_SIZE(late),
		 &outcome);
	assert_int_equal(outcome.status, 1);
	assert_string_equal(outcome.out, RSV "  releasing  (timed out)\n");
	said = strstr(outcome.err, "note: node_1 says: held by a/b (gpu/01234567…). It goes.\n");
	assert_non_null(said);
	assert_null(strstr(said + strlen("note: node_1"), "node_1"));
	assert_non_null(strstr(outcome.err, "note: Ctrl-C: the release goes on"));
}

static size_t times(const char *text, const char *wanted)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, wanted)); at++)
		count++;
	return count;
}

#define STILL_HELD(id) ITEM(id, "," HELD("node_1 says: held by a/b"))
#define ASKED(id)      "POST /v1/reservations/" id "/release "
#define LOOKED(id)     "GET /v1/reservations/" id " "

/* One that is waited for keeps no other booked; the time is for all of them, and so is Ctrl-C. */
static void test_waiting_for_several(void **state)
{
	const struct fake_answer held[] = {OK(STILL_HELD(RSV)), OK(STILL_HELD(RSV2)),
					   OK(STILL_HELD(RSV))};
	const struct fake_answer refused[] = {REFUSED(403, "FORBIDDEN", "not yours"),
					      OK(STILL_HELD(RSV2))};
	const struct fake_answer lost[] = {OK(STILL_HELD(RSV)), OK(STILL_HELD(RSV2)),
					   REFUSED(404, "NOT_FOUND", "gone"),
					   OK(ITEM(RSV2, ",\"state\":\"released\""))};
	const struct timespec at_once = {0};
	static struct outcome outcome;
	sigset_t signals, before;

	run_line(state, "release " RSV " " RSV2 " --wait --timeout 1s", "", held, ARRAY_SIZE(held),
		 &outcome);
	assert_int_equal(outcome.status, 1);
	assert_true(strstr(outcome.seen, ASKED(RSV2)) < strstr(outcome.seen, LOOKED(RSV)));
	assert_int_equal(times(outcome.seen, LOOKED(RSV2)), 1);
	assert_string_equal(outcome.out,
			    RSV "  releasing  (timed out)\n" RSV2 "  releasing  (timed out)\n");

	/* A refusal is how it ends, whatever else was waited for in vain. */
	run_line(state, "release " RSV " " RSV2 " --wait --timeout 1s", "", refused,
		 ARRAY_SIZE(refused), &outcome);
	assert_int_equal(outcome.status, 5);
	assert_string_equal(outcome.out, RSV2 "  releasing  (timed out)\n");
	run_line(state, "release " RSV " " RSV2 " --wait", "", lost, ARRAY_SIZE(lost), &outcome);
	assert_int_equal(outcome.status, 1);
	assert_non_null(strstr(outcome.err, "error: wait for " RSV ": gone"));
	assert_non_null(strstr(outcome.out, RSV2 "  released  ("));

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, &before);
	assert_int_equal(kill(getpid(), SIGINT), 0);
	run_line(state, "release " RSV " " RSV2 " --wait", "", held, ARRAY_SIZE(held), &outcome);
	assert_int_equal(sigtimedwait(&signals, NULL, &at_once), SIGINT);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(outcome.status, 1);
	assert_int_equal(times(outcome.seen, "POST "), 2);
	assert_int_equal(times(outcome.seen, LOOKED(RSV)), 1);
	assert_int_equal(times(outcome.seen, LOOKED(RSV2)), 0);
	assert_non_null(strstr(outcome.out, RSV "  releasing  (interrupted)\n" RSV2 "  releasing"));
	assert_non_null(
		strstr(outcome.err, "note: not waited for, the release goes on: " RSV2 "\n"));
}

/* The node never said so: it isn't told like a release that it confirmed, and a script hears of it. */
static void test_release_that_no_node_confirmed(void **state)
{
	static const char OVER[] = ITEM(
		RSV, ",\"state\":\"released\",\"allocations\":[{\"state\":\"released\"}],"
		     "\"conditions\":[{\"type\":\"ReleaseUnconfirmed\",\"message\":\"node_1 never "
		     "said that no pod holds the devices\"}]");
	const struct fake_answer answers[] = {OK(OVER), OK(OVER)};
	const struct fake_answer shown[] = {OK(OVER), OK(LIST("")), OK(LIST("")), OK(LIST(""))};
	static const char LISTED[] = LIST(ITEM(
		RSV, ",\"state\":\"released\",\"conditions\":[{\"type\":\"ReleaseUnconfirmed\","
		     "\"message\":\"node_1 never said\"}]"));
	const struct fake_answer listed[] = {OK(LISTED), OK(LIST("")), OK(LIST(""))};
	static struct outcome outcome;

	run_line(state, "release " RSV " --wait", "", answers, ARRAY_SIZE(answers), &outcome);
	assert_int_equal(outcome.status, 1);
	assert_non_null(strstr(outcome.out, RSV "  over, unconfirmed  ("));
	assert_non_null(
		strstr(outcome.err, "note: node_1 never said that no pod holds the devices"));
	run_line(state, "release " RSV, "", answers, ARRAY_SIZE(answers), &outcome);
	assert_int_equal(outcome.status, 0);
	assert_non_null(strstr(outcome.out, RSV "  released, unconfirmed  ReleaseUnconfirmed: "));
	run_line(state, "reservations show " RSV, "", shown, ARRAY_SIZE(shown), &outcome);
	assert_non_null(strstr(outcome.out, RSV "  released, unconfirmed\n"));
	assert_non_null(strstr(outcome.out, "ReleaseUnconfirmed  node_1 never said"));
	run_line(state, "reservations --all", "", listed, ARRAY_SIZE(listed), &outcome);
	assert_non_null(strstr(outcome.out, "released, unconfirmed"));
	assert_non_null(strstr(outcome.out, "node_1 never said"));
}

/* Placed, its time has come, and still it doesn't run: wherever it is looked at the reason is there. */
static void test_placed_and_waiting(void **state)
{
	static const char WAITING[] = ITEM(
		RSV,
		",\"state\":\"placed\",\"startAt\":\"2020-11-30T00:00:00.000Z\","
		"\"allocations\":[{\"state\":\"placed\",\"nodeId\":\"node_1\"}],"
		"\"conditions\":[{\"type\":\"Waiting\",\"message\":\"node_1 has yet to bind\"}]");
	const struct fake_answer shown[] = {OK(WAITING), OK(LIST("")), OK(LIST("")), OK(LIST(""))};
	const struct fake_answer waited[] = {OK(WAITING), OK(WAITING), OK(WAITING), OK(WAITING),
					     OK(WAITING), OK(WAITING), OK(WAITING), OK(WAITING)};
	static struct outcome outcome;

	run_line(state, "reservations show " RSV, "", shown, ARRAY_SIZE(shown), &outcome);
	assert_non_null(strstr(outcome.out, "waits     node_1 has yet to bind\n"));
	assert_non_null(strstr(outcome.out, "  due  "));
	assert_null(strstr(outcome.out, "started"));
	run_line(state,
		 "reserve --gpus 2 --for 8h --kubernetes --wait --timeout 1s --tenant " TENANT
		 " --pool " POOL,
		 "", waited, ARRAY_SIZE(waited), &outcome);
	assert_int_equal(outcome.status, 1);
	assert_non_null(strstr(outcome.out, "placed on node_1, waits: node_1 has yet to bind"));
}

/* What can never be is an error to a script, and offers nothing to cancel. */
static void test_denied_bookings(void **state)
{
	static const char DENIED[] =
		ITEM(RSV, ",\"state\":\"denied\",\"reasons\":[{\"reason\":\"QuotaExceeded\","
			  "\"message\":\"3 at most\"}]");
	static struct outcome outcome;
	const struct fake_answer answers[] = {OK(DENIED)};
	static const char *const lines[] = {"", " -o json", " --wait"};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		CLEANUP(buf) struct buf line = {0};
		buf_printf(&line,
			   "reserve --gpus 4 --for 1h --kubernetes --tenant " TENANT " --pool " POOL
			   "%s",
			   lines[i]);
		run_line(state, buf_text(&line), "", answers, 1, &outcome);
		assert_int_equal(outcome.status, 3);
		assert_true(strstr(outcome.out, "3 at most") || strstr(outcome.err, "3 at most"));
		assert_null(strstr(outcome.out, "cancel"));
		assert_null(strstr(outcome.out, "pods ask"));
	}
	const struct fake_answer list[] = {OK("{\"items\":[" ITEM(
		RSV, ",\"state\":\"denied\",\"reasons\":[{\"reason\":\"Q\",\"message\":"
		     "\"3 at most\"}]") "]}")};
	run_line(state, "reservations", "", list, 1, &outcome);
	check_has("reservations", "stdout", outcome.out, "3 at most (Q)");
	/* Several quotas don't say the same sentence. */
	const struct fake_answer quotas[] = {OK("{\"items\":[" ITEM(
		RSV, ",\"state\":\"denied\",\"reasons\":["
		     "{\"reason\":\"Q\",\"quotaId\":\"quo_a\",\"message\":\"3 at most\"},"
		     "{\"reason\":\"Q\",\"quotaId\":\"quo_b\",\"message\":\"2 at most\",\"unit\":"
		     "\"devices\",\"used\":1,\"limit\":2},"
		     "{\"reason\":\"Q\",\"quotaId\":\"quo_c\",\"message\":\"9 h at most\",\"unit\":"
		     "\"gpuSeconds\",\"used\":1800,\"limit\":32400}]") "]}")};
	run_line(state, "reservations", "", quotas, 1, &outcome);
	check_has("reservations", "stdout", outcome.out,
		  "3 at most (Q) · over 'quo_b' too: 1 of 2 devices · over 'quo_c' too: 0.50 of 9 "
		  "GPU-hours");
}

/* A page and a table that a person reads. */
static void test_reading_reservations(void **state)
{
	static const struct row rows[] = {
		{"reservations show " RSV,
		 {OK(ITEM(RSV,
			  ",\"state\":\"pending\",\"devices\":[{\"class\":\"gpu\",\"count\":8}],"
			  "\"gang\":{\"nodes\":2,\"topology\":{\"same\":\"rack\"}}," ENDS
			  ",\"startAt\":\"2099-11-30T00:00:00.000Z\",\"reasons\":[{\"reason\":"
			  "\"DevicesBusy\",\"nodes\":9},{\"reason\":\"X\",\"nodes\":1}]")),
		  OK(LIST(""))},
		 {NULL},
		 .out = RSV "  pending\n"
			    "  devices   2 × 8 gpu\n"
			    "  together  all 2 nodes in one rack\n"
			    "  for       8h\n"
			    "  starts    in "},
		{"reservations",
		 {OK(LIST(ITEM(
			 RSV, ",\"state\":\"placed\",\"devices\":[{\"class\":\"gpu\",\"count\":8}],"
			      "\"startAt\":\"2099-11-30T00:00:00.000Z\"")))},
		 {NULL},
		 .out = "  STARTS  "},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
}

#define EVENT_SAYS(data) "{\"seq\":2,\"data\":{" data "}}"
#define EVENT(seq)       "{\"seq\":" seq ",\"subject\":\"" RSV "\"}"

static void test_events(void **state)
{
	static const struct row rows[] = {
		/* Numbers have gaps: the look back is doubled until there are enough. */
		{"events --limit 2 -o json",
		 {OK("{\"items\":[],\"next\":9,\"last\":9}"), OK(LIST(EVENT("9"))),
		  OK(LIST(EVENT("6") "," EVENT("9")))},
		 {"after=0&limit=1 ", "after=7&limit=1000 ", "after=5&limit=1000 "},
		 .out = "\"seq\": 6"},
		{"events",
		 {OK("{\"items\":[],\"next\":0,\"last\":0}")},
		 {"after=0&limit=1 ", "after=0&limit=1000 "},
		 .err = "note: no events"},
		{"events --after 1",
		 {OK(LIST(EVENT_SAYS("\"state\":\"released\",\"devicesHeld\":true")))},
		 .out = "  releasing\n"},
		{"events --after 1",
		 {OK(LIST(EVENT_SAYS("\"action\":\"compute:pools:patch\"")))},
		 .out = "  patch\n"},
		{"events --after 1",
		 {OK(LIST(EVENT_SAYS(
			 "\"type\":\"A\",\"status\":true,\"reason\":\"R\",\"message\":\"m\"")))},
		 .out = "  A: m\n"},
		{"events --after 1",
		 {OK(LIST(EVENT_SAYS("\"type\":\"A\",\"status\":false,\"reason\":\"R\"")))},
		 .out = "  over: A\n"},
		{"events --after 1",
		 {OK(LIST(EVENT_SAYS("\"new\":1,\"b\":\"c\"")))},
		 .out = "  new=1, b=c\n"},
		/* Of a number that was never given it is said that it means nothing. */
		{"events --after 500",
		 {OK("{\"items\":[" EVENT("1") "],\"next\":1,\"last\":1}")},
		 .err = "note: no event is after 500: these are from the beginning"},
		{"events --follow --after 500",
		 {OK("id: 8\ndata: " EVENT("8") "\n\n"), REFUSED(401, "UNAUTHENTICATED", "no")},
		 {"Last-Event-ID: 500", "Last-Event-ID: 8"},
		 .err = "note: no event is after 500: these are from the beginning",
		 .status = 5},
		/* What comes is shown until the key opens no more. */
		{"events --follow --after 7",
		 {OK("id: 8\ndata: " EVENT("8") "\n\n"), REFUSED(401, "UNAUTHENTICATED", "no")},
		 {"Last-Event-ID: 7", "Last-Event-ID: 8"},
		 .out = "8  ",
		 .err = "error: no",
		 .status = 5},
		{"events --after 7 --limit 3",
		 {OK(LIST(EVENT("8")))},
		 {"after=7&limit=3 "},
		 .out = "  8  "},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reservations),
		cmocka_unit_test(test_waiting_for_a_release),
		cmocka_unit_test(test_waiting_for_several),
		cmocka_unit_test(test_release_that_no_node_confirmed),
		cmocka_unit_test(test_placed_and_waiting),
		cmocka_unit_test(test_denied_bookings),
		cmocka_unit_test(test_reading_reservations),
		cmocka_unit_test(test_events),
	};

	return cmocka_run_group_tests(tests, verbs_set_up, folder_remove);
}
