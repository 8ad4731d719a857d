#include "proto/message.h"

#include "lib/test.h"
#include "proto/deviceplugin.pb-c.h"
#include "proto/gateway.pb-c.h"
#include "proto/podresources.pb-c.h"

MESSAGE_TYPE(allocate_request, V1beta1__AllocateRequest, v1beta1__allocate_request)
MESSAGE_TYPE(device, V1beta1__Device, v1beta1__device)
MESSAGE_TYPE(register_request, V1beta1__RegisterRequest, v1beta1__register_request)
MESSAGE_TYPE(up, Bettercompute__V1__Up, bettercompute__v1__up)

static void test_round_trip(void **state)
{
	(void)state;
	struct error error;
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	options.get_preferred_allocation_available = true;
	V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
	request.version = message_text("v1beta1");
	request.endpoint = message_text("grüße-☺.sock");
	request.options = &options;
	CLEANUP(buf) struct buf bytes = {0};
	buf_add_text(&bytes, "before");
	expect_ok(register_request_pack(&request, &bytes, &error), &error);

	CLEANUP(message) V1beta1__RegisterRequest *back = NULL;
	expect_ok(register_request_unpack(bytes.data + 6, bytes.length - 6, &back, &error), &error);
	assert_string_equal(back->version, "v1beta1");
	assert_string_equal(back->endpoint, "grüße-☺.sock");
	assert_string_equal(back->resource_name, "");
	assert_true(back->options->get_preferred_allocation_available);
	assert_false(back->options->pre_start_required);
}

static void test_text_is_checked_both_ways(void **state)
{
	(void)state;
	struct error error;
	static const char *const bad[] = {
		"a\xff",
		"\xc0\xaf",
		"\xed\xa0\x80",
		"\xf4\x90\x80\x80",
		"\xe0\x9f\xbf",
		"\xf0\x8f\xbf\xbf",
		"\xe2\x82",
		"\x80",
		"\xf8\x88\x80\x80\x80",
	};
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		V1beta1__Device device = V1BETA1__DEVICE__INIT;
		device.id = message_text(bad[i]);
		CLEANUP(buf) struct buf out = {0};
		buf_add_text(&out, "kept");
		expect_error(device_pack(&device, &out, &error), &error, ERROR_INVALID_INPUT,
			     "v1beta1.Device.ID: text is not UTF-8");
		assert_string_equal(error.field, "v1beta1.Device.ID");
		assert_int_equal(out.length, 4);

		/* The same text inside two messages, as a peer would send it. */
		CLEANUP(buf) struct buf wire = {0};
		size_t length = strlen(bad[i]);
		buf_printf(&wire, "\x0a%c\x0a%c%s", (int)length + 2, (int)length, bad[i]);
		V1beta1__AllocateRequest *request;
		expect_error(allocate_request_unpack(wire.data, wire.length, &request, &error),
			     &error, ERROR_INVALID_INPUT,
			     "v1beta1.ContainerAllocateRequest.devices_ids: text is not UTF-8");
	}
	V1beta1__Device *device;
	expect_error(device_unpack((const uint8_t *)"\x0a\x03"
						    "a\0b",
				   5, &device, &error),
		     &error, ERROR_INVALID_INPUT, "v1beta1.Device.ID: text has a NUL byte");
}

static void test_malformed(void **state)
{
	(void)state;
	struct error error;
	static const struct {
		const char *bytes;
		size_t length;
	} cases[] = {
		{"\x0a", 1},                                          /* no length */
		{"\x0a\x05xy", 4},                                    /* longer than what follows */
		{"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11}, /* 2^64 - 1 bytes */
		{"\x05\x0a\x00\x1a\x00", 5},                          /* field 0 */
		{"\x85\x00\x0a\x00\x1a\x00", 6},                      /* field 0, in two bytes */
		{"\x80\x80\x80\x80\x10\x01", 6},                      /* field 2^29 */
		{"\x0b", 1},                                          /* a group */
		{"\x08\x01", 2}, /* a number where text belongs */
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11}, /* endless tag */
		{"\x12\x01", 2},
		{"\x99", 1},
		{"\x19\x01\x02", 3}, /* fixed64, cut */
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		V1beta1__Device *device = NULL;
		expect_error(device_unpack((const uint8_t *)cases[i].bytes, cases[i].length,
					   &device, &error),
			     &error, ERROR_INVALID_INPUT, "not a valid encoding");
		assert_null(device);
	}
}

