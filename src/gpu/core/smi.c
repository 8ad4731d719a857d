#include "gpu/core/smi.h"

#include "gpu/core/pci.h"
#include "gpu/core/smi_xml.h"

#include <stdio.h>

void smi_deinit(struct smi *smi)
{
	if (!smi)
		return;
	reading_deinit(&smi->reading);
	vec_deinit(&smi->migs);
}

/* --- lines --- */

/* Copies the next line of *text, cut to `size`, and moves behind it; false at the end. */
static bool next_line(const char **text, char *line, size_t size)
{
	size_t length = strcspn(*text, "\n");

	if (!**text)
		return false;
	snprintf(line, size, "%.*s", length < size ? (int)length : (int)size - 1, *text);
	*text += length + ((*text)[length] == '\n');
	return true;
}

#define LINE_SIZE 512

/* --- why it failed --- */

static const struct {
	const char *text, *hint;
} failures[] = {
	{"version mismatch",
	 "The driver was upgraded while its old kernel module is loaded: reload the "
	 "module or reboot the machine."},
	{"couldn't communicate",
	 "The driver's kernel module is not loaded: `modprobe nvidia` says why."},
	{"Driver Not Loaded",
	 "The driver's kernel module is not loaded: `modprobe nvidia` says why."},
	{"ermission", "bcd must run as root, and may open /dev/nvidiactl."},
	{"No devices were found",
	 "The driver is loaded, but no GPU answers: look for NVRM in the kernel's "
	 "log, and for the GPU in lspci."},
	{"libnvidia-ml",
	 "The driver's libnvidia-ml.so.1 is missing: install the driver's libraries."},
	{"Unknown Error",
	 "Look for NVRM in the kernel's log; in a container, access to the GPUs' device "
	 "nodes may have been taken away: start it again."},
};

/* The first line that isn't empty, out of a stream. */
static void first_line(const char *text, char line[LINE_SIZE])
{
	while (next_line(&text, line, LINE_SIZE)) {
		reading_text(line, LINE_SIZE, line);
		if (*line)
			return;
	}
	*line = '\0';
}

bool smi_failure(const struct smi_said *said, struct error *error)
{
	char line[LINE_SIZE];

	first_line(said->err, line);
	if (!*line)
		first_line(said->out, line);
	if (!*line && said->exit_status < 0)
		return error_set(error, ERROR_UNAVAILABLE, "nvidia-smi was killed");
	if (!*line)
		return error_set(error, ERROR_UNAVAILABLE,
				 "nvidia-smi ended with status %d and no output",
				 said->exit_status);
	error_set(error, ERROR_UNAVAILABLE, "nvidia-smi: %.300s", line);
	for (size_t i = 0; i < ARRAY_SIZE(failures); i++)
		if (strstr(said->out, failures[i].text) || strstr(said->err, failures[i].text))
			return error_hint(error, "%s", failures[i].hint);
	return error_hint(error, "`nvidia-smi -q` on this machine may say more.");
}

/* --- GPUs of which it only complains --- */

static struct reading_gpu *find_gpu(struct reading *reading, const char *pci)
{
	vec_each (&reading->gpus, struct reading_gpu * gpu)
		if (*pci && str_equal(gpu->pci, pci))
			return gpu;
	return NULL;
}

/* "GPU0000:C1:00.0: GPU is lost. …", "GPU3: 0000:5F:00.0: Unknown Error", "GPU2: Unknown Error":
 * the id, "" when there is none, and what is wrong behind it. */
static const char *take_place(const char *text, char pci[INVENTORY_PCI_SIZE])
{
	const char *behind = NULL, *colon;

	*pci = '\0';
	for (const char *at = text; *at && !behind; at++)
		if (at == text || !strchr("0123456789abcdefABCDEF:.", at[-1]))
			behind = pci_take(at, pci);
	if (!behind) {
		colon = strchr(text, ':');
		behind = colon ? colon : text;
	}
	return behind + strspn(behind, ": ");
}

static void take_complaint(struct reading *reading, const char *text)
{
	char pci[INVENTORY_PCI_SIZE];
	const char *why = take_place(text, pci);
	struct reading_gpu *gpu = find_gpu(reading, pci);

	if (!gpu && reading->gpus.count == INVENTORY_MAX_GPUS)
		return;
	if (!gpu) {
		gpu = vec_push(&reading->gpus);
		*gpu = reading_gpu_unknown();
		str_copy(gpu->pci, sizeof gpu->pci, pci);
	}
	reading_text(gpu->error, sizeof gpu->error, *why ? why : text);
	gpu->lost = gpu->lost || strstr(why, "is lost");
	gpu->needs_reset =
		gpu->needs_reset || strstr(why, "requires reset") || strstr(why, "Unknown Error");
}

static void take_complaints(struct reading *reading, const char *text)
{
	static const char beginning[] = "Unable to determine the device handle for ";
	char line[LINE_SIZE];

	while (next_line(&text, line, sizeof line)) {
		const char *complaint = strstr(line, beginning);

		if (complaint)
			take_complaint(reading, complaint + strlen(beginning));
	}
}

/* --- the whole --- */

