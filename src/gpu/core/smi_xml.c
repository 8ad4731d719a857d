#include "gpu/core/smi_xml.h"

#include "gpu/core/pci.h"

#include <expat.h>
#include <stdio.h>
#include <strings.h>

#define ROOT       "nvidia_smi_log"
#define MAX_DEPTH  16
#define MAX_NAME   64
#define MAX_TEXT   256  /* of one element; what is longer is cut */
#define MAX_BESIDE 4096 /* between the GPUs */
#define PATH_SIZE  (MAX_DEPTH * (MAX_NAME + 1))
#define GPU_DEPTH  2 /* <gpu> in <nvidia_smi_log> */
#define MIG_DEVICE "mig_devices/mig_device"

/* --- one element's value --- */

enum kind {
	KIND_MODEL,
	KIND_UUID,
	KIND_PCI,
	KIND_MINOR,
	KIND_MIG_MODE,
	KIND_MEMORY,
	KIND_GAUGE,    /* replaces what an older element said */
	KIND_FALLBACK, /* only when nothing else tells this gauge */
	KIND_ADD,      /* a part of the gauge's sum */
	KIND_REMAP_PENDING,
	KIND_REMAP_FAILED,
	KIND_RECOVERY,
	KIND_RESET_REQUIRED,
	KIND_DRAIN_RECOMMENDED,
};

struct row {
	const char *path; /* below <gpu> */
	enum kind kind;
	enum reading_gauge gauge;
	const char *unit;
	int64_t scale; /* from the unit to the gauge's */
};

#define MIB           (1 << 20)
#define UNC_VOLATILE  GAUGE_ECC_UNCORRECTED_VOLATILE, "", 1
#define COR_VOLATILE  GAUGE_ECC_CORRECTED_VOLATILE, "", 1
#define UNC_AGGREGATE GAUGE_ECC_UNCORRECTED_AGGREGATE, "", 1
#define COR_AGGREGATE GAUGE_ECC_CORRECTED_AGGREGATE, "", 1

/* By driver: single_bit and double_bit until 418, sram_uncorrectable until 530 and on older GPUs,
 * then parity and secded apart; power_readings until 530. */
