/*
 * secret: values that must not be seen: read from a file or stdin, handed over into a file.
 */
#include "cli/secret.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "cli/view.h"

static bool write_secret(struct cli *cli, const char *secret, struct error *error)
{
	CLEANUP(buf) struct buf line = {0};

	buf_printf(&line, "%s\n", secret);
	bool ok = cli_write_secret(cli, &line, error);
	buf_wipe(&line);
	return ok;
}

bool secret_create(struct cli *cli, const char *field, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object(), *answer = NULL;

	return verb_body(cli, body, error) &&
	       cli_change(cli, "POST", noun_get(cli->command->names)->path, body, &answer, error) &&
	       (!answer || secret_hand_over(cli, answer, field, error));
}

bool secret_hand_over(struct cli *cli, json_t *answer, const char *field, struct error *error)
{
	const char *secret = view_text(answer, field), *id = view_text(answer, "id");

	if (!secret && json_is_object(answer)) { /* a repeated create tells the record alone */
		noun_print(cli, answer);
		output_note("made before, with the same --idempotency-key; its %s was shown then",
			    field);
		return true;
	}
	if (!options_given(cli->options, "out")) {
		noun_print(cli, answer);
		if (cli->output == CLI_TABLE || cli->output == CLI_WIDE)
			output_note("the %s is shown this once; --out FILE keeps it off the "
				    "terminal",
				    field);
		return true;
	}
	if (!write_secret(cli, secret, error))
		return error_hint(error, "The %s is lost. Revoke it: better-compute %s revoke %s",
				  field, cli->command->noun, id ? id : "ID");
	json_object_del(answer, field);
	noun_print(cli, answer);
	if (cli->output == CLI_TABLE || cli->output == CLI_WIDE)
		output_note("the %s is in '%s', and nowhere else", field,
			    options_text(cli->options, "out"));
	return true;
}

bool secret_read(const char *path, const char **ret_value, struct arena *arena, struct error *error)
{
	CLEANUP(buf) struct buf content = {0};
	bool ok = cli_read(path, &content, error);

	if (ok && content.length && content.data[content.length - 1] == '\n')
		content.length--;
	if (ok && (content.length == 0 || memchr(content.data, '\0', content.length)))
		ok = error_set(error, ERROR_INVALID_INPUT, "'%s' %s", path,
			       content.length ? "holds a zero byte: a secret is text" : "is empty");
	if (ok)
		*ret_value = arena_strndup(arena, (const char *)content.data, content.length);
	buf_wipe(&content);
	return ok;
}
