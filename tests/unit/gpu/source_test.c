#include "gpu/belief.h"
#include "gpu/source.h"
#include "lib/folder.h"
#include "lib/test.h"

#include <fcntl.h>
#include <sys/stat.h>

/*
 * The real source, whole: bcd's child or nvidia-smi against tests/fakedriver, a kernel log that is a
 * file, a sysfs of folders. Each case runs through NVML and through nvidia-smi.
 */

#define GPUS        4
#define DEADLINE_MS 700                      /* of a driver that hangs */
#define BEFORE_MS   (SOURCE_PASS_MS * 3 / 5) /* what comes sooner didn't wait for the next pass */

static const char *bcd; /* its program */

struct world {
	void *folder;
	char *log;
	struct loop *loop;
	struct loop_timer *poll;
	struct source *source;
	struct source_options options;
	int sequence; /* of the kernel's log */
	bool (*until)(struct world *world);
	struct mono since;
	int64_t waited_ms, told;
	const char *causes[GPUS]; /* waited for; NULL: not known */
};

static const char *path_of(struct world *world, const char *name)
{
	return folder_path(&world->folder, name);
}

static void write_text(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* --- the machine --- */

/* `whole` and `gpus[n]` are further members of the scene, "" for none; a GPU that is NULL isn't listed.
 */
static void set_scene(struct world *world, const char *whole, const char *const gpus[GPUS])
{
	CLEANUP(buf) struct buf text = {0};
	char path[512];
	bool first = true;

	buf_printf(&text, "{\"driver\": \"570.124.06\", \"cuda\": \"12.8\"%s, \"gpus\": [", whole);
	for (int n = 0; n < GPUS; n++) {
		if (!gpus[n])
			continue;
		buf_printf(&text,
			   "%s{\"uuid\": \"GPU-5a1c0de0-0000-4000-8000-00000000000%d\", \"pci\": "
			   "\"00000000:1%d:00.0\", \"minor\": %d, \"name\": \"NVIDIA H100\", "
			   "\"memory_total_bytes\": 85520809984, \"recovery\": 0%s}",
			   first ? "" : ", ", n, n, n, gpus[n]);
		first = false;
	}
	buf_add_text(&text, "]}");
	str_copy(path, sizeof path, path_of(world, "scene.json"));
	write_text(path_of(world, "scene.new"), O_TRUNC, buf_text(&text));
	assert_int_equal(rename(path_of(world, "scene.new"), path), 0);
}

static const char *const four[GPUS] = {"", "", "", ""};

static void log_line(struct world *world, const char *text)
{
	char line[256];

	snprintf(line, sizeof line, "4,%d,0,-;%s\n", ++world->sequence, text);
	write_text(path_of(world, "kmsg"), O_APPEND, line);
}

/* A program's XID: no fault, but the driver is asked at once. */
static void nudge(struct world *world)
{
	log_line(world, "NVRM: Xid (PCI:0000:99:00): 13, pid=1");
}

static void make_sysfs(struct world *world)
{
	char path[512];

	mkdir(path_of(world, "sys"), 0700);
	mkdir(path_of(world, "sys/module"), 0700);
	mkdir(path_of(world, "sys/module/nvidia"), 0700);
	mkdir(path_of(world, "sys/bus"), 0700);
	mkdir(path_of(world, "sys/bus/pci"), 0700);
	mkdir(path_of(world, "sys/bus/pci/devices"), 0700);
	for (int n = 0; n < GPUS; n++) {
		char name[64];

		snprintf(name, sizeof name, "sys/bus/pci/devices/0000:1%d:00.0", n);
		mkdir(path_of(world, name), 0700);
		snprintf(path, sizeof path, "%s/numa_node", path_of(world, name));
		write_text(path, 0, n == 3 ? "-1\n" : n == 2 ? "1\n" : "0\n");
	}
}

/* --- bcd --- */

static void on_change(void *arg)
{
	loop_timer_start(((struct world *)arg)->poll, 0);
}

static void fail_with_causes(struct world *world)
{
	const struct inventory *inventory = source_inventory(world->source);
	CLEANUP(buf) struct buf text = {0};

	vec_each (&inventory->gpus, const struct inventory_gpu *gpu)
		buf_printf(&text, " %s '%s'", gpu->pci, gpu->health.cause);
	fail_msg("it took too long; the GPUs are%s", buf_text(&text));
}

/* As a node's turns do: on a change, and now and then. */
static void on_poll(void *arg)
{
	struct world *world = arg;

	source_look(world->source);
	world->waited_ms = mono_until(world->since, loop_now(world->loop));
	if (world->waited_ms > TEST_PATIENCE_MS)
		fail_with_causes(world);
	if (world->until(world)) {
		loop_stop(world->loop);
		return;
	}
	loop_timer_start(world->poll, 20);
}

static bool as_wanted(struct world *world)
{
	const struct inventory *inventory = source_inventory(world->source);
	size_t known = 0;

	if (!source_settled(world->source))
		return false;
	for (int n = 0; n < GPUS; n++) {
		struct atom_uuid uuid = {{0x5a, 0x1c, 0x0d, 0xe0, 0, 0, 0x40, 0, 0x80}};
		const struct inventory_gpu *gpu;

		uuid.bytes[15] = (uint8_t)n;
		gpu = inventory_find_gpu(inventory, uuid);
		known += gpu != NULL;
		if (!gpu != !world->causes[n])
			return false;
		/* a cause is waited for by its beginning; a healthy GPU has none */
		if (gpu && (*world->causes[n] ? !str_starts(gpu->health.cause, world->causes[n])
					      : !gpu->health.healthy))
			return false;
	}
	return inventory->gpus.count == known;
}

static void wait_until(struct world *world, bool (*until)(struct world *world))
{
	world->since = loop_now(world->loop);
	world->until = until;
	loop_timer_start(world->poll, 0);
	loop_run(world->loop);
}

static void wait_for(struct world *world, const char *a, const char *b, const char *c,
		     const char *d)
{
	world->causes[0] = a;
	world->causes[1] = b;
	world->causes[2] = c;
	world->causes[3] = d;
	wait_until(world, as_wanted);
}

static void start(struct world *world)
{
	world->source = source_create(world->loop, &world->options, on_change, world);
}

static void stop(struct world *world)
{
	loop_timer_stop(world->poll);
	source_destroy(world->source);
	world->source = NULL;
}

static int set_up(void **state, enum source_kind kind)
{
	struct world *world = mem_alloc(sizeof *world);

	assert_int_equal(folder_make(&world->folder), 0);
	setenv("FAKE_DRIVER", path_of(world, "scene.json"), 1);
	world->loop = loop_create();
	world->poll = loop_timer_create(world->loop, on_poll, world);
	world->log = mem_strdup(path_of(world, "kmsg"));
	world->options = (struct source_options){
		.kind = kind,
		.data = mem_strdup(path_of(world, "data")),
		.root = "/",
		.sys = mem_strdup(path_of(world, "sys")),
		.kernel_log = world->log,
		.program = bcd,
		.nvml_library = FAKE_NVML,
		.nvidia_smi = FAKE_SMI,
		.deadline_ms = DEADLINE_MS,
	};
	mkdir(world->options.data, 0700);
	make_sysfs(world);
	write_text(world->options.kernel_log, O_TRUNC, "");
	set_scene(world, "", four);
	start(world);
	*state = world;
	return 0;
}

static int set_up_nvml(void **state)
{
	return set_up(state, SOURCE_NVML);
}

static int set_up_smi(void **state)
{
	return set_up(state, SOURCE_NVIDIA_SMI);
}

static int tear_down(void **state)
{
	struct world *world = *state;

	stop(world);
	loop_timer_destroy(world->poll);
	loop_run(world->loop);
	loop_destroy(world->loop);
	free((char *)world->options.data);
	free((char *)world->options.sys);
	free(world->log);
	folder_remove(&world->folder);
	free(world);
	return 0;
}

/* --- the cases --- */

/* N06 at the source. proves: DP-9 GW-19 */
static void test_what_the_machine_has(void **state)
{
	static const char *const cut[GPUS] = {
		"", "",
		", \"mig_mode\": 1, \"mig\": [{\"uuid\": "
		"\"MIG-00000000-0000-4000-8000-000000000001\", \"gi\": 9, \"ci\": 0, \"profile\": "
		"\"1g.10gb\", \"start\": 5, \"size\": 1, \"memory_bytes\": 10468982784}]",
		""};
	struct world *world = *state;
	const struct inventory *inventory;

	assert_false(source_settled(world->source));
	assert_int_equal(source_inventory(world->source)->gpus.count, 0);
	wait_for(world, "", "", "", "");
	inventory = source_inventory(world->source);
	assert_false(inventory->simulated);
	assert_string_equal(inventory->driver, "570.124.06");
	assert_string_equal(inventory->gpus.items[2].pci, "0000:12:00.0");
	assert_int_equal(inventory->gpus.items[0].numa, 0);
	assert_int_equal(inventory->gpus.items[2].numa, 1);
	assert_int_equal(inventory->gpus.items[3].numa, INVENTORY_NUMA_UNKNOWN);
	assert_int_equal(source_reading(world->source)->gpus.count, GPUS);
	assert_null(source_error(world->source));
	assert_null(source_log_error(world->source));
	/* it is cut while bcd looks */
	set_scene(world, "", cut);
	nudge(world);
	wait_for(world, "", "", "", "");
	while (source_inventory(world->source)->atoms.items[2].atom.class != ATOM_MIG)
		wait_for(world, "", "", "", "");
	assert_int_equal(source_inventory(world->source)->atoms.items[2].numa, 1);
	assert_int_equal(source_inventory(world->source)->atoms.items[2].range.lo, 640);
}

/* N01 at the source. proves: DP-10 DP-14 */
static void test_one_gpu_of_four(void **state)
{
	static const char *const lost[GPUS] = {"", ", \"handle\": \"GPU_IS_LOST\"", "", ""};
	static const char *const gone[GPUS] = {"", NULL, "", ""};
	static const char *const sick[GPUS] = {"", "", ", \"calls\": \"RESET_REQUIRED\"", ""};
	struct world *world = *state;

	wait_for(world, "", "", "", "");
	set_scene(world, "", lost);
	nudge(world);
	wait_for(world, "", "lost", "", "");
	set_scene(world, "", gone);
	nudge(world);
	wait_for(world, "", "lost", "", "");
	set_scene(world, "", four);
	nudge(world);
	wait_for(world, "", "", "", "");
	set_scene(world, "", sick);
	nudge(world);
	wait_for(world, "", "", "requires a reset", "");
}

/* N02. proves: DP-10 DP-14 */
static void test_a_driver_that_does_not_work(void **state)
{
	static const struct {
		const char *bad, *good;
	} rows[] = {
		{", \"init\": \"LIB_RM_VERSION_MISMATCH\", \"generation\": 1",
		 ", \"generation\": 2"},
		{", \"init\": \"UNKNOWN\", \"generation\": 3", ", \"generation\": 4"},
		{", \"hang\": [\"nvmlDeviceGetUUID\"], \"generation\": 4", ", \"generation\": 4"},
	};
	struct world *world = *state;

	wait_for(world, "", "", "", "");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		set_scene(world, rows[i].bad, four);
		nudge(world);
		wait_for(world, "unknown: ", "unknown: ", "unknown: ", "unknown: ");
		assert_non_null(source_error(world->source));
		set_scene(world, rows[i].good, four);
		nudge(world);
		wait_for(world, "", "", "", "");
		assert_null(source_error(world->source));
	}
}

