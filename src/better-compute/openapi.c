#include "serve/openapi.h"
#include "better-compute/verbs.h"

#include <stdio.h>

static bool print_openapi(struct cli *cli, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};

	(void)cli;
	openapi_write(&text);
	if (fwrite(text.data, 1, text.length, stdout) != text.length)
		return error_os(error, "write the document");
	return true;
}

const struct command OPENAPI_COMMANDS[] = {
	{
		.noun = "openapi",
		.summary = "print the HTTP API's OpenAPI document",
		.more = "The same as GET /v1/openapi.json of a control plane of this version.",
		.example = "better-compute openapi > openapi.json",
		.run = print_openapi,
	},
	{0},
};
