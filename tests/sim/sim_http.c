/* http/multi.h on the queue: a request travels to the simulated API server and its answer back, late,
 * once, twice, or not at all. And kube/program.h: no program is run here. */
#include "http/multi.h"
#include "kube/program.h"
#include "sim/sim.h"
#include "sim/sim_api.h"
#include "sim/sim_changes.h"
#include "sim/sim_faults.h"
#include "text/tree.h"

#include <stdio.h>
#include <string.h>

#define TRAVEL_MS   10
#define SLOW_MS     12000 /* an answer may take so long */
#define SLOW_ONE_IN 20
#define CUT_ONE_IN  40 /* changes that a watch tells of */
#define DEAF_ONE_IN 20 /* watches that go on */
#define BOOKMARK_MS 60000
#define NOTICED_MS  37000 /* TCP's keepalive, of an end that is gone without a word */

/* On its way; outlives the call. */
struct travel {
	struct http_call *call; /* NULL: nobody waits for it */
	char *method, *url;
	const char *path; /* in url */
	json_t *body;
	enum http_way way; /* how it ends */
	int failed;        /* as sim_fault() said */
	bool arrives, is_stream;
	struct http_answer answer;
	struct travel *next;
};

static struct travel *travels;
static VEC(struct http_call *) streams; /* that are open */

/* Of a stream, on its way to bcd. */
struct piece {
	struct http_call *call;
	struct sim_event *event;
	enum {
		PIECE_BEGINS,
		PIECE_DATA,
		PIECE_ENDS,
		PIECE_BREAKS
	} kind;
	struct buf data;
	struct piece *next;
};

struct http_call {
	struct http_multi *multi;
	http_take_fn *on_data; /* of a stream */
	bool open;             /* the server tells what changes */
	bool *gone;            /* told when it is cancelled, while it runs */
	int64_t version;       /* what it has told */
	int64_t last_ms;       /* when that arrives */
	int64_t marked_ms;     /* when it told something last, if only a bookmark */
	bool deaf; /* it tells nothing: the version is one that the server has yet to come to */
	struct piece *pieces;
	http_multi_fn *fn;
	void *arg;
	struct sim_process *process;
	struct travel *travel;
	struct sim_event *told;
	struct http_call *next;
};

struct http_multi {
	struct http_call *calls;
};

struct http_multi *http_multi_create(struct loop *loop UNUSED)
{
	return mem_alloc(sizeof(struct http_multi));
}

static void travel_end(struct travel *travel)
{
	struct travel **at = &travels;

	while (*at != travel)
		at = &(*at)->next;
	*at = travel->next;
	free(travel->method);
	free(travel->url);
	json_decref(travel->body);
	http_answer_deinit(&travel->answer);
	free(travel);
}

static void piece_end(struct piece *piece)
{
	struct piece **at = &piece->call->pieces;

	while (*at != piece)
		at = &(*at)->next;
	*at = piece->next;
	buf_deinit(&piece->data);
	free(piece);
}

static void forget_stream(struct http_call *call)
{
	for (size_t i = streams.count; i-- > 0;)
		if (streams.items[i] == call)
			vec_remove(&streams, i);
	while (call->pieces) {
		sim_cancel(call->pieces->event);
		piece_end(call->pieces);
	}
	if (call->gone)
		*call->gone = true;
}

void http_call_cancel(struct http_call *call)
{
	struct http_call **at;

	if (!call)
		return;
	forget_stream(call);
	at = &call->multi->calls;
	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	if (call->told) { /* it is back */
		sim_cancel(call->told);
		travel_end(call->travel);
	} else if (call->travel) {
		call->travel->call = NULL;
	}
	free(call);
}

void http_multi_destroy(struct http_multi *multi)
{
	if (!multi)
		return;
	while (multi->calls)
		http_call_cancel(multi->calls);
	free(multi);
}

static void on_back(void *arg)
{
	struct http_call *call = arg;
	struct travel *travel = TAKE(call->travel);
	http_multi_fn *fn = call->fn;
	void *to = call->arg;
	struct error error;

	call->told = NULL;
	http_call_cancel(call);
	error_set(&error, ERROR_UNAVAILABLE, "reach '%s': %s", travel->url,
		  travel->failed && travel->failed < SIM_FAULT_SILENT
			  ? strerror(travel->failed)
			  : "the simulated API server doesn't answer");
	fn(to, travel->way, travel->way == HTTP_ANSWERED ? &travel->answer : NULL,
	   travel->way == HTTP_ANSWERED ? NULL : &error);
	travel_end(travel);
}

/* --- streams --- */

static void stream_ends(struct http_call *call, enum http_way way, const struct error *error)
{
	struct http_answer answer = {.status = 200};
	http_multi_fn *fn = call->fn;
	void *to = call->arg;

	http_call_cancel(call);
	fn(to, way, way == HTTP_ANSWERED ? &answer : NULL, way == HTTP_ANSWERED ? NULL : error);
	http_answer_deinit(&answer);
}

