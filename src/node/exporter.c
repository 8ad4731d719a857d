#include "node/exporter.h"

#include "node/core/scrape.h"
#include "node/state.h"
#include "sys/log.h"
#include "sys/net.h"

/* One place to listen on. */
struct exporter_place {
	struct exporter *exporter;
	const char *at;                /* NULL: not asked for */
	struct net_listener *listener; /* NULL: not yet */
	bool failed;                   /* said once, until it works */
	size_t connections;
};

struct exporter_conn {
	struct exporter_place *place;
	struct net_conn *net;
	struct loop_timer *timer;
	struct buf request;
	bool answered;
};

struct exporter {
	struct node *node;
	struct exporter_place socket, tcp;
	char *socket_path;
	struct loop_timer *retry;
	VEC(struct exporter_conn *) conns;
	struct buf text; /* the metrics, as made at `made_at` */
	struct mono made_at;
};

/* --- what there is to say --- */

static int64_t oldest_release_ms(const struct node *node, struct mono now)
{
	int64_t oldest = 0;

	vec_each (&node->releases.entries, const struct release_entry *entry) {
		int64_t age = mono_until((struct mono){entry->since_boot_ms}, now);

		if (!entry->reported && age > oldest)
			oldest = age;
	}
	return oldest;
}

static size_t stuck_releases(const struct node *node)
{
	size_t stuck = 0;

	vec_each (&node->pending, const struct node_release *release)
		stuck += release->plan.stuck;
	return stuck;
}

struct holder_list VEC_BODY(struct exporter_holder);

static void list_holders(const struct node *node, struct holder_list *list)
{
	vec_each (&node->listing.holders, const struct holder *holder)
		if (holder->pod)
			*vec_push(list) = (struct exporter_holder){holder->id, holder->namespace,
								   holder->pod, holder->container};
}

struct xids_list VEC_BODY(struct exporter_xids);

static void list_xids(const struct node *node, struct xids_list *list)
{
	vec_each (&source_inventory(node->gpus)->gpus, const struct inventory_gpu *gpu) {
		const struct health_facts *facts = source_facts(node->gpus, gpu->uuid);
		struct exporter_xids *xids = vec_push(list);

		xids->last = source_last_xid(node->gpus, gpu->uuid);
		if (!facts)
			continue;
		xids->count = facts->xid_count;
		memcpy(xids->active, facts->xids, facts->xid_count * sizeof facts->xids[0]);
	}
}

/* Not of a file: it says nothing new until somebody changes it. */
static int64_t reading_age_ms(const struct node *node, struct mono now)
{
	if (!source_reading(node->gpus) || source_inventory(node->gpus)->simulated)
		return EXPORTER_UNKNOWN;
	return mono_until(source_read_at(node->gpus), now);
}

static void make_text(struct exporter *exporter, struct mono now)
{
	const struct node *node = exporter->node;
	const bool asks = node->holds.count > 0 || node->releases.entries.count > 0;
	struct holder_list holders = {0};
	struct xids_list xids = {0};
	struct exporter_view view = {
		.node = node->identity ? node->identity->node_id : "",
		.hostname = node->machine.hostname,
		.kubernetes_node = node->config->node_name,
		.api = node->config->gpu_api,
		.started = node->started,
		.inventory = source_inventory(node->gpus),
		.gpus_readable = !source_error(node->gpus),
		.source = source_name(node->gpus),
		/* what was measured before it stopped answering is no figure of now */
		.reading = source_error(node->gpus) ? NULL : source_reading(node->gpus),
		.reading_age_ms = reading_age_ms(node, now),
		.source_failures = source_failures(node->gpus),
		.log_gaps = source_log_lost(node->gpus),
		.holds = node->holds_error.code == ERROR_NONE ? &node->holds : NULL,
		.offers = &node->offers,
		.releases = &node->releases,
		.oldest_release_ms = oldest_release_ms(node, now),
		.releases_stuck = stuck_releases(node),
		.conditions = &node->conditions,
		.pods_age_ms =
			asks && node->listed ? mono_until(node->listed_at, now) : EXPORTER_UNKNOWN,
		.pods_failures = node->holders_failures,
		.gateway_configured = node->identity && node->config->address_count > 0,
		.gateway_connected = uplink_phase(node->uplink) == UPLINK_OPEN,
		.gateway_since = uplink_since(node->uplink),
		.reports_queued = node->reports.queue.count,
		.figures = &node->figures,
		.dcgm_names = node->config->dcgm_names,
	};

	list_holders(node, &holders);
	view.holders = holders.items;
	view.holder_count = holders.count;
	list_xids(node, &xids);
	view.xids = xids.items;
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		view.registered[i] = deviceplugin_state(node->plugins[i]).registered;
	buf_clear(&exporter->text);
	exporter_format(&view, &exporter->text);
	exporter->made_at = now;
	vec_deinit(&holders);
	vec_deinit(&xids);
}

/* --- connections --- */

