#include "load/fleet.h"

#include "base/vec.h"
#include "proto/gateway.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "rpc/tls.h"
#include "sys/random.h"

#include <stdio.h>

#define TICK_MS     100 /* heartbeats and changes */
#define DIAL_MS     10  /* connections */
#define MAX_BOUND   64
#define KEEPALIVE   30000
#define MAX_MESSAGE ((size_t)4 << 20)

MESSAGE_TYPE(down, Bettercompute__V1__Down, bettercompute__v1__down)
MESSAGE_TYPE(up, Bettercompute__V1__Up, bettercompute__v1__up)

enum phase {
	PHASE_WAITING,
	PHASE_DIALLING,
	PHASE_OPEN,
};

struct machine {
	struct fleet *fleet;
	size_t index;
	struct fleet_identity identity;
	enum phase phase;
	struct mono retry_at;
	struct rpc_tls *tls;
	struct rpc_client *client;
	struct rpc_call *stream;
	char lineage[ID_SIZE];
	int64_t generation, sequence, acknowledged;
	bool ended; /* noted by a callback, for the tick */
	bool ready, ill;
	char bound[MAX_BOUND][ID_SIZE];
	size_t bound_count;
};

struct fleet {
	struct loop *loop;
	char *address, *server_name, *pins;
	VEC(struct machine *) machines;
	size_t dialling, next_beat, next_churn, churn;
	struct loop_timer *tick, *dial;
	struct fleet_counts counts;
};

/* --- what goes up --- */

static void send_up(struct machine *machine, Bettercompute__V1__Up *message)
{
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;

	if (!machine->stream)
		return;
	if (!up_pack(message, &bytes, &error)) {
		fprintf(stderr, "pack: %s\n", error.what);
		abort();
	}
	rpc_send(machine->stream, bytes.data, bytes.length);
}

static void send_hello(struct machine *machine)
{
	char *capabilities[] = {message_text("kubernetes-binding"),
				message_text("assignment-limits")};
	Bettercompute__V1__Hello hello = BETTERCOMPUTE__V1__HELLO__INIT;
	Bettercompute__V1__Up message = BETTERCOMPUTE__V1__UP__INIT;
	char hostname[32];

	snprintf(hostname, sizeof hostname, "load-%zu", machine->index);
	hello.boot_id = message_text("00000000-0000-4000-8000-000000000000");
	hello.version = message_text(BC_VERSION);
	hello.hostname = hostname;
	hello.capabilities = capabilities;
	hello.n_capabilities = ARRAY_SIZE(capabilities);
	hello.lineage = machine->lineage;
	hello.spec_generation = machine->generation;
	hello.last_sequence = machine->sequence;
	message.body_case = BETTERCOMPUTE__V1__UP__BODY_HELLO;
	message.hello = &hello;
	send_up(machine, &message);
}

static void send_heartbeat(struct machine *machine)
{
	Bettercompute__V1__Heartbeat heartbeat = BETTERCOMPUTE__V1__HEARTBEAT__INIT;
	Bettercompute__V1__Up message = BETTERCOMPUTE__V1__UP__INIT;

	heartbeat.spec_generation = machine->generation;
	message.body_case = BETTERCOMPUTE__V1__UP__BODY_HEARTBEAT;
	message.heartbeat = &heartbeat;
	send_up(machine, &message);
}

static void send_report(struct machine *machine, Bettercompute__V1__Report *report)
{
	Bettercompute__V1__Up message = BETTERCOMPUTE__V1__UP__INIT;

	report->sequence = ++machine->sequence;
	report->spec_generation = machine->generation;
	message.body_case = BETTERCOMPUTE__V1__UP__BODY_REPORT;
	message.report = report;
	send_up(machine, &message);
}

/* One GPU as its messages say it; the texts are the caller's. */
struct gpu_texts {
	char uuid[40], pci[16], atom[48], device[48];
};

static void describe_gpu(const struct machine *machine, size_t gpu, struct gpu_texts *texts)
{
	snprintf(texts->uuid, sizeof texts->uuid, "%08zx-0000-4000-8000-%012zu", machine->index,
		 gpu);
	snprintf(texts->pci, sizeof texts->pci, "0000:%02zx:00.0", gpu + 1);
	snprintf(texts->atom, sizeof texts->atom, "gpu/%s", texts->uuid);
	snprintf(texts->device, sizeof texts->device, "GPU-%s", texts->uuid);
}

