/*
 * kubernetes: what runs bcd on the nodes of a cluster that exists already.
 *
 * The order matters: all that can be refused is refused, everything is rendered, and the files are
 * there, before a token exists (MAN-3, MAN-63).
 */
#include "cli/api.h"
#include "cli/commands.h"
#include "cli/guard.h"
#include "cli/hosting.h"
#include "cli/hosting_files.h"
#include "cli/hosting_token.h"
#include "cli/join_tokens.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/view.h"
#include "sys/answer.h"

/* One run. */
struct job {
	struct cli *cli;
	json_t *options; /* of the manifests */
	struct settings settings;
	json_t *objects;
	struct buf text; /* they, as asked for */
	struct chart chart;
	struct hosting_files files;
	bool mints;
	json_t *pool; /* NULL unless it mints */
	struct hosting_token token;
};

static void job_cleanup(struct job *job)
{
	json_decref(job->options);
	json_decref(job->objects);
	json_decref(job->pool);
	settings_deinit(&job->settings);
	buf_deinit(&job->text);
	chart_deinit(&job->chart);
}

static const char *text_of(const struct job *job, const char *option)
{
	return options_text(job->cli->options, option);
}

/* --- what can be refused without asking anybody --- */

static bool needed(const struct job *job, const char *option, const char *why, struct error *error)
{
	if (options_given(job->cli->options, option))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "--%s is needed", option);
	return error_hint(error, "%s", why);
}

/* With --options the file says how to render, and flags only which image, where to and which token. */
static bool check_flags(const struct job *job, struct error *error)
{
	const struct options *options = job->cli->options;

	for (const struct verb_field *field = HOSTING_FIELDS; field->key; field++) {
		if (!str_equal(field->option, "image") &&
		    !options_exclude(options, "options", field->option, error))
			return false;
	}
	if (!options_exclude(options, "options", "host-units", error) ||
	    !options_exclude(options, "options", "control-plane", error) ||
	    !options_exclude(options, "options", "options-out", error) ||
	    !options_exclude(options, "helm", "out", error) ||
	    !options_exclude(options, "helm", "output", error))
		return false;
	if (!job->mints)
		return options_need(options, "tenant", "secret-out", error) &&
		       options_need(options, "ttl", "secret-out", error) &&
		       options_need(options, "max-uses", "secret-out", error) &&
		       options_need(options, "key", "secret-out", error);
	return true;
}

/* What `up` wrote down for its own bookings: nobody named it. */
static bool is_of_up(struct cli *cli, const struct context_value *value)
{
	const char *state = cli->context.values[CONTEXT_STATE].text;

	return value->text && state &&
	       str_equal(value->origin, arena_printf(&cli->arena, "%s/" CONTEXT_FILE, state));
}

/* The flag's, else the environment's or the configuration's: one that a person named. */
static struct context_value pool_named(const struct job *job)
{
	const char *given = text_of(job, "pool");
	const struct context_value *value = &job->cli->context.values[CONTEXT_POOL];

	if (given)
		return (struct context_value){given, "--pool"};
	return is_of_up(job->cli, value) ? (struct context_value){0} : *value;
}

static const char *pool_text(const struct job *job)
{
	return pool_named(job).text;
}

/* All that is missing is said at once, rather than one after the other. */
static bool check_missing(const struct job *job, struct error *error)
{
	CLEANUP(buf) struct buf names = {0};
	size_t count = 0;

	if (!pool_text(job))
		hosting_name(&names, &count, "pool");
	if (!options_given(job->cli->options, "secret-out"))
		hosting_name(&names, &count, "secret-out");
	if (!options_given(job->cli->options, "options"))
		hosting_missing(job->cli, &names, &count);
	if (count > 1) {
		error_set(error, ERROR_INVALID_INPUT, "missing: %s", buf_text(&names));
		return error_hint(
			error,
			"The pool that nodes join; a new file for the token's Secret; bcd's "
			"image by digest; the pins as 'better-compute pki show' prints them; "
			"the API's https address. See: better-compute kubernetes manifest "
			"--help");
	}
	return (pool_text(job) ||
		needed(job, "pool", "Name the pool that the nodes join: --pool POOL", error)) &&
	       needed(job, "secret-out", "The token goes into a new file alone: --secret-out FILE",
		      error);
}

