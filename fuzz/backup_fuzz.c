/* A backup as somebody may hand it to us: read to its end or refused, and refused with a reason. */
#include "control/backup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(buf) struct buf text = {0};
	struct backup_info info;
	struct error error = {0};

	buf_add(&text, data, size);
	if (backup_check(&text, "fuzz", &info, &error)) {
		assert(info.schema_version >= 1);
		assert(info.rows >= 0);
	} else {
		assert(error.code != ERROR_NONE);
		assert(error.what[0]);
	}
	return 0;
}
