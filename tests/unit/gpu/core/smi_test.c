#include "gpu/core/smi.h"
#include "lib/test.h"

#include <stdio.h>

/*
 * Reports as nvidia-smi of drivers 340 to 610 writes them, in fuzz/corpus/smi: what it wrote to stdout,
 * to stderr, `-L` and `mig -lgi`, with SEPARATOR between. The readings that they must give stand beside
 * this file, in smi/.
 */
#define SEPARATOR '\x1e'

static const char *const reports[] = {
	"8800gt-340",  "p100-384",       "v100-450",     "t4-515",          "a100-mig-510",
	"a30-mig-525", "h100-535",       "h100-mig-590", "pro6000-mig-580", "gb10-580",
	"l40s-595",    "rtx4070-575",    "wddm-610",     "orin-540",        "b200-570",
	"errors",      "lost-on-stderr", "lost-many",
};

struct report {
	char *text;
	struct smi_said said;
	const char *list, *places;
};

static char *load(const char *folder, const char *name, size_t *ret_length)
{
	static char bytes[1 << 20];
	char path[512];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (!file)
		fail_msg("open '%s'", path);
	*ret_length = fread(bytes, 1, sizeof bytes - 1, file);
	fclose(file);
	bytes[*ret_length] = '\0';
	return mem_dup(bytes, *ret_length + 1);
}

static void load_report(const char *name, struct report *report)
{
	const char *parts[4] = {"", "", "", ""};
	size_t length;
	char *text = load(SMI_REPORTS, name, &length);

	report->text = text;
	for (size_t i = 0; i < ARRAY_SIZE(parts) && text; i++) {
		char *next = strchr(text, SEPARATOR);

		if (next)
			*next++ = '\0';
		parts[i] = text;
		text = next;
	}
	report->said =
		(struct smi_said){.out = parts[0], .err = parts[1], .out_length = strlen(parts[0])};
	report->list = parts[2];
	report->places = parts[3];
}

static void read_report(const char *name, int exit_status, struct smi *smi)
{
	struct report report;
	struct error error;

	load_report(name, &report);
	report.said.exit_status = exit_status;
	expect_ok(smi_read(&report.said, smi, &error), &error);
	smi_add_mig(smi, report.list, report.places);
	free(report.text);
}

static void dump(const struct smi *smi, struct buf *out)
{
	CLEANUP(tree) json_t *object = reading_json(&smi->reading);

	tree_dump_pretty(out, object);
}

/* Ten real reports and more, each field (N05: N/A everywhere; 0.16: the domain of GB10).
 * proves: DP-10 */
static void test_reports_of_all_drivers(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
		CLEANUP(smi) struct smi smi = {0};
		CLEANUP(buf) struct buf text = {0};
		char name[64], *wanted;
		size_t length;

		read_report(reports[i], 0, &smi);
		dump(&smi, &text);
		snprintf(name, sizeof name, "%s.json", reports[i]);
		wanted = load(SMI_READINGS, name, &length);
		if (!str_equal(buf_text(&text), wanted))
			fail_msg("%s gives %s", reports[i], buf_text(&text));
		free(wanted);
	}
}

/* N01: wherever the complaint is printed, and however nvidia-smi ends, it is one lost GPU of four. */
static void test_a_lost_gpu_spoils_no_other(void **state)
{
	static const char *const places[] = {"lost-on-stderr", "lost-on-stdout", "lost-behind",
					     "lost-between"};
	static const int statuses[] = {0, 15, 255};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		for (size_t j = 0; j < ARRAY_SIZE(statuses); j++) {
			CLEANUP(smi) struct smi smi = {0};
			const struct reading_gpu *gpus;

			read_report(places[i], statuses[j], &smi);
			assert_int_equal(smi.reading.gpus.count, 4);
			gpus = smi.reading.gpus.items;
			for (int k = 0; k < 3; k++) {
				assert_true(gpus[k].has_uuid);
				assert_false(gpus[k].lost);
				assert_string_equal(gpus[k].error, "");
			}
			assert_true(gpus[3].lost);
			assert_false(gpus[3].has_uuid);
			assert_string_equal(gpus[3].pci, "0000:c1:00.0");
			assert_true(str_starts(gpus[3].error, "GPU is lost.  Reboot the system"));
		}
}