static bool check_alone(struct job *job, struct error *error)
{
	struct cli *cli = job->cli;
	const char *url;

	if (!check_flags(job, error))
		return false;
	if (job->mints && !(context_inspect(cli->options, &cli->arena, &cli->context, error) &&
			    check_missing(job, error)))
		return false;
	if (!hosting_files_check(&job->files, error))
		return false;
	if (!hosting_options(cli, &job->options, error))
		return false;
	if (!options_given(cli->options, "options") && !hosting_control_plane(cli, &url, error))
		return false;
	if (manifest_read(job->options, &job->settings, error))
		return true;
	if (options_given(cli->options, "options"))
		return error_wrap(error, "'%s'", text_of(job, "options"));
	hosting_name_pin(cli, error);
	return false;
}

/* --- what the control plane says --- */

static bool find_pool(struct job *job, struct error *error)
{
	struct cli *cli = job->cli;
	const char *tenant, *owner, *site;

	if (!context_load(cli->options, &cli->arena, &cli->context, error))
		return false;
	cli->api = api_create(&cli->context);
	if (!noun_fetch(cli, NOUN_POOL, pool_text(job), &job->pool, error) ||
	    !cli_tenant(cli, &tenant, error))
		return false;
	owner = view_text(job->pool, "tenantId");
	site = view_text(job->pool, "siteId");
	if (!owner || !str_equal(owner, tenant)) {
		error_set(error, ERROR_NOT_FOUND, "pool '%s' is not of tenant '%s'", pool_text(job),
			  tenant);
		return text_of(job, "tenant")
			       ? false
			       : error_hint(error,
					    "That is %s; name the pool's owner: --tenant "
					    "TENANT, or BETTER_COMPUTE_TENANT",
					    cli->context.values[CONTEXT_TENANT].text
						    ? cli->context.values[CONTEXT_TENANT].origin
						    : "the key's tenant");
	}
	if (!job->settings.site_id || (site && str_equal(site, job->settings.site_id)))
		return true;
	return error_set(error, ERROR_INVALID_CONFIG, "'%s': siteId: the pool's site is '%s'",
			 text_of(job, "options"), site ? site : "unknown");
}

/* The gateway, the key and the site are added, and everything is read again. */
static bool ask(struct job *job, struct error *error)
{
	if (!job->mints)
		return true;
	if (!find_pool(job, error))
		return false;
	if (options_given(job->cli->options, "options"))
		return hosting_check_pins(job->cli, &job->settings, error) ||
		       error_wrap(error, "'%s'", text_of(job, "options"));
	if (!hosting_ask(job->cli, &job->settings, job->pool, job->options, error))
		return false;
	settings_deinit(&job->settings);
	job->settings = (struct settings){0};
	return manifest_read(job->options, &job->settings, error);
}

/* --- rendering --- */

static bool render(struct job *job, struct error *error)
{
	const char *output = text_of(job, "output");

	/* A chart leaves it to whoever installs whether the Namespace is made. */
	if (job->files.helm)
		job->settings.create_namespace = true;
	if (!manifest_objects(&job->settings, &job->objects, error))
		return options_given(job->cli->options, "options")
			       ? error_wrap(error, "'%s'", text_of(job, "options"))
			       : false;
	if (job->files.helm)
		chart_make(&job->settings, job->objects, BC_VERSION, &job->chart);
	else if (output && str_equal(output, "yaml"))
		render_yaml(job->objects, &job->text);
	else
		render_json(job->objects, &job->text);
	return true;
}

/* --- the token, in its Secret, and what was rendered --- */

static void print(struct job *job)
{
	if (!job->files.out && !job->files.helm)
		output_text(&job->text);
}

