#include "standin/standin.h"

#include "standin/admission.h"
#include "standin/checkpoint.h"
#include "standin/podresources.h"
#include "standin/pods.h"
#include "standin/registration.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "sys/random.h"
#include "text/tree.h"

#define STANDIN_MAX_REGISTRATIONS 4096
#define STANDIN_MAX_S             INT64_C(3600)
#define STANDIN_MAX_NAME          253

/* Who asked for a pod and waits for what becomes of it. */
struct waiter {
	char *uid;
	standin_answer_fn *fn;
	void *arg;
};

struct registered {
	char *resource;
	struct wall at;
};

struct standin {
	struct loop *loop;
	char *root, *device_plugins, *checkpoint, *pod_resources, *pods_file;
	struct manager_ids cdi; /* folders */
	struct durable_lock *lock;
	struct manager manager;
	struct pods pods;
	struct registration *registration; /* NULL while it is down */
	struct podresources *podresources;
	struct admission *admission;
	struct loop_defer *turn;
	struct loop_timer *timer; /* the next retry or end of a grace period */
	struct loop_timer *start; /* ends a downtime */
	struct waiter restart;    /* who waits for that; fn NULL if nobody */
	VEC(struct waiter) waiters;
	VEC(struct registered) registered;
};

/* --- answers --- */

static void answer_ok(standin_answer_fn *fn, void *arg, const char *key, json_t *value)
{
	json_t *answer = json_pack("{s:b}", "ok", 1);
	if (key)
		json_object_set_new(answer, key, value);
	fn(arg, answer);
	json_decref(answer);
}

static void answer_error(standin_answer_fn *fn, void *arg, const struct error *error)
{
	json_t *answer = json_pack("{s:b, s:s, s:o}", "ok", 0, "code", error_code_name(error->code),
				   "error", tree_string(error->what));
	fn(arg, answer);
	json_decref(answer);
}

static json_t *pod_answer(struct standin *standin, const struct pod *pod)
{
	json_t *json = pod_to_json(pod), *devices = json_array();
	vec_each (&standin->manager.holds, const struct manager_hold *hold) {
		if (!str_equal(hold->pod, pod->uid))
			continue;
		vec_each (&hold->devices, const struct manager_device *device) {
			json_t *numa = json_array();
			vec_each (&device->numa, const int64_t *node)
				json_array_append_new(numa, json_integer(*node));
			json_array_append_new(
				devices, json_pack("{s:s, s:o}", "id", device->id, "numa", numa));
		}
	}
	json_object_set_new(json, "devices", devices);
	return json;
}

static void waiters_tell(struct standin *standin, const struct pod *pod)
{
	for (size_t i = standin->waiters.count; i-- > 0;) {
		struct waiter waiter = standin->waiters.items[i];
		if (!str_equal(waiter.uid, pod->uid))
			continue;
		vec_remove(&standin->waiters, i);
		free(waiter.uid);
		answer_ok(waiter.fn, waiter.arg, "pod", pod_answer(standin, pod));
	}
}

/* --- files --- */

static void store(const char *path, const struct buf *content)
{
	struct error error;
	if (!durable_replace(path, content->data, content->length, 0600, &error))
		log_failure(LOG_ERROR, "store", &error, "it goes on as the kubelet would");
}

static void checkpoint_store(struct standin *standin)
{
	CLEANUP(buf) struct buf text = {0};
	checkpoint_format(&standin->manager, &text);
	store(standin->checkpoint, &text);
}

static void pods_store(struct standin *standin)
{
	CLEANUP(buf) struct buf text = {0};
	pods_format(&standin->pods, &text);
	store(standin->pods_file, &text);
}

static void checkpoint_load(struct standin *standin)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;
	if (durable_read(standin->checkpoint, CHECKPOINT_MAX_SIZE, &text, &error) &&
	    checkpoint_parse(text.data, text.length, loop_now(standin->loop), &standin->manager,
			     &error))
		return;
	if (error.code != ERROR_NOT_FOUND)
		log_failure(LOG_ERROR, "checkpoint", &error, "no pod is known to hold a device");
}

/* Containers end with their boot: what ran is to be admitted again, with what it holds. */
static void pods_follow_boot(struct pods *pods)
{
	char boot[CLOCK_BOOT_ID_SIZE];
	clock_boot_id(boot);
	vec_each (&pods->list, struct pod * pod)
		if (pod_active(pod) && !str_equal(pods->boot, boot))
			pod_set(pod, POD_PENDING, "Restarting", "the machine was started anew");
	str_copy(pods->boot, sizeof pods->boot, boot);
}

