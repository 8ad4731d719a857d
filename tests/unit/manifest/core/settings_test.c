#include "sample.h"

/* proves: MAN-15 MAN-30 MAN-31 MAN-32 MAN-33 MAN-34 MAN-35 MAN-39 MAN-67 */
static void test_defaults(void **state UNUSED)
{
	CLEANUP(settings) struct settings settings = {0};
	CLEANUP(tree) json_t *everything = sample_parse("[{\"operator\":\"Exists\"}]");
	CLEANUP(tree)
	json_t *resources = sample_parse("{\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"},"
					 "\"limits\":{\"memory\":\"512Mi\"}}");

	sample_read("{}", &settings);
	assert_string_equal(settings.namespace, "bcd-system");
	assert_string_equal(settings.name, "bcd");
	assert_true(settings.create_namespace);
	assert_int_equal(json_object_size(settings.node_selector), 0);
	assert_true(json_equal(settings.tolerations, everything));
	assert_true(json_equal(settings.resources, resources));
	assert_int_equal(json_array_size(settings.pull_secrets), 0);
	assert_string_equal(settings.priority_class, "system-node-critical");
	assert_string_equal(settings.runtime_class, "nvidia");
	assert_false(settings.host_units);
	assert_false(settings.dra);
	assert_string_equal(settings.secret_name, "bcd-join");
	assert_string_equal(settings.secret_key, "token");
	assert_string_equal(settings.log_level, "info");
	assert_null(settings.gateway_server_name);
	assert_string_equal(settings.credentials.files[0], "/etc/kubernetes/kubelet.conf");
	assert_string_equal(settings.runtime.files[0], "/etc/containerd/config.toml");
	assert_string_equal(settings.toolkit.folders[0], "/usr/local/nvidia/toolkit/.config");
}

/* proves: MAN-29 MAN-31 MAN-32 MAN-33 MAN-35 */
static void test_everything_can_be_said(void **state UNUSED)
{
	CLEANUP(settings) struct settings settings = {0};
	CLEANUP(arena) struct arena arena = {0};

	sample_read("{\"namespace\":\"gpu\",\"name\":\"lender\",\"createNamespace\":false,"
		    "\"nodeSelector\":{\"nvidia.com/gpu.present\":\"true\"},\"tolerations\":[],"
		    "\"priorityClassName\":null,\"imagePullSecrets\":[\"pull\"],"
		    "\"resources\":{\"limits\":{\"memory\":\"1Gi\"}},\"hostUnits\":true,"
		    "\"gpuApi\":\"dra\",\"nvidiaRuntimeClass\":null,\"kubeletCredentials\":\"k3s\","
		    "\"containerRuntime\":{\"dirs\":[\"/etc/k0s/containerd.d\"]},"
		    "\"nvidiaToolkit\":\"packages\",\"gatewayServerName\":\"gw.internal\","
		    "\"logLevel\":\"debug\",\"joinTokenSecret\":{\"name\":\"t\",\"key\":\"k\"},"
		    "\"controlPlaneUrl\":\"https://c.example.com/base//\"}",
		    &settings);
	assert_string_equal(settings.namespace, "gpu");
	assert_false(settings.create_namespace);
	assert_int_equal(json_array_size(settings.tolerations), 0);
	assert_null(settings.priority_class);
	assert_null(settings.runtime_class);
	assert_true(settings.host_units && settings.dra);
	assert_string_equal(settings.secret_name, "t");
	assert_string_equal(settings.secret_key, "k");
	assert_string_equal(settings.log_level, "debug");
	assert_string_equal(settings.control_plane_url, "https://c.example.com/base");
	assert_string_equal(settings_gateway_name(&settings, &arena), "gw.internal");
	assert_string_equal(settings_gateway_address(&settings, &arena), "gw.example.com:7443");
}

