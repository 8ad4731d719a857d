#include "cli/hosting.h"
#include "cli/view.h"
#include "http/client.h"
#include "manifest/core/syntax.h"
#include "pki/wellknown.h"

#include <stdio.h>

const struct verb_field HOSTING_FIELDS[] = {
	FIELD_TEXT("image", "image"),
	FIELD_TEXT("namespace", "namespace"),
	FIELD_TEXT("name", "name"),
	FIELD_TEXT("gpuApi", "gpu-api"),
	FIELD_TEXT("containerRuntime", "container-runtime"),
	FIELD_TEXT("kubeletCredentials", "kubelet-credentials"),
	FIELD_TEXT("nvidiaToolkit", "nvidia-toolkit"),
	FIELD_TEXT("nvidiaRuntimeClass", "nvidia-runtime-class"),
	FIELD_TEXT("nodeSelector", "node-selector"),
	FIELD_TEXT("pins.servingCaPin", "serving-ca-pin"),
	FIELD_TEXT("pins.joinSigningPin", "join-signing-pin"),
	FIELD_TEXT("pins.joinEncryptionPin", "join-encryption-pin"),
	{0},
};

/* --- pins: all three or none, and from one place --- */

static const struct {
	const char *key, *option;
	enum context_field field;
} PINS[] = {
	{"servingCaPin", "serving-ca-pin", CONTEXT_SERVING_CA_PIN},
	{"joinSigningPin", "join-signing-pin", CONTEXT_JOIN_SIGNING_PIN},
	{"joinEncryptionPin", "join-encryption-pin", CONTEXT_JOIN_ENCRYPTION_PIN},
};

/* Given now, by flag or environment; or else what a file has. */
static const char *pin_text(struct cli *cli, size_t index, bool now)
{
	const char *flag = options_text(cli->options, PINS[index].option);
	const struct context *context = &cli->context;

	if (now && flag)
		return flag;
	return context_is_from_environment(context, PINS[index].field) == now
		       ? context->values[PINS[index].field].text
		       : NULL;
}

static bool add_pins(struct cli *cli, json_t *options, struct error *error)
{
	json_t *pins = json_object();
	bool now = false;

	tree_set(options, "pins", pins);
	for (size_t i = 0; i < ARRAY_SIZE(PINS); i++)
		now |= pin_text(cli, i, true) != NULL;
	for (size_t i = 0; i < ARRAY_SIZE(PINS); i++) {
		const char *text = pin_text(cli, i, now);

		if (!text) {
			error_set(error, ERROR_INVALID_CONFIG, "--%s is missing", PINS[i].option);
			return error_hint(error, "All three pins are needed, as 'better-compute "
						 "pki show' prints them on the control plane's "
						 "host; nothing is pinned that a network says.");
		}
		tree_set(pins, PINS[i].key, tree_string(text));
	}
	return true;
}

void hosting_name_pin(struct cli *cli, struct error *error)
{
	char rest[ERROR_WHAT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(PINS); i++) {
		const struct context_value *value = &cli->context.values[PINS[i].field];
		const char *key = arena_printf(&cli->arena, "pins.%s", PINS[i].key);

		if (!str_equal(error->field, key) || !str_starts(error->what, key) ||
		    options_given(cli->options, PINS[i].option) || !value->text)
			continue;
		str_copy(rest, sizeof rest, error->what + strlen(key));
		if (context_is_from_environment(&cli->context, PINS[i].field))
			snprintf(error->what, sizeof error->what, "%s%s", value->origin, rest);
		else
			snprintf(error->what, sizeof error->what, "'%s': %s%s", value->origin,
				 context_field_name(PINS[i].field), rest);
	}
}

/* --- flags --- */

void hosting_name(struct buf *names, size_t *count, const char *option)
{
	buf_printf(names, "%s--%s", *count ? ", " : "", option);
	++*count;
}

