/*
 * load --program BETTER-COMPUTE --nodes N --seconds S --dir DIR [--database URL] [--workers N]
 *
 * One control plane, N machines with 8 GPUs each on real TLS streams, and clients of its API. Prints
 * a line a phase: calls as p50 / p99 in ms, in the order of clients.h. DIR must be empty or absent.
 */
#include "control/control.h"
#include "load/clients.h"
#include "load/fleet.h"
#include "pki/folder.h"
#include "serve/issue.h"
#include "store/store.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SERVER_NAME "gateway.better-compute.internal"
#define MAX_FILE    ((size_t)64 << 10)
#define STEP_MS     50

struct run {
	const char *program, *dir, *database, *workers;
	size_t nodes;
	int seconds;
	char home[512], url[600], ready[600], key_file[600];
	char *key;
	char tenant[ID_SIZE], pool[ID_SIZE];
	struct pki_folder pki;
	struct pki_pins pins;
	struct fleet_identity *identities;
	pid_t serve;
	char gateway[128];
	int port, gateway_port;
	struct loop *loop;
	struct fleet *fleet;
	struct fleet_counts *counts;
	struct loop_timer *step;
	/* what is waited for in the loop */
	bool (*until)(struct run *run);
	int64_t until_us;
};

static void must(bool ok, const struct error *error)
{
	if (ok)
		return;
	fprintf(stderr, "load: %s\n", error->what);
	exit(1);
}

/* --- the control plane as a child --- */

static pid_t spawn(char *const argv[])
{
	pid_t pid = fork();
	int null;

	if (pid != 0)
		return pid;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(null, 0);
	dup2(null, 2);
	execv(argv[0], argv);
	_exit(127);
}

static char *text_of(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void init_home(struct run *run)
{
	char *const argv[] = {text_of(run->program),
			      text_of("serve"),
			      text_of("--init"),
			      text_of("--home"),
			      run->home,
			      text_of("--database"),
			      run->url,
			      text_of("--key-out"),
			      run->key_file,
			      NULL};
	struct buf key = {0};
	struct error error;
	int status;

	waitpid(spawn(argv), &status, 0);
	must(durable_read(run->key_file, MAX_FILE, &key, &error), &error);
	run->key = mem_strdup(buf_text(&key));
	run->key[strcspn(run->key, "\n")] = '\0';
	buf_deinit(&key);
}

static void read_ready(struct run *run)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *ready = NULL;
	struct error error;
	const char *api, *gateway;

	while (!durable_read(run->ready, MAX_FILE, &text, &error)) {
		if (waitpid(run->serve, NULL, WNOHANG) != 0) {
			fprintf(stderr, "load: serve ended\n");
			exit(1);
		}
		usleep(20000);
	}
	must(tree_parse(text.data, text.length, MAX_FILE, "ready file", &ready, &error), &error);
	api = json_string_value(json_object_get(ready, "api"));
	gateway = json_string_value(json_object_get(ready, "gateway"));
	run->port = (int)strtol(strrchr(api, ':') + 1, NULL, 10);
	run->gateway_port = (int)strtol(strrchr(gateway, ':') + 1, NULL, 10);
	str_copy(run->gateway, sizeof run->gateway, gateway);
}

/* Again on the same ports, as a service manager would. */
static void start_serve(struct run *run)
{
	char listen[64], gateway[64];
	char *const argv[] = {text_of(run->program),
			      text_of("serve"),
			      text_of("--home"),
			      run->home,
			      text_of("--database"),
			      run->url,
			      text_of("--listen"),
			      listen,
			      text_of("--gateway-listen"),
			      gateway,
			      text_of("--ready-file"),
			      run->ready,
			      text_of("--key-rate"), /* one key asks for all */
			      text_of("0"),
			      text_of("--workers"),
			      text_of(run->workers),
			      NULL};
	struct error error;

	snprintf(listen, sizeof listen, "127.0.0.1:%d", run->port);
	snprintf(gateway, sizeof gateway, "127.0.0.1:%d", run->gateway_port);
	must(durable_remove(run->ready, &error), &error);
	run->serve = spawn(argv);
	read_ready(run);
}

