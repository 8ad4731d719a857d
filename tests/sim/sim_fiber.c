#include "sim/sim_fiber.h"

#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_SIZE ((size_t)1 << 20)

struct fiber {
	ucontext_t context;
	fiber_fn *fn;
	void *arg;
	bool over;
	struct fiber *next;
	char stack[STACK_SIZE];
};

static struct {
	ucontext_t caller;
	struct fiber *running, *idle;
	const void *caller_stack; /* for the sanitizer */
	size_t caller_size;
} fibers;

/* The sanitizer is told of each change of stacks; `leave` NULL: this one is never returned to. */
static void *leave_for(const void *stack UNUSED, size_t size UNUSED, bool for_good UNUSED)
{
	void *kept = NULL;
#if defined(__SANITIZE_ADDRESS__)
	__sanitizer_start_switch_fiber(for_good ? NULL : &kept, stack, size);
#endif
	return kept;
}

static void arrive(void *kept UNUSED, bool from_caller UNUSED)
{
#if defined(__SANITIZE_ADDRESS__)
	if (from_caller)
		__sanitizer_finish_switch_fiber(kept, &fibers.caller_stack, &fibers.caller_size);
	else
		__sanitizer_finish_switch_fiber(kept, NULL, NULL);
#endif
}

static void run(void)
{
	struct fiber *fiber = fibers.running;

	arrive(NULL, true);
	fiber->fn(fiber->arg);
	fiber->over = true;
	(void)leave_for(fibers.caller_stack, fibers.caller_size, true);
	setcontext(&fibers.caller);
	abort();
}

bool fiber_resume(struct fiber *fiber)
{
	assert(!fibers.running);
	fibers.running = fiber;
	void *kept = leave_for(fiber->stack, sizeof fiber->stack, false);
	swapcontext(&fibers.caller, &fiber->context);
	arrive(kept, false);
	fibers.running = NULL;
	if (!fiber->over)
		return false;
	fiber->next = fibers.idle;
	fibers.idle = fiber;
	return true;
}

static void make_context(ucontext_t *context, char *stack)
{
	getcontext(context);
	context->uc_stack.ss_sp = stack;
	context->uc_stack.ss_size = STACK_SIZE;
	makecontext(context, run, 0);
}

bool fiber_start(fiber_fn *fn, void *arg, struct fiber **ret_fiber)
{
	struct fiber *fiber = fibers.idle;

	if (fiber)
		fibers.idle = fiber->next;
	else
		fiber = mem_alloc(sizeof *fiber);
	fiber->fn = fn;
	fiber->arg = arg;
	fiber->over = false;
	make_context(&fiber->context, fiber->stack);
	*ret_fiber = fiber;
	return fiber_resume(fiber);
}

bool fiber_inside(void)
{
	return fibers.running != NULL;
}

void fiber_stop(void)
{
	struct fiber *fiber = fibers.running;

	void *kept = leave_for(fibers.caller_stack, fibers.caller_size, false);
	swapcontext(&fiber->context, &fibers.caller);
	arrive(kept, true);
}

void fiber_end(void)
{
	while (fibers.idle) {
		struct fiber *fiber = fibers.idle;

		fibers.idle = fiber->next;
		free(fiber);
	}
}
