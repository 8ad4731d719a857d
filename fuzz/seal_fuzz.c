/*
 * A secret key file, and a sealed value as the database might hold it: a broken one opens nothing.
 * What comes before the first line's end is the file; the rest is the sealed text.
 */
#include "pki/keys.h"
#include "pki/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;
	CLEANUP(buf) struct buf file = {0};
	CLEANUP(buf) struct buf sealed = {0};
	const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
	size_t length = end ? (size_t)(end - data) : size;
	struct buf value = {0};
	struct error error;

	buf_add(&file, data, length);
	buf_add(&sealed, data + length, size - length);
	if (!seal_keys_parse(buf_text(&file), file.length, "the file", &keys, &error))
		return 0;
	if (seal_keys_count(keys) == 0 || seal_keys_count(keys) > SEAL_MAX_KEYS)
		abort();
	if (seal_open(keys, seal_keys_id(keys, 0), "x", buf_text(&sealed), &value, &error))
		pki_wipe(&value);
	else if (value.length > 0)
		abort();
	return 0;
}
