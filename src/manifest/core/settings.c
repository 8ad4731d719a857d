#include "manifest/core/settings.h"
#include "base/id.h"
#include "manifest/core/resources.h"
#include "manifest/core/syntax.h"

#define MAX_TEXT         512
#define MAX_PIN          128
#define MAX_SELECTORS    64
#define MAX_TOLERATIONS  64
#define MAX_PULL_SECRETS 16

static const char *const LOG_LEVELS[] = {"debug", "info", "warn", "error", NULL};
static const char *const GPU_APIS[] = {"device-plugin", "dra", NULL};

void settings_deinit(struct settings *settings)
{
	if (!settings)
		return;
	json_decref(settings->node_selector);
	json_decref(settings->tolerations);
	json_decref(settings->resources);
	json_decref(settings->pull_secrets);
	arena_deinit(&settings->arena);
}

/* --- texts of one form --- */

enum form {
	FORM_LABEL,
	FORM_NAME,
	FORM_KEY,
	FORM_IMAGE,
	FORM_ADDRESS,
	FORM_URL,
	FORM_HOST,
	FORM_SITE,
	FORM_PIN,
};

static const struct {
	const char *complaint, *hint;
} FORMS[] = {
	[FORM_LABEL] = {"can't be one",
			"At most 63 of a-z, 0-9 and '-', the first and last no dash."},
	[FORM_NAME] = {"can't be one", "At most 253 of a-z, 0-9, '-' and '.', each part beginning "
				       "and ending with a letter or digit."},
	[FORM_KEY] = {"can't be one", "At most 253 letters, digits, '-', '_' and '.'."},
	[FORM_IMAGE] = {"is no image pinned by its digest",
			"registry/repository[:tag]@sha256:<64 hex digits>: the registry tells the "
			"digest when the image is pushed."},
	[FORM_ADDRESS] = {"is not an https address",
			  "https://host[:port], without a path; an IPv6 host in brackets."},
	[FORM_URL] = {"is not an https address",
		      "https://host[:port][/path]; an IPv6 host in brackets."},
	[FORM_HOST] = {"is no host's name", "It is the name in the gateway's certificate."},
	[FORM_SITE] = {"is no site's id", "site_…, as in: better-compute sites -o name"},
	[FORM_PIN] = {"is no pin", "sha256/ and 44 characters of base64: better-compute pki show"},
};

static bool has_form(const char *text, enum form form)
{
	switch (form) {
	case FORM_LABEL:
		return syntax_label(text);
	case FORM_NAME:
		return syntax_name(text);
	case FORM_HOST:
		return syntax_server_name(text);
	case FORM_KEY:
		return syntax_data_key(text);
	case FORM_IMAGE:
		return syntax_image(text);
	case FORM_ADDRESS:
		return syntax_https(text, false);
	case FORM_URL:
		return syntax_https(text, true);
	case FORM_SITE:
		return id_valid(text, "site");
	case FORM_PIN: /* all of it: manifest.h */
		return str_starts(text, "sha256/");
	}
	return false;
}

static bool refuse(const char *field, const char *text, enum form form, struct error *error)
{
	error_field(error, field, "'%.200s' %s", text, FORMS[form].complaint);
	return error_hint(error, "%s", FORMS[form].hint);
}

/* Keeps what *ret_text holds when there is none. */
static bool read_text(struct settings *settings, const json_t *object, const char *path,
		      const char *name, enum form form, const char **ret_text, struct error *error)
{
	const char *text = NULL;
	char field[ERROR_FIELD_SIZE];

	if (!tree_opt_string(object, name, path, MAX_TEXT, &text, error))
		return false;
	if (!text)
		return true;
	tree_path(field, path, name);
	if (!has_form(text, form))
		return refuse(field, text, form, error);
	*ret_text = arena_strdup(&settings->arena, text);
	return true;
}

/* null: none. */
static bool read_class(struct settings *settings, const json_t *options, const char *name,
		       const char **ret_text, struct error *error)
{
	if (json_is_null(json_object_get(options, name)) && json_object_get(options, name)) {
		*ret_text = NULL;
		return true;
	}
	return read_text(settings, options, "", name, FORM_NAME, ret_text, error);
}

/* --- sections --- */

