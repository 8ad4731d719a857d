#include "node/holders.h"

#include "node/core/given.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "proto/podresources.pb-c.h"
#include "rpc/rpc.h"
#include "sys/durable.h"

#include <stdio.h>

#define RESOURCE_PREFIX "bcd.dev/"

MESSAGE_TYPE(listing, V1__ListPodResourcesResponse, v1__list_pod_resources_response)
MESSAGE_TYPE(question, V1__ListPodResourcesRequest, v1__list_pod_resources_request)

struct holders {
	struct loop *loop;
	char *kubelet, *path, *address;
	holders_fn *fn;
	void *arg;
	struct rpc_client *client; /* while a question is under way */
	struct loop_defer *over;   /* the answer is here: told from the loop, once */
	bool answered;
	struct holders_listing listing;
	struct error error; /* code NONE: the listing is good */
};

void holders_listing_deinit(struct holders_listing *listing)
{
	if (!listing)
		return;
	vec_each (&listing->holders, struct holder * holder) {
		free(holder->name);
		free(holder->namespace);
		free(holder->pod);
		free(holder->container);
	}
	vec_deinit(&listing->holders);
}

bool holders_listing_holds(const struct holders_listing *listing, const char *allocation)
{
	for (size_t i = 0; i < listing->holders.count; i++) {
		const char *of = holds_id_allocation(listing->holders.items[i].id);

		if (of && str_equal(of, allocation))
			return true;
	}
	return false;
}

/* --- reading --- */

static char *cut(const char *name)
{
	struct buf text = {0};

	buf_printf(&text, "%.*s", HOLDERS_MAX_NAME, name);
	return buf_take_text(&text);
}

static bool add_device(struct holders_listing *listing, const V1__PodResources *pod,
		       const V1__ContainerResources *container, const char *id, struct error *error)
{
	struct holder *holder;
	struct buf name = {0};

	/* An id that doesn't fit is none of ours, under our resource's name: don't guess. */
	if (strlen(id) >= HOLDS_ID_SIZE)
		return error_set(error, ERROR_INVALID_INPUT, "device id '%.80s…' is too long", id);
	holder = vec_push(&listing->holders);
	str_copy(holder->id, sizeof holder->id, id);
	holder->namespace = cut(pod->namespace_);
	holder->pod = cut(pod->name);
	holder->container = cut(container->name);
	buf_printf(&name, "%s/%s (%s)", holder->namespace, holder->pod, holder->container);
	holder->name = buf_take_text(&name);
	return true;
}

static bool read_container(struct holders_listing *listing, const V1__PodResources *pod,
			   const V1__ContainerResources *container, struct error *error)
{
	for (size_t i = 0; i < container->n_devices; i++) {
		const V1__ContainerDevices *devices = container->devices[i];

		if (!str_starts(devices->resource_name, RESOURCE_PREFIX))
			continue;
		for (size_t j = 0; j < devices->n_device_ids; j++)
			if (!add_device(listing, pod, container, devices->device_ids[j], error))
				return false;
	}
	return true;
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

		for (size_t j = 0; j < pod->n_containers; j++) {
			if (read_container(&listing, pod, pod->containers[j], error))
				continue;
			holders_listing_deinit(&listing);
			return error_wrap(error, "the kubelet's list of pods");
		}
	}
	*ret_listing = listing;
	return true;
}

/* pod-resources doesn't say a pod's UID, the checkpoint does. A device is one pod's at a time. */
static bool name_listed(struct holders_listing *listing, const struct given *given)
{
	bool listed = false;

	vec_each (&listing->holders, struct holder * holder) {
		if (!str_equal(holder->id, given->id))
			continue;
		listed = true;
		if (!*holder->uid)
			str_copy(holder->uid, sizeof holder->uid, given->pod);
	}
	return listed;
}

