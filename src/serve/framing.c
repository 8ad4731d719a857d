#include "serve/framing.h"
#include "base/base.h"

#include <microhttpd.h>
#include <strings.h>

/* Each may be there once. */
static const struct {
	const char *name, *complaint;
} ONCE[] = {
	{MHD_HTTP_HEADER_CONTENT_LENGTH, "the request has more than one Content-Length"},
	{MHD_HTTP_HEADER_TRANSFER_ENCODING, "the request has more than one Transfer-Encoding"},
	{MHD_HTTP_HEADER_HOST, "the request has more than one Host"},
	{MHD_HTTP_HEADER_AUTHORIZATION, "the request has more than one Authorization"},
	{MHD_HTTP_HEADER_CONTENT_TYPE, "the request has more than one Content-Type"},
};

enum {
	LENGTH,
	ENCODING,
};

struct seen {
	int counts[ARRAY_SIZE(ONCE)];
};

static enum MHD_Result note(void *cls, enum MHD_ValueKind kind, const char *name, const char *value)
{
	struct seen *seen = cls;

	(void)kind, (void)value;
	for (size_t i = 0; i < ARRAY_SIZE(ONCE); i++)
		seen->counts[i] += strcasecmp(name, ONCE[i].name) == 0;
	return MHD_YES;
}

const char *framing_complaint(struct MHD_Connection *connection)
{
	struct seen seen = {0};

	MHD_get_connection_values(connection, MHD_HEADER_KIND, note, &seen);
	for (size_t i = 0; i < ARRAY_SIZE(ONCE); i++) {
		if (seen.counts[i] > 1)
			return ONCE[i].complaint;
	}
	return seen.counts[LENGTH] && seen.counts[ENCODING]
		       ? "the request has both Content-Length and Transfer-Encoding"
		       : NULL;
}