static void drop(struct exporter_conn *conn)
{
	struct exporter *exporter = conn->place->exporter;

	conn->place->connections--;
	for (size_t i = 0; i < exporter->conns.count; i++) {
		if (exporter->conns.items[i] != conn)
			continue;
		vec_remove(&exporter->conns, i);
		break;
	}
	loop_timer_destroy(conn->timer);
	buf_deinit(&conn->request);
	free(conn);
}

static void end(void *arg)
{
	struct exporter_conn *conn = arg;

	net_close(conn->net);
	drop(conn);
}

static void on_drain(void *arg)
{
	struct exporter_conn *conn = arg;

	if (conn->answered)
		end(conn);
}

static void on_close(void *arg, const struct error *error UNUSED)
{
	drop(arg);
}

static void answer(struct exporter_conn *conn, enum scrape scrape)
{
	struct exporter *exporter = conn->place->exporter;
	struct mono now = loop_now(exporter->node->loop);
	CLEANUP(buf) struct buf out = {0};

	if (exporter->text.length == 0 || mono_until(exporter->made_at, now) >= EXPORTER_FRESH_MS)
		make_text(exporter, now);
	scrape_answer(scrape, &exporter->text, &out);
	conn->answered = true;
	net_write(conn->net, out.data, out.length);
	if (net_queued(conn->net) == 0)
		end(conn);
}

static void on_data(void *arg, const uint8_t *data, size_t length)
{
	struct exporter_conn *conn = arg;
	size_t room = SCRAPE_MAX_REQUEST - conn->request.length;
	enum scrape scrape;

	if (conn->answered)
		return; /* what comes after a request is not waited for, nor kept */
	buf_add(&conn->request, data, length < room ? length : room);
	scrape = scrape_parse(conn->request.data, conn->request.length);
	if (scrape != SCRAPE_MORE)
		answer(conn, scrape);
}

static void on_accept(void *arg, struct net_conn *net)
{
	static const struct net_handlers handlers = {
		.on_data = on_data, .on_drain = on_drain, .on_close = on_close};
	struct exporter_place *place = arg;
	struct exporter_conn *conn;

	if (!net)
		return;
	if (place->connections >= EXPORTER_MAX_CONNECTIONS) {
		net_close(net);
		return;
	}
	place->connections++;
	conn = mem_alloc(sizeof *conn);
	conn->place = place;
	conn->net = net;
	conn->timer = loop_timer_create(place->exporter->node->loop, end, conn);
	loop_timer_start(conn->timer, EXPORTER_TIMEOUT_MS);
	*vec_push(&place->exporter->conns) = conn;
	net_start(net, &handlers, conn);
}

/* --- places --- */

static bool listen_socket(struct exporter_place *place, struct error *error)
{
	/* Whoever holds the lock on the data folder may take a dead one's place. */
	if (net_unix_is_socket(place->at) && !net_unix_alive(place->at) &&
	    !durable_remove(place->at, error))
		return false;
	return net_listen_unix(place->exporter->node->loop, place->at, 0600, on_accept, place,
			       &place->listener, error);
}

static bool listen_tcp(struct exporter_place *place, struct error *error)
{
	return net_listen_tcp(place->exporter->node->loop, place->at, on_accept, place,
			      &place->listener, error);
}

static void listen_at(struct exporter_place *place,
		      bool (*listen)(struct exporter_place *place, struct error *error))
{
	struct error error = {0};

	if (!place->at || place->listener)
		return;
	if (listen(place, &error)) {
		log_info("metrics.listen", "metrics are served", "at",
			 listen == listen_tcp ? net_listener_address(place->listener) : place->at,
			 NULL);
		place->failed = false;
		return;
	}
	place->listener = NULL;
	if (!place->failed)
		log_failure(LOG_ERROR, "metrics.listen", &error,
			    "it is tried again every ten seconds; all else goes on");
	place->failed = true;
	loop_timer_start(place->exporter->retry, EXPORTER_RETRY_MS);
}

static void listen_all(void *arg)
{
	struct exporter *exporter = arg;

	listen_at(&exporter->socket, listen_socket);
	listen_at(&exporter->tcp, listen_tcp);
}

/* --- life --- */

struct exporter *exporter_create(struct node *node)
{
	struct exporter *exporter = mem_alloc(sizeof *exporter);
	const char *tcp = node->config->metrics_listen;

	exporter->node = node;
	exporter->socket_path = identity_path(node->config->run, EXPORTER_SOCKET);
	exporter->socket =
		(struct exporter_place){.exporter = exporter, .at = exporter->socket_path};
	exporter->tcp =
		(struct exporter_place){.exporter = exporter, .at = tcp && *tcp ? tcp : NULL};
	exporter->retry = loop_timer_create(node->loop, listen_all, exporter);
	listen_all(exporter);
	return exporter;
}

void exporter_destroy(struct exporter *exporter)
{
	if (!exporter)
		return;
	while (exporter->conns.count > 0)
		end(exporter->conns.items[0]);
	vec_deinit(&exporter->conns);
	net_listener_destroy(exporter->socket.listener);
	net_listener_destroy(exporter->tcp.listener);
	loop_timer_destroy(exporter->retry);
	buf_deinit(&exporter->text);
	free(exporter->socket_path);
	free(exporter);
}
