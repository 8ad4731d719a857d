#include "node/core/staticpod.h"

#include "lib/test.h"

static void test_where_manifests_are(void **state UNUSED)
{
	static const struct {
		const char *text, *path; /* NULL: none */
	} TABLE[] = {
		{"kind: KubeletConfiguration\nstaticPodPath: /etc/kubernetes/manifests\n",
		 "/etc/kubernetes/manifests"},
		{"{\"staticPodPath\": \"/m\"}", "/m"},
		{"kind: KubeletConfiguration\n", NULL},
		{"staticPodPath: ''\n", NULL},
		{"staticPodPath: manifests\n", NULL},
		{"staticPodPath: [7]\n", NULL},
		{"- 7\n", NULL},
		{"", NULL},
		{"\x01", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		char path[STATICPOD_MAX_PATH];
		bool found = staticpod_folder(TABLE[i].text, strlen(TABLE[i].text), path);

		assert_int_equal(found, TABLE[i].path != NULL);
		if (found)
			assert_string_equal(path, TABLE[i].path);
	}
}

static void test_whose_manifest(void **state UNUSED)
{
	static const struct {
		const char *text, *namespace, *mirror;
		bool is;
	} TABLE[] = {
		{"metadata: {name: web}", "default", "web-n1", true},
		{"metadata: {name: web, namespace: train}", "train", "web-n1", true},
		{"{\"metadata\": {\"name\": \"web-a\"}}", "default", "web-a-n1", true},
		{"metadata: {name: web}", "train", "web-n1", false},
		{"metadata: {name: web}", "default", "web-n11", false},
		{"metadata: {name: web}", "default", "web-a-n1", false},
		{"metadata: {name: we}", "default", "web-n1", false},
		{"metadata: {name: web}", "default", "web", false},
		{"metadata: {}", "default", "-n1", false},
		{"metadata: 7", "default", "web-n1", false},
		{"7", "default", "web-n1", false},
		{"", "default", "web-n1", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++)
		if (staticpod_is_of(TABLE[i].text, strlen(TABLE[i].text), "n1", TABLE[i].namespace,
				    TABLE[i].mirror) != TABLE[i].is)
			fail_msg("%s of %s", TABLE[i].text, TABLE[i].mirror);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_manifests_are),
		cmocka_unit_test(test_whose_manifest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
