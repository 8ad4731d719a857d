#include "node/core/exposure.h"

#include <stdio.h>

#define MORE_ROOM sizeof "; and 1000 more"

static void describe(const struct exposure_unread *unread, struct buf *out)
{
	buf_printf(out, "%s can't be read · %s · show it to bcd there, or name what it is in %s",
		   unread->toolkit ? "the NVIDIA toolkit's configuration"
				   : "the container runtime's configuration",
		   unread->why,
		   unread->toolkit ? "toolkit_config (of manifests: nvidiaToolkit)"
				   : "runtime_config (of manifests: containerRuntime)");
}

void exposure_decide(const struct exposure_view *view, char out[CONDITIONS_MESSAGE_SIZE])
{
	CLEANUP(buf) struct buf text = {0};

	for (size_t i = 0; i < view->count; i++) {
		CLEANUP(buf) struct buf one = {0};

		describe(&view->items[i], &one);
		if (text.length + one.length + MORE_ROOM >= CONDITIONS_MESSAGE_SIZE && i > 0) {
			buf_printf(&text, "; and %zu more", view->count - i);
			break;
		}
		buf_printf(&text, "%s%s", i ? "; " : "", buf_text(&one));
	}
	str_copy(out, CONDITIONS_MESSAGE_SIZE, buf_text(&text));
}