static void test_the_gateway_has_a_port_and_a_name(void **state UNUSED)
{
	static const struct {
		const char *options, *address, *name;
	} rows[] = {
		{"{\"gatewayUrl\":\"https://gw.example.com\"}", "gw.example.com:443",
		 "gw.example.com"},
		{"{\"gatewayUrl\":\"https://gw.example.com:7443/\"}", "gw.example.com:7443",
		 "gw.example.com"},
		{"{\"gatewayUrl\":\"https://[fd00::1]\",\"gatewayServerName\":\"gw\"}",
		 "[fd00::1]:443", "gw"},
		{"{\"gatewayUrl\":\"https://10.0.0.1:7443\"}", "10.0.0.1:7443", "10.0.0.1"},
		{"{\"gatewayUrl\":\"https://[fd00::1]:7\",\"gatewayServerName\":\"gw\"}",
		 "[fd00::1]:7", "gw"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(settings) struct settings settings = {0};
		CLEANUP(arena) struct arena arena = {0};

		sample_read(rows[i].options, &settings);
		assert_string_equal(settings_gateway_address(&settings, &arena), rows[i].address);
		assert_string_equal(settings_gateway_name(&settings, &arena), rows[i].name);
	}
}

/* Each is refused, with the option's name. proves: MAN-29 MAN-31 MAN-33 MAN-36 MAN-43 MAN-45 MAN-65 */
static void test_every_refusal(void **state UNUSED)
{
	static const struct {
		const char *options, *field, *text;
	} rows[] = {
		{"{\"imagee\":1}", "imagee", "image"},
		{"{\"nodeSelectr\":{}}", "nodeSelectr", "nodeSelector"},
		{"{\"image\":\"registry.example.com/bcd:1\"}", "image", "pinned by its digest"},
		{"{\"image\":7}", "image", ""},
		{"{\"gatewayUrl\":\"http://gw.example.com\"}", "gatewayUrl", "https"},
		{"{\"gatewayUrl\":\"https://gw.example.com/x\"}", "gatewayUrl", "https"},
		{"{\"controlPlaneUrl\":\"http://c.example.com\"}", "controlPlaneUrl", "https"},
		{"{\"gatewayServerName\":\"a b\"}", "gatewayServerName", "'a b'"},
		{"{\"gatewayServerName\":\"[::1]\"}", "gatewayServerName", "'[::1]'"},
		{"{\"gatewayServerName\":\"::1\"}", "gatewayServerName", "'::1'"},
		{"{\"gatewayUrl\":\"https://[::1\"}", "gatewayUrl", "https://[::1"},
		{"{\"siteId\":\"dc1\"}", "siteId", "'dc1'"},
		{"{\"siteId\":\"pool_01kb7s4x5n000000000000000a\"}", "siteId", "pool_"},
		{"{\"pins\":{\"servingCaPin\":\"md5/x\"}}", "pins.servingCaPin", "md5/x"},
		{"{\"pins\":{\"servingCaPins\":\"x\"}}", "pins.servingCaPins", "\"servingCaPin\""},
		{"{\"pins\":[]}", "pins", "object"},
		{"{\"namespace\":\"Bcd\"}", "namespace", "'Bcd'"},
		{"{\"name\":\"a.b\"}", "name", "'a.b'"},
		{"{\"name\":\"\"}", "name", ""},
		{"{\"createNamespace\":\"yes\"}", "createNamespace", ""},
		{"{\"joinTokenSecret\":{\"name\":\"A\"}}", "joinTokenSecret.name", "'A'"},
		{"{\"joinTokenSecret\":{\"name\":\"a\",\"key\":\"a/b\"}}", "joinTokenSecret.key",
		 "a/b"},
		{"{\"joinTokenSecret\":\"a\"}", "joinTokenSecret", "object"},
		{"{\"joinEncryptionJwk\":{\"kty\":\"EC\",\"d\":\"x\"}}", "joinEncryptionJwk",
		 "private half"},
		{"{\"joinEncryptionJwk\":{\"kty\":\"EC\",\"k\":\"x\"}}", "joinEncryptionJwk.k", ""},
		{"{\"joinEncryptionJwk\":\"x\"}", "joinEncryptionJwk", "object"},
		{"{\"nodeSelector\":{\"-a\":\"b\"}}", "nodeSelector", "'-a'"},
		{"{\"nodeSelector\":{\"a\":\"b c\"}}", "nodeSelector", "'a'"},
		{"{\"nodeSelector\":{\"a\":true}}", "nodeSelector", "'a'"},
		{"{\"tolerations\":{}}", "tolerations", "array"},
		{"{\"tolerations\":[{\"operator\":\"Is\"}]}", "tolerations[0].operator", "Is"},
		{"{\"tolerations\":[{\"operator\":\"Exists\"},{\"effect\":\"No\"}]}",
		 "tolerations[1].effect", "No"},
		{"{\"tolerations\":[{}]}", "tolerations[0]", "must be Exists"},
		{"{\"tolerations\":[{\"key\":\"a\",\"operator\":\"Exists\",\"value\":\"b\"}]}",
		 "tolerations[0]", "no value"},
		{"{\"tolerations\":[{\"key\":\"a b\"}]}", "tolerations[0]", "'a b'"},
		{"{\"tolerations\":[{\"key\":\"a\",\"tolerationSeconds\":1}]}", "tolerations[0]",
		 "NoExecute"},
		{"{\"tolerations\":[{\"kee\":\"a\"}]}", "tolerations[0].kee", "key"},
		{"{\"priorityClassName\":\"A\"}", "priorityClassName", "'A'"},
		{"{\"nvidiaRuntimeClass\":\"a_b\"}", "nvidiaRuntimeClass", "'a_b'"},
		{"{\"imagePullSecrets\":[\"A\"]}", "imagePullSecrets[0]", "'A'"},
		{"{\"imagePullSecrets\":[{\"name\":\"a\"}]}", "imagePullSecrets[0]", ""},
		{"{\"imagePullSecrets\":[\"a\",\"b\",\"a\"]}", "imagePullSecrets[2]",
		 "'a' is there twice"},
		{"{\"resources\":{\"limits\":{\"yes\":\"1\"}}}", "resources.limits", "'yes'"},
		{"{\"hostUnits\":1}", "hostUnits", ""},
		{"{\"gpuApi\":\"dr\"}", "gpuApi", "dra"},
		{"{\"logLevel\":\"loud\"}", "logLevel", "'loud'"},
		{"{\"kubeletCredentials\":\"k0s\"}", "kubeletCredentials", "'k0s'"},
		{"{\"kubeletCredentials\":{\"kubeconfig\":\"/var/lib/kubelet/kubeconfig\","
		 "\"certificateDirs\":[\"/etc\"]}}",
		 "kubeletCredentials.certificateDirs[0]", "ruled out"},
		{"{\"containerRuntime\":\"docker\"}", "containerRuntime", "'docker'"},
		{"{\"nvidiaToolkit\":\"operator\"}", "nvidiaToolkit", "'operator'"},
		{"{\"nvidiaToolkit\":{\"files\":[\"/etc/containerd/config.toml\"]}}",
		 "nvidiaToolkit", "is in containerRuntime too"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(settings) struct settings settings = {0};
		CLEANUP(tree) json_t *options = sample_with(rows[i].options);
		struct error error;

		if (settings_read(options, &settings, &error))
			fail_msg("taken: %s", rows[i].options);
		if (!str_equal(error.field, rows[i].field) || !strstr(error.what, rows[i].text) ||
		    error.code != ERROR_INVALID_CONFIG)
			fail_msg("%s: %s, field '%s'", rows[i].options, error.what, error.field);
		assert_null(settings.image);
	}
}

/* proves: MAN-29 */
static void test_what_is_needed(void **state UNUSED)
{
	static const struct {
		const char *without, *options, *field;
	} rows[] = {
		{"image", "{}", "image"},
		{"gatewayUrl", "{}", "gatewayUrl"},
		{"siteId", "{}", "siteId"},
		{"pins", "{}", "pins.servingCaPin"},
		{"pins", "{\"pins\":{\"servingCaPin\":\"" SAMPLE_PIN "\"}}", "pins.joinSigningPin"},
		{"pins",
		 "{\"pins\":{\"servingCaPin\":\"" SAMPLE_PIN "\",\"joinSigningPin\":\"" SAMPLE_PIN
		 "\"}}",
		 "pins.joinEncryptionPin"},
		{"controlPlaneUrl", "{}", "joinEncryptionJwk"},
		{"", "{\"gatewayUrl\":\"https://[fd00::1]:7443\"}", "gatewayServerName"},
		{"", "{\"joinEncryptionJwk\":{\"kty\":\"EC\"}}", "controlPlaneUrl"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(settings) struct settings settings = {0};
		CLEANUP(tree) json_t *options = sample_options();
		CLEANUP(tree) json_t *more = sample_parse(rows[i].options);
		struct error error;

		json_object_del(options, rows[i].without);
		json_object_update(options, more);
		expect_ok(settings_read(options, &settings, &error), &error);
		expect_error(settings_check_complete(&settings, &error), &error,
			     ERROR_INVALID_CONFIG, "");
		assert_string_equal(error.field, rows[i].field);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_everything_can_be_said),
		cmocka_unit_test(test_the_gateway_has_a_port_and_a_name),
		cmocka_unit_test(test_every_refusal),
		cmocka_unit_test(test_what_is_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
