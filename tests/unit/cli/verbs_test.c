/* Whole commands against an API that answers from a list: what is asked, what is said, how it ends. */
#include "cli/commands.h"
#include "fake_server.h"
#include "lib/folder.h"

#include <fcntl.h>

#define MAX_WORDS 32
#define TEXT_SIZE 65536
#define TEN       "üüüüüüüüüü"
#define ULID      "01kb7s4x5n000000000000000"

/* One run of the program. */
struct outcome {
	int status;
	char out[TEXT_SIZE], err[TEXT_SIZE];
	char seen[TEXT_SIZE]; /* the requests */
};

static struct command_set all_commands(void)
{
	struct command_set set = {CLI_COMMANDS, 0};

	while (CLI_COMMANDS[set.table_count])
		set.table_count++;
	return set;
}

static int redirect(int fd, const char *path)
{
	int saved = dup(fd), file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(saved >= 0 && file >= 0 && dup2(file, fd) == fd);
	close(file);
	return saved;
}

/* Puts the descriptor back, and gives what was written meanwhile. */
static void collect(int fd, int saved, char *out)
{
	ssize_t got;

	lseek(fd, 0, SEEK_SET);
	got = read(fd, out, TEXT_SIZE - 1);
	out[got > 0 ? got : 0] = '\0';
	dup2(saved, fd);
	close(saved);
}

static void run_line(void **state, const char *line, const char *input,
		     const struct fake_answer *answers, size_t count, struct outcome *outcome)
{
	struct command_set set = all_commands();
	struct fake_server *server = fake_server_start(answers, count);
	CLEANUP(free) char *copy = mem_strdup(line);
	char *words[MAX_WORDS + 1] = {"better-compute"}, *rest = copy;
	int argc = 1;

	for (char *word; (word = strtok_r(rest, " ", &rest));)
		words[argc++] = word;
	setenv("BETTER_COMPUTE_API", fake_server_url(server), 1);
	fflush(NULL);
	int in = redirect(STDIN_FILENO, folder_path(state, "in"));
	(void)!write(STDIN_FILENO, input, strlen(input));
	lseek(STDIN_FILENO, 0, SEEK_SET);
	int out = redirect(STDOUT_FILENO, folder_path(state, "out"));
	int err = redirect(STDERR_FILENO, folder_path(state, "err"));
	outcome->status = command_main(&set, argc, words);
	fflush(NULL);
	collect(STDERR_FILENO, err, outcome->err);
	collect(STDOUT_FILENO, out, outcome->out);
	char ignored[TEXT_SIZE];
	collect(STDIN_FILENO, in, ignored);
	clearerr(stdin);
	str_copy(outcome->seen, sizeof outcome->seen, fake_server_finish(server));
	fake_server_destroy(server);
}

/* One case: up to four answers, and what must then be in the requests and in the output. */
struct row {
	const char *line;
	struct fake_answer answers[4];
	const char *asked[4];
	const char *out, *err;
	int status;
};

static void check_has(const char *line, const char *what, const char *text, const char *wanted)
{
	if (wanted && !strstr(text, wanted))
		fail_msg("'%s': %s lacks \"%s\":\n%s", line, what, wanted, text);
}

static void check_rows(void **state, const struct row *rows, size_t count)
{
	static struct outcome outcome;

	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		size_t answers = 0;

		while (answers < 4 && row->answers[answers].body)
			answers++;
		run_line(state, row->line, "s3cret\n", row->answers, answers, &outcome);
		for (size_t k = 0; k < 4; k++)
			check_has(row->line, "what was asked", outcome.seen, row->asked[k]);
		check_has(row->line, "stdout", outcome.out, row->out);
		check_has(row->line, "stderr", outcome.err, row->err);
		if (outcome.status != row->status)
			fail_msg("'%s' ended with %d, not %d: %s", row->line, outcome.status,
				 row->status, outcome.err);
	}
}

