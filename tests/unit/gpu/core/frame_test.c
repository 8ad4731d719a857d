#include "gpu/core/frame.h"
#include "lib/test.h"

static void put(struct buf *out, const char *text)
{
	CLEANUP(tree) json_t *object = NULL;
	struct error error;

	expect_ok(tree_parse(text, strlen(text), FRAME_MAX_BYTES, "test", &object, &error), &error);
	expect_ok(frame_put(out, object, &error), &error);
}

static void expect_frame(struct buf *in, const char *wanted)
{
	CLEANUP(tree) json_t *object = NULL;
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	expect_ok(frame_take(in, &object, &error), &error);
	assert_non_null(object);
	tree_dump_canonical(&text, object);
	assert_string_equal(buf_text(&text), wanted);
}

static void expect_none(struct buf *in)
{
	json_t *object = json_null();
	size_t length = in->length;
	struct error error;

	expect_ok(frame_take(in, &object, &error), &error);
	assert_null(object);
	assert_int_equal(in->length, length);
}

static void test_length_and_object(void **state UNUSED)
{
	CLEANUP(buf) struct buf out = {0};

	put(&out, "{\"op\": \"read\"}");
	assert_int_equal(out.length, 4 + 13);
	assert_memory_equal(out.data, "\0\0\0\x0d{\"op\":\"read\"}", out.length);
	expect_frame(&out, "{\"op\":\"read\"}");
	assert_int_equal(out.length, 0);
	expect_none(&out);
}

static void test_torn_anywhere(void **state UNUSED)
{
	CLEANUP(buf) struct buf whole = {0};

	put(&whole, "{\"xid\": {\"xid\": 79}}");
	put(&whole, "{}");
	for (size_t cut = 0; cut <= whole.length; cut++) {
		CLEANUP(buf) struct buf in = {0};

		buf_add(&in, whole.data, cut);
		if (cut < whole.length - 6)
			expect_none(&in);
		else
			expect_frame(&in, "{\"xid\":{\"xid\":79}}");
		buf_add(&in, whole.data + cut, whole.length - cut);
		if (cut < whole.length - 6)
			expect_frame(&in, "{\"xid\":{\"xid\":79}}");
		expect_frame(&in, "{}");
	}
}

static void expect_refused(const void *bytes, size_t length, const char *why)
{
	CLEANUP(buf) struct buf in = {0};
	json_t *object = NULL;
	struct error error;

	buf_add(&in, bytes, length);
	expect_error(frame_take(&in, &object, &error), &error, ERROR_INVALID_INPUT, why);
	assert_null(object);
}

static void test_what_is_no_frame(void **state UNUSED)
{
	expect_refused("\0\0\0\0", 4, "frame");
	expect_refused("\0\0\0\2[]", 6, "no object");
	expect_refused("\0\0\0\4null", 8, "frame");
	expect_refused("\0\0\0\4{} x", 8, "frame");
	expect_refused("\0\x10\0\1", 4, "a frame of 1048577 bytes is more than 1048576");
	expect_refused("\xff\xff\xff\xff", 4, "more than 1048576");
}

/* An object of exactly this many bytes. */
static json_t *sized(size_t size)
{
	char *text = mem_alloc(size);
	json_t *object = json_object();

	memset(text, 'x', size - strlen("{\"a\":\"\"}"));
	tree_set(object, "a", tree_string(text));
	free(text);
	return object;
}

static void test_the_bound(void **state UNUSED)
{
	CLEANUP(tree)
	json_t *largest = sized(FRAME_MAX_BYTES), *larger = sized(FRAME_MAX_BYTES + 1);
	CLEANUP(tree) json_t *back = NULL;
	CLEANUP(buf) struct buf out = {0};
	struct error error;

	expect_error(frame_put(&out, larger, &error), &error, ERROR_RESOURCES_EXHAUSTED,
		     "1048577 bytes");
	assert_int_equal(out.length, 0);
	expect_ok(frame_put(&out, largest, &error), &error);
	expect_ok(frame_take(&out, &back, &error), &error);
	assert_true(json_equal(back, largest));
}

static void test_xids(void **state UNUSED)
{
	struct frame_xid xid = {.xid = 79, .pci = "000f:01:00.0", .gi = 9, .ci = 0}, back;
	struct error error;

	for (int known = 0; known < 2; known++) {
		CLEANUP(tree) json_t *frame = NULL;

		xid.has_uuid = known;
		memset(&xid.uuid, known ? 0xab : 0, sizeof xid.uuid);
		xid.gi = known ? 9 : -1;
		xid.ci = known ? 0 : -1;
		frame = frame_xid(&xid);
		memset(&back, 0, sizeof back);
		expect_ok(frame_read_xid(json_object_get(frame, "xid"), &back, &error), &error);
		assert_memory_equal(&back, &xid, sizeof back);
	}
}

static void test_xids_that_are_none(void **state UNUSED)
{
	static const char *const texts[] = {
		"{}",
		"{\"xid\": \"79\"}",
		"{\"xid\": -1}",
		"{\"xid\": 100001}",
		"{\"xid\": 79, \"pci\": \"here\"}",
		"{\"xid\": 79, \"uuid\": \"here\"}",
		"{\"xid\": 79, \"gi\": 1000}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(tree) json_t *object = NULL;
		struct frame_xid xid;
		struct error error;

		expect_ok(tree_parse(texts[i], strlen(texts[i]), 1000, "test", &object, &error),
			  &error);
		expect_error(frame_read_xid(object, &xid, &error), &error, ERROR_INVALID_INPUT,
			     "xid.");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_length_and_object),
		cmocka_unit_test(test_torn_anywhere),
		cmocka_unit_test(test_what_is_no_frame),
		cmocka_unit_test(test_the_bound),
		cmocka_unit_test(test_xids),
		cmocka_unit_test(test_xids_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