/* Does --control-plane have to say what the context's address can't be? A wrong one is told by itself. */
static bool misses_address(struct cli *cli)
{
	const char *api = cli->context.values[CONTEXT_API].text;

	return !options_given(cli->options, "control-plane") && !(api && syntax_https(api, true));
}

void hosting_missing(struct cli *cli, struct buf *names, size_t *count)
{
	bool now = false;

	if (!options_given(cli->options, "image"))
		hosting_name(names, count, "image");
	for (size_t i = 0; i < ARRAY_SIZE(PINS); i++)
		now |= pin_text(cli, i, true) != NULL;
	for (size_t i = 0; i < ARRAY_SIZE(PINS); i++) {
		if (!pin_text(cli, i, now))
			hosting_name(names, count, PINS[i].option);
	}
	if (misses_address(cli))
		hosting_name(names, count, "control-plane");
}

static bool add_selector(struct cli *cli, json_t *options, struct error *error)
{
	const struct option_value *pairs = options_value(cli->options, "node-selector");
	json_t *selector = json_object();

	tree_set(options, "nodeSelector", selector);
	for (size_t i = 0; i < pairs->list_count; i++) {
		const char *pair = pairs->list[i], *equals = strchr(pair, '=');
		const char *key =
			equals ? arena_strndup(&cli->arena, pair, (size_t)(equals - pair)) : "";

		if (!*key) {
			error_set(error, ERROR_INVALID_CONFIG,
				  "--node-selector: '%s' is not KEY=VALUE", pair);
			return error_hint(error, "Such as nvidia.com/gpu.present=true");
		}
		if (json_object_get(selector, key))
			return error_set(error, ERROR_INVALID_CONFIG,
					 "--node-selector: '%s' is given twice", key);
		tree_set(selector, key, tree_string(equals + 1));
	}
	return true;
}

static bool from_flags(struct cli *cli, json_t *options, struct error *error)
{
	for (const struct verb_field *field = HOSTING_FIELDS; field->key; field++) {
		const char *text = options_text(cli->options, field->option);

		if (!text || strchr(field->key, '.') || str_equal(field->key, "nodeSelector"))
			continue;
		if (str_equal(field->key, "nvidiaRuntimeClass") && str_equal(text, "none"))
			tree_set(options, field->key, json_null());
		else
			tree_set(options, field->key, tree_string(text));
	}
	if (options_given(cli->options, "host-units"))
		tree_set(options, "hostUnits", json_true());
	if (!options_given(cli->options, "image")) {
		error_set(error, ERROR_INVALID_INPUT, "--image is needed");
		return error_hint(error, "registry/repository[:tag]@sha256:<64 hex digits>");
	}
	return add_selector(cli, options, error) && add_pins(cli, options, error);
}

bool hosting_options(struct cli *cli, json_t **ret_options, struct error *error)
{
	const char *file = options_text(cli->options, "options");
	const char *image = options_text(cli->options, "image");
	CLEANUP(tree) json_t *options = NULL;

	if (file) {
		if (!cli_read_json(file, &options, error))
			return false;
		if (image)
			tree_set(options, "image", tree_string(image));
	} else {
		options = json_object();
		if (!from_flags(cli, options, error))
			return false;
	}
	*ret_options = TAKE(options);
	return true;
}

/* --- the control plane --- */

bool hosting_control_plane(struct cli *cli, const char **ret_url, struct error *error)
{
	const char *given = options_text(cli->options, "control-plane");
	const char *url = given ? given : cli->context.values[CONTEXT_API].text;
	size_t length = url ? strlen(url) : 0;

	if (!url) {
		error_set(error, ERROR_INVALID_CONFIG, "no control plane is named here");
		return error_hint(error, "Name it: --api URL, or BETTER_COMPUTE_API. Where nodes "
					 "reach it by another address, that is --control-plane.");
	}
	if (!syntax_https(url, true)) {
		error_set(error, ERROR_INVALID_CONFIG,
			  "the control plane's '%s' is not an https address", url);
		return error_hint(error, "Name its public address: --control-plane "
					 "https://host[/path]");
	}
	while (url[length - 1] == '/')
		length--;
	*ret_url = arena_strndup(&cli->arena, url, length);
	return true;
}

