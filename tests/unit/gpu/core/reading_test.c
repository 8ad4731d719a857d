#include "gpu/core/reading.h"
#include "lib/test.h"

#include <stdio.h>

static struct reading_gpu *add_gpu(struct reading *reading)
{
	struct reading_gpu *gpu = vec_push(&reading->gpus);

	*gpu = reading_gpu_unknown();
	return gpu;
}

/* Sixteen GPUs of seven instances each, every member as long as it can be. */
static void fill(struct reading *reading)
{
	str_copy(reading->source, sizeof reading->source, "nvidia-smi");
	str_copy(reading->driver, sizeof reading->driver, "570.124.06");
	for (int i = 0; i < 16; i++) {
		struct reading_gpu *gpu = add_gpu(reading);

		gpu->has_uuid = true;
		gpu->uuid.bytes[15] = (uint8_t)i;
		snprintf(gpu->pci, sizeof gpu->pci, "fffffff:%02x:00.0", (unsigned)i);
		memset(gpu->model, 'M', sizeof gpu->model - 1);
		memset(gpu->error, 'e', sizeof gpu->error - 1);
		gpu->minor = 15 - i;
		gpu->memory_bytes = READING_MAX_MEMORY;
		gpu->mig_enabled = gpu->lost = gpu->needs_reset = true;
		gpu->row_remap = HEALTH_REMAP_PENDING;
		gpu->ecc_uncorrectable = INT64_MAX;
		gpu->recovery = (enum health_recovery)(i % 6);
		for (int gauge = 0; gauge < GAUGES; gauge++)
			gpu->gauges[gauge] = INT64_MAX - gauge;
		gpu->gauges[GAUGE_TEMPERATURE_C] = -40;
		for (int part = 0; part < 7; part++) {
			struct reading_mig *mig = vec_push(&gpu->mig);

			mig->gi = 7 + part;
			mig->ci = ATOM_MAX_NUMBER;
			memset(mig->profile, 'p', sizeof mig->profile - 1);
			memset(mig->uuid, 'u', sizeof mig->uuid - 1);
			mig->start = part;
			mig->size = 1;
			mig->memory_bytes = INT64_MAX;
		}
	}
}

static void dump(const struct reading *reading, struct buf *out)
{
	CLEANUP(tree) json_t *object = reading_json(reading);

	tree_dump_canonical(out, object);
}

static void expect_same_again(const struct reading *reading)
{
	CLEANUP(reading) struct reading again = {0};
	CLEANUP(buf) struct buf text = {0}, second = {0};
	CLEANUP(tree) json_t *object = NULL;
	struct error error;

	dump(reading, &text);
	assert_true(text.length < READING_MAX_BYTES);
	expect_ok(
		tree_parse(buf_text(&text), text.length, READING_MAX_BYTES, "it", &object, &error),
		&error);
	expect_ok(reading_read(object, &again, &error), &error);
	dump(&again, &second);
	assert_string_equal(buf_text(&text), buf_text(&second));
	assert_int_equal(again.gpus.count, reading->gpus.count);
	for (size_t i = 0; i < again.gpus.count; i++) {
		const struct reading_gpu *a = &again.gpus.items[i], *b = &reading->gpus.items[i];

		assert_int_equal(a->has_uuid, b->has_uuid);
		assert_int_equal(a->minor, b->minor);
		assert_int_equal(a->memory_bytes, b->memory_bytes);
		assert_int_equal(a->recovery, b->recovery);
		assert_memory_equal(a->gauges, b->gauges, sizeof a->gauges);
		assert_int_equal(a->mig.count, b->mig.count);
		if (a->mig.count)
			assert_memory_equal(a->mig.items, b->mig.items,
					    a->mig.count * sizeof *a->mig.items);
	}
}

static void test_it_is_read_as_it_was_written(void **state)
{
	CLEANUP(reading) struct reading none = {0}, full = {0}, unknown = {0};

	(void)state;
	fill(&full);
	add_gpu(&unknown);
	expect_same_again(&none);
	expect_same_again(&full);
	expect_same_again(&unknown);
}

static void test_what_is_unknown_is_not_there(void **state)
{
	CLEANUP(reading) struct reading unknown = {0};
	CLEANUP(buf) struct buf text = {0};

	(void)state;
	add_gpu(&unknown);
	dump(&unknown, &text);
	assert_string_equal(buf_text(&text), "{\"gpus\":[{\"gauges\":{},\"mig\":[],"
					     "\"recovery\":\"unknown\",\"row_remap\":\"none\"}]}");
}

