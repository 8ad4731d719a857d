/*
 * pki: the control plane's keys as it has them. What changes them works on the folder of serve, and
 * stands with serve.
 */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/view.h"

static const struct table_column COLUMNS[] = {
	{"AUTHORITY", 0}, {"USE", 0}, {"ENDS", 0}, {"ENDS AT", TABLE_WIDE}, {"PIN", TABLE_FLEX}};

static void print_authorities(struct cli *cli, const json_t *authorities)
{
	CLEANUP(table) struct table table;
	size_t index;
	json_t *item;

	table_init(&table, COLUMNS, ARRAY_SIZE(COLUMNS));
	json_array_foreach(authorities, index, item)
	{
		table_cell(&table, view_text(item, "authority"));
		table_cell(&table, view_text(item, "use"));
		table_cell(&table, view_relative(&cli->arena, item, "notAfter", cli->now));
		table_cell(&table, view_exact(&cli->arena, item, "notAfter"));
		table_cell(&table, view_text(item, "pin"));
	}
	if (table_row_count(&table) == 0)
		return;
	puts("");
	output_table(cli, &table);
}

static bool status(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *answer = NULL;
	CLEANUP(page) struct page page = {0};
	CLEANUP(buf) struct buf text = {0};

	if (!api_call(cli->api, "GET", "/v1/pki", NULL, &answer, error))
		return false;
	if (output_raw(cli, answer))
		return true;
	const json_t *pins = json_object_get(answer, "pins");
	page_line(&page, "stage", view_text(answer, "stage"));
	page_line(&page, "ca_pins", view_text(pins, "caPins"));
	page_line(&page, "encryption_pins", view_text(pins, "encryptionPins"));
	page_line(&page, "signing_pins", view_text(pins, "signingPins"));
	page_render(&page, 0, output_width(), &text);
	output_text(&text);
	print_authorities(cli, json_object_get(answer, "authorities"));
	return true;
}

const struct command PKI_STATUS_COMMANDS[] = {
	{
		.noun = "pki",
		.verb = "status",
		.summary = "show the pins, the authorities' ends, and a change of keys under way",
		.flags = COMMAND_API | COMMAND_ANSWER,
		.more = "As the running control plane has them. The pins go into bcd's config.toml "
			"under these names.",
		.example = "better-compute pki status\n",
		.run = status,
	},
	{0},
};
