/* What takes more than one request: a list in pages, Events. */
#include "client_world.h"

#include "kube/events.h"
#include "lib/folder.h"

/* --- lists --- */

#define PAGE(metadata, items)                                                                      \
	"{\"kind\":\"ResourceSliceList\",\"apiVersion\":\"resource.k8s.io/"                        \
	"v1\",\"metadata\":{" metadata "},\"items\":[" items "]}"

static json_t *items;

static void on_items(void *arg UNUSED, json_t **got, const struct error *error)
{
	world.told++;
	world.error = error ? *error : (struct error){0};
	items = *got ? TAKE(*got) : NULL;
}

static void list(void)
{
	json_decref(items);
	kube_collect(world.client, &KUBE_RESOURCE_SLICE,
		     &(struct kube_list_options){.field_selector = "spec.nodeName=n0"},
		     (struct kube_call_options){0}, on_items, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 1);
	world.told = 0;
}

static void test_a_list_in_pages(void **state)
{
	const struct fake_api_answer answers[] = {
		{.status = 200, .body = PAGE("\"continue\":\"a/+\"", "")},
		{.status = 410, .body = "{\"reason\":\"Expired\"}"},
		{.status = 200, .body = PAGE("\"continue\":\"b\"", "1")},
		{.status = 503, .body = "{}"},
		{.status = 200, .body = PAGE("", "2")},
		{.status = 403, .body = "{}"},
	};

	begin(state, answers, 6);
	list();
	assert_int_equal(world.error.code, ERROR_NONE);
	assert_int_equal(json_array_size(items), 2);
	list();
	assert_int_equal(world.error.code, ERROR_FORBIDDEN);
	assert_null(items);
	const char *seen = finish();
	assert_int_equal(count_of(seen, "fieldSelector=spec.nodeName%3Dn0&limit=50 "), 3);
	assert_int_equal(count_of(seen, "&continue=a%2F%2B "), 1);
	assert_int_equal(count_of(seen, "&continue=b "), 2);
	fake_api_destroy(world.api);
}

static void test_events_are_told_and_made_anew(void **state)
{
	const struct fake_api_answer answers[] = {{.status = 201, .echo = true},
						  {.status = 403, .body = "{}"},
						  {.status = 201, .echo = true}};
	const struct kube_event event = {.regarding = {&KUBE_POD, "ns", "web"},
					 .uid = "u",
					 .reason = "Released",
					 .action = "Delete",
					 .note = "why"};
	struct kube_event other = event;
	struct kube_events *events;

	begin(state, answers, 3);
	events = kube_events_create(world.client, world.loop, "n0");
	kube_events_tell(events, &event);
	kube_events_tell(events, &event); /* counted, but not yet worth a call */
	loop_run(world.loop);
	other.note = "other";
	kube_events_tell(events, &other);
	loop_run(world.loop);
	kube_events_tell(events, &other);
	loop_run(world.loop);
	kube_events_tell(events,
			 &(struct kube_event){{&KUBE_NODE, "", "n0"}, "", true, "A", "B", "c"});
	kube_events_destroy(events);
	assert_int_equal(count_of(finish(), "POST /api/v1/namespaces/ns/events?fieldManager=bcd"),
			 3);
	fake_api_destroy(world.api);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_a_list_in_pages),
		IN_FOLDER(test_events_are_told_and_made_anew),
	};

	return cmocka_run_group_tests(tests, make_world, drop_world);
}
