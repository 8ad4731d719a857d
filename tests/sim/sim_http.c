/* http/multi.h on the queue: a request travels to the simulated API server and its answer back, late,
 * once, or not at all. And kube/program.h: no program is run here. */
#include "http/multi.h"
#include "kube/program.h"
#include "sim/sim.h"
#include "sim/sim_api.h"
#include "text/tree.h"

#define TRAVEL_MS 10

/* On its way; outlives the call. */
struct travel {
	struct http_call *call; /* NULL: nobody waits for it */
	char *method, *path;
	json_t *body;
	enum http_way way; /* how it ends */
	bool arrives;
	struct http_answer answer;
	struct travel *next;
};

static struct travel *travels;

struct http_call {
	struct http_multi *multi;
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
	free(travel->path);
	json_decref(travel->body);
	http_answer_deinit(&travel->answer);
	free(travel);
}

void http_call_cancel(struct http_call *call)
{
	struct http_call **at;

	if (!call)
		return;
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
	error_set(&error, ERROR_UNAVAILABLE, "the simulated API server doesn't answer");
	fn(to, travel->way, travel->way == HTTP_ANSWERED ? &travel->answer : NULL,
	   travel->way == HTTP_ANSWERED ? NULL : &error);
	travel_end(travel);
}

/* At the API server, which is no process of this world. */
static void on_arrival(void *arg)
{
	struct travel *travel = arg;
	CLEANUP(tree) json_t *body = NULL;

	if (travel->arrives)
		travel->answer.status =
			sim_api_answer(travel->method, travel->path, travel->body, &body);
	if (body)
		tree_dump_canonical(&travel->answer.body, body);
	if (travel->call)
		travel->call->told = sim_schedule(travel->call->process, sim_delay(TRAVEL_MS),
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
	if (!sim_chance(10))
		return;
	travel->way = ways[fate];
	travel->arrives = fate == 2;
}

struct http_call *http_multi_start(struct http_multi *multi,
				   const struct http_identity *identity UNUSED,
				   const struct http_request *request, http_multi_fn *fn, void *arg)
{
	struct http_call *call = mem_alloc(sizeof *call);
	struct travel *travel = mem_alloc(sizeof *travel);
	const char *path = strchr(request->url + strlen("https://"), '/');
	struct error error;

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
	travel->path = mem_strdup(path ? path : "/");
	if (request->body &&
	    !tree_parse(request->body, request->body_length, 65536, "body", &travel->body, &error))
		sim_broken("the API server is sent %s", error.what);
	meet_fate(travel);
	if (sim_effective())
		sim_schedule(NULL, sim_delay(TRAVEL_MS), on_arrival, travel);
	return call;
}

void sim_http_end(void)
{
	while (travels)
		travel_end(travels);
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
