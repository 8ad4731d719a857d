#include "node/holders.h"

#include "node/core/given.h"
#include "node/core/prepared.h"
#include "proto/message.h"
#include "proto/podresources.pb-c.h"
#include "sys/durable.h"

#include <errno.h>
#include <stdio.h>

#define RESOURCE_PREFIX "bcd.dev/"

MESSAGE_TYPE(listing, V1__ListPodResourcesResponse, v1__list_pod_resources_response)

void holder_deinit(struct holder *holder)
{
	free(holder->name);
	free(holder->namespace);
	free(holder->pod);
	free(holder->container);
	free(holder->claim_namespace);
	free(holder->claim_name);
	free(holder->claim);
}

void holders_listing_deinit(struct holders_listing *listing)
{
	if (!listing)
		return;
	vec_each (&listing->holders, struct holder * holder)
		holder_deinit(holder);
	vec_deinit(&listing->holders);
	unlisted_names_deinit(&listing->names);
}

bool holders_listing_holds(const struct holders_listing *listing, const char *allocation)
{
	vec_each (&listing->holders, const struct holder *holder)
		if (holds_id_is_of(holder->id, allocation))
			return true;
	return false;
}

/* --- what the kubelet lists --- */

static char *cut(const char *name)
{
	struct buf text = {0};

	buf_printf(&text, "%.*s", HOLDERS_MAX_NAME, name);
	return buf_take_text(&text);
}

static struct holder *add_holder(struct holders_listing *listing, const V1__PodResources *pod,
				 const V1__ContainerResources *container, const char *id)
{
	struct holder *holder = vec_push(&listing->holders);
	struct buf name = {0};

	str_copy(holder->id, sizeof holder->id, id);
	holder->namespace = cut(pod->namespace_);
	holder->pod = cut(pod->name);
	holder->container = cut(container->name);
	buf_printf(&name, "%s/%s (%s)", holder->namespace, holder->pod, holder->container);
	holder->name = buf_take_text(&name);
	return holder;
}

/* An id that doesn't fit is none of ours, under our resource's name: don't guess. */
static bool add_device(struct holders_listing *listing, const V1__PodResources *pod,
		       const V1__ContainerResources *container, const char *id, struct error *error)
{
	if (strlen(id) >= HOLDS_ID_SIZE)
		return error_set(error, ERROR_INVALID_INPUT, "device id '%.80s…' is too long", id);
	if (listing->holders.count == HOLDERS_MAX)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED, "more than %d devices",
				 HOLDERS_MAX);
	add_holder(listing, pod, container, id);
	return true;
}

static void set_claim(struct holder *holder, const char *namespace, const char *name,
		      const char *uid)
{
	struct buf key = {0};

	free(holder->claim_namespace);
	free(holder->claim_name);
	free(holder->claim);
	holder->claim_namespace = cut(namespace);
	holder->claim_name = cut(name);
	str_copy(holder->claim_uid, sizeof holder->claim_uid, uid);
	buf_printf(&key, "%s/%s%s%s", holder->claim_namespace, holder->claim_name, *uid ? "/" : "",
		   uid);
	holder->claim = buf_take_text(&key);
}

/* The kubelet may list a claim's device twice. `first` is the container's. */
static bool is_listed(const struct holders_listing *listing, size_t first, const char *id)
{
	for (size_t i = first; i < listing->holders.count; i++)
		if (listing->holders.items[i].claim && str_equal(listing->holders.items[i].id, id))
			return true;
	return false;
}

static bool add_claim(struct holders_listing *listing, size_t first, const V1__PodResources *pod,
		      const V1__ContainerResources *container, const V1__DynamicResource *claim,
		      struct error *error)
{
	for (size_t i = 0; i < claim->n_claim_resources; i++) {
		const V1__ClaimResource *resource = claim->claim_resources[i];
		char tag[DRA_TAG_SIZE];
		struct atom atom;

		if (!str_equal(resource->driver_name, DRA_DRIVER))
			continue;
		if (!dra_name_parse(resource->device_name, &atom, tag))
			return error_set(error, ERROR_INVALID_INPUT,
					 "device '%.80s' of claim '%s' is none of bcd's",
					 resource->device_name, claim->claim_name);
		if (is_listed(listing, first, resource->device_name))
			continue;
		if (listing->holders.count - first == HOLDERS_MAX_CLAIMED)
			return error_set(error, ERROR_RESOURCES_EXHAUSTED,
					 "more than %d claimed devices of one container",
					 HOLDERS_MAX_CLAIMED);
		if (!add_device(listing, pod, container, resource->device_name, error))
			return false;
		set_claim(&listing->holders.items[listing->holders.count - 1],
			  claim->claim_namespace, claim->claim_name, "");
	}
	return true;
}

