/* The configuration that manifests hold is read by bcd's own reader. */
#include "manifest/core/mounts.h"
#include "manifest/core/nodeconfig.h"
#include "manifest/manifest.h"
#include "node/core/config.h"
#include "sample.h"
#include "text/toml.h"

static void read_config(const struct settings *settings, struct config *config)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	nodeconfig_write(settings, &text);
	expect_ok(toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, "config.toml", &tree,
			     &error),
		  &error);
	expect_ok(config_read(tree, "gpu-node-1", config, &error), &error);
}

/* proves: HOSTED-9 HOSTED-17 HOSTED-31 HOSTED-39 JOIN-12 */
static void test_bcd_reads_what_is_written(void **state UNUSED)
{
	CLEANUP(settings) struct settings settings = {0};
	CLEANUP(config) struct config config = {0};

	sample_read("{}", &settings);
	read_config(&settings, &config);
	assert_int_equal(config.address_count, 1);
	assert_string_equal(config.addresses[0], "gw.example.com:7443");
	assert_string_equal(config.server_name, "gw.example.com");
	assert_string_equal(config.ca_pins, SAMPLE_PIN);
	assert_string_equal(config.join_server, "https://compute.example.com");
	assert_string_equal(config.encryption_jwk, "");
	assert_string_equal(config.encryption_pins, SAMPLE_PIN);
	assert_string_equal(config.signing_pins, SAMPLE_PIN);
	assert_string_equal(config.site_id, SAMPLE_SITE);
	assert_true(config_hosted(&config));
	assert_string_equal(config.gpu_api, "device-plugin");
	assert_string_equal(config.kubeconfig, PATHS_KUBECONFIG);
	assert_string_equal(config.run, "/run/bcd");
	assert_string_equal(config.data, MOUNTS_STATE_FOLDER);
}

/* What is mounted of runtime and toolkit is what bcd reads of them, wherever they are.
 * proves: HOSTED-26 MAN-37 MAN-38 */
static void test_bcd_is_told_what_is_mounted(void **state UNUSED)
{
	static const struct {
		const char *options, *runtime[3], *toolkit[3];
	} rows[] = {
		{"{}", {"/etc/containerd/config.toml"}, {"/usr/local/nvidia/toolkit/.config"}},
		{"{\"containerRuntime\":\"cri-o\",\"nvidiaToolkit\":\"packages\"}",
		 {"/etc/crio/crio.conf", "/etc/crio/crio.conf.d"},
		 {"/etc/nvidia-container-runtime"}},
		{"{\"containerRuntime\":{\"files\":[\"/etc/containerd/config.toml\"],\"dirs\":"
		 "[\"/etc/containerd/conf.d\"]},\"nvidiaToolkit\":{\"files\":[\"/opt/nvidia/"
		 "'t.toml\"]}}",
		 {"/etc/containerd/config.toml", "/etc/containerd/conf.d"},
		 {"/opt/nvidia/'t.toml"}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(settings) struct settings settings = {0};
		CLEANUP(config) struct config config = {0};
		CLEANUP(arena) struct arena arena = {0};
		struct mounts mounts = {0};
		size_t told = 0;

		sample_read(rows[i].options, &settings);
		read_config(&settings, &config);
		for (size_t k = 0; k < config.runtime_config.count; k++)
			assert_string_equal(config.runtime_config.items[k], rows[i].runtime[k]);
		assert_null(rows[i].runtime[config.runtime_config.count]);
		for (size_t k = 0; k < config.toolkit_config.count; k++)
			assert_string_equal(config.toolkit_config.items[k], rows[i].toolkit[k]);
		assert_null(rows[i].toolkit[config.toolkit_config.count]);
		mounts_of(&settings, &arena, &mounts);
		vec_each (&mounts, const struct mount *mount)
			told += str_starts(mount->volume, "runtime-") ||
				str_starts(mount->volume, "toolkit-");
		assert_int_equal(told, config.runtime_config.count + config.toolkit_config.count);
		vec_deinit(&mounts);
	}
}

/* With the key nothing is fetched; and the other choices. */
static void test_choices(void **state UNUSED)
{
	CLEANUP(config) struct config config = {0};
	CLEANUP(settings) struct settings settings = {0};
	CLEANUP(tree)
	json_t *options = sample_with("{\"gpuApi\":\"dra\",\"hostUnits\":true,"
				      "\"joinEncryptionJwk\":{\"kty\":\"EC\"},"
				      "\"controlPlaneUrl\":null}");
	struct error error;

	expect_ok(settings_read(options, &settings, &error), &error);
	read_config(&settings, &config);
	assert_string_equal(config.encryption_jwk, "/etc/bcd/join.jwk");
	assert_string_equal(config.join_server, "");
	assert_string_equal(config.gpu_api, "dra");
	assert_true(config.host_units);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bcd_reads_what_is_written),
		cmocka_unit_test(test_bcd_is_told_what_is_mounted),
		cmocka_unit_test(test_choices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