static const struct row rows[] = {
	{"product_name", KIND_MODEL, 0, NULL, 0},
	{"uuid", KIND_UUID, 0, NULL, 0},
	{"pci/pci_bus_id", KIND_PCI, 0, NULL, 0},
	{"minor_number", KIND_MINOR, 0, "", 1},
	{"mig_mode/current_mig", KIND_MIG_MODE, 0, NULL, 0},
	{"fb_memory_usage/total", KIND_MEMORY, 0, "MiB", MIB},
	{"fb_memory_usage/used", KIND_GAUGE, GAUGE_MEMORY_USED_BYTES, "MiB", MIB},
	{"fb_memory_usage/free", KIND_GAUGE, GAUGE_MEMORY_FREE_BYTES, "MiB", MIB},
	{"utilization/gpu_util", KIND_GAUGE, GAUGE_GPU_UTIL_PERCENT, "%", 1},
	{"utilization/memory_util", KIND_GAUGE, GAUGE_MEMORY_UTIL_PERCENT, "%", 1},
	{"temperature/gpu_temp", KIND_GAUGE, GAUGE_TEMPERATURE_C, "C", 1},
	{"temperature/memory_temp", KIND_GAUGE, GAUGE_MEMORY_TEMPERATURE_C, "C", 1},
	{"power_readings/power_draw", KIND_GAUGE, GAUGE_POWER_MW, "W", 1000},
	{"gpu_power_readings/power_draw", KIND_GAUGE, GAUGE_POWER_MW, "W", 1000},
	{"gpu_power_readings/average_power_draw", KIND_GAUGE, GAUGE_POWER_MW, "W", 1000},
	{"gpu_power_readings/instant_power_draw", KIND_FALLBACK, GAUGE_POWER_MW, "W", 1000},
	{"clocks/sm_clock", KIND_GAUGE, GAUGE_SM_CLOCK_MHZ, "MHz", 1},
	{"clocks/mem_clock", KIND_GAUGE, GAUGE_MEMORY_CLOCK_MHZ, "MHz", 1},
	{"pci/replay_counter", KIND_GAUGE, GAUGE_PCIE_REPLAYS, "", 1},
	{"ecc_errors/volatile/single_bit/total", KIND_ADD, COR_VOLATILE},
	{"ecc_errors/volatile/double_bit/total", KIND_ADD, UNC_VOLATILE},
	{"ecc_errors/volatile/sram_correctable", KIND_ADD, COR_VOLATILE},
	{"ecc_errors/volatile/sram_uncorrectable", KIND_ADD, UNC_VOLATILE},
	{"ecc_errors/volatile/sram_uncorrectable_parity", KIND_ADD, UNC_VOLATILE},
	{"ecc_errors/volatile/sram_uncorrectable_secded", KIND_ADD, UNC_VOLATILE},
	{"ecc_errors/volatile/dram_correctable", KIND_ADD, COR_VOLATILE},
	{"ecc_errors/volatile/dram_uncorrectable", KIND_ADD, UNC_VOLATILE},
	{"ecc_errors/aggregate/single_bit/total", KIND_ADD, COR_AGGREGATE},
	{"ecc_errors/aggregate/double_bit/total", KIND_ADD, UNC_AGGREGATE},
	{"ecc_errors/aggregate/sram_correctable", KIND_ADD, COR_AGGREGATE},
	{"ecc_errors/aggregate/sram_uncorrectable", KIND_ADD, UNC_AGGREGATE},
	{"ecc_errors/aggregate/sram_uncorrectable_parity", KIND_ADD, UNC_AGGREGATE},
	{"ecc_errors/aggregate/sram_uncorrectable_secded", KIND_ADD, UNC_AGGREGATE},
	{"ecc_errors/aggregate/dram_correctable", KIND_ADD, COR_AGGREGATE},
	{"ecc_errors/aggregate/dram_uncorrectable", KIND_ADD, UNC_AGGREGATE},
	{"remapped_rows/remapped_row_corr", KIND_GAUGE, GAUGE_REMAPPED_CORRECTABLE_ROWS, "", 1},
	{"remapped_rows/remapped_row_unc", KIND_GAUGE, GAUGE_REMAPPED_UNCORRECTABLE_ROWS, "", 1},
	{"remapped_rows/remapped_row_pending", KIND_REMAP_PENDING, 0, NULL, 0},
	{"remapped_rows/remapped_row_failure", KIND_REMAP_FAILED, 0, NULL, 0},
	{"gpu_recovery_action", KIND_RECOVERY, 0, NULL, 0},
	{"gpu_reset_status/reset_required", KIND_RESET_REQUIRED, 0, NULL, 0},
	{"gpu_reset_status/drain_and_reset_recommended", KIND_DRAIN_RECOMMENDED, 0, NULL, 0},
};
static_assert(ARRAY_SIZE(rows) <= 64, "a bit for each row");

/* "71.27 W" in the gauge's unit; false when it is no number, or of another unit. */
static bool parse_number(const char *text, const char *unit, int64_t scale, int64_t *ret_number)
{
	bool negative = *text == '-';
	int64_t whole = 0, thousandths = 0;
	const char *start = text += negative;

	for (; *text >= '0' && *text <= '9'; text++) {
		whole = whole * 10 + (*text - '0');
		if (whole > INT64_MAX / 2000 / scale)
			return false;
	}
	if (text == start || (negative && !str_equal(unit, "C")))
		return false;
	if (*text == '.') {
		text++;
		for (int64_t worth = 100; *text >= '0' && *text <= '9'; text++, worth /= 10)
			thousandths += (*text - '0') * worth;
	}
	text += strspn(text, " ");
	if (!str_equal(text, unit) && !(str_equal(unit, "MiB") && str_equal(text, "MB")))
		return false;
	whole = (whole * 1000 + thousandths) * scale / 1000;
	*ret_number = negative ? -whole : whole;
	return true;
}