static bool read_container(struct holders_listing *listing, const V1__PodResources *pod,
			   const V1__ContainerResources *container, struct error *error)
{
	size_t first;

	for (size_t i = 0; i < container->n_devices; i++) {
		const V1__ContainerDevices *devices = container->devices[i];

		if (!str_starts(devices->resource_name, RESOURCE_PREFIX))
			continue;
		for (size_t j = 0; j < devices->n_device_ids; j++)
			if (!add_device(listing, pod, container, devices->device_ids[j], error))
				return false;
	}
	first = listing->holders.count;
	for (size_t i = 0; i < container->n_dynamic_resources; i++)
		if (!add_claim(listing, first, pod, container, container->dynamic_resources[i],
			       error))
			return false;
	return true;
}

static void add_name(struct holders_listing *listing, const V1__PodResources *pod)
{
	struct buf name = {0};

	listing->cut |= listing->names.count == HOLDERS_MAX_NAMES;
	if (listing->cut)
		return;
	buf_printf(&name, "%.*s/%.*s", HOLDERS_MAX_NAME, pod->namespace_, HOLDERS_MAX_NAME,
		   pod->name);
	*vec_push(&listing->names) = buf_take_text(&name);
}

bool holders_read(const uint8_t *data, size_t length, struct holders_listing *ret_listing,
		  struct error *error)
{
	CLEANUP(message) V1__ListPodResourcesResponse *message = NULL;
	struct holders_listing listing = {0};

	if (!listing_unpack(data, length, &message, error))
		return error_wrap(error, "the kubelet's list of pods");
	for (size_t i = 0; i < message->n_pod_resources; i++) {
		const V1__PodResources *pod = message->pod_resources[i];

		add_name(&listing, pod);
		for (size_t j = 0; j < pod->n_containers; j++) {
			if (read_container(&listing, pod, pod->containers[j], error))
				continue;
			holders_listing_deinit(&listing);
			return error_wrap(error, "the kubelet's list of pods");
		}
	}
	unlisted_names_sort(&listing.names);
	*ret_listing = listing;
	return true;
}

/* --- what else is on record --- */

/* Both are sorted once and looked up in: the files have room for thousands of devices. */

static int compare_given(const void *a, const void *b)
{
	const struct given *x = a, *y = b;
	int order = strcmp(x->id, y->id);

	return order ? order : strcmp(x->pod, y->pod);
}

/* The first of this id, or where it would stand. */
static size_t find_given(const struct given_list *list, const char *id)
{
	return vec_lower(list->items.count, at, strcmp(list->items.items[at].id, id) < 0);
}

static bool given_is(const struct given_list *list, size_t i, const char *id)
{
	return i < list->items.count && str_equal(list->items.items[i].id, id);
}

/* Are the pods' folders here at all? A kubelet makes this one when it starts. If that can't be told, neither can it of
 * any pod that its folder is gone. */
static bool sees_pods(const char *kubelet, bool *ret_seen, struct error *error)
{
	CLEANUP(buf) struct buf folder = {0};
	struct durable_stamp stamp;

	buf_printf(&folder, "%s/pods", kubelet);
	stamp = durable_stamp(buf_text(&folder));
	*ret_seen = stamp.exists;
	errno = stamp.os;
	return stamp.os == 0 || error_os(error, "stat '%s'", buf_text(&folder));
}

/* The folder goes once nothing of the pod is left; the checkpoint's entry may stay for long. */
static bool add_given(struct holders_listing *listing, const char *kubelet,
		      const struct given *given, bool seen)
{
	CLEANUP(buf) struct buf folder = {0};
	struct holder *holder;
	struct buf name = {0};

	buf_printf(&folder, "%s/pods/%s", kubelet, given->pod);
	if (seen && durable_absent(buf_text(&folder)))
		return false;
	buf_printf(&name, "pod %s (%s)", given->pod, given->container);
	holder = vec_push(&listing->holders);
	str_copy(holder->id, sizeof holder->id, given->id);
	str_copy(holder->uid, sizeof holder->uid, given->pod);
	holder->name = buf_take_text(&name);
	holder->unlisted = !seen;
	return true;
}

/* pod-resources doesn't say a pod's UID, the checkpoint does. A device is one pod's at a time. */
static bool take_given(struct holders_listing *listing, const char *kubelet,
		       struct given_list *list, struct error *error)
{
	VEC(bool) known = {0};
	bool seen;

