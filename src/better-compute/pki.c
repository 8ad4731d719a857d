#include "better-compute/verbs.h"
#include "cli/output.h"
#include "pki/rotation.h"
#include "sys/durable.h"

#define DEFAULT_HOME "/var/lib/better-compute"

static bool folder_path(struct cli *cli, const char **ret_path, struct error *error)
{
	const char *home = options_text(cli->options, "home");

	*ret_path = arena_printf(&cli->arena, "%s/pki", home ? home : DEFAULT_HOME);
	if (strlen(*ret_path) < 4000)
		return true;
	return error_set(error, ERROR_INVALID_INPUT, "--home is too long");
}

static bool add_jwk(json_t *answer, const char *field, const struct pki_folder *folder,
		    struct error *error)
{
	CLEANUP(tree) json_t *jwk = NULL;
	CLEANUP(buf) struct buf text = {0};

	if (!pki_key_to_jwk(folder->join_encryption_key, PKI_USE_ENCRYPTION, false, &text, error) ||
	    !tree_parse(text.data, text.length, PKI_JWK_MAX, "join key", &jwk, error))
		return false;
	tree_set(answer, field, json_incref(jwk));
	return true;
}

/* The names are those of bcd's config.toml, where the values go. */
static json_t *describe(const struct pki_folder *folder, const struct pki_pin_texts *pins,
			struct wall now, struct error *error)
{
	CLEANUP(tree) json_t *answer = json_object();

	tree_set(answer, "caPins", tree_string(pins->gateway_ca));
	tree_set(answer, "encryptionPins", tree_string(pins->join_encryption));
	tree_set(answer, "signingPins", tree_string(pins->join_signing));
	tree_set(answer, "stage", tree_string(pki_stage_name(pki_folder_stage(folder, now))));
	if (!add_jwk(answer, "encryptionJwk", folder, error) ||
	    (folder->next && !add_jwk(answer, "nextEncryptionJwk", folder->next, error)))
		return NULL;
	return json_incref(answer);
}

/* What to do next, for a person. */
static void print_stage(enum pki_stage stage)
{
	switch (stage) {
	case PKI_STEADY:
		return;
	case PKI_CHANGING:
		output_note("keys are being changed: old pins and new ones are good; give nodes "
			    "both, then run 'better-compute pki rotate finish'");
		return;
	case PKI_RENEWING:
		output_note("keys were changed: old pins are refused; nodes renew their "
			    "certificates by themselves");
		return;
	}
}

static bool hint_home(struct error *error)
{
	if (error->code == ERROR_NOT_FOUND)
		error_hint(error, "Name the control plane's folder: --home DIR; or make one: "
				  "better-compute serve --init --home DIR");
	return false;
}

static bool print(struct cli *cli, const char *path, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	struct pki_folder folder = {0};
	struct pki_pin_texts pins;
	enum pki_stage stage;

	if (!pki_folder_load(path, &folder, error))
		return hint_home(error);
	pki_folder_pin_texts(&folder, &pins);
	stage = pki_folder_stage(&folder, cli->now);
	answer = describe(&folder, &pins, cli->now, error);
	pki_folder_deinit(&folder);
	if (!answer)
		return false;
	if (output_raw(cli, answer))
		return true;
	printf("ca_pins          %s\nencryption_pins  %s\nsigning_pins     %s\n", pins.gateway_ca,
	       pins.join_encryption, pins.join_signing);
	print_stage(stage);
	return true;
}

static bool rotate(struct cli *cli, struct error *error)
{
	const char *step = cli->options->operand_count > 0 ? cli->options->operands[0] : NULL;
	bool force = options_given(cli->options, "force");
	const char *path;

	if (!folder_path(cli, &path, error) || (step && !durable_check_ours(path, error)))
		return false;
	if (step && str_equal(step, "begin")) {
		if (!pki_rotate_begin(path, force, cli->now, error))
			return hint_home(error);
	} else if (step && str_equal(step, "finish")) {
		if (!pki_rotate_finish(path, cli->now, error))
			return hint_home(error);
	} else if (step && str_equal(step, "cancel")) {
		if (!pki_rotate_cancel(path, cli->now, error))
			return hint_home(error);
		output_note("the next keys are gone; a node that was given their pins alone is to "
			    "have these back");
	} else if (step) {
		error_set(error, ERROR_INVALID_INPUT,
			  "'%.40s' is none of 'begin', 'finish' and 'cancel'", step);
		return error_hint(error, "Without one it shows how far a change of keys is.");
	}
	return print(cli, path, error);
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

static const struct option ROTATE_OPTIONS[] = {
	{.name = "home",
	 .kind = OPTION_TEXT,
	 .value = "DIR",
	 .help = "the control plane's folder (default " DEFAULT_HOME ")"},
	{.name = "force",
	 .kind = OPTION_FLAG,
	 .help = "begin though nodes have certificates of the change before, whose end it is"},
	{0},
};

const struct command PKI_COMMANDS[] = {
	{
		.noun = "pki",
		.verb = "init",
		.summary = "make the control plane's own keys",
		.flags = COMMAND_ANSWER,
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
		.flags = COMMAND_DEFAULT | COMMAND_ANSWER,
		.options = OPTIONS,
		.more = "The names are those of bcd's config.toml: ca_pins in [gateway], the "
			"others in "
			"[join]. -o json also holds the join encryption key, which is public.",
		.example = "better-compute pki show --home ./control-plane",
		.run = show,
	},
	{
		.noun = "pki",
		.verb = "rotate",
		.summary = "change the control plane's keys without losing a node",
		.operands = "begin|finish|cancel",
		.max_operands = 1,
		.flags = COMMAND_ANSWER,
		.options = ROTATE_OPTIONS,
		.more = "begin makes the next keys: from then on nodes are let in by old pins and "
			"by new ones. Give every node both pins, as 'pki show' prints them. "
			"finish makes the next keys the current ones and ends the old pins; cancel "
			"forgets the next keys instead. serve "
			"reads the folder anew by itself, and no stream is dropped. Without any "
			"it shows how far the change is.",
		.example = "better-compute pki rotate begin --home ./control-plane\n"
			   "better-compute pki rotate finish --home ./control-plane",
		.run = rotate,
	},
	{0},
};