/* Nothing is known then, and nothing is wrong. */
static bool says_nothing(const char *text)
{
	static const char *const nothings[] = {"",
					       "N/A",
					       "Not Supported",
					       "Not Available",
					       "Not Found",
					       "Unknown",
					       "Unknown Error",
					       "No Data",
					       "Insufficient Permissions",
					       "Requested functionality has been deprecated"};

	for (size_t i = 0; i < ARRAY_SIZE(nothings); i++)
		if (strcasecmp(text, nothings[i]) == 0)
			return true;
	return false;
}

/* What is wrong with a GPU may stand in any of its elements. */
static bool says_lost(const char *text)
{
	return strstr(text, "is lost");
}

static bool says_reset(const char *text)
{
	return strstr(text, "requires reset");
}

/* An action that we don't know is one all the same. */
static enum health_recovery parse_recovery(const char *text)
{
	if (says_nothing(text) || says_lost(text) || says_reset(text))
		return HEALTH_RECOVERY_UNKNOWN;
	if (strcasecmp(text, "None") == 0)
		return HEALTH_RECOVERY_NONE;
	if (strstr(text, "P2P") || strstr(text, "IMEX"))
		return HEALTH_RECOVERY_DRAIN_P2P;
	if (strstr(text, "Drain"))
		return HEALTH_RECOVERY_DRAIN_RESET;
	return strstr(text, "Reboot") ? HEALTH_RECOVERY_REBOOT : HEALTH_RECOVERY_RESET;
}

static bool is_yes(const char *text)
{
	return strcasecmp(text, "Yes") == 0;
}

static void take_minor(struct reading_gpu *gpu, const char *text)
{
	int64_t minor;

	if (parse_number(text, "", 1, &minor) && minor >= 0 && minor <= READING_MAX_MINOR)
		gpu->minor = (int32_t)minor;
}

static void take_gauge(struct reading_gpu *gpu, const struct row *row, const char *text)
{
	int64_t *gauge = &gpu->gauges[row->gauge], number;

	if (!parse_number(text, row->unit, row->scale, &number))
		return;
	if (row->kind == KIND_ADD && *gauge != READING_UNKNOWN)
		*gauge += number;
	else if (row->kind != KIND_FALLBACK || *gauge == READING_UNKNOWN)
		*gauge = number;
}

static void take_remap(struct reading_gpu *gpu, enum health_row_remap remap)
{
	if (gpu->row_remap < remap) /* failed is worse than pending */
		gpu->row_remap = remap;
}

static void take_value(struct reading_gpu *gpu, const struct row *row, const char *text)
{
	switch (row->kind) {
	case KIND_MODEL:
		if (!says_nothing(text) && !says_lost(text) && !says_reset(text))
			reading_text(gpu->model, sizeof gpu->model, text);
		break;
	case KIND_UUID:
		gpu->has_uuid = atom_uuid_parse(text, &gpu->uuid);
		if (!gpu->has_uuid && !*gpu->error)
			snprintf(gpu->error, sizeof gpu->error, "its UUID is '%.96s'", text);
		break;
	case KIND_PCI:
		pci_parse(text, gpu->pci); /* else <gpu>'s own attribute counts */
		break;
	case KIND_MINOR:
		take_minor(gpu, text);
		break;
	case KIND_MIG_MODE:
		gpu->mig_enabled = strcasecmp(text, "Enabled") == 0;
		if (gpu->mig_enabled || strcasecmp(text, "Disabled") == 0)
			gpu->mig_capable = INVENTORY_MIG_CAPABLE;
		else if (str_equal(text, "N/A"))
			gpu->mig_capable = INVENTORY_MIG_INCAPABLE;
		break;
	case KIND_MEMORY:
		parse_number(text, row->unit, row->scale, &gpu->memory_bytes);
		break;
	case KIND_GAUGE:
	case KIND_FALLBACK:
	case KIND_ADD:
		take_gauge(gpu, row, text);
		break;
	case KIND_REMAP_PENDING:
		take_remap(gpu, is_yes(text) ? HEALTH_REMAP_PENDING : HEALTH_REMAP_NONE);
		break;
	case KIND_REMAP_FAILED:
		take_remap(gpu, is_yes(text) ? HEALTH_REMAP_FAILED : HEALTH_REMAP_NONE);
		break;
	case KIND_RECOVERY:
		gpu->recovery = parse_recovery(text);
		break;
	case KIND_RESET_REQUIRED:
		gpu->needs_reset |= is_yes(text);
		break;
	case KIND_DRAIN_RECOMMENDED:
		if (is_yes(text) && gpu->recovery == HEALTH_RECOVERY_UNKNOWN)
			gpu->recovery = HEALTH_RECOVERY_DRAIN_RESET;
		break;
	}
}

