#include "node/core/scrape.h"

#include "text/exposition.h"

#define PATH      "/metrics"
#define MAX_WORDS 3

/* One part of the request line. */
struct word {
	const char *at;
	size_t length;
};

static bool is(struct word word, const char *text)
{
	return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

static bool starts(struct word word, const char *text)
{
	return word.length >= strlen(text) && memcmp(word.at, text, strlen(text)) == 0;
}

/* The head ends with an empty line; a bare line feed ends a line too. */
static bool is_whole(const char *text, size_t length)
{
	for (size_t i = 0; i + 1 < length; i++) {
		if (text[i] != '\n')
			continue;
		if (text[i + 1] == '\n' ||
		    (text[i + 1] == '\r' && i + 2 < length && text[i + 2] == '\n'))
			return true;
	}
	return false;
}

/* Exactly three words with one space between them. */
static bool split(struct word line, struct word words[MAX_WORDS])
{
	size_t count = 0;

	words[0] = (struct word){.at = line.at};
	for (size_t i = 0; i < line.length; i++) {
		if (line.at[i] != ' ') {
			words[count].length++;
			continue;
		}
		if (++count == MAX_WORDS)
			return false;
		words[count] = (struct word){.at = line.at + i + 1};
	}
	return count == MAX_WORDS - 1;
}

static enum scrape judge(struct word line)
{
	struct word words[MAX_WORDS], path;
	const char *query;

	if (!split(line, words) || !starts(words[2], "HTTP/1.") || words[0].length == 0 ||
	    !starts(words[1], "/"))
		return SCRAPE_BAD;
	path = words[1];
	query = memchr(path.at, '?', path.length);
	if (query)
		path.length = (size_t)(query - path.at);
	if (!is(path, PATH))
		return SCRAPE_NOT_FOUND;
	if (is(words[0], "GET"))
		return SCRAPE_GET;
	return is(words[0], "HEAD") ? SCRAPE_HEAD : SCRAPE_NOT_ALLOWED;
}

enum scrape scrape_parse(const void *data, size_t length)
{
	struct word line = {.at = data};
	const char *end;

	if (!is_whole(data, length))
		return length >= SCRAPE_MAX_REQUEST ? SCRAPE_TOO_LONG : SCRAPE_MORE;
	end = memchr(data, '\n', length);
	line.length = (size_t)(end - line.at);
	if (line.length > 0 && line.at[line.length - 1] == '\r')
		line.length--;
	return judge(line);
}

void scrape_answer(enum scrape scrape, const struct buf *metrics, struct buf *out)
{
	static const struct {
		const char *status, *header, *body;
	} rows[] = {
		[SCRAPE_GET] = {"200 OK", "", NULL},
		[SCRAPE_HEAD] = {"200 OK", "", NULL},
		[SCRAPE_BAD] = {"400 Bad Request", "", "this is no HTTP/1.1 request\n"},
		[SCRAPE_NOT_FOUND] = {"404 Not Found", "", "the metrics are at " PATH "\n"},
		[SCRAPE_NOT_ALLOWED] = {"405 Method Not Allowed", "Allow: GET, HEAD\r\n",
					"only GET and HEAD are answered\n"},
		[SCRAPE_TOO_LONG] = {"431 Request Header Fields Too Large", "",
				     "the request is longer than 8 KiB\n"},
	};
	const char *body;

	assert(scrape != SCRAPE_MORE && (size_t)scrape < ARRAY_SIZE(rows));
	body = rows[scrape].body;
	buf_printf(out,
		   "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s"
		   "Connection: close\r\n\r\n",
		   rows[scrape].status, body ? "text/plain; charset=utf-8" : EXPOSITION_TYPE,
		   body ? strlen(body) : metrics->length, rows[scrape].header);
	if (body)
		buf_add_text(out, body);
	else if (scrape == SCRAPE_GET)
		buf_add(out, metrics->data, metrics->length);
}