static bool read_pins(struct settings *settings, const json_t *options, struct error *error)
{
	const struct {
		const char *name;
		const char **pin;
	} rows[] = {
		{"servingCaPin", &settings->serving_ca_pin},
		{"joinSigningPin", &settings->join_signing_pin},
		{"joinEncryptionPin", &settings->join_encryption_pin},
	};
	json_t *pins = NULL;

	if (!tree_opt_object(options, "pins", "", &pins, error))
		return false;
	if (!pins)
		return true;
	if (!tree_check_keys(pins, "pins",
			     TREE_KEYS("servingCaPin", "joinSigningPin", "joinEncryptionPin"),
			     error))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!read_text(settings, pins, "pins", rows[i].name, FORM_PIN, rows[i].pin, error))
			return false;
	}
	return true;
}

/* Only the public half may lie in a ConfigMap. */
static bool read_jwk(struct settings *settings, const json_t *options, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	json_t *jwk = NULL;

	if (!tree_opt_object(options, "joinEncryptionJwk", "", &jwk, error))
		return false;
	if (!jwk)
		return true;
	if (json_object_get(jwk, "d")) {
		error_field(error, "joinEncryptionJwk", "has the private half of the key");
		return error_hint(error, "Give encryptionJwk of: better-compute pki show -o json");
	}
	if (!tree_check_keys(jwk, "joinEncryptionJwk",
			     TREE_KEYS("alg", "crv", "kid", "kty", "use", "x", "y"), error))
		return false;
	tree_dump_canonical(&text, jwk);
	settings->join_jwk = arena_strdup(&settings->arena, buf_text(&text));
	return true;
}

static bool read_secret(struct settings *settings, const json_t *options, struct error *error)
{
	json_t *secret = NULL;

	settings->secret_key = "token";
	if (!tree_opt_object(options, "joinTokenSecret", "", &secret, error))
		return false;
	if (!secret)
		return true;
	if (!tree_check_keys(secret, "joinTokenSecret", TREE_KEYS("name", "key"), error) ||
	    !read_text(settings, secret, "joinTokenSecret", "name", FORM_NAME,
		       &settings->secret_name, error))
		return false;
	return read_text(settings, secret, "joinTokenSecret", "key", FORM_KEY,
			 &settings->secret_key, error);
}

static bool read_selector(struct settings *settings, const json_t *options, struct error *error)
{
	json_t *selector = NULL, *value;
	const char *key;

	settings->node_selector = json_object();
	if (!tree_opt_object(options, "nodeSelector", "", &selector, error))
		return false;
	if (json_object_size(selector) > MAX_SELECTORS)
		return error_field(error, "nodeSelector", "has more than %d labels", MAX_SELECTORS);
	json_object_foreach(selector, key, value)
	{
		if (!syntax_label_key(key))
			return error_field(error, "nodeSelector", "'%.120s' is no label's name",
					   key);
		if (!json_is_string(value) || !syntax_label_value(json_string_value(value)))
			return error_field(error, "nodeSelector", "'%.120s' has no label's value",
					   key);
		tree_set(settings->node_selector, key, json_incref(value));
	}
	return true;
}

static bool read_toleration(const json_t *item, const char *path, struct error *error)
{
	const char *key = "", *value = NULL;
	size_t op = 1, effect = SIZE_MAX;
	int64_t seconds = -1;

	if (!tree_check_keys(item, path,
			     TREE_KEYS("key", "operator", "value", "effect", "tolerationSeconds"),
			     error) ||
	    !tree_opt_string(item, "key", path, MAX_TEXT, &key, error) ||
	    !tree_opt_string(item, "value", path, MAX_TEXT, &value, error) ||
	    !tree_opt_choice(item, "operator", path, TREE_KEYS("Exists", "Equal"), &op, error) ||
	    !tree_opt_choice(item, "effect", path,
			     TREE_KEYS("NoExecute", "NoSchedule", "PreferNoSchedule"), &effect,
			     error) ||
	    !tree_opt_int(item, "tolerationSeconds", path, 0, INT32_MAX, &seconds, error))
		return false;
	if (*key && !syntax_label_key(key))
		return error_field(error, path, "key '%.120s' is no taint's", key);
	if (value && !syntax_label_value(value))
		return error_field(error, path, "value '%.120s' is no taint's", value);
	if (!*key && op != 0)
		return error_field(error, path, "without a key the operator must be Exists");
	if (value && op == 0)
		return error_field(error, path, "with operator Exists there is no value");
	return seconds < 0 || effect == 0 ||
	       error_field(error, path, "tolerationSeconds needs effect NoExecute");
}

