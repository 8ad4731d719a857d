/* What shells are told of the commands. */
#include "unit/cli/verbs.h"

#include "cli/commands.h"
#include "manifest/core/paths.h"

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
		{"completion words -- kubernetes manifest --container-runtime c",
		 {OK("{}")},
		 {NULL},
		 .out = "containerd\ncri-o\n"},
		{"completion words -- kubernetes manifest --kubelet-credentials=r",
		 {OK("{}")},
		 {NULL},
		 .out = "--kubelet-credentials=rke2\n"},
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
		/* Where nothing is offered shells complete files. */
		{"completion words -- kubernetes manifest --options b",
		 {OK("{}")},
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

/* What the manifests' options take is what the flags take. */
static void test_presets_of_manifests(void **state)
{
	static const struct {
		const char *flag;
		enum paths_kind kind;
	} cases[] = {{"container-runtime", PATHS_RUNTIME},
		     {"kubelet-credentials", PATHS_CREDENTIALS},
		     {"nvidia-toolkit", PATHS_TOOLKIT}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *const *presets = paths_presets(cases[i].kind);
		const struct option *row = KUBERNETES_COMMANDS[0].options;
		size_t count = 0;

		while (!str_equal(row->name, cases[i].flag))
			row++;
		for (; presets[count]; count++)
			assert_string_equal(row->choices[count], presets[count]);
		assert_null(row->choices[count]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_completion),
		cmocka_unit_test(test_presets_of_manifests),
	};

	return cmocka_run_group_tests(tests, verbs_set_up, folder_remove);
}
