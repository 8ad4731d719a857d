/* The same node: its metrics' socket. */
#include "node_world.h"

#include "node/exporter.h"
#include "sys/net.h"

/* One HTTP exchange on the metrics' socket. */
struct scrape_client {
	struct world *world;
	struct net_conn *conn;
	struct buf answer;
	bool closed;
};

static void on_scraped(void *arg, const uint8_t *data, size_t length)
{
	buf_add(&((struct scrape_client *)arg)->answer, data, length);
}

static void on_scrape_closed(void *arg, const struct error *error UNUSED)
{
	((struct scrape_client *)arg)->closed = true;
}

static void on_scrape_open(void *arg, struct net_conn *conn, const struct error *error)
{
	static const struct net_handlers handlers = {.on_data = on_scraped,
						     .on_close = on_scrape_closed};
	struct scrape_client *client = arg;

	if (error)
		fail_msg("%s", error->what);
	client->conn = conn;
	net_start(conn, &handlers, client);
}

static bool scrape_is_open(void *arg)
{
	return ((struct scrape_client *)arg)->conn;
}

static bool scrape_is_closed(void *arg)
{
	return ((struct scrape_client *)arg)->closed;
}

static void scrape_connect(struct world *world, struct scrape_client *client)
{
	char path[512];

	*client = (struct scrape_client){.world = world};
	snprintf(path, sizeof path, "%s/" EXPORTER_SOCKET, world->config.run);
	net_connect_unix(world->loop, path, on_scrape_open, client);
	kubelet_until(world->loop, scrape_is_open, client, 1000, "the metrics' socket is open");
}

/* The whole answer. */
static const char *scrape_text(struct world *world, struct scrape_client *client,
			       const char *request)
{
	scrape_connect(world, client);
	net_write(client->conn, request, strlen(request));
	kubelet_until(world->loop, scrape_is_closed, client, 1000, "an answer");
	return buf_text(&client->answer);
}

static bool metrics_have(struct world *world, const char *text)
{
	struct scrape_client client;
	bool have =
		strstr(scrape_text(world, &client, "GET /metrics HTTP/1.1\r\n\r\n"), text) != NULL;

	buf_deinit(&client.answer);
	return have;
}

static bool pod_is_told(void *arg)
{
	return metrics_have(arg, "allocation=\"" ALC_A "\",namespace=\"default\",pod=\"p\"");
}

static bool a_list_failed(void *arg)
{
	return metrics_have(arg, "\nbcd_pod_list_failures 1\n");
}

/* The pod stands at its GPU within a turn or two of holding it, from the one list that releases
 * need anyway. proves: OBS-16 OBS-20 */
static void test_metrics_name_the_pod(void **state)
{
	struct world *world = *state;
	char id[HOLDS_ID_SIZE];
	struct scrape_client client;
	size_t asked;

	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	start_kubelet(world);
	world->kubelet.held[0] = id;
	start_node(world);
	wait_registered(world);
	kubelet_until(world->loop, pod_is_told, world, 3000, "the pod stands at its GPU");
	asked = world->kubelet.list_calls;
	for (size_t i = 0; i < 50; i++)
		assert_true(metrics_have(world, "\nbcd_devices_bound{class=\"gpu\"} 2\n"));
	assert_true(world->kubelet.list_calls <= asked + 1); /* by its own clock, not by scrapes */
	assert_true(str_starts(scrape_text(world, &client, "HEAD /metrics HTTP/1.1\r\n\r\n"),
			       "HTTP/1.1 200 OK\r\n"));
	buf_deinit(&client.answer);
	assert_true(str_starts(scrape_text(world, &client, "DELETE /metrics HTTP/1.1\r\n\r\n"),
			       "HTTP/1.1 405 "));
	buf_deinit(&client.answer);
}

/* A kubelet that refuses (ResourceExhausted) costs the freshness, not the answer: the last list stays,
 * and its age is told. So many connections and no more; silent ones give their place back, and hold up
 * nobody else. proves: OBS-16 */
static void test_metrics_when_others_misbehave(void **state)
{
	struct world *world = *state;
	struct scrape_client clients[EXPORTER_MAX_CONNECTIONS], more;
	char id[HOLDS_ID_SIZE];

	fixture_id(id, fixture_gpu(&world->inventory, 0), ALC_A);
	start_kubelet(world);
	world->kubelet.held[0] = id;
	start_node(world);
	kubelet_until(world->loop, pod_is_told, world, 3000, "the pod stands at its GPU");
	assert_true(metrics_have(world, "\nbcd_pod_list_failures 0\n"));
	world->kubelet.pods_fail = true;
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		scrape_connect(world, &clients[i]);
	scrape_connect(world, &more);
	kubelet_until(world->loop, scrape_is_closed, &more, 1000, "one too many is closed");
	wait_registered(world);
	for (size_t i = 0; i < ARRAY_SIZE(clients); i++)
		kubelet_pass_until(world->loop, scrape_is_closed, &clients[i],
				   EXPORTER_TIMEOUT_MS + 500, "a silent one is closed");
	kubelet_pass_until(world->loop, a_list_failed, world, 3000,
			   "the kubelet was asked in vain");
	assert_true(pod_is_told(world));
	assert_false(metrics_have(world, "\nbcd_pod_list_age_seconds 0."));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_metrics_name_the_pod),
		WITH_WORLD(test_metrics_when_others_misbehave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