/* Without the manifests the token can't be told to anybody who waits for them either (MAN-63). */
static bool hand_over(struct job *job, const json_t *token, struct error *error)
{
	CLEANUP(tree)
	json_t *secret =
		objects_secret(&job->settings, view_text(token, "id"), view_text(token, "token"));

	if (!guard_check(error) || !hosting_files_secret(&job->files, secret, error))
		return false;
	print(job);
	return guard_check(error) && answer_flush(error) && guard_commit(error);
}

static bool mint(struct job *job, json_t **ret_token, struct error *error)
{
	CLEANUP(tree) json_t *token = NULL;

	if (!guard_check(error) || !hosting_token_mint(job->cli, &job->token, &token, error))
		return false;
	if (!hand_over(job, token, error))
		return hosting_token_take_back(job->cli, view_text(token, "id"), error);
	*ret_token = TAKE(token);
	return true;
}

static bool make(struct job *job, json_t **ret_token, struct error *error)
{
	bool ok;

	if (job->mints)
		guard_begin("note: what was begun is taken back first\n");
	ok = hosting_files_make(&job->files, error) && (!job->mints || mint(job, ret_token, error));
	if (!ok)
		hosting_files_remove(&job->files);
	else if (!job->mints)
		print(job);
	if (job->mints)
		guard_end();
	return ok;
}

/* --- what to do next --- */

static void remind_of_order(struct job *job)
{
	const char *namespace = job->settings.namespace, *out = job->files.out;
	const char *secret_out = job->files.secret_out;

	if (job->files.helm)
		output_note("the Secret is applied first, then the chart: kubectl create namespace "
			    "%s; kubectl label namespace %s "
			    "pod-security.kubernetes.io/enforce=privileged; kubectl apply -f %s; "
			    "helm upgrade --install %s %s -n %s",
			    namespace, namespace, secret_out, job->settings.name, job->files.helm,
			    namespace);
	else
		output_note("the Secret is applied first, then the manifests: kubectl create "
			    "namespace %s; kubectl apply -f %s; kubectl apply -f %s",
			    namespace, secret_out, out ? out : "FILE");
}

static const char *pool_name(const struct job *job)
{
	const char *name = view_text(job->pool, "name");

	return name ? name : job->token.pool;
}

static void remind(struct job *job, const json_t *token)
{
	const struct settings *settings = &job->settings;
	const char *ends = view_when(&job->cli->arena, token, "expiresAt", job->cli->now);
	long long uses = (long long)json_integer_value(json_object_get(token, "maxUses"));

	output_note(
		"token %s is in '%s' and nowhere else; it lets %lld node%s join pool %s (%s, from "
		"%s), until %s",
		view_text(token, "id"), job->files.secret_out, uses, uses == 1 ? "" : "s",
		pool_name(job), job->token.pool, pool_named(job).origin,
		ends ? ends : "it is revoked");
	remind_of_order(job);
	output_note("once every node joined: better-compute join-tokens revoke %s; kubectl -n %s "
		    "delete secret %s. For later nodes make a fresh token.",
		    view_text(token, "id"), settings->namespace, settings->secret_name);
	for (size_t i = 0; OBJECTS_REQUIREMENTS[i]; i++)
		output_note("required: %s", OBJECTS_REQUIREMENTS[i]);
}

/* What is rendered as asked for, and may not be what was meant. */
static void note_namespace(const struct job *job)
{
	const struct settings *settings = &job->settings;
	bool shared = str_starts(settings->namespace, "kube-") ||
		      str_equal(settings->namespace, "default");

	if (shared && settings->create_namespace && !job->files.helm)
		output_note("namespace '%s' is among the manifests: applying them lets every pod "
			    "there be privileged, and deleting them deletes it with all that it "
			    "holds; --namespace names one of bcd's own",
			    settings->namespace);
}

