#include "better-compute/verbs.h"
#include "cli/output.h"
#include "pki/seal.h"
#include "sys/durable.h"

#define DEFAULT_FILE "/var/lib/better-compute/secret.key"

static const char *key_file(const struct cli *cli)
{
	const char *file = options_text(cli->options, "file");

	return file ? file : DEFAULT_FILE;
}

static bool hint_missing(const struct cli *cli, struct error *error)
{
	if (error->code == ERROR_NOT_FOUND)
		error_hint(error,
			   "Name it: --file FILE; or make it: better-compute secret-key init "
			   "--file '%s'",
			   key_file(cli));
	return false;
}

/* Ids alone: a key is in its file and nowhere else. */
static bool show(struct cli *cli, struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;
	CLEANUP(tree) json_t *answer = json_object();
	json_t *list = json_array();

	tree_set(answer, "keys", list);
	if (!seal_keys_load(key_file(cli), &keys, error))
		return hint_missing(cli, error);
	for (size_t i = 0; i < seal_keys_count(keys); i++) {
		json_t *key = json_object();

		tree_set(key, "id", tree_string(seal_keys_id(keys, i)));
		tree_set(key, "seals", json_boolean(i == 0));
		json_array_append_new(list, key);
	}
	if (output_raw(cli, answer))
		return true;
	for (size_t i = 0; i < seal_keys_count(keys); i++)
		printf("%s  %s\n", seal_keys_id(keys, i), i == 0 ? "seals" : "opens");
	return true;
}

static bool init(struct cli *cli, struct error *error)
{
	if (!seal_file_init(key_file(cli), cli->now, error)) {
		if (error->code == ERROR_NOT_FOUND)
			error_hint(error,
				   "Make its folder first, or name another file: --file FILE");
		return false;
	}
	output_note("made %s; back it up apart from the database: without it no secret opens",
		    key_file(cli));
	return show(cli, error);
}

static bool rotate(struct cli *cli, struct error *error)
{
	if (!durable_check_ours(key_file(cli), error))
		return false;
	if (!seal_file_rotate(key_file(cli), cli->now, error))
		return hint_missing(cli, error);
	output_note("give the same file to every replica; serve seals everything anew by itself");
	return show(cli, error);
}

static bool drop_old(struct cli *cli, struct error *error)
{
	if (!durable_check_ours(key_file(cli), error))
		return false;
	return seal_file_drop_old(key_file(cli), error) ? show(cli, error)
							: hint_missing(cli, error);
}

static const struct option OPTIONS[] = {
	{.name = "file",
	 .kind = OPTION_TEXT,
	 .value = "FILE",
	 .help = "the key file (default " DEFAULT_FILE ")"},
	{0},
};

const struct command SECRET_KEY_COMMANDS[] = {
	{
		.noun = "secret-key",
		.verb = "init",
		.summary = "make the key file that secrets are kept under",
		.flags = COMMAND_ANSWER,
		.options = OPTIONS,
		.more = "The file is 0600 and goes to 'serve --secret-key-file'. Without one serve "
			"keeps no secrets.",
		.example = "better-compute secret-key init --file ./secret.key",
		.run = init,
	},
	{
		.noun = "secret-key",
		.verb = "show",
		.summary = "show which keys a key file holds, by id",
		.flags = COMMAND_DEFAULT | COMMAND_ANSWER,
		.options = OPTIONS,
		.example = "better-compute secret-key show --file ./secret.key",
		.run = show,
	},
	{
		.noun = "secret-key",
		.verb = "rotate",
		.summary = "add a new key, which seals from now on",
		.flags = COMMAND_ANSWER,
		.options = OPTIONS,
		.more = "serve reads the file each time and seals what it has under the new key. "
			"'secrets list -o json' shows what sealed each one; once it is the new key "
			"everywhere, 'secret-key drop-old' forgets the others.",
		.example = "better-compute secret-key rotate --file ./secret.key",
		.run = rotate,
	},
	{
		.noun = "secret-key",
		.verb = "drop-old",
		.summary = "forget all keys but the one that seals",
		.flags = COMMAND_ANSWER,
		.options = OPTIONS,
		.example = "better-compute secret-key drop-old --file ./secret.key",
		.run = drop_old,
	},
	{0},
};
