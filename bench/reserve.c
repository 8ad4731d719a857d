/*
 * bench-reserve: how long reserve, preview and release take as the fleet grows, on SQLite.
 *
 * bench-reserve FOLDER NODES COUNT makes a database in FOLDER with NODES nodes of 8 GPUs, half of
 * them booked, then times COUNT of each call on one worker, and prints one line of JSON a kind.
 */
#include "control/control.h"
#include "control/room.h"
#include "sys/clock.h"
#include "sys/random.h"

#include <stdio.h>
#include <time.h>

#define GPUS    8
#define HOUR_MS ((int64_t)3600 * 1000)

struct bench {
	struct control control;
	struct control_principal principal;
	char tenant[ID_SIZE], site[ID_SIZE], pool[ID_SIZE], token[ID_SIZE];
	int nodes;
};

static void die(const struct error *error)
{
	fprintf(stderr, "bench-reserve: %s\n", error->what);
	exit(1);
}

typedef bool call_fn(struct control *control, const struct control_call *call, json_t **ret_answer,
		     struct error *error);

static json_t *call(struct bench *bench, call_fn *function, const char *id, json_t *body)
{
	struct control_call call = {.principal = &bench->principal, .id = id, .body = body};
	json_t *answer = NULL;
	struct error error;

	if (!function(&bench->control, &call, &answer, &error))
		die(&error);
	json_decref(body);
	return answer;
}

static void take_id(json_t *answer, char out[ID_SIZE])
{
	str_copy(out, ID_SIZE, json_string_value(json_object_get(answer, "id")));
	json_decref(answer);
}

/* --- the fleet --- */

static bool add_gpu(struct store_connection *db, const char *node, int number, int gpu,
		    struct error *error)
{
	char uuid[48], atom[64];

	snprintf(uuid, sizeof uuid, "%08x-0000-0000-0000-%012x", number, gpu);
	snprintf(atom, sizeof atom, "gpu/%s", uuid);
	return store_exec(
		       db,
		       "INSERT INTO gpus (node, uuid, model, pci, memory_bytes, numa, healthy, "
		       "cause, seen) VALUES ($1, $2, 'NVIDIA H100 80GB HBM3', '', 85899345920, "
		       "$3, 1, '', 1)",
		       STORE_PARAMS(store_text(node), store_text(uuid), store_int(gpu * 2 / GPUS)),
		       error) &&
	       store_exec(db,
			  "INSERT INTO atoms (node, atom, class, profile, gpu, visible_device, "
			  "leaf_lo, leaf_hi, numa, memory_bytes, healthy, cause, since_ms, seen) "
			  "VALUES ($1, $2, 'gpu', '', $3, $3, 0, 1024, $4, 85899345920, 1, '', 0, "
			  "1)",
			  STORE_PARAMS(store_text(node), store_text(atom), store_text(uuid),
				       store_int(gpu * 2 / GPUS)),
			  error);
}

static bool add_node(struct store_connection *db, const struct bench *bench, int number,
		     struct error *error)
{
	int64_t now_ms = store_now(db).ms;
	char node[ID_SIZE], key[32];

	random_id(node, "node", store_now(db));
	snprintf(key, sizeof key, "sha256/%d", number);
	if (!store_exec(db,
			"INSERT INTO nodes (id, pool, join_token, machine_key, smbios_uuid, trust, "
			"state, hostname, kubernetes_node_name, boot_id, bcd_version, kernel, "
			"driver_version, gpu_api, capabilities, vcpus, memory_bytes, simulated, "
			"simulated_reason, has_inventory, has_conditions, spec_generation, "
			"sent_generation, stored_generation, hello_sequence, acknowledged, "
			"created_ms) VALUES ($1, $2, $3, $4, '', 'tenant-owned', 'ready', '', '', "
			"'', '', '', '', 'device-plugin', "
			"'[\"kubernetes-binding\",\"assignment-limits\"]', 192, 2199023255552, 0, "
			"'', 1, 1, 1, 1, 1, 0, 0, $5)",
			STORE_PARAMS(store_text(node), store_text(bench->pool),
				     store_text(bench->token), store_text(key), store_int(now_ms)),
			error) ||
	    !store_exec(db,
			"INSERT INTO node_streams (node, epoch, replica, connected, seen_ms) "
			"VALUES ($1, 1, '', 1, $2)",
			STORE_PARAMS(store_text(node), store_int(now_ms + HOUR_MS)), error))
		return false;
	for (int gpu = 0; gpu < GPUS; gpu++) {
		if (!add_gpu(db, node, number, gpu, error))
			return false;
	}
	return room_renew(db, node, error);
}

static bool add_nodes(struct store_connection *db, void *argument, struct error *error)
{
	const struct bench *bench = argument;

	for (int i = 0; i < bench->nodes; i++) {
		if (!add_node(db, bench, i, error))
			return false;
	}
	return true;
}

