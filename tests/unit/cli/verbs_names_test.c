/* Names and ids that more than one thing, or more than one tenant, may have: which is meant. */
#include "unit/cli/verbs.h"

#include "cli/commands.h"
#include "cli/noun.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_two_tenants),
		cmocka_unit_test(test_names_of_what_is_over),
		cmocka_unit_test(test_an_id_of_another_tenant_is_refused),
	};

	return cmocka_run_group_tests(tests, verbs_set_up, folder_remove);
}