/* --- the document --- */

struct parse {
	struct smi *smi;
	struct buf *beside;
	struct error *error;
	XML_Parser parser;
	bool failed;
	size_t depth, lengths[MAX_DEPTH]; /* of `path` before each open element */
	char path[PATH_SIZE];             /* of the open elements below <gpu> */
	char text[MAX_TEXT];
	size_t text_length;
	bool in_gpu;
	uint64_t seen; /* rows of this GPU */
	char kmd_version[INVENTORY_DRIVER_SIZE];
	struct smi_mig place; /* of the open MIG device; its index -1 until told */
	int64_t mig_ecc;      /* uncorrectable, of all of the GPU's instances */
};

static void stop(struct parse *parse, const char *why)
{
	if (!parse->failed)
		error_set(parse->error, ERROR_INVALID_INPUT, "nvidia-smi's report, line %lu: %s",
			  (unsigned long)XML_GetCurrentLineNumber(parse->parser), why);
	parse->failed = true;
	XML_StopParser(parse->parser, XML_FALSE);
}

static struct reading_gpu *last_gpu(struct parse *parse)
{
	struct reading *reading = &parse->smi->reading;

	return &reading->gpus.items[reading->gpus.count - 1];
}

static void open_gpu(struct parse *parse, const XML_Char **attributes)
{
	struct reading_gpu *gpu;

	if (parse->smi->reading.gpus.count == INVENTORY_MAX_GPUS) {
		stop(parse, "more GPUs than one machine can have");
		return;
	}
	gpu = vec_push(&parse->smi->reading.gpus);
	*gpu = reading_gpu_unknown();
	parse->in_gpu = true;
	parse->seen = 0;
	parse->mig_ecc = 0;
	for (; *attributes; attributes += 2)
		if (str_equal(attributes[0], "id"))
			pci_parse(attributes[1], gpu->pci);
}

static void close_gpu(struct parse *parse)
{
	struct reading_gpu *gpu = last_gpu(parse);
	int64_t uncorrected = gpu->gauges[GAUGE_ECC_UNCORRECTED_VOLATILE];

	parse->in_gpu = false;
	if (gpu->memory_bytes == 0 ||
	    gpu->memory_bytes > READING_MAX_MEMORY) /* it is the machine's (GB10) */
		gpu->memory_bytes = gpu->gauges[GAUGE_MEMORY_USED_BYTES] =
			gpu->gauges[GAUGE_MEMORY_FREE_BYTES] = READING_UNKNOWN;
	/* In MIG mode drivers of 450 to 510 count by instance only. */
	gpu->ecc_uncorrectable = uncorrected != READING_UNKNOWN ? uncorrected : parse->mig_ecc;
	if (!gpu->has_uuid && !*gpu->error)
		str_copy(gpu->error, sizeof gpu->error, "it has no UUID");
}

