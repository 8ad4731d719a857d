#include "control/core/pool_policy.h"

#include "lib/test.h"

#include <stdio.h>

#define PIN "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF"
#define REF "secret://ten_01jd4z5x9f0123456789abcdef/sec_01jd4z5x9f0123456789abcdef"

static bool parse(const char *text, struct pool_policy *policy, json_t **ret_json,
		  struct error *error)
{
	*ret_json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(*ret_json);
	return pool_policy_parse(*ret_json, policy, error);
}

static void expect_policy(const char *text)
{
	struct pool_policy policy;
	struct error error;
	json_t *json;

	if (!parse(text, &policy, &json, &error))
		fail_msg("%s: %s", text, error.what);
	json_decref(json);
}

static void expect_refused(const char *text, const char *field)
{
	struct pool_policy policy;
	struct error error;
	json_t *json;

	if (parse(text, &policy, &json, &error))
		fail_msg("%s was taken", text);
	assert_int_equal(error.code, ERROR_INVALID_INPUT);
	if (!str_equal(error.field, field))
		fail_msg("%s: field %s, not %s", text, error.field, field);
	json_decref(json);
}

static const char *kubernetes(const char *inner)
{
	static char text[8192];

	snprintf(text, sizeof text, "{\"kubernetes\":{%s}}", inner);
	return text;
}

static const char *with_server(const char *server)
{
	static char text[2048];

	snprintf(text, sizeof text,
		 "{\"kubernetes\":{\"apiServer\":\"%s\",\"caCertSha256\":\"%s\","
		 "\"joinTokenRef\":\"%s\"}}",
		 server, PIN, REF);
	return text;
}

/* proves: POOL-11 POOL-15 POOL-20 */
static void test_what_a_policy_says(void **state)
{
	struct pool_policy policy;
	struct error error;
	json_t *json;

	(void)state;
	expect_ok(parse("{}", &policy, &json, &error), &error);
	assert_false(policy.joins || policy.platform_operated || policy.spread);
	assert_string_equal(policy.gpu_api, "device-plugin");
	json_decref(json);
	expect_ok(parse("{\"placement\":\"spread\",\"kubernetes\":{\"gpuApi\":\"dra\","
			"\"platformOperated\":true}}",
			&policy, &json, &error),
		  &error);
	assert_true(policy.platform_operated && policy.spread && !policy.joins);
	assert_string_equal(policy.gpu_api, "dra");
	json_decref(json);
	expect_ok(parse(with_server("https://k8s.example.com:6443"), &policy, &json, &error),
		  &error);
	assert_true(policy.joins);
	assert_string_equal(policy.api_server, "https://k8s.example.com:6443");
	assert_string_equal(policy.ca_cert_sha256, PIN);
	assert_string_equal(policy.join_token_ref, REF);
	json_decref(json);
}

