/*
 * secret: values that must not be seen: read from a file or stdin, handed over into a file.
 */
#include "cli/secret.h"
#include "cli/guard.h"
#include "cli/noun.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "cli/view.h"
#include "sys/durable.h"

/* Where to is known, and that it can go there, before it is asked for: after that it is nowhere else. */
struct handing {
	struct cli *cli;
	const char *field;
	struct durable_place place; /* none: stdout */
	bool repeated;              /* a create that was done before tells the record alone */
};

/* Into its file, and out of the answer. */
static bool keep(struct handing *handing, json_t *answer, struct error *error)
{
	const char *secret = view_text(answer, handing->field), *id = view_text(answer, "id");
	CLEANUP(buf) struct buf line = {0};
	bool ok;

	if (!handing->place.path || !secret)
		return true;
	buf_printf(&line, "%s\n", secret);
	ok = durable_place_fill(&handing->place, line.data, line.length, error);
	buf_wipe(&line);
	if (!ok)
		return error_hint(error, "The %s is lost. Revoke it: better-compute %s revoke %s",
				  handing->field, handing->cli->command->noun, id ? id : "ID");
	json_object_del(answer, handing->field);
	return true;
}

static bool obtain(struct handing *handing, const char *path, json_t *body, json_t **ret_answer,
		   struct error *error)
{
	if (!cli_change(handing->cli, "POST", path, body, ret_answer, error))
		return false;
	handing->repeated = json_is_object(*ret_answer) && !view_text(*ret_answer, handing->field);
	return keep(handing, *ret_answer, error);
}

/* A signal doesn't leave an empty file, and waits for the answer: it may hold the secret. */
static bool obtain_guarded(struct handing *handing, const char *path, json_t *body,
			   json_t **ret_answer, struct error *error)
{
	bool ok;

	guard_begin("note: the answer, which may hold the secret, is waited for\n");
	ok = cli_place_secret(handing->cli, &handing->place, error) && guard_check(error) &&
	     obtain(handing, path, body, ret_answer, error);
	durable_place_give_up(&handing->place);
	guard_end();
	return ok;
}

static void tell(const struct handing *handing, const json_t *answer)
{
	struct cli *cli = handing->cli;

	noun_print(cli, answer);
	if (handing->repeated)
		output_note("made before, with the same --idempotency-key; its %s was shown then",
			    handing->field);
	else if (cli->output != CLI_TABLE && cli->output != CLI_WIDE)
		return;
	else if (options_given(cli->options, "out"))
		output_note("the %s is in '%s', and nowhere else", handing->field,
			    options_text(cli->options, "out"));
	else
		output_note("the %s is shown this once; --out FILE keeps it off the terminal",
			    handing->field);
}

bool secret_ask(struct cli *cli, const char *path, json_t *body, const char *field, bool *ret_made,
		struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	struct handing handing = {.cli = cli, .field = field};
	bool into_file = options_given(cli->options, "out") && !cli_is_dry(cli);

	if (!(into_file ? obtain_guarded : obtain)(&handing, path, body, &answer, error))
		return false;
	if (answer)
		tell(&handing, answer);
	*ret_made = answer && !handing.repeated;
	return true;
}

bool secret_create(struct cli *cli, const char *field, bool *ret_made, struct error *error)
{
	CLEANUP(tree) json_t *body = json_object();

	return verb_body(cli, body, error) && (secret_ask(cli, noun_get(cli->command->names)->path,
							  body, field, ret_made, error) ||
					       verb_taken(cli, body, error));
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
