#include "base/arena.h"
#include "lib/test.h"
#include "manifest/core/syntax.h"
#include "sample.h"

#define X10 "xxxxxxxxxx"
#define X60 X10 X10 X10 X10 X10 X10

struct row {
	const char *text;
	bool good;
};

#define CHECK(rows, call)                                                                          \
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {                                            \
		const char *text = (rows)[i].text;                                                 \
		if ((call) != (rows)[i].good)                                                      \
			fail_msg("'%s' is %s", text, (rows)[i].good ? "good" : "not good");        \
	}

static void test_names(void **state UNUSED)
{
	static const struct row labels[] = {
		{"bcd", true},  {"b", true},       {"a-1", true},       {"", false},
		{"-a", false},  {"a-", false},     {"A", false},        {"a.b", false},
		{"a_b", false}, {X60 "xxx", true}, {X60 "xxxx", false}, {"a b", false},
	};
	static const struct row names[] = {
		{"a.b-c.d", true}, {"a..b", false}, {".a", false},  {"a.", false},
		{"a.-b", false},   {"", false},     {"a/b", false},
	};
	static const struct row keys[] = {
		{"token", true}, {"a.b_C-1", true}, {".", false},
		{"..a", false},  {"", false},       {"a/b", false},
	};

	CHECK(labels, syntax_label(text));
	CHECK(names, syntax_name(text));
	CHECK(keys, syntax_data_key(text));
}

static void test_labels(void **state UNUSED)
{
	static const struct row keys[] = {
		{"nvidia.com/gpu.present", true}, {"gpu", true},    {"a_b", true}, {"/gpu", false},
		{"nvidia.com/", false},           {"a/b/c", false}, {"-a", false}, {"", false},
		{"Nvidia.com/a", false},
	};
	static const struct row values[] = {
		{"true", true}, {"", true},     {"A.b_c-1", true},
		{"-", false},   {"a b", false}, {X60 "xxxx", false},
	};

	CHECK(keys, syntax_label_key(text));
	CHECK(values, syntax_label_value(text));
}

static void test_quantities(void **state UNUSED)
{
	static const struct row rows[] = {
		{"1", true},     {"100m", true}, {"128Mi", true}, {"1.5Gi", true},  {".5", true},
		{"1.", true},    {"1e3", true},  {"1E-3", true},  {"2E", true},     {"1k", true},
		{"", false},     {".", false},   {"-1", false},   {"1K", false},    {"1MB", false},
		{"1 Mi", false}, {"1e", false},  {"m", false},    {"1.2.3", false},
	};

	CHECK(rows, syntax_quantity(text));
}

#define AT "@sha256:" SAMPLE_DIGEST

/* proves: MAN-6 */
static void test_images(void **state UNUSED)
{
	static const struct row rows[] = {
		{"registry.example.com/bcd" AT, true},
		{"registry.example.com:5000/a/b-c.d_e__f:v1.2-x" AT, true},
		{"localhost/bcd" AT, true},
		{"localhost:5000/bcd" AT, true},
		{"10.0.0.1:5000/bcd" AT, true},
		{"registry.example.com/bcd", false},
		{"registry.example.com/bcd:latest", false},
		{"registry.example.com/bcd@sha256:0123", false},
		{"registry.example.com/bcd@sha256:" SAMPLE_DIGEST "0", false},
		{"registry.example.com/bcd@sha512:" SAMPLE_DIGEST, false},
		{"registry.example.com/bcd@sha256:"
		 "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
		 false},
		{"bcd" AT, false},
		{"library/bcd" AT, false},
		{"registry.example.com/" AT, false},
		{"registry.example.com/Bcd" AT, false},
		{"registry.example.com/a//b" AT, false},
		{"registry.example.com/a___b" AT, false},
		{"registry.example.com/a-" AT, false},
		{"registry.example.com/bcd:" AT, false},
		{"registry.example.com/bcd:-a" AT, false},
		{"registry.example.com/bcd:a:b" AT, false},
		{"https://registry.example.com/bcd" AT, false},
		{"registry.example.com/bcd " AT, false},
		{"", false},
	};

	CHECK(rows, syntax_image(text));
}

/* Each host alone, and where one stands in an address and in an image's registry.
 * proves: MAN-43 */
