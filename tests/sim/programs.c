#include "sim/programs.h"

#include "pki/cert.h"
#include "pki/folder.h"
#include "pki/keys.h"
#include "serve/issue.h"
#include "sim/kubelet.h"
#include "sim/sim_fs.h"
#include "sim/sim_workers.h"
#include "store/store.h"
#include "sys/clock.h"
#include "sys/durable.h"

#include <stdio.h>

#define PKI_FOLDER "/server-pki"
#define UPTIME_MS  ((int64_t)30 * 24 * 60 * 60 * 1000)

struct programs programs;

/* What outlives the control plane's process: the machine's disk. */
static struct {
	struct store *store;
	struct store_connection *connection;
	struct pki_folder pki;
	struct control_principal operator;
	VEC(char *) backup; /* a statement a row */
} disk;

/* Setting up can't fail; when it does, the world is wrong and says why. */
static void must(bool ok, const struct error *error)
{
	if (ok)
		return;
	fprintf(stderr, "sim: setting up the world: %s\n", error->what);
	abort();
}

/* --- the database --- */

static struct control world_control(void)
{
	struct control control = {.connection = disk.connection};
	str_copy(control.replica, sizeof control.replica, "rep_world");
	return control;
}

struct store *programs_store(void)
{
	return disk.store;
}

const struct pki_folder *programs_pki(void)
{
	return &disk.pki;
}

static json_t *call(programs_call_fn *fn, const char *id, const json_t *body)
{
	struct control control = world_control();
	struct control_call asked = {.principal = &disk.operator, .id = id, .body = body};
	json_t *answer;
	struct error error;
	if (fn(&control, &asked, &answer, &error))
		return answer;
	sim_trace("refused: %s", error.what);
	return NULL;
}

json_t *programs_look(programs_call_fn *fn, const char *id)
{
	return call(fn, id, NULL);
}

struct sim_process *programs_serving(void)
{
	size_t first = sim_below((uint64_t)programs.replicas);
	for (int i = 0; i < programs.replicas; i++) {
		struct sim_process *process =
			&programs.control[(first + (size_t)i) % (size_t)programs.replicas];
		if (process->running && !process->database_away &&
		    process->frozen_until_ms < sim.now_ms)
			return process;
	}
	return NULL;
}

json_t *programs_call(programs_call_fn *fn, const char *id, json_t *body)
{
	struct sim_process *process = programs_serving();
	assert(process);
	json_t *answer = call(fn, id, body);
	json_decref(body);
	sim_schedule(process, 0, control_changed, process);
	return answer;
}

/* --- a backup, and going back to it --- */

static bool table_dump(struct store_connection *db, const char *table, struct error *error)
{
	CLEANUP(buf) struct buf sql = {0};
	CLEANUP(store_rows) struct store_rows columns = {0}, rows = {0};
	if (!store_query(db,
			 "SELECT group_concat('quote(' || name || ')', '||'',''||') "
			 "FROM pragma_table_info($1)",
			 STORE_PARAMS(store_text(table)), &columns, error))
		return false;
	buf_printf(&sql, "SELECT %s FROM %s", store_get_text(&columns, 0, 0), table);
	if (!store_query(db, buf_text(&sql), STORE_NO_PARAMS, &rows, error))
		return false;
	for (size_t i = 0; i < rows.count; i++) {
		struct buf insert = {0};
		buf_printf(&insert, "INSERT INTO %s VALUES (%s)", table,
			   store_get_text(&rows, i, 0));
		*vec_push(&disk.backup) = buf_take_text(&insert);
	}
	return true;
}

static bool dump_body(struct store_connection *db, void *arg UNUSED, struct error *error)
{
	CLEANUP(store_rows) struct store_rows tables = {0};
	bool done = store_query(db,
				"SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT "
				"IN ('meta', 'schema_versions') ORDER BY name",
				STORE_NO_PARAMS, &tables, error);
	for (size_t i = 0; done && i < tables.count; i++)
		done = table_dump(db, store_get_text(&tables, i, 0), error);
	return done;
}

static bool load_body(struct store_connection *db, void *arg UNUSED, struct error *error)
{
	bool done = store_exec(db, "PRAGMA defer_foreign_keys = ON", STORE_NO_PARAMS, error) &&
		    store_exec(db, "DELETE FROM counters", STORE_NO_PARAMS, error);
	vec_each (&disk.backup, char **insert)
		done = done && store_exec(db, *insert, STORE_NO_PARAMS, error);
	return done;
}