static void dump_gpu(const struct smi *smi, size_t index, struct buf *out)
{
	CLEANUP(tree) json_t *object = reading_json(&smi->reading);

	tree_dump_canonical(out, json_array_get(json_object_get(object, "gpus"), index));
}

/* The report with the text of one element replaced. */
static void read_changed(const char *report, const char *from, const char *to, const char *word,
			 struct smi *smi)
{
	CLEANUP(buf) struct buf text = {0};
	struct smi_said said = {.err = ""};
	struct error error;

	buf_add(&text, report, (size_t)(from - report));
	buf_add_text(&text, word);
	buf_add_text(&text, to);
	said.out = buf_text(&text);
	said.out_length = text.length;
	expect_ok(smi_read(&said, smi, &error), &error);
}

/* N05, N01: whatever stands in any one element, the report is read, the other GPU stays as it was, and
 * only three words make the GPU itself bad. */
static void test_each_element_with_each_word(void **state)
{
	static const struct {
		const char *word;
		bool bad;
	} words[] = {
		{"N/A", false},
		{"[N/A]", false},
		{"Not Supported", false},
		{"[Not Supported]", false},
		{"Unknown Error", false},
		{"[Unknown Error]", false},
		{"[Insufficient Permissions]", false},
		{"", false},
		{"   ", false},
		{"\t\n", false},
		{"99999999999999999999", false},
		{"-1", false},
		{"ERR!",
		 false}, /* of most elements; those that count are tested in smi_xml_test.c */
		{"[GPU requires reset]", true},
		{"GPU is lost", true},
	};
	struct report report;
	CLEANUP(smi) struct smi whole = {0};
	CLEANUP(buf) struct buf second = {0};
	size_t elements = 0;
	struct error error;

	(void)state;
	load_report("h100-535", &report);
	expect_ok(smi_read(&report.said, &whole, &error), &error);
	dump_gpu(&whole, 1, &second);
	for (const char *at = strstr(report.said.out, "<gpu "); *at; at++) {
		const char *end = at + 1 + strcspn(at + 1, "<>");

		if (*at != '>' || strncmp(end, "</", 2) != 0 || end == at + 1)
			continue; /* no leaf */
		if (strstr(report.said.out, "00000000:43") < at)
			break; /* the second GPU's */
		if (strncmp(end, "</supported", 11) == 0 || strncmp(end, "</value", 7) == 0)
			continue; /* not looked at */
		elements++;
		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			CLEANUP(smi) struct smi smi = {0};
			CLEANUP(buf) struct buf other = {0};
			const struct reading_gpu *gpu;

			read_changed(report.said.out, at + 1, end, words[i].word, &smi);
			assert_int_equal(smi.reading.gpus.count, 2);
			dump_gpu(&smi, 1, &other);
			assert_string_equal(buf_text(&other), buf_text(&second));
			gpu = &smi.reading.gpus.items[0];
			assert_true(gpu->row_remap <= HEALTH_REMAP_PENDING);
			assert_true(gpu->ecc_uncorrectable >= 0);
			if (words[i].bad)
				assert_true(gpu->lost || gpu->needs_reset);
			else
				assert_false(gpu->lost);
		}
	}
	assert_true(elements > 60);
	free(report.text);
}

static void expect_failure(const char *out, const char *err, int exit_status, const char *what,
			   const char *hint)
{
	CLEANUP(smi) struct smi smi = {0};
	const struct smi_said said = {out, err, strlen(out), exit_status};
	struct error error = {0};

	expect_error(smi_read(&said, &smi, &error), &error, ERROR_UNAVAILABLE, what);
	if (!strstr(error.hint, hint))
		fail_msg("hint \"%s\" lacks \"%s\"", error.hint, hint);
	assert_int_equal(smi.reading.gpus.count, 0);
}

