#include "kube/events.h"

#include "sys/clock.h"
#include "sys/random.h"

#define COMPONENT "bcd"

struct telling {
	struct kube_events *events;
	struct kube_call *call;
	char name[KUBE_EVENT_NAME_SIZE];
	struct telling *next;
};

struct kube_events {
	struct kube_client *kube;
	struct loop *loop;
	char *node;
	struct kube_event_memory *memory;
	struct telling *tellings;
};

struct kube_events *kube_events_create(struct kube_client *kube, struct loop *loop,
				       const char *node)
{
	struct kube_events *events = mem_alloc(sizeof *events);

	events->kube = kube;
	events->loop = loop;
	events->node = mem_strdup(node);
	events->memory = kube_event_memory_create();
	return events;
}

void kube_events_destroy(struct kube_events *events)
{
	if (!events)
		return;
	while (events->tellings) {
		struct telling *telling = events->tellings;

		events->tellings = telling->next;
		kube_call_cancel(telling->call);
		free(telling);
	}
	kube_event_memory_destroy(events->memory);
	free(events->node);
	free(events);
}

static void on_told(void *arg, struct kube_answer *answer)
{
	struct telling *telling = arg, **at = &telling->events->tellings;
	struct kube_events *events = telling->events;

	if (answer->reason != KUBE_DONE)
		kube_event_forget(events->memory, telling->name);
	while (*at != telling)
		at = &(*at)->next;
	*at = telling->next;
	free(telling);
}

void kube_events_tell(struct kube_events *events, const struct kube_event *event)
{
	const struct kube_reporter reporter = {COMPONENT, events->node};
	struct kube_event_plan plan = kube_event_note(events->memory, event, loop_now(events->loop),
						      random_below(UINT64_MAX));
	struct kube_request request;
	struct telling *telling;

	switch (plan.step) {
	case KUBE_EVENT_QUIET:
		return;
	case KUBE_EVENT_MAKE:
		request = kube_event_create(&plan, event, &reporter, clock_wall());
		break;
	case KUBE_EVENT_COUNT:
		request = kube_event_count(&plan, clock_wall());
		break;
	}
	telling = mem_alloc(sizeof *telling);
	*telling = (struct telling){.events = events, .next = events->tellings};
	memcpy(telling->name, plan.name, sizeof telling->name);
	events->tellings = telling;
	telling->call =
		kube_send(events->kube, &request,
			  (struct kube_call_options){.priority = KUBE_LATER}, on_told, telling);
}
