#include "node/renew.h"

#include "http/multi.h"
#include "node/joining.h"
#include "pki/keys.h"
#include "pki/wellknown.h"
#include "proto/methods.h"
#include "sys/durable.h"

#define MAX_CA_FILE ((size_t)1 << 20)

enum step {
	STEP_BEGIN,
	STEP_DOCUMENT, /* the join key is fetched */
	STEP_CALL,     /* an address is asked */
};

struct renewal {
	struct loop *loop;
	const struct config *config;
	const struct identity *identity;
	renewal_fn *fn;
	void *arg;
	struct pki_key *key;
	struct joining joining;
	enum step step;
	struct loop_defer *turn; /* what callbacks noted is acted on here */
	struct http_multi *http;
	size_t address; /* the one that is asked */
	struct rpc_tls *tls;
	struct rpc_client *client;
	struct error trust; /* of a handshake that failed on trust */
	/* what came of the step */
	enum join_exit exit; /* JOIN_DONE: good so far */
	struct error error;
	struct buf answer;
};

/* Nothing is to be done with the renewal after this: it may be gone. */
static void end(struct renewal *renewal, enum join_exit exit, struct identity *renewed)
{
	renewal->fn(renewal->arg, exit, renewed ? &renewed->certificate_pem : NULL,
		    renewed ? NULL : &renewal->error);
}

/* --- the call --- */

static void on_down(void *arg, const struct error *error)
{
	struct renewal *renewal = arg;

	if (error && error->code == ERROR_FORBIDDEN)
		renewal->trust = *error;
}

static void on_answer(void *arg, const struct rpc_status *status, const uint8_t *data,
		      size_t length)
{
	struct renewal *renewal = arg;

	renewal->exit = joining_exit_of(status);
	if (status->code == RPC_OK)
		buf_add(&renewal->answer, data, length);
	else
		rpc_status_to_error(status, &renewal->error);
	loop_defer_arm(renewal->turn);
}

static bool call(struct renewal *renewal)
{
	static const struct rpc_client_handlers handlers = {.on_down = on_down};
	const struct joining *joining = &renewal->joining;
	const struct buf *request = &joining->request;

	renewal->step = STEP_CALL;
	renewal->trust = (struct error){0};
	buf_clear(&renewal->answer);
	if (!joining_tls(joining, &renewal->tls, &renewal->error))
		return false;
	renewal->client = rpc_client_create(renewal->loop, joining->addresses[renewal->address],
					    renewal->tls, 0, &handlers, renewal);
	rpc_unary(renewal->client, METHOD_JOIN_JOIN, JOINING_CALL_MS, 0, request->data,
		  request->length, on_answer, renewal);
	return true;
}

static void hang_up(struct renewal *renewal)
{
	rpc_client_destroy(TAKE(renewal->client));
	rpc_tls_destroy(TAKE(renewal->tls));
}

static bool seal_and_call(struct renewal *renewal)
{
	return joining_seal(&renewal->joining, renewal->key, "",
			    buf_text(&renewal->identity->certificate_pem), &renewal->error) &&
	       call(renewal);
}

static bool judge(struct renewal *renewal, struct identity *renewed)
{
	const struct buf *answer = &renewal->answer;

	return joining_judge(&renewal->joining, renewal->key, answer->data, answer->length, renewed,
			     &renewal->error) &&
	       (str_equal(renewed->node_id, renewal->identity->node_id) ||
		error_set(&renewal->error, ERROR_INVALID_STATE,
			  "the join answer is for '%s', not for '%s'", renewed->node_id,
			  renewal->identity->node_id));
}

static void take_answer(struct renewal *renewal)
{
	CLEANUP(identity) struct identity renewed = {0};

	if (renewal->trust.code != ERROR_NONE && renewal->exit != JOIN_DONE) {
		renewal->error = renewal->trust;
		renewal->exit = JOIN_PINS;
	}
	hang_up(renewal);
	if (renewal->exit == JOIN_NETWORK && ++renewal->address < renewal->joining.address_count &&
	    call(renewal))
		return;
	if (renewal->exit != JOIN_DONE)
		end(renewal, renewal->exit, NULL);
	else if (!judge(renewal, &renewed))
		end(renewal, joining_is_mistrust(&renewal->error) ? JOIN_PINS : JOIN_FAILED, NULL);
	else
		end(renewal, JOIN_DONE, &renewed);
}

/* --- the join key --- */

static void on_document(void *arg, enum http_way way, struct http_answer *answer,
			const struct error *error)
{
	struct renewal *renewal = arg;
	bool ok = way == HTTP_ANSWERED && joining_take_document(&renewal->joining, answer->status,
								&answer->body, &renewal->error);

	if (way != HTTP_ANSWERED)
		renewal->error = *error;
	renewal->exit = ok                                     ? JOIN_DONE
			: joining_is_mistrust(&renewal->error) ? JOIN_PINS
							       : JOIN_NETWORK;
	loop_defer_arm(renewal->turn);
}

static bool fetch_key(struct renewal *renewal)
{
	const char *ca_file = renewal->config->ca_file;
	CLEANUP(buf) struct buf url = {0}, ca = {0};
	struct http_identity who = {.https_only = true};

	if (*ca_file && !durable_read(ca_file, MAX_CA_FILE, &ca, &renewal->error))
		return false;
	if (*ca_file)
		who.ca_pem = buf_text(&ca);
	joining_url(&renewal->joining, &url);
	renewal->step = STEP_DOCUMENT;
	renewal->http = http_multi_create(renewal->loop);
	(void)http_multi_start(renewal->http, &who,
			       &(struct http_request){.method = "GET",
						      .url = buf_text(&url),
						      .max_answer = WELLKNOWN_MAX_SIZE,
						      .timeout_ms = JOINING_CALL_MS},
			       on_document, renewal);
	return true;
}

/* --- in order --- */

static bool begin(struct renewal *renewal)
{
	const struct buf *pem = &renewal->identity->key_pem;

	if (!pki_key_from_pem(buf_text(pem), pem->length, &renewal->key, &renewal->error) ||
	    !joining_begin(&renewal->joining, renewal->config, &renewal->error))
		return false;
	return joining_needs_key(&renewal->joining) ? fetch_key(renewal) : seal_and_call(renewal);
}

static void on_turn(void *arg)
{
	struct renewal *renewal = arg;

	switch (renewal->step) {
	case STEP_BEGIN:
		if (!begin(renewal))
			end(renewal, JOIN_FAILED, NULL);
		return;
	case STEP_DOCUMENT:
		if (renewal->exit != JOIN_DONE)
			end(renewal, renewal->exit, NULL);
		else if (!seal_and_call(renewal))
			end(renewal, JOIN_FAILED, NULL);
		return;
	case STEP_CALL:
		take_answer(renewal);
		return;
	}
}

struct renewal *renewal_start(struct loop *loop, const struct config *config,
			      const struct identity *identity, renewal_fn *fn, void *arg)
{
	struct renewal *renewal = mem_alloc(sizeof *renewal);

	*renewal = (struct renewal){
		.loop = loop, .config = config, .identity = identity, .fn = fn, .arg = arg};
	renewal->turn = loop_defer_create(loop, on_turn, renewal);
	loop_defer_arm(renewal->turn);
	return renewal;
}

void renewal_destroy(struct renewal *renewal)
{
	if (!renewal)
		return;
	hang_up(renewal);
	http_multi_destroy(renewal->http);
	loop_defer_destroy(renewal->turn);
	joining_deinit(&renewal->joining);
	pki_key_destroy(renewal->key);
	buf_deinit(&renewal->answer);
	free(renewal);
}
