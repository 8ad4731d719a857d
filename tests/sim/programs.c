#include "sim/programs.h"

#include "pki/cert.h"
#include "pki/folder.h"
#include "pki/keys.h"
#include "rpc/tls.h"
#include "serve/gateway.h"
#include "serve/issue.h"
#include "serve/passes.h"
#include "serve/workers.h"
#include "sim/sim_fs.h"
#include "standin/standin.h"
#include "store/store.h"
#include "sys/clock.h"
#include "sys/random.h"

#include <stdio.h>

#define PKI_FOLDER "/server-pki"

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

/* --- the kubelet --- */

static void kubelet_start(struct sim_process *process UNUSED)
{
	static const char *const cdi[] = {NODE_CDI};
	const struct standin_options options = {NODE_KUBELET, cdi, 1};
	struct loop *loop = loop_create();
	struct error error;
	if (!standin_create(loop, &options, &programs.standin, &error))
		programs.standin = NULL; /* it died of a crash point on the way */
}

static void kubelet_destroy(struct sim_process *process UNUSED)
{
	standin_destroy(TAKE(programs.standin));
}

/* --- the control plane: what serve.c puts together, but for the HTTP listener --- */

static struct {
	struct workers *workers;
	struct join_service *join;
	struct gateway *gateway;
	struct rpc_tls *tls;
	struct passes *passes;
} serve;

static struct control world_control(void)
{
	struct control control = {.connection = disk.connection};
	str_copy(control.replica, sizeof control.replica, "rep_world");
	return control;
}

static void on_look_again(void *arg UNUSED)
{
	passes_tick(serve.passes);
	passes_look(serve.passes);
}

static void control_start(struct sim_process *process UNUSED)
{
	static const struct gateway_handlers handlers = {on_look_again, NULL};
	struct loop *loop = loop_create();
	struct control control = world_control();
	struct control_outbox outbox = {0};
	struct error error;
	char replica[ID_SIZE];
	random_id(replica, "rep", clock_wall());
	must(workers_create(loop, disk.store, replica, 0, &serve.workers, &error), &error);
	must(control_outbox_poll(&control, -1, &outbox, &error), &error);
	serve.join = join_service_create(loop, serve.workers, &disk.pki);
	serve.gateway = gateway_create(loop, serve.workers, &disk.pki, serve.join, &handlers);
	serve.passes = passes_create(loop, serve.workers, serve.gateway, outbox.last);
	control_outbox_deinit(&outbox);
	must(rpc_tls_server_create(&(struct rpc_tls_server_options){0}, &serve.tls, &error),
	     &error);
	must(gateway_listen(serve.gateway, GATEWAY_ADDRESS, serve.tls, &error), &error);
}

static void control_destroy(struct sim_process *process UNUSED)
{
	workers_destroy(TAKE(serve.workers));
	passes_destroy(TAKE(serve.passes));
	gateway_destroy(TAKE(serve.gateway));
	join_service_destroy(TAKE(serve.join));
	rpc_tls_destroy(TAKE(serve.tls));
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

static void control_changed(void *arg UNUSED)
{
	passes_look(serve.passes);
}

json_t *programs_call(programs_call_fn *fn, const char *id, json_t *body)
{
	assert(programs.control.running);
	json_t *answer = call(fn, id, body);
	json_decref(body);
	sim_schedule(&programs.control, 0, control_changed, NULL);
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
	sim_process_kill(&programs.control, SIM_KILLED);
	database_close();
	database_open();
	database_run(STORE_WRITE, load_body);
	return true;
}

/* --- dying and coming back --- */

/* No machine boots while what it said in the boot before is still under way (sim_delay): the control
 * plane tells two boots it never heard of apart by who came last. */
#define BOOT_MS 1000

static void come_back(void *arg)
{
	struct sim_process *process = arg;
	if (!process->running)
		sim_process_start(process);
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

static void pool_make(char token[CONTROL_KEY_SIZE])
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
	make(control_join_token_create, json_pack("{s:s}", "poolId", programs.pool), "token", token,
	     CONTROL_KEY_SIZE);
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
static void node_join(const char *token)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(buf) struct buf key_pem = {0};
	struct control control = world_control();
	struct control_joined joined;
	struct error error;
	char pin[PIN_SIZE];
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

void programs_begin(void)
{
	struct error error;
	char token[CONTROL_KEY_SIZE];
	programs = (struct programs){
		.node = {.name = "node", .boot = 1, .has_disk = true},
		.server = {.name = "server", .boot = 1},
		.bcd = {.name = "bcd", .start = bcd_start, .destroy = bcd_destroy},
		.kubelet = {.name = "kubelet", .start = kubelet_start, .destroy = kubelet_destroy},
		.control = {.name = "control", .start = control_start, .destroy = control_destroy},
	};
	programs.bcd.machine = programs.kubelet.machine = &programs.node;
	programs.control.machine = &programs.server;
	struct sim_process *const all[] = {&programs.control, &programs.kubelet, &programs.bcd};
	must(pki_folder_init(PKI_FOLDER, clock_wall(), &error), &error);
	must(pki_folder_load(PKI_FOLDER, &disk.pki, &error), &error);
	database_make();
	pool_make(token);
	node_join(token);
	gpus_put();
	sim_fs_sync();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		all[i]->died = on_died;
		sim_process_add(all[i]);
		sim_process_start(all[i]);
	}
}

void programs_end(void)
{
	backup_drop();
	database_close();
	pki_folder_deinit(&disk.pki);
	disk.pki = (struct pki_folder){0};
}
