#include "gpu/core/smi.h"

#define SEPARATOR 0x1e /* between stdout, stderr, `-L` and `mig -lgi`, as in the seeds */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever nvidia-smi prints, the reading can be sent and read again, or the failure has a text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(free) char *text = mem_alloc(size + 1);
	CLEANUP(smi) struct smi smi = {0};
	CLEANUP(reading) struct reading again = {0};
	CLEANUP(tree) json_t *object = NULL;
	const char *parts[4] = {"", "", "", ""};
	struct smi_said said = {0};
	struct error error;
	char *at = text;

	memcpy(text, data, size);
	for (size_t i = 0; i < ARRAY_SIZE(parts) && at; i++) {
		char *next = memchr(at, SEPARATOR, (size_t)(text + size - at));

		if (next)
			*next++ = '\0';
		if (i == 0)
			said.out_length = (size_t)((next ? next - 1 : text + size) - at);
		parts[i] = at;
		at = next;
	}
	said.out = parts[0];
	said.err = parts[1];
	if (!smi_read(&said, &smi, &error)) {
		if (!*error.what || smi.reading.gpus.count != 0)
			abort();
		return 0;
	}
	smi_add_mig(&smi, parts[2], parts[3]);
	object = reading_json(&smi.reading);
	if (!reading_read(object, &again, &error) || again.gpus.count != smi.reading.gpus.count)
		abort();
	return 0;
}
