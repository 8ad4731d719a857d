/* Commands about things: what is asked, what is said, how it ends. */
#include "unit/cli/verbs.h"

#include "cli/commands.h"
#include "cli/noun.h"
#include "sys/durable.h"

#include <unistd.h>

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

#define OF(tenant, name) ",\"tenantId\":\"" tenant "\",\"name\":\"" name "\""
#define TWO_POOLS        OK(LIST(ITEM(POOL, OF(TENANT, "h100")) "," ITEM(POOL2, OF(TENANT2, "h100"))))
#define TWO_SITES        OK(LIST(ITEM(SITE, OF(TENANT, "dc1")) "," ITEM(SITE "2", OF(TENANT2, "dc1"))))
#define TWO_TENANTS                                                                                \
	OK(LIST(ITEM(TENANT, ",\"name\":\"acme\"") "," ITEM(TENANT2, ",\"name\":\"umbrella\"")))

/* A name that two tenants use: the tenant beside it tells which. */
static void test_names_of_two_tenants(void **state)
{
	static const struct row rows[] = {
		{"pools show h100 --tenant umbrella",
		 {TWO_POOLS, TWO_TENANTS, OK(ITEM(POOL2, OF(TENANT2, "h100")))},
		 {"GET /v1/pools/" POOL2 " "},
		 .out = "h100"},
		{"pools show h100",
		 {TWO_POOLS, TWO_TENANTS},
		 {NULL},
		 .err = "error: pool 'h100' could be 2: " POOL " of acme, " POOL2 " of umbrella\n"
			"  Use the id, or --tenant TENANT.\n",
		 .status = 2},
		{"pools show h100 --tenant " TENANT "x",
		 {TWO_POOLS, TWO_TENANTS},
		 {NULL},
		 .err = "not found",
		 .status = 1},
		/* What a command is about is that tenant's, or isn't there. */
		{"pools show h100 --tenant ten_" ULID "z",
		 {TWO_POOLS},
		 {NULL},
		 .err = "tenant 'ten_" ULID "z' has no pools\n  All pools: better-compute pools\n",
		 .status = 1},
		{"pools archive h100 --yes --tenant " TENANT2,
		 {OK(LIST(ITEM(POOL, OF(TENANT, "h100")) "," ITEM(POOL2, OF(TENANT2, "a100"))))},
		 {NULL},
		 .err = "error: pool 'h100' not found",
		 .status = 1},
		/* A whole id, too, whoever has it. */
		{"pools show " POOL " --tenant " TENANT,
		 {OK(ITEM(POOL, OF(TENANT, "h100"))), OK(ITEM(POOL, OF(TENANT, "h100")))},
		 {"GET /v1/pools/" POOL " "},
		 .out = "h100"},
		{"pools show " POOL " --tenant " TENANT,
		 {REFUSED(404, "NOT_FOUND", "no such pool")},
		 {"GET /v1/pools/" POOL " "},
		 .err = "All pools: better-compute pools",
		 .status = 1},
		{"sites archive " SITE " --yes --tenant " TENANT,
		 {OK(ITEM(SITE, ",\"name\":\"dc1\""))},
		 {NULL},
		 .err = "site '" SITE "' is no tenant's, nor that of '" TENANT "'\n",
		 .status = 2},
		/* A join token is its pool's tenant's. */
		{"join-tokens create --pool " POOL2 " --tenant acme",
		 {TWO_TENANTS, OK(ITEM(POOL2, OF(TENANT2, "h100"))), TWO_TENANTS},
		 {NULL},
		 .err = "pool '" POOL2 "' belongs to tenant 'umbrella', not to 'acme'\n",
		 .status = 2},
		{"join-tokens create --tenant " TENANT,
		 {OK(LIST(ITEM(POOL2, OF(TENANT2, "h100") ",\"state\":\"active\""))),
		  OK(ITEM(POOL2, OF(TENANT2, "h100"))), TWO_TENANTS},
		 {NULL},
		 .err = "pool '" POOL2 "' belongs to tenant 'umbrella', not to '" TENANT "'\n",
		 .status = 2},
		{"join-tokens create --pool h100 --tenant " TENANT2,
		 {TWO_POOLS, OK("{\"token\":\"bcj1_x\",\"id\":\"jt_1\"}")},
		 {"\"poolId\":\"" POOL2 "\""},
		 .out = "bcj1_x"},
		{"reserve --tenant " TENANT " --pool " POOL2
		 " --gpus 1 --for 1h --kubernetes -o name",
		 {OK(ITEM(RSV, ",\"state\":\"placed\""))},
		 {"POST /v1/reservations ", "\"poolId\":\"" POOL2 "\""},
		 .out = RSV "\n"},
		/* What it uses may be somebody else's, where only they have it. */
		{"pools create new --tenant " TENANT2 " --site dc1 --gpu-model H100",
		 {OK(LIST(ITEM(SITE, OF(TENANT, "dc1")))), OK(ITEM(POOL2, ""))},
		 {"\"siteId\":\"" SITE "\""},
		 .out = NULL},
		{"reserve --tenant ten_" ULID "z --pool h100 --gpus 1 --for 1h --kubernetes",
		 {TWO_POOLS, TWO_TENANTS},
		 {NULL},
		 .err = POOL2 " of umbrella\n  Use the id.\n",
		 .status = 2},
		{"pools archive h100 --tenant acme --yes",
		 {TWO_POOLS, TWO_TENANTS, OK(ITEM(POOL, OF(TENANT, "h100"))), OK(LIST(""))},
		 {"POST /v1/pools/" POOL "/archive "},
		 .out = NULL},
		{"pools update h100 --name a100 --tenant umbrella",
		 {TWO_POOLS, TWO_TENANTS, OK(ITEM(POOL2, ""))},
		 {"PATCH /v1/pools/" POOL2 " ", "{\"name\":\"a100\"}"},
		 .out = NULL},
		{"pools create new --tenant " TENANT2 " --site dc1 --gpu-model H100",
		 {TWO_SITES, OK(ITEM(POOL2, ""))},
		 {"POST /v1/pools ", "\"tenantId\":\"" TENANT2 "\",\"siteId\":\"" SITE "2\""},
		 .out = NULL},
		{"reserve --tenant " TENANT2 " --pool h100 --gpus 1 --for 1h --kubernetes -o name",
		 {TWO_POOLS, OK(ITEM(RSV, ",\"state\":\"placed\""))},
		 {"POST /v1/reservations ", "\"poolId\":\"" POOL2 "\""},
		 .out = RSV "\n"},
		{"reservations --tenant " TENANT " --pool h100",
		 {TWO_POOLS, OK(LIST(""))},
		 {"&poolId=" POOL "&tenantId=" TENANT "&"},
		 .out = NULL},
		{"capacity --tenant " TENANT2 " --pool h100",
		 {TWO_POOLS, OK(LIST(""))},
		 {"GET /v1/capacity?poolId=" POOL2 " "},
		 .out = NULL},
		{"quotas create --tenant " TENANT2 " --pool h100 --max-devices 3",
		 {TWO_POOLS, OK(ITEM(QUOTA, ""))},
		 {"POST /v1/quotas ", "\"poolId\":\"" POOL2 "\""},
		 .out = NULL},
		{"usage --pool h100",
		 {TWO_POOLS, TWO_TENANTS},
		 {NULL},
		 .err = "Use the id, or --tenant TENANT.",
		 .status = 2},
		{"keys revoke ci --tenant " TENANT2 " --yes",
		 {OK(LIST(ITEM(KEY, OF(TENANT, "ci")) "," ITEM(KEY "2", OF(TENANT2, "ci")))),
		  OK(ITEM(KEY "2", ""))},
		 {"POST /v1/keys/" KEY "2/revoke "},
		 .out = NULL},
		/* Two of one tenant, as a key that was revoked and one of the same name. */
		{"keys show ci",
		 {OK(LIST(ITEM(KEY, OF(TENANT, "ci")) "," ITEM(KEY "2", OF(TENANT, "ci"))))},
		 {NULL},
		 .err = "could be 2: " KEY ", " KEY "2\n  Use the id.\n",
		 .status = 2},
		{"pools --tenant umbrella -o name",
		 {TWO_POOLS, TWO_TENANTS},
		 {"GET /v1/pools?"},
		 .out = POOL2 "\n"},
		{"nodes --pool h100 --tenant umbrella -o name",
		 {TWO_POOLS, TWO_TENANTS, OK(LIST(ITEM(NODE, ",\"tenantId\":\"" TENANT2 "\""))),
		  TWO_TENANTS},
		 {"GET /v1/nodes?poolId=" POOL2 "&"},
		 .out = NODE "\n"},
		{"nodes --tenant " TENANT2 " -o name",
		 {OK(LIST(ITEM(NODE, ",\"tenantId\":\"" TENANT2
				     "\"") "," ITEM(NODE "2", ",\"tenantId\":\"" TENANT "\"")))},
		 {"GET /v1/nodes?"},
		 .out = NODE "\n"},
		{"secrets --tenant ten_" ULID "z",
		 {OK(LIST(ITEM(SECRET, OF(TENANT, "s"))))},
		 {NULL},
		 .err = "no secrets of this kind"},
		{"sites update dc1 --tenant " TENANT2,
		 {TWO_SITES},
		 {NULL},
		 .err = "  Say --name NAME.\n",
		 .status = 2},
	};
	static struct outcome outcome;
	const struct fake_answer answers[] = {TWO_POOLS, OK(ITEM(POOL2, ""))};

	check_rows(state, rows, ARRAY_SIZE(rows));
	/* The context's tenant is as one that is named. */
	setenv("BETTER_COMPUTE_TENANT", TENANT2, 1);
	run_line(state, "pools show h100", "", answers, 2, &outcome);
	unsetenv("BETTER_COMPUTE_TENANT");
	check_has("pools show h100", "what was asked", outcome.seen, "GET /v1/pools/" POOL2 " ");
	run_line(state, "pools --tenant " TENANT " -o name", "", answers, 1, &outcome);
	assert_string_equal(outcome.out, POOL "\n");
}

