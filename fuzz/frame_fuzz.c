#include "gpu/core/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_one(const json_t *frame)
{
	CLEANUP(reading) struct reading reading = {0};
	const json_t *member = json_object_get(frame, "reading");
	struct frame_xid xid, again;
	struct error error;

	(void)!reading_read(member, &reading, &error);
	member = json_object_get(frame, "xid");
	if (frame_read_xid(member, &xid, &error)) {
		CLEANUP(tree) json_t *written = frame_xid(&xid);

		if (!frame_read_xid(json_object_get(written, "xid"), &again, &error) ||
		    again.xid != xid.xid || !str_equal(again.pci, xid.pci) || again.gi != xid.gi)
			abort();
	}
}

/* A stream of frames, which comes in two parts: cut at the place that the first byte says. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buf) struct buf in = {0};
	size_t cut = size > 1 ? data[0] % size : 0;
	struct error error;

	for (int part = 0; part < 2; part++) {
		buf_add(&in, part ? data + cut : data, part ? size - cut : cut);
		for (;;) {
			CLEANUP(tree) json_t *frame = NULL;

			if (!frame_take(&in, &frame, &error))
				return 0;
			if (!frame)
				break;
			read_one(frame);
		}
	}
	return 0;
}
