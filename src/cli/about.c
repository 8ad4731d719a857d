#include "cli/commands.h"
#include "cli/output.h"

static bool version(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = json_object();

	(void)error;
	tree_set(answer, "version", tree_string(BC_VERSION));
	if (!output_raw(cli, answer))
		puts("better-compute " BC_VERSION);
	return true;
}

static bool openapi(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	CLEANUP(buf) struct buf text = {0};

	if (!api_call(cli->api, "GET", "/v1/openapi.json", NULL, &answer, error))
		return false;
	output_json(&text, answer);
	if (options_given(cli->options, "out"))
		return cli_write_out(cli, &text, error);
	output_text(&text);
	return true;
}

static const struct option OPENAPI_OPTIONS[] = {
	{"out", 0, OPTION_TEXT, "FILE", "write it there", 0, 0, NULL},
	{"force", 0, OPTION_FLAG, NULL, "replace FILE if it exists", 0, 0, NULL},
	{0},
};

const struct command ABOUT_COMMANDS[] = {
	{
		.noun = "openapi",
		.summary = "print the API's description (OpenAPI 3.1, JSON)",
		.flags = COMMAND_API,
		.options = OPENAPI_OPTIONS,
		.more = "The control plane's own: what it can do.",
		.example = "better-compute openapi --out openapi.json\n",
		.check = cli_check_out,
		.run = openapi,
	},
	{
		.noun = "version",
		.summary = "print the version",
		.flags = COMMAND_ANSWER,
		.example = "better-compute version\n",
		.run = version,
	},
	{0},
};
