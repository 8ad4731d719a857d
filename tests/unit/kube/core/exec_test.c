#include "kube/core/exec.h"

#include "lib/test.h"

DEFINE_CLEANUP(config, struct kube_config *, kube_config_destroy)

static bool resolve(const char *user, struct kube_access *access, struct error *error)
{
	CLEANUP(config) struct kube_config *config = kube_config_create();
	CLEANUP(buf) struct buf text = {0};

	buf_printf(&text,
		   "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
		   "clusters: [{name: c, cluster: {server: 'https://a', tls-server-name: b}}]\n"
		   "users: [{name: u, user: {%s}}]\n",
		   user);
	return kube_config_add(config, text.data, text.length, "/home/me/.kube/config", error) &&
	       kube_config_resolve(config, NULL, access, error);
}

#define V1 "apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never"

static void test_what_a_kubeconfig_says(void **state UNUSED)
{
	CLEANUP(kube_access) struct kube_access access = {0}, plain = {0}, with_token = {0};
	struct error error;

	expect_ok(resolve("exec: {command: bin/get, " V1
			  ", args: [a, 'b c'], env: [{name: N, value: "
			  "V=1}, {name: E}], provideClusterInfo: true, installHint: 'get it'}",
			  &access, &error),
		  &error);
	assert_string_equal(access.exec->command, "/home/me/.kube/bin/get");
	assert_int_equal(access.exec->args.count, 2);
	assert_string_equal(access.exec->args.items[1], "b c");
	assert_int_equal(access.exec->env.count, 2);
	assert_string_equal(access.exec->env.items[0], "N=V=1");
	assert_string_equal(access.exec->env.items[1], "E=");
	assert_string_equal(access.exec->install_hint, "get it");
	assert_true(access.exec->cluster_info);
	expect_ok(resolve("exec: {command: aws, args: null, env: null, "
			  "apiVersion: client.authentication.k8s.io/v1beta1}",
			  &plain, &error),
		  &error);
	assert_string_equal(plain.exec->command, "aws");
	assert_false(plain.exec->cluster_info);
	/* What stands there is surer than what a program may say. */
	expect_ok(resolve("token: t, exec: {command: aws}", &with_token, &error), &error);
	assert_null(with_token.exec);
}

