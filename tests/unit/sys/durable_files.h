/* What the tests of durable look at. */
#pragma once

#include "sys/durable.h"

#include "lib/folder.h"
#include "lib/test.h"

static inline void expect_content(const char *path, const char *wanted)
{
	CLEANUP(buf) struct buf content = {0};
	struct error error;

	expect_ok(durable_read(path, 1000, &content, &error), &error);
	assert_string_equal(buf_text(&content), wanted);
}

static inline size_t count_entries(void **state)
{
	struct durable_names names;
	struct error error;
	size_t count;

	expect_ok(durable_list(*state, 2000, &names, &error), &error);
	count = names.count;
	durable_names_deinit(&names);
	return count;
}
