#include "standin/cdi.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "sys/durable.h"
#include "text/tree.h"

static void spec_write(void **state, const char *name, const char *text)
{
	struct error error;
	expect_ok(durable_replace(folder_path(state, name), text, strlen(text), 0644, &error),
		  &error);
}

static json_t *seen_make(void)
{
	return json_pack("{s:{s:s}, s:[], s:[]}", "env", "A", "pod", "deviceNodes", "mounts");
}

static const char first[] =
	"{\"cdiVersion\":\"0.5.0\",\"kind\":\"bcd.dev/"
	"gpu\",\"containerEdits\":{\"env\":[\"FILE=1\"]},"
	"\"devices\":[{\"name\":\"one\",\"containerEdits\":{\"env\":[\"A=cdi\",\"B=x=y\"],"
	"\"deviceNodes\":[{\"path\":\"/dev/nvidia0\"},{\"path\":\"/dev/nvidiactl\"}]}},"
	"{\"name\":\"two\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidiactl\"}],"
	"\"mounts\":[{\"hostPath\":\"/h\",\"containerPath\":\"/c\"}]}}]}";

static void test_inject(void **state)
{
	const char *folders[] = {*state, "/no/such/folder"};
	const char *names[] = {"bcd.dev/gpu=one", "bcd.dev/gpu=two"};
	CLEANUP(tree) json_t *seen = seen_make();
	struct error error;
	spec_write(state, "first.json", first);
	spec_write(state, "broken.json", "{");
	spec_write(state, "ignored.txt", first);
	expect_ok(cdi_inject(folders, 2, names, 2, seen, &error), &error);
	json_t *env = json_object_get(seen, "env");
	assert_string_equal(json_string_value(json_object_get(env, "A")), "cdi");
	assert_string_equal(json_string_value(json_object_get(env, "B")), "x=y");
	assert_string_equal(json_string_value(json_object_get(env, "FILE")), "1");
	assert_int_equal(json_array_size(json_object_get(seen, "deviceNodes")), 2);
	assert_int_equal(json_array_size(json_object_get(seen, "mounts")), 1);
}

static void test_missing_and_doubled(void **state)
{
	const char *folders[] = {*state};
	const char *missing[] = {"bcd.dev/gpu=one", "bcd.dev/gpu=gone"};
	CLEANUP(tree) json_t *seen = seen_make();
	CLEANUP(tree) json_t *before = json_deep_copy(seen);
	struct error error;
	expect_error(cdi_inject(folders, 1, missing, 2, seen, &error), &error, ERROR_NOT_FOUND,
		     "'bcd.dev/gpu=gone'");
	assert_true(json_equal(seen, before));
	spec_write(state, "second.json", first);
	expect_error(cdi_inject(folders, 1, missing, 1, seen, &error), &error, ERROR_CONFLICT,
		     "two specs");
	assert_true(json_equal(seen, before));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inject),
		cmocka_unit_test(test_missing_and_doubled),
	};
	return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
