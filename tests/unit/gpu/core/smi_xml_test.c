#include "gpu/core/smi_xml.h"
#include "lib/test.h"

/* One GPU with this inside. */
static struct reading_gpu read_gpu(const char *inside)
{
	CLEANUP(buf) struct buf text = {0}, beside = {0};
	CLEANUP(smi) struct smi smi = {0};
	struct reading_gpu gpu;
	struct error error;

	buf_printf(&text, "<nvidia_smi_log><gpu id=\"0000000F:01:00.0\">%s</gpu></nvidia_smi_log>",
		   inside);
	expect_ok(smi_xml_read(buf_text(&text), text.length, &smi, &beside, &error), &error);
	assert_int_equal(smi.reading.gpus.count, 1);
	gpu = smi.reading.gpus.items[0];
	gpu.mig.items = NULL; /* freed with the rest */
	return gpu;
}

static void test_numbers_and_their_units(void **state)
{
	static const struct {
		const char *text;
		int64_t mw;
	} rows[] = {
		{"71.27 W", 71270},
		{"71 W", 71000},
		{"  71.2 W\n", 71200},
		{"71.27999 W", 71279},
		{"0.00 W", 0},
		{"71.27W", 71270},
		{"[71.27 W]", 71270},
		{"71.27 mW", READING_UNKNOWN},
		{"71.27", READING_UNKNOWN},
		{"W", READING_UNKNOWN},
		{". W", READING_UNKNOWN},
		{"7 1 W", READING_UNKNOWN},
		{"99999999999999999999 W", READING_UNKNOWN},
		{"4611686018427 W", 4611686018427000},
		{"4611686018428 W", READING_UNKNOWN},
		{"N/A", READING_UNKNOWN},
		{"[N/A]", READING_UNKNOWN},
		{"", READING_UNKNOWN},
		{"Not Supported", READING_UNKNOWN},
		{"[Unknown Error]", READING_UNKNOWN},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(buf) struct buf inside = {0};
		struct reading_gpu gpu;

		buf_printf(&inside, "<power_readings><power_draw>%s</power_draw></power_readings>",
			   rows[i].text);
		gpu = read_gpu(buf_text(&inside));
		if (gpu.gauges[GAUGE_POWER_MW] != rows[i].mw)
			fail_msg("'%s' is %lld", rows[i].text,
				 (long long)gpu.gauges[GAUGE_POWER_MW]);
		assert_int_equal(gpu.needs_reset, strstr(rows[i].text, "Unknown Error") != NULL);
	}
}

/* proves: DP-52 */
static void test_each_recovery_action(void **state)
{
	static const struct {
		const char *text;
		enum health_recovery recovery;
	} rows[] = {
		{"None", HEALTH_RECOVERY_NONE},
		{"Reset", HEALTH_RECOVERY_RESET},
		{"GPU Reset", HEALTH_RECOVERY_RESET},
		{"Reboot", HEALTH_RECOVERY_REBOOT},
		{"Node Reboot", HEALTH_RECOVERY_REBOOT},
		{"Drain P2P", HEALTH_RECOVERY_DRAIN_P2P},
		{"Reset IMEX Domain", HEALTH_RECOVERY_DRAIN_P2P},
		{"Drain and Reset", HEALTH_RECOVERY_DRAIN_RESET},
		{"Something New", HEALTH_RECOVERY_RESET},
		{"N/A", HEALTH_RECOVERY_UNKNOWN},
		{"", HEALTH_RECOVERY_UNKNOWN},
		{"Unknown Error", HEALTH_RECOVERY_UNKNOWN},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(buf) struct buf inside = {0};

		buf_printf(&inside, "<gpu_recovery_action>%s</gpu_recovery_action>", rows[i].text);
		assert_int_equal(read_gpu(buf_text(&inside)).recovery, rows[i].recovery);
	}
}

static void test_order_and_repetition(void **state)
{
	struct reading_gpu gpu;

	(void)state;
	/* an average counts before the moment's power, in any order */
	gpu = read_gpu("<gpu_power_readings><instant_power_draw>5 W</instant_power_draw>"
		       "<average_power_draw>4 W</average_power_draw></gpu_power_readings>");
	assert_int_equal(gpu.gauges[GAUGE_POWER_MW], 4000);
	gpu = read_gpu("<gpu_power_readings><average_power_draw>4 W</average_power_draw>"
		       "<instant_power_draw>5 W</instant_power_draw></gpu_power_readings>");
	assert_int_equal(gpu.gauges[GAUGE_POWER_MW], 4000);
	gpu = read_gpu("<gpu_power_readings><average_power_draw>N/A</average_power_draw>"
		       "<instant_power_draw>5 W</instant_power_draw></gpu_power_readings>");
	assert_int_equal(gpu.gauges[GAUGE_POWER_MW], 5000);
	/* the first of two, also in the order of a newer driver */
	gpu = read_gpu("<minor_number>3</minor_number><minor_number>4</minor_number>");
	assert_int_equal(gpu.minor, 3);
	gpu = read_gpu("<remapped_rows><remapped_row_failure>Yes</remapped_row_failure>"
		       "<remapped_row_pending>Yes</remapped_row_pending></remapped_rows>");
	assert_int_equal(gpu.row_remap, HEALTH_REMAP_FAILED);
	/* the same names elsewhere mean something else */
	gpu = read_gpu("<max_clocks><sm_clock>9 MHz</sm_clock></max_clocks>"
		       "<bar1_memory_usage><total>9 MiB</total></bar1_memory_usage>"
		       "<x><uuid>GPU-5a1c0de0-0001-4000-8000-000000000001</uuid></x>");
	assert_true(gpu.gauges[GAUGE_SM_CLOCK_MHZ] == READING_UNKNOWN);
	assert_true(gpu.memory_bytes == READING_UNKNOWN);
	assert_false(gpu.has_uuid);
}

