#include "sim/sim_api.h"

#include "sim/kubelet.h"
#include "sim/programs.h"
#include "sim/sim_changes.h"
#include "sim/sim_fs.h"
#include "sim/sim_pods.h"
#include "text/tree.h"

#include <stdio.h>

#define MINUTE_MS         60000
#define KNOWN_MS          60000 /* longer than bcd goes by an answer, and tries to send a request */
#define UNREADABLE_ONE_IN 5     /* lists with a pod that can't be read */
#define STRANGER_ONE_IN   40    /* answers of something else in the API server's place, */
#define STRANGER_LISTS    20    /* and so of lists, */
#define STRANGER_DELETES  12    /* and of deletions */

static struct {
	json_t *labels; /* of the Node; NULL: nothing was asked of it yet */
	uint64_t deletions;
	int64_t away_until_ms, refuses_until_ms;
	bool strange; /* something else may answer in its place */
} api;

void sim_api_begin(bool strange)
{
	api.strange = strange;
}

void sim_api_end(void)
{
	api.strange = false;
	json_decref(TAKE(api.labels));
	api.deletions = 0;
	api.away_until_ms = api.refuses_until_ms = 0;
}

void sim_api_goes_away(int64_t for_ms)
{
	sim_trace("the API server is away for %lld ms", (long long)for_ms);
	api.away_until_ms = sim.now_ms + for_ms;
	if (for_ms > 0)
		sim_http_cut();
}

bool sim_api_is_away(void)
{
	return sim.now_ms < api.away_until_ms;
}

void sim_api_refuses_bcd(int64_t for_ms)
{
	sim_trace("the API server refuses what bcd asks for %lld ms", (long long)for_ms);
	api.refuses_until_ms = sim.now_ms + for_ms;
	if (for_ms > 0)
		sim_http_cut();
}

bool sim_api_is_refusing(void)
{
	return sim.now_ms < api.refuses_until_ms;
}

uint64_t sim_api_deletions(void)
{
	return api.deletions;
}

/* --- deletions --- */

static bool is_bound(const char *allocation)
{
	CLEANUP(buf) struct buf path = {0};

	buf_printf(&path, NODE_CDI "/bcd.dev-%s.json", allocation);
	return sim_fs_exists(buf_text(&path));
}

/* Did bcd know, when it sent what has arrived, that the kubelet lists nobody? To force a pod then ends nothing,
 * and takes away the only word for it. */
static bool is_alone_on_record(void)
{
	return programs.in_pod && kubelet_is_unheard(KNOWN_MS) &&
	       sim.now_ms - programs.bcd.frozen_until_ms > KNOWN_MS;
}

/* proves: REL-25 REL-51 */
static void check_deletion(const struct sim_pod *object, int64_t grace_s)
{
	bool released = false;

	vec_each (&object->allocations, char **allocation)
		released = released || !is_bound(*allocation);
	if (object->newcomer)
		sim_broken("a newcomer of the name %s was deleted", object->name);
	else if (!released)
		sim_broken("pod %s was deleted, all it holds is bound", object->name);
	if (grace_s == 0 &&
	    !(object->asked_ms > 0 && sim.now_ms - object->asked_ms >= MINUTE_MS - 1000))
		sim_broken("pod %s was deleted by force before its minute was over", object->name);
	if (grace_s == 0 && is_alone_on_record())
		sim_broken("pod %s was deleted by force while only the checkpoint names it",
			   object->name);
}

static json_t *status_of(const char *reason)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "Status", "apiVersion", "v1",
			 "status", "Failure", "reason", reason, "message", "simulated");
}

static json_t *status_about(const char *reason, const char *pod)
{
	json_t *status = status_of(reason);

	tree_set(status, "details", json_pack("{s:s, s:s}", "name", pod, "kind", "pods"));
	return status;
}

static json_t *object_of(const char *kind, const char *namespace, const char *name)
{
	json_t *object = json_pack("{s:s, s:s, s:{s:s}}", "kind", kind, "apiVersion", "v1",
				   "metadata", "name", name);

	if (*namespace)
		tree_set(json_object_get(object, "metadata"), "namespace", tree_string(namespace));
	return object;
}

static int answer_delete(const char *name, const json_t *body, json_t **ret_body)
{
	struct sim_pod *object = sim_pods_by_name(name);
	const char *uid =
		json_string_value(json_object_get(json_object_get(body, "preconditions"), "uid"));
	int64_t grace_s = json_integer_value(json_object_get(body, "gracePeriodSeconds"));

	/* In the calm, too: most deletions are then. */
	if (object && !object->newcomer && !*object->mirror && object->runs && sim_below(6) == 0) {
		sim_pod_newcomer_takes(object);
		object = sim_pods_by_name(name);
	}
	if (!object) {
		*ret_body = status_about("NotFound", name);
		return 404;
	}
	if (uid && !str_equal(uid, sim_pod_uid(object))) {
		*ret_body = status_about("Conflict", name);
		return 409;
	}
	check_deletion(object, grace_s);
	sim_trace("pod %s is deleted, grace %lld s", name, (long long)grace_s);
	api.deletions++;
	sim_pod_delete(object, grace_s);
	sim_changes_look(); /* the next request may change it again */
	*ret_body = object_of("Pod", "default", name);
	return 200;
}

/* --- the list --- */

/* Not a pod is in it. */
static json_t *make_others(void)
{
	return json_pack("{s:s, s:s, s:{}, s:[]}", "kind", "ServiceList", "apiVersion", "v1",
			 "metadata", "items");
}