static void on_piece(void *arg)
{
	struct piece *piece = arg;
	struct http_call *call = piece->call;
	struct buf data = piece->data;
	bool gone = false, ends = piece->kind == PIECE_ENDS, breaks = piece->kind == PIECE_BREAKS;
	struct error error;

	piece->data = (struct buf){0};
	piece_end(piece);
	error_set(&error, ERROR_UNAVAILABLE, "the simulated API server's stream broke");
	if (!ends && !breaks) {
		call->gone = &gone;
		breaks = !call->on_data(call->arg, data.length ? buf_text(&data) : "", data.length,
					&error);
		if (!gone)
			call->gone = NULL;
	}
	buf_deinit(&data);
	if (!gone && (ends || breaks))
		stream_ends(call, ends ? HTTP_ANSWERED : HTTP_BROKEN, &error);
}

/* In order, whatever comes late. */
static struct buf *add_piece(struct http_call *call, int kind, int64_t in_ms)
{
	struct piece *piece = mem_alloc(sizeof *piece);
	int64_t at_ms = sim.now_ms + in_ms;

	if (kind != PIECE_ENDS && at_ms < call->last_ms)
		at_ms = call->last_ms;
	if (kind != PIECE_ENDS)
		call->last_ms = at_ms;
	piece->kind = kind;
	piece->call = call;
	piece->next = call->pieces;
	call->pieces = piece;
	piece->event = sim_schedule(call->process, at_ms - sim.now_ms, on_piece, piece);
	return &piece->data;
}

/* What is on its way arrives. That it broke is noticed late where the other end is silent. */
static void cut(struct http_call *call)
{
	for (size_t i = streams.count; i-- > 0;)
		if (streams.items[i] == call)
			vec_remove(&streams, i);
	call->open = false;
	add_piece(call, PIECE_BREAKS, (int64_t)sim_below(sim_below(2) ? NOTICED_MS : TRAVEL_MS));
}

static void send_event(struct http_call *call, const json_t *event)
{
	struct buf *data = add_piece(call, PIECE_DATA,
				     sim_chance(SLOW_ONE_IN) ? (int64_t)sim_below(SLOW_MS)
							     : sim_delay(TRAVEL_MS));

	tree_dump_canonical(data, event);
	buf_add_text(data, "\n");
	call->marked_ms = sim.now_ms;
}

static void send_bookmark(struct http_call *call)
{
	CLEANUP(tree) json_t *event = NULL;
	char version[24];

	snprintf(version, sizeof version, "%lld", (long long)call->version);
	event = json_pack("{s:s, s:{s:{s:s}}}", "type", "BOOKMARK", "object", "metadata",
			  "resourceVersion", version);
	send_event(call, event);
}

static void begin_anew(struct http_call *call)
{
	CLEANUP(tree) json_t *all = sim_changes_all();
	const json_t *event;
	size_t i;

	call->version = sim_changes_version();
	json_array_foreach(all, i, event) send_event(call, event);
}

static void tell(struct http_call *call)
{
	const json_t *event;

	if (call->deaf)
		return;
	while (call->open && (event = sim_changes_after(call->version))) {
		if (sim_chance(CUT_ONE_IN)) {
			cut(call);
			return;
		}
		call->version++;
		send_event(call, event);
	}
	if (call->open && sim.now_ms - call->marked_ms >= BOOKMARK_MS)
		send_bookmark(call);
}

void sim_http_tell(void)
{
	for (size_t i = streams.count; i-- > 0;)
		tell(streams.items[i]);
}

void sim_http_cut(void)
{
	while (streams.count > 0)
		cut(streams.items[0]);
}

/* The server ends it in its time, as it was asked to. */
static void stream_begins(struct travel *travel)
{
	struct http_call *call = travel->call;
	const char *ends = strstr(travel->path, "timeoutSeconds=");

	call->travel = NULL;
	call->open = true;
	call->marked_ms = sim.now_ms;
	call->deaf = call->version >= 0 && sim_chance(DEAF_ONE_IN);
	*vec_push(&streams) = call;
	add_piece(call, PIECE_BEGINS, sim_delay(TRAVEL_MS));
	if (ends)
		add_piece(call, PIECE_ENDS,
			  strtoll(ends + strlen("timeoutSeconds="), NULL, 10) * 1000);
	travel_end(travel);
	if (call->version < 0)
		begin_anew(call);
	tell(call);
}

/* Something else's: one object, and no more comes. */
static void stream_of_another(struct travel *travel, const json_t *said)
{
	struct http_call *call = travel->call;

	call->travel = NULL;
	add_piece(call, PIECE_BEGINS, sim_delay(TRAVEL_MS));
	send_event(call, said);
	add_piece(call, PIECE_ENDS, call->last_ms - sim.now_ms);
	travel_end(travel);
}

