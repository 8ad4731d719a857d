#include "cli/commands.h"
#include "cli/verb.h"
#include "cli/view.h"

#define DEVICES_MAX (1 << 20)
#define HOURS_MAX   (INT64_C(1) << 40)

static bool check_create(struct cli *cli, struct error *error)
{
	if (options_given(cli->options, "max-devices") || options_given(cli->options, "gpu-hours"))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "which limit?");
	return error_hint(error, "Say --max-devices N, --gpu-hours N (a month), or both.");
}

static bool delete(struct cli *cli, struct error *error)
{
	CLEANUP(tree) json_t *quota = NULL;

	if (!noun_fetch(cli, NOUN_QUOTA, cli->options->operands[0], &quota, error))
		return false;
	const char *id = view_text(quota, "id");
	const char *devices = view_quota_devices(&cli->arena, quota);
	const char *hours = view_quota_hours(&cli->arena, quota);
	const char *question = arena_printf(
		&cli->arena, "deleting %s takes the limit away: %s%s%s%s", id,
		devices ? devices : "", devices ? " devices" : "", devices && hours ? ", " : "",
		hours ? arena_printf(&cli->arena, "%s GPU-hours this month", hours) : "");
	return verb_confirm(cli, id, NULL, NULL, question, error) && verb_delete(cli, id, error);
}

static const char *const CLASSES[] = {"gpu", "gpu.mig", "gpu.slot", NULL};

#define LIMIT_OPTIONS                                                                              \
	{"max-devices", 0, OPTION_NUMBER, "N", "so many devices at a time", 0, DEVICES_MAX, NULL}, \
	{                                                                                          \
		"gpu-hours", 0, OPTION_NUMBER, "N", "so many GPU-hours a month", 0, HOURS_MAX,     \
			NULL                                                                       \
	}

static const struct option CREATE_OPTIONS[] = {
	{"tenant", 0, OPTION_TEXT, "TENANT", "whose use is limited", 0, 0, NULL},
	{"pool", 0, OPTION_TEXT, "POOL", "in this pool alone (default: in all)", 0, 0, NULL},
	{"class", 0, OPTION_TEXT, "CLASS", "of this class alone: gpu, gpu.mig or gpu.slot", 0, 0,
	 CLASSES},
	LIMIT_OPTIONS,
	{0},
};

static const struct option UPDATE_OPTIONS[] = {LIMIT_OPTIONS, {0}};

#define LIMIT_FIELDS                                                                               \
	FIELD_NUMBER("maxDevices", "max-devices"), FIELD_NUMBER("gpuHoursPerMonth", "gpu-hours")

static const struct verb_field CREATE_FIELDS[] = {
	FIELD_TENANT,
	FIELD_ID("poolId", "pool", NOUN_POOL),
	FIELD_TEXT("class", "class"),
	LIMIT_FIELDS,
	{0},
};
static const struct verb_field UPDATE_FIELDS[] = {LIMIT_FIELDS, {0}};

#define QUOTAS .noun = "quotas", .names = NOUN_QUOTA

const struct command QUOTA_COMMANDS[] = {
	{
		QUOTAS,
		VERB_LISTS,
		.summary = "list the limits of tenants, and what is used of them",
		.example = "better-compute quotas\n",
	},
	{
		QUOTAS,
		VERB_CREATES,
		.summary = "limit what a tenant may book",
		.options = CREATE_OPTIONS,
		.more = "A request that would go over a limit is denied with the numbers.",
		.example = "better-compute quotas create --class gpu --max-devices 16 "
			   "--gpu-hours 2000\n",
		.check = check_create,
		.fields = CREATE_FIELDS,
		.run = verb_create,
	},
	{
		QUOTAS,
		VERB_SHOWS("ID"),
		.summary = "show one limit and what is used of it",
		.example = "better-compute quotas show quo_01kb7\n",
	},
	{
		QUOTAS,
		VERB_CHANGES("update", "ID"),
		.summary = "change a limit",
		.options = UPDATE_OPTIONS,
		.example = "better-compute quotas update quo_01kb7 --max-devices 24\n",
		.fields = UPDATE_FIELDS,
		.run = verb_update,
	},
	{
		QUOTAS,
		VERB_ASKS("delete", "ID"),
		.summary = "take a limit away",
		.example = "better-compute quotas delete quo_01kb7 --yes\n",
		.run = delete,
	},
	{0},
};