/* A driver may print anything: what one GPU is called spoils nothing. */
static void test_any_text_can_be_sent(void **state)
{
	CLEANUP(reading) struct reading odd = {0}, again = {0};
	CLEANUP(tree) json_t *object = NULL;
	struct reading_gpu *gpu = add_gpu(&odd);
	struct error error;

	(void)state;
	memset(gpu->model, 0xff, sizeof gpu->model - 1);
	str_copy(gpu->error, sizeof gpu->error, " caf\xc3\xa9\n");
	gpu->gauges[GAUGE_POWER_MW] = -5000;
	object = reading_json(&odd);
	expect_ok(reading_read(object, &again, &error), &error);
	assert_int_equal(strlen(again.gpus.items[0].model), INVENTORY_MODEL_SIZE - 1);
	assert_string_equal(again.gpus.items[0].error, "caf??");
	assert_true(again.gpus.items[0].gauges[GAUGE_POWER_MW] == READING_UNKNOWN);
}

static void test_text_is_trimmed_and_cut(void **state)
{
	char out[8];

	(void)state;
	reading_text(out, sizeof out, " \t NVIDIA H100\n");
	assert_string_equal(out, "NVIDIA");
	reading_text(out, sizeof out, "   ");
	assert_string_equal(out, "");
	reading_text(out, sizeof out, "a\x1b[0m\x7f");
	assert_string_equal(out, "a?[0m?");
}

static void test_what_is_wrong_is_named(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{"[]", "object"},
		{"{}", "gpus"},
		{"{\"gpus\":{}}", "gpus"},
		{"{\"gpus\":[],\"source\":\"0123456789abcdef\"}", "source"},
		{"{\"gpus\":[],\"more\":1}", "more"},
		{"{\"gpus\":[{},1]}", "gpus[1]"},
		{"{\"gpus\":[{\"uuid\":\"GPU-1\"}]}", "gpus[0].uuid"},
		{"{\"gpus\":[{\"pci\":\"00000000:01:00.0\"}]}", "gpus[0].pci"},
		{"{\"gpus\":[{\"minor\":-1}]}", "gpus[0].minor"},
		{"{\"gpus\":[{\"minor\":2147483648}]}", "gpus[0].minor"},
		{"{\"gpus\":[{\"memory_bytes\":-1}]}", "gpus[0].memory_bytes"},
		{"{\"gpus\":[{\"lost\":1}]}", "gpus[0].lost"},
		{"{\"gpus\":[{\"model\":\" x\"}]}", "gpus[0].model"},
		{"{\"gpus\":[{\"row_remap\":\"maybe\"}]}", "gpus[0].row_remap"},
		{"{\"gpus\":[{\"recovery\":\"pray\"}]}", "gpus[0].recovery"},
		{"{\"gpus\":[{\"gauges\":{\"power_mw\":-1001}}]}", "gpus[0].gauges.power_mw"},
		{"{\"gpus\":[{\"mig\":[{\"gi\":1}]}]}", "gpus[0].mig[0].ci"},
		{"{\"gpus\":[{\"mig\":[{\"gi\":1000,\"ci\":0}]}]}", "gpus[0].mig[0].gi"},
		{"{\"gpus\":[{\"mig\":[{\"gi\":1,\"ci\":0,\"start\":8}]}]}",
		 "gpus[0].mig[0].start"},
		{"{\"gpus\":[{\"mig\":[{\"gi\":1,\"ci\":0,\"size\":9}]}]}", "gpus[0].mig[0].size"},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(reading) struct reading reading = {0};
		CLEANUP(tree) json_t *object = NULL;
		struct error error;

		expect_ok(tree_parse(rows[i].text, strlen(rows[i].text), READING_MAX_BYTES, "it",
				     &object, &error),
			  &error);
		expect_error(reading_read(object, &reading, &error), &error, ERROR_INVALID_INPUT,
			     rows[i].why);
		assert_int_equal(reading.gpus.count, 0);
	}
}

static void test_more_than_the_bounds_is_refused(void **state)
{
	CLEANUP(reading) struct reading reading = {0}, again = {0};
	struct error error;

	(void)state;
	for (int i = 0; i < INVENTORY_MAX_GPUS; i++)
		add_gpu(&reading);
	expect_same_again(&reading);
	for (int i = 0; i < READING_MAX_MIG; i++)
		vec_push(&reading.gpus.items[3].mig)->memory_bytes = READING_UNKNOWN;
	for (int over = 0; over < 2; over++) {
		CLEANUP(tree) json_t *object = NULL;

		if (over == 0)
			add_gpu(&reading);
		else
			reading.gpus.count--, vec_push(&reading.gpus.items[3].mig);
		object = reading_json(&reading);
		expect_error(reading_read(object, &again, &error), &error, ERROR_INVALID_INPUT,
			     over ? "gpus[3].mig" : "gpus");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_it_is_read_as_it_was_written),
		cmocka_unit_test(test_what_is_unknown_is_not_there),
		cmocka_unit_test(test_any_text_can_be_sent),
		cmocka_unit_test(test_text_is_trimmed_and_cut),
		cmocka_unit_test(test_what_is_wrong_is_named),
		cmocka_unit_test(test_more_than_the_bounds_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
