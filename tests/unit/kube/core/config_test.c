#include "kube/core/config.h"

#include "lib/test.h"

#include <stdio.h>

DEFINE_CLEANUP(config, struct kube_config *, kube_config_destroy)

static bool add(struct kube_config *config, const char *text, const char *path, struct error *error)
{
	return kube_config_add(config, text, strlen(text), path, error);
}

/* A whole kubeconfig around a cluster's and a user's content. */
static void make(char *out, size_t size, const char *cluster, const char *user)
{
	snprintf(out, size,
		 "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
		 "contexts: [{name: x, context: {cluster: c, user: u, namespace: ns}}]\n"
		 "clusters: [{name: c, cluster: {%s}}]\nusers: [{name: u, user: {%s}}]\n",
		 cluster, user);
}

static bool resolve(const char *cluster, const char *user, struct kube_access *access,
		    struct error *error)
{
	CLEANUP(config) struct kube_config *config = kube_config_create();
	char text[2048];

	make(text, sizeof text, cluster, user);
	return add(config, text, "/etc/kubernetes/kubelet.conf", error) &&
	       kube_config_resolve(config, NULL, access, error);
}

static void expect_text(const char *text, const char *wanted)
{
	if (wanted)
		assert_string_equal(text ? text : "(none)", wanted);
	else
		assert_null(text);
}

static void test_what_the_kubelet_has(void **state UNUSED)
{
	CLEANUP(kube_access) struct kube_access access = {0};
	struct error error;

	expect_ok(resolve("server: 'https://10.0.0.1:6443/', certificate-authority: pki/ca.crt",
			  "client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem, "
			  "client-key: /var/lib/kubelet/pki/kubelet-client-current.pem",
			  &access, &error),
		  &error);
	assert_string_equal(access.context, "x");
	assert_string_equal(access.namespace, "ns");
	assert_string_equal(access.server, "https://10.0.0.1:6443");
	assert_string_equal(access.ca.path, "/etc/kubernetes/pki/ca.crt");
	assert_string_equal(access.certificate.path,
			    "/var/lib/kubelet/pki/kubelet-client-current.pem");
	assert_string_equal(access.key.path, access.certificate.path);
	assert_null(access.ca.text);
	assert_null(access.token.text);
	assert_null(access.proxy);
}

