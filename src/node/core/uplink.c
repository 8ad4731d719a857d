#include "node/core/uplink.h"

#include "base/utf8.h"
#include "proto/message.h"

int64_t uplink_backoff(uint32_t failures, uint32_t jitter)
{
	int64_t wait = UPLINK_BACKOFF_MIN_MS;

	for (uint32_t i = 1; i < failures && wait < UPLINK_BACKOFF_MAX_MS; i++)
		wait *= 2;
	if (wait > UPLINK_BACKOFF_MAX_MS)
		wait = UPLINK_BACKOFF_MAX_MS;
	return wait - (int64_t)(jitter % (uint32_t)(wait / 2 + 1));
}

static bool pack_up(Bettercompute__V1__Up *up, struct buf *out, struct error *error)
{
	return message_pack(&up->base, out, error);
}

/* Text that may have been cut inside a character. */
static char *clean_text(struct arena *arena, const char *text)
{
	CLEANUP(buf) struct buf clean = {0};

	utf8_add_clean(&clean, text);
	return arena_strdup(arena, buf_text(&clean));
}

bool uplink_hello_is_capable(const struct uplink_hello *hello)
{
	return (hello->has_gpus && hello->serves_kubelet) || hello->has_holds;
}

bool uplink_pack_hello(const struct uplink_hello *hello, struct buf *out, struct error *error)
{
	char *capabilities[] = {message_text(UPLINK_CAPABILITY_BINDING),
				message_text(UPLINK_CAPABILITY_LIMITS)};
	Bettercompute__V1__Hello message = BETTERCOMPUTE__V1__HELLO__INIT;
	Bettercompute__V1__Up up = BETTERCOMPUTE__V1__UP__INIT;

	message.boot_id = message_text(hello->boot_id);
	message.version = message_text(BC_VERSION);
	message.capabilities = capabilities;
	if (uplink_hello_is_capable(hello))
		message.n_capabilities = ARRAY_SIZE(capabilities);
	if (hello->spec) {
		message.lineage = message_text(hello->spec->lineage);
		message.spec_generation = hello->spec->generation;
	}
	message.last_sequence = hello->last_sequence;
	message.opened_ms = hello->opened_ms;
	message.hostname = message_text(hello->hostname);
	up.body_case = BETTERCOMPUTE__V1__UP__BODY_HELLO;
	up.hello = &message;
	return pack_up(&up, out, error);
}

bool uplink_pack_heartbeat(int64_t generation, struct buf *out, struct error *error)
{
	Bettercompute__V1__Heartbeat message = BETTERCOMPUTE__V1__HEARTBEAT__INIT;
	Bettercompute__V1__Up up = BETTERCOMPUTE__V1__UP__INIT;

	message.spec_generation = generation;
	up.body_case = BETTERCOMPUTE__V1__UP__BODY_HEARTBEAT;
	up.heartbeat = &message;
	return pack_up(&up, out, error);
}

bool uplink_pack_renew(const struct buf *request_der, struct buf *out, struct error *error)
{
	Bettercompute__V1__Renew message = BETTERCOMPUTE__V1__RENEW__INIT;
	Bettercompute__V1__Up up = BETTERCOMPUTE__V1__UP__INIT;

	message.certificate_request_der.data = request_der->data;
	message.certificate_request_der.len = request_der->length;
	up.body_case = BETTERCOMPUTE__V1__UP__BODY_RENEW;
	up.renew = &message;
	return pack_up(&up, out, error);
}

/* --- reports --- */

static void put_conditions(const struct conditions *conditions, struct arena *arena,
			   Bettercompute__V1__Report *report)
{
	Bettercompute__V1__Conditions *message = arena_alloc(arena, sizeof *message);

	bettercompute__v1__conditions__init(message);
	message->conditions =
		arena_alloc(arena, (conditions->count + 1) * sizeof *message->conditions);
	for (size_t i = 0; i < conditions->count; i++) {
		const struct condition *from = &conditions->items[i];
		Bettercompute__V1__Condition *to = arena_alloc(arena, sizeof *to);

		bettercompute__v1__condition__init(to);
		to->type = message_text(from->type);
		to->reason = message_text(from->reason);
		to->message = clean_text(arena, from->message);
		to->since_ms = from->since.ms;
		message->conditions[message->n_conditions++] = to;
	}
	report->body_case = BETTERCOMPUTE__V1__REPORT__BODY_CONDITIONS;
	report->conditions = message;
}