static void test_refused(void **state UNUSED)
{
	static const char *const TABLE[][2] = {
		{"exec: {" V1 "}", "user 'u': exec.command: is missing"},
		{"exec: {command: a}", "exec.apiVersion: is missing"},
		{"exec: {command: a, apiVersion: v1}", "exec.apiVersion: 'v1' is not one of"},
		{"exec: {command: a, " V1 ", args: [1]}", "must be a list of texts"},
		{"exec: {command: a, " V1 ", env: [{value: s3cr3t}]}", "exec.env.name: is missing"},
		{"exec: {command: a, " V1 ", env: [{name: 'a=b', value: s3cr3t}]}", "holds '='"},
		{"exec: {command: a, apiVersion: client.authentication.k8s.io/v1, "
		 "interactiveMode: Always}",
		 "nobody is there to talk to"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		struct kube_access access = {0};
		struct error error;

		expect_error(resolve(TABLE[i][0], &access, &error), &error, ERROR_INVALID_CONFIG,
			     TABLE[i][1]);
		assert_null(strstr(error.what, "s3cr3t"));
	}
}

static void test_what_it_is_told(void **state UNUSED)
{
	CLEANUP(kube_access) struct kube_access access = {0}, plain = {0};
	CLEANUP(buf) struct buf info = {0}, little = {0};
	struct error error;

	expect_ok(resolve("exec: {command: a, provideClusterInfo: true, " V1 "}", &access, &error),
		  &error);
	kube_exec_info(&access, "CA", &info);
	assert_string_equal(
		buf_text(&info),
		"{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
		"\"ExecCredential\",\"spec\":{\"cluster\":{\"certificate-authority-data\":"
		"\"Q0E=\",\"server\":\"https://a\",\"tls-server-name\":\"b\"},"
		"\"interactive\":false}}");
	expect_ok(resolve("exec: {command: a, " V1 "}", &plain, &error), &error);
	kube_exec_info(&plain, "CA", &little);
	assert_null(strstr(buf_text(&little), "cluster"));
}

static void test_what_it_answers(void **state UNUSED)
{
	static const struct {
		const char *status, *message; /* NULL: taken */
		int64_t expires;
	} TABLE[] = {
		{"\"token\":\"s3cr3t\"", NULL, 0},
		{"\"token\":\"s3cr3t\",\"expirationTimestamp\":\"1970-01-01T00:00:02Z\"", NULL,
		 2000},
		{"\"token\":\"t\",\"expirationTimestamp\":\"1970-01-01T01:00:02.5+01:00\"", NULL,
		 2000},
		{"\"token\":\"t\",\"expirationTimestamp\":\"1970-01-01T00:00:02-00:30\"", NULL,
		 1802000},
		{"\"clientCertificateData\":\"c\",\"clientKeyData\":\"s3cr3t\"", NULL, 0},
		{"\"token\":\"t\",\"x\":1", NULL, 0},
		{"\"token\":\"s3cr3t\",\"clientKeyData\":\"s3cr3t\"",
		 "a key without its certificate", 0},
		{"\"clientCertificateData\":\"c\"", "a certificate without its key", 0},
		{"", "neither a token nor a certificate", 0},
		{"\"token\":5", "status.token: must be a string", 0},
		{"\"token\":\"s3cr3t\",\"expirationTimestamp\":\"soon\"", "is no time", 0},
		{"\"token\":\"s3cr3t\",\"expirationTimestamp\":\"1970-01-01T00:00:02\"",
		 "is no time", 0},
	};
	CLEANUP(kube_access) struct kube_access access = {0};
	struct error error;

	expect_ok(resolve("exec: {command: a, " V1 "}", &access, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(kube_exec_answer) struct kube_exec_answer answer = {0};
		CLEANUP(buf) struct buf text = {0};
		bool ok;

		buf_printf(&text,
			   "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
			   "\"ExecCredential\",\"status\":{%s}}",
			   TABLE[i].status);
		ok = kube_exec_read(access.exec, text.data, text.length, &answer, &error);
		assert_int_equal(ok, !TABLE[i].message);
		if (ok) {
			assert_int_equal(answer.expires.ms, TABLE[i].expires);
			continue;
		}
		assert_int_equal(error.code, ERROR_INVALID_CONFIG);
		assert_non_null(strstr(error.what, TABLE[i].message));
		assert_null(strstr(error.what, "s3cr3t"));
	}
}

static void test_answers_that_are_none(void **state UNUSED)
{
	static const char *const TABLE[][2] = {
		{"", "what 'a' answers: its answer: empty"},
		{"s3cr3t", "what 'a' answers: its answer:1"},
		{"{\"status\":{}}", "apiVersion: is missing"},
		{"{\"apiVersion\":\"v1\",\"status\":{\"token\":\"s3cr3t\"}}",
		 "apiVersion: is \"v1\""},
		{"{\"apiVersion\":\"client.authentication.k8s.io/v1\"}", "status: is missing"},
	};
	CLEANUP(kube_access) struct kube_access access = {0};
	struct error error;

	expect_ok(resolve("exec: {command: a, " V1 "}", &access, &error), &error);
	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		struct kube_exec_answer answer = {0};

		expect_error(kube_exec_read(access.exec, TABLE[i][0], strlen(TABLE[i][0]), &answer,
					    &error),
			     &error, ERROR_INVALID_CONFIG, TABLE[i][1]);
		assert_null(strstr(error.what, "s3cr3t"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_kubeconfig_says),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_what_it_is_told),
		cmocka_unit_test(test_what_it_answers),
		cmocka_unit_test(test_answers_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