/* proves: POOL-7 */
static void test_api_servers(void **state)
{
	static const char *const right[] = {
		"https://k8s.example.com:6443", "https://k8s.example.com", "https://10.0.0.1:443",
		"https://[fd00::1]:6443",       "https://[fd00::1]",       "https://k/",
	};
	static const char *const wrong[] = {
		"http://k8s.example.com", "https://",           "https://:6443",
		"https://user@k:6443",    "https://u:p@k:6443", "https://k:0",
		"https://k:65536",        "https://k:",         "https://k:6443x",
		"https://k/api",          "https://k?x=1",      "https://k#f",
		"https://a..b",           "https://-a",         "https://a b",
		"k8s.example.com:6443",   "HTTPS://k",          "https://[fd00::1",
		"https://[zz]:1",         "https://a_b",        "ftp://k",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		expect_policy(with_server(right[i]));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		expect_refused(with_server(wrong[i]), "policy.kubernetes.apiServer");
}

/* proves: POOL-8 POOL-9 POOL-10 */
static void test_join_fields_come_together_and_in_form(void **state)
{
	static const char *const fields[] = {"apiServer", "caCertSha256", "joinTokenRef"};
	static const char *const values[] = {"https://k:6443", PIN, REF};
	static const char *const pins[] = {
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "sha256:0123",
		"sha1:0123456789abcdef0123456789abcdef01234567", PIN "0",
		"sha256:g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"};
	static const char *const references[] = {
		"secret",
		"secret://",
		"secret://ten_01jd4z5x9f0123456789abcdef",
		"secret://acme/sec_01jd4z5x9f0123456789abcdef",
		"secret://ten_01jd4z5x9f0123456789abcdef/pool_01jd4z5x9f0123456789abcdef",
		REF "/x",
		"vault://ten_01jd4z5x9f0123456789abcdef/sec_01jd4z5x9f0123456789abcdef"};
	char inner[1024], field[64];

	(void)state;
	/* Every set of the three but none and all. */
	for (unsigned set = 1; set < 7; set++) {
		size_t at = 0, missing = 3;

		for (size_t i = 3; i-- > 0;) {
			if (set & 1U << i)
				at += (size_t)snprintf(inner + at, sizeof inner - at,
						       "%s\"%s\":\"%s\"", at ? "," : "", fields[i],
						       values[i]);
			else
				missing = i;
		}
		snprintf(field, sizeof field, "policy.kubernetes.%s", fields[missing]);
		expect_refused(kubernetes(inner), field);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pins); i++) {
		snprintf(inner, sizeof inner,
			 "\"apiServer\":\"https://k\",\"caCertSha256\":\"%s\",\"joinTokenRef\":"
			 "\"%s\"",
			 pins[i], REF);
		expect_refused(kubernetes(inner), "policy.kubernetes.caCertSha256");
	}
	for (size_t i = 0; i < ARRAY_SIZE(references); i++) {
		snprintf(inner, sizeof inner,
			 "\"apiServer\":\"https://k\",\"caCertSha256\":\"%s\",\"joinTokenRef\":"
			 "\"%s\"",
			 PIN, references[i]);
		expect_refused(kubernetes(inner), "policy.kubernetes.joinTokenRef");
	}
}

/* proves: POOL-12 POOL-29 */
static void test_labels(void **state)
{
	static const char *const right[] = {
		"\"labels\":{}",
		"\"labels\":{\"example.com/pool\":\"h100\",\"team\":\"\",\"a.b-c_d\":\"x.y\"}",
		"\"labels\":{\"notkubernetes.io/x\":\"1\",\"bcd.dev.example.com/x\":\"1\"}",
	};
	static const struct {
		const char *inner, *field;
	} wrong[] = {
		{"\"labels\":[]", "policy.kubernetes.labels"},
		{"\"labels\":{\"a b\":\"x\"}", "policy.kubernetes.labels.a b"},
		{"\"labels\":{\"-a\":\"x\"}", "policy.kubernetes.labels.-a"},
		{"\"labels\":{\"/a\":\"x\"}", "policy.kubernetes.labels./a"},
		{"\"labels\":{\"a/b/c\":\"x\"}", "policy.kubernetes.labels.a/b/c"},
		{"\"labels\":{\"Ex.com/a\":\"x\"}", "policy.kubernetes.labels.Ex.com/a"},
		{"\"labels\":{\"a\":1}", "policy.kubernetes.labels.a"},
		{"\"labels\":{\"a\":\"x y\"}", "policy.kubernetes.labels.a"},
		{"\"labels\":{\"a\":\"-x\"}", "policy.kubernetes.labels.a"},
		{"\"labels\":{\"a\":"
		 "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "\"}",
		 "policy.kubernetes.labels.a"},
		{"\"labels\":{\"bcd.dev/x\":\"1\"}", "policy.kubernetes.labels.bcd.dev/x"},
		{"\"labels\":{\"bc.dev/capability.kubernetes-binding\":\"true\"}",
		 "policy.kubernetes.labels.bc.dev/capability.kubernetes-binding"},
		{"\"labels\":{\"better-compute.dev/x\":\"1\"}",
		 "policy.kubernetes.labels.better-compute.dev/x"},
		{"\"labels\":{\"kubernetes.io/role\":\"1\"}",
		 "policy.kubernetes.labels.kubernetes.io/role"},
		{"\"labels\":{\"node-role.kubernetes.io/x\":\"1\"}",
		 "policy.kubernetes.labels.node-role.kubernetes.io/x"},
		{"\"labels\":{\"sub.k8s.io/x\":\"1\"}", "policy.kubernetes.labels.sub.k8s.io/x"},
	};
	char many[8192] = "\"labels\":{";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(right); i++)
		expect_policy(kubernetes(right[i]));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		expect_refused(kubernetes(wrong[i].inner), wrong[i].field);
	for (int i = 0; i <= POOL_POLICY_MAX_LABELS; i++)
		snprintf(many + strlen(many), sizeof many - strlen(many), "%s\"l%d\":\"x\"",
			 i ? "," : "", i);
	strncat(many, "}", sizeof many - strlen(many) - 1);
	expect_refused(kubernetes(many), "policy.kubernetes.labels");
}

