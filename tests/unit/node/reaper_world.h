/* A node with a kubelet and an API server's wire, where a pod has the GPU of a release: what the tests of its reaper share. */
#pragma once

#include "cluster.h"
#include "core/fixture.h"
#include "lib/folder.h"

#define RUNNING                                                                                    \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"uid\":\"uid-1\",\"namespace\":"   \
	"\"ns\",\"name\":\"web\"},\"spec\":{},"                                                    \
	"\"status\":{\"phase\":\"Running\"}}"
#define POD                                                                                        \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"uid\":\"uid-1\",\"namespace\":"   \
	"\"ns\",\"name\":\"web\"},\"spec\":{},"                                                    \
	"\"status\":{\"phase\":\"Succeeded\"}}"
#define CHECKPOINT "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
#define LIST(items)                                                                                \
	"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[" items "]}"
#define CLAIM(uid)                                                                                 \
	"{\"kind\":\"ResourceClaim\",\"apiVersion\":\"resource.k8s.io/"                            \
	"v1\",\"metadata\":{\"uid\":\"" uid "\",\"namespace\":\"ns\",\"name\":\"gpus\"}}"
#define STATUS(reason, code)                                                                       \
	"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"" reason   \
	"\",\"message\":\"no\",\"code\":" code "}"

extern struct inventory inventory;
extern char held[HOLDS_ID_SIZE]; /* GPU 0 as the kubelet knows it */

/* A number to report a release under. */
void write_spec(void);
/* All of begin() but its end. */
void prepare(void **state, const struct fake_api_answer *answers, size_t count, int64_t ms);
/* A node that has been releasing ALC_A for `ms` while a pod of the kubelet has its GPU. */
void begin_with(void **state, bool units, const struct fake_api_answer *answers, size_t count,
		int64_t ms);
void begin(void **state, const struct fake_api_answer *answers, size_t count, int64_t ms);
/* What the API server was asked; as cluster_finish(). */
const char *finish(void);
/* Is the release? `arg` is nothing. */
bool is_reported(void *arg);
/* Of its message; "" when the condition isn't there. Valid until the next call. */
const char *condition_of(const char *type);
bool condition_says(const char *type, const char *words);

/* Fixtures of the program. */
