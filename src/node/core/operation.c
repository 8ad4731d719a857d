#include "node/core/operation.h"

#include "text/tree.h"

#include <stdio.h>

bool operation_touches_gpus(const char *kind)
{
	return str_equal(kind, "gpu.reset") || str_equal(kind, "diag.dcgm") ||
	       str_starts(kind, "host.");
}

static bool refuse(const char *reason, char *ret_reason)
{
	str_copy(ret_reason, REPORTS_REASON_SIZE, reason);
	return false;
}

/* `*ret_one`: the argument names a GPU. */
static bool read_argument(const char *argument, bool *ret_one, struct atom_uuid *ret_gpu,
			  struct error *error)
{
	CLEANUP(tree) json_t *tree = NULL;
	const char *gpu;

	*ret_one = false;
	if (!*argument)
		return true;
	if (!tree_parse(argument, strlen(argument), OPERATION_MAX_ARGUMENT, "argument", &tree,
			error))
		return false;
	if (!json_object_get(tree, "gpu"))
		return json_is_object(tree) || error_field(error, "argument", "is no object");
	*ret_one = true;
	return tree_get_string(tree, "gpu", "", ATOM_UUID_SIZE + 4, &gpu, error) &&
	       (atom_uuid_parse(gpu, ret_gpu) ||
		error_field(error, "gpu", "'%s' is no GPU's UUID", gpu));
}

static bool is_free(const struct converge_view *claims, struct atom_uuid gpu, char *reason,
		    char *message)
{
	const char *by = converge_claimant(claims, gpu);
	char uuid[ATOM_UUID_SIZE];
	bool pending;

	if (!by)
		return true;
	pending = releases_find(claims->releases, by);
	atom_uuid_format(uuid, gpu);
	snprintf(message, REPORTS_MESSAGE_SIZE, "GPU-%s is claimed by %s%s", uuid,
		 pending ? "the pending release of " : "", by);
	return refuse("claimed", reason);
}

bool operation_may(const struct converge_view *claims, const char *kind, const char *argument,
		   char reason[REPORTS_REASON_SIZE], char message[REPORTS_MESSAGE_SIZE])
{
	struct atom_uuid gpu;
	struct error error;
	bool one;

	if (!operation_touches_gpus(kind))
		return true;
	if (!read_argument(argument, &one, &gpu, &error)) {
		str_copy(message, REPORTS_MESSAGE_SIZE, error.what);
		return refuse("invalid-argument", reason);
	}
	if (one)
		return is_free(claims, gpu, reason, message);
	for (size_t i = 0; i < claims->inventory->gpus.count; i++)
		if (!is_free(claims, claims->inventory->gpus.items[i].uuid, reason, message))
			return false;
	return true;
}

/* Who does it instead, and how. */
static bool is_never_done(const char *kind, bool hosted, char *reason, char *message)
{
	if (str_starts(kind, "daemon.")) {
		snprintf(message, REPORTS_MESSAGE_SIZE,
			 "bcd doesn't update itself: its configuration has no [update] "
			 "release_pins; %s",
			 hosted ? "roll out a new image in the cluster"
				: "install a new version on the machine");
		return !refuse("self-update-refused", reason);
	}
	if (str_equal(kind, "node.reboot")) {
		snprintf(message, REPORTS_MESSAGE_SIZE, "bcd never reboots a node: %s",
			 hosted ? "this host is managed by others ([host] units = false); drain "
				  "it and reboot it there"
				: "drain it and reboot it by hand");
		return !refuse("reboot-refused", reason);
	}
	return false;
}

void operation_refuse(const struct converge_view *claims, bool hosted, const char *kind,
		      const char *argument, char reason[REPORTS_REASON_SIZE],
		      char message[REPORTS_MESSAGE_SIZE])
{
	if (is_never_done(kind, hosted, reason, message) ||
	    !operation_may(claims, kind, argument, reason, message))
		return;
	refuse("unsupported", reason);
	str_copy(message, REPORTS_MESSAGE_SIZE,
		 hosted ? "this node takes no operations: this host's units are managed by "
			  "others; bcd only binds GPUs"
			: "this node takes no operations: bcd only binds GPUs");
}