static void open_mig(struct parse *parse)
{
	struct reading_gpu *gpu = last_gpu(parse);

	if (gpu->mig.count == READING_MAX_MIG) {
		stop(parse, "more MIG instances than a GPU can have");
		return;
	}
	*vec_push(&gpu->mig) = (struct reading_mig){
		.gi = -1, .ci = -1, .start = -1, .memory_bytes = READING_UNKNOWN};
	parse->place = (struct smi_mig){
		.gpu = parse->smi->reading.gpus.count - 1, .mig = gpu->mig.count - 1, .index = -1};
}

/* An instance without its numbers can't be told from another. */
static void close_mig(struct parse *parse)
{
	struct reading_gpu *gpu = last_gpu(parse);
	const struct reading_mig *mig = &gpu->mig.items[parse->place.mig];

	if (mig->gi < 0 || mig->ci < 0) {
		gpu->mig.count--;
		return;
	}
	if (parse->place.index < 0)
		parse->place.index = (int32_t)parse->place.mig;
	*vec_push(&parse->smi->migs) = parse->place;
}

static void take_mig_value(struct parse *parse, const char *path, const char *text)
{
	struct reading_gpu *gpu = last_gpu(parse);
	struct reading_mig *mig = &gpu->mig.items[parse->place.mig];
	int64_t number = -1;
	bool small = parse_number(text, "", 1, &number) && number >= 0 && number <= ATOM_MAX_NUMBER;

	if (str_equal(path, "index") && small)
		parse->place.index = (int32_t)number;
	else if (str_equal(path, "gpu_instance_id") && small)
		mig->gi = (int32_t)number;
	else if (str_equal(path, "compute_instance_id") && small)
		mig->ci = (int32_t)number;
	else if (str_equal(path, "uuid") && str_starts(text, "MIG-"))
		reading_text(mig->uuid, sizeof mig->uuid, text);
	else if (str_equal(path, "fb_memory_usage/total"))
		parse_number(text, "MiB", MIB, &mig->memory_bytes);
	else if (str_equal(path, "ecc_error_count/volatile_count/sram_uncorrectable") && number > 0)
		parse->mig_ecc += number;
}

/* A driver that can't explain what became of these has lost hold of the GPU; elsewhere it may just be
 * what this GPU lacks (N05). The tool's table says ERR!, its report the words of NVML. */
static bool is_err(const struct row *row, const char *text)
{
	bool vital =
		row && (row->kind == KIND_UUID ||
			(row->unit && (str_equal(row->unit, "W") || str_equal(row->unit, "MHz"))));

	return (row && str_equal(text, "ERR!")) ||
	       (vital && strcasecmp(text, "Unknown Error") == 0);
}

static void take_trouble(const struct parse *parse, struct reading_gpu *gpu, const struct row *row,
			 const char *text)
{
	bool lost = says_lost(text);

	if (!lost && !says_reset(text) && !is_err(row, text))
		return;
	gpu->lost |= lost;
	gpu->needs_reset |= !lost;
	if (!*gpu->error)
		snprintf(gpu->error, sizeof gpu->error, "%.80s: %.70s", parse->path, text);
}

static void take_gpu_value(struct parse *parse, const char *text)
{
	struct reading_gpu *gpu = last_gpu(parse);
	const struct row *row = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(rows) && !row; i++)
		if (str_equal(rows[i].path, parse->path))
			row = &rows[i];
	take_trouble(parse, gpu, row, text);
	if (!row || parse->seen & (uint64_t)1 << (row - rows))
		return;
	parse->seen |= (uint64_t)1 << (row - rows);
	take_value(gpu, row, text);
}

/* "610.57.04 [Deprecated; …]" is what 610 says of its driver_version. */
static void take_driver(char out[INVENTORY_DRIVER_SIZE], const char *text)
{
	char driver[INVENTORY_DRIVER_SIZE];

	if (says_nothing(text))
		return;
	reading_text(driver, sizeof driver, text);
	driver[strcspn(driver, " [")] = '\0';
	str_copy(out, INVENTORY_DRIVER_SIZE, driver);
}

