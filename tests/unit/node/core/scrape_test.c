/* One HTTP request, as it comes. */
#include "node/core/scrape.h"

#include "lib/test.h"

static enum scrape parse(const char *text)
{
	return scrape_parse(text, strlen(text));
}

static void test_what_is_asked(void **state UNUSED)
{
	static const struct {
		const char *text;
		enum scrape scrape;
	} rows[] = {
		{"", SCRAPE_MORE},
		{"GET /metrics HTTP/1.1\r\nHost: a\r\n", SCRAPE_MORE},
		{"GET /metrics HTTP/1.1\r\n\r", SCRAPE_MORE},
		{"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", SCRAPE_GET},
		{"GET /metrics HTTP/1.0\n\n", SCRAPE_GET},
		{"GET /metrics?name[]=up HTTP/1.1\r\n\r\nmore", SCRAPE_GET},
		{"HEAD /metrics HTTP/1.1\r\n\r\n", SCRAPE_HEAD},
		{"get /metrics HTTP/1.1\r\n\r\n", SCRAPE_NOT_ALLOWED},
		{"POST /metrics HTTP/1.1\r\nContent-Length: 9\r\n\r\n", SCRAPE_NOT_ALLOWED},
		{"GET / HTTP/1.1\r\n\r\n", SCRAPE_NOT_FOUND},
		{"POST /metricsx HTTP/1.1\r\n\r\n", SCRAPE_NOT_FOUND},
		{"GET /metrics/../metrics HTTP/1.1\r\n\r\n", SCRAPE_NOT_FOUND},
		{"GET /metrics HTTP/2.0\r\n\r\n", SCRAPE_BAD},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", SCRAPE_BAD},
		{"GET  /metrics HTTP/1.1\r\n\r\n", SCRAPE_BAD},
		{"GET /metrics HTTP/1.1 \r\n\r\n", SCRAPE_BAD},
		{"GET http://a/metrics HTTP/1.1\r\n\r\n", SCRAPE_BAD},
		{" /metrics HTTP/1.1\r\n\r\n", SCRAPE_BAD},
		{"GET /metrics\r\n\r\n", SCRAPE_BAD},
		{"\r\n\r\n", SCRAPE_BAD},
		{"\n\n", SCRAPE_BAD},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (parse(rows[i].text) != rows[i].scrape)
			fail_msg("'%s': %d, not %d", rows[i].text, (int)parse(rows[i].text),
				 (int)rows[i].scrape);
}

static void test_a_request_has_a_bound(void **state UNUSED)
{
	static char text[SCRAPE_MAX_REQUEST];

	memset(text, 'a', sizeof text);
	assert_int_equal(scrape_parse(text, sizeof text - 1), SCRAPE_MORE);
	assert_int_equal(scrape_parse(text, sizeof text), SCRAPE_TOO_LONG);
	memset(text, 0, sizeof text);
	assert_int_equal(scrape_parse(text, sizeof text), SCRAPE_TOO_LONG);
}

static void expect_answer(enum scrape scrape, const char *begin, const char *end)
{
	CLEANUP(buf) struct buf metrics = {0}, out = {0};

	buf_add_text(&metrics, "up 1\n");
	scrape_answer(scrape, &metrics, &out);
	if (!str_starts(buf_text(&out), begin) || !str_ends(buf_text(&out), end) ||
	    !strstr(buf_text(&out), "\r\nConnection: close\r\n"))
		fail_msg("%s", buf_text(&out));
}

static void test_answers(void **state UNUSED)
{
	expect_answer(SCRAPE_GET,
		      "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; "
		      "charset=utf-8\r\nContent-Length: 5\r\n",
		      "\r\n\r\nup 1\n");
	expect_answer(SCRAPE_HEAD, "HTTP/1.1 200 OK\r\n", "close\r\n\r\n");
	expect_answer(SCRAPE_BAD, "HTTP/1.1 400 ", "request\n");
	expect_answer(SCRAPE_NOT_FOUND, "HTTP/1.1 404 ", "/metrics\n");
	expect_answer(SCRAPE_NOT_ALLOWED, "HTTP/1.1 405 ", "answered\n");
	expect_answer(SCRAPE_TOO_LONG, "HTTP/1.1 431 ", "8 KiB\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_asked),
		cmocka_unit_test(test_a_request_has_a_bound),
		cmocka_unit_test(test_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
