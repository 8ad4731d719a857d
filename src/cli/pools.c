#include "cli/commands.h"
#include "cli/verb.h"
#include "cli/view.h"

/* --- the policy, from a file or from flags --- */

/* Flags that put one string into policy.kubernetes. */
static const struct {
	const char *flag, *key;
} KUBERNETES_TEXTS[] = {
	{"api-server", "apiServer"},
	{"ca-cert-sha256", "caCertSha256"},
	{"join-token-ref", "joinTokenRef"},
	{"kubernetes-version", "kubernetesVersion"},
	{"gpu-api", "gpuApi"},
};

static bool add_labels(const struct options *options, json_t *kubernetes, struct error *error)
{
	const struct option_value *labels = options_value(options, "node-label");
	json_t *map;

	if (labels->list_count == 0)
		return true;
	map = json_object();
	tree_set(kubernetes, "labels", map);
	for (size_t i = 0; i < labels->list_count; i++) {
		const char *equals = strchr(labels->list[i], '=');
		CLEANUP(free) char *name = NULL;
		if (!equals || equals == labels->list[i])
			return error_set(error, ERROR_INVALID_INPUT,
					 "--node-label: '%s' is not NAME=VALUE", labels->list[i]);
		name = mem_dup(labels->list[i], (size_t)(equals - labels->list[i]) + 1);
		name[equals - labels->list[i]] = '\0';
		if (json_object_get(map, name))
			return error_set(error, ERROR_INVALID_INPUT,
					 "--node-label: '%s' is given twice", name);
		tree_set(map, name, tree_string(equals + 1));
	}
	return true;
}

static void add_taints(const struct options *options, json_t *kubernetes)
{
	const struct option_value *taints = options_value(options, "node-taint");
	json_t *list;

	if (taints->list_count == 0)
		return;
	list = json_array();
	tree_set(kubernetes, "taints", list);
	for (size_t i = 0; i < taints->list_count; i++)
		tree_append(list, tree_string(taints->list[i]));
}

static bool policy_from_flags(const struct options *options, json_t **ret_policy,
			      struct error *error)
{
	CLEANUP(tree) json_t *policy = json_object(), *kubernetes = json_object();
	const char *placement = options_text(options, "placement");

	for (size_t i = 0; i < ARRAY_SIZE(KUBERNETES_TEXTS); i++) {
		const char *text = options_text(options, KUBERNETES_TEXTS[i].flag);
		if (text)
			tree_set(kubernetes, KUBERNETES_TEXTS[i].key, tree_string(text));
	}
	if (options_given(options, "platform-operated"))
		tree_set(kubernetes, "platformOperated", json_true());
	if (!add_labels(options, kubernetes, error))
		return false;
	add_taints(options, kubernetes);
	if (json_object_size(kubernetes) > 0 || options_given(options, "kubernetes"))
		tree_set(policy, "kubernetes", json_incref(kubernetes));
	if (placement)
		tree_set(policy, "placement", tree_string(placement));
	*ret_policy = TAKE(policy);
	return true;
}

static bool read_policy(const struct options *options, json_t **ret_policy, struct error *error)
{
	CLEANUP(tree) json_t *from_flags = NULL;
	const char *path = options_text(options, "policy");

	if (!policy_from_flags(options, &from_flags, error))
		return false;
	if (path && json_object_size(from_flags) > 0) {
		error_set(error, ERROR_INVALID_INPUT,
			  "the policy is given twice, by --policy and by "
			  "other flags");
		return error_hint(error, "Put it all into the file, or leave --policy out.");
	}
	if (path)
		return cli_read_json(path, ret_policy, error);
	*ret_policy = TAKE(from_flags);
	return true;
}

/* --- verbs --- */

static bool create(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object(), *policy = NULL;

	if (!read_policy(cli->options, &policy, error) || !verb_body(cli, body, error))
		return false;
	tree_set(body, "policy", TAKE(policy));
	return verb_post(cli, body, error);
}

static bool check_create(struct cli *cli, struct error *error)
{
	bool site = options_given(cli->options, "site"),
	     model = options_given(cli->options, "gpu-model");

	if (site && model)
		return true;
	error_set(error, ERROR_INVALID_INPUT, "%s",
		  site    ? "--gpu-model is needed"
		  : model ? "--site is needed"
			  : "--site and --gpu-model are needed");
	return error_hint(error, "Say where its machines stand, and what they have: --site SITE "
				 "--gpu-model H100. All sites: better-compute sites");
}

static bool update(struct cli *cli, struct error *error)
{
	const struct options *options = cli->options;
	CLEANUP(tree) json_t *body = json_object(), *policy = NULL;

	if (!read_policy(options, &policy, error))
		return false;
	if (json_object_size(policy) > 0 || options_given(options, "policy"))
		tree_set(body, "policy", TAKE(policy));
	if (!verb_body(cli, body, error))
		return false;
	if (json_object_size(body) == 1)
		json_object_del(body, "ifVersion"); /* by itself it changes nothing */
	return verb_patch(
		cli, body,
		"Give the whole new policy, by --policy FILE or by flags, or --name NAME.", error);
}

static bool archive(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *pool = NULL;

	if (!noun_fetch(cli, NOUN_POOL, cli->options->operands[0], &pool, error))
		return false;
	const char *id = view_text(pool, "id");
	long long nodes = (long long)view_number(pool, "nodes");
	const char *booked = verb_count(cli, NOUN_RESERVATION, "poolId", id);
	const char *question = arena_printf(
		&cli->arena,
		"archiving pool '%s' ends new reservations on its %lld node%s for good; %s live",
		view_text(pool, "name"), nodes, nodes == 1 ? "" : "s",
		booked ? arena_printf(&cli->arena, "%s still", booked) : "no reservation is");
	return verb_confirm(cli, id, "archive", NULL, question, error) &&
	       verb_act(cli, id, "archive", NULL, error);
}