/* --- what expat calls --- */

static void on_start(void *arg, const XML_Char *name, const XML_Char **attributes)
{
	struct parse *parse = arg;
	size_t length = strlen(parse->path);

	if (parse->depth == MAX_DEPTH || strlen(name) > MAX_NAME) {
		stop(parse, "not a report of nvidia-smi");
		return;
	}
	parse->text_length = 0;
	parse->lengths[parse->depth++] = length;
	if (parse->depth == 1 && !str_equal(name, ROOT))
		stop(parse, "not a report of nvidia-smi");
	else if (parse->depth == GPU_DEPTH && str_equal(name, "gpu"))
		open_gpu(parse, attributes);
	else if (parse->depth > 1) {
		snprintf(parse->path + length, PATH_SIZE - length, "%s%s", length ? "/" : "", name);
		if (parse->in_gpu && str_equal(parse->path, MIG_DEVICE))
			open_mig(parse);
	}
}

/* The value of the element that ends, without spaces and brackets around it. */
static const char *value_text(struct parse *parse, char out[MAX_TEXT])
{
	size_t length;

	parse->text[parse->text_length] = '\0';
	reading_text(out, MAX_TEXT, parse->text);
	length = strlen(out);
	if (out[0] != '[' || out[length - 1] != ']')
		return out;
	out[length - 1] = '\0';
	return out + 1;
}

static void on_end(void *arg, const XML_Char *name UNUSED)
{
	static const char mig_below[] = MIG_DEVICE "/";
	struct parse *parse = arg;
	char out[MAX_TEXT];
	const char *text = value_text(parse, out);

	if (parse->failed) /* expat ends an empty element even so */
		return;
	if (parse->in_gpu && parse->depth == GPU_DEPTH)
		close_gpu(parse);
	else if (parse->in_gpu && str_equal(parse->path, MIG_DEVICE))
		close_mig(parse);
	else if (parse->in_gpu && str_starts(parse->path, mig_below))
		take_mig_value(parse, parse->path + strlen(mig_below), text);
	else if (parse->in_gpu)
		take_gpu_value(parse, text);
	else if (str_equal(parse->path, "driver_version"))
		take_driver(parse->smi->reading.driver, text);
	else if (str_equal(parse->path, "kmd_version"))
		take_driver(parse->kmd_version, text);
	parse->depth--;
	parse->path[parse->lengths[parse->depth]] = '\0';
	parse->text_length = 0;
}

static void on_text(void *arg, const XML_Char *text, int length)
{
	struct parse *parse = arg;
	size_t size = (size_t)length, room = MAX_TEXT - 1 - parse->text_length;

	if (parse->depth == 1 && parse->beside->length < MAX_BESIDE)
		buf_add(parse->beside, text, size);
	if (size > room)
		size = room;
	memcpy(parse->text + parse->text_length, text, size);
	parse->text_length += size;
}

static void on_entity(void *arg, const XML_Char *name UNUSED, int parameter UNUSED,
		      const XML_Char *value UNUSED, int length UNUSED, const XML_Char *base UNUSED,
		      const XML_Char *system UNUSED, const XML_Char *public UNUSED,
		      const XML_Char *notation UNUSED)
{
	stop(arg, "entities are refused");
}

/* --- the bytes --- */

static const char *find(const char *text, const char *end, const char *what)
{
	return text ? memmem(text, (size_t)(end - text), what, strlen(what)) : NULL;
}

static const char *find_last(const char *text, const char *end, const char *tag)
{
	const char *at = end;

	while ((at = memrchr(text, '<', (size_t)(at - text))))
		if ((size_t)(end - at) >= strlen(tag) && memcmp(at, tag, strlen(tag)) == 0)
			return at;
	return NULL;
}