/* At the API server, which is no process of this world. */
static void on_arrival(void *arg)
{
	struct travel *travel = arg;
	CLEANUP(tree) json_t *body = NULL;

	if (travel->arrives && travel->is_stream) {
		int64_t version = 0;

		travel->answer.status = sim_api_watch(travel->path, &version, &body);
		if (travel->answer.status == 200 && travel->way == HTTP_ANSWERED && travel->call) {
			if (body) {
				stream_of_another(travel, body);
				return;
			}
			travel->call->version = version;
			stream_begins(travel);
			return;
		}
		travel->arrives = false;
	}
	if (travel->arrives)
		travel->answer.status =
			sim_api_answer(travel->method, travel->path, travel->body, &body);
	/* Whoever stands between sends it twice: what was done already is the answer. */
	if (travel->arrives && sim_chance(20)) {
		json_decref(TAKE(body));
		travel->answer.status =
			sim_api_answer(travel->method, travel->path, travel->body, &body);
	}
	if (travel->failed == SIM_FAULT_REFUSE)
		travel->answer.status = sim_api_refuse(&body);
	if (body)
		tree_dump_canonical(&travel->answer.body, body);
	if (travel->call)
		travel->call->told =
			sim_schedule(travel->call->process,
				     sim_chance(SLOW_ONE_IN) ? (int64_t)sim_below(SLOW_MS)
							     : sim_delay(TRAVEL_MS),
				     on_back, travel->call);
	else
		travel_end(travel);
}

static void meet_fate(struct travel *travel)
{
	static const enum http_way ways[] = {HTTP_UNSENT, HTTP_BROKEN, HTTP_BROKEN};
	uint64_t fate = sim_below(ARRAY_SIZE(ways));

	travel->way = HTTP_ANSWERED;
	travel->arrives = true;
	travel->failed = sim_fault(SIM_REQUEST, SIM_API_SERVER);
	if (!travel->failed && sim_api_is_refusing())
		travel->failed = SIM_FAULT_REFUSE;
	if (travel->failed) {
		travel->arrives = false;
		if (travel->failed != SIM_FAULT_REFUSE)
			travel->way =
				travel->failed == SIM_FAULT_SILENT ? HTTP_BROKEN : HTTP_UNSENT;
		return;
	}
	if (sim_api_is_away()) {
		travel->arrives = false;
		travel->way = fate ? HTTP_UNSENT : HTTP_BROKEN;
		return;
	}
	if (!sim_chance(10))
		return;
	travel->way = ways[fate];
	travel->arrives = fate == 2;
}

static struct http_call *new_call(struct http_multi *multi, const struct http_request *request,
				  http_multi_fn *fn, void *arg)
{
	struct http_call *call = mem_alloc(sizeof *call);
	struct travel *travel = mem_alloc(sizeof *travel);
	const char *path;

	*call = (struct http_call){.multi = multi,
				   .fn = fn,
				   .arg = arg,
				   .process = sim.current,
				   .travel = travel,
				   .next = multi->calls};
	multi->calls = call;
	travel->call = call;
	travel->next = travels;
	travels = travel;
	travel->method = mem_strdup(request->method);
	travel->url = mem_strdup(request->url);
	path = strchr(travel->url + strlen("https://"), '/');
	travel->path = path ? path : "/";
	return call;
}

static void leave(struct travel *travel, const struct http_request *request)
{
	meet_fate(travel);
	if (sim_effective())
		sim_schedule(NULL,
			     travel->failed == SIM_FAULT_SILENT ? request->timeout_ms
								: sim_delay(TRAVEL_MS),
			     on_arrival, travel);
}

struct http_call *http_multi_start(struct http_multi *multi,
				   const struct http_identity *identity UNUSED,
				   const struct http_request *request, http_multi_fn *fn, void *arg)
{
	struct http_call *call = new_call(multi, request, fn, arg);
	struct travel *travel = call->travel;
	struct error error;

	if (request->body &&
	    !tree_parse(request->body, request->body_length, 65536, "body", &travel->body, &error))
		sim_broken("the API server is sent %s", error.what);
	leave(travel, request);
	return call;
}

struct http_call *http_multi_stream(struct http_multi *multi,
				    const struct http_identity *identity UNUSED,
				    const struct http_request *request, http_take_fn *on_data,
				    http_multi_fn *fn, void *arg)
{
	struct http_call *call = new_call(multi, request, fn, arg);

	call->on_data = on_data;
	call->travel->is_stream = true;
	leave(call->travel, request);
	return call;
}

void sim_http_end(void)
{
	while (travels)
		travel_end(travels);
	vec_deinit(&streams);
}

bool program_start(struct loop *loop UNUSED, const struct kube_access *access UNUSED,
		   const char *ca_pem UNUSED, program_fn *fn UNUSED, void *arg UNUSED,
		   struct program **ret_program UNUSED, struct error *error UNUSED)
{
	abort();
}

void program_destroy(struct program *program UNUSED)
{
}