/* N02: a driver that doesn't answer is no machine without GPUs. */
static void test_failures_say_what_to_do(void **state)
{
	static const char empty[] =
		"<nvidia_smi_log><attached_gpus>0</attached_gpus></nvidia_smi_log>";

	(void)state;
	expect_failure("Failed to initialize NVML: Driver/library version mismatch\nNVML library "
		       "version: 535.104\n",
		       "", 18, "version mismatch", "reload");
	expect_failure("Failed to initialize NVML: Unknown Error\n", "", 255, "Unknown Error",
		       "container");
	expect_failure(
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
		"driver. Make sure that the latest NVIDIA driver is installed and running.\n",
		"", 9, "couldn't communicate", "modprobe");
	expect_failure("", "Failed to initialize NVML: Insufficient Permissions\n", 4,
		       "Insufficient Permissions", "root");
	expect_failure("No devices were found\n", "", 0, "No devices", "lspci");
	expect_failure("No devices were found\n", "", 6, "No devices", "lspci");
	expect_failure("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", "", 12,
		       "libnvidia-ml", "libraries");
	expect_failure("\n  \nwhat is this\n", "", 1, "what is this", "nvidia-smi -q");
	expect_failure("", "", 1, "status 1", "");
	expect_failure("", "", -1, "killed", "");
	expect_failure(empty, "", 6, "nvidia-smi", "");
}

static void test_a_machine_without_gpus_is_one(void **state)
{
	static const char empty[] = "<nvidia_smi_log><driver_version>570.1</driver_version>"
				    "<attached_gpus>0</attached_gpus></nvidia_smi_log>";
	const struct smi_said said = {empty, "", strlen(empty), 0};
	CLEANUP(smi) struct smi smi = {0};
	struct error error;

	(void)state;
	expect_ok(smi_read(&said, &smi, &error), &error);
	assert_int_equal(smi.reading.gpus.count, 0);
	assert_string_equal(smi.reading.driver, "570.1");
	assert_string_equal(smi.reading.source, "nvidia-smi");
}

static void expect_invalid(const char *out, const char *what)
{
	CLEANUP(smi) struct smi smi = {0};
	const struct smi_said said = {out, "", strlen(out), 0};
	struct error error = {0};

	expect_error(smi_read(&said, &smi, &error), &error, ERROR_INVALID_INPUT, what);
	assert_int_equal(smi.reading.gpus.count, 0);
}

/* Half a report is none: who isn't in it might only not have been printed yet. */
static void test_half_a_report_is_refused(void **state)
{
	struct report report;
	char *whole;

	(void)state;
	load_report("b200-570", &report);
	whole = mem_strdup(report.said.out);
	for (size_t i = strlen("<?xml version=\"1.0\" ?>"); whole[i + 1]; i++) {
		CLEANUP(smi) struct smi smi = {0};
		struct error error;
		char cut = whole[i];

		whole[i] = '\0';
		report.said = (struct smi_said){whole, "", i, 0};
		if (smi_read(&report.said, &smi, &error))
			fail_msg("the first %zu bytes are taken", i);
		whole[i] = cut;
	}
	free(whole);
	free(report.text);
}

static void test_what_is_hostile_is_refused(void **state)
{
	CLEANUP(buf) struct buf text = {0};

	(void)state;
	expect_invalid(
		"<?xml version=\"1.0\"?><!DOCTYPE nvidia_smi_log [<!ENTITY a \"aa\"><!ENTITY b "
		"\"&a;&a;&a;\">]><nvidia_smi_log>&b;</nvidia_smi_log>",
		"entities");
	expect_invalid("<?xml version=\"1.0\"?><!DOCTYPE nvidia_smi_log [<!ENTITY a SYSTEM "
		       "\"/etc/passwd\">]><nvidia_smi_log>&a;</nvidia_smi_log>",
		       "entities");
	expect_invalid("<?xml version=\"1.0\"?><html><gpu/></html>", "not a report");
	buf_add_text(&text, "<nvidia_smi_log>");
	for (int i = 0; i < 32; i++)
		buf_add_text(&text, "<a>");
	expect_invalid(buf_text(&text), "not a report");
	buf_clear(&text);
	buf_add_text(&text, "<nvidia_smi_log>");
	for (int i = 0; i <= INVENTORY_MAX_GPUS; i++)
		buf_add_text(&text, "<gpu></gpu>");
	buf_add_text(&text, "</nvidia_smi_log>");
	expect_invalid(buf_text(&text), "more GPUs");
	buf_clear(&text);
	buf_add_text(&text, "<nvidia_smi_log><gpu><mig_devices>");
	for (int i = 0; i <= READING_MAX_MIG; i++)
		buf_printf(&text,
			   "<mig_device><gpu_instance_id>%d</gpu_instance_id><compute_instance_id>0"
			   "</compute_instance_id></mig_device>",
			   i);
	buf_add_text(&text, "</mig_devices></gpu></nvidia_smi_log>");
	expect_invalid(buf_text(&text), "more MIG");
}