/* N03, N04. proves: DP-11 DP-52 */
static void test_xids_of_the_kernel_log(void **state)
{
	struct world *world = *state;

	wait_for(world, "", "", "", "");
	log_line(world, "NVRM: Xid (PCI:0000:10:00): 13, pid='<unknown>', name=<unknown>");
	log_line(world, "NVRM: Xid (PCI:0000:13:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 17");
	log_line(world, "NVRM: Xid (PCI:0000:11:00): 79");
	wait_for(world, "", "XID 79: fell off the bus", "", "");
	assert_true(world->waited_ms < BEFORE_MS);
	log_line(world, "nvidia 0000:11:00.0: reset done");
	wait_for(world, "", "", "", "");
	assert_true(world->waited_ms < BEFORE_MS);
}

/* Sick stays sick while bcd is away, until a source says otherwise. proves: DP-52 */
static void test_over_a_restart(void **state)
{
	struct world *world = *state;

	wait_for(world, "", "", "", "");
	log_line(world, "NVRM: Xid (PCI:0000:11:00): 79");
	wait_for(world, "", "XID 79: fell off the bus", "", "");
	stop(world);
	loop_run(world->loop);
	log_line(world, "NVRM: Xid (PCI:0000:12:00): 48");
	start(world);
	wait_for(world, "", "XID 79: fell off the bus", "XID 48: double bit ECC error", "");
	stop(world);
	loop_run(world->loop);
	log_line(world, "nvidia 0000:11:00.0: reset done");
	start(world);
	wait_for(world, "", "", "XID 48: double bit ECC error", "");
	/* the driver is loaded again */
	assert_int_equal(rename(path_of(world, "sys/module/nvidia"), path_of(world, "old")), 0);
	mkdir(path_of(world, "sys/module/nvidia"), 0700);
	wait_for(world, "", "", "", "");
	/* what ended stays ended: the log is read on, not anew */
	source_look(world->source);
	stop(world);
	loop_run(world->loop);
	start(world);
	wait_for(world, "", "", "", "");
}

