#include "manifest/core/objects.h"
#include "sample.h"

static json_t *make(const char *options)
{
	CLEANUP(settings) struct settings settings = {0};

	sample_read(options, &settings);
	return objects_make(&settings, "config\n", "abc");
}

/* What stands at a path such as "spec.template.spec.containers[0].name"; NULL when nothing does. */
static json_t *at(json_t *tree, const char *path)
{
	char part[64];

	while (tree && *path) {
		size_t length = strcspn(path, "|[");

		snprintf(part, sizeof part, "%.*s", (int)length, path);
		if (length > 0)
			tree = json_object_get(tree, part);
		path += length;
		if (*path == '[') {
			tree = json_array_get(tree, (size_t)atol(path + 1));
			path = strchr(path, ']') + 1;
		}
		path += *path == '|';
	}
	return tree;
}

static void check_at(json_t *tree, const char *path, const char *json)
{
	CLEANUP(tree) json_t *wanted = sample_parse(json);
	json_t *got = at(tree, path);
	CLEANUP(free) char *text = got ? json_dumps(got, JSON_ENCODE_ANY) : NULL;

	if (!got || !json_equal(got, wanted))
		fail_msg("%s is %s, not %s", path, text ? text : "not there", json);
}

#define POD    "[2]|spec|template|spec"
#define BCD    POD "|containers[0]"
#define JOIN   POD "|initContainers[0]"
#define LABELS "\"app.kubernetes.io/instance\":\"bcd\",\"app.kubernetes.io/name\":\"bcd\""
#define RUNS   "\"/usr/bin/bcd\",\"--config\",\"/etc/bcd/config.toml\""

/* proves: MAN-1 MAN-46 MAN-61 MAN-66 HOSTED-33 */
static void test_objects(void **state UNUSED)
{
	CLEANUP(tree) json_t *objects = make("{}");

	assert_int_equal(json_array_size(objects), 3);
	check_at(objects, "[0]|kind", "\"Namespace\"");
	check_at(objects, "[0]|metadata|name", "\"bcd-system\"");
	check_at(objects, "[0]|metadata|labels|pod-security.kubernetes.io/enforce",
		 "\"privileged\"");
	check_at(objects, "[1]|kind", "\"ConfigMap\"");
	check_at(objects, "[1]|data", "{\"config.toml\":\"config\\n\"}");
	check_at(objects, "[2]|kind", "\"DaemonSet\"");
	check_at(objects, "[2]|metadata|labels|app.kubernetes.io/managed-by", "\"better-compute\"");
	check_at(objects, "[2]|spec|selector|matchLabels", "{" LABELS "}");
	check_at(objects, "[2]|spec|template|metadata|labels", "{" LABELS "}");
	check_at(objects, "[2]|spec|template|metadata|annotations",
		 "{\"bcd.dev/config-sha256\":\"abc\"}");
	const char *
		requires
	= json_string_value(at(objects, "[2]|metadata|annotations|bcd.dev/requires"));
	assert_non_null(strstr(requires, "devicePlugin.enabled=false"));
	assert_non_null(strstr(requires, "accept-nvidia-visible-devices-envvar-when-unprivileged"));
	assert_non_null(strstr(requires, "--device-name-strategy=uuid"));
	assert_non_null(strstr(requires, "baseline or restricted"));
	assert_non_null(strstr(requires, "revoke the join token"));
}

/* proves: HOSTED-1 HOSTED-2 HOSTED-3 HOSTED-4 HOSTED-6 HOSTED-7 HOSTED-9 HOSTED-12 HOSTED-13 HOSTED-14
 * HOSTED-21 HOSTED-31 HOSTED-32 */
