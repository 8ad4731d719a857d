#include "rpc/core/frame.h"

#include "lib/test.h"

/* Three messages, one of them empty, in pieces cut at each two places: the same messages come out.
 */
static void test_split_at_every_byte(void **state)
{
	(void)state;
	static const char *const texts[] = {"first", "", "the third one"};
	CLEANUP(buf) struct buf wire = {0};
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		frame_write(&wire, texts[i], strlen(texts[i]));
	for (size_t a = 0; a <= wire.length; a++) {
		for (size_t b = a; b <= wire.length; b++) {
			const size_t ends[] = {a, b, wire.length};
			struct frame_reader reader = {.max = 13};
			size_t at = 0, found = 0;
			for (size_t piece = 0; piece < ARRAY_SIZE(ends); piece++) {
				const uint8_t *data = wire.data + at;
				size_t length = ends[piece] - at;
				at = ends[piece];
				while (length) {
					if (frame_read(&reader, &data, &length) == FRAME_MORE) {
						assert_int_equal(length, 0);
						break;
					}
					assert_string_equal(buf_text(&reader.message),
							    texts[found]);
					found++;
					frame_next(&reader);
				}
			}
			assert_int_equal(found, ARRAY_SIZE(texts));
			assert_false(frame_partial(&reader));
			frame_deinit(&reader);
		}
	}
}

static enum frame_result read_prefix(size_t max, const uint8_t prefix[FRAME_PREFIX])
{
	struct frame_reader reader = {.max = max};
	size_t length = FRAME_PREFIX;
	enum frame_result result = frame_read(&reader, &prefix, &length);
	/* Nothing is taken on a claim. */
	assert_int_equal(reader.message.capacity, 0);
	return result;
}

static void test_bounds(void **state)
{
	(void)state;
	assert_int_equal(read_prefix(65536, (uint8_t[]){0, 0, 1, 0, 0}), FRAME_MORE);
	assert_int_equal(read_prefix(65536, (uint8_t[]){0, 0, 1, 0, 1}), FRAME_TOO_LARGE);
	assert_int_equal(read_prefix(65536, (uint8_t[]){0, 255, 255, 255, 255}), FRAME_TOO_LARGE);
	assert_int_equal(read_prefix(UINT32_MAX, (uint8_t[]){0, 255, 255, 255, 255}), FRAME_MORE);
	assert_int_equal(read_prefix(0, (uint8_t[]){0, 0, 0, 0, 0}), FRAME_MESSAGE);
	assert_int_equal(read_prefix(0, (uint8_t[]){0, 0, 0, 0, 1}), FRAME_TOO_LARGE);
}

static void test_flags(void **state)
{
	(void)state;
	for (unsigned flag = 0; flag < 256; flag++) {
		enum frame_result wanted = flag == 0   ? FRAME_MESSAGE
					   : flag == 1 ? FRAME_COMPRESSED
						       : FRAME_BAD_FLAG;
		assert_int_equal(read_prefix(1, (uint8_t[]){(uint8_t)flag, 0, 0, 0, 0}), wanted);
	}
}

static void test_partial(void **state)
{
	(void)state;
	static const uint8_t wire[] = {0, 0, 0, 0, 2, 'x'};
	for (size_t cut = 1; cut <= sizeof wire; cut++) {
		struct frame_reader reader = {.max = 2};
		const uint8_t *data = wire;
		size_t length = cut;
		assert_int_equal(frame_read(&reader, &data, &length), FRAME_MORE);
		assert_true(frame_partial(&reader));
		frame_deinit(&reader);
	}
}

static void test_large_buffer_is_given_back(void **state)
{
	(void)state;
	CLEANUP(free) uint8_t *large = mem_alloc(1 << 20);
	CLEANUP(buf) struct buf wire = {0};
	frame_write(&wire, large, 1 << 20);
	struct frame_reader reader = {.max = 1 << 20};
	const uint8_t *data = wire.data;
	size_t length = wire.length;
	assert_int_equal(frame_read(&reader, &data, &length), FRAME_MESSAGE);
	frame_next(&reader);
	assert_int_equal(reader.message.capacity, 0);
	frame_deinit(&reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_split_at_every_byte),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_partial),
		cmocka_unit_test(test_large_buffer_is_given_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