static void test_the_size_is_bounded(void **state)
{
	static const char before[] = "<nvidia_smi_log>", after[] = "</nvidia_smi_log>";
	CLEANUP(buf) struct buf text = {0};
	struct smi_said said = {.err = ""};
	struct error error = {0};

	(void)state;
	buf_add_text(&text, before);
	memset(buf_extend(&text, SMI_MAX_BYTES - strlen(before) - strlen(after)), ' ',
	       SMI_MAX_BYTES - strlen(before) - strlen(after));
	buf_add_text(&text, after);
	for (size_t over = 0; over < 2; over++) {
		CLEANUP(smi) struct smi smi = {0};

		said.out = buf_text(&text);
		said.out_length = text.length;
		if (!over)
			expect_ok(smi_read(&said, &smi, &error), &error);
		else
			expect_error(smi_read(&said, &smi, &error), &error, ERROR_INVALID_INPUT,
				     "8 MiB");
		buf_add_char(&text, '\n');
	}
}

/* A pod chooses its processes' names. */
static void test_a_name_of_a_process_can_do_nothing(void **state)
{
	static const char report[] = "<nvidia_smi_log><gpu id=\"00000000:01:00.0\">"
				     "<uuid>GPU-5a1c0de0-0001-4000-8000-000000000001</uuid>"
				     "<gpu_recovery_action>None</gpu_recovery_action>"
				     "<processes><process_info><process_name>%s</process_name></"
				     "process_info></processes>"
				     "</gpu></nvidia_smi_log>";
	static const char *const names[] = {
		"a & b < c > \"'",
		"\xff\xfe\x01\x02",
		"]]>",
		"<!--",
		"<![CDATA[",
		"<processes>",
		"GPU is lost",
		"GPU requires reset",
		"</process_name><gpu_recovery_action>Reset</gpu_recovery_action>",
		"&lol;&#0;",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(smi) struct smi smi = {0};
		CLEANUP(buf) struct buf text = {0};
		struct smi_said said = {.err = ""};
		struct error error;

		buf_printf(&text, report, names[i]);
		said.out = buf_text(&text);
		said.out_length = text.length;
		expect_ok(smi_read(&said, &smi, &error), &error);
		assert_int_equal(smi.reading.gpus.count, 1);
		assert_true(smi.reading.gpus.items[0].has_uuid);
		assert_false(smi.reading.gpus.items[0].lost);
		assert_false(smi.reading.gpus.items[0].needs_reset);
		assert_int_equal(smi.reading.gpus.items[0].recovery, HEALTH_RECOVERY_NONE);
	}
}