static const char *const GPU_APIS[] = {"device-plugin", "dra", NULL};
static const char *const PLACEMENTS[] = {"bin-pack", "spread", NULL};

#define POLICY_OPTIONS                                                                               \
	{"policy", 0, OPTION_TEXT, "FILE", "the policy as a JSON file, - for stdin", 0, 0, NULL},    \
		{"kubernetes", 0, OPTION_FLAG, NULL, "its GPUs go to kubelets", 0, 0, NULL},         \
		{"platform-operated",                                                                \
		 0,                                                                                  \
		 OPTION_FLAG,                                                                        \
		 NULL,                                                                               \
		 "the platform operates the cluster",                                                \
		 0,                                                                                  \
		 0,                                                                                  \
		 NULL},                                                                              \
		{"api-server", 0, OPTION_TEXT, "URL", "the cluster that machines join", 0, 0, NULL}, \
		{"ca-cert-sha256",                                                                   \
		 0,                                                                                  \
		 OPTION_TEXT,                                                                        \
		 "PIN",                                                                              \
		 "its CA: sha256:<64 hex digits>",                                                   \
		 0,                                                                                  \
		 0,                                                                                  \
		 NULL},                                                                              \
		{"join-token-ref",                                                                   \
		 0,                                                                                  \
		 OPTION_TEXT,                                                                        \
		 "REF",                                                                              \
		 "its join token: secret://TENANT/ID",                                               \
		 0,                                                                                  \
		 0,                                                                                  \
		 NULL},                                                                              \
		{"kubernetes-version", 0, OPTION_TEXT, "VERSION", "such as 1.34.1", 0, 0, NULL},     \
		{"gpu-api",                                                                          \
		 0,                                                                                  \
		 OPTION_TEXT,                                                                        \
		 "API",                                                                              \
		 "device-plugin (default) or dra, which no bcd offers yet",                          \
		 0,                                                                                  \
		 0,                                                                                  \
		 GPU_APIS},                                                                          \
		{"node-label", 0, OPTION_LIST, "NAME=VALUE", "label of its nodes; repeatable", 0, 0, \
		 NULL},                                                                              \
		{"node-taint", 0, OPTION_LIST, "TAINT", "key=value:Effect; repeatable", 0, 0, NULL}, \
	{                                                                                            \
		"placement", 0, OPTION_TEXT, "HOW", "bin-pack (default) or spread", 0, 0,            \
			PLACEMENTS                                                                   \
	}

static const struct option CREATE_OPTIONS[] = {
	{"tenant", 0, OPTION_TEXT, "TENANT", "whose pool it is", 0, 0, NULL},
	{"site", 0, OPTION_TEXT, "SITE", "where its machines stand", 0, 0, NULL},
	{"gpu-model", 0, OPTION_TEXT, "MODEL", "such as H100", 0, 0, NULL},
	{"class", 0, OPTION_TEXT, "CLASS", "metal-host (default)", 0, 0, NULL},
	POLICY_OPTIONS,
	{0},
};

static const struct option UPDATE_OPTIONS[] = {
	{"name", 0, OPTION_TEXT, "NAME", "its new name", 0, 0, NULL},
	{"if-version", 0, OPTION_NUMBER, "N", "refuse if somebody changed it since", 1, INT64_MAX,
	 NULL},
	POLICY_OPTIONS,
	{0},
};

static const struct verb_field CREATE_FIELDS[] = {
	FIELD_TENANT,
	FIELD_ID("siteId", "site", NOUN_SITE),
	FIELD_OPERAND("name"),
	FIELD_TEXT_OR("class", "class", "metal-host"),
	FIELD_TEXT("gpuModel", "gpu-model"),
	{0},
};
static const struct verb_field UPDATE_FIELDS[] = {
	FIELD_TEXT("name", "name"), FIELD_NUMBER("ifVersion", "if-version"), {0}};

#define POOLS .noun = "pools", .names = NOUN_POOL

const struct command POOL_COMMANDS[] = {
	{
		POOLS,
		.verb = "list",
		.summary = "list the pools",
		.flags = COMMAND_DEFAULT | COMMAND_DAILY | COMMAND_API | COMMAND_OUTPUT,
		.example = "better-compute pools -o wide\n",
		.run = verb_list,
	},
	{
		POOLS,
		VERB_CREATES,
		VERB_ONE("NAME"),
		.summary = "make a pool of machines",
		.options = CREATE_OPTIONS,
		.more = "The policy comes from a JSON file, or from the flags after --policy.",
		.example = "better-compute pools create h200 --site local --gpu-model H200 "
			   "--kubernetes\n",
		.check = check_create,
		.fields = CREATE_FIELDS,
		.run = create,
	},
	{
		POOLS,
		VERB_SHOWS("POOL"),
		.summary = "show one pool",
		.example = "better-compute pools show h200 -o json\n",
	},
	{
		POOLS,
		VERB_CHANGES("update", "POOL"),
		.summary = "replace a pool's policy, or rename it",
		.options = UPDATE_OPTIONS,
		.more = "The policy given is the whole new one. Changed taints reach only machines "
			"that register afterwards.",
		.example = "better-compute pools update h200 --kubernetes --placement spread\n",
		.fields = UPDATE_FIELDS,
		.run = update,
	},
	{
		POOLS,
		VERB_ASKS("archive", "POOL"),
		.summary = "take no new reservations in a pool",
		.example = "better-compute pools archive h200 --yes\n",
		.run = archive,
	},
	{0},
};