static bool pods_load(struct standin *standin, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	if (durable_read(standin->pods_file, PODS_MAX_SIZE, &text, error)) {
		if (!pods_parse(text.data, text.length, &standin->pods, error))
			return error_wrap(error, "read '%s'", standin->pods_file);
	} else if (error->code != ERROR_NOT_FOUND) {
		return false;
	}
	pods_follow_boot(&standin->pods);
	return true;
}

/* --- the turn --- */

static void on_change(void *arg)
{
	struct standin *standin = arg;
	admission_forget(&standin->manager, &standin->pods);
	checkpoint_store(standin);
	loop_defer_arm(standin->turn);
}

static void on_register(void *arg, const char *resource)
{
	struct standin *standin = arg;
	if (standin->registered.count == STANDIN_MAX_REGISTRATIONS) {
		free(standin->registered.items[0].resource);
		vec_remove(&standin->registered, 0);
	}
	*vec_push(&standin->registered) = (struct registered){mem_strdup(resource), clock_wall()};
}

static void on_decided(void *arg, struct pod *pod)
{
	struct standin *standin = arg;
	log_info("pod", pod_phase_name(pod->phase), "pod", pod->name, "resource", pod->resource,
		 "reason", pod->reason, "message", pod->message, NULL);
	pods_store(standin);
	waiters_tell(standin, pod);
	loop_defer_arm(standin->turn);
}

static void on_held(void *arg)
{
	checkpoint_store(arg);
}

static void pod_end(struct standin *standin, struct pod *pod)
{
	waiters_tell(standin, pod);
	pods_remove(&standin->pods, pod);
	pods_store(standin);
	loop_defer_arm(standin->turn);
}

/* Ends what its grace period is over for; when the next one is, in milliseconds, or -1. */
static int64_t graces_end(struct standin *standin)
{
	struct mono now = loop_now(standin->loop);
	int64_t next = -1;
	for (size_t i = standin->pods.list.count; i-- > 0;) {
		struct pod *pod = &standin->pods.list.items[i];
		if (!pod->deleting)
			continue;
		int64_t left = mono_until(now, pod->ends);
		if (left <= 0)
			pod_end(standin, pod);
		else if (next < 0 || left < next)
			next = left;
	}
	return next;
}

static void on_turn(void *arg)
{
	struct standin *standin = arg;
	if (!standin->registration || standin->pods.unheard)
		return;
	int64_t next = graces_end(standin);
	bool waiting = admission_turn(standin->admission);
	if (waiting && (next < 0 || next > STANDIN_RETRY_MS))
		next = STANDIN_RETRY_MS;
	if (next >= 0)
		loop_timer_start(standin->timer, next);
}

/* --- verbs --- */

#define UID_SIZE 37

/* As an API server makes them: a random UUID (RFC 9562, version 4); or of a static pod, as a kubelet does. */
static void make_uid(char out[UID_SIZE], bool is_static)
{
	const char *dash = is_static ? "" : "-";
	uint8_t b[16];

	random_bytes(b, sizeof b);
	b[6] = (uint8_t)(0x40 | (b[6] & 15));
	b[8] = (uint8_t)(0x80 | (b[8] & 63));
	snprintf(out, UID_SIZE,
		 "%02x%02x%02x%02x%s%02x%02x%s%02x%02x%s%02x%02x%s%02x%02x%02x%02x%02x%02x", b[0],
		 b[1], b[2], b[3], dash, b[4], b[5], dash, b[6], b[7], dash, b[8], b[9], dash,
		 b[10], b[11], b[12], b[13], b[14], b[15]);
}

static void verb_run_pod(struct standin *standin, json_t *request, standin_answer_fn *fn, void *arg)
{
	struct error error;
	struct pod *pod;
	char uid[UID_SIZE];
	bool is_static = false;

	if (!tree_opt_bool(request, "static", "", &is_static, &error)) {
		answer_error(fn, arg, &error);
		return;
	}
	make_uid(uid, is_static);
	if (!pods_add(&standin->pods, request, uid, &pod, &error)) {
		answer_error(fn, arg, &error);
		return;
	}
	*vec_push(&standin->waiters) = (struct waiter){mem_strdup(uid), fn, arg};
	pods_store(standin);
	loop_defer_arm(standin->turn);
}