static void send_inventory(struct machine *machine)
{
	Bettercompute__V1__Inventory inventory = BETTERCOMPUTE__V1__INVENTORY__INIT;
	Bettercompute__V1__Report report = BETTERCOMPUTE__V1__REPORT__INIT;
	Bettercompute__V1__Gpu gpus[FLEET_GPUS], *gpu_list[FLEET_GPUS];
	Bettercompute__V1__Atom atoms[FLEET_GPUS], *atom_list[FLEET_GPUS];
	Bettercompute__V1__Health healths[FLEET_GPUS];
	struct gpu_texts texts[FLEET_GPUS];
	char name[32];

	snprintf(name, sizeof name, "load-%zu", machine->index);
	for (size_t i = 0; i < FLEET_GPUS; i++) {
		bool ill = machine->ill && i == FLEET_GPUS - 1;

		describe_gpu(machine, i, &texts[i]);
		bettercompute__v1__health__init(&healths[i]);
		healths[i].healthy = !ill;
		healths[i].cause = message_text(ill ? "XID 79" : "");
		bettercompute__v1__gpu__init(&gpus[i]);
		gpus[i].uuid = texts[i].uuid;
		gpus[i].model = message_text("NVIDIA H100 80GB HBM3");
		gpus[i].memory_bytes = (int64_t)80 << 30;
		gpus[i].pci = texts[i].pci;
		gpus[i].numa = i < FLEET_GPUS / 2 ? 0 : 1;
		gpus[i].health = &healths[i];
		bettercompute__v1__atom__init(&atoms[i]);
		atoms[i].atom = texts[i].atom;
		atoms[i].class_ = message_text("gpu");
		atoms[i].gpu = texts[i].uuid;
		atoms[i].leaf_hi = 1024;
		atoms[i].visible_device = texts[i].device;
		atoms[i].numa = gpus[i].numa;
		atoms[i].memory_bytes = gpus[i].memory_bytes;
		atoms[i].health = &healths[i];
		gpu_list[i] = &gpus[i];
		atom_list[i] = &atoms[i];
	}
	inventory.os_kubernetes_node_name = inventory.hostname = name;
	inventory.kernel = message_text("6.1");
	inventory.vcpus = 128;
	inventory.memory_bytes = (int64_t)1 << 40;
	inventory.simulated = true;
	inventory.simulated_reason = message_text("a load program");
	inventory.driver_version = message_text("580.95.05");
	inventory.gpu_api = message_text("device-plugin");
	inventory.gpus = gpu_list;
	inventory.atoms = atom_list;
	inventory.n_gpus = inventory.n_atoms = FLEET_GPUS;
	report.body_case = BETTERCOMPUTE__V1__REPORT__BODY_INVENTORY;
	report.inventory = &inventory;
	send_report(machine, &report);
}

static void send_conditions(struct machine *machine)
{
	Bettercompute__V1__Conditions conditions = BETTERCOMPUTE__V1__CONDITIONS__INIT;
	Bettercompute__V1__Report report = BETTERCOMPUTE__V1__REPORT__INIT;

	report.body_case = BETTERCOMPUTE__V1__REPORT__BODY_CONDITIONS;
	report.conditions = &conditions;
	send_report(machine, &report);
}

/* --- what comes down --- */

static size_t find_bound(const struct machine *machine, const char *allocation)
{
	size_t i = 0;

	while (i < machine->bound_count && !str_equal(machine->bound[i], allocation))
		i++;
	return i;
}

static void bind_one(struct machine *machine, const Bettercompute__V1__Assignment *assignment)
{
	Bettercompute__V1__AllocationBound bound = BETTERCOMPUTE__V1__ALLOCATION_BOUND__INIT;
	Bettercompute__V1__Report report = BETTERCOMPUTE__V1__REPORT__INIT;
	char *atoms[FLEET_GPUS];

	if (find_bound(machine, assignment->allocation) < machine->bound_count ||
	    machine->bound_count == MAX_BOUND || assignment->n_devices > FLEET_GPUS)
		return;
	str_copy(machine->bound[machine->bound_count++], ID_SIZE, assignment->allocation);
	for (size_t i = 0; i < assignment->n_devices; i++)
		atoms[i] = assignment->devices[i]->atom;
	bound.allocation = assignment->allocation;
	bound.atoms = atoms;
	bound.n_atoms = assignment->n_devices;
	report.body_case = BETTERCOMPUTE__V1__REPORT__BODY_BOUND;
	report.bound = &bound;
	send_report(machine, &report);
	machine->fleet->counts.bound++;
}

