/* The driver's list of its GPUs on a real disk: what is said of GPUs whose numbers can't be told, and why. */
#include "node/podprocesses.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "sys/durable.h"
#include "sys/net.h"

#include <sys/stat.h>
#include <unistd.h>

#define INFORMATION                                                                                \
	"Model: NVIDIA H100\nGPU UUID: GPU-00000000-0000-4000-8000-000000000001\nDevice Minor: "   \
	"3\n"

struct asked {
	struct loop *loop;
	struct podprocesses_answer answer;
	bool answered;
};

static void on_answer(void *arg, struct podprocesses_answer *answer)
{
	struct asked *asked = arg;

	asked->answer = *answer;
	*answer = (struct podprocesses_answer){0};
	asked->answered = true;
	loop_stop(asked->loop);
}

static void on_accept(void *arg UNUSED, struct net_conn *conn)
{
	net_close(conn);
}

/* One question about a GPU of which the inventory doesn't know the number. */
static struct podprocesses_answer ask(void **state, bool simulated)
{
	CLEANUP(free) char *proc = mem_strdup(folder_path(state, "proc"));
	CLEANUP(free) char *dev = mem_strdup(folder_path(state, "dev"));
	CLEANUP(free) char *socket = mem_strdup(folder_path(state, "kubelet.sock"));
	const struct inventory inventory = {.simulated = simulated};
	struct podprocesses_gpus gpus = {0};
	struct podprocesses_pods pods = {0};
	struct asked asked = {.loop = loop_create()};
	struct net_listener *kubelet;
	struct podprocesses *processes;
	struct atom_uuid uuid;
	struct error error;

	assert_true(atom_uuid_parse("00000000-0000-4000-8000-000000000001", &uuid));
	expect_ok(net_listen_unix(asked.loop, socket, 0600, on_accept, NULL, &kubelet, &error),
		  &error);
	processes =
		podprocesses_create(asked.loop, &(struct podprocesses_options){.proc = proc,
									       .dev = dev,
									       .kubelet = socket,
									       .fn = on_answer,
									       .arg = &asked});
	podprocesses_gpus_add(&gpus, uuid);
	podprocesses_ask(processes, &gpus, &pods, &inventory);
	loop_run(asked.loop);
	assert_true(asked.answered);
	assert_int_equal(asked.answer.gpus.count, 1);
	podprocesses_destroy(processes);
	net_listener_destroy(kubelet);
	loop_destroy(asked.loop);
	vec_deinit(&gpus);
	return asked.answer;
}

static void expect(void **state, bool simulated, enum podprocesses_node node, const char *said)
{
	struct podprocesses_answer answer = ask(state, simulated);

	assert_int_equal(answer.gpus.items[0].node, node);
	if (said)
		assert_non_null(strstr(answer.error.what, said));
	else
		assert_string_equal(answer.error.what, "");
	podprocesses_answer_deinit(&answer);
}

static void put(void **state, const char *name, const char *text)
{
	struct error error;

	expect_ok(durable_replace(folder_path(state, name), text, strlen(text), 0600, &error),
		  &error);
}

/* A loop of links can't be listed or read, whoever asks.  proves: REL-14 GW-28 */
static void test_why_a_number_is_not_known(void **state)
{
	struct error error;

	expect_ok(durable_make_folder(folder_path(state, "proc/driver/nvidia"), 0700, &error),
		  &error);
	expect(state, false, PODPROCESSES_UNKNOWN, NULL); /* no driver is loaded */
	assert_int_equal(symlink("gpus", folder_path(state, "proc/driver/nvidia/gpus")), 0);
	expect(state, false, PODPROCESSES_UNKNOWN, "proc/driver/nvidia/gpus'");
	expect(state, true, PODPROCESSES_NONE, NULL);
	assert_int_equal(unlink(folder_path(state, "proc/driver/nvidia/gpus")), 0);

	expect_ok(durable_make_folder(folder_path(state, "proc/driver/nvidia/gpus/0000:01:00.0"),
				      0700, &error),
		  &error);
	expect(state, false, PODPROCESSES_UNKNOWN, NULL); /* a GPU that goes */
	assert_int_equal(
		symlink("information", folder_path(state, "proc/driver/nvidia/gpus/0000:01:00.0/"
							  "information")),
		0);
	expect(state, false, PODPROCESSES_UNKNOWN, "0000:01:00.0/information'");
	assert_int_equal(
		unlink(folder_path(state, "proc/driver/nvidia/gpus/0000:01:00.0/information")), 0);
	put(state, "proc/driver/nvidia/gpus/0000:01:00.0/information", INFORMATION);
	expect_ok(durable_make_folder(folder_path(state, "proc/self"), 0700, &error), &error);
	put(state, "proc/self/cgroup", "0::/\n");
	expect(state, false, PODPROCESSES_LOOKED, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_FOLDER(test_why_a_number_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