/* proves: POOL-13 POOL-29 */
static void test_taints(void **state)
{
	static const char *const wrong[] = {
		"key",
		"key=value",
		"key:NoSchedule",
		"=v:NoSchedule",
		"key=v:Never",
		"key=v:noschedule",
		"key=v:NoSchedule ",
		"key=v v:NoSchedule",
		"k e=v:NoExecute",
		"a/b/c=v:NoExecute",
		"key=v:NoSchedule:x",
	};
	char inner[256];

	(void)state;
	expect_policy(kubernetes("\"taints\":[]"));
	expect_policy(kubernetes("\"taints\":[\"example.com/gpu=reserved:NoSchedule\","
				 "\"a=:PreferNoSchedule\",\"b=c:NoExecute\"]"));
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(inner, sizeof inner, "\"taints\":[\"a=b:NoExecute\",\"%s\"]", wrong[i]);
		expect_refused(kubernetes(inner), "policy.kubernetes.taints[1]");
	}
	expect_refused(kubernetes("\"taints\":[1]"), "policy.kubernetes.taints[0]");
	expect_refused(kubernetes("\"taints\":{}"), "policy.kubernetes.taints");
}

/* proves: POOL-14 POOL-15 POOL-16 */
static void test_the_other_fields(void **state)
{
	static const char *const versions[] = {"1", "1.", "v1.34", "1.34.1.2", "1.34.x", "12345.1"};
	char inner[128];

	(void)state;
	expect_policy(kubernetes("\"kubernetesVersion\":\"1.34\""));
	expect_policy(kubernetes("\"kubernetesVersion\":\"1.34.1\""));
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		snprintf(inner, sizeof inner, "\"kubernetesVersion\":\"%s\"", versions[i]);
		expect_refused(kubernetes(inner), "policy.kubernetes.kubernetesVersion");
	}
	expect_refused(kubernetes("\"gpuApi\":\"DRA\""), "policy.kubernetes.gpuApi");
	expect_refused(kubernetes("\"platformOperated\":\"true\""),
		       "policy.kubernetes.platformOperated");
	expect_refused(kubernetes("\"apiserver\":\"x\""), "policy.kubernetes.apiserver");
	expect_refused("{\"kubernetes\":null}", "policy.kubernetes");
	expect_refused("{\"substrate\":{}}", "policy.substrate");
	expect_refused("{\"placement\":\"random\"}", "policy.placement");
	expect_refused("[]", "policy");
}

/* proves: POOL-16 POOL-17 POOL-29 */
static void test_class_and_site(void **state)
{
	struct pool_policy policy = {.joins = true};
	struct error error;

	(void)state;
	expect_ok(pool_policy_check_class("metal-host", &error), &error);
	expect_error(pool_policy_check_class("vm", &error), &error, ERROR_INVALID_INPUT,
		     "known: metal-host");
	expect_error(pool_policy_check_site(&policy, false, false, &error), &error,
		     ERROR_INVALID_INPUT, "platformOperated");
	expect_ok(pool_policy_check_site(&policy, false, true, &error), &error);
	expect_ok(pool_policy_check_site(&policy, true, false, &error), &error);
	policy.joins = false;
	expect_ok(pool_policy_check_site(&policy, false, false, &error), &error);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_policy_says),
		cmocka_unit_test(test_api_servers),
		cmocka_unit_test(test_join_fields_come_together_and_in_form),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_taints),
		cmocka_unit_test(test_the_other_fields),
		cmocka_unit_test(test_class_and_site),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