static void verb_delete_pod(struct standin *standin, json_t *request, standin_answer_fn *fn,
			    void *arg)
{
	const char *namespace = "default", *name;
	int64_t grace = STANDIN_DEFAULT_GRACE_S;
	struct pod *pod = NULL;
	struct error error;
	if (tree_opt_string(request, "namespace", "", STANDIN_MAX_NAME, &namespace, &error) &&
	    tree_get_string(request, "name", "", STANDIN_MAX_NAME, &name, &error) &&
	    tree_opt_int(request, "graceSeconds", "", 0, STANDIN_MAX_S, &grace, &error)) {
		pod = pods_find(&standin->pods, namespace, name);
		error_set(&error, ERROR_NOT_FOUND, "no pod '%s' in namespace '%s'", name,
			  namespace);
	}
	if (!pod) {
		answer_error(fn, arg, &error);
		return;
	}
	pod->deleting = true;
	pod->grace_ms = pod->stubborn && pod_active(pod) ? grace * 1000 : 0;
	pod->ends = mono_after(loop_now(standin->loop), pod->grace_ms);
	pods_store(standin);
	loop_defer_arm(standin->turn);
	answer_ok(fn, arg, NULL, NULL);
}

static void verb_list(struct standin *standin, standin_answer_fn *fn, void *arg)
{
	json_t *list = json_array();
	vec_each (&standin->pods.list, const struct pod *pod)
		json_array_append_new(list, pod_answer(standin, pod));
	answer_ok(fn, arg, "pods", list);
}

static void verb_node(struct standin *standin, standin_answer_fn *fn, void *arg)
{
	json_t *resources = json_object(), *calls = json_array();
	vec_each (&standin->manager.resources, struct manager_resource * resource) {
		struct manager_counts counts =
			manager_counts(&standin->manager, resource, loop_now(standin->loop));
		json_object_set_new(
			resources, resource->name,
			json_pack("{s:I, s:I, s:I}", "capacity", (json_int_t)counts.capacity,
				  "allocatable", (json_int_t)counts.allocatable, "requested",
				  (json_int_t)admission_requested(&standin->pods, resource->name)));
	}
	vec_each (&standin->registered, const struct registered *registered)
		json_array_append_new(calls,
				      json_pack("{s:s, s:I}", "resource", registered->resource,
						"atMs", (json_int_t)registered->at.ms));
	answer_ok(fn, arg, "node",
		  json_pack("{s:o, s:o}", "resources", resources, "registrations", calls));
}

/* --- going up and down --- */

/* A grace that was running when the kubelet went begins anew. */
static void graces_begin(struct standin *standin)
{
	vec_each (&standin->pods.list, struct pod * pod)
		pod->ends = mono_after(loop_now(standin->loop), pod->grace_ms);
	loop_defer_arm(standin->turn);
}

void standin_hears(struct standin *standin)
{
	if (!standin->pods.unheard)
		return;
	standin->pods.unheard = false;
	graces_begin(standin);
}

static bool kubelet_start(struct standin *standin, struct error *error)
{
	static const struct registration_handlers handlers = {on_change, on_register};
	checkpoint_load(standin);
	if (!podresources_create(standin->loop, standin->pod_resources, &standin->manager,
				 &standin->pods, &standin->podresources, error) ||
	    !registration_create(standin->loop, standin->device_plugins, &standin->manager,
				 &handlers, standin, &standin->registration, error))
		return false;
	static const struct admission_handlers admission_handlers = {on_decided, on_held};
	standin->admission =
		admission_create(standin->registration, &standin->manager, &standin->pods,
				 &standin->cdi, &admission_handlers, standin);
	graces_begin(standin);
	return true;
}

static void kubelet_stop(struct standin *standin)
{
	/* Before the plugins: what they answer on their way out decides nothing any more. */
	if (standin->admission)
		admission_close(standin->admission);
	registration_destroy(TAKE(standin->registration));
	admission_destroy(TAKE(standin->admission));
	podresources_destroy(TAKE(standin->podresources));
	manager_deinit(&standin->manager);
	standin->manager = (struct manager){0};
}

static void on_start(void *arg)
{
	struct standin *standin = arg;
	struct error error;
	struct waiter waiter = standin->restart;
	standin->restart.fn = NULL;
	bool ok = kubelet_start(standin, &error);
	if (!ok)
		log_failure(LOG_ERROR, "restart", &error, "the kubelet stays away");
	if (waiter.fn && ok)
		answer_ok(waiter.fn, waiter.arg, NULL, NULL);
	else if (waiter.fn)
		answer_error(waiter.fn, waiter.arg, &error);
}