bool smi_read(const struct smi_said *said, struct smi *ret_smi, struct error *error)
{
	CLEANUP(smi) struct smi smi = {0};
	CLEANUP(buf) struct buf beside = {0};
	const char *xml;
	size_t length;
	bool found;

	assert(ret_smi->reading.gpus.count == 0 && ret_smi->migs.count == 0);
	if (said->out_length > SMI_MAX_BYTES)
		return error_set(error, ERROR_INVALID_INPUT, "nvidia-smi printed more than %d MiB",
				 (int)(SMI_MAX_BYTES >> 20));
	found = smi_xml_find(said->out, said->out_length, &xml, &length, &beside);
	if (found && !smi_xml_read(xml, length, &smi, &beside, error))
		return false;
	take_complaints(&smi.reading, buf_text(&beside));
	take_complaints(&smi.reading, said->err);
	/* A lost GPU makes its exit status anything; what it could tell of the others holds. */
	if (said->exit_status < 0 ||
	    (smi.reading.gpus.count == 0 && (!found || said->exit_status != 0)))
		return smi_failure(said, error);
	str_copy(smi.reading.source, sizeof smi.reading.source, "nvidia-smi");
	smi_deinit(ret_smi); /* an empty one may keep memory */
	*ret_smi = smi;
	smi = (struct smi){0};
	return true;
}

/* --- MIG --- */

/* The text in `line` between the last `open` and the `close` behind it. */
static bool take_between(const char *line, const char *open, char close, char *out, size_t size)
{
	const char *start = NULL, *end;

	for (const char *at = line; (at = strstr(at, open)); at++)
		start = at + strlen(open);
	end = start ? strchr(start, close) : NULL;
	if (!end || (size_t)(end - start) >= size)
		return false;
	memcpy(out, start, (size_t)(end - start));
	out[end - start] = '\0';
	return true;
}

static size_t find_uuid(const struct reading *reading, const char *text)
{
	struct atom_uuid uuid;

	if (!atom_uuid_parse(text, &uuid))
		return reading->gpus.count;
	for (size_t i = 0; i < reading->gpus.count; i++)
		if (reading->gpus.items[i].has_uuid &&
		    atom_uuid_equal(reading->gpus.items[i].uuid, uuid))
			return i;
	return reading->gpus.count;
}

/* Places of GPUs in the reading by nvidia-smi's index, which counts lost ones too; `none` where
 * there is no such GPU. */
struct indices {
	size_t gpus[INVENTORY_MAX_GPUS], none;
};

/* "GPU 3: NVIDIA H100 (UUID: GPU-…)"; false: another line. */
static bool take_gpu_line(const struct smi *smi, struct indices *indices, const char *line,
			  size_t *ret_gpu)
{
	char uuid[ATOM_VISIBLE_SIZE];
	unsigned index;

	if (sscanf(line, "GPU %9u:", &index) != 1)
		return false;
	*ret_gpu = indices->none;
	if (take_between(line, "(UUID: ", ')', uuid, sizeof uuid))
		*ret_gpu = find_uuid(&smi->reading, uuid);
	if (index < INVENTORY_MAX_GPUS)
		indices->gpus[index] = *ret_gpu;
	return true;
}

/* "  MIG 1g.10gb     Device  0: (UUID: MIG-…)" */
static void take_mig_line(struct smi *smi, size_t gpu, const char *line)
{
	char profile[32], uuid[ATOM_VISIBLE_SIZE];
	int index;

	if (sscanf(line, " MIG %31s Device %9d:", profile, &index) != 2 ||
	    !take_between(line, "(UUID: ", ')', uuid, sizeof uuid))
		return;
	vec_each (&smi->migs, const struct smi_mig *place) {
		struct reading_mig *mig;

		if (place->gpu != gpu || place->index != index)
			continue;
		mig = &smi->reading.gpus.items[gpu].mig.items[place->mig];
		reading_text(mig->uuid, sizeof mig->uuid, uuid);
		reading_text(mig->profile, sizeof mig->profile, profile);
	}
}

/* A GPU has 4, 8 or 12 memory slices, and says nowhere how many: an instance's share of its memory
 * tells, which is a little less than its share of the slices. */
static int32_t count_slices(int64_t gpu_bytes, int64_t mig_bytes, int32_t size)
{
	int64_t slices = 8;

	if (gpu_bytes > 0 && mig_bytes > 0 && gpu_bytes <= INT64_MAX / 16)
		slices = (size * gpu_bytes + mig_bytes / 2) / mig_bytes;
	return slices < 6 ? 4 : slices < 10 ? 8 : 12;
}

/* "|   3  MIG 1g.10gb           19        7          0:1     |" */
static void take_place_line(struct smi *smi, const struct indices *indices, const char *line)
{
	struct reading_gpu *gpu;
	int profile, gi, start, size;
	unsigned index;

	if (sscanf(line, "| %9u MIG %*s %9d %9d %9d:%9d", &index, &profile, &gi, &start, &size) !=
		    5 ||
	    index >= INVENTORY_MAX_GPUS || indices->gpus[index] == indices->none || start < 0 ||
	    size < 1 || size > 12)
		return;
	gpu = &smi->reading.gpus.items[indices->gpus[index]];
	vec_each (&gpu->mig, struct reading_mig * mig) {
		int32_t slices = count_slices(gpu->memory_bytes, mig->memory_bytes, size);

		if (mig->gi != gi || start >= slices || size > slices - start)
			continue;
		mig->start = start * 8 / slices;
		mig->size = size * 8 / slices;
	}
}

void smi_add_mig(struct smi *smi, const char *list, const char *places)
{
	struct indices indices = {.none = smi->reading.gpus.count};
	size_t gpu = indices.none;
	char line[LINE_SIZE];

	for (size_t i = 0; i < INVENTORY_MAX_GPUS; i++)
		indices.gpus[i] = indices.none;
	while (next_line(&list, line, sizeof line))
		if (!take_gpu_line(smi, &indices, line, &gpu))
			take_mig_line(smi, gpu, line);
	while (next_line(&places, line, sizeof line))
		take_place_line(smi, &indices, line);
}
