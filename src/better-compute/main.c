#include "better-compute/verbs.h"
#include "cli/output.h"
#include "sys/sandbox.h"

#define MAX_TABLES 32

int main(int argc, char **argv)
{
	const struct command *tables[MAX_TABLES] = {UP_COMMANDS};
	struct command_set set = {tables, 1};
	struct error error;

	/* The keys of the control plane, and of who asks it. */
	if (!sandbox_dumps(&error))
		output_note("%s", error.what);
	for (const struct command *const *table = CLI_COMMANDS; *table; table++) {
		assert(set.table_count < MAX_TABLES - 5);
		tables[set.table_count++] = *table;
	}
	tables[set.table_count++] = SERVE_COMMANDS;
	tables[set.table_count++] = BACKUP_COMMANDS;
	tables[set.table_count++] = PKI_COMMANDS;
	tables[set.table_count++] = SECRET_KEY_COMMANDS;
	return command_main(&set, argc, argv);
}