/* `shared`: at the address that nodes will use, where a key is taken over; else where this command asks for
 * everything else, to compare. */
static bool fetch(struct cli *cli, bool shared, struct http_answer *answer, struct error *error)
{
	const struct http_options how = {.ca_file = cli->context.values[CONTEXT_CA_FILE].text,
					 .https_only = shared};
	const char *base = cli->context.values[CONTEXT_API].text, *url;

	if (shared && !hosting_control_plane(cli, &base, error))
		return false;
	url = arena_printf(&cli->arena, "%s" WELLKNOWN_PATH, base);
	if (!http_get(&how, url, WELLKNOWN_MAX_SIZE, 0, answer, error)) {
		context_not_reached(error);
		return error_wrap(error, "ask where nodes join");
	}
	return answer->status == 200 ||
	       error_set(error, ERROR_UNAVAILABLE, "'%s' answers %d", url, answer->status);
}

static bool add_key(const struct wellknown *found, json_t *options, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	json_t *jwk;

	if (!pki_key_to_jwk(found->encryption_key, PKI_USE_ENCRYPTION, false, &text, error) ||
	    !tree_parse(text.data, text.length, PKI_JWK_MAX, "join key", &jwk, error))
		return false;
	tree_set(options, "joinEncryptionJwk", jwk);
	return true;
}

/* No node could come in by a pin that is none of `told`, what the control plane says of itself: a
 * mistake is found here, and not by each node. */
static bool check_told(const char *text, const char *name, const struct pin_list *told,
		       const char *thing, struct error *error)
{
	struct pin_list pins;

	if (!pin_list_parse(text, name, &pins, error))
		return false;
	for (size_t i = 0; i < told->count; i++) {
		if (pin_list_has(&pins, told->pins[i]))
			return true;
	}
	if (told->count == 0 || pin_check(&pins, told->pins[0], thing, error))
		return true;
	error_wrap(error, "%s", name);
	return error_hint(error,
			  "On the control plane's host 'better-compute pki show' prints ca_pins "
			  "for --serving-ca-pin, signing_pins for --join-signing-pin.");
}

/* What the control plane says of itself, where each pin names one of its keys. */
static bool find_by_pins(struct cli *cli, const struct settings *settings, bool by_flags,
			 struct wellknown *ret_found, struct error *error)
{
	const char *ca = by_flags ? "--serving-ca-pin" : "pins.servingCaPin";
	const char *signing = by_flags ? "--join-signing-pin" : "pins.joinSigningPin";
	CLEANUP(http_answer) struct http_answer answer = {0};
	struct pin_list pins;

	return pin_list_parse(settings->join_encryption_pin, "pins.joinEncryptionPin", &pins,
			      error) &&
	       fetch(cli, by_flags, &answer, error) &&
	       wellknown_read(&answer.body, &pins, ret_found, error) &&
	       check_told(settings->serving_ca_pin, ca, &ret_found->ca_pins,
			  "the control plane's serving CA", error) &&
	       check_told(settings->join_signing_pin, signing, &ret_found->signing_pins,
			  "the control plane's join signing key", error);
}

bool hosting_check_pins(struct cli *cli, const struct settings *settings, struct error *error)
{
	CLEANUP(wellknown) struct wellknown found = {0};

	return find_by_pins(cli, settings, false, &found, error);
}

bool hosting_ask(struct cli *cli, const struct settings *settings, const json_t *pool,
		 json_t *options, struct error *error)
{
	CLEANUP(wellknown) struct wellknown found = {0};

	if (!find_by_pins(cli, settings, true, &found, error) || !add_key(&found, options, error))
		return false;
	tree_set(options, "gatewayUrl", tree_string(found.gateway_url));
	tree_set(options, "gatewayServerName", tree_string(found.gateway_server_name));
	tree_set(options, "siteId", tree_string(view_text(pool, "siteId")));
	return true;
}