static void test_sources(void **state UNUSED)
{
	static const struct {
		const char *cluster, *user;
		const char *ca_text, *ca_path, *token_text, *token_path, *key_text;
	} TABLE[] = {
		/* data wins over the file; base64 may have line ends; empty texts don't count */
		{"certificate-authority: ca, certificate-authority-data: YWJj", "token: t", "abc",
		 NULL, "t", NULL, NULL},
		{"certificate-authority: ../ca", "token: t", NULL, "/etc/kubernetes/../ca", "t",
		 NULL, NULL},
		{"certificate-authority-data: \"YWJj\\nZGVm\\r\\n\"", "token: t", "abcdef", NULL,
		 "t", NULL, NULL},
		{"certificate-authority-data: ''", "token: t, tokenFile: ''", NULL, NULL, "t", NULL,
		 NULL},
		{"certificate-authority: null", "token: t, tokenFile: tok", NULL, NULL, NULL,
		 "/etc/kubernetes/tok", NULL},
		{"certificate-authority: ''",
		 "token: t, client-key-data: YWJj, client-certificate: a", NULL, NULL, "t", NULL,
		 "abc"},
		{"x: {y: 1}", "token: t, unknown: [1, 2]", NULL, NULL, "t", NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(kube_access) struct kube_access access = {0};
		struct error error;
		char cluster[512];

		snprintf(cluster, sizeof cluster, "server: 'https://a', %s", TABLE[i].cluster);
		expect_ok(resolve(cluster, TABLE[i].user, &access, &error), &error);
		expect_text(access.ca.text, TABLE[i].ca_text);
		expect_text(access.ca.path, TABLE[i].ca_path);
		expect_text(access.token.text, TABLE[i].token_text);
		expect_text(access.token.path, TABLE[i].token_path);
		expect_text(access.key.text, TABLE[i].key_text);
	}
}

static void test_refused_when_used(void **state UNUSED)
{
	static const struct {
		const char *cluster, *user, *message;
	} TABLE[] = {
		{"", "token: t", "cluster 'c' names no server"},
		{"server: 'http://a'", "token: t", "no https:// address"},
		{"server: 'a:6443'", "token: t", "no https:// address"},
		{"server: 'https://'", "token: t", "no https:// address"},
		{"server: 'https:///x'", "token: t", "no https:// address"},
		{"server: 'https://u:p@a'", "token: t", "more than a host"},
		{"server: 'https://a?b=c'", "token: t", "more than a host"},
		{"server: 'https://a b'", "token: t", "more than a host"},
		{"server: 'https://a', insecure-skip-tls-verify: true", "token: t",
		 "insecure-skip-tls-verify, which isn't taken"},
		{"server: 'https://a', proxy-url: 'ftp://p'", "token: t", "proxy-url"},
		{"server: 'https://a'", "", "neither a certificate nor a token"},
		{"server: 'https://a'", "client-key: k", "client-key without a client-certificate"},
		{"server: 'https://a'", "client-certificate-data: YQ==, token: t",
		 "client-certificate without a client-key"},
		{"server: 'https://a'", "username: u, password: p", "user 'u' has username"},
		{"server: 'https://a'", "token: t, as: root", "user 'u' has as,"},
		{"server: 'https://a'", "auth-provider: {name: gcp}", "user 'u' has auth-provider"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		struct kube_access access = {0};
		struct error error;

		expect_error(resolve(TABLE[i].cluster, TABLE[i].user, &access, &error), &error,
			     ERROR_INVALID_CONFIG, TABLE[i].message);
		assert_null(access.server);
	}
}

static void test_refused_as_a_file(void **state UNUSED)
{
	static const struct {
		const char *text, *message;
	} TABLE[] = {
		{"[]", "kubeconfig /k/a: not an object"},
		{"hello", "kubeconfig: /k/a:1: an object or an array is expected"},
		{"kind: Pod\napiVersion: v1\n", "kind: is \"Pod\", not \"Config\""},
		{"kind: Config\napiVersion: v2\n", "apiVersion: is \"v2\""},
		{"clusters: {}\n", "clusters: must be an array, not an object"},
		{"clusters: [1]\n", "clusters[0]: must be an object"},
		{"clusters: [{name: 1}]\n", "clusters[0].name: must be a string, not a number"},
		{"clusters: [{name: c}, {name: c}]\n",
		 "clusters[1]: the name \"c\" is there twice"},
		{"users: [{name: u, user: {token: 123}}]\n",
		 "users[0].user.token: must be a string, not a number"},
		{"users: [{name: u, user: {token: true}}]\n",
		 "users[0].user.token: must be a string, not a boolean"},
		{"users: [{name: u, user: {client-key-data: '%%%'}}]\n",
		 "users[0].user.client-key-data: is not the base64 of a text"},
		{"users: [{name: u, user: {client-key-data: YWJjZA}}]\n", "is not the base64"},
		{"users: [{name: u, user: {client-key-data: YQBi}}]\n", "is not the base64"},
		{"clusters: [{name: c, cluster: {insecure-skip-tls-verify: 1}}]\n",
		 "must be true or false"},
		{"current-context: 5\n", "current-context: must be a string"},
		{"current-context: a\ncurrent-context: b\n", "\"current-context\" is there twice"},
		{"a: &x 1\nb: *x\n", "aliases"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(config) struct kube_config *config = kube_config_create();
		struct error error;

		expect_error(add(config, TABLE[i].text, "/k/a", &error), &error,
			     ERROR_INVALID_CONFIG, TABLE[i].message);
	}
}

static void test_files_are_merged_first_wins(void **state UNUSED)
{
	CLEANUP(config) struct kube_config *config = kube_config_create();
	CLEANUP(kube_access) struct kube_access first = {0}, second = {0};
	struct kube_access none = {0};
	struct error error;

	expect_ok(add(config, " \n", "/empty", &error), &error);
	expect_error(kube_config_resolve(config, NULL, &none, &error), &error, ERROR_INVALID_CONFIG,
		     "no current-context");
	expect_ok(add(config,
		      "clusters: [{name: c, cluster: {server: 'https://a:1'}}]\n"
		      "users: [{name: u, user: {tokenFile: t}}]\n"
		      "contexts: [{name: x, context: {cluster: c, user: u}}]\n",
		      "/one/config", &error),
		  &error);
	expect_ok(
		add(config,
		    "{\"clusters\": [{\"name\": \"c\", \"cluster\": {\"server\": \"https://b:1\", "
		    "\"tls-server-name\": \"b\"}}, {\"name\": \"d\", \"cluster\": {\"server\": "
		    "\"https://d:1\"}}], \"current-context\": \"z\", \"contexts\": [{\"name\": "
		    "\"z\", \"context\": {\"cluster\": \"d\", \"user\": \"u\"}}, {\"name\": \"w\", "
		    "\"context\": {\"cluster\": \"gone\", \"user\": \"u\"}}, {\"name\": \"v\", "
		    "\"context\": {\"cluster\": \"c\"}}]}",
		    "/two/config", &error),
		&error);
	expect_ok(add(config, "current-context: x\n", "/three/config", &error), &error);
	expect_ok(kube_config_resolve(config, NULL, &first, &error), &error);
	assert_string_equal(first.server, "https://d:1");
	assert_string_equal(first.token.path, "/one/t");
	expect_ok(kube_config_resolve(config, "x", &second, &error), &error);
	assert_string_equal(second.server, "https://a:1");
	assert_null(second.server_name); /* the whole entry, not its fields */
	expect_error(kube_config_resolve(config, "nope", &none, &error), &error, ERROR_NOT_FOUND,
		     "no context 'nope'");
	expect_error(kube_config_resolve(config, "w", &none, &error), &error, ERROR_INVALID_CONFIG,
		     "cluster 'gone' of context 'w' is not there");
	expect_error(kube_config_resolve(config, "v", &none, &error), &error, ERROR_INVALID_CONFIG,
		     "context 'v' names no user");
}

static void test_a_refused_file_adds_nothing(void **state UNUSED)
{
	CLEANUP(config) struct kube_config *config = kube_config_create();
	struct kube_access access = {0};
	struct error error;

	assert_false(add(config, "contexts: [{name: x}]\nclusters: [{name: c}]\nusers: 5\n", "/a",
			 &error));
	expect_error(kube_config_resolve(config, "x", &access, &error), &error, ERROR_NOT_FOUND,
		     "no context 'x'");
}

static void test_errors_tell_no_secret(void **state UNUSED)
{
	static const char *const USERS[] = {"client-key-data: 's3cr3t!'", "token: [s3cr3t]",
					    "username: s3cr3t, password: s3cr3t",
					    "token: s3cr3t, client-key-data: czNjcjN0"};

	for (size_t i = 0; i < ARRAY_SIZE(USERS); i++) {
		struct kube_access access = {0};
		struct error error;

		assert_false(resolve("server: 'https://a'", USERS[i], &access, &error));
		assert_null(strstr(error.what, "s3cr3t"));
	}
}

static void test_proxies(void **state UNUSED)
{
	static const char *const TABLE[][2] = {
		{"http://p:3128", "http://p:3128"},
		{"https://u:w@p", "https://u:w@p"},
		{"http://p:3128/", "http://p:3128/"},
		{"http://u:@p.example.com", "http://u:@p.example.com"},
		{"http://u:a%23%40%2Fb!$~@p:1", "http://u:a%23%40%2Fb!$~@p:1"},
		{"http://10.0.0.1:65535", "http://10.0.0.1:65535"},
		{"http://[fd00::1]:3128", "http://[fd00::1]:3128"},
		{"http://u@[::1]", "http://u@[::1]"},
		{"socks5://p:1080", "socks5h://p:1080"}};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		CLEANUP(kube_access) struct kube_access access = {0};
		struct error error;
		char cluster[128];

		snprintf(cluster, sizeof cluster, "server: 'HTTPS://a', proxy-url: '%s'",
			 TABLE[i][0]);
		expect_ok(resolve(cluster, "token: t", &access, &error), &error);
		assert_string_equal(access.proxy, TABLE[i][1]);
	}
}

/* libcurl would quote it, with the password in it. */
static void test_proxies_that_cannot_be_read(void **state UNUSED)
{
	static const char *const TABLE[] = {
		"http://bob:s3cr3t#WORD9@proxy.example.com:3128",
		"http://bob:s3cr3t?x@proxy:3128",
		"http://bob:s3cr3t/x@proxy:3128",
		"http://bob:s3cr3t@x@proxy:3128",
		"http://bob:s3cr3t x@proxy:3128",
		"http://bob:s3cr3t%zz@proxy:3128",
		"http://bob:s3cr3t%2@proxy:3128",
		"http://bob:s3cr3t%0a@proxy:3128",
		"http://bob:s3cr3t\\x@proxy:3128",
		"http://bob:s3cr3t@proxy:999999",
		"http://bob:s3cr3t@proxy:65536",
		"http://bob:s3cr3t@proxy:0",
		"http://bob:s3cr3t@proxy:",
		"http://bob:s3cr3t@proxy:80x",
		"http://bob:s3cr3t@",
		"http://bob:s3cr3t@:80",
		"http://bob:s3cr3t@[::1",
		"http://bob:s3cr3t@[]:80",
		"http://bob:s3cr3t@[::1]80",
		"http://bob:s3cr3t@proxy/path",
		"http://bob:s3cr3t",
		"https://bob:s3cr3t@a b",
		"socks5://bob:s3cr3t@proxy:1080?",
		"http://",
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		struct kube_access access = {0};
		struct error error;
		char cluster[128];

		snprintf(cluster, sizeof cluster, "server: 'https://a', proxy-url: '%s'", TABLE[i]);
		if (resolve(cluster, "token: t", &access, &error))
			fail_msg("taken: %s", TABLE[i]);
		assert_int_equal(error.code, ERROR_INVALID_CONFIG);
		assert_non_null(strstr(error.what, "the proxy-url of cluster 'c' can't be read"));
		assert_non_null(strstr(error.hint, "'#' is %23"));
		assert_null(strstr(error.what, "s3cr3t"));
		assert_null(strstr(error.hint, "s3cr3t"));
		assert_null(strstr(error.what, "bob"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_kubelet_has),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_refused_when_used),
		cmocka_unit_test(test_refused_as_a_file),
		cmocka_unit_test(test_files_are_merged_first_wins),
		cmocka_unit_test(test_a_refused_file_adds_nothing),
		cmocka_unit_test(test_errors_tell_no_secret),
		cmocka_unit_test(test_proxies),
		cmocka_unit_test(test_proxies_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