static void make_fleet(struct bench *bench)
{
	struct error error;

	take_id(call(bench, control_tenant_create, NULL, json_pack("{s:s}", "name", "acme")),
		bench->tenant);
	take_id(call(bench, control_site_create, NULL,
		     json_pack("{s:s, s:s, s:s}", "tenantId", bench->tenant, "name", "home", "kind",
			       "custom")),
		bench->site);
	take_id(call(bench, control_pool_create, NULL,
		     json_pack("{s:s, s:s, s:s, s:s, s:s, s:{}}", "tenantId", bench->tenant,
			       "siteId", bench->site, "name", "h100", "class", "metal-host",
			       "gpuModel", "H100", "policy")),
		bench->pool);
	take_id(call(bench, control_join_token_create, NULL,
		     json_pack("{s:s}", "poolId", bench->pool)),
		bench->token);
	if (!store_run(bench->control.connection, STORE_WRITE, add_nodes, bench, &error))
		die(&error);
}

/* --- timing --- */

static json_t *request(const struct bench *bench, int gpus)
{
	return json_pack("{s:s, s:s, s:[{s:s, s:i}], s:s, s:s}", "tenantId", bench->tenant,
			 "poolId", bench->pool, "devices", "class", "gpu", "count", gpus,
			 "duration", "8h", "binding", "kubernetes");
}

static int compare_us(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

/* What this process has had of the processor: others may have it too, and then time says little. */
static int64_t cpu_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

static void print_times(const struct bench *bench, const char *what, int64_t *took_us, int count,
			int64_t used_us)
{
	int64_t sum_us = 0;

	for (int i = 0; i < count; i++)
		sum_us += took_us[i];
	qsort(took_us, (size_t)count, sizeof *took_us, compare_us);
	printf("{\"call\":\"%s\",\"nodes\":%d,\"perSecond\":%.0f,\"p50us\":%lld,\"p99us\":%lld,"
	       "\"maxUs\":%lld,\"cpuUs\":%lld}\n",
	       what, bench->nodes, count * 1e6 / (double)sum_us, (long long)took_us[count / 2],
	       (long long)took_us[(int64_t)count * 99 / 100], (long long)took_us[count - 1],
	       (long long)(used_us / count));
	fflush(stdout);
}

/* `ids` has room for one a call, or is NULL when nothing is made; "" when it wasn't placed. */
static void time_requests(struct bench *bench, const char *what, call_fn *function, int gpus,
			  int count, char (*ids)[ID_SIZE])
{
	int64_t *took_us = mem_alloc((size_t)count * sizeof *took_us);
	int64_t used_us = cpu_us();

	for (int i = 0; i < count; i++) {
		json_t *body = request(bench, gpus > 0 ? gpus : 1 << i % 4), *answer;
		int64_t begun_us = clock_us();

		answer = call(bench, function, NULL, body);
		took_us[i] = clock_us() - begun_us;
		if (ids)
			str_copy(ids[i], ID_SIZE, json_string_value(json_object_get(answer, "id")));
		json_decref(answer);
	}
	if (what)
		print_times(bench, what, took_us, count, cpu_us() - used_us);
	free(took_us);
}

static void time_releases(struct bench *bench, int count, char (*ids)[ID_SIZE])
{
	int64_t *took_us = mem_alloc((size_t)count * sizeof *took_us);
	int64_t used_us = cpu_us();

	for (int i = 0; i < count; i++) {
		int64_t begun_us = clock_us();

		json_decref(call(bench, control_reservation_release, ids[i], NULL));
		took_us[i] = clock_us() - begun_us;
	}
	print_times(bench, "release", took_us, count, cpu_us() - used_us);
	free(took_us);
}

int main(int argc, char **argv)
{
	struct bench bench = {0};
	char url[4096], key[CONTROL_KEY_SIZE];
	struct store *store = NULL;
	struct error error;
	char(*ids)[ID_SIZE];
	int count;

	if (argc != 4) {
		fprintf(stderr, "usage: bench-reserve FOLDER NODES COUNT\n");
		return 2;
	}
	bench.nodes = atoi(argv[2]);
	count = atoi(argv[3]);
	ids = mem_alloc((size_t)count * sizeof *ids);
	snprintf(url, sizeof url, "sqlite:%s/bench.db", argv[1]);
	if (!store_open(url, &store, &error) ||
	    !store_connect(store, &bench.control.connection, &error) ||
	    !control_init(&bench.control, key, &error) ||
	    !control_authenticate(&bench.control, key, &bench.principal, &error))
		die(&error);
	make_fleet(&bench);
	time_requests(&bench, NULL, control_reservation_create, 4, bench.nodes, NULL);
	time_requests(&bench, "reserve", control_reservation_create, 0, count, ids);
	time_releases(&bench, count, ids);
	time_requests(&bench, "preview", control_capacity_preview, 0, count, NULL);
	time_requests(&bench, NULL, control_reservation_create, 8, bench.nodes / 2, NULL);
	time_requests(&bench, "reserve that has to wait", control_reservation_create, 8, 20, ids);
	time_requests(&bench, "preview that doesn't fit", control_capacity_preview, 9, 20, NULL);
	free(ids);
	store_disconnect(bench.control.connection);
	store_destroy(store);
	return 0;
}
