#include "cluster.h"

#include "core/fixture.h"
#include "lib/folder.h"
#include "node/status.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "text/toml.h"
#include "text/tree.h"

void cluster_init(struct cluster *cluster)
{
	log_set_level(LOG_ERROR);
	cluster->ca = certs_make(&(struct certs_options){.name = "ca", .is_ca = true});
	cluster->server =
		certs_make(&(struct certs_options){.name = "api.test", .issuer = &cluster->ca});
	cluster->client = certs_make(
		&(struct certs_options){.name = "system:node:n1", .issuer = &cluster->ca});
}

void cluster_deinit(struct cluster *cluster)
{
	certs_free(&cluster->ca);
	certs_free(&cluster->server);
	certs_free(&cluster->client);
}

void cluster_write(const struct cluster *cluster, const char *name, const char *text)
{
	struct error error;

	expect_ok(durable_replace(folder_path(cluster->folder, name), text, strlen(text), 0600,
				  &error),
		  &error);
}

static void write_gpus(const struct cluster *cluster)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};

	fixture_scenario(&scenario);
	scenario_format(&scenario, &text);
	cluster_write(cluster, "gpus.toml", buf_text(&text));
}

static void write_kubeconfig(const struct cluster *cluster)
{
	CLEANUP(buf) struct buf text = {0}, pair = {0};
	struct error error;

	expect_ok(durable_make_folder(folder_path(cluster->folder, "etc/kubernetes"), 0700, &error),
		  &error);
	buf_printf(&pair, "%s%s", cluster->client.certificate, cluster->client.key);
	cluster_write(cluster, "etc/kubernetes/pair.pem", buf_text(&pair));
	cluster_write(cluster, "etc/kubernetes/ca.pem", cluster->ca.certificate);
	buf_printf(&text,
		   "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
		   "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d', "
		   "certificate-authority: ca.pem, tls-server-name: api.test}}]\n"
		   "users: [{name: u, user: {client-certificate: pair.pem, client-key: "
		   "pair.pem}}]\n",
		   fake_api_port(cluster->api));
	cluster_write(cluster, "etc/kubernetes/kubelet.conf", buf_text(&text));
}

static void read_config(struct cluster *cluster, bool units)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	buf_printf(&text,
		   "[paths]\nroot = '%s'\n[host]\nunits = %s\n[gpu]\nsource = 'sim'\n"
		   "sim_file = '%s'\n[kubernetes]\nnode_name = 'n1'\n",
		   *(const char **)cluster->folder, units ? "true" : "false",
		   folder_path(cluster->folder, "gpus.toml"));
	expect_ok(toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, "config.toml", &tree,
			     &error),
		  &error);
	expect_ok(config_read(tree, NULL, &cluster->config, &error), &error);
}

/* As an API server says to an identity that may list pods only. */
static const struct fake_api_answer NO_WATCH = {
	.status = 403,
	.body = "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\","
		"\"message\":\"no watch\",\"code\":403}",
};

void cluster_prepare(struct cluster *cluster, void **folder, const struct cluster_options *options)
{
	struct fake_api_options api = options->api;
	struct error error;

	cluster->folder = folder;
	api.certificate_pem = cluster->server.certificate;
	api.key_pem = cluster->server.key;
	if (!api.watches) {
		api.watches = &NO_WATCH;
		api.watches_count = 1;
	}
	cluster->api = fake_api_start(&api);
	read_config(cluster, options->units);
	expect_ok(durable_make_folder(folder_path(folder, "var/lib/bcd"), 0700, &error), &error);
	/* Nobody but this process. */
	expect_ok(durable_make_folder(folder_path(folder, "proc/self"), 0700, &error), &error);
	cluster_write(cluster, "proc/self/cgroup", "0::/bcd\n");
	write_gpus(cluster);
	write_kubeconfig(cluster);
	cluster->loop = loop_create();
	kubelet_start(&cluster->kubelet, cluster->loop, cluster->config.kubelet);
}

void cluster_begin(struct cluster *cluster, struct identity *identity)
{
	struct error error;

	expect_ok(node_create(cluster->loop, &cluster->config, identity, &cluster->node, &error),
		  &error);
}

const char *cluster_finish(struct cluster *cluster)
{
	node_destroy(TAKE(cluster->node));
	kubelet_rest(cluster->loop);
	kubelet_run(cluster->loop, 20);
	kubelet_stop(&cluster->kubelet);
	kubelet_run(cluster->loop, 20);
	loop_destroy(cluster->loop);
	config_deinit(&cluster->config);
	cluster->config = (struct config){0};
	return fake_api_finish(cluster->api);
}

struct wanted {
	struct fake_api *api;
	size_t requests;
};

static bool was_asked(void *arg)
{
	const struct wanted *wanted = arg;

	return fake_api_requests(wanted->api) >= wanted->requests;
}

void cluster_wait(struct cluster *cluster, size_t requests)
{
	struct wanted wanted = {cluster->api, requests};

	kubelet_pass_until(cluster->loop, was_asked, &wanted, 15000, "the API server is asked");
	kubelet_run(cluster->loop, 100);
}

const char *cluster_condition(const struct cluster *cluster, const char *type)
{
	static char message[2048];
	CLEANUP(tree) json_t *status = status_describe(cluster->node);
	const json_t *one, *conditions = json_object_get(status, "conditions");
	size_t i;

	json_array_foreach(conditions, i, one)
	{
		if (!str_equal(json_string_value(json_object_get(one, "type")), type))
			continue;
		str_copy(message, sizeof message,
			 json_string_value(json_object_get(one, "message")));
		return message;
	}
	return NULL;
}