/* --- machines join, without a network in between --- */

struct issuing {
	struct run *run;
	struct pki_key *key;
};

static bool issue(void *context, const char *node, enum control_trust trust, struct wall now,
		  char **ret_certificate, struct error *error)
{
	const struct issuing *issuing = context;
	struct buf pem = {0};

	if (!issue_node(&issuing->run->pki, issuing->key, node, trust, now, &pem, error))
		return false;
	*ret_certificate = buf_take_text(&pem);
	return true;
}

static json_t *call(struct control *control, const struct control_principal *principal,
		    bool (*function)(struct control *, const struct control_call *, json_t **,
				     struct error *),
		    json_t *body)
{
	const struct control_call asked = {.principal = principal, .body = body};
	json_t *answer = NULL;
	struct error error;

	must(function(control, &asked, &answer, &error), &error);
	json_decref(body);
	return answer;
}

static void take_id(char out[ID_SIZE], json_t *answer)
{
	str_copy(out, ID_SIZE, json_string_value(json_object_get(answer, "id")));
	json_decref(answer);
}

static void join_one(struct run *run, struct control *control, const char *token,
		     struct fleet_identity *ret_identity)
{
	struct issuing issuing = {.run = run};
	struct control_joined joined = {0};
	struct buf pem = {0};
	char pin[PIN_SIZE];
	struct error error;

	must(pki_key_generate(&issuing.key, &error), &error);
	must(pki_key_to_pem(issuing.key, &pem, &error), &error);
	pki_key_pin(issuing.key, pin);
	must(control_join(control,
			  &(struct control_join_request){.token = token,
							 .machine_key = pin,
							 .hostname = "load",
							 .boot_id = "b",
							 .issue = issue,
							 .issue_context = &issuing},
			  &joined, &error),
	     &error);
	str_copy(ret_identity->node, sizeof ret_identity->node, joined.node);
	ret_identity->certificate_pem = mem_strdup(joined.certificate);
	ret_identity->key_pem = buf_take_text(&pem);
	control_joined_deinit(&joined);
	pki_key_destroy(issuing.key);
}

static char *make_token(struct run *run, struct control *control,
			const struct control_principal *principal)
{
	json_t *answer = call(
		control, principal, control_join_token_create,
		json_pack("{s:s, s:i, s:s}", "poolId", run->pool, "maxUses", 1000, "ttl", "1h"));
	char *token = mem_strdup(json_string_value(json_object_get(answer, "token")));

	json_decref(answer);
	return token;
}

static void load_pki(struct run *run, const char *path)
{
	struct error error;

	must(pki_folder_load(path, &run->pki, &error), &error);
	pki_folder_pins(&run->pki, &run->pins);
}

static void join_all(struct run *run)
{
	struct control_principal principal = {0};
	struct control control = {.replica = "rep_load"};
	struct store *store;
	char site[ID_SIZE], *token = NULL;
	struct error error;

	must(store_open(run->url, &store, &error), &error);
	must(store_connect(store, &control.connection, &error), &error);
	must(control_authenticate(&control, run->key, &principal, &error), &error);
	str_copy(run->tenant, sizeof run->tenant, principal.tenant);
	take_id(site, call(&control, &principal, control_site_create,
			   json_pack("{s:s, s:s, s:s}", "tenantId", run->tenant, "name", "home",
				     "kind", "platform")));
	take_id(run->pool,
		call(&control, &principal, control_pool_create,
		     json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:{s:b}}}", "tenantId", run->tenant,
			       "siteId", site, "name", "h100", "class", "metal-host", "gpuModel",
			       "H100", "policy", "kubernetes", "platformOperated", 1)));
	run->identities = mem_alloc(run->nodes * sizeof *run->identities);
	for (size_t i = 0; i < run->nodes; i++) {
		if (i % 1000 == 0) {
			free(token);
			token = make_token(run, &control, &principal);
		}
		join_one(run, &control, token, &run->identities[i]);
	}
	free(token);
	store_disconnect(control.connection);
	store_destroy(store);
}

/* Ten thousand joins are as many syncs of the disk, and nothing that is measured here: they are made
 * in memory, and the file is then put where it is measured. */