/* Fail closed. proves: DP-52 */
static void test_a_record_that_can_not_be_read(void **state)
{
	struct world *world = *state;

	wait_for(world, "", "", "", "");
	source_look(world->source);
	stop(world);
	loop_run(world->loop);
	write_text(path_of(world, "data/" BELIEF_FILE), O_TRUNC, "{\"version\": 1");
	for (int i = 0; i < 2; i++) { /* over a restart too */
		const char *doubt = "unknown: health.json";

		start(world);
		wait_for(world, doubt, doubt, doubt, doubt);
		assert_string_equal(source_marker(world->source),
				    path_of(world, "data/" BELIEF_MARKER));
		assert_int_equal(access(source_marker(world->source), F_OK), 0);
		if (i == 0) {
			stop(world);
			loop_run(world->loop);
		}
	}
	assert_int_equal(unlink(path_of(world, "data/" BELIEF_MARKER)), 0);
	wait_for(world, "", "", "", "");
	assert_null(source_marker(world->source));
}

static bool is_settled(struct world *world)
{
	return source_settled(world->source);
}

static void test_no_driver_at_all(void **state)
{
	struct world *world = *state;

	stop(world);
	world->options.kind = SOURCE_AUTO;
	world->options.nvml_library = path_of(world, "libnvidia-ml.so.1");
	world->options.nvidia_smi = path_of(world, "nvidia-smi");
	start(world);
	wait_until(world, is_settled);
	assert_int_equal(source_inventory(world->source)->gpus.count, 0);
	assert_int_equal(source_error(world->source)->code, ERROR_NOT_FOUND);
	assert_non_null(strstr(source_error(world->source)->what, "no NVIDIA driver"));
}

