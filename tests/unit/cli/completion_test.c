/* What shells are told of the commands. */
#include "unit/cli/verbs.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_completion),
	};

	return cmocka_run_group_tests(tests, verbs_set_up, folder_remove);
}
