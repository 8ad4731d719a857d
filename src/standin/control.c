#include "standin/control.h"

#include "base/vec.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "sys/net.h"
#include "text/tree.h"

#include <stdio.h>

/* A connection lives on until its last request was answered, also when the peer is gone. */
struct peer {
	struct standin_control *control;
	struct net_conn *conn; /* NULL: gone */
	struct buf input;
	size_t open; /* requests without an answer */
};

struct standin_control {
	struct standin *standin;
	struct net_listener *listener;
	VEC(struct peer *) peers;
};

static void peer_free_if_over(struct peer *peer)
{
	if (peer->conn || peer->open > 0)
		return;
	struct standin_control *control = peer->control;
	for (size_t i = 0; control && i < control->peers.count; i++) {
		if (control->peers.items[i] != peer)
			continue;
		vec_remove(&control->peers, i);
		break;
	}
	buf_deinit(&peer->input);
	free(peer);
}

static void on_answer(void *arg, json_t *answer)
{
	struct peer *peer = arg;
	peer->open--;
	if (peer->conn) {
		CLEANUP(buf) struct buf line = {0};
		tree_dump_canonical(&line, answer);
		buf_add_char(&line, '\n');
		net_write(peer->conn, line.data, line.length);
	}
	peer_free_if_over(peer);
}

static void on_line(struct peer *peer, const char *line, size_t length)
{
	CLEANUP(tree) json_t *request = NULL;
	struct error error;
	peer->open++;
	if (tree_parse(line, length, CONTROL_MAX_LINE, "request", &request, &error)) {
		standin_request(peer->control->standin, request, on_answer, peer);
		return;
	}
	CLEANUP(tree)
	json_t *answer = json_pack("{s:b, s:s, s:o}", "ok", 0, "code", error_code_name(error.code),
				   "error", tree_string(error.what));
	on_answer(peer, answer);
}

static void on_data(void *arg, const uint8_t *data, size_t length)
{
	struct peer *peer = arg;
	buf_add(&peer->input, data, length);
	const uint8_t *end;
	/* Held up while its lines are looked at: an answer to one of them must not free it. */
	peer->open++;
	while (peer->input.length > 0 &&
	       (end = memchr(peer->input.data, '\n', peer->input.length))) {
		size_t line = (size_t)(end - peer->input.data);
		on_line(peer, (const char *)peer->input.data, line);
		buf_drop_front(&peer->input, line + 1);
	}
	peer->open--;
	if (peer->input.length > CONTROL_MAX_LINE) {
		net_close(TAKE(peer->conn));
		peer_free_if_over(peer);
	}
}

static void on_close(void *arg, const struct error *error UNUSED)
{
	struct peer *peer = arg;
	peer->conn = NULL;
	peer_free_if_over(peer);
}

static void on_accept(void *arg, struct net_conn *conn)
{
	static const struct net_handlers handlers = {.on_data = on_data, .on_close = on_close};
	struct standin_control *control = arg;
	if (!conn)
		return;
	struct peer *peer = mem_alloc(sizeof *peer);
	*peer = (struct peer){.control = control, .conn = conn};
	*vec_push(&control->peers) = peer;
	net_start(conn, &handlers, peer);
}

bool control_listen(struct loop *loop, const char *root, struct standin *standin,
		    struct standin_control **ret_control, struct error *error)
{
	CLEANUP(buf) struct buf path = {0};
	buf_printf(&path, "%s/%s", root, CONTROL_SOCKET);
	struct standin_control *control = mem_alloc(sizeof *control);
	control->standin = standin;
	if (!durable_remove(buf_text(&path), error) ||
	    !net_listen_unix(loop, buf_text(&path), 0600, on_accept, control, &control->listener,
			     error)) {
		free(control);
		return false;
	}
	*ret_control = control;
	return true;
}

void control_destroy(struct standin_control *control)
{
	if (!control)
		return;
	net_listener_destroy(control->listener);
	for (size_t i = control->peers.count; i-- > 0;) {
		struct peer *peer = control->peers.items[i];
		if (peer->conn)
			net_close(TAKE(peer->conn));
		peer->control = NULL; /* the stand-in still answers what is open */
		peer_free_if_over(peer);
	}
	vec_deinit(&control->peers);
	free(control);
}

/* --- the caller's side --- */

struct call {
	struct loop *loop;
	struct net_conn *conn;
	struct buf request, answer;
	int status;
};

static void call_end(struct call *call, const char *why)
{
	if (why)
		fprintf(stderr, "kubelet-standin: %s\n", why);
	loop_stop(call->loop);
}

/* Of run-pod: the pod is there, and goes on waiting for what it asks. */
static bool is_unschedulable(const json_t *answer)
{
	const json_t *reason = json_object_get(json_object_get(answer, "pod"), "reason");

	return reason && str_equal(json_string_value(reason), "Unschedulable");
}

static void on_call_data(void *arg, const uint8_t *data, size_t length)
{
	struct call *call = arg;
	buf_add(&call->answer, data, length);
	if (call->answer.data[call->answer.length - 1] != '\n')
		return;
	CLEANUP(tree) json_t *answer = NULL;
	struct error error;
	if (!tree_parse(call->answer.data, call->answer.length, SIZE_MAX, "answer", &answer,
			&error)) {
		call_end(call, error.what);
		return;
	}
	fputs(buf_text(&call->answer), stdout);
	if (is_unschedulable(answer)) {
		call->status = error_exit_status(ERROR_RESOURCES_EXHAUSTED);
		call_end(call, "the pod waits: Unschedulable; delete-pod takes it back");
		return;
	}
	if (json_is_true(json_object_get(answer, "ok")))
		call->status = 0;
	call_end(call, json_string_value(json_object_get(answer, "error")));
}

static void on_call_close(void *arg, const struct error *error)
{
	struct call *call = arg;
	call->conn = NULL;
	call_end(call, error ? error->what : "the stand-in closed the connection");
}

static void on_call_connect(void *arg, struct net_conn *conn, const struct error *error)
{
	static const struct net_handlers handlers = {.on_data = on_call_data,
						     .on_close = on_call_close};
	struct call *call = arg;
	if (error) {
		call_end(call, error->what);
		return;
	}
	call->conn = conn;
	net_start(conn, &handlers, call);
	net_write(conn, call->request.data, call->request.length);
}

static void on_call_timeout(void *arg)
{
	call_end(arg, "no answer in time");
}

int control_call(const char *root, const json_t *request, int64_t timeout_ms)
{
	CLEANUP(buf) struct buf path = {0};
	buf_printf(&path, "%s/%s", root, CONTROL_SOCKET);
	struct call call = {.loop = loop_create(), .status = 1};
	tree_dump_canonical(&call.request, request);
	buf_add_char(&call.request, '\n');
	struct loop_timer *timer = loop_timer_create(call.loop, on_call_timeout, &call);
	loop_timer_start(timer, timeout_ms);
	net_connect_unix(call.loop, buf_text(&path), on_call_connect, &call);
	loop_run(call.loop);
	if (call.conn)
		net_close(call.conn);
	loop_timer_destroy(timer);
	loop_destroy(call.loop);
	buf_deinit(&call.request);
	buf_deinit(&call.answer);
	return call.status;
}
