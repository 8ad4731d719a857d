/*
 * kubelet: what a node under test sees of a kubelet, with every bad habit on request.
 *
 * Serves Registration and pod-resources on real sockets; on Register it dials the plugin as a
 * kubelet does and keeps a ListAndWatch stream. Everything runs on the test's loop.
 */
#pragma once

#include "base/vec.h"
#include "lib/test.h"
#include "rpc/rpc.h"
#include "sys/loop.h"

#include <sys/types.h>

#define KUBELET_MAX_DEVICES 64

struct kubelet_plugin {
	char resource[64];
	char endpoint[128];
	struct rpc_client *client;
	struct rpc_call *stream;
	bool alive;
	size_t lists; /* received on this stream */
	size_t device_count;
	struct {
		char id[128];
		bool healthy;
		int numa; /* -1 none */
	} devices[KUBELET_MAX_DEVICES];
};

struct kubelet {
	struct loop *loop;
	char *folder; /* the kubelet's root */
	struct rpc_server *registration, *pod_resources;
	VEC(struct kubelet_plugin *) plugins; /* every registration, in order */
	bool refuse;                          /* Register answers an error */
	size_t register_calls;
	/* pod-resources */
	const char *held[8]; /* device ids that a pod holds; NULL-ended */
	const char *
		claimed; /* a claimed device that it holds by default/gpus, listed twice; NULL none */
	size_t padding;            /* bytes by which the answer is longer */
	bool pods_fail, pods_hang; /* an error at once; no answer at all */
	size_t list_calls;
};

void kubelet_start(struct kubelet *kubelet, struct loop *loop, const char *root);
void kubelet_stop(struct kubelet *kubelet); /* streams end; its sockets go */
/* The newest live plugin of this resource, or NULL. */
struct kubelet_plugin *kubelet_find(const struct kubelet *kubelet, const char *resource);
size_t kubelet_alive(const struct kubelet *kubelet, const char *resource);
/* Its checkpoint says that the pod `uid` has the GPU `id`, and nothing else; NULL: that nobody has anything. */
void kubelet_write_checkpoint(const struct kubelet *kubelet, const char *uid, const char *id);

/* One Allocate of one container, run to its end; `names` gets the CDI names, comma-separated. */
enum rpc_code kubelet_allocate(struct kubelet *kubelet, struct kubelet_plugin *plugin,
			       const char *const *ids, size_t count, char *names, size_t size,
			       char *message, size_t message_size);

/* Runs the loop until fn is true; fails the test after `ms`, and TEST_PATIENCE_MS at least. */
typedef bool kubelet_until_fn(void *arg);
void kubelet_until(struct loop *loop, kubelet_until_fn *fn, void *arg, int64_t ms,
		   const char *what);
void kubelet_run(struct loop *loop, int64_t ms);
/* Runs the loop until what its workers had to do is done, such as what a node wrote when it was destroyed. */
void kubelet_rest(struct loop *loop);
/* The same until a child of the test has ended; its status as of waitpid(). */
int kubelet_until_ended(struct loop *loop, pid_t child, int64_t ms, const char *what);
/* The same by clocks that go ten times as fast, for what waits long: each look at the loop takes them
 * KUBELET_LEAP_MS further, all clocks and timers of this process, but for looks at which a worker waits for a slow
 * disk: so neither that nor a busy machine lets anything be missed. Other processes aren't in it. */
#define KUBELET_LEAP_MS 45
void kubelet_pass(struct loop *loop, int64_t ms);
/* Until fn is true; fails after `ms` of these clocks, and TEST_PATIENCE_MS of the machine's own. */
void kubelet_pass_until(struct loop *loop, kubelet_until_fn *fn, void *arg, int64_t ms,
			const char *what);