static void fill_database(struct run *run)
{
	char fast[64], url[600], path[600];
	char *const argv[] = {text_of("/bin/cp"), fast, path, NULL};
	int status;

	snprintf(fast, sizeof fast, "/dev/shm/bc-load-%d.db", (int)getpid());
	memcpy(url, run->url, sizeof url);
	if (!run->database)
		snprintf(run->url, sizeof run->url, "sqlite:%s", fast);
	init_home(run);
	snprintf(path, sizeof path, "%s/pki", run->home);
	load_pki(run, path);
	join_all(run);
	if (run->database)
		return;
	memcpy(run->url, url, sizeof url);
	snprintf(path, sizeof path, "%s", run->url + strlen("sqlite:"));
	waitpid(spawn(argv), &status, 0);
	unlink(fast);
	memcpy(fast + strlen(fast), ".lock", sizeof ".lock");
	unlink(fast);
	if (status != 0)
		exit(1);
}

/* --- waiting in the loop --- */

static void on_step(void *arg)
{
	struct run *run = arg;

	if ((run->until && run->until(run)) || clock_us() >= run->until_us)
		loop_stop(run->loop);
	else
		loop_timer_start(run->step, STEP_MS);
}

/* Seconds until it was so, or -1. */
static double turn(struct run *run, bool (*until)(struct run *run), double most_s)
{
	int64_t began = clock_us();

	run->until = until;
	run->until_us = began + (int64_t)(most_s * 1e6);
	loop_timer_start(run->step, 0);
	loop_run(run->loop);
	return until && !until(run) ? -1 : (double)(clock_us() - began) / 1e6;
}

static bool all_ready(struct run *run)
{
	return run->counts->ready == run->nodes;
}

static bool none_ready(struct run *run)
{
	return run->counts->welcomed == 0;
}

/* --- what the control plane takes --- */

static long field_kib(pid_t pid, const char *file, const char *name)
{
	char path[64], line[256];
	long kib = 0;
	FILE *in;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
	in = fopen(path, "r");
	while (in && fgets(line, sizeof line, in)) {
		if (str_starts(line, name))
			kib = strtol(line + strlen(name), NULL, 10);
	}
	if (in)
		fclose(in);
	return kib;
}

