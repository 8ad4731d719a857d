#include "rpc/rpc.h"

bool rpc_status_to_error(const struct rpc_status *status, struct error *error)
{
	assert(status->code != RPC_OK);
	return error_set(error, error_code_from_grpc((int)status->code), "%s",
			 *status->message ? status->message : rpc_code_name(status->code));
}

void rpc_finish_error(struct rpc_call *call, const struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	buf_add_text(&text, error->what);
	if (error->hint[0])
		buf_printf(&text, ". %s", error->hint);
	rpc_finish(call, (enum rpc_code)error_grpc_status(error->code), buf_text(&text));
}

/* --- a unary call in one line --- */

struct unary {
	rpc_unary_fn *fn;
	void *arg;
	struct buf answer;
	unsigned answers;
};

static void on_answer(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	(void)call;
	struct unary *unary = arg;
	if (unary->answers++ == 0)
		buf_add(&unary->answer, data, length);
}

static void on_unary_done(struct rpc_call *call, void *arg, const struct rpc_status *status)
{
	(void)call;
	struct unary *unary = arg;
	struct rpc_status told = *status;
	if (told.code == RPC_OK && unary->answers != 1)
		told = (struct rpc_status){RPC_INTERNAL,
					   unary->answers ? "more than one answer to a unary call"
							  : "no answer to a unary call"};
	bool done = told.code == RPC_OK;
	unary->fn(unary->arg, &told, done ? (const uint8_t *)buf_text(&unary->answer) : NULL,
		  done ? unary->answer.length : 0);
	buf_deinit(&unary->answer);
	free(unary);
}

struct rpc_call *rpc_unary(struct rpc_client *client, const char *path, int64_t deadline_ms,
			   size_t max_message, const void *request, size_t length, rpc_unary_fn *fn,
			   void *arg)
{
	static const struct rpc_call_handlers handlers = {.on_message = on_answer,
							  .on_done = on_unary_done};
	struct unary *unary = mem_alloc(sizeof *unary);
	unary->fn = fn;
	unary->arg = arg;
	struct rpc_call *call =
		rpc_call_start(client, path, deadline_ms, max_message, &handlers, unary);
	rpc_send(call, request, length);
	rpc_half_close(call);
	return call;
}
