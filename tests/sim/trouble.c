#include "sim/trouble.h"

#include "proto/gateway.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "sim/calm.h"
#include "sim/invariants.h"
#include "sim/programs.h"
#include "sim/sim_api.h"
#include "sim/sim_faults.h"
#include "sim/sim_fs.h"
#include "sim/sim_rpc.h"
#include "sys/durable.h"

#define KEPT    16
#define DAY_MS  ((int64_t)24 * 60 * 60 * 1000)
#define HOUR_MS ((int64_t)60 * 60 * 1000)
#define AWAY_MS 60000 /* a replica, or the network, at most */

MESSAGE_TYPE(up, Bettercompute__V1__Up, bettercompute__v1__up)
MESSAGE_TYPE(down, Bettercompute__V1__Down, bettercompute__v1__down)

struct messages VEC_BODY(struct buf);

static struct {
	struct messages specs;         /* of all streams */
	struct messages reports, acks; /* of the stream that is open: no other has them twice */
} kept;

static void drop(struct messages *messages)
{
	vec_each (messages, struct buf * message)
		buf_deinit(message);
	vec_deinit(messages);
}

static void keep(struct messages *messages, const uint8_t *data, size_t length)
{
	if (messages->count == KEPT) {
		buf_deinit(&messages->items[0]);
		vec_remove(messages, 0);
	}
	buf_add(vec_push(messages), data, length);
}

void trouble_begin(void)
{
}

void trouble_forget(void)
{
	drop(&kept.specs);
	drop(&kept.reports);
	drop(&kept.acks);
}

void trouble_end(void)
{
	trouble_forget();
}

/* --- messages --- */

static void keep_up(const uint8_t *data, size_t length)
{
	CLEANUP(message) Bettercompute__V1__Up *up = NULL;
	struct error error;
	if (!up_unpack(data, length, &up, &error))
		return;
	if (up->body_case == BETTERCOMPUTE__V1__UP__BODY_HELLO)
		drop(&kept.reports);
	else if (up->body_case == BETTERCOMPUTE__V1__UP__BODY_REPORT)
		keep(&kept.reports, data, length);
}

static void keep_down(const uint8_t *data, size_t length)
{
	CLEANUP(message) Bettercompute__V1__Down *down = NULL;
	struct error error;
	if (!down_unpack(data, length, &down, &error))
		return;
	if (down->body_case == BETTERCOMPUTE__V1__DOWN__BODY_WELCOME)
		drop(&kept.acks);
	else if (down->body_case == BETTERCOMPUTE__V1__DOWN__BODY_ACK)
		keep(&kept.acks, data, length);
	else if (down->body_case == BETTERCOMPUTE__V1__DOWN__BODY_SPEC)
		keep(&kept.specs, data, length);
}

void trouble_message(bool to_server, const uint8_t *data, size_t length)
{
	if (to_server)
		keep_up(data, length);
	else
		keep_down(data, length);
}

static void again(const struct messages *messages, size_t newest, bool to_server, const char *what)
{
	if (messages->count <= newest)
		return;
	const struct buf *message = &messages->items[sim_below(messages->count - newest)];
	if (sim_rpc_inject(METHOD_GATEWAY_CONNECT, to_server, message->data, message->length))
		sim_trace("an old %s comes once more", what);
}

/* proves: GW-26 GW-17 */
void trouble_message_again(void)
{
	switch (sim_below(4)) {
	case 0:
		again(&kept.reports, 0, true, "report");
		break;
	case 1:
		again(&kept.acks, 0, false, "acknowledgement");
		break;
	default: /* the newest Spec is none of the past */
		again(&kept.specs, 1, false, "Spec");
		break;
	}
}

/* --- the network --- */

static void network_heals(void *arg UNUSED)
{
	sim_trace("the network is back");
	sim_rpc_cut_network(false);
}

void trouble_network_breaks(void)
{
	bool apart = sim_below(2);
	sim_trace("the network %s", apart ? "is gone" : "drops its connections");
	sim_rpc_cut_network(apart);
	if (apart)
		sim_schedule(NULL, (int64_t)sim_below(AWAY_MS), network_heals, NULL);
}

void trouble_api(void)
{
	sim_api_goes_away((int64_t)sim_below(AWAY_MS));
}

/* --- replicas --- */

static void replica_is_back(void *arg)
{
	struct sim_process *process = arg;
	if (process->cut_off)
		sim_rpc_cut_off(process, false);
	process->database_away = false;
	sim_trace("%s is in reach", process->name);
}