static void test_the_pod(void **state UNUSED)
{
	CLEANUP(tree)
	json_t *objects = make("{\"nodeSelector\":{\"nvidia.com/gpu.present\":"
			       "\"true\"}}");
	static const struct {
		const char *path, *json;
	} rows[] = {
		{"[2]|spec|updateStrategy", "{\"type\":\"RollingUpdate\",\"rollingUpdate\":"
					    "{\"maxSurge\":1,\"maxUnavailable\":0}}"},
		{POD "|automountServiceAccountToken", "false"},
		{POD "|hostNetwork", "true"},
		{POD "|hostPID", "false"},
		{POD "|priorityClassName", "\"system-node-critical\""},
		{POD "|runtimeClassName", "\"nvidia\""},
		{POD "|nodeSelector", "{\"nvidia.com/gpu.present\":\"true\"}"},
		{POD "|tolerations", "[{\"operator\":\"Exists\"}]"},
		{JOIN "|command", "[" RUNS ",\"join\",\"--token-file\","
				  "\"/var/run/secrets/bcd.dev/join/token\"]"},
		{JOIN "|securityContext", "{\"allowPrivilegeEscalation\":false,\"capabilities\":"
					  "{\"drop\":[\"ALL\"]},\"readOnlyRootFilesystem\":true,"
					  "\"runAsUser\":0,\"seccompProfile\":{\"type\":"
					  "\"RuntimeDefault\"}}"},
		{JOIN "|volumeMounts",
		 "[{\"name\":\"config\",\"mountPath\":\"/etc/bcd\",\"readOnly\":true},"
		 "{\"name\":\"state\",\"mountPath\":\"/var/lib/bcd\"},"
		 "{\"name\":\"token\",\"mountPath\":\"/var/run/secrets/bcd.dev/join\","
		 "\"readOnly\":true}]"},
		{BCD "|command", "[" RUNS ",\"node\"]"},
		{BCD "|livenessProbe|exec|command", "[" RUNS ",\"status\"]"},
		{BCD "|securityContext",
		 "{\"privileged\":true,\"readOnlyRootFilesystem\":true,\"runAsUser\":0}"},
		{BCD "|env",
		 "[{\"name\":\"NODE_NAME\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":"
		 "\"spec.nodeName\"}}},{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"all\"},"
		 "{\"name\":\"NVIDIA_DRIVER_CAPABILITIES\",\"value\":\"utility\"}]"},
		{BCD "|volumeMounts[11]",
		 "{\"name\":\"config\",\"mountPath\":\"/etc/bcd\",\"readOnly\":true}"},
		{BCD "|volumeMounts[12]", "{\"name\":\"run\",\"mountPath\":\"/run/bcd\"}"},
		{BCD "|volumeMounts[13]", "{\"name\":\"tmp\",\"mountPath\":\"/tmp\"}"},
		{POD "|volumes[0]",
		 "{\"name\":\"dev\",\"hostPath\":{\"path\":\"/dev\",\"type\":\"Directory\"}}"},
		{POD "|volumes[11]", "{\"name\":\"config\",\"configMap\":{\"name\":\"bcd\"}}"},
		{POD "|volumes[12]", "{\"name\":\"run\",\"emptyDir\":{\"medium\":\"Memory\"}}"},
		{POD "|volumes[13]", "{\"name\":\"tmp\",\"emptyDir\":{}}"},
		{POD "|volumes[14]",
		 "{\"name\":\"token\",\"secret\":{\"secretName\":\"bcd-join\",\"defaultMode\":256,"
		 "\"optional\":true,\"items\":[{\"key\":\"token\",\"path\":\"token\"}]}}"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_at(objects, rows[i].path, rows[i].json);
	assert_null(at(objects, BCD "|readinessProbe"));
	assert_null(at(objects, BCD "|ports"));
	assert_null(at(objects, BCD "|volumeMounts[14]")); /* no token */
	assert_null(at(objects, POD "|volumes[15]"));
	assert_null(at(objects, POD "|containers[1]"));
}

/* proves: MAN-30 MAN-32 MAN-33 MAN-35 MAN-39 MAN-42 */
static void test_choices(void **state UNUSED)
{
	CLEANUP(tree)
	json_t *objects =
		make("{\"createNamespace\":false,\"nvidiaRuntimeClass\":null,"
		     "\"priorityClassName\":null,\"tolerations\":[],\"logLevel\":\"debug\","
		     "\"imagePullSecrets\":[\"p\"],\"joinEncryptionJwk\":{\"kty\":\"EC\"},"
		     "\"controlPlaneUrl\":null}");

	assert_int_equal(json_array_size(objects), 2);
	check_at(objects, "[0]|data",
		 "{\"config.toml\":\"config\\n\",\"join.jwk\":\"{\\\"kty\\\":\\\"EC\\\"}\"}");
#undef POD
#define POD "[1]|spec|template|spec"
	assert_null(at(objects, POD "|runtimeClassName"));
	assert_null(at(objects, POD "|priorityClassName"));
	assert_null(at(objects, POD "|tolerations"));
	assert_null(at(objects, POD "|nodeSelector"));
	check_at(objects, POD "|imagePullSecrets", "[{\"name\":\"p\"}]");
	check_at(objects, POD "|containers[0]|command",
		 "[" RUNS ",\"node\",\"--log-level\",\"debug\"]");
	assert_null(at(objects, POD "|containers[0]|env[1]"));
}

/* proves: MAN-67 */
static void test_secret(void **state UNUSED)
{
	CLEANUP(settings) struct settings settings = {0};
	CLEANUP(tree) json_t *secret = NULL;

	sample_read("{\"name\":\"lender\"}", &settings);
	secret = objects_secret(&settings, "jt_1", "bcj1_x");
	check_at(secret, "kind", "\"Secret\"");
	check_at(secret, "metadata|name", "\"lender-join\"");
	check_at(secret, "metadata|namespace", "\"bcd-system\"");
	check_at(secret, "metadata|labels|app.kubernetes.io/managed-by", "\"better-compute\"");
	check_at(secret, "metadata|annotations", "{\"bcd.dev/join-token\":\"jt_1\"}");
	check_at(secret, "stringData", "{\"token\":\"bcj1_x\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_objects),
		cmocka_unit_test(test_the_pod),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
