#include "sim/sim.h"

#include "base/hash.h"
#include "sim/sim_fs.h"
#include "sim/sim_loop.h"
#include "sim/sim_rpc.h"

#include <stdarg.h>
#include <stdio.h>

struct sim sim;

/* --- randomness: xoshiro256** from a splitmix64 seed --- */

static uint64_t rotate(uint64_t value, int by)
{
	return value << by | value >> (64 - by);
}

static uint64_t random_next(void)
{
	uint64_t *s = sim.random, result = rotate(s[1] * 5, 7) * 9, shifted = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = rotate(s[3], 45);
	return result;
}

static void random_seed(uint64_t seed)
{
	for (size_t i = 0; i < ARRAY_SIZE(sim.random); i++) {
		uint64_t z = seed += 0x9e3779b97f4a7c15;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
		z = (z ^ z >> 27) * 0x94d049bb133111eb;
		sim.random[i] = z ^ z >> 31;
	}
}

uint64_t sim_below(uint64_t bound)
{
	assert(bound > 0);
	return random_next() % bound;
}

bool sim_chance(uint64_t one_in)
{
	return !sim.calm && sim_below(one_in) == 0;
}

int64_t sim_delay(int64_t usual_ms)
{
	int64_t delay = (int64_t)sim_below((uint64_t)usual_ms + 1);
	return sim_chance(50) ? delay * 100 : delay;
}

/* --- telling --- */

static void trace_hash(const char *text)
{
	sim.trace = hash_add(sim.trace, text, strlen(text));
}

void sim_trace(const char *format, ...)
{
	char line[1024];
	va_list args;
	int length = snprintf(line, sizeof line, "%6d.%03d %-8s ", (int)(sim.now_ms / 1000),
			      (int)(sim.now_ms % 1000), sim.current ? sim.current->name : "world");
	va_start(args, format);
	vsnprintf(line + length, sizeof line - (size_t)length, format, args);
	va_end(args);
	trace_hash(line);
	if (sim.verbose)
		puts(line);
}

void sim_broken(const char *format, ...)
{
	char text[sizeof sim.broken];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	sim_trace("BROKEN %s", text);
	if (sim.broken[0] == '\0')
		str_copy(sim.broken, sizeof sim.broken, text);
}

/* --- the queue --- */

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->order < b->order;
}

static void heap_swap(size_t a, size_t b)
{
	struct sim_event *event = sim.events[a];
	sim.events[a] = sim.events[b];
	sim.events[b] = event;
}

static void heap_push(struct sim_event *event)
{
	if (sim.count == sim.capacity) {
		sim.capacity = sim.capacity ? sim.capacity * 2 : 256;
		sim.events = mem_resize(sim.events, sim.capacity, sizeof *sim.events);
	}
	size_t i = sim.count++;
	sim.events[i] = event;
	for (; i > 0 && event_before(sim.events[i], sim.events[(i - 1) / 2]); i = (i - 1) / 2)
		heap_swap(i, (i - 1) / 2);
}

static struct sim_event *heap_pop(void)
{
	if (sim.count == 0)
		return NULL;
	struct sim_event *first = sim.events[0];
	sim.events[0] = sim.events[--sim.count];
	for (size_t i = 0;;) {
		size_t least = i;
		for (size_t child = 2 * i + 1; child <= 2 * i + 2; child++)
			if (child < sim.count && event_before(sim.events[child], sim.events[least]))
				least = child;
		if (least == i)
			return first;
		heap_swap(i, least);
		i = least;
	}
}

struct sim_event *sim_schedule(struct sim_process *process, int64_t delay_ms, sim_fn *fn, void *arg)
{
	struct sim_event *event = mem_alloc(sizeof *event);
	*event = (struct sim_event){
		.at_ms = sim.now_ms + (delay_ms > 0 ? delay_ms : 0),
		.order = ++sim.order,
		.process = process,
		.life = process ? process->life : 0,
		.fn = fn,
		.arg = arg,
	};
	heap_push(event);
	return event;
}

void sim_cancel(struct sim_event *event)
{
	if (event)
		event->fn = NULL;
}

/* Runs code of `process`, then what it deferred, then buries it if it died of it. */
static void run_as(struct sim_process *process, sim_fn *fn, void *arg)
{
	struct sim_process *before = sim.current;
	sim.current = process;
	fn(arg);
	if (process && process->loop)
		sim_loop_run_deferred(process->loop);
	sim.current = before;
	if (process && process->dying != SIM_ALIVE) {
		enum sim_death death = process->dying;
		if (death == SIM_POWER_CUT)
			sim_machine_cut(process->machine);
		else
			sim_process_kill(process, death);
	}
}

/* Its process is frozen: it comes when that is over, in the order in which it would have come. */
static bool must_wait(const struct sim_event *event)
{
	int64_t until_ms = event->process ? event->process->frozen_until_ms : 0;
	return event->at_ms < until_ms || (event->at_ms == until_ms && !event->thawed);
}

