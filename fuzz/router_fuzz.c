/*
 * The HTTP API as a stranger meets it, on a database that is new each INPUTS_A_DATABASE: each line
 * that begins with '>' is "METHOD TARGET", what follows up to the next one is its body. All are
 * asked with an operator's key, in order; "@0" to "@7" stand for the ids that the answers so far
 * had, so that later requests reach what earlier ones made.
 */
#include "control/control.h"
#include "serve/router.h"
#include "store/store.h"
#include "sys/log.h"
#include "text/tree.h"

#include <stdio.h>

#define MAX_REQUESTS      8
#define INPUTS_A_DATABASE 500 /* making one takes longer than most inputs */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct session {
	struct control control;
	char bearer[CONTROL_KEY_SIZE + 16];
	char ids[MAX_REQUESTS][ID_SIZE];
	size_t count; /* requests asked */
	int number;   /* of the input */
};

static void keep_id(struct session *session, const struct response *response)
{
	json_t *answer = json_loadb(buf_text(&response->body), response->body.length, 0, NULL);
	const char *id = json_string_value(json_object_get(answer, "id"));

	if (id)
		str_copy(session->ids[session->count], ID_SIZE, id);
	json_decref(answer);
}

static void fill_in(const struct session *session, const char *text, size_t length, struct buf *out)
{
	for (size_t i = 0; i < length; i++) {
		char what = text[i] == '@' && i + 1 < length ? text[i + 1] : '\0';

		if (what >= '0' && what < '0' + MAX_REQUESTS) {
			buf_add_text(out, session->ids[what - '0']);
			i++;
		} else if (what == 'u') {
			buf_printf(out, "%d", session->number);
			i++;
		} else {
			buf_add_char(out, text[i]);
		}
	}
}

static void ask(struct session *session, const char *text, size_t length)
{
	const struct router router = {.well_known = "{}", .openapi = "{}"};
	const char *line_end = memchr(text, '\n', length);
	size_t line = line_end ? (size_t)(line_end - text) : length;
	CLEANUP(buf) struct buf head = {0};
	CLEANUP(buf) struct buf body = {0};
	struct response response = {0};
	struct request request;
	char *space;

	fill_in(session, text, line, &head);
	buf_add_char(&head, '\0'); /* never without memory */
	if (line_end)
		fill_in(session, line_end + 1, length - line - 1, &body);
	request = (struct request){
		.method = buf_text(&head),
		.target = "/",
		.authorization = session->bearer,
		.content_type = "application/json",
		.body = body.data,
		.body_length = body.length,
		.id = "req_1",
	};
	space = strchr((char *)head.data, ' ');
	if (space) {
		*space = '\0';
		request.target = space + 1;
	}
	router_answer(&router, &session->control, &request, &response);
	if (response.status < 200 || response.status == 500 || response.body.length == 0)
		abort();
	keep_id(session, &response);
	session->count++;
	response_deinit(&response);
}

static void ask_all(struct session *session, const char *text, size_t length)
{
	const char *end = text + length;
	const char *at = memchr(text, '>', length);

	while (at && session->count < MAX_REQUESTS) {
		const char *next = NULL;

		for (const char *c = at; c + 1 < end && !next; c++)
			next = c[0] == '\n' && c[1] == '>' ? c + 1 : NULL;
		ask(session, at + 1, (size_t)((next ? next : end) - at) - 1);
		at = next;
	}
}

static struct store *store;
static struct session first; /* of a database: connection and key */
static int inputs;

static void renew_database(void)
{
	char key[CONTROL_KEY_SIZE];
	struct error error;

	log_set_level(LOG_ERROR);
	store_disconnect(first.control.connection);
	store_destroy(store);
	first = (struct session){.control = {.replica = "fuzz"}};
	if (!store_open("sqlite::memory:", &store, &error) ||
	    !store_connect(store, &first.control.connection, &error) ||
	    !control_init(&first.control, key, &error))
		abort();
	snprintf(first.bearer, sizeof first.bearer, "Bearer %s", key);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session session;

	if (inputs++ % INPUTS_A_DATABASE == 0)
		renew_database();
	session = first;
	session.number = inputs;
	if (size > 0)
		ask_all(&session, (const char *)data, size);
	return 0;
}
