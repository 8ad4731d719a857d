#include "serve/metrics.h"

#include "control/metrics.h"

#define OTHER "other"

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

/* --- text --- */

static void begin(struct buf *text, const char *name, const char *type, const char *help)
{
	buf_printf(text, "# HELP better_compute_%s %s\n# TYPE better_compute_%s %s\n", name, help,
		   name, type);
}

static void add(struct buf *text, const char *name, int64_t value)
{
	buf_printf(text, "better_compute_%s %lld\n", name, (long long)value);
}

static void gauge(struct buf *text, const char *name, const char *help, int64_t value)
{
	begin(text, name, "gauge", help);
	add(text, name, value);
}

/* Microseconds as seconds, without a floating point number in between. */
static void add_seconds(struct buf *text, int64_t us)
{
	buf_printf(text, "%lld.%06lld", (long long)(us / 1000000), (long long)(us % 1000000));
}

/* `labels` are written by us alone and need no escapes. */
static void add_histogram(struct buf *text, const char *name, const char *labels,
			  const struct histogram *histogram)
{
	uint64_t count = 0;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		count += histogram->counts[i];
		buf_printf(text, "better_compute_%s_bucket{%s,le=\"", name, labels);
		if (i < HISTOGRAM_BUCKETS - 1)
			add_seconds(text, HISTOGRAM_BOUNDS_US[i]);
		else
			buf_add_text(text, "+Inf");
		buf_printf(text, "\"} %llu\n", (unsigned long long)count);
	}
	buf_printf(text, "better_compute_%s_sum{%s} ", name, labels);
	add_seconds(text, (int64_t)histogram->sum_us);
	buf_printf(text, "\nbetter_compute_%s_count{%s} %llu\n", name, labels,
		   (unsigned long long)count);
}

/* --- the process --- */

static void add_codes(struct buf *text, const struct route_figures *figures)
{
	for (size_t i = 0; i < figures->codes_count; i++)
		buf_printf(text,
			   "better_compute_http_requests_total{method=\"%s\",route=\"%s\","
			   "code=\"%d\"} %llu\n",
			   figures->method, figures->route, figures->codes[i].status,
			   (unsigned long long)figures->codes[i].count);
}

static void add_took(struct buf *text, const struct route_figures *figures)
{
	char labels[256];

	if (figures->codes_count == 0)
		return;
	snprintf(labels, sizeof labels, "method=\"%s\",route=\"%s\"", figures->method,
		 figures->route);
	add_histogram(text, "http_request_duration_seconds", labels, &figures->took);
}

static void add_requests(const struct metrics *metrics, struct buf *text)
{
	begin(text, "http_requests_total", "counter", "Answers of the HTTP API.");
	for (size_t i = 0; i < metrics->routes_count; i++)
		add_codes(text, metrics->routes[i]);
	add_codes(text, &metrics->other);
	begin(text, "http_request_duration_seconds", "histogram",
	      "From a request's headers to its answer.");
	for (size_t i = 0; i < metrics->routes_count; i++)
		add_took(text, metrics->routes[i]);
	add_took(text, &metrics->other);
}

static void add_store(const struct store *store, struct buf *text)
{
	static const char *const modes[] = {[STORE_READ] = "read", [STORE_WRITE] = "write"};
	struct store_stats stats[ARRAY_SIZE(modes)];
	char labels[32];

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		store_stats_read(store, (enum store_mode)i, &stats[i]);
	begin(text, "database_transactions_total", "counter",
	      "Transactions of the database, retries not counted apart.");
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		buf_printf(text,
			   "better_compute_database_transactions_total{mode=\"%s\","
			   "result=\"committed\"} %llu\n"
			   "better_compute_database_transactions_total{mode=\"%s\","
			   "result=\"failed\"} %llu\n",
			   modes[i], (unsigned long long)stats[i].committed, modes[i],
			   (unsigned long long)stats[i].failed);
	begin(text, "database_retries_total", "counter",
	      "Transactions that ran again because another one was first.");
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		buf_printf(text, "better_compute_database_retries_total{mode=\"%s\"} %llu\n",
			   modes[i], (unsigned long long)stats[i].retries);
	begin(text, "database_transaction_duration_seconds", "histogram",
	      "From a transaction's begin to its commit, retries included.");
	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		snprintf(labels, sizeof labels, "mode=\"%s\"", modes[i]);
		add_histogram(text, "database_transaction_duration_seconds", labels,
			      &stats[i].took);
	}
	gauge(text, "database_schema_version", "The schema's version.",
	      store_schema_version(store));
}