/* Every taint, unless told otherwise. */
static bool read_tolerations(struct settings *settings, const json_t *options, struct error *error)
{
	json_t *array = NULL;

	settings->tolerations = json_pack("[{s:s}]", "operator", "Exists");
	if (!tree_opt_array(options, "tolerations", "", MAX_TOLERATIONS, &array, error))
		return false;
	if (!array)
		return true;
	for (size_t i = 0; i < json_array_size(array); i++) {
		char path[ERROR_FIELD_SIZE];
		json_t *item;

		tree_path_item(path, "", "tolerations", i);
		if (!tree_item_object(array, i, "tolerations", "", &item, error) ||
		    !read_toleration(item, path, error))
			return false;
	}
	json_decref(settings->tolerations);
	settings->tolerations = json_deep_copy(array);
	return true;
}

static bool read_resources(struct settings *settings, const json_t *options, struct error *error)
{
	json_t *resources = NULL;

	settings->resources = json_pack("{s:{s:s}, s:{s:s, s:s}}", "limits", "memory", "512Mi",
					"requests", "cpu", "100m", "memory", "128Mi");
	if (!tree_opt_object(options, "resources", "", &resources, error))
		return false;
	if (!resources)
		return true;
	if (!resources_check(resources, error))
		return false;
	json_decref(settings->resources);
	settings->resources = json_deep_copy(resources);
	return true;
}

static bool has_secret(const json_t *secrets, const char *name)
{
	size_t index;
	json_t *secret;

	json_array_foreach((json_t *)secrets, index, secret)
	{
		if (str_equal(json_string_value(json_object_get(secret, "name")), name))
			return true;
	}
	return false;
}