/* On a connection of its own: these statements are not worth keeping. */
static void database_run(enum store_mode mode, store_body_fn *body)
{
	struct store_connection *connection;
	struct error error;
	must(store_connect(disk.store, &connection, &error), &error);
	must(store_run(connection, mode, body, NULL, &error), &error);
	store_disconnect(connection);
}

static void backup_drop(void)
{
	vec_each (&disk.backup, char **insert)
		free(*insert);
	vec_deinit(&disk.backup);
}

static void database_open(void)
{
	struct error error;
	must(store_open("sqlite::memory:", &disk.store, &error), &error);
	must(store_connect(disk.store, &disk.connection, &error), &error);
}

static void database_close(void)
{
	sim_workers_forget_store();
	store_disconnect(TAKE(disk.connection));
	store_destroy(TAKE(disk.store));
}

void programs_backup(void)
{
	backup_drop();
	database_run(STORE_READ, dump_body);
}

bool programs_restore(void)
{
	if (disk.backup.count == 0)
		return false;
	for (int i = 0; i < programs.replicas; i++)
		sim_process_kill(&programs.control[i], SIM_KILLED);
	database_close();
	database_open();
	database_run(STORE_WRITE, load_body);
	return true;
}

/* --- dying and coming back --- */

/* No machine boots while what it said in the boot before is still under way (sim_delay): the control
 * plane tells two boots it never heard of apart by who came last. */
#define BOOT_MS 3000

static void come_back(void *arg)
{
	struct sim_process *process = arg;
	bool is_left = process == &programs.bcd || process == &programs.kubelet ||
		       process < &programs.control[programs.replicas];
	if (!process->running && is_left)
		sim_process_start(process);
}

void programs_leave_one_replica(void)
{
	int before = programs.replicas;
	programs.replicas = 1;
	for (int i = 1; i < before; i++)
		sim_process_kill(&programs.control[i], SIM_KILLED);
}

static void on_died(struct sim_process *process, enum sim_death death)
{
	int64_t away = sim.calm ? 100 : (int64_t)sim_below(sim_below(4) ? 500 : PROGRAMS_BACK_MS);

	if (death == SIM_POWER_CUT)
		away += BOOT_MS;
	sim_schedule(NULL, 1 + away, come_back, process);
}

/* --- setting up --- */

static const char *member(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	assert(text);
	return text;
}

/* An API call of the set-up; what is asked for of its answer is copied. */
static void make(programs_call_fn *fn, json_t *body, const char *key, char *out, size_t size)
{
	json_t *answer = call(fn, NULL, body);
	assert(answer);
	bool fits = str_copy(out, size, member(answer, key));
	assert(fits);
	json_decref(answer);
	json_decref(body);
}

static void database_make(void)
{
	struct control control;
	struct error error;
	char key[CONTROL_KEY_SIZE];
	database_open();
	control = world_control();
	must(control_init(&control, key, &error), &error);
	must(control_authenticate(&control, key, &disk.operator, & error), &error);
}

static void token_make(char token[CONTROL_KEY_SIZE])
{
	make(control_join_token_create, json_pack("{s:s}", "poolId", programs.pool), "token", token,
	     CONTROL_KEY_SIZE);
}

static void pool_make(void)
{
	char site[ID_SIZE];
	make(control_tenant_create, json_pack("{s:s}", "name", "team"), "id", programs.tenant,
	     sizeof programs.tenant);
	make(control_site_create,
	     json_pack("{s:s, s:s, s:s}", "tenantId", programs.tenant, "name", "site", "kind",
		       "custom"),
	     "id", site, sizeof site);
	make(control_pool_create,
	     json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:{}}}", "tenantId", programs.tenant, "siteId",
		       site, "name", "pool", "class", "metal-host", "gpuModel", "H100", "policy",
		       "kubernetes"),
	     "id", programs.pool, sizeof programs.pool);
}

struct issue {
	struct pki_key *key;
};

static bool issue(void *context, const char *node_id, enum control_trust trust, struct wall now,
		  char **ret_certificate, struct error *error)
{
	struct issue *issue = context;
	struct buf pem = {0};
	if (!issue_node(&disk.pki, issue->key, node_id, trust, now, &pem, error))
		return false;
	*ret_certificate = buf_take_text(&pem);
	return true;
}

