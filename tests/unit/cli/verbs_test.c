/* Commands about things: what is asked, what is said, how it ends. */
#include "unit/cli/verbs.h"

#include "cli/commands.h"

#define TEN "üüüüüüüüüü"

#define KUBERNETES                                                                                 \
	"{\"apiServer\":\"https://k\",\"platformOperated\":true,\"labels\":{\"a\":\"1\",\"b\":"    \
	"\"2\"},\"taints\":[\"x=1:NoSchedule\",\"x=9:NoExecute\"]}"
#define POLICY "{\"kubernetes\":" KUBERNETES ",\"placement\":\"bin-pack\"}"

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
		 .out = "name: " TEN TEN TEN TEN TEN TEN "ü → fra1"}, /* it is no terminal */
		{"sites update " SITE " --name fra1 --dry-run --exit-code",
		 {OK(ITEM(SITE, ",\"name\":\"fra1\""))},
		 {"GET /v1/sites/" SITE " "},
		 .out = "nothing would change"},
		{"sites update " SITE " --name fra1 --dry-run --exit-code",
		 {OK(ITEM(SITE, ",\"name\":\"frankfurt\""))},
		 {NULL},
		 .out = "name: frankfurt → fra1",
		 .status = 6},
		{"sites update " SITE " --name fra1 --exit-code",
		 {OK(ITEM(SITE, ""))},
		 {NULL},
		 .err = "--exit-code needs --dry-run",
		 .status = 2},
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
		/* A flag changes its own part, of the version that was read. */
		{"pools update " POOL " --placement spread --name big --if-version 3",
		 {OK(ITEM(POOL, ",\"policy\":{},\"version\":7")),
		  OK(ITEM(POOL, ",\"name\":\"big\""))},
		 {"PATCH /v1/pools/" POOL " ", "{\"placement\":\"spread\"}", "\"name\":\"big\"",
		  "\"ifVersion\":3"},
		 .out = NULL},
		{"pools update " POOL " --placement spread",
		 {OK(ITEM(POOL, ",\"version\":7,\"policy\":" POLICY)), OK(ITEM(POOL, ""))},
		 {"GET /v1/pools/" POOL " ", "PATCH /v1/pools/" POOL " ",
		  "{\"policy\":{\"kubernetes\":" KUBERNETES
		  ",\"placement\":\"spread\"},\"ifVersion\":7}"},
		 .out = NULL},
		{"pools update " POOL
		 " --node-label b=3 --node-label c=4 --node-taint x=2:NoExecute "
		 "--node-taint y=1:NoSchedule",
		 {OK(ITEM(POOL, ",\"version\":7,\"policy\":" POLICY)), OK(ITEM(POOL, ""))},
		 {"\"labels\":{\"a\":\"1\",\"b\":\"3\",\"c\":\"4\"}",
		  "\"taints\":[\"x=1:NoSchedule\",\"x=2:NoExecute\",\"y=1:NoSchedule\"]",
		  "\"apiServer\":\"https://k\"", "\"placement\":\"bin-pack\""},
		 .out = NULL},
		{"pools update " POOL " --unset placement --unset api-server --unset node-label",
		 {OK(ITEM(POOL, ",\"version\":7,\"policy\":" POLICY)), OK(ITEM(POOL, ""))},
		 {"{\"policy\":{\"kubernetes\":{\"platformOperated\":true,\"taints\":[\"x=1:"
		  "NoSchedule\",\"x=9:NoExecute\"]}},\"ifVersion\":7}"},
		 .out = NULL},
		{"pools update " POOL " --node-taint a=b:Never",
		 {OK(ITEM(POOL, ",\"version\":7,\"policy\":" POLICY)),
		  REFUSED_FIELD("policy.kubernetes.taints[2]",
				"'a=b:Never' is not key=value:Effect")},
		 {NULL},
		 .err = "error: --node-taint: 'a=b:Never' is not key=value:Effect\n",
		 .status = 2},
		{"pools update " POOL " --unset kubernetes",
		 {OK(ITEM(POOL, ",\"version\":7,\"policy\":" POLICY)), OK(ITEM(POOL, ""))},
		 {"{\"policy\":{\"placement\":\"bin-pack\"},\"ifVersion\":7}"},
		 .out = NULL},
		{"pools update " POOL " --placement spread --dry-run",
		 {OK(ITEM(POOL, ",\"version\":7,\"policy\":" POLICY))},
		 {"PATCH /v1/pools/" POOL "?dryRun=true "},
		 .out = POOL "\n  policy.placement: bin-pack → spread\n"},
		{"pools update " POOL " --unset placement",
		 {OK(ITEM(POOL, ",\"version\":7,\"policy\":" POLICY)),
		  REFUSED(409, "CONFLICT", "it has version 8, not 7")},
		 {NULL},
		 .err = "Somebody changed it at the same time: say it again.",
		 .status = 3},
		{"pools update " POOL " --unset everything",
		 {OK("{}")},
		 {NULL},
		 .err = "--unset: 'everything' is not one of kubernetes, platform-operated, ",
		 .status = 2},
		/* A file is the whole of it, and no version is asked for. */
		{"pools update " POOL " --policy -",
		 {OK(ITEM(POOL, ""))},
		 {NULL},
		 .err = "stdin",
		 .status = 2},
		{"pools update " POOL " --policy - --unset placement",
		 {OK("{}")},
		 {NULL},
		 .err = "the policy is given twice, by --policy and by --unset",
		 .status = 2},
		{"pools update " POOL " --gpu-api dra",
		 {OK(ITEM(POOL, "")),
		  OK(ITEM(POOL, ",\"notes\":[\"No node offers GPUs by DRA.\"]"))},
		 {"PATCH /v1/pools/" POOL " ", "\"gpuApi\":\"dra\""},
		 .out = "No node offers GPUs by DRA."},
		{"pools update " POOL " --if-version 3",
		 {OK("{}")},
		 {NULL},
		 .err = "nothing to change",
		 .status = 2},
		{"pools update " POOL " --kubernetes --dry-run",
		 {OK(ITEM(POOL, ",\"policy\":{\"kubernetes\":{\"gpuApi\":\"dra\"}}"))},
		 {NULL},
		 .out = "nothing would change"},
		{"pools update " POOL " --unset gpu-api --dry-run",
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
		{"nodes",
		 {OK(LIST(ITEM(NODE, ",\"state\":\"ready\",\"spot\":true"))), OK(LIST("")),
		  OK(LIST("")), OK(LIST(""))},
		 {"GET /v1/nodes"},
		 .out = "  SPOT  "},
		{"nodes show " NODE,
		 {OK(ITEM(NODE, ",\"state\":\"ready\",\"spot\":true")), OK(LIST("")), OK(LIST("")),
		  OK(LIST(""))},
		 {"GET /v1/nodes/" NODE},
		 .out = "takes only reservations made with --spot"},
		{"nodes spot " NODE,
		 {OK(ITEM(NODE, ",\"state\":\"ready\",\"spot\":true"))},
		 {"PATCH /v1/nodes/" NODE " ", "{\"spot\":true}"},
		 .out = "ready"},
		{"nodes spot " NODE " --off --dry-run --exit-code",
		 {OK(ITEM(NODE, ",\"spot\":false"))},
		 {NULL},
		 .out = "nothing would change"},
		{"nodes retire " NODE " --yes",
		 {OK(ITEM(NODE, "")),
		  REFUSED_HINT(409, "INVALID_STATE", "has 1 allocation", "say lost:true")},
		 {"POST /v1/nodes/" NODE "/retire "},
		 .err = "or say --lost",
		 .status = 3},
		{"nodes retire " NODE " --lost", /* before anybody is asked */
		 {OK(ITEM(NODE, "")), OK(LIST("")),
		  REFUSED(403, "FORBIDDEN", "role 'user' may not")},
		 {"POST /v1/nodes/" NODE "/retire?dryRun=true ", "{\"lost\":true}"},
		 .err = "error: role 'user' may not",
		 .status = 5},
		{"nodes retire " NODE
		 " --lost", /* what is booked for later isn't among its devices */
		 {OK(ITEM(NODE, "")),
		  OK(LIST(ITEM(
			  RSV,
			  ",\"allocations\":[{\"nodeId\":\"" NODE
			  "\",\"state\":\"placed\"},{\"nodeId\":\"" NODE
			  "\",\"state\":\"placed\"}]") "," ITEM("rsv_" ULID "z",
								",\"allocations\":[{\"nodeId\":"
								"\"node_" ULID
								"z\",\"state\":\"placed\"}]"))),
		  OK(ITEM(NODE, ""))},
		 {"GET /v1/reservations?live=true"},
		 .err = "1 reservation placed there for later is placed on other nodes, or waits",
		 .status = 2},
		{"nodes retire " NODE " --lost",
		 {OK(ITEM(NODE, ",\"devices\":[{\"reservationId\":\"" RSV "\"}]")), OK(LIST("")),
		  OK(ITEM(NODE, ""))},
		 {NULL},
		 .err = "frees its 1 booked device without asking the machine: pods there may "
			"still "
			"use it\n",
		 .status = 2},
		{"nodes retire " NODE,
		 {OK(ITEM(NODE, "")), OK(LIST("")), OK(ITEM(NODE, ""))},
		 {"POST /v1/nodes/" NODE "/retire?dryRun=true "},
		 .err = "add --yes",
		 .status = 2},
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
		{"nodes show " NODE, /* whoever answers with another's address refused nothing */
		 {{.status = 302, .body = "", .headers = "Location: http://127.0.0.2:1/x\r\n"}},
		 {NULL},
		 .err = "redirects to another host",
		 .status = 4},
		{"--man", {OK("{}")}, {NULL}, .out = ".TH BETTER\\-COMPUTE 1 "},
		{"nodes --pool " POOL,
		 {OK(LIST(""))},
		 {"GET /v1/nodes?poolId=" POOL "&limit="},
		 .out = NULL},
		{"nodes label vm",
		 {OK("{}")},
		 {NULL},
		 .err = "error: NAME=VALUE|NAME-... is missing\n",
		 .status = 2},
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
		{"keys revoke " KEY,
		 {REFUSED(403, "FORBIDDEN", "role 'user' may not")},
		 {"POST /v1/keys/" KEY "/revoke?dryRun=true "},
		 .err = "error: role 'user' may not",
		 .status = 5},
		{"keys rotate " KEY,
		 {OK("{}")},
		 {"POST /v1/keys/" KEY "/rotate?dryRun=true "},
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
		{"secrets delete " SECRET, /* before anybody is asked */
		 {REFUSED(403, "FORBIDDEN", "role 'viewer' may not")},
		 {"DELETE /v1/secrets/" SECRET "?dryRun=true "},
		 .err = "error: role 'viewer' may not",
		 .status = 5},
		{"secrets delete " SECRET,
		 {OK(ITEM(SECRET, ""))},
		 {"DELETE /v1/secrets/" SECRET "?dryRun=true "},
		 .err = "breaks whatever refers to it",
		 .status = 2},
		{"secrets delete " SECRET " --yes",
		 {OK(ITEM(SECRET, ""))},
		 {"DELETE /v1/secrets/" SECRET " "},
		 .out = SECRET "  deleted"},
		/* A token alone joins nothing. */
		{"join-tokens create --pool " POOL,
		 {OK(ITEM(JOIN_TOKEN, ",\"token\":\"bcj1_x\""))},
		 {"POST /v1/join-tokens "},
		 .out = "bcj1_x",
		 .err = "note: next, on the machine: bcd join --token-file FILE, a file of mode "
			"0600. "
			"Its /etc/bcd/config.toml names the control plane and the pins, which "
			"'better-compute pki show' prints"},
		{"join-tokens create --hosted --pool " POOL,
		 {OK(ITEM(JOIN_TOKEN, ",\"token\":\"bcj1_x\""))},
		 {NULL},
		 .err = "better-compute kubernetes manifest makes such a token itself"},
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
		 {"GET /v1/quotas/" QUOTA " ", "DELETE /v1/quotas/" QUOTA "?dryRun=true "},
		 .out = "would send DELETE /v1/quotas/" QUOTA},
		{"quotas delete " QUOTA, /* before anybody is asked */
		 {OK(ITEM(QUOTA, ",\"maxDevices\":1")),
		  REFUSED(403, "FORBIDDEN", "role 'viewer' may not")},
		 {"DELETE /v1/quotas/" QUOTA "?dryRun=true "},
		 .err = "error: role 'viewer' may not",
		 .status = 5},
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

/* Said alone it would do what somebody meant to ask about: no command that has it sends anything. */
static void test_exit_code_is_of_a_dry_run(void **state)
{
	static struct outcome outcome;
	size_t tried = 0;

	for (size_t i = 0; CLI_COMMANDS[i]; i++) {
		for (const struct command *row = CLI_COMMANDS[i]; row->noun; row++) {
			CLEANUP(buf) struct buf line = {0};
			const char *text;

			if (!(row->flags & COMMAND_CHANGES))
				continue;
			command_name(&line, row);
			for (int k = 0; k < row->min_operands; k++)
				buf_add_text(&line, " x");
			buf_add_text(&line, " --exit-code");
			text = buf_text(&line);
			run_line(state, text, "", NULL, 0, &outcome);
			check_has(text, "stderr", outcome.err,
				  "error: --exit-code needs --dry-run\n");
			assert_int_equal(outcome.status, 2);
			tried++;
		}
	}
	assert_true(tried > 20);
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

/* The whole new policy: nothing of the old one is looked at. */
static void test_a_policy_from_a_file(void **state)
{
	static struct outcome outcome;
	const struct fake_answer answers[] = {OK(ITEM(POOL, ""))};
	const char *line = "pools update " POOL " --policy -";

	run_line(state, line, "{\"placement\":\"spread\"}", answers, 1, &outcome);
	assert_int_equal(outcome.status, 0);
	check_has(line, "what was asked", outcome.seen, "{\"policy\":{\"placement\":\"spread\"}}");
	assert_null(strstr(outcome.seen, "GET "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tenants_sites_pools),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_keys_and_secrets),
		cmocka_unit_test(test_quotas_usage_audit),
		cmocka_unit_test(test_pki),
		cmocka_unit_test(test_exit_code_is_of_a_dry_run),
		cmocka_unit_test(test_exit_statuses),
		cmocka_unit_test(test_a_policy_from_a_file),
	};

	return cmocka_run_group_tests(tests, verbs_set_up, folder_remove);
}