static bool read_pull_secrets(struct settings *settings, const json_t *options, struct error *error)
{
	json_t *array = NULL;

	settings->pull_secrets = json_array();
	if (!tree_opt_array(options, "imagePullSecrets", "", MAX_PULL_SECRETS, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		char field[ERROR_FIELD_SIZE];
		const char *name;

		tree_path_item(field, "", "imagePullSecrets", i);
		if (!tree_item_string(array, i, "imagePullSecrets", "", MAX_TEXT, &name, error))
			return false;
		if (!syntax_name(name))
			return refuse(field, name, FORM_NAME, error);
		if (has_secret(settings->pull_secrets, name))
			return error_field(error, field, "'%s' is there twice", name);
		tree_append(settings->pull_secrets, json_pack("{s:s}", "name", name));
	}
	return true;
}

static bool read_paths(struct settings *settings, const json_t *options, struct error *error)
{
	const struct {
		const char *name;
		enum paths_kind kind;
		struct path_set *set;
	} rows[] = {
		{"kubeletCredentials", PATHS_CREDENTIALS, &settings->credentials},
		{"containerRuntime", PATHS_RUNTIME, &settings->runtime},
		{"nvidiaToolkit", PATHS_TOOLKIT, &settings->toolkit},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const json_t *value = json_object_get(options, rows[i].name);

		*rows[i].set = paths_preset(rows[i].kind, 0);
		if (value && !paths_read(value, rows[i].kind, rows[i].name, &settings->arena,
					 rows[i].set, error))
			return false;
	}
	return paths_check_apart(&settings->credentials, &settings->runtime, &settings->toolkit,
				 error);
}

static bool read_choices(struct settings *settings, const json_t *options, struct error *error)
{
	size_t gpu_api = 0, level = 1;

	settings->create_namespace = true;
	if (!tree_opt_bool(options, "createNamespace", "", &settings->create_namespace, error) ||
	    !tree_opt_bool(options, "hostUnits", "", &settings->host_units, error) ||
	    !tree_opt_choice(options, "gpuApi", "", GPU_APIS, &gpu_api, error) ||
	    !tree_opt_choice(options, "logLevel", "", LOG_LEVELS, &level, error))
		return false;
	settings->dra = gpu_api == 1;
	settings->log_level = LOG_LEVELS[level];
	return true;
}

static void cut_slashes(char *text)
{
	size_t length = strlen(text);

	while (length > 0 && text[length - 1] == '/')
		text[--length] = '\0';
}

static bool read_addresses(struct settings *settings, const json_t *options, struct error *error)
{
	if (!read_text(settings, options, "", "gatewayUrl", FORM_ADDRESS, &settings->gateway_url,
		       error) ||
	    !read_text(settings, options, "", "gatewayServerName", FORM_HOST,
		       &settings->gateway_server_name, error) ||
	    !read_text(settings, options, "", "controlPlaneUrl", FORM_URL,
		       &settings->control_plane_url, error))
		return false;
	if (settings->control_plane_url) {
		char *url = arena_strdup(&settings->arena, settings->control_plane_url);

		cut_slashes(url);
		settings->control_plane_url = url;
	}
	return true;
}

static bool read_names(struct settings *settings, const json_t *options, struct error *error)
{
	settings->namespace = "bcd-system";
	settings->name = "bcd";
	settings->priority_class = "system-node-critical";
	settings->runtime_class = "nvidia";
	if (!read_text(settings, options, "", "image", FORM_IMAGE, &settings->image, error) ||
	    !read_text(settings, options, "", "siteId", FORM_SITE, &settings->site_id, error) ||
	    !read_text(settings, options, "", "namespace", FORM_LABEL, &settings->namespace,
		       error) ||
	    !read_text(settings, options, "", "name", FORM_LABEL, &settings->name, error) ||
	    !read_class(settings, options, "priorityClassName", &settings->priority_class, error) ||
	    !read_class(settings, options, "nvidiaRuntimeClass", &settings->runtime_class, error))
		return false;
	settings->secret_name = arena_printf(&settings->arena, "%s-join", settings->name);
	return true;
}

bool settings_read(const json_t *options, struct settings *ret_settings, struct error *error)
{
	CLEANUP(settings) struct settings settings = {0};

	if (!tree_check_keys(options, "",
			     TREE_KEYS("image", "gatewayUrl", "gatewayServerName", "siteId", "pins",
				       "joinEncryptionJwk", "controlPlaneUrl", "joinTokenSecret",
				       "namespace", "name", "createNamespace", "nodeSelector",
				       "tolerations", "priorityClassName", "imagePullSecrets",
				       "resources", "hostUnits", "gpuApi", "nvidiaRuntimeClass",
				       "kubeletCredentials", "containerRuntime", "nvidiaToolkit",
				       "logLevel"),
			     error) ||
	    !read_names(&settings, options, error) || !read_addresses(&settings, options, error) ||
	    !read_pins(&settings, options, error) || !read_jwk(&settings, options, error) ||
	    !read_secret(&settings, options, error) || !read_selector(&settings, options, error) ||
	    !read_tolerations(&settings, options, error) ||
	    !read_resources(&settings, options, error) ||
	    !read_pull_secrets(&settings, options, error) ||
	    !read_paths(&settings, options, error) || !read_choices(&settings, options, error)) {
		error->code = ERROR_INVALID_CONFIG;
		return false;
	}
	*ret_settings = settings;
	settings = (struct settings){0};
	return true;
}

/* --- what is needed --- */

static bool missing(const char *field, struct error *error)
{
	error_field(error, field, "is missing");
	error->code = ERROR_INVALID_CONFIG;
	return false;
}

bool settings_check_complete(const struct settings *settings, struct error *error)
{
	const struct {
		const char *field, *value;
	} rows[] = {
		{"image", settings->image},
		{"gatewayUrl", settings->gateway_url},
		{"siteId", settings->site_id},
		{"pins.servingCaPin", settings->serving_ca_pin},
		{"pins.joinSigningPin", settings->join_signing_pin},
		{"pins.joinEncryptionPin", settings->join_encryption_pin},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!rows[i].value)
			return missing(rows[i].field, error);
	}
	if (str_starts(settings->gateway_url, "https://[") && !settings->gateway_server_name) {
		missing("gatewayServerName", error);
		return error_hint(error, "No gateway's certificate names an IPv6 address: give the "
					 "name that it has (serve --gateway-name).");
	}
	if (settings->join_jwk && settings->control_plane_url) {
		error_field(error, "controlPlaneUrl", "is one too many beside joinEncryptionJwk");
		error->code = ERROR_INVALID_CONFIG;
		return error_hint(error, "With the key nothing is fetched.");
	}
	if (settings->join_jwk || settings->control_plane_url)
		return true;
	missing("joinEncryptionJwk", error);
	return error_hint(error, "Give it, or controlPlaneUrl, where the nodes fetch it.");
}

/* --- the gateway --- */

static const char *gateway_host(const struct settings *settings, struct arena *arena)
{
	const char *host = settings->gateway_url + strlen("https://");

	return arena_strndup(arena, host, strcspn(host, "/"));
}

/* The colon before the port; NULL without one. */
static const char *port_of(const char *host)
{
	const char *end = host[0] == '[' ? strchr(host, ']') : host;

	return end ? strchr(end, ':') : NULL;
}

const char *settings_gateway_address(const struct settings *settings, struct arena *arena)
{
	const char *host = gateway_host(settings, arena);

	return port_of(host) ? host : arena_printf(arena, "%s:443", host);
}

const char *settings_gateway_name(const struct settings *settings, struct arena *arena)
{
	const char *host = gateway_host(settings, arena);

	if (settings->gateway_server_name)
		return settings->gateway_server_name;
	return arena_strndup(arena, host, strcspn(host, ":"));
}
