#include "gpu/core/klog.h"
#include "lib/test.h"

#include <stdio.h>

static struct klog_event parse(const char *record)
{
	struct klog_event event = {0};

	if (!klog_parse(record, strlen(record), &event))
		fail_msg("not a record: %s", record);
	return event;
}

/* A line of the kernel's own. */
static struct klog_event says(const char *text)
{
	char record[2048];

	snprintf(record, sizeof record, "4,1205,98123456,-;%s", text);
	return parse(record);
}

/* N03. proves: DP-52 */
static void test_xids_of_every_form(void **state)
{
	static const struct {
		const char *text, *pci;
		int32_t xid;
		bool nonfatal, recovered;
	} rows[] = {
		{"NVRM: Xid (PCI:0000:cb:00): 13, pid='<unknown>', name=<unknown>, Graphics SM "
		 "Warp "
		 "Exception on (GPC 7, TPC 0, SM 1): Out Of Range Address",
		 "0000:cb:00.0", 13, false, false},
		{"NVRM: Xid (PCI:0000:1a:00): 79", "0000:1a:00.0", 79, false, false},
		{"NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus.", "0000:1a:00.0", 79,
		 false, false},
		{"NVRM: Xid (PCI:0000:c5:00): 145, RLW_SRC_TRACK Nonfatal XC1 i0 Link 17 "
		 "(0x040988e2 0x00000008 0x00000000 0x00000000 0x00000000 0x00000000)",
		 "0000:c5:00.0", 145, true, false},
		{"NVRM: Xid (PCI:0019:01:00): 145, RLW_SRC_TRACK Fatal XC0 i0 Link 00 (0x00000007)",
		 "0019:01:00.0", 145, false, false},
		{"NVRM: Xid (PCI:0019:01:00): 145, pid=7, name=a Nonfatal b, RLW_SRC_TRACK Fatal "
		 "XC0",
		 "0019:01:00.0", 145, false, false},
		{"NVRM: Xid (PCI:000f:01:00): 119, pid=1717, name=python3, Timeout after 45s",
		 "000f:01:00.0", 119, false, false},
		{"NVRM: Xid (PCI:0000:CB:00): 48, pid=7", "0000:cb:00.0", 48, false, false},
		{"NVRM: Xid (PCI:0000:1a:00): 45, caused by previous Xid 149", "0000:1a:00.0", 45,
		 false, false},
		{"NVRM: Xid (0000:03:00): 14, Channel 00000001", "0000:03:00.0", 14, false, false},
		{"NVRM: Xid (PCI:0000:01:00 GPU-I:05): 31, pid=9", "0000:01:00.0", 31, false,
		 false},
		{"NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x0 (None) to "
		 "0x1 (GPU Reset Required)",
		 "0008:01:00.0", 154, false, false},
		{"NVRM: Xid (PCI:0008:01:00): 154, GPU recovery action changed from 0x1 (GPU Reset "
		 "Required) to 0x0 (None)",
		 "0008:01:00.0", 154, false, true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct klog_event event = says(rows[i].text);

		assert_int_equal(event.kind, KLOG_XID);
		assert_int_equal(event.sequence, 1205);
		assert_string_equal(event.pci, rows[i].pci);
		assert_int_equal(event.xid, rows[i].xid);
		assert_int_equal(event.nonfatal, rows[i].nonfatal);
		assert_int_equal(event.recovered, rows[i].recovered);
		assert_int_equal(event.advised, event.xid == 154 && !rows[i].recovered);
	}
}

/* N03 */
static void test_what_is_no_xid(void **state)
{
	static const char *const texts[] = {
		"",
		"NVRM: GPU 0000:01:00.0: GPU has fallen off the bus.",
		"NVRM: GPU at PCI:0000:3b:00: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7",
		"NVRM: caused by previous Xid 149",
		"caused by previous Xid 149",
		"NVRM: Xid : 32, pid=2280636",
		"NVRM: Xid (PCI:0000:66:00): abc, pid=2280636",
		"NVRM: Xid (PCI:0000:66:00): 079",
		"NVRM: Xid (PCI:0000:66:00): 99999",
		"NVRM: Xid (PCI:0000:66:00): 7x",
		"NVRM: Xid (PCI:0000:66:00",
		"NVRM: Xid (PCI:66:00): 79",
		"a program says NVRM: Xid (PCI:0000:66:00): 79",
		"nvidia-nvswitch0: SXid (PCI:0000:c6:00.0): 20034, Fatal, Link 30 LTSSM Fault Up",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(says(texts[i]).kind, KLOG_NOTHING);
}

/* A program's record has another facility, whatever it wrote. proves: DP-52 */
static void test_only_the_kernel_is_believed(void **state)
{
	(void)state;
	for (unsigned priority = 0; priority < 256; priority++) {
		char record[128];

		snprintf(record, sizeof record, "%u,7,8,-;NVRM: Xid (PCI:0000:1a:00): 79, gone",
			 priority);
		assert_int_equal(parse(record).kind, priority < 8 ? KLOG_XID : KLOG_NOTHING);
	}
}

/* proves: DP-52 */
static void test_what_ends_it(void **state)
{
	struct klog_event event = says("nvidia 0000:1a:00.0: reset done");

	(void)state;
	assert_int_equal(event.kind, KLOG_RESET);
	assert_string_equal(event.pci, "0000:1a:00.0");
	assert_int_equal(says("nvidia 0000:1a:00.0: reset done later").kind, KLOG_NOTHING);
	assert_int_equal(says("nvidia 0000:1a:00.0: resetting").kind, KLOG_NOTHING);
	assert_int_equal(
		says("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue").kind,
		KLOG_LOADED);
	assert_int_equal(
		says("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05").kind,
		KLOG_LOADED);
}

/* N04: only order counts. */
static void test_the_records_time_does_not_matter(void **state)
{
	static const char *const times[] = {"0", "1", "36000000000", "18446744073709551600"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		char record[128];

		snprintf(record, sizeof record, "4,9,%s,-;NVRM: Xid (PCI:0000:1a:00): 79",
			 times[i]);
		assert_int_equal(parse(record).kind, KLOG_XID);
	}
}

static void test_records_and_others(void **state)
{
	static const char *const others[] = {
		"",
		";",
		"4;text",
		"4,5;text",
		"4,5,;text",
		"a,5,6,-;text",
		"4,5,6;",
		" SUBSYS=x",
		"4,5,6,-",
		"-1,5,6,-;t",
		"4,x,6,-;text",
		"4,99999999999999999999,6,-;text",
	};
	struct klog_event event;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(klog_parse(others[i], strlen(others[i]), &event));
	event = parse("6,339,5140900,-,caller=T1;NVRM: Xid (PCI:0000:1a:00): 62\n SUBSYSTEM=pci\n");
	assert_int_equal(event.xid, 62);
	event = parse("6,339,5140900,c,more=1;NVRM: Xid (PCI:0000:1a:00): 62, \\x0a;");
	assert_int_equal(event.xid, 62);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xids_of_every_form),
		cmocka_unit_test(test_what_is_no_xid),
		cmocka_unit_test(test_only_the_kernel_is_believed),
		cmocka_unit_test(test_what_ends_it),
		cmocka_unit_test(test_the_records_time_does_not_matter),
		cmocka_unit_test(test_records_and_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
