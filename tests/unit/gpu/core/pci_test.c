#include "gpu/core/pci.h"
#include "lib/test.h"

#include <stdio.h>

static void test_all_forms_become_one(void **state)
{
	static const struct {
		const char *text, *pci;
	} rows[] = {
		{"00000000:0B:00.0", "0000:0b:00.0"},    {"0000000F:01:00.0", "000f:01:00.0"},
		{"000f:01:00.0", "000f:01:00.0"},        {"0000:cb:00.0", "0000:cb:00.0"},
		{"0000:CB:00", "0000:cb:00.0"},          {"PCI:0000:cb:00", "0000:cb:00.0"},
		{"PCI:000F:01:00.0", "000f:01:00.0"},    {"00010000:E1:1f.7", "10000:e1:1f.7"},
		{"0fffffff:ff:00.0", "fffffff:ff:00.0"}, {"  00000000:3B:00.0\t", "0000:3b:00.0"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char pci[INVENTORY_PCI_SIZE] = "untouched";

		if (!pci_parse(rows[i].text, pci))
			fail_msg("'%s' is not taken", rows[i].text);
		assert_string_equal(pci, rows[i].pci);
	}
}

static void test_what_is_none_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"N/A",
		"01:00.0",
		"000:01:00.0",
		"000000000:01:00.0",
		"10000000:01:00.0",
		"0000:1:00.0",
		"0000:001:00.0",
		"0000:01:0.0",
		"0000:01:20.0",
		"0000:01:00.8",
		"0000:01:00.",
		"0000:01:00.00",
		"0000:01:00.0x",
		"0000:01",
		"0000-01-00",
		"PCI:",
		"GPU-0000:01:00.0",
		"-000:01:00.0",
		"0x00:01:00.0",
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char pci[INVENTORY_PCI_SIZE] = "untouched";

		if (pci_parse(texts[i], pci))
			fail_msg("'%s' is taken as '%s'", texts[i], pci);
		assert_string_equal(pci, "untouched");
	}
}

/* Every domain that sysfs can show keeps its number. */
static void test_no_domain_is_stripped(void **state)
{
	char text[32], pci[INVENTORY_PCI_SIZE], again[INVENTORY_PCI_SIZE];

	(void)state;
	for (unsigned domain = 0; domain <= 0xffff; domain++) {
		snprintf(text, sizeof text, "%08X:01:00.0", domain);
		assert_true(pci_parse(text, pci));
		assert_int_equal(strtoul(pci, NULL, 16), domain);
		assert_int_equal(strlen(pci), strlen("0000:01:00.0"));
		assert_true(pci_parse(pci, again));
		assert_string_equal(pci, again);
	}
}

static void test_it_is_taken_from_a_sentence(void **state)
{
	char pci[INVENTORY_PCI_SIZE];

	(void)state;
	assert_string_equal(pci_take("PCI:0000:1a:00): 79", pci), "): 79");
	assert_string_equal(pci, "0000:1a:00.0");
	assert_string_equal(pci_take("0000:C1:00.0: GPU is lost.", pci), ": GPU is lost.");
	assert_string_equal(pci, "0000:c1:00.0");
	assert_string_equal(pci_take("0000:C1:00. Then", pci), ". Then");
	assert_null(pci_take("PCI:0000", pci));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_forms_become_one),
		cmocka_unit_test(test_what_is_none_is_refused),
		cmocka_unit_test(test_no_domain_is_stripped),
		cmocka_unit_test(test_it_is_taken_from_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