#define KEY2              "key_" ULID "q"
#define ANA(id, more)     ITEM(id, ",\"name\":\"ana\",\"tenantId\":\"" TENANT "\"" more)
#define KEY3              "key_" ULID "r"
#define ANA_OF2(id, more) ITEM(id, ",\"name\":\"ana\",\"tenantId\":\"" TENANT2 "\"" more)
#define REVOKED           ",\"revokedAt\":\"2026-11-29T10:00:00Z\""

/* Names are free again once what had them is over. */
static void test_names_of_what_is_over(void **state)
{
	static const struct row rows[] = {
		{"keys rotate ana --yes",
		 {OK(LIST(ANA(KEY, REVOKED) "," ANA(KEY2, ""))),
		  OK(ANA(KEY2, ",\"key\":\"bck_new\""))},
		 {"POST /v1/keys/" KEY2 "/rotate "},
		 .out = "bck_new"},
		{"keys show ana",
		 {OK(LIST(ANA(KEY, REVOKED) "," ANA(KEY2, REVOKED)))},
		 {NULL},
		 .err = "key 'ana' could be 2: " KEY ", " KEY2 "\n  Use the id.\n",
		 .status = 2},
		{"keys show key_01kb7s4x", /* the beginning of an id isn't guessed */
		 {OK(LIST(ANA(KEY, REVOKED) "," ANA(KEY2, "")))},
		 {NULL},
		 .err = "could be 2",
		 .status = 2},
		{"nodes show gpu-1",
		 {OK(LIST(ITEM("node_" ULID "r",
			       ",\"kubernetesNodeName\":\"gpu-1\",\"state\":"
			       "\"retired\"") "," ITEM(NODE, ",\"kubernetesNodeName\":\"gpu-1\","
							     "\"state\":\"ready\""))),
		  OK(ITEM(NODE, ""))},
		 {"GET /v1/nodes/" NODE " "},
		 .out = NULL},
		{"keys create ana --role user --tenant " TENANT,
		 {REFUSED_HINT(409, "CONFLICT",
			       "the tenant has a key of the name 'ana' already: " KEY2,
			       "Give another name, or revoke that key first.\",\"field\":\"name"),
		  OK(LIST(ANA(KEY, REVOKED) "," ANA_OF2(KEY3, "") "," ANA(KEY2, "")))},
		 {NULL},
		 /* by its id: `ana` may be another tenant's, too */
		 .err = "already: " KEY2 "\n  Give another name, or revoke that key first. For a "
			"new secret of that key: better-compute keys rotate " KEY2 "\n",
		 .status = 3},
		{"keys create ana --role user --tenant " TENANT, /* of no name */
		 {REFUSED(409, "CONFLICT", "the idempotency key is used already"),
		  OK(LIST(ANA(KEY2, "")))},
		 {NULL},
		 .err = "used already\n",
		 .status = 3},
		/* Whoever has it, when no tenant is named beside it. */
		{"keys rotate ana --yes",
		 {OK(LIST(ANA(KEY, REVOKED) "," ANA_OF2(KEY2, ""))),
		  OK(ANA_OF2(KEY2, ",\"key\":\"bck_new\""))},
		 {"POST /v1/keys/" KEY2 "/rotate "},
		 .out = "bck_new"},
		{"keys show ana",
		 {OK(LIST(ANA(KEY, "") "," ANA_OF2(KEY2, "") "," ANA_OF2(KEY3, REVOKED))),
		  TWO_TENANTS},
		 {NULL},
		 .err = "key 'ana' could be 3: " KEY " of acme, ",
		 .status = 2},
		{"keys show ana --tenant " TENANT,
		 {OK(LIST(ANA(KEY, REVOKED) "," ANA_OF2(KEY2, ""))), OK(ANA(KEY, REVOKED))},
		 {"GET /v1/keys/" KEY " "},
		 .out = "ana"},
		{"pools create old --tenant " TENANT " --site " SITE " --gpu-model H100",
		 {REFUSED(409, "CONFLICT",
			  "pool 'old' exists already: " POOL "\",\"field\":\"name"),
		  OK(LIST(ITEM(POOL,
			       ",\"name\":\"old\",\"state\":\"archived\",\"tenantId\":\"" TENANT
			       "\"")))},
		 {"POST /v1/pools ", "GET /v1/pools?"},
		 .err = "exists already: " POOL
			"\n  That pool is archived, and keeps its name for good: give another.\n",
		 .status = 3},
		{"pools create old --tenant " TENANT " --site " SITE " --gpu-model H100",
		 {REFUSED(409, "CONFLICT",
			  "pool 'old' exists already: " POOL "\",\"field\":\"name"),
		  OK(LIST(ITEM(POOL, ",\"name\":\"old\",\"state\":\"active\",\"tenantId\":\"" TENANT
				     "\"")))},
		 {NULL},
		 .err = "exists already: " POOL "\n",
		 .status = 3},
	};

	check_rows(state, rows, ARRAY_SIZE(rows));
	/* The context's tenant isn't passed over for somebody else's. */
	static struct outcome outcome;
	const struct fake_answer anas[] = {
		OK(LIST(ANA(KEY, REVOKED) "," ANA_OF2(KEY2, ""))), OK(ANA(KEY, REVOKED)),
		OK(LIST(ANA(KEY, REVOKED) "," ANA(KEY3, REVOKED) "," ANA_OF2(KEY2, ""))),
		TWO_TENANTS};
	setenv("BETTER_COMPUTE_TENANT", TENANT, 1);
	run_line(state, "keys show ana", "", anas, 2, &outcome);
	check_has("keys show ana", "what was asked", outcome.seen, "GET /v1/keys/" KEY " ");
	run_line(state, "keys show ana", "", anas + 2, 2, &outcome);
	unsetenv("BETTER_COMPUTE_TENANT");
	check_has("keys show ana", "stderr", outcome.err, "key 'ana' could be 3: " KEY " of acme");
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

/* The answer of a repeated create has no token: nothing is in the file that the next step would name. */
static void test_a_repeated_join_token(void **state)
{
	const struct fake_answer answers[] = {OK(ITEM(JOIN_TOKEN, ""))};
	CLEANUP(buf) struct buf line = {0};
	static struct outcome outcome;

	buf_printf(&line, "join-tokens create --pool " POOL " --idempotency-key k --out %s",
		   folder_path(state, "t2"));
	run_line(state, buf_text(&line), "", answers, ARRAY_SIZE(answers), &outcome);
	assert_int_equal(outcome.status, 0);
	assert_non_null(strstr(outcome.err, "with the same --idempotency-key"));
	assert_null(strstr(outcome.err, "next"));
	assert_int_equal(access(folder_path(state, "t2"), F_OK), -1);
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

static bool takes_tenant(const struct command *row)
{
	for (const struct option *option = row->options; option && option->name; option++) {
		if (str_equal(option->name, "tenant"))
			return true;
	}
	return false;
}

/* Of what whoever says both means nobody knows: no command that has --tenant does anything then. */
static void test_an_id_of_another_tenant_is_refused(void **state)
{
	const struct fake_answer answers[] = {OK(ITEM(POOL, OF(TENANT, "h100"))), TWO_TENANTS};
	static struct outcome outcome;
	size_t tried = 0;

	for (size_t i = 0; CLI_COMMANDS[i]; i++) {
		for (const struct command *row = CLI_COMMANDS[i]; row->noun; row++) {
			CLEANUP(buf) struct buf line = {0};
			const char *text;

			if (!takes_tenant(row) || row->min_operands == 0 ||
			    str_equal(row->verb ? row->verb : "", "create"))
				continue;
			command_name(&line, row);
			buf_printf(&line, " %s_" ULID "b --tenant " TENANT2,
				   noun_get(row->names)->prefix);
			if (row->flags & COMMAND_ASKS)
				buf_add_text(&line, " --yes");
			if (row->verb && str_equal(row->verb, "update"))
				buf_add_text(&line, " --name other");
			text = buf_text(&line);
			run_line(state, text, "", answers, ARRAY_SIZE(answers), &outcome);
			check_has(text, "stderr", outcome.err,
				  "b' belongs to tenant 'acme', not to '" TENANT2 "'\n"
				  "  If that is the one: --tenant acme. ");
			assert_int_equal(outcome.status, 2);
			for (size_t k = 0; k < 3; k++) {
				static const char *const METHODS[] = {"POST ", "PATCH ", "DELETE "};
				assert_null(strstr(outcome.seen, METHODS[k]));
			}
			tried++;
		}
	}
	assert_true(tried > 10);
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
	ino_t before = stat_now.st_ino;
	assert_int_equal(stat(path, &stat_now), 0);
	assert_int_equal(stat_now.st_ino, before); /* it was in no other file */
}

/* What was refused leaves the place as it was. */
static void test_a_place_without_a_secret(void **state)
{
	static const struct {
		const char *line;
		struct fake_answer answer;
		int status;
	} ENDS[] = {
		{"keys create ci --role user --tenant " TENANT "",
		 REFUSED(403, "FORBIDDEN", "role 'user' may not"), 5},
		{"keys rotate " KEY " --yes", REFUSED(404, "NOT_FOUND", "no such key"), 1},
		/* It was made before: its secret is told once. */
		{"join-tokens create --pool " POOL " --idempotency-key abcdefgh",
		 OK(ITEM(JOIN_TOKEN, "")), 0},
		{"keys create ci --role user --tenant " TENANT " --dry-run", OK("{}"), 0},
	};
	static const mode_t OLD[] = {0, 0600, 0644};
	static struct outcome outcome;
	const char *path = folder_path(state, "place");

	for (size_t i = 0; i < ARRAY_SIZE(ENDS) * ARRAY_SIZE(OLD); i++) {
		mode_t old = OLD[i % ARRAY_SIZE(OLD)];
		CLEANUP(buf) struct buf line = {0}, content = {0};
		struct durable_names names = {0};
		struct error error;

		if (old) {
			expect_ok(durable_replace(path, "old\n", 4, old, &error), &error);
		}
		buf_printf(&line, "%s --out %s", ENDS[i / ARRAY_SIZE(OLD)].line, path);
		buf_add_text(&line, old ? " --force" : "");
		run_line(state, buf_text(&line), "", &ENDS[i / ARRAY_SIZE(OLD)].answer, 1,
			 &outcome);
		if (outcome.status != ENDS[i / ARRAY_SIZE(OLD)].status)
			fail_msg("'%s' ended with %d: %s", buf_text(&line), outcome.status,
				 outcome.err);
		expect_ok(durable_list(*state, 100, &names, &error), &error);
		for (size_t k = 0; k < names.count; k++)
			assert_false(str_starts(names.names[k], ".tmp-"));
		durable_names_deinit(&names);
		if (!old) {
			assert_true(durable_absent(path));
			continue;
		}
		expect_ok(durable_read(path, 100, &content, &error), &error);
		assert_string_equal(buf_text(&content), "old\n");
		expect_ok(durable_remove(path, &error), &error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tenants_sites_pools),
		cmocka_unit_test(test_names_of_two_tenants),
		cmocka_unit_test(test_names_of_what_is_over),
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_keys_and_secrets),
		cmocka_unit_test(test_a_repeated_join_token),
		cmocka_unit_test(test_quotas_usage_audit),
		cmocka_unit_test(test_pki),
		cmocka_unit_test(test_an_id_of_another_tenant_is_refused),
		cmocka_unit_test(test_exit_code_is_of_a_dry_run),
		cmocka_unit_test(test_exit_statuses),
		cmocka_unit_test(test_a_policy_from_a_file),
		cmocka_unit_test(test_files_written),
		cmocka_unit_test(test_a_place_without_a_secret),
	};

	return cmocka_run_group_tests(tests, verbs_set_up, folder_remove);
}