/* `-L` of a machine with a lost GPU skips its number; places are by number. */
static void test_placements_find_their_gpu(void **state)
{
	static const char report[] =
		"<nvidia_smi_log>"
		"<gpu "
		"id=\"00000000:01:00.0\"><uuid>GPU-5a1c0de0-0001-4000-8000-000000000001</uuid></"
		"gpu>"
		"<gpu id=\"00000000:03:00.0\"><uuid>GPU-5a1c0de0-0003-4000-8000-000000000003</uuid>"
		"<mig_devices><mig_device><index>2</index><gpu_instance_id>7</gpu_instance_id>"
		"<compute_instance_id>0</compute_instance_id></mig_device></mig_devices></gpu>"
		"</nvidia_smi_log>";
	static const char list[] =
		"GPU 0: NVIDIA H100 (a) (UUID: GPU-5a1c0de0-0001-4000-8000-000000000001)\n"
		"GPU 2: NVIDIA H100 (UUID: GPU-5a1c0de0-0003-4000-8000-000000000003)\n"
		"  MIG 1g.10gb     Device  1: (UUID: MIG-1)\n"
		"  MIG 1g.10gb     Device  2: (UUID: MIG-2)\n"
		"GPU 3: NVIDIA H100 (UUID: GPU-5a1c0de0-0009-4000-8000-000000000009)\n"
		"  MIG 1g.10gb     Device  2: (UUID: MIG-3)\n";
	static const char places[] =
		"|   0  MIG 1g.10gb           19        7          3:1     |\n"
		"|   1  MIG 1g.10gb           19        7          4:1     |\n"
		"|   2  MIG 1g.10gb           19        7          5:1     |\n"
		"|   2  MIG 1g.10gb           19        7          9:1     |\n"
		"|   2  MIG 1g.10gb           19        7         -1:1     |\n"
		"|   3  MIG 1g.10gb           19        7          6:1     |\n";
	const struct smi_said said = {report, "", strlen(report), 0};
	CLEANUP(smi) struct smi smi = {0};
	const struct reading_mig *mig;
	struct error error;

	(void)state;
	expect_ok(smi_read(&said, &smi, &error), &error);
	assert_int_equal(smi.migs.count, 1);
	mig = &smi.reading.gpus.items[1].mig.items[0];
	smi_add_mig(&smi, "", "");
	assert_int_equal(mig->start, -1);
	assert_string_equal(mig->uuid, "");
	smi_add_mig(&smi, list, places);
	assert_string_equal(mig->uuid, "MIG-2");
	assert_int_equal(mig->start, 5);
	assert_int_equal(mig->size, 1);
}

/* Made or removed while the report was written. */
static void test_a_part_without_numbers_is_none(void **state)
{
	static const char report[] =
		"<nvidia_smi_log><gpu><mig_devices>"
		"<mig_device><index>0</index><gpu_instance_id>N/A</gpu_instance_id>"
		"<compute_instance_id>0</compute_instance_id></mig_device>"
		"<mig_device><index>1</index><gpu_instance_id>7</gpu_instance_id></mig_device>"
		"<mig_device><index>2</index><gpu_instance_id>8</gpu_instance_id>"
		"<compute_instance_id>0</compute_instance_id></mig_device>"
		"</mig_devices></gpu></nvidia_smi_log>";
	const struct smi_said said = {report, "", strlen(report), 0};
	CLEANUP(smi) struct smi smi = {0};
	struct error error;

	(void)state;
	expect_ok(smi_read(&said, &smi, &error), &error);
	assert_int_equal(smi.reading.gpus.items[0].mig.count, 1);
	assert_int_equal(smi.reading.gpus.items[0].mig.items[0].gi, 8);
	assert_int_equal(smi.migs.count, 1);
	assert_int_equal(smi.migs.items[0].index, 2);
}

static void test_complaints_are_bounded(void **state)
{
	CLEANUP(buf) struct buf err = {0};
	CLEANUP(smi) struct smi smi = {0};
	struct smi_said said = {.out = ""};
	struct error error;

	(void)state;
	for (int i = 0; i < 2 * INVENTORY_MAX_GPUS; i++)
		buf_printf(&err,
			   "Unable to determine the device handle for GPU0000:%02X:00.0: GPU is "
			   "lost.\n",
			   (unsigned)i);
	said.err = buf_text(&err);
	expect_ok(smi_read(&said, &smi, &error), &error);
	assert_int_equal(smi.reading.gpus.count, INVENTORY_MAX_GPUS);
	assert_string_equal(smi.reading.gpus.items[63].pci, "0000:3f:00.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reports_of_all_drivers),
		cmocka_unit_test(test_a_lost_gpu_spoils_no_other),
		cmocka_unit_test(test_each_element_with_each_word),
		cmocka_unit_test(test_failures_say_what_to_do),
		cmocka_unit_test(test_a_machine_without_gpus_is_one),
		cmocka_unit_test(test_half_a_report_is_refused),
		cmocka_unit_test(test_what_is_hostile_is_refused),
		cmocka_unit_test(test_the_size_is_bounded),
		cmocka_unit_test(test_a_name_of_a_process_can_do_nothing),
		cmocka_unit_test(test_placements_find_their_gpu),
		cmocka_unit_test(test_a_part_without_numbers_is_none),
		cmocka_unit_test(test_complaints_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
