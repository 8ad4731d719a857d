/* The OpenAPI document: nothing in it points nowhere, everything in the tables is in it, and its
 * examples are what they exemplify. What it says is true of the program: tests/peer/openapi. */
#include "serve/openapi.h"

#include "lib/test.h"
#include "schema_check.h"
#include "text/tree.h"

#include <stdio.h>

#define DOCUMENT_MAX ((size_t)4 << 20)

static json_t *document;

static int set_up(void **state)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	(void)state;
	openapi_write(&text);
	expect_ok(tree_parse(text.data, text.length, DOCUMENT_MAX, "document", &document, &error),
		  &error);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	json_decref(document);
	return 0;
}

/* At "/components/schemas/Pool". */
static const json_t *at(const char *path)
{
	const json_t *json = document;

	while (json && *path == '/') {
		char part[64];
		size_t length = strcspn(path + 1, "/");

		assert_true(length < sizeof part);
		memcpy(part, path + 1, length);
		part[length] = '\0';
		json = json_object_get(json, part);
		path += 1 + length;
	}
	return json;
}

typedef void visit_fn(const char *name, const json_t *value, void *arg);

static void visit(const json_t *json, visit_fn *fn, void *arg)
{
	const char *name;
	json_t *value;
	size_t index;

	if (json_is_array(json)) {
		json_array_foreach((json_t *)json, index, value)
		{
			visit(value, fn, arg);
		}
		return;
	}
	json_object_foreach((json_t *)json, name, value)
	{
		fn(name, value, arg);
		visit(value, fn, arg);
	}
}

static void check_reference(const char *name, const json_t *value, void *arg)
{
	const char *path = json_string_value(value);

	(void)arg;
	if (!str_equal(name, "$ref"))
		return;
	assert_non_null(path);
	assert_int_equal(path[0], '#');
	if (!at(path + 1))
		fail_msg("%s points nowhere", path);
}

static void test_references_point_somewhere(void **state)
{
	(void)state;
	visit(document, check_reference, NULL);
}

struct use {
	char path[80];
	bool found;
};

static void find_use(const char *name, const json_t *value, void *arg)
{
	struct use *use = arg;

	use->found = use->found ||
		     (str_equal(name, "$ref") && str_equal(json_string_value(value), use->path));
}

static void test_every_type_is_used(void **state)
{
	(void)state;
	for (size_t i = 0; i < SCHEMA_TYPES_COUNT; i++) {
		struct use use = {0};

		snprintf(use.path, sizeof use.path, "#/components/schemas/%s",
			 SCHEMA_TYPES[i].name);
		visit(document, find_use, &use);
		if (!use.found)
			fail_msg("%s is of no use", SCHEMA_TYPES[i].name);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(SCHEMA_TYPES[i].name, SCHEMA_TYPES[j].name);
	}
}

static const json_t *operation_of(const struct route *route)
{
	const json_t *path = json_object_get(json_object_get(document, "paths"), route->path);
	char method[8] = "";

	for (size_t i = 0; route->method[i]; i++)
		method[i] = (char)(route->method[i] | 0x20);
	return json_object_get(path, method);
}

static const json_t *example_of(const json_t *content)
{
	return json_object_get(
		json_object_get(json_object_get(content, "content"), "application/json"),
		"example");
}

static void test_examples_are_what_they_exemplify(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROUTES_COUNT; i++) {
		const struct route *route = &ROUTES[i];
		const json_t *operation = operation_of(route);
		const json_t *responses = json_object_get(operation, "responses");

		assert_non_null(operation);
		assert_non_null(json_object_get(operation, "operationId"));
		schema_check(route->answer_type, example_of(json_object_get(responses, "200")));
		if (route->request_type)
			schema_check(route->request_type,
				     example_of(json_object_get(operation, "requestBody")));
		/* Each refusal that any call can meet. */
		for (const char *const *status =
			     (const char *const[]){"400", "401", "403", "404", "409", "414", "429",
						   "500", "503", NULL};
		     *status; status++)
			assert_non_null(json_object_get(responses, *status));
	}
}

static const json_t *open_answers(const char *path)
{
	const json_t *operation = json_object_get(json_object_get(at("/paths"), path), "get");

	return json_object_get(operation, "responses");
}

/* Of what needs no key, /metrics alone may ask for one. */
static void test_who_may_be_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROUTES_OPEN_COUNT; i++) {
		const json_t *answers = open_answers(ROUTES_OPEN[i].path);
		bool asks = str_equal(ROUTES_OPEN[i].path, "/metrics");

		assert_non_null(json_object_get(answers, "200"));
		assert_int_equal(json_object_get(answers, "401") != NULL, asks);
		assert_int_equal(json_object_get(answers, "403") != NULL, asks);
	}
}

struct names {
	size_t links;
};

static void check_link(const char *name, const json_t *value, void *arg)
{
	struct names *names = arg;
	const char *link;
	json_t *to;

	if (!str_equal(name, "links"))
		return;
	json_object_foreach((json_t *)value, link, to)
	{
		bool found = false;

		names->links++;
		for (size_t i = 0; i < ROUTES_COUNT && !found; i++)
			found = json_equal(json_object_get(operation_of(&ROUTES[i]), "operationId"),
					   json_object_get(to, "operationId"));
		if (!found)
			fail_msg("%s is a link to nothing", link);
	}
}

/* What makes a thing links to each call that takes its id. */
static void test_links_lead_from_makers_to_takers(void **state)
{
	struct names names = {0};

	(void)state;
	visit(document, check_link, &names);
	assert_true(names.links > 30);
	assert_non_null(at("/components/securitySchemes/key"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_references_point_somewhere),
		cmocka_unit_test(test_every_type_is_used),
		cmocka_unit_test(test_examples_are_what_they_exemplify),
		cmocka_unit_test(test_who_may_be_refused),
		cmocka_unit_test(test_links_lead_from_makers_to_takers),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
