#include "serve/metrics.h"

#include "control/metrics.h"
#include "text/exposition.h"

#define OTHER  "other"
#define PREFIX "better_compute_"

/* One method of one route. */
struct route_figures {
	const char *method, *route;
	struct {
		int status;
		uint64_t count;
	} codes[METRICS_MAX_CODES];
	size_t codes_count;
	struct histogram took;
};

struct metrics {
	struct route_figures *routes[METRICS_MAX_ROUTES];
	size_t routes_count;
	struct route_figures other;
};

/* --- requests --- */

struct metrics *metrics_create(void)
{
	struct metrics *metrics = mem_alloc(sizeof *metrics);

	metrics->other.method = metrics->other.route = OTHER;
	return metrics;
}

void metrics_destroy(struct metrics *metrics)
{
	if (!metrics)
		return;
	for (size_t i = 0; i < metrics->routes_count; i++)
		free(metrics->routes[i]);
	free(metrics);
}

static struct route_figures *figures_of(struct metrics *metrics, const char *method,
					const char *route)
{
	struct route_figures *figures;

	if (!method || !route)
		return &metrics->other;
	for (size_t i = 0; i < metrics->routes_count; i++) {
		figures = metrics->routes[i];
		if (str_equal(figures->route, route) && str_equal(figures->method, method))
			return figures;
	}
	if (metrics->routes_count == METRICS_MAX_ROUTES)
		return &metrics->other;
	figures = mem_alloc(sizeof *figures);
	figures->method = method;
	figures->route = route;
	metrics->routes[metrics->routes_count++] = figures;
	return figures;
}

void metrics_count_request(struct metrics *metrics, const char *method, const char *route,
			   int status, int64_t took_us)
{
	struct route_figures *figures = figures_of(metrics, method, route);
	size_t i = 0;

	histogram_add(&figures->took, took_us);
	while (i < figures->codes_count && figures->codes[i].status != status)
		i++;
	if (i == METRICS_MAX_CODES)
		i--;
	else if (i == figures->codes_count)
		figures->codes[figures->codes_count++].status = status;
	figures->codes[i].count++;
}

/* --- the process --- */

static void add_codes(struct exposition *out, const struct route_figures *figures)
{
	char labels[256];

	for (size_t i = 0; i < figures->codes_count; i++) {
		snprintf(labels, sizeof labels, "method=\"%s\",route=\"%s\",code=\"%d\"",
			 figures->method, figures->route, figures->codes[i].status);
		exposition_add(out, labels, (int64_t)figures->codes[i].count);
	}
}

static void add_took(struct exposition *out, const struct route_figures *figures)
{
	char labels[256];

	if (figures->codes_count == 0)
		return;
	snprintf(labels, sizeof labels, "method=\"%s\",route=\"%s\"", figures->method,
		 figures->route);
	exposition_add_histogram(out, labels, &figures->took);
}

static void add_requests(const struct metrics *metrics, struct exposition *out)
{
	exposition_family(out, "http_requests_total", "counter", "Answers of the HTTP API.");
	for (size_t i = 0; i < metrics->routes_count; i++)
		add_codes(out, metrics->routes[i]);
	add_codes(out, &metrics->other);
	exposition_family(out, "http_request_duration_seconds", "histogram",
			  "From a request's headers to its answer.");
	for (size_t i = 0; i < metrics->routes_count; i++)
		add_took(out, metrics->routes[i]);
	add_took(out, &metrics->other);
}

static void add_store(const struct store *store, struct exposition *out)
{
	static const struct {
		const char *mode, *committed, *failed;
	} rows[] = {
		[STORE_READ] = {"mode=\"read\"", "mode=\"read\",result=\"committed\"",
				"mode=\"read\",result=\"failed\""},
		[STORE_WRITE] = {"mode=\"write\"", "mode=\"write\",result=\"committed\"",
				 "mode=\"write\",result=\"failed\""},
	};
	struct store_stats stats[ARRAY_SIZE(rows)];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		store_stats_read(store, (enum store_mode)i, &stats[i]);
	exposition_family(out, "database_transactions_total", "counter",
			  "Transactions of the database, retries not counted apart.");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		exposition_add(out, rows[i].committed, (int64_t)stats[i].committed);
		exposition_add(out, rows[i].failed, (int64_t)stats[i].failed);
	}
	exposition_family(out, "database_retries_total", "counter",
			  "Transactions that ran again because another one was first.");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		exposition_add(out, rows[i].mode, (int64_t)stats[i].retries);
	exposition_family(out, "database_transaction_duration_seconds", "histogram",
			  "From a transaction's begin to its commit, retries included.");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		exposition_add_histogram(out, rows[i].mode, &stats[i].took);
	exposition_gauge(out, "database_schema_version", "The schema's version.",
			 store_schema_version(store));
}

