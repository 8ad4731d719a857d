/* A watch's answer, in pieces whose size the first byte says. */
#include "kube/core/watch.h"
#include "text/tree.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct said {
	struct buf events;
	enum kube_reason end; /* KUBE_DONE: it goes on */
	char version[KUBE_WATCH_VERSION_SIZE];
};

static void take(void *arg, enum kube_watch_kind kind, json_t **object)
{
	struct said *said = arg;

	if (kind > KUBE_WATCH_DELETED || !json_is_object(*object))
		abort();
	buf_printf(&said->events, "%d", (int)kind);
	tree_dump_canonical(&said->events, *object);
}

static void read_in_pieces(const char *text, size_t length, size_t piece, struct said *said)
{
	CLEANUP(kube_watch_reader) struct kube_watch_reader reader = {.resource = &KUBE_POD};

	for (size_t at = 0; at < length; at += piece) {
		CLEANUP(kube_answer) struct kube_answer end = {0};
		size_t rest = length - at;

		if (kube_watch_read(&reader, text + at, rest < piece ? rest : piece, take, said,
				    &end))
			continue;
		if (end.reason == KUBE_DONE || end.error.code == ERROR_NONE)
			abort();
		said->end = end.reason;
		break;
	}
	memcpy(said->version, reader.version, sizeof said->version);
}

/* However it is cut, it says the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct said whole = {0}, cut = {0};

	if (size < 2)
		return 0;
	read_in_pieces((const char *)data + 1, size - 1, size, &whole);
	read_in_pieces((const char *)data + 1, size - 1, data[0] % 7u + 1, &cut);
	if (strcmp(buf_text(&whole.events), buf_text(&cut.events)) != 0 || whole.end != cut.end ||
	    strcmp(whole.version, cut.version) != 0)
		abort();
	buf_deinit(&whole.events);
	buf_deinit(&cut.events);
	return 0;
}