static void put_off(struct sim_event *event)
{
	event->at_ms = event->process->frozen_until_ms;
	event->order = ++sim.order;
	event->thawed = true;
	heap_push(event);
}

bool sim_step(void)
{
	for (;;) {
		CLEANUP(free) struct sim_event *event = heap_pop();
		if (!event)
			return false;
		struct sim_process *process = event->process;
		if (!event->fn || (process && (!process->running || process->life != event->life)))
			continue;
		if (must_wait(event)) {
			put_off(TAKE(event));
			continue;
		}
		sim.now_ms = event->at_ms;
		sim.last = process;
		run_as(process, event->fn, event->arg);
		return true;
	}
}

/* --- processes --- */

void sim_process_add(struct sim_process *process)
{
	*vec_push(&sim.processes) = process;
}

static void start_now(void *arg)
{
	struct sim_process *process = arg;
	process->start(process);
}

void sim_process_start(struct sim_process *process)
{
	assert(!process->running);
	process->running = true;
	process->dying = SIM_ALIVE;
	process->life++;
	process->frozen_until_ms = 0;
	sim_trace("start %s", process->name);
	run_as(process, start_now, process);
}

/* What workers still do comes to its end, without effect, so that its memory is freed. */
static void work_finish(struct sim_process *process)
{
	for (size_t i = 0; i < sim.count; i++) {
		struct sim_event *event = sim.events[i];
		if (event->process != process || event->life != process->life || !event->is_work ||
		    !event->fn)
			continue;
		sim_fn *fn = TAKE(event->fn);
		fn(event->arg);
		i = (size_t)-1; /* it may have added events anywhere */
	}
}

void sim_process_kill(struct sim_process *process, enum sim_death death)
{
	if (!process->running)
		return;
	struct sim_process *before = sim.current;
	sim_trace("%s %s", death == SIM_KILLED ? "kill" : "power cut of", process->name);
	sim.deaths++;
	process->dying = death;
	sim_rpc_process_died(process, death);
	sim_fs_process_died(process);
	sim.current = process;
	work_finish(process);
	process->destroy(process);
	work_finish(process);
	if (process->loop)
		loop_destroy(TAKE(process->loop));
	sim.current = before;
	process->running = false;
	process->dying = SIM_ALIVE;
	process->died(process, death);
}

void sim_machine_cut(struct sim_machine *machine)
{
	sim_trace("power cut of machine %s", machine->name);
	for (size_t i = 0; i < sim.processes.count; i++)
		if (sim.processes.items[i]->machine == machine && sim.processes.items[i]->running)
			sim_process_kill(sim.processes.items[i], SIM_POWER_CUT);
		else if (sim.processes.items[i]->machine == machine) /* what it had said before */
			sim_rpc_process_died(sim.processes.items[i], SIM_POWER_CUT);
	if (machine->has_disk)
		sim_fs_power_cut();
	machine->boot++;
	machine->booted_ms = sim.now_ms;
}

void sim_process_freeze(struct sim_process *process, int64_t for_ms)
{
	if (!process->running)
		return;
	sim_trace("%s is frozen for %lld ms", process->name, (long long)for_ms);
	process->frozen_until_ms = sim.now_ms + for_ms;
	sim_rpc_process_frozen(process, for_ms);
}

bool sim_effective(void)
{
	return !sim.current || sim.current->dying == SIM_ALIVE;
}

bool sim_crash_point(const char *what, const char *path)
{
	if (!sim.current)
		return false;
	if (!sim_effective())
		return true;
	sim.crash_points++;
	sim_trace("crash point %llu: %s %s", (unsigned long long)sim.crash_points, what, path);
	bool planned = sim.crash_at == sim.crash_points;
	if (!planned && !(sim.crash_one_in && sim_chance(sim.crash_one_in)))
		return false;
	enum sim_death kind = planned ? sim.crash_kind : SIM_ALIVE;
	sim.current->dying = kind != SIM_ALIVE ? kind : sim_below(2) ? SIM_KILLED : SIM_POWER_CUT;
	return true;
}

/* --- life --- */

void sim_seed(uint64_t seed)
{
	sim.trace = HASH_START;
	random_seed(seed);
}

void sim_begin(void)
{
	sim = (struct sim){.now_ms = 1000, .calm = true};
	sim_seed(0);
	sim_fs_begin();
	sim_rpc_begin();
}

void sim_end(void)
{
	sim.calm = true;
	for (size_t i = 0; i < sim.processes.count; i++)
		sim_process_kill(sim.processes.items[i], SIM_KILLED);
	for (size_t i = 0; i < sim.count; i++)
		free(sim.events[i]);
	free(sim.events);
	vec_deinit(&sim.processes);
	sim_rpc_end();
	sim_fs_end();
}
