#include "cli/refusal.h"
#include "cli/verb.h"

#include <stdio.h>

/* Fields that no table of a command's row has, with all that is below them. */
static const struct {
	const char *field, *option;
} FIELDS[] = {
	{"startAt", "start"},
	{"endAt", "until"},
	{"endAt", "by"},
	{"duration", "for"},
	{"value", "from"},
	{"overlap", "overlap"},
	{"tenantId", "tenant"},
	{"poolId", "pool"},
	{"resources.vcpu", "cpus"},
	{"resources.memoryGiB", "memory"},
	{"resources.hugepages2MiGiB", "hugepages-2mi"},
	{"resources.hugepages1GiGiB", "hugepages-1gi"},
	{"gang.nodes", "nodes"},
	{"gang.topology.same", "same"},
	{"policy.kubernetes.platformOperated", "platform-operated"},
	{"policy.kubernetes.apiServer", "api-server"},
	{"policy.kubernetes.caCertSha256", "ca-cert-sha256"},
	{"policy.kubernetes.joinTokenRef", "join-token-ref"},
	{"policy.kubernetes.kubernetesVersion", "kubernetes-version"},
	{"policy.kubernetes.gpuApi", "gpu-api"},
	{"policy.kubernetes.labels", "node-label"},
	{"policy.kubernetes.taints", "node-taint"},
	{"policy.placement", "placement"},
};

/* Is `field` that one, or a part of it: taints[0]? */
static bool is_within(const char *field, const char *whole)
{
	size_t length = strlen(whole);

	return str_starts(field, whole) &&
	       (field[length] == '\0' || field[length] == '.' || field[length] == '[');
}

/* Of several devices only these have a profile. */
static bool is_profile(const char *field)
{
	return str_starts(field, "devices[") && str_ends(field, "].profile");
}

static bool is_given(const struct options *options, const char *name)
{
	for (size_t i = 0; i < options->count; i++) {
		if (str_equal(options->values[i].option->name, name))
			return options_given(options, name);
	}
	return false;
}

static const char *option_of(const struct cli *cli, const char *field)
{
	for (const struct verb_field *row = cli->command->fields; row && row->key; row++) {
		if (row->option && str_equal(row->key, field) &&
		    is_given(cli->options, row->option))
			return row->option;
	}
	for (size_t i = 0; i < ARRAY_SIZE(FIELDS); i++) {
		if (is_within(field, FIELDS[i].field) && is_given(cli->options, FIELDS[i].option))
			return FIELDS[i].option;
	}
	return is_profile(field) && is_given(cli->options, "mig") ? "mig" : NULL;
}

void refusal_name_option(const struct cli *cli, struct error *error)
{
	size_t length = strlen(error->field);
	const char *option = cli->options && length ? option_of(cli, error->field) : NULL;
	char rest[ERROR_WHAT_SIZE];

	if (!option || !str_starts(error->what, error->field) ||
	    !str_starts(error->what + length, ": "))
		return;
	str_copy(rest, sizeof rest, error->what + length);
	snprintf(error->what, sizeof error->what, "--%s%s", option, rest);
}
