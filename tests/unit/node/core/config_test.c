#include "lib/test.h"
#include "node/core/config.h"
#include "text/toml.h"

static bool read_text(const char *text, const char *node_name, struct config *config,
		      struct error *error)
{
	CLEANUP(tree) json_t *tree = NULL;

	expect_ok(toml_parse(text, strlen(text), CONFIG_MAX_FILE, "config.toml", &tree, error),
		  error);
	return config_read(tree, node_name, config, error);
}

static void test_defaults(void **state)
{
	CLEANUP(config) struct config config = {0};
	struct error error;

	(void)state;
	expect_ok(read_text("", "n1", &config, &error), &error);
	assert_string_equal(config.data, "/var/lib/bcd");
	assert_string_equal(config.run, "/run/bcd");
	assert_string_equal(config.kubelet, "/var/lib/kubelet");
	assert_string_equal(config.cdi, "/etc/cdi");
	assert_string_equal(config.run_cdi, "/var/run/cdi");
	assert_string_equal(config.sim_file, "/var/lib/bcd/gpus.toml");
	assert_int_equal(config.gpus, CONFIG_GPUS_AUTO);
	assert_string_equal(config.kernel_log, "/dev/kmsg");
	assert_string_equal(config.nvml_library, "");
	assert_string_equal(config.nvidia_smi, "");
	assert_int_equal(config.xids.fault_count + config.xids.ignore_count, 0);
	assert_string_equal(config.gpu_api, "device-plugin");
	assert_string_equal(config.node_name, "n1");
	assert_string_equal(config.kubeconfig, "/etc/kubernetes/kubelet.conf");
	assert_string_equal(config.site_id, "");
	assert_true(config.host_units);
	assert_false(config_hosted(&config)); /* units = true: this host is ours */
	assert_int_equal(config.reserved_memory_mib, 2048);
	assert_int_equal(config.reserved_vcpu, 1);
	assert_true(config.confine);
	assert_string_equal(config.metrics_listen, "");
	assert_false(config.dcgm_names);
}

static void test_metrics(void **state UNUSED)
{
	CLEANUP(config) struct config config = {0};
	struct error error;

	expect_ok(read_text("[metrics]\nlisten = '[::]:9410'\ndcgm_names = true", NULL, &config,
			    &error),
		  &error);
	assert_string_equal(config.metrics_listen, "[::]:9410");
	assert_true(config.dcgm_names);
}

/* proves: DP-52 */
static void test_gpus(void **state)
{
	CLEANUP(config) struct config config = {0};
	struct error error;

	(void)state;
	expect_ok(read_text("[paths]\ndev = '/d'\n[gpu]\nsource = 'nvidia-smi'\n"
			    "nvidia_smi = '/opt/nvidia-smi'\nxid_fault = [46, 110]\n"
			    "xid_ignore = [63]",
			    NULL, &config, &error),
		  &error);
	assert_int_equal(config.gpus, CONFIG_GPUS_NVIDIA_SMI);
	assert_string_equal(config.kernel_log, "/d/kmsg");
	assert_string_equal(config.nvidia_smi, "/opt/nvidia-smi");
	assert_true(xid_is_fault(&config.xids, 110, false));
	assert_false(xid_is_fault(&config.xids, 63, false));
}

static void test_every_path_hangs_under_root(void **state)
{
	CLEANUP(config) struct config config = {0};
	struct error error;

	(void)state;
	expect_ok(
		read_text("[paths]\nroot = '/x/'\nkubelet = '/k'\n[host]\nunits = false\n"
			  "[kubernetes]\nnode_name = 'a'\nallowed_clusters = 'https://k#sha256:0'\n"
			  "runtime_config = ['/c.toml', '/d']\n",
			  "b", &config, &error),
		&error);
	assert_string_equal(config.data, "/x/var/lib/bcd");
	assert_string_equal(config.cdi, "/x/etc/cdi");
	assert_string_equal(config.dev, "/x/dev");
	assert_string_equal(config.kubelet, "/k");
	assert_string_equal(config.node_name, "a");
	assert_int_equal(config.cluster_count, 1);
	assert_int_equal(config.runtime_config.count, 2);
	assert_string_equal(config.runtime_config.items[1], "/d"); /* as it is mounted */
	assert_int_equal(config.toolkit_config.count, 0);
	assert_true(config_hosted(&config));
}

