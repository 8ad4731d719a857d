#include "better-compute/verbs.h"
#include "cli/output.h"
#include "pki/folder.h"

#define DEFAULT_HOME "/var/lib/better-compute"

static bool folder_path(struct cli *cli, const char **ret_path, struct error *error)
{
	const char *home = options_text(cli->options, "home");

	*ret_path = arena_printf(&cli->arena, "%s/pki", home ? home : DEFAULT_HOME);
	if (strlen(*ret_path) < 4000)
		return true;
	return error_set(error, ERROR_INVALID_INPUT, "--home is too long");
}

/* The names are those of bcd's config.toml, where the values go. */
static json_t *describe(const struct pki_folder *folder, struct error *error)
{
	CLEANUP(tree) json_t *answer = json_object();
	CLEANUP(tree) json_t *jwk = NULL;
	CLEANUP(buf) struct buf text = {0};
	struct pki_pins pins;

	if (!pki_key_to_jwk(folder->join_encryption_key, PKI_USE_ENCRYPTION, false, &text, error) ||
	    !tree_parse(text.data, text.length, PKI_JWK_MAX, "join key", &jwk, error))
		return NULL;
	pki_folder_pins(folder, &pins);
	tree_set(answer, "caPins", tree_string(pins.gateway_ca));
	tree_set(answer, "encryptionPins", tree_string(pins.join_encryption));
	tree_set(answer, "signingPins", tree_string(pins.join_signing));
	tree_set(answer, "encryptionJwk", json_incref(jwk));
	return json_incref(answer);
}

static bool print(struct cli *cli, const char *path, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	struct pki_folder folder = {0};
	struct pki_pins pins;

	if (!pki_folder_load(path, &folder, error)) {
		if (error->code == ERROR_NOT_FOUND)
			error_hint(error, "Make it: better-compute pki init --home DIR");
		return false;
	}
	pki_folder_pins(&folder, &pins);
	answer = describe(&folder, error);
	pki_folder_deinit(&folder);
	if (!answer)
		return false;
	if (!output_raw(cli, answer))
		printf("ca_pins          %s\nencryption_pins  %s\nsigning_pins     %s\n",
		       pins.gateway_ca, pins.join_encryption, pins.join_signing);
	return true;
}

static bool init(struct cli *cli, struct error *error)
{
	const char *path;

	if (!folder_path(cli, &path, error) || !pki_folder_init(path, cli->now, error))
		return false;
	output_note("made %s; keep it secret and backed up: nodes trust these keys", path);
	return print(cli, path, error);
}

static bool show(struct cli *cli, struct error *error)
{
	const char *path;

	return folder_path(cli, &path, error) && print(cli, path, error);
}

static const struct option OPTIONS[] = {
	{.name = "home",
	 .kind = OPTION_TEXT,
	 .value = "DIR",
	 .help = "the control plane's folder (default " DEFAULT_HOME ")"},
	{0},
};

const struct command PKI_COMMANDS[] = {
	{
		.noun = "pki",
		.verb = "init",
		.summary = "make the control plane's own keys",
		.flags = COMMAND_OUTPUT,
		.options = OPTIONS,
		.more = "Makes DIR/pki whole or not at all; one that is there is never touched. "
			"Replicas share one such folder's content.",
		.example = "better-compute pki init --home ./control-plane",
		.run = init,
	},
	{
		.noun = "pki",
		.verb = "show",
		.summary = "show the pins that nodes are configured with",
		.flags = COMMAND_DEFAULT | COMMAND_OUTPUT,
		.options = OPTIONS,
		.more = "The names are those of bcd's config.toml: ca_pins in [gateway], the "
			"others in "
			"[join]. -o json also holds the join encryption key, which is public.",
		.example = "better-compute pki show --home ./control-plane",
		.run = show,
	},
	{0},
};