/* Names of processes are whatever a program calls itself, unescaped; the clocks that a GPU could
 * have are most of a report. */
static const char *const cut_tags[][2] = {
	{"<processes>", "</processes>"},
	{"<compute_processes>", "</compute_processes>"},
	{"<accounted_processes>", "</accounted_processes>"},
	{"<supported_clocks>", "</supported_clocks>"},
};

/* Behind the element that begins at `text` and is to be cut; else NULL. `*unclosed` has a bit for
 * each that is never closed again, so that none is looked for twice. */
static const char *behind_cut(const char *text, const char *end, unsigned *unclosed)
{
	for (size_t i = 0; i < ARRAY_SIZE(cut_tags); i++) {
		size_t size = strlen(cut_tags[i][0]);
		const char *close;

		if ((*unclosed & 1u << i) || (size_t)(end - text) < size ||
		    memcmp(text, cut_tags[i][0], size) != 0)
			continue;
		close = find(text, end, cut_tags[i][1]);
		if (close)
			return close + strlen(cut_tags[i][1]);
		*unclosed |= 1u << i;
	}
	return NULL;
}

static void add_without_cuts(struct buf *out, const char *text, const char *end)
{
	unsigned unclosed = 0;
	const char *from = text;

	while ((text = memchr(text, '<', (size_t)(end - text)))) {
		const char *behind = behind_cut(text, end, &unclosed);

		if (behind) {
			buf_add(out, from, (size_t)(text - from));
			from = behind;
		}
		text = behind ? behind : text + 1;
	}
	buf_add(out, from, (size_t)(end - from));
}

static bool parse_bytes(struct parse *parse, const struct buf *xml)
{
	bool ok;

	/* As Latin-1 every byte is a character: no name in a wrong encoding spoils the report. */
	parse->parser = XML_ParserCreate("ISO-8859-1");
	if (!parse->parser)
		abort();
	XML_SetUserData(parse->parser, parse);
	XML_SetElementHandler(parse->parser, on_start, on_end);
	XML_SetCharacterDataHandler(parse->parser, on_text);
	XML_SetEntityDeclHandler(parse->parser, on_entity);
	ok = XML_Parse(parse->parser, (const char *)xml->data, (int)xml->length, XML_TRUE) ==
		     XML_STATUS_OK &&
	     !parse->failed;
	if (!ok && !parse->failed)
		stop(parse, XML_ErrorString(XML_GetErrorCode(parse->parser)));
	XML_ParserFree(parse->parser);
	return ok;
}

bool smi_xml_find(const char *text, size_t length, const char **ret_xml, size_t *ret_length,
		  struct buf *beside)
{
	const char *end = text + length, *xml = find(text, end, "<?xml"), *root, *close;

	root = find(text, end, "<" ROOT);
	if (!xml || (root && root < xml))
		xml = root;
	if (!xml) {
		buf_add(beside, text, length);
		return false;
	}
	buf_add(beside, text, (size_t)(xml - text));
	buf_add_char(beside, '\n');
	close = find_last(xml, end, "</" ROOT ">");
	if (close) {
		close += strlen("</" ROOT ">");
		buf_add(beside, close, (size_t)(end - close));
		end = close;
	}
	*ret_xml = xml;
	*ret_length = (size_t)(end - xml);
	return true;
}

bool smi_xml_read(const char *xml, size_t length, struct smi *smi, struct buf *beside,
		  struct error *error)
{
	struct parse parse = {.smi = smi, .beside = beside, .error = error};
	CLEANUP(buf) struct buf kept = {0};

	assert(length <= SMI_MAX_BYTES);
	add_without_cuts(&kept, xml, xml + length);
	if (!parse_bytes(&parse, &kept))
		return false;
	if (*parse.kmd_version)
		str_copy(smi->reading.driver, sizeof smi->reading.driver, parse.kmd_version);
	return true;
}