static void test_unknown_fields_are_skipped(void **state)
{
	(void)state;
	struct error error;
	/* Field 100 of each wire type, with bytes that are no UTF-8: a later version's field. */
	static const char bytes[] = "\xa0\x06\x2a\xa2\x06\x02\xff\xff\xa5\x06"
				    "1234\xa1\x06"
				    "12345678\x0a\x01x";
	CLEANUP(message) V1beta1__Device *device = NULL;
	expect_ok(device_unpack((const uint8_t *)bytes, sizeof bytes - 1, &device, &error), &error);
	assert_string_equal(device->id, "x");
}

static void test_memory_is_bounded(void **state)
{
	(void)state;
	struct error error;
	/* Empty entries: two bytes each on the wire, ~100 unpacked. */
	CLEANUP(buf) struct buf wire = {0};
	for (size_t i = 0; i < 100000; i++)
		buf_add(&wire, "\x0a\x00", 2);
	V1beta1__AllocateRequest *request = NULL;
	expect_error(allocate_request_unpack(wire.data, wire.length, &request, &error), &error,
		     ERROR_RESOURCES_EXHAUSTED, "need more than");
	assert_null(request);

	/* What a kubelet may really send stays far below: 64 containers with 16 devices each. */
	V1beta1__ContainerAllocateRequest *containers[64], storage[64];
	char *ids[16];
	for (size_t i = 0; i < 16; i++)
		ids[i] = message_text("gpu_GPU-00000000-0000-0000-0000-000000000000@alloc_"
				      "01ARZ3NDEKTSV4RRFFQ69G5FAV");
	for (size_t i = 0; i < 64; i++) {
		v1beta1__container_allocate_request__init(&storage[i]);
		storage[i].devices_ids = ids;
		storage[i].n_devices_ids = 16;
		containers[i] = &storage[i];
	}
	V1beta1__AllocateRequest large = V1BETA1__ALLOCATE_REQUEST__INIT;
	large.container_requests = containers;
	large.n_container_requests = 64;
	buf_clear(&wire);
	expect_ok(allocate_request_pack(&large, &wire, &error), &error);
	CLEANUP(message) V1beta1__AllocateRequest *back = NULL;
	expect_ok(allocate_request_unpack(wire.data, wire.length, &back, &error), &error);
	assert_int_equal(back->n_container_requests, 64);
}

/* Each count of empty entries around the bound: refused or unpacked, never leaked (ASan sees). */
static void test_every_budget_ends_clean(void **state)
{
	(void)state;
	struct error error;
	CLEANUP(buf) struct buf wire = {0};
	bool refused = false;
	for (size_t i = 0; i < 4000; i++) {
		buf_add(&wire, "\x0a\x02\x0a\x00", 4);
		CLEANUP(message) V1beta1__AllocateRequest *request = NULL;
		bool done = allocate_request_unpack(wire.data, wire.length, &request, &error);
		assert_false(done && refused); /* once too large, always too large */
		refused = !done;
	}
	assert_true(refused);
}

static void test_nothing_in_is_a_default_message(void **state)
{
	(void)state;
	struct error error;
	CLEANUP(message) Bettercompute__V1__Up *up = NULL;
	expect_ok(up_unpack(NULL, 0, &up, &error), &error);
	assert_int_equal(up->body_case, BETTERCOMPUTE__V1__UP__BODY__NOT_SET);
	message_free(NULL);
}

/* Message types never contain themselves, so the depth of what we unpack is known at build time. */
static size_t depth_of(const ProtobufCMessageDescriptor *descriptor, size_t above)
{
	assert_true(above < MESSAGE_MAX_DEPTH);
	size_t deepest = above;
	for (unsigned i = 0; i < descriptor->n_fields; i++)
		if (descriptor->fields[i].type == PROTOBUF_C_TYPE_MESSAGE) {
			size_t depth = depth_of(descriptor->fields[i].descriptor, above + 1);
			deepest = depth > deepest ? depth : deepest;
		}
	return deepest;
}

static void test_no_type_contains_itself(void **state)
{
	(void)state;
	assert_int_equal(depth_of(&v1beta1__allocate_response__descriptor, 0), 2);
	depth_of(&v1beta1__list_and_watch_response__descriptor, 0);
	depth_of(&v1__list_pod_resources_response__descriptor, 0);
	depth_of(&bettercompute__v1__up__descriptor, 0);
	depth_of(&bettercompute__v1__down__descriptor, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_text_is_checked_both_ways),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_unknown_fields_are_skipped),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_every_budget_ends_clean),
		cmocka_unit_test(test_nothing_in_is_a_default_message),
		cmocka_unit_test(test_no_type_contains_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