static double cpu_seconds(pid_t pid)
{
	char path[64], line[1024] = "";
	unsigned long user = 0, kernel = 0;
	FILE *in;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	in = fopen(path, "r");
	if (in && fgets(line, sizeof line, in))
		sscanf(strrchr(line, ')') + 2,
		       "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel);
	if (in)
		fclose(in);
	return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

/* --- the phases --- */

static struct clients_result ask_api(struct run *run, int threads, bool only_reserve, int pause_us)
{
	struct clients_result result;
	struct clients *clients = clients_start(&(struct clients_options){
		.port = run->port,
		.key = run->key,
		.tenant = run->tenant,
		.pool = run->pool,
		.threads = threads,
		.only_reserve = only_reserve,
		.pause_us = pause_us,
	});

	(void)turn(run, NULL, run->seconds);
	clients_stop(clients, &result);
	return result;
}

static void print_calls(const char *title, const struct clients_result *result)
{
	printf("| %s |", title);
	for (size_t call = 0; call < CLIENT_CALLS; call++)
		printf(" %.1f / %.1f |", result->p50_ms[call], result->p99_ms[call]);
	printf(" %ld failed, %ld not placed at once |\n", result->failures, result->unplaced);
}

static void measure(struct run *run)
{
	long before = field_kib(run->serve, "smaps_rollup", "Private_Dirty:"), after;
	double connected, back, idle_cpu, busy_cpu, own_cpu;
	struct clients_result flat, mixed;
	char title[64];

	run->fleet = fleet_create(run->loop, run->gateway, SERVER_NAME, run->pins.gateway_ca);
	run->counts = fleet_counts(run->fleet);
	for (size_t i = 0; i < run->nodes; i++)
		fleet_add(run->fleet, &run->identities[i]);
	fleet_start(run->fleet);
	connected = turn(run, all_ready, 600);
	(void)turn(run, NULL, 12); /* each has sent a heartbeat */
	after = field_kib(run->serve, "smaps_rollup", "Private_Dirty:");
	idle_cpu = cpu_seconds(run->serve);
	(void)turn(run, NULL, 10);
	idle_cpu = cpu_seconds(run->serve) - idle_cpu;
	printf("| nodes %zu | first connect %.1f s | %.1f KiB a node (%ld MiB in all) | idle CPU "
	       "%.0f %% of a core |\n",
	       run->nodes, connected, (double)(after - before) / (double)run->nodes, after / 1024,
	       idle_cpu * 10);
	fflush(stdout);

	busy_cpu = cpu_seconds(run->serve);
	flat = ask_api(run, 8, true, 0);
	busy_cpu = cpu_seconds(run->serve) - busy_cpu;
	printf("| nodes %zu | reservations %.0f/s, each released again; CPU of serve for one "
	       "%.2f ms |\n",
	       run->nodes, (double)flat.calls[CLIENT_RESERVE] / flat.seconds,
	       busy_cpu * 1000 / (double)flat.calls[CLIENT_RESERVE]);
	print_calls("8 clients without a pause", &flat);
	fflush(stdout);

	fleet_churn(run->fleet, (run->nodes + 99) / 100);
	(void)turn(run, NULL, 3);
	mixed = ask_api(run, 1, false, 5000);
	snprintf(title, sizeof title, "nodes %zu, 1 %% change a second, 1 client", run->nodes);
	print_calls(title, &mixed);
	fleet_churn(run->fleet, 0);
	fflush(stdout);

	kill(run->serve, SIGKILL);
	waitpid(run->serve, NULL, 0);
	(void)turn(run, none_ready, 60);
	own_cpu = cpu_seconds(getpid());
	start_serve(run);
	back = turn(run, all_ready, 600);
	printf("| nodes %zu | after kill -9: all back in %.1f s; serve took %.1f s of CPU for it, "
	       "the "
	       "machines %.1f s |\n",
	       run->nodes, back, cpu_seconds(run->serve), cpu_seconds(getpid()) - own_cpu);
	fflush(stdout);
}

static void read_arguments(struct run *run, int argc, char **argv)
{
	static const struct option options[] = {
		{"program", required_argument, NULL, 'p'},
		{"nodes", required_argument, NULL, 'n'},
		{"seconds", required_argument, NULL, 's'},
		{"dir", required_argument, NULL, 'd'},
		{"database", required_argument, NULL, 'u'},
		{"workers", required_argument, NULL, 'w'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (option == 'p')
			run->program = optarg;
		else if (option == 'n')
			run->nodes = strtoul(optarg, NULL, 10);
		else if (option == 's')
			run->seconds = (int)strtol(optarg, NULL, 10);
		else if (option == 'd')
			run->dir = optarg;
		else if (option == 'u')
			run->database = optarg;
		else if (option == 'w')
			run->workers = optarg;
		else
			exit(2);
	}
	if (!run->program || !run->dir || run->nodes == 0) {
		fprintf(stderr, "load: --program, --nodes and --dir are needed\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct run run = {.seconds = 10, .workers = "2"};
	struct rlimit limit;
	struct error error;

	read_arguments(&run, argc, argv);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	snprintf(run.home, sizeof run.home, "%s/home", run.dir);
	snprintf(run.ready, sizeof run.ready, "%s/ready", run.dir);
	snprintf(run.key_file, sizeof run.key_file, "%s/key", run.dir);
	if (run.database)
		str_copy(run.url, sizeof run.url, run.database);
	else
		snprintf(run.url, sizeof run.url, "sqlite:%s/control.db", run.dir);
	must(durable_make_folder(run.dir, 0700, &error), &error);
	fill_database(&run);
	start_serve(&run);
	run.loop = loop_create();
	run.step = loop_timer_create(run.loop, on_step, &run);
	measure(&run);
	kill(run.serve, SIGTERM);
	waitpid(run.serve, NULL, 0);
	fleet_destroy(run.fleet);
	loop_timer_destroy(run.step);
	return 0; /* the loop goes with the process */
}