/* The folder goes once nothing of the pod is left; the checkpoint's entry may stay for long. */
static void add_given(struct holders *holders, const struct given *given)
{
	CLEANUP(buf) struct buf folder = {0};
	struct holder *holder;
	struct buf name = {0};

	buf_printf(&folder, "%s/pods/%s", holders->kubelet, given->pod);
	if (name_listed(&holders->listing, given) || durable_absent(buf_text(&folder)))
		return;
	buf_printf(&name, "pod %s (%s)", given->pod, given->container);
	holder = vec_push(&holders->listing.holders);
	str_copy(holder->id, sizeof holder->id, given->id);
	str_copy(holder->uid, sizeof holder->uid, given->pod);
	holder->name = buf_take_text(&name);
}

/* After the listing was made: a pod admitted meanwhile is in one of the two. */
static bool read_given(struct holders *holders, struct error *error)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	CLEANUP(given_list) struct given_list list = {0};

	buf_printf(&path, "%s/" GIVEN_FILE, holders->kubelet);
	if (!durable_read(buf_text(&path), GIVEN_MAX_FILE, &text, error))
		return error->code == ERROR_NOT_FOUND; /* it never gave anything */
	if (!given_parse(buf_text(&text), text.length, &list, error))
		return false;
	for (size_t i = 0; i < list.items.count; i++)
		add_given(holders, &list.items.items[i]);
	return true;
}

/* --- asking --- */

static void finish(struct holders *holders)
{
	holders->answered = true;
	loop_defer_arm(holders->over);
}

static void on_over(void *arg)
{
	struct holders *holders = arg;
	bool good = holders->error.code == ERROR_NONE;

	if (!holders->answered)
		return;
	holders->answered = false;
	rpc_client_destroy(TAKE(holders->client));
	holders->fn(holders->arg, good ? &holders->listing : NULL, good ? NULL : &holders->error);
}

static void on_answer(void *arg, const struct rpc_status *status, const uint8_t *data,
		      size_t length)
{
	struct holders *holders = arg;

	holders_listing_deinit(&holders->listing);
	holders->listing = (struct holders_listing){0};
	holders->error = (struct error){0};
	if (status->code != RPC_OK)
		rpc_status_to_error(status, &holders->error);
	else if (holders_read(data, length, &holders->listing, &holders->error) &&
		 read_given(holders, &holders->error))
		holders->error = (struct error){0};
	if (holders->error.code != ERROR_NONE)
		error_wrap(&holders->error, "ask '%s'", holders->path);
	finish(holders);
}

struct holders *holders_create(struct loop *loop, const char *kubelet, holders_fn *fn, void *arg)
{
	struct holders *holders = mem_alloc(sizeof *holders);
	struct buf path = {0}, address = {0};

	holders->loop = loop;
	holders->kubelet = mem_strdup(kubelet);
	buf_printf(&path, "%s/pod-resources/kubelet.sock", kubelet);
	holders->path = buf_take_text(&path);
	buf_printf(&address, "unix:%s", holders->path);
	holders->address = buf_take_text(&address);
	holders->fn = fn;
	holders->arg = arg;
	holders->over = loop_defer_create(loop, on_over, holders);
	return holders;
}

void holders_destroy(struct holders *holders)
{
	if (!holders)
		return;
	rpc_client_destroy(holders->client);
	loop_defer_destroy(holders->over);
	holders_listing_deinit(&holders->listing);
	free(holders->kubelet);
	free(holders->path);
	free(holders->address);
	free(holders);
}

bool holders_asking(const struct holders *holders)
{
	return holders->client;
}

void holders_ask(struct holders *holders)
{
	static const struct rpc_client_handlers handlers = {0};
	CLEANUP(buf) struct buf request = {0};
	V1__ListPodResourcesRequest message = V1__LIST_POD_RESOURCES_REQUEST__INIT;
	struct error error;

	assert(!holders->client);
	if (!question_pack(&message, &request, &error))
		assert(false && "an empty message can't be packed");
	holders->client =
		rpc_client_create(holders->loop, holders->address, NULL, 0, &handlers, holders);
	rpc_unary(holders->client, METHOD_POD_RESOURCES_LIST, HOLDERS_TIMEOUT_MS,
		  HOLDERS_MAX_ANSWER, request.data, request.length, on_answer, holders);
}