/* `bcd node` of a hosted machine must know its Node's name. proves: HOSTED-41 */
static void test_a_hosted_node_has_a_name(void **state UNUSED)
{
	static const struct {
		const char *text, *environment;
		bool good;
	} rows[] = {
		{"[host]\nunits = false", NULL, false},
		{"[host]\nunits = false", "", false},
		{"[host]\nunits = false", "n1", true},
		{"[host]\nunits = false\n[kubernetes]\nnode_name = 'n1'", NULL, true},
		{"[host]\nunits = true", NULL, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(config) struct config config = {0};
		struct error error;

		expect_ok(read_text(rows[i].text, rows[i].environment, &config, &error), &error);
		assert_int_equal(config_hosted(&config), i < 4);
		if (rows[i].good)
			expect_ok(config_check_node(&config, &error), &error);
		else
			expect_error(config_check_node(&config, &error), &error,
				     ERROR_INVALID_CONFIG, "NODE_NAME isn't set");
	}
}

/* proves: JOIN-34 */
static void test_wrong_values_name_key_and_value(void **state)
{
	static const struct {
		const char *text, *field, *value;
	} rows[] = {
		{"[kubernetes]\ngpu_api = 'both'", "kubernetes.gpu_api", "both"},
		{"[kubernetes]\ngpu_api = 3", "kubernetes.gpu_api", ""},
		{"[kubernetes]\nsite_id = 'dc1'", "kubernetes.site_id", "dc1"},
		{"[kubernetes]\nkubeconfig = 'k'", "kubernetes.kubeconfig", "k"},
		{"[kubernetes]\nallowed_clusters = [1]", "kubernetes.allowed_clusters[0]", ""},
		{"[kubernetes]\nruntime_config = ['c']", "kubernetes.runtime_config[0]", "'c'"},
		{"[kubernetes]\ntoolkit_config = '/t'", "kubernetes.toolkit_config", ""},
		{"[kubernetes]\nruntime_config = ['/1','/2','/3','/4','/5','/6','/7','/8','/9']",
		 "kubernetes.runtime_config", "8"},
		{"[paths]\nroot = 'here'", "paths.root", "here"},
		{"[paths]\nkubelet = 'there'", "paths.kubelet", "there"},
		{"[paths]\nroots = '/x'", "paths.roots", "root"},
		{"[gateway]\naddresses = 'a:1'", "gateway.addresses", ""},
		{"[gateway]\naddresses = ['a:1']", "gateway.server_name", "--gateway-name"},
		{"[gateway]\naddresses = ['a:1', '127.0.0.1:99999']", "gateway.addresses[1]",
		 "99999"},
		{"[gateway]\naddresses = ['gw.example.com']", "gateway.addresses[0]", "[fd00"},
		{"[gateway]\naddresses = ['gw:']", "gateway.addresses[0]", "'gw:'"},
		{"[gateway]\naddresses = ['gw:0']", "gateway.addresses[0]", "'gw:0'"},
		{"[gateway]\naddresses = ['gw:7443 ']", "gateway.addresses[0]", "ADDRESS:PORT"},
		{"[gateway]\naddresses = [' gw:7443']", "gateway.addresses[0]", "ADDRESS:PORT"},
		{"[gateway]\naddresses = [':7443']", "gateway.addresses[0]", "ADDRESS:PORT"},
		{"[gateway]\naddresses = ['::1:7443']", "gateway.addresses[0]", "ADDRESS:PORT"},
		{"[gateway]\naddresses = ['[::1:7443']", "gateway.addresses[0]", "ADDRESS:PORT"},
		{"[gateway]\naddresses = ['https://gw:7443']", "gateway.addresses[0]", "https"},
		{"[gateway]\naddresses = ['a:1']\nserver_name = 'a'", "gateway.ca_pins",
		 "pki show"},
		{"[gpu]\nslots = 65", "gpu.slots", "64"},
		{"[gpu]\nsource = 'magic'", "gpu.source", ""},
		{"[gpu]\nkernel_log = 'kmsg'", "gpu.kernel_log", "kmsg"},
		{"[gpu]\nnvml_library = 'libnvidia-ml.so.1'", "gpu.nvml_library", "absolute"},
		{"[gpu]\nxid_fault = [0]", "gpu.xid_fault", "9999"},
		{"[gpu]\nxid_ignore = ['79']", "gpu.xid_ignore", "9999"},
		{"[gpu]\nxid_fault = [79]\nxid_ignore = [79]", "gpu.xid_ignore", "both"},
		{"[host]\nunits = 'no'", "host.units", ""},
		{"[hots]\nunits = false", "hots", "host"},
		{"[metrics]\nlisten = '9410'", "metrics.listen", "9410"},
		{"[metrics]\nlisten = ':9410'", "metrics.listen", ":9410"},
		{"[metrics]\nlisten = 'a:'", "metrics.listen", "ADDRESS:PORT"},
		{"[metrics]\nlisten = 'a:65536'", "metrics.listen", "65536"},
		{"[metrics]\nlisten = 'a:1x'", "metrics.listen", "[::]"},
		{"[metrics]\nlisten = '::1:9410'", "metrics.listen", "ADDRESS:PORT"},
		{"[metrics]\nlisten = 9410", "metrics.listen", ""},
		{"[metrics]\ndcgm_names = 'yes'", "metrics.dcgm_names", ""},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(config) struct config config = {0};
		struct error error = {0};

		expect_error(read_text(rows[i].text, NULL, &config, &error), &error,
			     ERROR_INVALID_CONFIG, "");
		assert_string_equal(error.field, rows[i].field);
		if (!strstr(error.what, rows[i].value) && !strstr(error.hint, rows[i].value))
			fail_msg("'%s' (%s) lacks '%s'", error.what, error.hint, rows[i].value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_gpus),
		cmocka_unit_test(test_every_path_hangs_under_root),
		cmocka_unit_test(test_a_hosted_node_has_a_name),
		cmocka_unit_test(test_wrong_values_name_key_and_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