#define OK(text) {.status = 200, .body = (text)}
#define REFUSED(http, code, message)                                                               \
	{                                                                                          \
		.status = (http),                                                                  \
		.body = "{\"error\":{\"code\":\"" code "\",\"message\":\"" message "\"}}",         \
		.headers = "X-Request-Id: req_7\r\n",                                              \
	}
#define TENANT         "ten_" ULID "a"
#define POOL           "pool_" ULID "b"
#define RSV            "rsv_" ULID "c"
#define KEY            "key_" ULID "d"
#define NODE           "node_" ULID "e"
#define QUOTA          "quo_" ULID "f"
#define SECRET         "sec_" ULID "g"
#define SITE           "site_" ULID "h"
#define ITEM(id, more) "{\"id\":\"" id "\"" more "}"
#define LIST(items)    "{\"items\":[" items "]}"

static void test_tenants_sites_pools(void **state)
{
	static const struct row rows[] = {
		{"tenants update research --name science",
		 {OK(LIST(ITEM(TENANT, ",\"name\":\"research\""))),
		  OK(ITEM(TENANT, ",\"name\":\"science\""))},
		 {"GET /v1/tenants?", "PATCH /v1/tenants/" TENANT " ", "{\"name\":\"science\"}"},
		 .out = "science"},
		{"tenants archive " TENANT " --yes",
		 {OK(LIST("")), OK(LIST("")), OK(ITEM(TENANT, ",\"state\":\"archived\""))},
		 {"POST /v1/tenants/" TENANT "/archive "},
		 .out = "archived"},
		{"tenants archive " TENANT,
		 {OK(LIST(ITEM(POOL, ",\"tenantId\":\"" TENANT "\""))),
		  OK(LIST(ITEM(KEY, ",\"tenantId\":\"" TENANT
				    "\"") "," ITEM(KEY, ",\"tenantId\":\"" TENANT "\"")))},
		 {NULL},
		 .err = "has 1 pool and 2 keys",
		 .status = 2},
		{"sites update " SITE " --name fra1 --dry-run",
		 {OK(ITEM(SITE, ",\"name\":\"" TEN TEN TEN TEN TEN TEN "ü\""))},
		 {NULL},
		 .out = "name: " TEN TEN TEN TEN TEN "üüüüüüüüü… → fra1"},
		{"sites update " SITE " --name fra1 --dry-run --exit-code",
		 {OK(ITEM(SITE, ",\"name\":\"fra1\""))},
		 {"GET /v1/sites/" SITE " "},
		 .out = "nothing would change"},
		{"sites update " SITE " --name fra1 --dry-run --exit-code",
		 {OK(ITEM(SITE, ",\"name\":\"frankfurt\""))},
		 {NULL},
		 .out = "name: frankfurt → fra1",
		 .status = 6},
		{"sites update " SITE " --name fra1 --dry-run",
		 {OK(ITEM(SITE, ",\"name\":\"frankfurt\"")),
		  REFUSED(409, "CONFLICT", "there is one of that name")},
		 {"GET /v1/sites/" SITE " ", "PATCH /v1/sites/" SITE "?dryRun=true "},
		 .err = "there is one of that name",
		 .status = 3},
		{"sites archive " SITE " --dry-run",
		 {OK(LIST("")), REFUSED(409, "INVALID_STATE", "pool 'h100' is active there")},
		 {"POST /v1/sites/" SITE "/archive?dryRun=true "},
		 .err = "pool 'h100' is active there",
		 .status = 3},
		{"sites archive " SITE " --yes",
		 {OK(LIST("")), REFUSED(409, "INVALID_STATE", "pool 'h100' is active there")},
		 {"POST /v1/sites/" SITE "/archive "},
		 .err = "error: pool 'h100' is active there",
		 .status = 3},
		{"pools update " POOL " --placement spread --name big --if-version 3",
		 {OK(ITEM(POOL, ",\"name\":\"big\""))},
		 {"PATCH /v1/pools/" POOL " ", "\"placement\":\"spread\"", "\"name\":\"big\"",
		  "\"ifVersion\":3"},
		 .out = NULL},
		{"pools update " POOL " --if-version 3",
		 {OK("{}")},
		 {NULL},
		 .err = "nothing to change",
		 .status = 2},
		{"pools update " POOL " --kubernetes --dry-run",
		 {OK(ITEM(POOL, ",\"policy\":{\"kubernetes\":{\"gpuApi\":\"dra\"}}"))},
		 {NULL},
		 .out = "policy.kubernetes.gpuApi: dra → none"},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
}

static void test_nodes(void **state)
{
	static const struct row rows[] = {
		{"nodes label " NODE " bc.dev/topology.rack=r12 team-",
		 {OK(ITEM(NODE,
			  ",\"state\":\"ready\",\"labels\":{\"bc.dev/topology.rack\":\"r12\"}"))},
		 {"PATCH /v1/nodes/" NODE " ",
		  "{\"labels\":{\"bc.dev/topology.rack\":\"r12\",\"team\":null}}"},
		 .out = "bc.dev/topology.rack=r12"},
		{"nodes label " NODE " team- --dry-run --exit-code",
		 {OK(ITEM(NODE, ",\"labels\":{\"rack\":\"r1\"}"))},
		 {NULL},
		 .out = "nothing would change"},
		{"nodes spot " NODE,
		 {OK(ITEM(NODE, ",\"state\":\"ready\",\"spot\":true"))},
		 {"PATCH /v1/nodes/" NODE " ", "{\"spot\":true}"},
		 .out = "ready"},
		{"nodes spot " NODE " --off --dry-run --exit-code",
		 {OK(ITEM(NODE, ",\"spot\":false"))},
		 {NULL},
		 .out = "nothing would change"},
		{"nodes retire " NODE " --yes",
		 {OK(ITEM(NODE, "")), REFUSED(409, "INVALID_STATE", "has 1 allocation")},
		 {"POST /v1/nodes/" NODE "/retire "},
		 .err = "or say --lost",
		 .status = 3},
		{"nodes drain " NODE,
		 {OK(ITEM(NODE, ",\"state\":\"draining\""))},
		 {"POST /v1/nodes/" NODE "/drain "},
		 .out = NODE "  draining"},
		{"nodes drain " NODE " --wait",
		 {OK(ITEM(NODE, "")),
		  OK(ITEM(NODE,
			  ",\"state\":\"draining\",\"devices\":[{\"reservationId\":\"" RSV "\"}]")),
		  OK(ITEM(NODE, ",\"state\":\"draining\",\"devices\":[{}]"))},
		 {"/drain ", "GET /v1/nodes/" NODE " "},
		 .out = NODE "  draining, 1 device booked → nothing is booked  ("},
		{"nodes drain " NODE " --wait",
		 {OK(ITEM(NODE, "")), REFUSED(429, "RATE_LIMITED", "too many calls"),
		  REFUSED(503, "UNAVAILABLE", "it stops"),
		  OK(ITEM(NODE, ",\"state\":\"draining\""))},
		 {"/drain ", "GET /v1/nodes/" NODE " "},
		 .out = NODE "  nothing is booked  ("},
		{"nodes drain " NODE " --wait",
		 {OK(ITEM(NODE, "")),
		  OK(ITEM(NODE,
			  ",\"state\":\"ready\",\"devices\":[{\"reservationId\":\"" RSV "\"}]"))},
		 {NULL},
		 .out = "ready, 1 device booked",
		 .status = 3},
		{"nodes drain " NODE " --wait --timeout 1s",
		 {OK(ITEM(NODE, ",\"state\":\"draining\",\"devices\":[{\"reservationId\":\"" RSV
				"\"}]"))},
		 {NULL},
		 .out = "(timed out)",
		 .err = "stopped waiting, the drain goes on; see: better-compute nodes show " NODE,
		 .status = 1},
		{"nodes undrain " NODE " -o name",
		 {OK(ITEM(NODE, ""))},
		 {"/undrain "},
		 .out = NODE "\n"},
		{"nodes drain " NODE,
		 {REFUSED(404, "NOT_FOUND", "no such node")},
		 {NULL},
		 .err = "All nodes: better-compute nodes",
		 .status = 1},
		{"nodes --pool " POOL,
		 {OK(LIST(""))},
		 {"GET /v1/nodes?poolId=" POOL "&limit="},
		 .out = NULL},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
}

static void test_keys_and_secrets(void **state)
{
	static const struct row rows[] = {
		{"keys update " KEY " --role viewer",
		 {OK(ITEM(KEY, ",\"role\":\"viewer\""))},
		 {"PATCH /v1/keys/" KEY " ", "{\"role\":\"viewer\"}"},
		 .out = NULL},
		{"keys rotate " KEY " --overlap 1h --yes",
		 {OK(ITEM(KEY, ",\"key\":\"bck_new\""))},
		 {"POST /v1/keys/" KEY "/rotate ", "{\"overlap\":\"1h\"}"},
		 .out = "bck_new",
		 .err = "note: the key is shown this once"},
		{"keys rotate " KEY,
		 {OK("{}")},
		 {NULL},
		 .err = "the old one ends at once",
		 .status = 2},
		{"secrets create k8s --from - --tenant " TENANT,
		 {OK(ITEM(SECRET, ",\"name\":\"k8s\""))},
		 {"POST /v1/secrets ", "\"name\":\"k8s\"", "\"value\":\"s3cret\"}"},
		 .out = SECRET},
		{"secrets create k8s --from - --dry-run --tenant " TENANT,
		 {OK("{}")},
		 {NULL},
		 .out = "\"value\": \"(not shown)\""},
		{"secrets update " SECRET " --from /dev/null",
		 {OK("{}")},
		 {NULL},
		 .err = "/dev/null",
		 .status = 3},
		{"secrets delete " SECRET " --yes",
		 {OK(ITEM(SECRET, ""))},
		 {"DELETE /v1/secrets/" SECRET " "},
		 .out = SECRET "  deleted"},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
}

static void test_quotas_usage_audit(void **state)
{
	static const struct row rows[] = {
		{"quotas create --tenant " TENANT " --pool " POOL
		 " --class gpu --max-devices 16 --gpu-hours 100",
		 {OK(ITEM(QUOTA, ",\"maxDevices\":16"))},
		 {"POST /v1/quotas ", "\"poolId\":\"" POOL "\",\"class\":\"gpu\",\"maxDevices\":16",
		  "\"gpuHoursPerMonth\":100"},
		 .out = NULL},
		{"quotas",
		 {OK(LIST(ITEM(QUOTA, ",\"tenantId\":\"" TENANT "\",\"maxDevices\":16,"
				      "\"gpuHoursPerMonth\":100,\"used\":{\"devices\":6,"
				      "\"gpuSeconds\":5400}"))),
		  OK(LIST(ITEM(TENANT, ",\"name\":\"research\"")))},
		 {"GET /v1/quotas?"},
		 .out = "research  -     -      6 of 16  1.50 of 100"},
		{"quotas delete " QUOTA " --dry-run",
		 {OK(ITEM(QUOTA, ",\"maxDevices\":1"))},
		 {"GET /v1/quotas/" QUOTA " "},
		 .out = "would send DELETE /v1/quotas/" QUOTA},
		{"usage --from 2026-11-01T00:00:00Z --by pool --tenant " TENANT,
		 {OK("{\"from\":\"2026-11-01T00:00:00.000Z\",\"to\":\"2026-11-30T00:00:00.000Z\","
		     "\"items\":[{\"tenantId\":\"" TENANT "\",\"poolId\":\"" POOL
		     "\",\"class\":\"gpu\","
		     "\"gpuSeconds\":5400,\"allocations\":3,\"open\":1}]}"),
		  OK(LIST(ITEM(TENANT, ",\"name\":\"research\""))),
		  OK(LIST(ITEM(POOL, ",\"name\":\"h100\"")))},
		 {"GET /v1/usage?from=2026-11-01T00%3A00%3A00.000Z&tenantId=" TENANT "&by=pool "},
		 .out = "research  h100  gpu         1.50            3     1"},
		{"meter --limit 1 --pool " POOL,
		 {OK("{\"items\":[{\"allocationId\":\"alc_1\",\"devices\":[{\"class\":\"gpu\","
		     "\"count\":2}],"
		     "\"reason\":\"Ended\",\"gpuSeconds\":7200}],\"nextCursor\":\"x\"}")},
		 {"GET /v1/meter?poolId=" POOL "&limit=1 "},
		 .out = "2 gpu",
		 .err = "there are more; raise --limit"},
		{"audit --object " POOL " --action pool.create --key " KEY " -o json",
		 {OK(LIST("{\"requestId\":\"req_1\"}"))},
		 {"GET /v1/audit?object=" POOL "&action=pool.create&keyId=" KEY "&limit=50 "},
		 .out = "\"requestId\": \"req_1\""},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
}

#define BODY_8                                                                                     \
	"{\"devices\":[{\"class\":\"gpu\",\"count\":8}],\"tenantId\":\"" TENANT                    \
	"\",\"poolId\":\"" POOL                                                                    \
	"\",\"duration\":\"8h\",\"binding\":\"kubernetes\",\"gang\":{\"nodes\":2,\"topology\":{"   \
	"\"same\":\"rack\"}},\"spot\":true}"
#define ENDS "\"duration\":\"8h\",\"endAt\":\"2026-11-30T08:00:00.000Z\""

/* proves: GANG-8 */
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
		{"reserve --gpus 8 --for 8h --kubernetes --nodes 2 --same rack --spot "
		 "--tenant " TENANT " --pool " POOL " --idempotency-key k1 -o name",
		 {OK(ITEM(RSV, ",\"state\":\"pending\""))},
		 {"POST /v1/reservations ",
		  "\"gang\":{\"nodes\":2,\"topology\":{\"same\":\"rack\"}},\"spot\":true",
		  "\"idempotencyKey\":\"k1\""},
		 .out = RSV "\n"},
		{"capacity --preview --gpus 8 --for 8h --kubernetes --nodes 2 --same rack --spot "
		 "--tenant " TENANT " --pool " POOL,
		 {OK("{\"fits\":false,\"nodes\":[],\"firstFitAt\":\"2026-11-30T02:00:00.000Z\","
		     "\"reasons\":[{\"reason\":\"DevicesBusy\",\"nodes\":9,\"largest\":4},"
		     "{\"reason\":\"ForeignGpuExposure\",\"nodes\":2}]}"),
		  OK(LIST(""))},
		 {BODY_8},
		 .out = "does not fit now: 2 × 8 gpu, spot\n",
		 .status = 3},
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
		{"reservations move " RSV " --start 2026-12-01T00:00:00Z",
		 {OK(ITEM(RSV, ",\"state\":\"pending\"")), OK(LIST(""))},
		 {"PATCH /v1/reservations/" RSV " ", "{\"startAt\":\"2026-12-01T00:00:00.000Z\"}"},
		 .out = NULL},
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
		 .out = "released, pods still hold devices"},
		{"events --after 1",
		 {OK(LIST(EVENT_SAYS("\"action\":\"compute:pools:patch\"")))},
		 .out = "  patch\n"},
		{"events --after 1",
		 {OK(LIST(EVENT_SAYS(
			 "\"type\":\"A\",\"status\":true,\"reason\":\"R\",\"message\":\"m\"")))},
		 .out = "  A: m\n"},
		{"events --after 1",
		 {OK(LIST(EVENT_SAYS("\"type\":\"A\",\"status\":false,\"reason\":\"R\"")))},
		 .out = "  A is over\n"},
		{"events --after 1",
		 {OK(LIST(EVENT_SAYS("\"new\":1,\"b\":\"c\"")))},
		 .out = "  new=1, b=c\n"},
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

static void test_pki(void **state)
{
	static const struct row rows[] = {
		{"pki status",
		 {OK("{\"stage\":\"steady\",\"pins\":{\"caPins\":\"sha256/a\"},\"authorities\":["
		     "{\"authority\":\"serving\",\"use\":\"current\",\"pin\":\"sha256/a\"}]}")},
		 {"GET /v1/pki "},
		 .out = "stage    steady\nca_pins  sha256/a\n\nAUTHORITY  USE"},
		{"completion words -- pki s", {OK("{}")}, {NULL}, .out = "status\t"},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
}

/* Exit statuses as the help tells them. */
static void test_exit_statuses(void **state)
{
	static const struct row rows[] = {
		{"whoami",
		 {OK("{\"keyId\":\"" KEY "\",\"keyName\":\"ana\",\"role\":\"user\"}")},
		 {"GET /v1/whoami "},
		 .out = "key   ana (" KEY ")\nrole  user\n"},
		{"whoami", {REFUSED(500, "INTERNAL", "x")}, {NULL}, .status = 1},
		{"whoami", {REFUSED(400, "INVALID_INPUT", "x")}, {NULL}, .status = 2},
		{"whoami extra",
		 {OK("{}")},
		 {NULL},
		 .err = "'extra' is one word too many",
		 .status = 2},
		{"whoami", {REFUSED(409, "CONFLICT", "x")}, {NULL}, .status = 3},
		{"whoami", {REFUSED(409, "INVALID_STATE", "x")}, {NULL}, .status = 3},
		{"whoami", {REFUSED(409, "RESOURCES_EXHAUSTED", "x")}, {NULL}, .status = 3},
		{"whoami", {REFUSED(503, "UNAVAILABLE", "x")}, {NULL}, .status = 4},
		{"whoami", {REFUSED(429, "RATE_LIMITED", "x")}, {NULL}, .status = 4},
		{"whoami", {REFUSED(401, "UNAUTHENTICATED", "x")}, {NULL}, .status = 5},
		{"whoami", {REFUSED(403, "FORBIDDEN", "x")}, {NULL}, .status = 5},
		{"openapi",
		 {OK("{\"openapi\":\"3.1.0\"}")},
		 {"GET /v1/openapi.json "},
		 .out = "3.1.0"},
		{"version", {OK("{}")}, {NULL}, .out = "better-compute " BC_VERSION},
		{"version -o json",
		 {OK("{}")},
		 {NULL},
		 .out = "{\n  \"version\": \"" BC_VERSION "\"\n}"},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
}

static void test_completion(void **state)
{
	static const struct row rows[] = {
		{"completion words -- ten",
		 {OK("{}")},
		 {NULL},
		 .out = "tenants\tlist the tenants\n"},
		{"completion words -- nodes la", {OK("{}")}, {NULL}, .out = "label\t"},
		{"completion words -- reserve --nod", {OK("{}")}, {NULL}, .out = "--nodes\t"},
		{"completion words -- reserve --same r", {OK("{}")}, {NULL}, .out = "rack\n"},
		{"completion words -- reserve --same=r",
		 {OK("{}")},
		 {NULL},
		 .out = "--same=rack\n"},
		{"completion words -- reserve --same = r", {OK("{}")}, {NULL}, .out = "rack\n"},
		{"completion words -- release rsv_",
		 {OK(LIST(ITEM(
			 RSV,
			 ",\"state\":\"active\",\"devices\":[{\"class\":\"gpu\",\"count\":2}]")))},
		 {"GET /v1/reservations?"},
		 .out = RSV "\tactive, 2 gpu\n"},
		{"completion words -- pools show h",
		 {OK(LIST(ITEM(POOL, ",\"name\":\"h100\",\"state\":\"active\"")))},
		 {"GET /v1/pools?"},
		 .out = "h100\tactive\n"},
		{"completion words -- capacity --pool h",
		 {OK(LIST(ITEM(POOL, ",\"name\":\"h100\",\"state\":\"active\"")))},
		 {"GET /v1/pools?"},
		 .out = "h100\tactive\n"},
	};
	static const struct row silent[] = {
		{"completion words -- release rsv_",
		 {OK(LIST(ITEM(RSV, ",\"state\":\"released\"")))},
		 {NULL},
		 .out = NULL},
		{"completion words -- nodes label n1 r",
		 {OK(LIST(ITEM(NODE, ",\"hostname\":\"r\"")))},
		 {NULL},
		 .out = NULL},
		{"completion words -- tenants create r",
		 {OK(LIST(ITEM(TENANT, ",\"name\":\"r\"")))},
		 {NULL},
		 .out = NULL},
		{"completion words -- pools show x y",
		 {OK(LIST(ITEM(POOL, ",\"name\":\"y\"")))},
		 {NULL},
		 .out = NULL},
		{"completion words -- pools show h",
		 {REFUSED(500, "INTERNAL", "x")},
		 {NULL},
		 .out = NULL},
		{"completion words -- no-such-thing x", {OK("{}")}, {NULL}, .out = NULL},
	};
	static struct outcome outcome;

	check_rows(state, rows, ARRAY_SIZE(rows));
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++) {
		run_line(state, silent[i].line, "", silent[i].answers, 1, &outcome);
		if (outcome.out[0] || outcome.err[0] || outcome.status)
			fail_msg("'%s' said %s%s", silent[i].line, outcome.out, outcome.err);
	}
}

/* A file that is there is not touched, and a secret goes into a file of its owner alone. */
static void test_files_written(void **state)
{
	static struct outcome outcome;
	const struct fake_answer made[] = {OK(ITEM(KEY, ",\"key\":\"bck_new\""))};
	const char *path = folder_path(state, "key");
	CLEANUP(buf) struct buf line = {0};
	char content[64] = "";
	struct stat stat_now;

	buf_printf(&line, "keys create ci --role user --tenant " TENANT " --out %s", path);
	run_line(state, buf_text(&line), "", made, 1, &outcome);
	assert_int_equal(outcome.status, 0);
	assert_null(strstr(outcome.out, "bck_new"));
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_mode & 0777, 0600);
	FILE *file = fopen(path, "r");
	assert_non_null(fgets(content, sizeof content, file));
	fclose(file);
	assert_string_equal(content, "bck_new\n");

	run_line(state, buf_text(&line), "", made, 1, &outcome);
	assert_int_equal(outcome.status, 3);
	assert_non_null(strstr(outcome.err, "add --force"));
	assert_string_equal(outcome.seen, ""); /* nothing was made that nobody would have */
	buf_add_text(&line, " --force");
	run_line(state, buf_text(&line), "", made, 1, &outcome);
	assert_int_equal(outcome.status, 0);
}

static int set_up(void **state)
{
	static const char *const names[] = {"STATE", "KEY_FILE", "CA_FILE", "TENANT", "POOL"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(buf) struct buf name = {0};
		buf_printf(&name, "BETTER_COMPUTE_%s", names[i]);
		unsetenv(buf_text(&name));
	}
	return folder_make(state) || setenv("XDG_CONFIG_HOME", *state, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tenants_sites_pools),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_keys_and_secrets),
		cmocka_unit_test(test_quotas_usage_audit),
		cmocka_unit_test(test_reservations),
		cmocka_unit_test(test_denied_bookings),
		cmocka_unit_test(test_reading_reservations),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_pki),
		cmocka_unit_test(test_exit_statuses),
		cmocka_unit_test(test_completion),
		cmocka_unit_test(test_files_written),
	};

	return cmocka_run_group_tests(tests, set_up, folder_remove);
}
