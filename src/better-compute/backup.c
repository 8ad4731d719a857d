#include "control/backup.h"
#include "better-compute/database.h"
#include "better-compute/verbs.h"
#include "cli/output.h"
#include "control/core/timestamp.h"
#include "serve/serve.h"
#include "store/store.h"
#include "sys/durable.h"

static bool find_url(struct cli *cli, char **ret_url, struct error *error)
{
	const char *given;

	return database_given(cli, &given, error) &&
	       serve_database_url(database_home(cli), given, ret_url, error);
}

/* Where it went: as words for people, and as the option that names it for programs. */
struct place {
	const char *words, *key, *value;
};

/* `into` NULL: it isn't told. */
static bool show(struct cli *cli, const char *what, const char *path, const struct place *into,
		 const struct backup_info *info)
{
	CLEANUP(tree) json_t *answer = NULL;
	char made[TIMESTAMP_SIZE];

	timestamp_format(made, info->made);
	answer = json_pack("{s:s, s:s, s:s, s:i, s:I, s:I}", "file", path, "madeAt", made,
			   "lineage", info->lineage, "schema", info->schema_version, "tables",
			   (json_int_t)info->tables, "rows", (json_int_t)info->rows);
	if (into)
		tree_set(answer, "into", json_pack("{s:s}", into->key, into->value));
	if (!output_raw(cli, answer))
		output_line("%s %s%s%s: %lld rows of %lld tables, as of %s", what, path,
			    into ? " into " : "", into ? into->words : "", (long long)info->rows,
			    (long long)info->tables, made);
	return true;
}

/* --- backup --- */

static bool write_backup(const char *url, const char *path, struct backup_info *ret_info,
			 struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	struct store *store;
	bool done;

	if (!store_open_as(url, STORE_MIGRATE_NEVER, &store, error))
		return false;
	done = backup_write(store, &text, ret_info, error) &&
	       durable_create(path, text.data, text.length, 0600, error);
	store_destroy(store);
	buf_wipe(&text);
	return done;
}

static bool exists(const char *path, struct error *error)
{
	error_set(error, ERROR_CONFLICT, "'%s' exists", path);
	return error_hint(error, "Name another file: a backup never takes the place of one.");
}

static bool backup(struct cli *cli, struct error *error)
{
	const char *path = cli->options->operands[0];
	struct backup_info info;
	char *url;
	bool done;

	/* Before the work, so that it isn't done for nothing. */
	if (durable_stamp(path).exists)
		return exists(path, error);
	if (!durable_check_writable(path, error))
		return error_hint(error, "Make its folder first, or name another file.");
	if (!find_url(cli, &url, error))
		return false;
	done = write_backup(url, path, &info, error);
	serve_forget_url(url);
	if (!done && error->code == ERROR_NOT_FOUND && !error->hint[0])
		error_hint(error, "Name the control plane's folder: --home DIR; or its database: "
				  "--database-file FILE.");
	return done && show(cli, "wrote", path, NULL, &info);
}

/* --- restore --- */

/* What `up` made here. */
#define HOME_HERE CONTEXT_STATE_DEFAULT "/serve"

/* A folder that nobody named is not made, and not filled beside the one that is meant. */
static bool check_home(const struct cli *cli, struct error *error)
{
	bool here = durable_is_own_folder(HOME_HERE);

	if (options_given(cli->options, "home") || database_is_elsewhere(cli) ||
	    (durable_stamp(DATABASE_DEFAULT_HOME).exists && !here))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "--home is needed: %s",
		  here ? "a control plane's folder is here, and it may not be meant"
		       : "there is no '" DATABASE_DEFAULT_HOME "'");
	return error_hint(error,
			  "Name the control plane's folder: --home %s; or its database: "
			  "--database-file FILE.",
			  here ? HOME_HERE : "DIR");
}

/* As whoever called named it: a database's own address may hold a password. */
static struct place place(struct cli *cli)
{
	const char *file = options_text(cli->options, "database-file");
	const char *url = options_text(cli->options, "database"), *home = database_home(cli);

	if (!database_is_elsewhere(cli))
		return (struct place){arena_printf(&cli->arena, "%s/better-compute.db", home),
				      "home", home};
	if (file)
		return (struct place){arena_printf(&cli->arena, "the database of %s", file),
				      "databaseFile", file};
	return (struct place){url, "database", url};
}

static bool restore(struct cli *cli, struct error *error)
{
	const char *path = cli->options->operands[0];
	bool force = options_given(cli->options, "force");
	CLEANUP(buf) struct buf text = {0};
	struct backup_info info;
	struct place into;
	char *url;
	bool done;

	if (!check_home(cli, error) || !durable_read(path, BACKUP_MAX_SIZE, &text, error) ||
	    !find_url(cli, &url, error))
		return false;
	/* Of the home's own database alone: another one has nothing to do with that folder. */
	if (!database_is_elsewhere(cli) && !durable_make_folder(database_home(cli), 0700, error)) {
		serve_forget_url(url);
		return false;
	}
	done = backup_restore(url, &text, path, force, &info, error);
	serve_forget_url(url);
	buf_wipe(&text);
	into = place(cli);
	if (!done || !show(cli, "restored", path, &into, &info))
		return false;
	output_note("nodes meet a new lineage: they report all they hold, and take what it says");
	output_note(
		"they trust the keys of the folder pki as it was: serve needs a copy of that one");
	return true;
}

static const struct option BACKUP_OPTIONS[] = {DATABASE_OPTIONS, {0}};

static const struct option RESTORE_OPTIONS[] = {
	DATABASE_OPTIONS,
	{.name = "force", .kind = OPTION_FLAG, .help = "replace what the database holds"},
	{0},
};

const struct command BACKUP_COMMANDS[] = {
	{
		.noun = "backup",
		.summary = "write the database to a file",
		.operands = "FILE",
		.min_operands = 1,
		.max_operands = 1,
		.flags = COMMAND_ANSWER,
		.options = BACKUP_OPTIONS,
		.more = "One moment of the whole database, taken while the control plane goes on "
			"working, as a text that SQLite and PostgreSQL both read back. FILE is "
			"made (0600) and must not be there. It is as secret as the database. The "
			"keys in DIR/pki are not in it: keep a copy of that folder too.",
		.example = "better-compute backup --home ./control-plane monday.backup",
		.run = backup,
	},
	{
		.noun = "restore",
		.summary = "make a database of a backup",
		.operands = "FILE",
		.min_operands = 1,
		.max_operands = 1,
		.flags = COMMAND_ANSWER,
		.options = RESTORE_OPTIONS,
		.more = "Stop every replica first. A backup of an older version is brought up to "
			"date. The database gets a new lineage, so that nodes don't take its "
			"numbers for those of before: each reports what it holds, and gives back "
			"what this database doesn't know. A database that holds something is "
			"replaced with --force only. A folder that --home names is made where it "
			"is "
			"missing; without --home it has to be there.",
		.example = "better-compute restore --home ./control-plane monday.backup",
		.run = restore,
	},
	{0},
};