static void put_bound(const struct report *from, struct arena *arena,
		      Bettercompute__V1__Report *report)
{
	Bettercompute__V1__AllocationBound *message = arena_alloc(arena, sizeof *message);

	bettercompute__v1__allocation_bound__init(message);
	message->allocation = message_text(from->subject);
	message->atoms = arena_alloc(arena, (from->atoms.count + 1) * sizeof *message->atoms);
	for (size_t i = 0; i < from->atoms.count; i++) {
		char atom[ATOM_TEXT_SIZE];

		atom_format(atom, &from->atoms.items[i]);
		message->atoms[message->n_atoms++] = arena_strdup(arena, atom);
	}
	report->body_case = BETTERCOMPUTE__V1__REPORT__BODY_BOUND;
	report->bound = message;
}

static void put_failed(const struct report *from, struct arena *arena,
		       Bettercompute__V1__Report *report)
{
	Bettercompute__V1__AllocationFailed *message = arena_alloc(arena, sizeof *message);

	bettercompute__v1__allocation_failed__init(message);
	message->allocation = message_text(from->subject);
	message->reason = message_text(from->reason);
	message->message = clean_text(arena, from->message);
	report->body_case = BETTERCOMPUTE__V1__REPORT__BODY_FAILED;
	report->failed = message;
}

static void put_released(const struct report *from, struct arena *arena,
			 Bettercompute__V1__Report *report)
{
	Bettercompute__V1__AllocationReleased *message = arena_alloc(arena, sizeof *message);

	bettercompute__v1__allocation_released__init(message);
	message->allocation = message_text(from->subject);
	report->body_case = BETTERCOMPUTE__V1__REPORT__BODY_RELEASED;
	report->released = message;
}

static void put_operation(const struct report *from, struct arena *arena,
			  Bettercompute__V1__Report *report)
{
	Bettercompute__V1__OperationResult *message = arena_alloc(arena, sizeof *message);

	bettercompute__v1__operation_result__init(message);
	message->operation = message_text(from->subject);
	message->ok = from->ok;
	message->reason = message_text(from->reason);
	message->message = clean_text(arena, from->message);
	report->body_case = BETTERCOMPUTE__V1__REPORT__BODY_OPERATION_RESULT;
	report->operation_result = message;
}

bool uplink_pack_report(const struct report *report, const struct uplink_truth *truth,
			struct buf *out, struct error *error)
{
	CLEANUP(arena) struct arena arena = {0};
	Bettercompute__V1__Report message = BETTERCOMPUTE__V1__REPORT__INIT;
	Bettercompute__V1__Up up = BETTERCOMPUTE__V1__UP__INIT;

	message.sequence = report->sequence;
	message.spec_generation = report->generation;
	switch (report->kind) {
	case REPORT_INVENTORY:
		message.body_case = BETTERCOMPUTE__V1__REPORT__BODY_INVENTORY;
		message.inventory = inventory_report_message(truth->inventory, &arena);
		break;
	case REPORT_CONDITIONS:
		put_conditions(truth->conditions, &arena, &message);
		break;
	case REPORT_BOUND:
		put_bound(report, &arena, &message);
		break;
	case REPORT_FAILED:
		put_failed(report, &arena, &message);
		break;
	case REPORT_RELEASED:
		put_released(report, &arena, &message);
		break;
	case REPORT_OPERATION:
		put_operation(report, &arena, &message);
		break;
	}
	up.body_case = BETTERCOMPUTE__V1__UP__BODY_REPORT;
	up.report = &message;
	return pack_up(&up, out, error);
}
