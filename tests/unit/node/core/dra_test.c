#include "core/fixture.h"
#include "node/core/dra.h"

#define UUID "00000000-1111-2222-3333-444444444444"

/* SHA-256 as sha256sum(1) has it. */
static void test_the_tag_is_of_sha256(void **state)
{
	char tag[DRA_TAG_SIZE];

	(void)state;
	dra_tag(tag, ALC_A);
	assert_string_equal(tag, "49bc066d");
	dra_tag(tag, ALC_B);
	assert_string_equal(tag, "9fd75c0e");
}

static void test_names_of_every_class(void **state)
{
	static const struct {
		const char *atom, *name;
	} ROWS[] = {
		{"gpu/" UUID, "gpu-" UUID "-49bc066d"},
		{"gpu/" UUID "/gi1/ci0", "gpu-" UUID "-gi1-ci0-49bc066d"},
		{"gpu/" UUID "/gi999/ci999", "gpu-" UUID "-gi999-ci999-49bc066d"},
		{"gpu/" UUID "/s3", "gpu-" UUID "-s3-49bc066d"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
		char name[DRA_NAME_SIZE], tag[DRA_TAG_SIZE];
		struct atom atom, back;
		struct error error;

		expect_ok(atom_parse(ROWS[i].atom, &atom, &error), &error);
		dra_name(name, &atom, ALC_A);
		assert_string_equal(name, ROWS[i].name);
		assert_true(dra_name_parse(name, &back, tag));
		assert_true(atom_equal(&atom, &back));
		assert_string_equal(tag, "49bc066d");
	}
}

static void test_other_names_are_refused(void **state)
{
	static const char *const NAMES[] = {
		"",
		"gpu-",
		"gpu-0",
		"gpu-0-mig-1g.10gb-19-0",
		"gpu-" UUID,
		"gpu-" UUID "-",
		"gpu-" UUID "-49bc066",
		"gpu-" UUID "-49bc066d0",
		"gpu-" UUID "-49BC066D",
		"gpu-" UUID "-49bc066g",
		"gpu-" UUID "x49bc066d",
		"gpu-" UUID "-gi1-49bc066d",
		"gpu-" UUID "-gi01-ci0-49bc066d",
		"gpu-" UUID "-gi1-ci0x-49bc066d",
		"gpu-" UUID "-s-49bc066d",
		"gpu-" UUID "-s 3-49bc066d",
		"gpu-" UUID "-s-3-49bc066d",
		"gpu-zzzzzzzz-1111-2222-3333-444444444444-49bc066d",
		"mig-" UUID "-49bc066d",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(NAMES); i++) {
		char tag[DRA_TAG_SIZE];
		struct atom atom;

		if (dra_name_parse(NAMES[i], &atom, tag))
			fail_msg("'%s' was taken", NAMES[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_tag_is_of_sha256),
		cmocka_unit_test(test_names_of_every_class),
		cmocka_unit_test(test_other_names_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