static int answer_list(json_t **ret_body)
{
	json_t *items;
	char version[24];

	if (sim_chance(STRANGER_LISTS)) {
		*ret_body = make_others();
		return 200;
	}
	items = json_array();
	sim_changes_look();
	snprintf(version, sizeof version, "%lld", (long long)sim_changes_version());
	vec_each (sim_pods_all(), struct sim_pod * *object)
		if (!(*object)->gone)
			tree_append(items, sim_changes_object(*object));
	if (json_array_size(items) > 0 && sim_chance(UNREADABLE_ONE_IN)) {
		size_t which = sim_below(json_array_size(items));

		json_object_del(json_object_get(json_array_get(items, which), "metadata"), "uid");
	}
	*ret_body = json_pack("{s:s, s:s, s:{s:s}, s:o}", "kind", "PodList", "apiVersion", "v1",
			      "metadata", "resourceVersion", version, "items", items);
	return 200;
}

/* --- somebody else's --- */

/* Of the right kind, and of another name: as of another cluster, or of the question before. */
static json_t *make_anothers(void)
{
	json_t *done;

	switch (sim_below(3)) {
	case 0:
		return object_of("Pod", "default", "another");
	case 1:
		return object_of("Node", "", "node-2");
	default:
		done = status_about("", "another");
		json_object_del(done, "reason");
		tree_set(done, "status", tree_string("Success"));
		return done;
	}
}

/* A health check's, a default backend's, another cluster's or a broken server's: none of it may count. */
static int answer_stranger(json_t **ret_body)
{
	bool missing = sim_below(2);

	switch (sim_below(8)) {
	case 0:
		*ret_body = json_pack("{s:s}", "status", "ok");
		return 200;
	case 1:
		*ret_body = json_object();
		return 200;
	case 2:
		*ret_body = make_others();
		return 200;
	case 3:
		*ret_body = json_pack("{s:s, s:s}", "kind", "PodList", "apiVersion", "v1");
		return 200;
	case 4:
		*ret_body = json_pack("{s:s}", "message", "default backend");
		return missing ? 404 : 409;
	case 5:
		*ret_body = status_of(missing ? "NotFound" : "Conflict");
		return missing ? 404 : 409;
	case 6:
		*ret_body = make_anothers();
		return 200;
	default:
		*ret_body = status_of("InternalError");
		return 200;
	}
}

/* Most deletions are in the calm. */
static bool is_strangers(const char *method)
{
	return str_equal(method, "DELETE") ? api.strange && sim_below(STRANGER_DELETES) == 0
					   : sim_chance(STRANGER_ONE_IN);
}

/* What a watch of something else tells. */
static json_t *make_anothers_event(void)
{
	char version[24];
	json_t *object = object_of("Service", "default", "another");

	snprintf(version, sizeof version, "%lld", (long long)sim_changes_version());
	tree_set(json_object_get(object, "metadata"), "resourceVersion", tree_string(version));
	return json_pack("{s:s, s:o}", "type", "MODIFIED", "object", object);
}

/* --- the watch --- */

static int64_t number_of(const char *path, const char *name)
{
	const char *at = strstr(path, name);

	return at ? strtoll(at + strlen(name), NULL, 10) : -1;
}

/* proves: HOSTED-11 */
int sim_api_watch(const char *path, int64_t *ret_version, json_t **ret_body)
{
	int64_t version = number_of(path, "resourceVersion=");

	if (!str_starts(path, "/api/v1/pods?") ||
	    !strstr(path, "fieldSelector=spec.nodeName%3Dnode-1"))
		sim_broken("the API server is asked to watch %s", path);
	if (is_strangers("GET")) {
		if (sim_below(2))
			return answer_stranger(ret_body);
		*ret_body = make_anothers_event();
		return 200;
	}
	if (version >= 0 && sim_changes_forgot(version)) {
		*ret_body = status_of("Expired");
		return 410;
	}
	*ret_version = version;
	return 200;
}

int sim_api_refuse(json_t **ret_body)
{
	*ret_body = status_of("InternalError");
	return 500;
}

/* --- the Node --- */

static int answer_node(json_t **ret_body)
{
	*ret_body = object_of("Node", "", "node-1");
	tree_set(json_object_get(*ret_body, "metadata"), "labels", json_incref(api.labels));
	return 200;
}

/* proves: HOSTED-22 */
static int answer_label(const json_t *body, json_t **ret_body)
{
	json_t *labels = json_object_get(json_object_get(body, "metadata"), "labels"), *value;
	const char *name;

	if (json_object_size(body) != 1 || json_object_size(json_object_get(body, "metadata")) != 1)
		sim_broken("more of the Node is changed than its labels");
	json_object_foreach(labels, name, value)
	{
		if (!str_starts(name, "bcd.dev/"))
			sim_broken("label %s of the Node is changed", name);
		if (json_is_null(value))
			json_object_del(api.labels, name);
		else
			tree_set(api.labels, name, json_incref(value));
	}
	return answer_node(ret_body);
}

int sim_api_answer(const char *method, const char *path, const json_t *body, json_t **ret_body)
{
	static const char pods[] = "/api/v1/namespaces/default/pods/";

	if (!api.labels)
		api.labels = json_pack("{s:s}", "kubernetes.io/hostname", "node-1");
	if (is_strangers(method))
		return answer_stranger(ret_body);
	if (str_equal(path, "/api/v1/nodes/node-1"))
		return answer_node(ret_body);
	if (str_equal(method, "PATCH") && str_starts(path, "/api/v1/nodes/node-1?"))
		return answer_label(body, ret_body);
	if (str_equal(method, "GET") && str_starts(path, "/api/v1/pods?"))
		return answer_list(ret_body);
	if (str_equal(method, "DELETE") && str_starts(path, pods))
		return answer_delete(path + strlen(pods), body, ret_body);
	if (!strstr(path, "/events"))
		sim_broken("the API server is asked for %s %s", method, path);
	*ret_body = json_deep_copy(body);
	return 201;
}
