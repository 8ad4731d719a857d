#include "better-compute/verbs.h"

#define MAX_TABLES 32

int main(int argc, char **argv)
{
	const struct command *tables[MAX_TABLES];
	struct command_set set = {tables, 0};

#ifdef HAVE_UP
	tables[set.table_count++] = UP_COMMANDS;
#endif
	for (const struct command *const *table = CLI_COMMANDS; *table; table++) {
		assert(set.table_count < MAX_TABLES - 2);
		tables[set.table_count++] = *table;
	}
#ifdef HAVE_SERVE
	tables[set.table_count++] = SERVE_COMMANDS;
#endif
#ifdef HAVE_PKI
	tables[set.table_count++] = PKI_COMMANDS;
#endif
	return command_main(&set, argc, argv);
}