static void test_no_nvml_but_nvidia_smi(void **state)
{
	struct world *world = *state;

	stop(world);
	world->options.kind = SOURCE_AUTO;
	world->options.nvml_library = path_of(world, "libnvidia-ml.so.1");
	start(world);
	wait_for(world, "", "", "", "");
	assert_string_equal(source_name(world->source), "nvidia-smi");
}

static void test_a_log_that_can_not_be_followed(void **state)
{
	struct world *world = *state;

	stop(world);
	assert_int_equal(unlink(world->options.kernel_log), 0);
	start(world);
	wait_for(world, "", "", "", "");
	assert_non_null(strstr(source_log_error(world->source)->what, "kmsg"));
	log_line(world, "NVRM: Xid (PCI:0000:11:00): 79");
	wait_for(world, "", "XID 79: fell off the bus", "", "");
	assert_null(source_log_error(world->source));
}

/* Events are heard from some moment after the first reading on. */
static bool as_wanted_after_events(struct world *world)
{
	if (as_wanted(world))
		return true;
	if (world->waited_ms / 500 == world->told)
		return false;
	world->told = world->waited_ms / 500;
	write_text(path_of(world, "scene.json.events"), O_APPEND,
		   "145 00000000:10:00.0\n48 00000000:12:00.0\n");
	return false;
}

/* An event of NVML's own, where the log says nothing. proves: DP-11 DP-52 */
static void test_xids_of_nvml(void **state)
{
	struct world *world = *state;

	wait_for(world, "", "", "", "");
	world->causes[2] = "XID 48: double bit ECC error";
	wait_until(world, as_wanted_after_events);
	write_text(path_of(world, "scene.json.events"), O_APPEND, "79 00000000:11:00.0\n");
	wait_for(world, "", "XID 79: fell off the bus", "XID 48: double bit ECC error", "");
	assert_true(world->waited_ms < BEFORE_MS);
	/* without the log nothing tells that 145 was harmless */
	stop(world);
	loop_run(world->loop);
	world->options.kernel_log = "";
	start(world);
	wait_for(world, "", "XID 79: fell off the bus", "XID 48: double bit ECC error", "");
	world->causes[0] = "XID 145: NVLink RLW error";
	wait_until(world, as_wanted_after_events);
}

#define CASE(test, set_up) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define BOTH(test)         CASE(test, set_up_nvml), CASE(test, set_up_smi)

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_what_the_machine_has),
		BOTH(test_one_gpu_of_four),
		BOTH(test_a_driver_that_does_not_work),
		BOTH(test_xids_of_the_kernel_log),
		BOTH(test_over_a_restart),
		BOTH(test_a_record_that_can_not_be_read),
		CASE(test_no_driver_at_all, set_up_nvml),
		CASE(test_no_nvml_but_nvidia_smi, set_up_nvml),
		CASE(test_a_log_that_can_not_be_followed, set_up_nvml),
		CASE(test_xids_of_nvml, set_up_nvml),
	};

	assert(count == 2);
	bcd = arguments[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