static void verb_restart(struct standin *standin, json_t *request, standin_answer_fn *fn, void *arg)
{
	struct error error;
	int64_t down = 0;
	bool ok = tree_opt_int(request, "downMs", "", 0, STANDIN_MAX_S * 1000, &down, &error);
	if (ok && standin->restart.fn)
		ok = error_set(&error, ERROR_CONFLICT, "a restart is under way");
	if (!ok) {
		answer_error(fn, arg, &error);
		return;
	}
	kubelet_stop(standin);
	standin->restart = (struct waiter){.fn = fn, .arg = arg};
	loop_timer_start(standin->start, down);
}

void standin_request(struct standin *standin, json_t *request, standin_answer_fn *fn, void *arg)
{
	struct error error;
	const char *verb = json_string_value(json_object_get(request, "verb"));
	if (!verb) {
		error_field(&error, "verb", "missing");
		answer_error(fn, arg, &error);
	} else if (str_equal(verb, "run-pod")) {
		verb_run_pod(standin, request, fn, arg);
	} else if (str_equal(verb, "delete-pod")) {
		verb_delete_pod(standin, request, fn, arg);
	} else if (str_equal(verb, "list")) {
		verb_list(standin, fn, arg);
	} else if (str_equal(verb, "node")) {
		verb_node(standin, fn, arg);
	} else if (str_equal(verb, "restart")) {
		verb_restart(standin, request, fn, arg);
	} else {
		error_field(&error, "verb", "'%s' is unknown", verb);
		answer_error(fn, arg, &error);
	}
}

/* --- life --- */

static char *below(const char *folder, const char *name)
{
	struct buf path = {0};
	buf_printf(&path, "%s/%s", folder, name);
	return buf_take_text(&path);
}

static bool folders_make(struct standin *standin, struct error *error)
{
	CLEANUP(free) char *lock = below(standin->root, "standin.lock");
	CLEANUP(free) char *pod_resources = below(standin->root, "pod-resources");
	return durable_make_folder(standin->root, 0755, error) &&
	       durable_make_folder(standin->device_plugins, 0750, error) &&
	       durable_make_folder(pod_resources, 0750, error) &&
	       durable_lock_take(lock, &standin->lock, error);
}

bool standin_create(struct loop *loop, const struct standin_options *options,
		    struct standin **ret_standin, struct error *error)
{
	struct standin *standin = mem_alloc(sizeof *standin);
	*standin = (struct standin){
		.loop = loop,
		.root = mem_strdup(options->root),
		.device_plugins = below(options->root, "device-plugins"),
		.checkpoint = below(options->root, "device-plugins/" CHECKPOINT_NAME),
		.pod_resources = below(options->root, "pod-resources/kubelet.sock"),
		.pods_file = below(options->root, "standin-pods.json"),
		.pods = {.unheard = options->unheard},
		.turn = loop_defer_create(loop, on_turn, standin),
		.timer = loop_timer_create(loop, on_turn, standin),
		.start = loop_timer_create(loop, on_start, standin),
	};
	for (size_t i = 0; i < options->cdi_count; i++)
		manager_ids_add(&standin->cdi, options->cdi[i]);
	if (!folders_make(standin, error) || !pods_load(standin, error) ||
	    !kubelet_start(standin, error)) {
		standin_destroy(standin);
		return false;
	}
	*ret_standin = standin;
	return true;
}

void standin_destroy(struct standin *standin)
{
	if (!standin)
		return;
	struct error error;
	error_set(&error, ERROR_UNAVAILABLE, "the stand-in stops");
	kubelet_stop(standin);
	vec_each (&standin->waiters, struct waiter * waiter) {
		answer_error(waiter->fn, waiter->arg, &error);
		free(waiter->uid);
	}
	if (standin->restart.fn)
		answer_error(standin->restart.fn, standin->restart.arg, &error);
	vec_each (&standin->registered, struct registered * registered)
		free(registered->resource);
	vec_deinit(&standin->registered);
	vec_deinit(&standin->waiters);
	pods_deinit(&standin->pods);
	manager_ids_deinit(&standin->cdi);
	durable_lock_destroy(standin->lock);
	loop_defer_destroy(standin->turn);
	loop_timer_destroy(standin->timer);
	loop_timer_destroy(standin->start);
	free(standin->root);
	free(standin->device_plugins);
	free(standin->checkpoint);
	free(standin->pod_resources);
	free(standin->pods_file);
	free(standin);
}
