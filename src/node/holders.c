#include "node/holders.h"

#include "proto/message.h"
#include "proto/methods.h"
#include "proto/podresources.pb-c.h"
#include "rpc/rpc.h"

MESSAGE_TYPE(question, V1__ListPodResourcesRequest, v1__list_pod_resources_request)

/* An answer that a worker reads. */
struct reading {
	struct holders *holders; /* NULL: destroyed meanwhile */
	char *kubelet, *boot_id;
	struct buf answer;
	struct holders_listing listing;
	struct error error; /* code NONE: the listing is good */
};

struct holders {
	struct loop *loop;
	char *kubelet, *boot_id, *path, *address;
	holders_fn *fn;
	void *arg;
	struct rpc_client *client; /* while a question is under way */
	struct reading *reading;   /* and its answer is read */
	struct reading *hung;      /* by a worker that didn't come back in time */
	struct loop_timer *timer;  /* how long it is waited for */
	struct loop_defer *over;   /* it has been read: told from the loop, once */
	bool answered;
	struct holders_listing listing;
	struct error error; /* code NONE: the listing is good */
};

/* `holders->error` is set. */
static void finish(struct holders *holders)
{
	if (holders->error.code != ERROR_NONE)
		error_wrap(&holders->error, "ask '%s'", holders->path);
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

static void reading_work(void *arg)
{
	struct reading *reading = arg;

	if (holders_read_all((const uint8_t *)reading->answer.data, reading->answer.length,
			     reading->kubelet, reading->boot_id, &reading->listing,
			     &reading->error))
		reading->error = (struct error){0};
}

static void reading_done(void *arg)
{
	struct reading *reading = arg;
	struct holders *holders = reading->holders;

	if (holders && holders->hung == reading) {
		holders->hung = NULL;
	} else if (holders) {
		holders->reading = NULL;
		loop_timer_stop(holders->timer);
		holders->listing = reading->listing;
		holders->error = reading->error;
		reading->listing = (struct holders_listing){0};
		finish(holders);
	}
	holders_listing_deinit(&reading->listing);
	buf_deinit(&reading->answer);
	free(reading->kubelet);
	free(reading->boot_id);
	free(reading);
}

static void answer_hung(struct holders *holders)
{
	error_set(&holders->error, ERROR_UNAVAILABLE,
		  "reading its answer and the files below '%s' hangs", holders->kubelet);
	finish(holders);
}

static void on_timeout(void *arg)
{
	struct holders *holders = arg;

	holders->hung = TAKE(holders->reading);
	answer_hung(holders);
}

static void on_answer(void *arg, const struct rpc_status *status, const uint8_t *data,
		      size_t length)
{
	struct holders *holders = arg;

	holders_listing_deinit(&holders->listing);
	holders->listing = (struct holders_listing){0};
	holders->error = (struct error){0};
	if (status->code != RPC_OK) {
		rpc_status_to_error(status, &holders->error);
		finish(holders);
		return;
	}
	holders->reading = mem_alloc(sizeof *holders->reading);
	holders->reading->holders = holders;
	holders->reading->kubelet = mem_strdup(holders->kubelet);
	holders->reading->boot_id = mem_strdup(holders->boot_id);
	buf_add(&holders->reading->answer, data, length);
	loop_timer_start(holders->timer, HOLDERS_READ_MS);
	loop_work(holders->loop, reading_work, reading_done, holders->reading);
}

struct holders *holders_create(struct loop *loop, const struct holders_options *options)
{
	struct holders *holders = mem_alloc(sizeof *holders);
	struct buf path = {0}, address = {0};

	holders->loop = loop;
	holders->kubelet = mem_strdup(options->kubelet);
	holders->boot_id = mem_strdup(options->boot_id);
	buf_printf(&path, "%s/pod-resources/kubelet.sock", options->kubelet);
	holders->path = buf_take_text(&path);
	buf_printf(&address, "unix:%s", holders->path);
	holders->address = buf_take_text(&address);
	holders->fn = options->fn;
	holders->arg = options->arg;
	holders->timer = loop_timer_create(loop, on_timeout, holders);
	holders->over = loop_defer_create(loop, on_over, holders);
	return holders;
}

void holders_destroy(struct holders *holders)
{
	if (!holders)
		return;
	rpc_client_destroy(holders->client);
	if (holders->reading)
		holders->reading->holders = NULL;
	if (holders->hung)
		holders->hung->holders = NULL;
	loop_timer_destroy(holders->timer);
	loop_defer_destroy(holders->over);
	holders_listing_deinit(&holders->listing);
	free(holders->kubelet);
	free(holders->boot_id);
	free(holders->path);
	free(holders->address);
	free(holders);
}

bool holders_asking(const struct holders *holders)
{
	return holders->client || holders->answered;
}

void holders_ask(struct holders *holders)
{
	static const struct rpc_client_handlers handlers = {0};
	CLEANUP(buf) struct buf request = {0};
	V1__ListPodResourcesRequest message = V1__LIST_POD_RESOURCES_REQUEST__INIT;
	struct error error;

	assert(!holders_asking(holders));
	if (holders->hung) {
		answer_hung(holders);
		return;
	}
	if (!question_pack(&message, &request, &error))
		assert(false && "an empty message can't be packed");
	holders->client =
		rpc_client_create(holders->loop, holders->address, NULL, 0, &handlers, holders);
	rpc_unary(holders->client, METHOD_POD_RESOURCES_LIST, HOLDERS_TIMEOUT_MS,
		  HOLDERS_MAX_ANSWER, request.data, request.length, on_answer, holders);
}