static void test_hosts(void **state UNUSED)
{
	enum {
		NOT = 0,
		NAME = 1,
		IN_URL = 2,
		IN_IMAGE = 4
	};
	static const struct {
		const char *text;
		unsigned good; /* as a server's name, as a URL's host, as a registry */
	} rows[] = {
		{"gw.example.com", NAME | IN_URL | IN_IMAGE},
		{"GW.Example.com", NAME | IN_URL | IN_IMAGE},
		{"gw", NAME | IN_URL},
		{"localhost", NAME | IN_URL | IN_IMAGE},
		{"3com.example", NAME | IN_URL | IN_IMAGE},
		{"1.2.3.4.example", NAME | IN_URL | IN_IMAGE},
		{X60 "xxx.example", NAME | IN_URL | IN_IMAGE},
		{X60 "xxxx.example", NOT},
		{X60 "." X60 "." X60 "." X60 ".xxxxxxxxx", NAME | IN_URL | IN_IMAGE}, /* 253 */
		{X60 "." X60 "." X60 "." X60 ".xxxxxxxxxx", NOT},
		{"", NOT},
		{".", NOT},
		{"gw.", NOT},
		{".gw", NOT},
		{"a..b", NOT},
		{"-gw", NOT},
		{"gw-.example", NOT},
		{"a_b.example", NOT},
		{"gw%41.example", NOT},
		{"g\xc3\xbc.example", NOT},
		{"gw.example:", NOT},
		{"user@gw.example", NOT},
		{"10.0.0.1", NAME | IN_URL | IN_IMAGE},
		{"255.255.255.255", NAME | IN_URL | IN_IMAGE},
		{"10.0.0.256", NOT},
		{"10.0.0", NOT},
		{"10.0.0.1.2", NOT},
		{"10.0.0.01", NOT},
		{"10.0..1", NOT},
		{"1", NOT},
		{"[::1]", IN_URL | IN_IMAGE},
		{"[::]", IN_URL | IN_IMAGE},
		{"[fd00::1]", IN_URL | IN_IMAGE},
		{"[fd00::]", IN_URL | IN_IMAGE},
		{"[1:2:3:4:5:6:7:8]", IN_URL | IN_IMAGE},
		{"[1:2:3:4:5:6:7::]", IN_URL | IN_IMAGE},
		{"[::ffff:10.0.0.1]", IN_URL | IN_IMAGE},
		{"[1:2:3:4:5:6:10.0.0.1]", IN_URL | IN_IMAGE},
		{"[1:2:3:4:5:6:7]", NOT},
		{"[1:2:3:4:5:6:7:8:9]", NOT},
		{"[1:2:3:4:5:6:7:10.0.0.1]", NOT},
		{"[1::2::3]", NOT},
		{"[:::]", NOT},
		{"[:1]", NOT},
		{"[1:]", NOT},
		{"[fd00::12345]", NOT},
		{"[fd00::g]", NOT},
		{"[fe80::1%eth0]", NOT},
		{"[::10.0.0.256]", NOT},
		{"::1", NOT},
		{"[::1", NOT},
		{"::1]", NOT},
		{"[]", NOT},
		{"[gw.example]", NOT},
		{"[10.0.0.1]", NOT},
		{"[fe80::1%25eth0]", NOT},
		{"[:]", NOT},
		{"[.:.]", NOT},
		{"[::1]x", NOT},
		{"[[::1]]", NOT},
	};
	static const struct row ports[] = {
		{"1", true},   {"443", true},    {"65535", true},  {"", false},
		{"0", false},  {"00443", false}, {"65536", false}, {"123456", false},
		{"+1", false}, {"x", false},     {"1 ", false},    {"1:2", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(arena) struct arena arena = {0};
		const char *url = arena_printf(&arena, "https://%s", rows[i].text);
		const char *image = arena_printf(&arena, "%s/bcd" AT, rows[i].text);

		if (syntax_server_name(rows[i].text) != ((rows[i].good & NAME) != 0) ||
		    syntax_https(url, false) != ((rows[i].good & IN_URL) != 0) ||
		    syntax_https(arena_printf(&arena, "%s:7443/a", url), true) !=
			    ((rows[i].good & IN_URL) != 0) ||
		    syntax_image(image) != ((rows[i].good & IN_IMAGE) != 0))
			fail_msg("'%s' is judged wrongly", rows[i].text);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		static const char *const hosts[] = {"gw", "10.0.0.1", "[::1]"};

		for (size_t k = 0; k < ARRAY_SIZE(hosts); k++) {
			CLEANUP(arena) struct arena arena = {0};
			const char *url =
				arena_printf(&arena, "https://%s:%s", hosts[k], ports[i].text);
			const char *image =
				arena_printf(&arena, "%s:%s/bcd" AT, hosts[k], ports[i].text);

			if (syntax_https(url, false) != ports[i].good ||
			    syntax_image(image) != ports[i].good)
				fail_msg("'%s' is judged wrongly", url);
		}
	}
}

static void test_addresses(void **state UNUSED)
{
	static const struct row plain[] = {
		{"https://gw.example.com", true}, {"https://gw.example.com/", true},
		{"http://gw.example.com", false}, {"https://", false},
		{"https://:7443", false},         {"https://user@gw", false},
		{"https://gw/a", false},          {"https://gw?a", false},
		{"https://gw#a", false},          {"https://gw.example.com\n", false},
		{"gw.example.com", false},        {"HTTPS://gw", false},
	};
	static const struct row paths[] = {
		{"https://compute.example.com/a/b", true},
		{"https://compute.example.com/a?b=c", false},
		{"https://compute.example.com?b", false},
		{"https://compute.example.com/{{x}}", false},
		{"https://compute.example.com/a b", false},
	};

	CHECK(plain, syntax_https(text, false));
	CHECK(paths, syntax_https(text, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),      cmocka_unit_test(test_labels),
		cmocka_unit_test(test_quantities), cmocka_unit_test(test_images),
		cmocka_unit_test(test_hosts),      cmocka_unit_test(test_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