/* Is one of the two presets of such a distribution chosen, and the other left out? */
static void warn_of_half(const struct job *job)
{
	static const struct {
		const char *key, *flag, *value;
	} SIDES[] = {{"containerRuntime", "container-runtime", "containerd"},
		     {"kubeletCredentials", "kubelet-credentials", "kubeadm"}};
	static const char *const WHOLE[] = {"k3s", "rke2"};

	for (size_t i = 0; i < ARRAY_SIZE(SIDES); i++) {
		const char *preset = view_text(job->options, SIDES[i].key);
		size_t other = 1 - i;
		for (size_t k = 0; preset && k < ARRAY_SIZE(WHOLE); k++) {
			if (!str_equal(preset, WHOLE[k]) ||
			    json_object_get(job->options, SIDES[other].key))
				continue;
			output_warning("--%s is %s and --%s (%s) left out, which means %s: where "
				       "the nodes lack those files, bcd's pod stays in "
				       "ContainerCreating; for %s add --%s %s",
				       SIDES[i].flag, preset, SIDES[other].flag, SIDES[other].key,
				       SIDES[other].value, preset, SIDES[other].flag, preset);
		}
	}
}

/* GPUs that nobody could use: there is no driver, or the pool's pods ask another way. */
static void warn_of_api(const struct job *job)
{
	const struct settings *settings = &job->settings;
	const char *own = settings->dra ? "dra" : "device-plugin";
	const json_t *policy = json_object_get(job->pool, "policy");
	const char *api = view_text(json_object_get(policy, "kubernetes"), "gpuApi");

	if (settings->dra)
		output_warning("the bcd of this release has no DRA driver: these nodes will offer "
			       "no GPU and get no bookings; leave --gpu-api (gpuApi) out");
	if (job->pool && !str_equal(api ? api : "device-plugin", own))
		output_warning("the pool's gpuApi is %s, these nodes' %s: they will get no "
			       "bookings until both are the same",
			       api ? api : "device-plugin", own);
}

/* Then it runs where there is nothing for it, and the rollout doesn't end. */
static void warn_of_every_node(const struct job *job)
{
	if (json_object_size(job->settings.node_selector) > 0)
		return;
	output_warning("without --node-selector (nodeSelector) bcd is put on every node: on one "
		       "without a GPU and NVIDIA's files its pod doesn't start, and the rollout "
		       "doesn't end. Name a label that GPU nodes alone have: --node-selector "
		       "nvidia.com/gpu.present=true");
}

/* What lets the rollout fail stands behind all else that is said, where it is read. */
static void warn(const struct job *job)
{
	static const char *const LOOPBACK[] = {"//127.", "//localhost", "//[::1]"};
	const struct settings *settings = &job->settings;

	if (settings->host_units)
		output_warning(
			"hostUnits: this release has no host units, and with them on bcd offers "
			"nothing to a kubelet: no pod gets a GPU of these nodes, and they take "
			"no bookings. Render the manifests without --host-units (hostUnits)");
	warn_of_every_node(job);
	warn_of_api(job);
	warn_of_half(job);
	for (size_t i = 0; settings->gateway_url && i < ARRAY_SIZE(LOOPBACK); i++)
		if (strstr(settings->gateway_url, LOOPBACK[i]))
			output_warning("the gateway '%s' can be reached on the control plane's own "
				       "machine only, and no node joins by these manifests: "
				       "serve's --gateway-address names it for others",
				       settings->gateway_url);
}

/* What is printed alone changes nothing. */
static bool writes(const struct job *job)
{
	return job->mints || job->files.out || job->files.helm || job->files.options_out;
}

static bool say_dry(struct job *job)
{
	if (writes(job))
		cli_would_change(job->cli);
	note_namespace(job);
	if (job->mints)
		output_note("would make a join token of %lld node%s for pool %s (%s, from %s), and "
			    "write it to '%s'",
			    (long long)job->token.max_uses, job->token.max_uses == 1 ? "" : "s",
			    pool_name(job), job->token.pool, pool_named(job).origin,
			    job->files.secret_out);
	if (job->files.out)
		output_note("would write the manifests to '%s'", job->files.out);
	if (job->files.options_out)
		output_note("would write the options to '%s'", job->files.options_out);
	if (job->files.helm)
		output_note("would write a chart to '%s'", job->files.helm);
	else
		output_text(&job->text);
	warn(job);
	return true;
}

