#include "serve/metrics.h"

#include "control/metrics.h"
#include "lib/test.h"

static const struct metrics_process process = {.state = "ready", .streams = 7, .jobs_max = 10};

static void expect_line(const struct buf *text, const char *line)
{
	if (!strstr(buf_text(text), line))
		fail_msg("'%s' is missing in:\n%s", line, buf_text(text));
}

static void test_requests_by_route_and_code(void **state UNUSED)
{
	struct metrics *metrics = metrics_create();
	CLEANUP(buf) struct buf text = {0};

	metrics_count_request(metrics, "GET", "/v1/pools", 200, 90);
	metrics_count_request(metrics, "GET", "/v1/pools", 200, 3000000);
	metrics_count_request(metrics, "GET", "/v1/pools", 503, 260);
	metrics_count_request(metrics, "POST", "/v1/pools", 200, 1);
	metrics_count_request(metrics, NULL, NULL, 404, 1);
	metrics_add_process(metrics, &process, &text);
	expect_line(&text,
		    "http_requests_total{method=\"GET\",route=\"/v1/pools\",code=\"200\"} 2\n");
	expect_line(&text,
		    "http_requests_total{method=\"GET\",route=\"/v1/pools\",code=\"503\"} 1\n");
	expect_line(&text,
		    "http_requests_total{method=\"POST\",route=\"/v1/pools\",code=\"200\"} 1\n");
	expect_line(&text,
		    "http_requests_total{method=\"other\",route=\"other\",code=\"404\"} 1\n");
	expect_line(&text,
		    "seconds_bucket{method=\"GET\",route=\"/v1/pools\",le=\"0.000100\"} 1\n");
	expect_line(&text,
		    "seconds_bucket{method=\"GET\",route=\"/v1/pools\",le=\"0.000500\"} 2\n");
	expect_line(&text, "seconds_bucket{method=\"GET\",route=\"/v1/pools\",le=\"+Inf\"} 3\n");
	expect_line(&text, "seconds_sum{method=\"GET\",route=\"/v1/pools\"} 3.000350\n");
	expect_line(&text, "seconds_count{method=\"GET\",route=\"/v1/pools\"} 3\n");
	expect_line(&text, "better_compute_gateway_streams 7\n");
	metrics_destroy(metrics);
}

/* However many routes and codes are asked for, so many lines and no more. */
static void test_bounds(void **state UNUSED)
{
	static char routes[METRICS_MAX_ROUTES + 50][16];
	struct metrics *metrics = metrics_create();
	CLEANUP(buf) struct buf text = {0};
	size_t lines = 0;

	for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
		snprintf(routes[i], sizeof routes[i], "/%zu", i);
		for (int status = 200; status < 300; status++)
			metrics_count_request(metrics, "GET", routes[i], status, 1);
	}
	metrics_add_process(metrics, &process, &text);
	for (const char *at = buf_text(&text); (at = strstr(at, "http_requests_total{")); at++)
		lines++;
	assert_int_equal(lines, (METRICS_MAX_ROUTES + 1) * METRICS_MAX_CODES);
	metrics_destroy(metrics);
}

static void test_fleet(void **state UNUSED)
{
	const struct control_metrics fleet = {
		.nodes = {{{"lost", false, 1}, {"ready", true, 12}}, 2},
		.reservations = {{{"active", false, 5}}, 1},
		.leads = true,
		.lease_left_ms = 2005,
	};
	CLEANUP(buf) struct buf text = {0}, away = {0};

	metrics_add_fleet(&fleet, &text);
	expect_line(&text, "better_compute_database_up 1\n");
	expect_line(&text, "better_compute_nodes{state=\"ready\",connected=\"true\"} 12\n");
	expect_line(&text, "better_compute_nodes{state=\"lost\",connected=\"false\"} 1\n");
	expect_line(&text, "better_compute_reservations{state=\"active\"} 5\n");
	expect_line(&text, "better_compute_leader 1\n");
	expect_line(&text, "better_compute_leader_lease_seconds 2.005\n");
	metrics_add_fleet(NULL, &away);
	expect_line(&away, "better_compute_database_up 0\n");
	assert_null(strstr(buf_text(&away), "better_compute_nodes"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_by_route_and_code),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_fleet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