static void release_one(struct machine *machine, char *allocation)
{
	Bettercompute__V1__AllocationReleased released =
		BETTERCOMPUTE__V1__ALLOCATION_RELEASED__INIT;
	Bettercompute__V1__Report report = BETTERCOMPUTE__V1__REPORT__INIT;
	size_t at = find_bound(machine, allocation);

	if (at < machine->bound_count)
		memcpy(machine->bound[at], machine->bound[--machine->bound_count], ID_SIZE);
	released.allocation = allocation;
	report.body_case = BETTERCOMPUTE__V1__REPORT__BODY_RELEASED;
	report.released = &released;
	send_report(machine, &report);
	machine->fleet->counts.released++;
}

static void take_spec(struct machine *machine, const Bettercompute__V1__Spec *spec)
{
	if (str_equal(machine->lineage, spec->lineage) && spec->generation < machine->generation)
		return;
	str_copy(machine->lineage, sizeof machine->lineage, spec->lineage);
	machine->generation = spec->generation;
	for (size_t i = 0; i < spec->n_assignments; i++)
		bind_one(machine, spec->assignments[i]);
	for (size_t i = 0; i < spec->n_withdrawn; i++)
		release_one(machine, spec->withdrawn[i]);
}

static void take_welcome(struct machine *machine, const Bettercompute__V1__Welcome *welcome)
{
	struct fleet *fleet = machine->fleet;

	machine->phase = PHASE_OPEN;
	machine->acknowledged = welcome->acknowledged;
	fleet->dialling--;
	fleet->counts.welcomed++;
	if (machine->sequence > 0 && machine->acknowledged >= machine->sequence) {
		machine->ready = true;
		fleet->counts.ready++;
		return;
	}
	/* What isn't acknowledged is said again by saying how things are. */
	send_inventory(machine);
	send_conditions(machine);
}

static void take_ack(struct machine *machine, const Bettercompute__V1__Ack *ack)
{
	machine->fleet->counts.acks++;
	if (ack->sequence > machine->acknowledged)
		machine->acknowledged = ack->sequence;
	if (!machine->ready && machine->acknowledged >= machine->sequence) {
		machine->ready = true;
		machine->fleet->counts.ready++;
	}
}

static void on_message(struct rpc_call *call UNUSED, void *arg, const uint8_t *data, size_t length)
{
	CLEANUP(message) Bettercompute__V1__Down *message = NULL;
	struct machine *machine = arg;
	struct error error;

	if (!down_unpack(data, length, &message, &error)) {
		fprintf(stderr, "unpack: %s\n", error.what);
		abort();
	}
	if (message->body_case == BETTERCOMPUTE__V1__DOWN__BODY_WELCOME)
		take_welcome(machine, message->welcome);
	else if (message->body_case == BETTERCOMPUTE__V1__DOWN__BODY_SPEC)
		take_spec(machine, message->spec);
	else if (message->body_case == BETTERCOMPUTE__V1__DOWN__BODY_ACK)
		take_ack(machine, message->ack);
}

static void on_done(struct rpc_call *call UNUSED, void *arg, const struct rpc_status *status UNUSED)
{
	struct machine *machine = arg;

	machine->stream = NULL;
	machine->ended = true;
}

/* --- connections --- */

static void on_up(void *arg)
{
	static const struct rpc_call_handlers handlers = {.on_message = on_message,
							  .on_done = on_done};
	struct machine *machine = arg;

	machine->stream = rpc_call_start(machine->client, METHOD_GATEWAY_CONNECT, 0, MAX_MESSAGE,
					 &handlers, machine);
	send_hello(machine);
}

static void on_down(void *arg, const struct error *error UNUSED)
{
	struct machine *machine = arg;

	machine->ended = true;
}

static void hang_up(struct machine *machine)
{
	struct fleet *fleet = machine->fleet;

	machine->stream = NULL;
	rpc_client_destroy(TAKE(machine->client));
	rpc_tls_destroy(TAKE(machine->tls));
	machine->ended = false;
	if (machine->phase == PHASE_DIALLING)
		fleet->dialling--;
	if (machine->phase == PHASE_OPEN)
		fleet->counts.welcomed--;
	if (machine->ready)
		fleet->counts.ready--;
	machine->ready = false;
	machine->phase = PHASE_WAITING;
}