static const char *folder_of(struct job *job)
{
	const char *path = text_of(job, "helm");
	size_t length = path ? strlen(path) : 0;

	while (length > 1 && path[length - 1] == '/')
		length--;
	return path ? arena_strndup(&job->cli->arena, path, length) : NULL;
}

/* What goes where; what it holds isn't known yet. */
static bool plan(struct job *job, struct error *error)
{
	job->files = (struct hosting_files){
		.out = text_of(job, "out"),
		.manifests = &job->text,
		.helm = folder_of(job),
		.chart = &job->chart,
		.options_out = text_of(job, "options-out"),
		.secret_out = job->mints ? text_of(job, "secret-out") : NULL,
	};
	if (!job->mints)
		return true;
	if (!hosting_token_of(job->cli, &job->token, error))
		return false;
	job->files.placeholder = hosting_token_placeholder(&job->token, &job->cli->arena);
	return true;
}

static bool manifest(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *token = NULL;
	CLEANUP(job)
	struct job job = {.cli = cli,
			  .mints = !options_given(cli->options, "options") ||
				   options_given(cli->options, "secret-out") ||
				   options_given(cli->options, "pool")};

	if (!plan(&job, error) || !check_alone(&job, error) || !ask(&job, error) ||
	    !render(&job, error))
		return false;
	job.files.options = job.options;
	job.token.pool = view_text(job.pool, "id");
	if (cli_is_dry(cli))
		return say_dry(&job);
	if (!make(&job, &token, error))
		return false;
	note_namespace(&job);
	if (token)
		remind(&job, token);
	warn(&job);
	return true;
}

static const char *const FORMATS[] = {"json", "yaml", NULL};

/* As paths_presets() and settings.h have them; a test holds them together. */
static const char *const RUNTIMES[] = {"containerd", "k3s", "rke2", "cri-o", NULL};
static const char *const CREDENTIALS[] = {"kubeadm", "k3s", "rke2", NULL};
static const char *const TOOLKITS[] = {"gpu-operator", "packages", NULL};
static const char *const GPU_APIS[] = {"device-plugin", "dra", NULL};

