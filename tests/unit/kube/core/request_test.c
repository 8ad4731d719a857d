#include "kube/core/request.h"

#include "lib/test.h"
#include "text/tree.h"

static const struct kube_ref POD = {&KUBE_POD, "default", "web"};
static const struct kube_ref NODE = {&KUBE_NODE, "", "n0"};

/* Checks a request and frees it. */
static void expect(struct kube_request request, const char *method, const char *path,
		   const char *type, const char *body, bool repeatable, const char *subject)
{
	assert_string_equal(request.method, method);
	assert_string_equal(buf_text(&request.path), path);
	assert_string_equal(request.content_type ? request.content_type : "", type);
	assert_string_equal(buf_text(&request.body), body);
	assert_int_equal(request.repeatable, repeatable);
	assert_string_equal(request.subject, subject);
	kube_request_deinit(&request);
}

static void test_reading(void **state UNUSED)
{
	expect(kube_get(NODE), "GET", "/api/v1/nodes/n0", "", "", true, "get node 'n0'");
	expect(kube_get((struct kube_ref){&KUBE_RESOURCE_CLAIM, "a", "b"}), "GET",
	       "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims/b", "", "", true,
	       "get resource claim 'a/b'");
	expect(kube_get_path("/version"), "GET", "/version", "", "", true, "get '/version'");
	expect(kube_list(&KUBE_RESOURCE_SLICE,
			 &(struct kube_list_options){.field_selector = "spec.nodeName=n0"}),
	       "GET", "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dn0",
	       "", "", true, "list resource slices");
	expect(kube_list(&KUBE_POD, &(struct kube_list_options){.namespace = "ns",
								.label_selector = "a in (b,c)",
								.limit = 5,
								.continue_token = "x+/="}),
	       "GET",
	       "/api/v1/namespaces/ns/pods?labelSelector=a%20in%20%28b%2Cc%29&limit=5&"
	       "continue=x%2B%2F%3D",
	       "", "", true, "list pods");
	expect(kube_list(&KUBE_POD, &(struct kube_list_options){0}), "GET", "/api/v1/pods", "", "",
	       true, "list pods");
	expect(kube_watch(&KUBE_POD,
			  &(struct kube_list_options){.field_selector = "spec.nodeName=n0"}, "1 2",
			  300),
	       "GET",
	       "/api/v1/pods?fieldSelector=spec.nodeName%3Dn0&watch=true&allowWatchBookmarks=true&"
	       "timeoutSeconds=300&resourceVersion=1%202",
	       "", "", true, "watch pods");
	expect(kube_watch(&KUBE_POD, &(struct kube_list_options){.namespace = "ns"}, "", 1), "GET",
	       "/api/v1/namespaces/ns/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=1",
	       "", "", true, "watch pods");
}

static void test_names_stay_in_their_place(void **state UNUSED)
{
	expect(kube_get((struct kube_ref){&KUBE_POD, "..", "../x?y#z"}), "GET",
	       "/api/v1/namespaces/%2E%2E/pods/..%2Fx%3Fy%23z", "", "", true,
	       "get pod '../../x?y#z'");
	expect(kube_get((struct kube_ref){&KUBE_NODE, "", "ip-10-0.ec2.internal"}), "GET",
	       "/api/v1/nodes/ip-10-0.ec2.internal", "", "", true,
	       "get node 'ip-10-0.ec2.internal'");
}