static void dial(struct machine *machine)
{
	static const struct rpc_client_handlers handlers = {.on_up = on_up, .on_down = on_down};
	struct fleet *fleet = machine->fleet;
	const struct rpc_tls_client_options options = {
		.server_name = fleet->server_name,
		.pins = fleet->pins,
		.certificate_pem = machine->identity.certificate_pem,
		.key_pem = machine->identity.key_pem,
	};
	struct error error;

	if (!rpc_tls_client_create(&options, &machine->tls, &error)) {
		fprintf(stderr, "tls: %s\n", error.what);
		abort();
	}
	machine->phase = PHASE_DIALLING;
	fleet->dialling++;
	machine->client = rpc_client_create(fleet->loop, fleet->address, machine->tls, KEEPALIVE,
					    &handlers, machine);
}

/* --- time --- */

static void look_at(struct machine *machine, struct mono now)
{
	struct fleet *fleet = machine->fleet;

	if (machine->ended) {
		fleet->counts.failures++;
		hang_up(machine);
		machine->retry_at =
			mono_after(now, FLEET_RETRY_MS + (int64_t)random_below(FLEET_RETRY_MS));
	}
	if (machine->phase == PHASE_WAITING && fleet->dialling < FLEET_DIALS &&
	    mono_until(now, machine->retry_at) <= 0)
		dial(machine);
}

/* The next ones in turn, so many that all of them had theirs after `period_ms`. */
static void in_turn(struct fleet *fleet, size_t *next, size_t count,
		    void (*fn)(struct machine *machine))
{
	for (size_t i = 0; i < count; i++) {
		struct machine *machine = fleet->machines.items[(*next)++ % fleet->machines.count];

		if (machine->phase == PHASE_OPEN && machine->stream)
			fn(machine);
	}
}

static void change(struct machine *machine)
{
	machine->ill = !machine->ill;
	send_inventory(machine);
}

static void on_dial(void *arg)
{
	struct fleet *fleet = arg;
	struct mono now = loop_now(fleet->loop);

	vec_each (&fleet->machines, struct machine * *machine)
		look_at(*machine, now);
	loop_timer_start(fleet->dial, DIAL_MS);
}

static void on_tick(void *arg)
{
	struct fleet *fleet = arg;
	size_t beats =
		(fleet->machines.count * TICK_MS + FLEET_HEARTBEAT_MS - 1) / FLEET_HEARTBEAT_MS;

	in_turn(fleet, &fleet->next_beat, beats, send_heartbeat);
	in_turn(fleet, &fleet->next_churn, (fleet->churn * TICK_MS + 999) / 1000, change);
	loop_timer_start(fleet->tick, TICK_MS);
}

/* --- life --- */

struct fleet *fleet_create(struct loop *loop, const char *address, const char *server_name,
			   const char *pins)
{
	struct fleet *fleet = mem_alloc(sizeof *fleet);

	fleet->loop = loop;
	fleet->address = mem_strdup(address);
	fleet->server_name = mem_strdup(server_name);
	fleet->pins = mem_strdup(pins);
	fleet->tick = loop_timer_create(loop, on_tick, fleet);
	fleet->dial = loop_timer_create(loop, on_dial, fleet);
	return fleet;
}

void fleet_add(struct fleet *fleet, const struct fleet_identity *identity)
{
	struct machine *machine = mem_alloc(sizeof *machine);

	machine->fleet = fleet;
	machine->index = fleet->machines.count;
	machine->identity = *identity;
	*vec_push(&fleet->machines) = machine;
}

void fleet_start(struct fleet *fleet)
{
	loop_timer_start(fleet->tick, TICK_MS);
	loop_timer_start(fleet->dial, 0);
}

void fleet_churn(struct fleet *fleet, size_t nodes_a_second)
{
	fleet->churn = nodes_a_second;
}

struct fleet_counts *fleet_counts(struct fleet *fleet)
{
	return &fleet->counts;
}

void fleet_destroy(struct fleet *fleet)
{
	vec_each (&fleet->machines, struct machine * *slot) {
		struct machine *machine = *slot;

		if (machine->phase != PHASE_WAITING)
			hang_up(machine);
		free(machine->identity.key_pem);
		free(machine->identity.certificate_pem);
		free(machine);
	}
	vec_deinit(&fleet->machines);
	loop_timer_destroy(fleet->tick);
	loop_timer_destroy(fleet->dial);
	free(fleet->address);
	free(fleet->server_name);
	free(fleet->pins);
	free(fleet);
}