static void test_an_empty_gpu_is_known_by_its_place(void **state)
{
	struct reading_gpu gpu = read_gpu("");

	(void)state;
	assert_string_equal(gpu.pci, "000f:01:00.0");
	assert_string_equal(gpu.error, "it has no UUID");
	assert_int_equal(gpu.minor, -1);
	gpu = read_gpu("<uuid>Unknown Error</uuid><pci><pci_bus_id>N/A</pci_bus_id></pci>");
	assert_string_equal(gpu.pci, "000f:01:00.0");
	assert_string_equal(gpu.error, "uuid: Unknown Error");
	gpu = read_gpu("<uuid>N/A</uuid>");
	assert_string_equal(gpu.error, "its UUID is 'N/A'");
	assert_false(gpu.needs_reset);
}

/* The fan is nobody's fault; a power that is ERR! is the GPU's. */
static void test_trouble_is_named_with_its_place(void **state)
{
	struct reading_gpu gpu = read_gpu("<fan_speed>ERR!</fan_speed>");

	(void)state;
	assert_false(gpu.needs_reset);
	gpu = read_gpu("<gpu_power_readings><power_draw>ERR!</power_draw></gpu_power_readings>");
	assert_true(gpu.needs_reset);
	assert_string_equal(gpu.error, "gpu_power_readings/power_draw: ERR!");
	gpu = read_gpu("<clocks><sm_clock>[Unknown Error]</sm_clock></clocks>");
	assert_true(gpu.needs_reset);
	assert_string_equal(gpu.error, "clocks/sm_clock: Unknown Error");
	gpu = read_gpu("<temperature><gpu_temp>[Unknown Error]</gpu_temp></temperature>"
		       "<fb_memory_usage><total>Unknown Error</total></fb_memory_usage>"
		       "<remapped_rows><remapped_row_pending>Unknown Error</remapped_row_pending>"
		       "</remapped_rows>");
	assert_false(gpu.needs_reset);
	assert_int_equal(gpu.row_remap, HEALTH_REMAP_NONE);
	gpu = read_gpu("<fan_speed>[GPU requires reset]</fan_speed><x>GPU is lost</x>");
	assert_true(gpu.needs_reset);
	assert_true(gpu.lost);
	assert_string_equal(gpu.error, "fan_speed: GPU requires reset");
}

static void test_memory_of_the_machine_is_not_the_gpus(void **state)
{
	struct reading_gpu gpu = read_gpu("<fb_memory_usage><total>0 MiB</total><used>0 MiB</used>"
					  "<free>0 MiB</free></fb_memory_usage>");

	(void)state;
	assert_true(gpu.memory_bytes == READING_UNKNOWN);
	assert_true(gpu.gauges[GAUGE_MEMORY_USED_BYTES] == READING_UNKNOWN);
	assert_true(gpu.gauges[GAUGE_MEMORY_FREE_BYTES] == READING_UNKNOWN);
}

static void test_the_xml_is_found_in_what_was_printed(void **state)
{
	static const struct {
		const char *text, *xml, *beside;
	} rows[] = {
		{"<nvidia_smi_log></nvidia_smi_log>", "<nvidia_smi_log></nvidia_smi_log>", "\n"},
		{"a\n<?xml ?><nvidia_smi_log></nvidia_smi_log>\nb",
		 "<?xml ?><nvidia_smi_log></nvidia_smi_log>", "a\n\n\nb"},
		{"<nvidia_smi_log>half", "<nvidia_smi_log>half", "\n"},
		{"no devices", NULL, "no devices"},
		{"", NULL, ""},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(buf) struct buf beside = {0};
		const char *xml = NULL;
		size_t length = 0;

		assert_int_equal(
			smi_xml_find(rows[i].text, strlen(rows[i].text), &xml, &length, &beside),
			rows[i].xml != NULL);
		assert_string_equal(buf_text(&beside), rows[i].beside);
		if (rows[i].xml) {
			assert_int_equal(length, strlen(rows[i].xml));
			assert_memory_equal(xml, rows[i].xml, length);
		}
	}
}

/* What is never closed is looked for once, not again at each of a million tags. */
static void test_unclosed_lists_cost_no_time(void **state)
{
	CLEANUP(buf) struct buf text = {0}, beside = {0};
	CLEANUP(smi) struct smi smi = {0};
	struct error error;

	(void)state;
	buf_add_text(&text, "<nvidia_smi_log>");
	while (text.length < SMI_MAX_BYTES - 32)
		buf_add_text(&text, "<processes>");
	expect_error(smi_xml_read(buf_text(&text), text.length, &smi, &beside, &error), &error,
		     ERROR_INVALID_INPUT, "not a report");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_and_their_units),
		cmocka_unit_test(test_each_recovery_action),
		cmocka_unit_test(test_order_and_repetition),
		cmocka_unit_test(test_an_empty_gpu_is_known_by_its_place),
		cmocka_unit_test(test_trouble_is_named_with_its_place),
		cmocka_unit_test(test_memory_of_the_machine_is_not_the_gpus),
		cmocka_unit_test(test_the_xml_is_found_in_what_was_printed),
		cmocka_unit_test(test_unclosed_lists_cost_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