static const struct option MANIFEST_OPTIONS[] = {
	{"tenant", 0, OPTION_TEXT, "TENANT",
	 "who owns the pool (default: BETTER_COMPUTE_TENANT, "
	 "else the configuration's tenant, else the key's; needed when none of them owns it)",
	 0, 0, NULL},
	{"pool", 0, OPTION_TEXT, "POOL",
	 "the pool that the nodes join (default: BETTER_COMPUTE_POOL, else config.toml's; never "
	 "that of a state folder)",
	 0, 0, NULL},
	{"image", 0, OPTION_TEXT, "IMAGE", "bcd's image, with @sha256:… of its digest", 0, 0, NULL},
	{"secret-out", 0, OPTION_TEXT, "FILE", "a new file (0600) for the join token's Secret", 0,
	 0, NULL},
	{"out", 0, OPTION_TEXT, "FILE", "a new file for the manifests (default: print them)", 0, 0,
	 NULL},
	{"helm", 0, OPTION_TEXT, "DIR", "a new folder: write them as a Helm chart", 0, 0, NULL},
	{"output", 'o', OPTION_TEXT, "FORMAT", "json (a List) or yaml (default json)", 0, 0,
	 FORMATS},
	{"options", 0, OPTION_TEXT, "FILE", "all options as JSON, instead of flags", 0, 0, NULL},
	{"options-out", 0, OPTION_TEXT, "FILE", "a new file: what the flags mean as options", 0, 0,
	 NULL},
	{"serving-ca-pin", 0, OPTION_TEXT, "PIN", "ca_pins of pki show", 0, 0, NULL},
	{"join-signing-pin", 0, OPTION_TEXT, "PIN", "signing_pins of pki show", 0, 0, NULL},
	{"join-encryption-pin", 0, OPTION_TEXT, "PIN", "encryption_pins of pki show", 0, 0, NULL},
	{"control-plane", 0, OPTION_TEXT, "URL", "the API's public https address (default: --api)",
	 0, 0, NULL},
	{"namespace", 0, OPTION_TEXT, "NAME", "where it runs (default bcd-system)", 0, 0, NULL},
	{"name", 0, OPTION_TEXT, "NAME", "what the objects are called (default bcd)", 0, 0, NULL},
	{"node-selector", 0, OPTION_LIST, "KEY=VALUE",
	 "only nodes with this label; may be repeated (default: every node)", 0, 0, NULL},
	{"container-runtime", 0, OPTION_TEXT, "NAME",
	 "containerd, k3s, rke2 or cri-o (default containerd)", 0, 0, RUNTIMES},
	{"kubelet-credentials", 0, OPTION_TEXT, "NAME", "kubeadm, k3s or rke2 (default kubeadm)", 0,
	 0, CREDENTIALS},
	{"nvidia-toolkit", 0, OPTION_TEXT, "NAME",
	 "gpu-operator or packages (default gpu-operator)", 0, 0, TOOLKITS},
	{"nvidia-runtime-class", 0, OPTION_TEXT, "NAME",
	 "the RuntimeClass of bcd's pod (default nvidia), or none", 0, 0, NULL},
	{"gpu-api", 0, OPTION_TEXT, "API",
	 "device-plugin (default) or dra, without a driver yet: no GPU is offered", 0, 0, GPU_APIS},
	{"host-units", 0, OPTION_FLAG, NULL,
	 "no '[host] units = false': bcd then "
	 "offers nothing to a kubelet, and has no host units yet",
	 0, 0, NULL},
	{"ttl", 0, OPTION_DURATION, "D", "how long the token is good, 1m to 24h (default 24h)",
	 JOIN_TOKEN_TTL_MIN_MS, JOIN_TOKEN_TTL_MAX_MS, NULL},
	{"max-uses", 0, OPTION_NUMBER, "N", "how many nodes may join by it (default 100)", 1,
	 JOIN_TOKEN_USES_MAX, NULL},
	{"key", 0, OPTION_TEXT, "KEY", "the token's idempotency key (default: a new UUID)", 0, 0,
	 NULL},
	{0},
};

const struct command KUBERNETES_COMMANDS[] = {
	{
		.noun = "kubernetes",
		.verb = "manifest",
		.summary = "render what runs bcd on the GPU nodes of a cluster, and a join token",
		.flags = COMMAND_CONTEXT | COMMAND_CHANGES,
		.options = MANIFEST_OPTIONS,
		.more = "Namespace, ConfigMap and DaemonSet are printed, or written to --out. The "
			"join token is written to --secret-out alone, as a Secret: apply that "
			"first. Everything is checked and rendered before a token is made. The "
			"pins come from you, by these flags, BCD_SERVING_CA_PIN, "
			"BCD_JOIN_SIGNING_PIN and BCD_JOIN_ENCRYPTION_PIN, or serving_ca_pin, "
			"join_signing_pin and join_encryption_pin of config.toml. With --options "
			"alone, or with --image for another version, nothing is asked and no token "
			"is made. What was made names the pool and where that comes from.",
		.example =
			"better-compute kubernetes manifest --tenant acme --pool h100 --image "
			"registry.example.com/bcd@sha256:"
			"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef "
			"--max-uses 8 --ttl 1h --secret-out bcd-join-secret.json --out bcd.json\n"
			"better-compute kubernetes manifest --options bcd-options.json -o yaml\n",
		.fields = HOSTING_FIELDS,
		.run = manifest,
	},
	{0},
};