static void add_certificates(const struct metrics_process *process, struct exposition *out)
{
	const struct {
		const char *labels;
		struct wall end;
	} rows[] = {
		{"certificate=\"gateway\"", process->gateway_end},
		{"certificate=\"node-ca\"", process->node_ca_end},
		{"certificate=\"serving-ca\"", process->serving_ca_end},
	};

	exposition_family(out, "certificate_expiry_timestamp_seconds", "gauge",
			  "When a certificate of the control plane ends, as Unix time.");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].end.ms != 0)
			exposition_add(out, rows[i].labels, rows[i].end.ms / 1000);
}

void metrics_add_process(const struct metrics *metrics, const struct metrics_process *process,
			 struct buf *text)
{
	struct exposition to = {.text = text, .prefix = PREFIX}, *out = &to;

	exposition_family(out, "build_info", "gauge", "The version that runs.");
	exposition_add(out, "version=\"" BC_VERSION "\"", 1);
	exposition_gauge(out, "ready", "Whether /readyz says so, the database aside.",
			 str_equal(process->state, "ready"));
	add_requests(metrics, out);
	exposition_gauge(out, "gateway_streams", "Streams of nodes that this replica holds.",
			 (int64_t)process->streams);
	exposition_gauge(out, "worker_jobs", "Jobs that are queued, running or on their way back.",
			 (int64_t)process->jobs);
	exposition_gauge(out, "worker_jobs_max", "How many jobs there is room for.",
			 (int64_t)process->jobs_max);
	exposition_gauge(out, "outbox_seen_sequence", "How far this replica has read the outbox.",
			 process->outbox_end);
	exposition_counter(out, "passes_total", "The leader's passes tried by this replica.",
			   process->passes);
	exposition_counter(out, "pass_failures_total", "Those of them that failed.",
			   process->failures);
	add_certificates(process, out);
	if (process->store)
		add_store(process->store, out);
}

/* --- the fleet --- */

static void add_counts(struct exposition *out, const struct control_counts *counts)
{
	char labels[128];

	for (size_t i = 0; i < counts->count; i++) {
		snprintf(labels, sizeof labels, "state=\"%s\"", counts->items[i].state);
		exposition_add(out, labels, (int64_t)counts->items[i].count);
	}
}

static void add_nodes(struct exposition *out, const struct control_counts *counts)
{
	char labels[128];

	exposition_family(out, "nodes", "gauge", "Nodes by state and by whether a stream is open.");
	for (size_t i = 0; i < counts->count; i++) {
		snprintf(labels, sizeof labels, "state=\"%s\",connected=\"%s\"",
			 counts->items[i].state, counts->items[i].connected ? "true" : "false");
		exposition_add(out, labels, (int64_t)counts->items[i].count);
	}
}

void metrics_add_fleet(const struct control_metrics *fleet, struct buf *text)
{
	struct exposition to = {.text = text, .prefix = PREFIX}, *out = &to;

	exposition_gauge(out, "database_up", "Whether the database answers.", fleet != NULL);
	if (!fleet)
		return;
	add_nodes(out, &fleet->nodes);
	exposition_family(out, "reservations", "gauge",
			  "Reservations by state, those that are over included.");
	add_counts(out, &fleet->reservations);
	exposition_family(out, "allocations", "gauge", "Parts of reservations on nodes, by state.");
	add_counts(out, &fleet->allocations);
	exposition_gauge(out, "releases_overdue",
			 "Releases asked for five minutes ago and not done.",
			 fleet->releases_overdue);
	exposition_gauge(out, "pools", "Pools that are active.", fleet->pools);
	exposition_gauge(out, "gpus", "GPUs of nodes that are neither lost nor retired.",
			 fleet->gpus);
	exposition_gauge(out, "gpus_healthy", "Those of them that are healthy.",
			 fleet->gpus_healthy);
	exposition_gauge(out, "gpus_taken", "GPUs that are booked now, in whole or in part.",
			 fleet->gpus_taken);
	exposition_gauge(out, "leader", "Whether this replica does the leader's work.",
			 fleet->leads);
	exposition_gauge(out, "leader_fence", "Grows with each new leader.", fleet->lease_fence);
	exposition_family(out, "leader_lease_seconds", "gauge",
			  "What is left of the leader's lease, whoever holds it.");
	exposition_add_scaled(out, NULL, fleet->lease_left_ms, -3);
	exposition_gauge(out, "outbox_sequence", "The newest change of a node's Spec.",
			 fleet->outbox_last);
}