	if (!sees_pods(kubelet, &seen, error))
		return false;
	vec_sort(&list->items, compare_given);
	for (size_t i = 0; i < list->items.count; i++)
		*vec_push(&known) = false;
	vec_each (&listing->holders, struct holder * holder) {
		size_t first = find_given(list, holder->id);

		if (!given_is(list, first, holder->id))
			continue;
		str_copy(holder->uid, sizeof holder->uid, list->items.items[first].pod);
		known.items[first] = true;
	}
	for (size_t i = 0; i < list->items.count;) {
		const char *id = list->items.items[i].id;
		bool done = known.items[i];

		for (; given_is(list, i, id); i++)
			done = done || add_given(listing, kubelet, &list->items.items[i], seen);
	}
	vec_deinit(&known);
	return true;
}

/* After the listing was made: a pod admitted meanwhile is in one of the two. */
static bool read_given(struct holders_listing *listing, const char *kubelet, struct error *error)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	CLEANUP(given_list) struct given_list list = {0};

	buf_printf(&path, "%s/" GIVEN_FILE, kubelet);
	if (!durable_read(buf_text(&path), GIVEN_MAX_FILE, &text, error))
		return error->code == ERROR_NOT_FOUND; /* it never gave anything */
	return given_parse(buf_text(&text), text.length, &list, error) &&
	       take_given(listing, kubelet, &list, error);
}

struct recorded {
	const struct prepared_claim *claim;
	const struct prepared_device *device;
	bool listed;
};

static int compare_recorded(const void *a, const void *b)
{
	return strcmp(((const struct recorded *)a)->device->device,
		      ((const struct recorded *)b)->device->device);
}

static int compare_device(const void *key, const void *recorded)
{
	return strcmp(key, ((const struct recorded *)recorded)->device->device);
}

static void format_id(char out[HOLDS_ID_SIZE], const struct prepared_device *device)
{
	snprintf(out, HOLDS_ID_SIZE, "%s@%s", device->device, device->allocation);
}

/* It may list nobody who has the device. */
static void add_prepared(struct holders_listing *listing, const struct recorded *recorded)
{
	struct holder *holder = vec_push(&listing->holders);
	const struct prepared_claim *claim = recorded->claim;
	struct buf name = {0};

	format_id(holder->id, recorded->device);
	holder->namespace = cut(claim->namespace);
	set_claim(holder, claim->namespace, claim->name, claim->uid);
	buf_printf(&name, "claim %s/%s", holder->claim_namespace, holder->claim_name);
	holder->name = buf_take_text(&name);
}

/* Whoever the kubelet lists with the device has it by this claim. */
static void take_prepared(struct holders_listing *listing, const struct prepared *prepared)
{
	VEC(struct recorded) all = {0};

	vec_each (&prepared->claims, const struct prepared_claim *claim)
		vec_each (&claim->devices, const struct prepared_device *device)
			*vec_push(&all) = (struct recorded){claim, device, false};
	if (all.count == 0)
		return;
	vec_sort(&all, compare_recorded);
	vec_each (&listing->holders, struct holder * holder) {
		struct recorded *one = bsearch(holder->id, all.items, all.count, sizeof *all.items,
					       compare_device);

		if (!holder->claim || !one)
			continue;
		format_id(holder->id, one->device);
		set_claim(holder, one->claim->namespace, one->claim->name, one->claim->uid);
		one->listed = true;
	}
	vec_each (&all, const struct recorded *one)
		if (!one->listed)
			add_prepared(listing, one);
	vec_deinit(&all);
}

/* After the listing was made, as above. That it can't be read is the listing's to say. */
static void read_prepared(struct holders_listing *listing, const char *kubelet, const char *boot_id)
{
	CLEANUP(prepared) struct prepared prepared = {0};
	CLEANUP(buf) struct buf path = {0}, text = {0};

	buf_printf(&path, "%s/" PREPARED_FILE, kubelet);
	listing->record = (struct error){0};
	if (!durable_read_record(buf_text(&path), PREPARED_MAX_FILE, &text, &listing->record)) {
		if (listing->record.code == ERROR_NOT_FOUND)
			listing->record = (struct error){0}; /* nothing was ever prepared */
		return;
	}
	if (!prepared_parse(buf_text(&text), text.length, &prepared, &listing->record)) {
		error_wrap(&listing->record, "read '%s'", buf_text(&path));
		return;
	}
	listing->record = (struct error){0};
	if (prepared_counts(&prepared, boot_id))
		take_prepared(listing, &prepared);
}

bool holders_read_all(const uint8_t *data, size_t length, const char *kubelet, const char *boot_id,
		      struct holders_listing *ret_listing, struct error *error)
{
	struct holders_listing listing = {0};

	if (!holders_read(data, length, &listing, error) || !read_given(&listing, kubelet, error)) {
		holders_listing_deinit(&listing);
		return false;
	}
	read_prepared(&listing, kubelet, boot_id);
	*ret_listing = listing;
	return true;
}
