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

/* What --unset may take out: each flag's own part; of `kubernetes`, the whole. */
#define UNSET_KUBERNETES "kubernetes"
#define UNSET_LABELS     "node-label"
#define UNSET_TAINTS     "node-taint"
#define UNSET_PLATFORM   "platform-operated"
#define UNSET_PLACEMENT  "placement"

static bool add_label(json_t *labels, json_t *given, const char *text, struct error *error)
{
	const char *equals = strchr(text, '=');
	CLEANUP(free) char *name = NULL;

	if (!equals || equals == text) {
		error_set(error, ERROR_INVALID_INPUT, "--node-label: '%s' is not NAME=VALUE", text);
		return error_hint(
			error, "To take all labels out: pools update POOL --unset " UNSET_LABELS);
	}
	name = mem_dup(text, (size_t)(equals - text) + 1);
	name[equals - text] = '\0';
	if (json_object_get(given, name))
		return error_set(error, ERROR_INVALID_INPUT, "--node-label: '%s' is given twice",
				 name);
	tree_set(given, name, json_true());
	tree_set(labels, name, tree_string(equals + 1));
	return true;
}

/* One label each: the others stay. */
static bool add_labels(const struct options *options, json_t *kubernetes, struct error *error)
{
	const struct option_value *texts = options_value(options, "node-label");
	CLEANUP(tree) json_t *given = json_object();
	json_t *labels = json_object_get(kubernetes, "labels");

	if (texts->list_count > 0 && !json_is_object(labels)) {
		labels = json_object();
		tree_set(kubernetes, "labels", labels);
	}
	for (size_t i = 0; i < texts->list_count; i++) {
		if (!add_label(labels, given, texts->list[i], error))
			return false;
	}
	return true;
}

/* "key=value:Effect" stands for the same taint as another with its key and effect. */
static bool same_taint(const char *a, const char *b)
{
	size_t key = strcspn(a, "=:");
	const char *a_effect = strrchr(a, ':'), *b_effect = strrchr(b, ':');

	return key == strcspn(b, "=:") && strncmp(a, b, key) == 0 && a_effect && b_effect &&
	       str_equal(a_effect, b_effect);
}

static void add_taints(const struct options *options, json_t *kubernetes)
{
	const struct option_value *texts = options_value(options, "node-taint");
	json_t *taints = json_object_get(kubernetes, "taints");

	if (texts->list_count > 0 && !json_is_array(taints)) {
		taints = json_array();
		tree_set(kubernetes, "taints", taints);
	}
	for (size_t i = 0; i < texts->list_count; i++) {
		size_t at = 0;

		while (at < json_array_size(taints)) {
			const char *there = json_string_value(json_array_get(taints, at));
			if (there && same_taint(there, texts->list[i]))
				break;
			at++;
		}
		if (at < json_array_size(taints))
			json_array_set_new(taints, at, tree_string(texts->list[i]));
		else
			tree_append(taints, tree_string(texts->list[i]));
	}
}

static void take_out(json_t *policy, const char *part)
{
	json_t *kubernetes = json_object_get(policy, "kubernetes");

	if (str_equal(part, UNSET_KUBERNETES))
		json_object_del(policy, "kubernetes");
	else if (str_equal(part, UNSET_PLACEMENT))
		json_object_del(policy, "placement");
	else if (str_equal(part, UNSET_PLATFORM))
		json_object_del(kubernetes, "platformOperated");
	else if (str_equal(part, UNSET_LABELS))
		json_object_del(kubernetes, "labels");
	else if (str_equal(part, UNSET_TAINTS))
		json_object_del(kubernetes, "taints");
	for (size_t i = 0; i < ARRAY_SIZE(KUBERNETES_TEXTS); i++) {
		if (str_equal(part, KUBERNETES_TEXTS[i].flag))
			json_object_del(kubernetes, KUBERNETES_TEXTS[i].key);
	}
}

/* Puts what flags say into a policy; the rest of it stays. */
static bool apply_flags(const struct options *options, json_t *policy, struct error *error)
{
	CLEANUP(tree) json_t *kubernetes = json_object();
	const char *placement = options_text(options, "placement");

	if (json_is_object(json_object_get(policy, "kubernetes")))
		json_object_update(kubernetes, json_object_get(policy, "kubernetes"));
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
	return true;
}

/* The first flag given that is about the policy; NULL when none is. */
static const char *policy_flag(const struct options *options)
{
	static const char *const OTHERS[] = {"kubernetes", "platform-operated", "node-label",
					     "node-taint", "placement"};

	for (size_t i = 0; i < ARRAY_SIZE(KUBERNETES_TEXTS); i++) {
		if (options_given(options, KUBERNETES_TEXTS[i].flag))
			return KUBERNETES_TEXTS[i].flag;
	}
	for (size_t i = 0; i < ARRAY_SIZE(OTHERS); i++) {
		if (options_given(options, OTHERS[i]))
			return OTHERS[i];
	}
	return NULL;
}

/* A file is the whole policy. */
static bool check_given_once(const struct options *options, const char *flag, struct error *error)
{
	if (!flag || !options_given(options, "policy"))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "the policy is given twice, by --policy and by --%s",
		  flag);
	return error_hint(error, "Put it all into the file, or leave --policy out.");
}

/* --- verbs --- */

