/* A bcd that doesn't see the host's processes, and pods that kubelet, checkpoint and API server forget while they may
 * run: what the tests of that share. The node is a child of the test in a PID namespace of its own, by clocks that leap;
 * kubelet and API server stay outside. */
#pragma once

#include "cluster.h"
#include "core/fixture.h"
#include "lib/folder.h"

#define UID      "0b6ed7a0-52a5-4c3b-9e5c-3a8a6b2f0c11"
#define STATIC   "5d3a1f6ce07b4c1c8e2a9d4b7f60e113" /* a static pod's, as a kubelet makes it */
#define GRACE_MS 20000                              /* the pod's */

#define SPEC "\"spec\":{\"nodeName\":\"n1\",\"terminationGracePeriodSeconds\":20}"
#define POD(status)                                                                                \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"7\",\"uid\":" \
	"\"" UID "\",\"namespace\":\"ns\",\"name\":\"web\"}," SPEC ",\"status\":" status "}"
#define RUNS "{\"phase\":\"Running\"}"
#define MIRROR                                                                                     \
	"{\"metadata\":{\"uid\":\"m-1\",\"namespace\":\"ns\",\"name\":\"web-n1\",\"annotations\":" \
	"{"                                                                                        \
	"\"kubernetes.io/config.mirror\":\"" STATIC                                                \
	"\"},\"ownerReferences\":[{\"apiVersion\":\"v1\","                                         \
	"\"kind\":\"Node\",\"name\":\"n1\",\"uid\":\"n-1\",\"controller\":true}]}," SPEC           \
	",\"status\":" RUNS "}"
/* One that the kubelet lists whenever it lists any: so it has heard of its pods. */
#define OTHER                                                                                      \
	"{\"metadata\":{\"uid\":\"o-1\",\"namespace\":\"default\",\"name\":\"p\"}," SPEC           \
	",\"status\":" RUNS "}"
#define LIST(items)                                                                                \
	"{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[" items "]}"

#define FAILED(state)                                                                              \
	POD("{\"phase\":\"Failed\",\"containerStatuses\":[{\"state\":{\"" state "\":{}}}]}")

/* --- the child's: nothing here may fail as tests do, it has its exit status alone --- */

void check(bool so, const char *file, int line);
/* The kubelet doesn't name it any more. */
void forget(void);
/* Is the release? By its record. */
bool is_reported(void);
void pass_until_told(const char *words);
/* How long it takes from now on, by the clocks that leap. */
int64_t pass_until_reported(void);
/* What is told of the release. */
bool is_told(const char *words);
void start_node(void);
/* Are they in releasing.json? */
bool has_record(const char *words);
/* `wanted`: ALC_A, with GPU 0. */
void write_spec(int64_t generation, bool wanted);
#define CHECK(so) check(so, __FILE__, __LINE__)

/* A story: it was deleted by force, and its grace counts from when nobody has it. */
void counted_from_its_end(void);

/* --- the test's --- */

typedef void story_fn(void);
/* What is odd. */
enum habit {
	USUAL,
	WANTED,   /* nothing is pending yet */
	UNHEARD,  /* the kubelet lists nobody */
	NAMELESS, /* and somebody with a device whom its checkpoint doesn't have */
	OF_FILE,  /* who has the GPU is static */
	REBOOTED, /* what is pending was recorded by an earlier boot */
};

/* ALC_A is pending, or wanted, and the checkpoint alone names who has its GPU; then the child tells. */
void tell_of(void **state, const struct fake_api_options *api, enum habit habit, story_fn *story);
/* Lists alone tell: whoever asks isn't allowed to watch. */
void tell(void **state, const struct fake_api_answer *answers, size_t count, enum habit habit,
	  story_fn *story);

/* Fixtures of the program. */
