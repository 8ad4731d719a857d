#include "cluster.h"

#include "core/fixture.h"
#include "lib/folder.h"
#include "node/status.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "text/toml.h"
#include "text/tree.h"

struct cluster cluster;

int cluster_set_up(void **state UNUSED)
{
	log_set_level(LOG_ERROR);
	cluster.ca = certs_make(&(struct certs_options){.name = "ca", .is_ca = true});
	cluster.server =
		certs_make(&(struct certs_options){.name = "api.test", .issuer = &cluster.ca});
	cluster.client = certs_make(
		&(struct certs_options){.name = "system:node:n1", .issuer = &cluster.ca});
	return 0;
}

int cluster_tear_down(void **state UNUSED)
{
	certs_free(&cluster.ca);
	certs_free(&cluster.server);
	certs_free(&cluster.client);
	return 0;
}

void cluster_write(const struct cluster *it, const char *name, const char *text)
{
	struct error error;

	expect_ok(durable_replace(folder_path(it->folder, name), text, strlen(text), 0600, &error),
		  &error);
}

static void write_gpus(const struct cluster *it)
{
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0};

	fixture_scenario(&scenario);
	scenario_format(&scenario, &text);
	cluster_write(it, "gpus.toml", buf_text(&text));
}

static void write_kubeconfig(const struct cluster *it)
{
	CLEANUP(buf) struct buf text = {0}, pair = {0};
	struct error error;

	expect_ok(durable_make_folder(folder_path(it->folder, "etc/kubernetes"), 0700, &error),
		  &error);
	buf_printf(&pair, "%s%s", it->client.certificate, it->client.key);
	cluster_write(it, "etc/kubernetes/pair.pem", buf_text(&pair));
	cluster_write(it, "etc/kubernetes/ca.pem", it->ca.certificate);
	buf_printf(&text,
		   "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
		   "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d', "
		   "certificate-authority: ca.pem, tls-server-name: api.test}}]\n"
		   "users: [{name: u, user: {client-certificate: pair.pem, client-key: "
		   "pair.pem}}]\n",
		   fake_api_port(it->api));
	cluster_write(it, "etc/kubernetes/kubelet.conf", buf_text(&text));
}

static void read_config(struct cluster *it, bool units)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	buf_printf(&text,
		   "[paths]\nroot = '%s'\n[host]\nunits = %s\n[gpu]\nsource = 'sim'\n"
		   "sim_file = '%s'\n[kubernetes]\nnode_name = 'n1'\n",
		   *(const char **)it->folder, units ? "true" : "false",
		   folder_path(it->folder, "gpus.toml"));
	expect_ok(toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, "config.toml", &tree,
			     &error),
		  &error);
	expect_ok(config_read(tree, NULL, &it->config, &error), &error);
}

/* As an API server says to an identity that may list pods only. */
static const struct fake_api_answer NO_WATCH = {
	.status = 403,
	.body = "{\"kind\":\"Status\",\"status\":\"Failure\",\"reason\":\"Forbidden\","
		"\"message\":\"no watch\",\"code\":403}",
};

void cluster_prepare(struct cluster *it, void **folder, const struct cluster_options *options)
{
	struct fake_api_options api = options->api;
	struct error error;

	it->folder = folder;
	api.certificate_pem = it->server.certificate;
	api.key_pem = it->server.key;
	if (!api.watches) {
		api.watches = &NO_WATCH;
		api.watches_count = 1;
	}
	it->api = fake_api_start(&api);
	read_config(it, options->units);
	expect_ok(durable_make_folder(folder_path(folder, "var/lib/bcd"), 0700, &error), &error);
	/* Nobody but this process. */
	expect_ok(durable_make_folder(folder_path(folder, "proc/self"), 0700, &error), &error);
	cluster_write(it, "proc/self/cgroup", "0::/bcd\n");
	write_gpus(it);
	write_kubeconfig(it);
	it->loop = loop_create();
	kubelet_start(&it->kubelet, it->loop, it->config.kubelet);
}

void cluster_begin(struct cluster *it, struct identity *identity)
{
	struct error error;

	expect_ok(node_create(it->loop, &it->config, identity, &it->node, &error), &error);
}

const char *cluster_finish(struct cluster *it)
{
	node_destroy(TAKE(it->node));
	kubelet_rest(it->loop);
	kubelet_run(it->loop, 20);
	kubelet_stop(&it->kubelet);
	kubelet_run(it->loop, 20);
	loop_destroy(it->loop);
	config_deinit(&it->config);
	it->config = (struct config){0};
	return fake_api_finish(it->api);
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

void cluster_wait(struct cluster *it, size_t requests)
{
	struct wanted wanted = {it->api, requests};

	kubelet_pass_until(it->loop, was_asked, &wanted, 15000, "the API server is asked");
	kubelet_run(it->loop, 100);
}

const char *cluster_condition(const struct cluster *it, const char *type)
{
	static char message[2048];
	CLEANUP(tree) json_t *status = status_describe(it->node);
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
