/*
 * framing: where a request ends and who made it must be said once, or a proxy before us and we could
 * read one request as two, or two callers as one (RFC 9112 6.3, RFC 9110 5.3).
 *
 * Owns      what libmicrohttpd lets pass: it goes by the first of several headers, and by
 *           Transfer-Encoding beside a Content-Length.
 * Threads   the loop's.
 * Tests     tests/unit/serve/listener_test.c
 */
#pragma once

struct MHD_Connection;

/* What is wrong with the headers of the request under way; NULL: nothing. */
const char *framing_complaint(struct MHD_Connection *connection);