static bool create(struct cli *cli, struct error *error)
{
	const char *path = options_text(cli->options, "policy");
	CLEANUP(tree) json_t *body = json_object(), *policy = NULL;

	if (path && !cli_read_json(path, &policy, error))
		return false;
	if (!path) {
		policy = json_object();
		if (!apply_flags(cli->options, policy, error))
			return false;
	}
	if (!verb_body(cli, body, error))
		return false;
	tree_set(body, "policy", TAKE(policy));
	return verb_post(cli, body, error);
}

static bool check_create(struct cli *cli, struct error *error)
{
	bool site = options_given(cli->options, "site"),
	     model = options_given(cli->options, "gpu-model");

	if (!check_given_once(cli->options, policy_flag(cli->options), error))
		return false;
	if (site && model)
		return true;
	error_set(error, ERROR_INVALID_INPUT, "%s",
		  site    ? "--gpu-model is needed"
		  : model ? "--site is needed"
			  : "--site and --gpu-model are needed");
	return error_hint(error, "Say where its machines stand, and what they have: --site SITE "
				 "--gpu-model H100. All sites: better-compute sites");
}

static bool check_update(struct cli *cli, struct error *error)
{
	const struct options *options = cli->options;
	const char *flag = policy_flag(options);

	return check_given_once(options,
				flag                              ? flag
				: options_given(options, "unset") ? "unset"
								  : NULL,
				error);
}

/* The policy that is there, with what flags say; and the version it was of, so that nothing that
 * somebody else changed meanwhile is put back. */
static bool changed_policy(struct cli *cli, const json_t *pool, json_t *body, struct error *error)
{
	const struct option_value *parts = options_value(cli->options, "unset");
	const json_t *now = json_object_get(pool, "policy");
	CLEANUP(tree) json_t *policy = json_is_object(now) ? json_deep_copy(now) : json_object();

	for (size_t i = 0; i < parts->list_count; i++)
		take_out(policy, parts->list[i]);
	if (!apply_flags(cli->options, policy, error))
		return false;
	tree_set(body, "policy", TAKE(policy));
	if (!json_object_get(body, "ifVersion"))
		tree_set(body, "ifVersion", json_integer((json_int_t)view_number(pool, "version")));
	return true;
}

static bool update_by_flags(struct cli *cli, json_t *body, struct error *error)
{
	bool own_version = !options_given(cli->options, "if-version");
	CLEANUP(tree) json_t *pool = NULL;

	if (!noun_fetch(cli, NOUN_POOL, cli->options->operands[0], &pool, error) ||
	    !changed_policy(cli, pool, body, error))
		return false;
	if (verb_patch_id(cli, view_text(pool, "id"), body, error))
		return true;
	if (own_version && error->code == ERROR_CONFLICT && !options_given(cli->options, "name"))
		error_hint(error, "Somebody changed it at the same time: say it again.");
	return false;
}

static bool update(struct cli *cli, struct error *error)
{
	const struct options *options = cli->options;
	const char *path = options_text(options, "policy");
	CLEANUP(tree) json_t *body = json_object(), *policy = NULL;

	if (path && !cli_read_json(path, &policy, error))
		return false;
	if (path)
		tree_set(body, "policy", TAKE(policy));
	if (!verb_body(cli, body, error))
		return false;
	if (policy_flag(options) || options_given(options, "unset"))
		return update_by_flags(cli, body, error);
	if (json_object_size(body) == 1)
		json_object_del(body, "ifVersion"); /* by itself it changes nothing */
	return verb_patch(cli, body,
			  "Say what of its policy, by flags; the whole of it, by --policy FILE; or "
			  "--name NAME.",
			  error);
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

static const char *const UNSET_PARTS[] = {
	UNSET_KUBERNETES, UNSET_PLATFORM,       "api-server", "ca-cert-sha256",
	"join-token-ref", "kubernetes-version", "gpu-api",    UNSET_LABELS,
	UNSET_TAINTS,     UNSET_PLACEMENT,      NULL};

static const struct option UPDATE_OPTIONS[] = {
	{"name", 0, OPTION_TEXT, "NAME", "its new name", 0, 0, NULL},
	{"if-version", 0, OPTION_NUMBER, "N", "refuse if somebody changed it since", 1, INT64_MAX,
	 NULL},
	{"unset", 0, OPTION_LIST, "PART",
	 "take it out of the policy: a flag's name, such as placement, or kubernetes, all of that; "
	 "repeatable",
	 0, 0, UNSET_PARTS},
	POLICY_OPTIONS,
	VERB_OWNER,
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
		.options = VERB_OWNERS_OPTIONS,
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
		.options = VERB_OWNER_OPTIONS,
		.example = "better-compute pools show h200 -o json\n",
	},
	{
		POOLS,
		VERB_CHANGES("update", "POOL"),
		.summary = "change a pool's policy, or rename it",
		.options = UPDATE_OPTIONS,
		.more = "Each flag changes its own part of the policy, --unset takes one out, and "
			"the rest stays: a label or taint given is set beside the others. The file "
			"of --policy is the whole new policy. Changed taints reach only machines "
			"that register afterwards.",
		.example = "better-compute pools update h200 --placement spread\n"
			   "better-compute pools update h200 --unset placement --dry-run\n",
		.check = check_update,
		.fields = UPDATE_FIELDS,
		.run = update,
	},
	{
		POOLS,
		VERB_ASKS("archive", "POOL"),
		.summary = "take no new reservations in a pool",
		.options = VERB_OWNER_OPTIONS,
		.example = "better-compute pools archive h200 --yes\n",
		.run = archive,
	},
	{0},
};
