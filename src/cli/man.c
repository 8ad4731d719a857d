#include "cli/man.h"
#include "cli/help.h"

#define TEXT_WIDTH 70 /* of the page's source, which grows a little by escapes */

static void escaped(struct buf *out, const char *text)
{
	bool line_start = true;

	for (; *text; text++) {
		if (line_start && (*text == '.' || *text == '\''))
			buf_add_text(out, "\\&");
		if (*text == '-')
			buf_add_text(out, "\\-");
		else if (*text == '\\')
			buf_add_text(out, "\\e");
		else if (*text == '"')
			buf_add_text(out, "\\(dq");
		else if (*text == '~')
			buf_add_text(out, "\\(ti");
		else
			buf_add_char(out, *text);
		line_start = *text == '\n';
	}
}

static void upper(struct buf *out, const char *text)
{
	CLEANUP(free) char *copy = mem_strdup(text);

	for (char *at = copy; *at; at++) {
		if (*at >= 'a' && *at <= 'z')
			*at = (char)(*at - 'a' + 'A');
	}
	escaped(out, copy);
}

void man_head(struct buf *out, const char *name, int section, const char *about)
{
	buf_add_text(out, ".TH ");
	upper(out, name);
	buf_printf(out, " %d \"\" \"better\\-compute %s\"\n.SH NAME\n", section, BC_VERSION);
	escaped(out, name);
	buf_add_text(out, " \\- ");
	escaped(out, about);
	buf_add_char(out, '\n');
}

void man_title(struct buf *out, const char *macro, const char *title)
{
	buf_printf(out, "%s \"", macro);
	escaped(out, title);
	buf_add_text(out, "\"\n");
}

void man_text(struct buf *out, const char *text)
{
	CLEANUP(buf) struct buf lines = {0};

	help_paragraph(&lines, text, TEXT_WIDTH);
	escaped(out, buf_text(&lines));
}

void man_lines(struct buf *out, const char *text)
{
	size_t length = strlen(text);

	buf_add_text(out, ".PP\n.RS 4\n.nf\n");
	escaped(out, text);
	if (length && text[length - 1] != '\n')
		buf_add_char(out, '\n');
	buf_add_text(out, ".fi\n.RE\n");
}

void man_item(struct buf *out, const char *tag, const char *text)
{
	buf_add_text(out, ".TP\n\\fB");
	escaped(out, tag);
	buf_add_text(out, "\\fR\n");
	man_text(out, text);
}

void man_options(struct buf *out, const struct option *table)
{
	for (const struct option *row = table; row && row->name; row++) {
		buf_add_text(out, ".TP\n\\fB");
		if (row->letter)
			buf_printf(out, "\\-%c\\fR, \\fB", row->letter);
		buf_add_text(out, "\\-\\-");
		escaped(out, row->name);
		buf_add_text(out, "\\fR");
		if (row->value) {
			buf_add_text(out, " \\fI");
			escaped(out, row->value);
			buf_add_text(out, "\\fR");
		}
		buf_add_char(out, '\n');
		escaped(out, row->help);
		buf_add_char(out, '\n');
	}
}

/* --- better-compute(1) --- */

static void man_command(struct buf *out, const struct command *command)
{
	CLEANUP(buf) struct buf usage = {0}, example = {0};

	help_usage(&usage, command);
	man_title(out, ".SS", buf_text(&usage));
	escaped(out, command->summary);
	buf_add_text(out, ".\n");
	if (command->more) {
		buf_add_text(out, ".PP\n");
		man_text(out, command->more);
	}
	man_options(out, command->options);
	help_example(&example, command, "");
	man_lines(out, buf_text(&example));
}

static void man_common_options(struct buf *out)
{
	man_title(out, ".SH", "COMMON OPTIONS");
	for (size_t i = 0; HELP_GROUPS[i].who; i++) {
		buf_add_text(out, i ? ".PP\n" : "");
		man_text(out, HELP_GROUPS[i].who);
		man_options(out, help_group_options(&HELP_GROUPS[i]));
	}
}

static void man_files(struct buf *out)
{
	man_title(out, ".SH", "ENVIRONMENT");
	man_item(out, "BETTER_COMPUTE_STATE", "The state folder of better-compute up.");
	man_item(out, "BETTER_COMPUTE_API, BETTER_COMPUTE_KEY_FILE, BETTER_COMPUTE_CA_FILE",
		 "The control plane's address (not together with BETTER_COMPUTE_STATE), the file "
		 "with "
		 "the API key, and the authority that signed its certificate. The two files win "
		 "over "
		 "what the folder of BETTER_COMPUTE_STATE or ./.better-compute says; --state uses "
		 "none of the three.");
	man_item(out, "BETTER_COMPUTE_TENANT, BETTER_COMPUTE_POOL",
		 "What commands book for, and where, when no option says it.");
	man_item(out, "NO_COLOR", "Any text in it: no colours.");
	man_title(out, ".SH", "FILES");
	man_item(out, "~/.config/better-compute/config.toml",
		 "state, api, key_file, ca_file, tenant and pool, as the options of these names.");
	man_item(out, "./.better-compute",
		 "The state folder that is used when nothing else is "
		 "named and it belongs to the caller.");
}

void help_man(struct buf *out, const struct command_set *set)
{
	man_head(out, "better-compute", 1,
		 "lend GPUs to Kubernetes nodes by reservation, and take them back");
	buf_add_text(out, ".SH SYNOPSIS\n\\fBbetter\\-compute\\fR \\fICOMMAND\\fR "
			  "[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n");
	man_text(out, HELP_ABOUT);
	man_title(out, ".SH", "COMMANDS");
	for (size_t i = 0; i < set->table_count; i++) {
		for (const struct command *row = set->tables[i]; row->noun; row++) {
			if (!(row->flags & COMMAND_HIDDEN))
				man_command(out, row);
		}
	}
	man_common_options(out);
	man_title(out, ".SH", "WHICH CONTROL PLANE");
	man_text(out, HELP_CONTEXT);
	man_title(out, ".SH", "EXIT STATUS");
	man_text(out, HELP_EXIT);
	man_files(out);
	buf_add_text(out, ".SH SEE ALSO\n.BR bcd (8)\n");
}
