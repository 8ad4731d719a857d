#include "sim/people.h"

#include "control/core/timestamp.h"
#include "sim/programs.h"
#include "sim/sim_pods.h"
#include "standin/standin.h"
#include "sys/clock.h"
#include "text/tree.h"

#include <stdio.h>

struct people people;

void people_end(void)
{
	vec_each (&people.bookings, struct booking * booking)
		free(booking->id);
	vec_deinit(&people.bookings);
}

/* --- reservations --- */

const char *people_reserve(const char *class, uint64_t count, int minutes, int64_t start_in_ms)
{
	char duration[32], start[TIMESTAMP_SIZE];
	snprintf(duration, sizeof duration, "%dm", minutes);
	json_t *body =
		json_pack("{s:s, s:s, s:[{s:s, s:I}], s:s, s:s}", "tenantId", programs.tenant,
			  "poolId", programs.pool, "devices", "class", class, "count",
			  (json_int_t)count, "duration", duration, "binding", "kubernetes");
	if (start_in_ms > 0) {
		timestamp_format(start, (struct wall){clock_wall().ms + start_in_ms});
		json_object_set_new(body, "startAt", json_string(start));
	}
	json_t *answer = programs_call(control_reservation_create, NULL, body);
	const char *id = json_string_value(json_object_get(answer, "id"));
	sim_trace("reserve %llu of %s: %s %s", (unsigned long long)count, class, id ? id : "no",
		  id ? json_string_value(json_object_get(answer, "state")) : "");
	if (id) {
		*vec_push(&people.bookings) =
			(struct booking){.id = mem_strdup(id), .class = class};
		people.booked++;
		id = people.bookings.items[people.bookings.count - 1].id;
	}
	json_decref(answer);
	return id;
}

void people_release(const char *id)
{
	sim_trace("release %s", id);
	people.released++;
	json_decref(programs_call(control_reservation_release, id, NULL));
}

void people_release_all(void)
{
	vec_each (&people.bookings, struct booking * booking) {
		CLEANUP(tree)
		json_t *reservation = programs_look(control_reservation_get, booking->id);
		const char *state = json_string_value(json_object_get(reservation, "state"));
		if (!state) /* a database that went back knows it no more */
			continue;
		if (str_equal(state, "active") || str_equal(state, "placed"))
			people_release(booking->id);
		else if (str_equal(state, "pending"))
			json_decref(programs_call(control_reservation_cancel, booking->id, NULL));
	}
}

/* --- pods --- */

static void on_pod(void *arg UNUSED, json_t *answer)
{
	const json_t *pod = json_object_get(answer, "pod");
	if (!pod)
		return;
	sim_trace("pod %s: %s %s", json_string_value(json_object_get(pod, "name")),
		  json_string_value(json_object_get(pod, "phase")),
		  json_string_value(json_object_get(pod, "reason")));
}

static void on_answer(void *arg UNUSED, json_t *answer UNUSED)
{
}

/* As the kubelet's process, whose code it is. */
struct asked {
	json_t *request;
	standin_answer_fn *fn;
};

static void ask_now(void *arg)
{
	struct asked asked = *(struct asked *)arg;
	free(arg);
	if (programs.standin && sim_effective())
		standin_request(programs.standin, asked.request, asked.fn, NULL);
	json_decref(asked.request);
}

static void ask_kubelet(json_t *request, standin_answer_fn *fn)
{
	if (!programs.kubelet.running) {
		json_decref(request);
		return;
	}
	struct asked *asked = mem_alloc(sizeof *asked);
	*asked = (struct asked){request, fn};
	sim_schedule(&programs.kubelet, 0, ask_now, asked)->is_work = true;
}

static void run_pod(const char *class, uint64_t count, bool bound, bool stubborn, bool is_static)
{
	char name[32], resource[32];
	snprintf(name, sizeof name, "pod-%llu", (unsigned long long)++people.pods);
	snprintf(resource, sizeof resource, "bcd.dev/%s", class);
	sim_trace("run %s with %llu of %s", name, (unsigned long long)count, resource);
	ask_kubelet(json_pack("{s:s, s:s, s:s, s:I, s:b, s:b, s:b}", "verb", "run-pod", "name",
			      name, "resource", resource, "count", (json_int_t)count, "bound",
			      bound, "stubborn", stubborn, "static", is_static),
		    on_pod);
}

void people_run_pod(const char *class, uint64_t count, bool bound, bool stubborn)
{
	run_pod(class, count, bound, stubborn, sim_chance(8));
}

void people_run_static_pod(void)
{
	run_pod("gpu", 1, true, false, true);
}

void people_remove_manifest(void)
{
	char name[32];
	snprintf(name, sizeof name, "pod-%llu", (unsigned long long)people.pods);
	sim_world_pod_ends(name, 0);
}

void people_delete_pod(uint64_t number)
{
	char name[32];
	snprintf(name, sizeof name, "pod-%llu", (unsigned long long)number);
	if (!sim_pods_is_gone(name))
		ask_kubelet(json_pack("{s:s, s:s}", "verb", "delete-pod", "name", name), on_answer);
}

void people_force_pod(uint64_t number)
{
	char name[32];
	snprintf(name, sizeof name, "pod-%llu", (unsigned long long)number);
	sim_pods_force(name);
}

void sim_world_pod_ends(const char *name, int64_t grace_s)
{
	ask_kubelet(json_pack("{s:s, s:s, s:I}", "verb", "delete-pod", "name", name, "graceSeconds",
			      (json_int_t)grace_s),
		    on_answer);
}