/* proves: GW-25 GW-27 */
void trouble_replica(void)
{
	struct sim_process *process = &programs.control[sim_below((uint64_t)programs.replicas)];
	int64_t for_ms = 1000 + (int64_t)sim_below(AWAY_MS);
	switch (sim_below(4)) {
	case 0:
		sim_process_freeze(&programs.bcd, for_ms);
		return;
	case 1:
		sim_process_freeze(process, for_ms);
		return;
	case 2:
		sim_trace("%s is cut off", process->name);
		sim_rpc_cut_off(process, true);
		break;
	default:
		sim_trace("%s can't reach its database", process->name);
		process->database_away = true;
		break;
	}
	sim_schedule(NULL, for_ms, replica_is_back, process);
}

/* --- files --- */

void trouble_socket(void)
{
	struct durable_names names = {0};
	struct error error;
	if (!durable_list(NODE_KUBELET "/device-plugins", 4096, &names, &error))
		return;
	for (size_t i = 0; i < names.count; i++) {
		CLEANUP(buf) struct buf path = {0};
		buf_printf(&path, NODE_KUBELET "/device-plugins/%s", names.names[i]);
		if (!str_starts(names.names[i], "bcd-") || !sim_fs_socket(buf_text(&path)))
			continue;
		sim_trace("%s is deleted", names.names[i]);
		if (!durable_remove(buf_text(&path), &error))
			sim_broken("%s", error.what);
		break;
	}
	durable_names_deinit(&names);
}

/* What was in it is lost, and nobody can say what it was. proves: REL-36 */
static void record_is_damaged(const char *record)
{
	sim_trace("%s is damaged", record);
	sim_process_kill(&programs.bcd, SIM_KILLED);
	sim_fs_put(record, "{\"version\": 1, \"rel");
}

void trouble_releases(void)
{
	record_is_damaged(NODE_DATA "/releasing.json");
}

void trouble_record(void)
{
	static const char *const records[] = {NODE_DATA "/releasing.json", NODE_DATA "/spec.json",
					      NODE_DATA "/reports.json"};
	record_is_damaged(records[sim_below(ARRAY_SIZE(records))]);
}

/* What a database that went back has forgotten, and the node was told to let go, nobody else knows of: the one
 * thing that stands between two pods. */
static void releases_are_lost(void *arg UNUSED)
{
	if (calm_has_releases() && sim_below(2))
		trouble_releases();
}

/* Bookings of the time between are forgotten, those that ended in it are back. What was sent before
 * has no way to come through the new process's streams. */
void trouble_database(void)
{
	if (sim_below(2) == 0) {
		sim_trace("a backup");
		programs_backup();
		return;
	}
	if (!programs_restore())
		return;
	sim_trace("the database is put back to its backup");
	sim_schedule(NULL, (int64_t)sim_below(15000), releases_are_lost, NULL);
	trouble_forget();
}

/* "Lost" is what somebody says: the kubelet has its pods yet. Not with backups, which don't know who it is now;
 * and not in a pod, from where nobody can know of those that the kubelet had forgotten by then.
 * proves: REL-2 REL-27 DP-42 */
void trouble_state(void)
{
	if (!programs_serving())
		return;
	sim_trace("the node's state is lost, it joins anew");
	trouble_forget();
	invariants_another_node();
	programs_join_anew();
}

void trouble_disk(void)
{
	int64_t for_ms = (int64_t)sim_below(60000);
	sim_trace("the disk is full for %lld ms", (long long)for_ms);
	sim_faults_fill_disk(&programs.bcd, for_ms);
}

/* --- clocks --- */

/* One database has one clock, which all replicas go by. */
static void servers_clock(int64_t wrong_ms)
{
	if (wrong_ms > programs.servers[0].wrong_ms)
		invariants_time_leapt();
	for (int i = 0; i < programs.replicas; i++)
		programs.servers[i].wrong_ms = wrong_ms;
}

/* proves: REL-49 */
void trouble_clock(void)
{
	static const int64_t jumps[] = {DAY_MS, -DAY_MS, HOUR_MS, -HOUR_MS, 0};
	int64_t wrong_ms = jumps[sim_below(ARRAY_SIZE(jumps))];
	bool node = sim_below(2);
	sim_trace("the clock of %s is wrong by %lld s now", node ? "the node" : "the servers",
		  (long long)wrong_ms / 1000);
	if (node)
		programs.node.wrong_ms = wrong_ms;
	else
		servers_clock(wrong_ms);
}

void trouble_ends(void)
{
	sim_rpc_cut_network(false);
	for (int i = 0; i < programs.replicas; i++) {
		programs.control[i].cut_off = false;
		programs.control[i].database_away = false;
	}
	programs.node.wrong_ms = 0;
	servers_clock(0);
	sim_api_goes_away(0);
	sim_api_refuses_bcd(0);
}
