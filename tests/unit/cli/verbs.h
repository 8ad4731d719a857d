/* verbs: whole commands against an API that answers from a list: what is asked, what is said, how it ends. */
#pragma once

#include "lib/folder.h"
#include "unit/http/fake_server.h"

#define TEXT_SIZE 65536
#define ULID      "01kb7s4x5n000000000000000"

/* One run of the program. */
struct outcome {
	int status;
	char out[TEXT_SIZE], err[TEXT_SIZE];
	char seen[TEXT_SIZE]; /* the requests */
};

void run_line(void **state, const char *line, const char *input, const struct fake_answer *answers,
	      size_t count, struct outcome *outcome);

/* One case: up to four answers, and what must then be in the requests and in the output. */
struct row {
	const char *line;
	struct fake_answer answers[4];
	const char *asked[4];
	const char *out, *err;
	int status;
};

/* Fails when `text`, which is what `line` gave as `what`, lacks what is wanted (NULL: nothing). */
void check_has(const char *line, const char *what, const char *text, const char *wanted);
void check_rows(void **state, const struct row *rows, size_t count);

/* Of the group: a folder, and nothing of the person's own environment. */
int verbs_set_up(void **state);

#define OK(text) {.status = 200, .body = (text)}
#define REFUSED(http, code, message)                                                               \
	{                                                                                          \
		.status = (http),                                                                  \
		.body = "{\"error\":{\"code\":\"" code "\",\"message\":\"" message "\"}}",         \
		.headers = "X-Request-Id: req_7\r\n",                                              \
	}
/* 400, for what stands in a field of the body. */
#define REFUSED_FIELD(name, message)                                                               \
	REFUSED(400, "INVALID_INPUT", name ": " message "\",\"field\":\"" name)
/* With the API's own hint. */
#define REFUSED_HINT(http, code, message, hint) REFUSED(http, code, message "\",\"hint\":\"" hint)
#define TENANT                                  "ten_" ULID "a"
#define TENANT2                                 "ten_" ULID "k"
#define POOL                                    "pool_" ULID "b"
#define POOL2                                   "pool_" ULID "m"
#define RSV                                     "rsv_" ULID "c"
#define RSV2                                    "rsv_" ULID "n"
#define RSV3                                    "rsv_" ULID "p"
#define KEY                                     "key_" ULID "d"
#define JOIN_TOKEN                              "jt_" ULID "s"
#define NODE                                    "node_" ULID "e"
#define QUOTA                                   "quo_" ULID "f"
#define SECRET                                  "sec_" ULID "g"
#define SITE                                    "site_" ULID "h"
#define ITEM(id, more)                          "{\"id\":\"" id "\"" more "}"
#define LIST(items)                             "{\"items\":[" items "]}"