static void test_writing(void **state UNUSED)
{
	CLEANUP(tree) json_t *object = json_pack("{s:{s:s}}", "metadata", "name", "s");
	struct kube_ref slice = {&KUBE_RESOURCE_SLICE, "", "s"};

	expect(kube_create(&KUBE_RESOURCE_SLICE, "", object), "POST",
	       "/apis/resource.k8s.io/v1/resourceslices?fieldManager=bcd", "application/json",
	       "{\"metadata\":{\"name\":\"s\"}}", false, "create resource slice 's'");
	expect(kube_apply(slice, object, false), "PATCH",
	       "/apis/resource.k8s.io/v1/resourceslices/s?fieldManager=bcd",
	       "application/apply-patch+yaml", "{\"metadata\":{\"name\":\"s\"}}", true,
	       "apply resource slice 's'");
	expect(kube_apply(slice, object, true), "PATCH",
	       "/apis/resource.k8s.io/v1/resourceslices/s?fieldManager=bcd&force=true",
	       "application/apply-patch+yaml", "{\"metadata\":{\"name\":\"s\"}}", true,
	       "apply resource slice 's'");
	expect(kube_node_cordon("n0", true), "PATCH", "/api/v1/nodes/n0?fieldManager=bcd",
	       "application/merge-patch+json", "{\"spec\":{\"unschedulable\":true}}", true,
	       "patch node 'n0'");
	expect(kube_node_cordon("n0", false), "PATCH", "/api/v1/nodes/n0?fieldManager=bcd",
	       "application/merge-patch+json", "{\"spec\":{\"unschedulable\":null}}", true,
	       "patch node 'n0'");
	CLEANUP(tree) json_t *labels = json_pack("{s:s,s:n}", "bcd.dev/a", "1", "bcd.dev/b");
	expect(kube_node_labels("n0", labels, NULL), "PATCH", "/api/v1/nodes/n0?fieldManager=bcd",
	       "application/merge-patch+json",
	       "{\"metadata\":{\"labels\":{\"bcd.dev/a\":\"1\",\"bcd.dev/b\":null}}}", true,
	       "patch node 'n0'");
}

static void test_deleting(void **state UNUSED)
{
	expect(kube_delete(POD, &(struct kube_delete_options){.uid = "u-1", .grace_period_s = 10}),
	       "DELETE", "/api/v1/namespaces/default/pods/web", "application/json",
	       "{\"apiVersion\":\"v1\",\"gracePeriodSeconds\":10,\"kind\":\"DeleteOptions\","
	       "\"preconditions\":{\"uid\":\"u-1\"}}",
	       true, "delete pod 'default/web'");
	expect(kube_delete(POD, &(struct kube_delete_options){.uid = "u-1"}), "DELETE",
	       "/api/v1/namespaces/default/pods/web", "application/json",
	       "{\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0,\"kind\":\"DeleteOptions\","
	       "\"preconditions\":{\"uid\":\"u-1\"}}",
	       true, "delete pod 'default/web'");
	/* Without a UID it could hit a newcomer, so it isn't repeated. */
	expect(kube_delete(POD, &(struct kube_delete_options){.grace_period_s = -1}), "DELETE",
	       "/api/v1/namespaces/default/pods/web", "application/json",
	       "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\"}", false,
	       "delete pod 'default/web'");
	expect(kube_evict(POD,
			  &(struct kube_delete_options){.grace_period_s = -1, .dry_run = true}),
	       "POST", "/api/v1/namespaces/default/pods/web/eviction", "application/json",
	       "{\"apiVersion\":\"policy/v1\",\"deleteOptions\":{\"apiVersion\":\"v1\",\"dryRun\":["
	       "\"All\"],\"kind\":\"DeleteOptions\"},\"kind\":\"Eviction\",\"metadata\":{\"name\":"
	       "\"web\",\"namespace\":\"default\"}}",
	       true, "try to evict pod 'default/web'");
	expect(kube_evict(POD, &(struct kube_delete_options){.grace_period_s = 5}), "POST",
	       "/api/v1/namespaces/default/pods/web/eviction", "application/json",
	       "{\"apiVersion\":\"policy/v1\",\"deleteOptions\":{\"apiVersion\":\"v1\","
	       "\"gracePeriodSeconds\":5,\"kind\":\"DeleteOptions\"},\"kind\":\"Eviction\","
	       "\"metadata\":{\"name\":\"web\",\"namespace\":\"default\"}}",
	       false, "evict pod 'default/web'");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reading),
		cmocka_unit_test(test_names_stay_in_their_place),
		cmocka_unit_test(test_writing),
		cmocka_unit_test(test_deleting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
