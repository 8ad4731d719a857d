#include "scene.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS   5     /* how often one that hangs sees whether it still does */
#define TRACER_MS 60000 /* no test takes longer */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static json_t *root;
static struct stat seen;
static bool ready;
static long long generation; /* of the driver that nvmlInit() found */

static const struct {
	const char *name;
	unsigned status;
} statuses[] = {
	{"SUCCESS", NVML_SUCCESS},
	{"UNINITIALIZED", NVML_ERROR_UNINITIALIZED},
	{"INVALID_ARGUMENT", NVML_ERROR_INVALID_ARGUMENT},
	{"NOT_SUPPORTED", NVML_ERROR_NOT_SUPPORTED},
	{"NO_PERMISSION", NVML_ERROR_NO_PERMISSION},
	{"NOT_FOUND", NVML_ERROR_NOT_FOUND},
	{"DRIVER_NOT_LOADED", NVML_ERROR_DRIVER_NOT_LOADED},
	{"TIMEOUT", NVML_ERROR_TIMEOUT},
	{"IRQ_ISSUE", NVML_ERROR_IRQ_ISSUE},
	{"FUNCTION_NOT_FOUND", NVML_ERROR_FUNCTION_NOT_FOUND},
	{"CORRUPTED_INFOROM", NVML_ERROR_CORRUPTED_INFOROM},
	{"GPU_IS_LOST", NVML_ERROR_GPU_IS_LOST},
	{"RESET_REQUIRED", NVML_ERROR_RESET_REQUIRED},
	{"OPERATING_SYSTEM", NVML_ERROR_OPERATING_SYSTEM},
	{"LIB_RM_VERSION_MISMATCH", NVML_ERROR_LIB_RM_VERSION_MISMATCH},
	{"IN_USE", NVML_ERROR_IN_USE},
	{"MEMORY", NVML_ERROR_MEMORY},
	{"NO_DATA", NVML_ERROR_NO_DATA},
	{"INSUFFICIENT_RESOURCES", NVML_ERROR_INSUFFICIENT_RESOURCES},
	{"NOT_READY", NVML_ERROR_NOT_READY},
	{"GPU_NOT_FOUND", NVML_ERROR_GPU_NOT_FOUND},
	{"UNKNOWN", NVML_ERROR_UNKNOWN},
};

unsigned scene_status(const char *name)
{
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
		if (strcmp(statuses[i].name, name) == 0)
			return statuses[i].status;
	return NVML_ERROR_UNKNOWN;
}

static void sleep_ms(long long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/* --- the file --- */

/* Reads it again if it is another file than before. */
static void look(void)
{
	const char *path = getenv("FAKE_DRIVER");
	struct stat now;

	if (!path || stat(path, &now) < 0) {
		json_decref(root);
		root = NULL;
		memset(&seen, 0, sizeof seen);
		return;
	}
	if (root && now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
	    now.st_mtim.tv_sec == seen.st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == seen.st_mtim.tv_nsec)
		return;
	json_decref(root);
	root = json_load_file(path, 0, NULL);
	seen = now;
}

json_t *scene_root(void)
{
	return root;
}

static bool hangs(const char *function)
{
	const json_t *list = json_object_get(root, "hang");

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(json_string_value(json_array_get(list, i)), function) == 0)
			return true;
	return false;
}

/* --- hanging --- */

/*
 * A process that is traced and asked to stop before it ends does so even after SIGKILL: it looks to
 * everybody as one that is stuck in the kernel. This is its tracer, which lets go when the scene
 * hangs no more, or is no more.
 */
static void trace(pid_t process, int ready_to_go, const char *function)
{
	char go;

	/* A group of its own: it isn't killed with the process. */
	if (setpgid(0, 0) < 0 || read(ready_to_go, &go, 1) != 1 ||
	    ptrace(PTRACE_SEIZE, process, NULL, (void *)PTRACE_O_TRACEEXIT) < 0)
		_exit(1);
	close_range(0, ~0u, 0); /* its socket would stay open with us */
	for (int passed = 0; passed < TRACER_MS; passed += LOOK_MS) {
		look();
		if (!hangs(function))
			break;
		sleep_ms(LOOK_MS);
	}
	_exit(0);
}

static void make_unkillable(const char *function)
{
	static bool done;
	pid_t process = getpid(), tracer;
	int pipes[2];

	if (done || pipe(pipes) < 0)
		return;
	done = true;
	tracer = fork();
	if (tracer == 0)
		trace(process, pipes[0], function);
	prctl(PR_SET_PTRACER, tracer, 0, 0, 0);
	(void)!write(pipes[1], "", 1);
	close(pipes[0]);
	close(pipes[1]);
}

static void hang(const char *function)
{
	if (hangs(function) && json_is_true(json_object_get(root, "unkillable")))
		make_unkillable(function);
	while (hangs(function)) {
		pthread_mutex_unlock(&lock);
		sleep_ms(LOOK_MS);
		pthread_mutex_lock(&lock);
		look();
	}
}

/* --- calls --- */

static void enter(const char *function)
{
	long long slow;

	pthread_mutex_lock(&lock);
	look();
	hang(function);
	slow = scene_number_or(json_object_get(root, "slow_ms"), function, 0);
	if (slow == 0)
		return;
	pthread_mutex_unlock(&lock);
	sleep_ms(slow);
	pthread_mutex_lock(&lock);
	look();
}

unsigned scene_begin(const char *function)
{
	unsigned status = NVML_SUCCESS;

	enter(function);
	if (!root)
		status = NVML_ERROR_DRIVER_NOT_LOADED;
	else if (!ready || scene_number_or(root, "generation", 0) != generation)
		status = NVML_ERROR_UNINITIALIZED;
	if (status != NVML_SUCCESS)
		pthread_mutex_unlock(&lock);
	return status;
}

void scene_end(void)
{
	pthread_mutex_unlock(&lock);
}

unsigned scene_init(const char *function)
{
	const char *init;
	unsigned status = NVML_ERROR_DRIVER_NOT_LOADED;

	enter(function);
	if (root) {
		init = json_string_value(json_object_get(root, "init"));
		status = init ? scene_status(init) : NVML_SUCCESS;
	}
	if (status == NVML_SUCCESS) {
		ready = true;
		generation = scene_number_or(root, "generation", 0);
	}
	pthread_mutex_unlock(&lock);
	return status;
}

/* --- values --- */

unsigned scene_number(const json_t *object, const char *name, long long *ret_number)
{
	const json_t *value = json_object_get(object, name);

	if (json_is_string(value))
		return scene_status(json_string_value(value));
	if (!json_is_integer(value))
		return NVML_ERROR_NOT_SUPPORTED;
	*ret_number = json_integer_value(value);
	return NVML_SUCCESS;
}

long long scene_number_or(const json_t *object, const char *name, long long otherwise)
{
	long long number = otherwise;

	(void)!scene_number(object, name, &number);
	return number;
}

unsigned scene_text(const json_t *object, const char *name, const char **ret_text)
{
	const char *text = json_string_value(json_object_get(object, name));

	if (!text)
		return NVML_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
		if (strcmp(statuses[i].name, text) == 0)
			return statuses[i].status;
	*ret_text = text;
	return NVML_SUCCESS;
}

bool scene_same_pci(const char *a, const char *b)
{
	unsigned one[3], other[3];

	return sscanf(a, "%x:%x:%x", &one[0], &one[1], &one[2]) == 3 &&
	       sscanf(b, "%x:%x:%x", &other[0], &other[1], &other[2]) == 3 &&
	       memcmp(one, other, sizeof one) == 0;
}