/* What `bcd join` and the join service do, without the envelopes. */
static void node_join(void)
{
	char token[CONTROL_KEY_SIZE];
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(buf) struct buf key_pem = {0};
	struct control control = world_control();
	struct control_joined joined;
	struct error error;
	char pin[PIN_SIZE];
	token_make(token);
	must(pki_key_generate(&key, &error), &error);
	pki_key_pin(key, pin);
	const struct control_join_request request = {
		.token = token,
		.machine_key = pin,
		.smbios_uuid = "",
		.hostname = "node-1",
		.boot_id = "boot",
		.issue = issue,
		.issue_context = &(struct issue){key},
	};
	must(control_join(&control, &request, &joined, &error), &error);
	must(pki_key_to_pem(key, &key_pem, &error), &error);
	str_copy(programs.node_id, sizeof programs.node_id, joined.node);
	bcd_prepare(joined.node, joined.certificate, buf_text(&key_pem));
	control_joined_deinit(&joined);
}

static void gpus_put(void)
{
	CLEANUP(buf) struct buf text = {0};
	buf_add_text(&text, "version = 1\ndriver = \"580.65.06\"\n"
			    "nodes = { prefix = \"/dev/nvidia\", base = 0 }\n");
	for (int i = 0; i < 4; i++)
		buf_printf(&text,
			   "[[gpus]]\nuuid = \"GPU-0000000%d-0000-4000-8000-000000000000\"\n"
			   "model = \"H100\"\nmemory_mib = 81920\npci = \"0000:0%d:00.0\"\n"
			   "numa = %d\nminor = %d\nslots = 2\n",
			   i, i + 1, i / 2, i);
	sim_fs_put(NODE_GPUS, buf_text(&text));
}

static void folder_empty(const char *folder, const char *prefix)
{
	struct durable_names names = {0};
	struct error error;
	must(durable_list(folder, 4096, &names, &error), &error);
	for (size_t i = 0; i < names.count; i++) {
		CLEANUP(buf) struct buf path = {0};
		buf_printf(&path, "%s/%s", folder, names.names[i]);
		if (str_starts(names.names[i], prefix))
			must(durable_remove(buf_text(&path), &error), &error);
	}
	durable_names_deinit(&names);
}

void programs_join_anew(void)
{
	sim_process_kill(&programs.bcd, SIM_KILLED);
	folder_empty(NODE_DATA, "");
	folder_empty(NODE_CDI, "bcd.dev-");
	json_decref(programs_call(control_node_retire, programs.node_id,
				  json_pack("{s:b}", "lost", 1)));
	node_join();
	sim_fs_sync();
}

static void process_begin(struct sim_process *process)
{
	process->died = on_died;
	sim_process_add(process);
	sim_process_start(process);
}

static void replicas_prepare(int replicas)
{
	static const char *const names[] = {"control", "control2"};
	static const char *const servers[] = {"server", "server2"};
	programs.replicas = replicas;
	for (int i = 0; i < replicas; i++) {
		programs.servers[i] = (struct sim_machine){.name = servers[i], .boot = 1};
		control_prepare(&programs.control[i], i);
		programs.control[i].name = names[i];
		programs.control[i].machine = &programs.servers[i];
	}
	sim.clock = &programs.servers[0];
}

void programs_begin(int replicas)
{
	struct error error;
	programs = (struct programs){
		/* up for long: what an earlier boot's clock said is far from what the next one's does */
		.node = {.name = "node", .boot = 1, .booted_ms = -UPTIME_MS, .has_disk = true},
		.bcd = {.name = "bcd", .start = bcd_start, .destroy = bcd_destroy},
		.kubelet = {.name = "kubelet"},
	};
	kubelet_prepare(&programs.kubelet);
	programs.bcd.machine = programs.kubelet.machine = &programs.node;
	replicas_prepare(replicas);
	must(pki_folder_init(PKI_FOLDER, clock_wall(), &error), &error);
	must(pki_folder_load(PKI_FOLDER, &disk.pki, &error), &error);
	database_make();
	pool_make();
	node_join();
	gpus_put();
	sim_fs_sync();
	for (int i = 0; i < replicas; i++)
		process_begin(&programs.control[i]);
	process_begin(&programs.kubelet);
	process_begin(&programs.bcd);
}

void programs_end(void)
{
	backup_drop();
	kubelet_end();
	database_close();
	pki_folder_deinit(&disk.pki);
	disk.pki = (struct pki_folder){0};
}