static void add_certificates(const struct metrics_process *process, struct buf *text)
{
	const struct {
		const char *name;
		struct wall end;
	} rows[] = {
		{"gateway", process->gateway_end},
		{"node-ca", process->node_ca_end},
		{"serving-ca", process->serving_ca_end},
	};

	begin(text, "certificate_expiry_timestamp_seconds", "gauge",
	      "When a certificate of the control plane ends, as Unix time.");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (rows[i].end.ms != 0)
			buf_printf(text,
				   "better_compute_certificate_expiry_timestamp_seconds{"
				   "certificate=\"%s\"} %lld\n",
				   rows[i].name, (long long)(rows[i].end.ms / 1000));
	}
}

void metrics_add_process(const struct metrics *metrics, const struct metrics_process *process,
			 struct buf *text)
{
	begin(text, "build_info", "gauge", "The version that runs.");
	buf_printf(text, "better_compute_build_info{version=\"%s\"} 1\n", BC_VERSION);
	gauge(text, "ready", "Whether /readyz says so, the database aside.",
	      str_equal(process->state, "ready"));
	add_requests(metrics, text);
	gauge(text, "gateway_streams", "Streams of nodes that this replica holds.",
	      (int64_t)process->streams);
	gauge(text, "worker_jobs", "Jobs that are queued, running or on their way back.",
	      (int64_t)process->jobs);
	gauge(text, "worker_jobs_max", "How many jobs there is room for.",
	      (int64_t)process->jobs_max);
	gauge(text, "outbox_seen_sequence", "How far this replica has read the outbox.",
	      process->outbox_end);
	begin(text, "passes_total", "counter", "The leader's passes tried by this replica.");
	add(text, "passes_total", process->passes);
	begin(text, "pass_failures_total", "counter", "Those of them that failed.");
	add(text, "pass_failures_total", process->failures);
	add_certificates(process, text);
	if (process->store)
		add_store(process->store, text);
}

/* --- the fleet --- */

static void add_counts(struct buf *text, const char *name, const struct control_counts *counts)
{
	for (size_t i = 0; i < counts->count; i++)
		buf_printf(text, "better_compute_%s{state=\"%s\"} %lld\n", name,
			   counts->items[i].state, (long long)counts->items[i].count);
}

static void add_nodes(const struct control_counts *counts, struct buf *text)
{
	begin(text, "nodes", "gauge", "Nodes by state and by whether a stream is open.");
	for (size_t i = 0; i < counts->count; i++)
		buf_printf(text, "better_compute_nodes{state=\"%s\",connected=\"%s\"} %lld\n",
			   counts->items[i].state, counts->items[i].connected ? "true" : "false",
			   (long long)counts->items[i].count);
}

void metrics_add_fleet(const struct control_metrics *fleet, struct buf *text)
{
	gauge(text, "database_up", "Whether the database answers.", fleet != NULL);
	if (!fleet)
		return;
	add_nodes(&fleet->nodes, text);
	begin(text, "reservations", "gauge",
	      "Reservations by state, those that are over included.");
	add_counts(text, "reservations", &fleet->reservations);
	begin(text, "allocations", "gauge", "Parts of reservations on nodes, by state.");
	add_counts(text, "allocations", &fleet->allocations);
	gauge(text, "releases_overdue", "Releases asked for five minutes ago and not done.",
	      fleet->releases_overdue);
	gauge(text, "pools", "Pools that are active.", fleet->pools);
	gauge(text, "gpus", "GPUs of nodes that are neither lost nor retired.", fleet->gpus);
	gauge(text, "gpus_healthy", "Those of them that are healthy.", fleet->gpus_healthy);
	gauge(text, "gpus_taken", "GPUs that are booked now, in whole or in part.",
	      fleet->gpus_taken);
	gauge(text, "leader", "Whether this replica does the leader's work.", fleet->leads);
	gauge(text, "leader_fence", "Grows with each new leader.", fleet->lease_fence);
	begin(text, "leader_lease_seconds", "gauge",
	      "What is left of the leader's lease, whoever holds it.");
	buf_printf(text, "better_compute_leader_lease_seconds %lld.%03lld\n",
		   (long long)(fleet->lease_left_ms / 1000),
		   (long long)(fleet->lease_left_ms % 1000));
	gauge(text, "outbox_sequence", "The newest change of a node's Spec.", fleet->outbox_last);
}
