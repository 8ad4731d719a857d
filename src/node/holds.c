#include "node/holds.h"

#include "sys/durable.h"
#include "sys/machine.h"

#define MAX_ENTRIES 4096 /* of /etc/cdi, others' specs included */

char *holds_path(const char *folder, const char *allocation)
{
	char name[HOLDS_NAME_SIZE];
	struct buf path = {0};

	holds_file_name(name, allocation);
	buf_printf(&path, "%s/%s", folder, name);
	return buf_take_text(&path);
}

static bool read_one(const char *folder, const char *name, struct hold *ret_hold,
		     struct error *error)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};

	buf_printf(&path, "%s/%s", folder, name);
	return durable_read(buf_text(&path), HOLDS_MAX_FILE, &text, error) &&
	       holds_parse(buf_text(&text), text.length, name, ret_hold, error);
}

static bool read_all(const char *folder, const struct durable_names *names, struct holds *holds,
		     struct error *error)
{
	for (size_t i = 0; i < names->count; i++) {
		struct hold hold = {0};

		if (!holds_is_file_name(names->names[i]))
			continue;
		if (holds->count == HOLDS_MAX)
			return error_set(error, ERROR_RESOURCES_EXHAUSTED, "more than %d holds",
					 HOLDS_MAX);
		if (!read_one(folder, names->names[i], &hold, error))
			return false;
		*vec_push(holds) = hold;
	}
	return true;
}

bool holds_read(const char *folder, struct holds *ret_holds, struct error *error)
{
	struct durable_names names = {0};
	struct holds holds = {0};
	bool ok;

	if (!durable_list(folder, MAX_ENTRIES, &names, error)) {
		if (error->code == ERROR_NOT_FOUND)
			return true;
		return error_wrap(error, "read the holds in '%s'", folder);
	}
	ok = read_all(folder, &names, &holds, error);
	durable_names_deinit(&names);
	if (!ok) {
		holds_deinit(&holds);
		return error_wrap(error, "read the holds in '%s'", folder);
	}
	*ret_holds = holds;
	return true;
}

static void find_nodes(struct hold_nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++) {
		struct machine_device device;

		if (!machine_device(nodes->items[i].host_path, &device))
			continue;
		nodes->items[i].type = device.type;
		nodes->items[i].major = device.major;
		nodes->items[i].minor = device.minor;
	}
}

void holds_find_nodes(struct hold *hold)
{
	find_nodes(&hold->common);
	for (size_t i = 0; i < hold->devices.count; i++)
		find_nodes(&hold->devices.items[i].nodes);
}
