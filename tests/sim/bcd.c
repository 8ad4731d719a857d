/* bcd's process: its configuration and identity on the simulated disk, and its node on a loop. */
#include "node/identity.h"
#include "node/node.h"
#include "node/status.h"
#include "sim/programs.h"
#include "sim/sim_faults.h"
#include "sim/sim_fs.h"
#include "sim/sim_pods.h"
#include "text/toml.h"

#include <stdio.h>

static const char configuration[] =
	"[paths]\n"
	"root = \"" NODE_ROOT "\"\n"
	"[gateway]\n"
	"addresses = [\"" GATEWAY_ADDRESS "\", \"" GATEWAY_ADDRESS_2 "\"]\n"
	"server_name = \"gateway.test\"\n"
	"ca_pins = \"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"\n"
	"[host]\n"
	"units = false\n"
	"[gpu]\n"
	"source = \"sim\"\n"
	"sim_file = \"" NODE_GPUS "\"\n"
	"[kubernetes]\n"
	"node_name = \"node-1\"\n";

static struct {
	struct config config;
	struct identity identity;
	struct node *node;
} bcd;

static void must(bool ok, const struct error *error)
{
	if (ok)
		return;
	fprintf(stderr, "sim: setting up bcd: %s\n", error->what);
	abort();
}

void bcd_prepare(const char *node_id, const char *certificate_pem, const char *key_pem)
{
	CLEANUP(identity) struct identity identity = {0};
	struct error error;
	str_copy(identity.node_id, sizeof identity.node_id, node_id);
	str_copy(identity.trust, sizeof identity.trust, "platform");
	str_copy(identity.gateway_address, sizeof identity.gateway_address, GATEWAY_ADDRESS);
	str_copy(identity.gateway_server_name, sizeof identity.gateway_server_name, "gateway.test");
	buf_add_text(&identity.certificate_pem, certificate_pem);
	buf_add_text(&identity.key_pem, key_pem);
	sim_fs_put(NODE_DATA "/made", "");
	must(identity_store(NODE_DATA, &identity, &error), &error);
	/* What an operator's machine has before any of it starts. */
	sim_fs_put(NODE_ROOT "/etc/kubernetes/kubelet.conf",
		   "current-context: x\n"
		   "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
		   "clusters: [{name: c, cluster: {server: 'https://api.test'}}]\n"
		   "users: [{name: u, user: {token: secret}}]\n");
	sim_fs_put(NODE_CDI "/README", "");
	sim_fs_put(NODE_ROOT "/run/bcd/README", "");
}

void bcd_start(struct sim_process *process)
{
	uint64_t faults = sim_faults_all();
	CLEANUP(tree) json_t *tree = NULL;
	struct loop *loop = loop_create();
	struct error error;
	must(toml_parse(configuration, sizeof configuration - 1, CONFIG_MAX_FILE, "config.toml",
			&tree, &error),
	     &error);
	must(config_read(tree, NULL, &bcd.config, &error), &error);
	must(identity_load(NODE_DATA, &bcd.identity, &error), &error);
	if (!node_create(loop, &bcd.config, &bcd.identity, &bcd.node, &error)) {
		sim_trace("bcd does not start: %s", error.what);
		bcd.node = NULL;
		if (sim_effective() && sim_faults_all() == faults)
			sim_broken("bcd does not start: %s", error.what);
		else if (sim_effective())
			process->dying = SIM_KILLED; /* who started it starts it again */
	}
}

void bcd_destroy(struct sim_process *process UNUSED)
{
	node_destroy(TAKE(bcd.node));
	sim_pods_bcd_ends();
	identity_deinit(&bcd.identity);
	config_deinit(&bcd.config);
	bcd.identity = (struct identity){0};
	bcd.config = (struct config){0};
}

json_t *bcd_status(void)
{
	return bcd.node ? status_describe(bcd.node) : json_object();
}

void bcd_show(void)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = bcd_status();

	tree_dump_pretty(&text, tree);
	printf("%s", buf_text(&text));
}
