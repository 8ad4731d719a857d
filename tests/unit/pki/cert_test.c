#include "pki/cert.h"

#include "lib/test.h"

#define NODE "node_01jd4z5x9f0123456789abcdef"
#define DAY  ((int64_t)24 * 60 * 60 * 1000)

static const struct wall now = {1800000000000};

struct world {
	struct pki_key *ca_key, *node_key, *other_key;
	struct buf ca, other_ca;
};

static int set_up(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	struct error error;

	expect_ok(pki_key_generate(&world->ca_key, &error), &error);
	expect_ok(pki_key_generate(&world->node_key, &error), &error);
	expect_ok(pki_key_generate(&world->other_key, &error), &error);
	expect_ok(cert_make_ca(world->ca_key, "test CA", now, &world->ca, &error), &error);
	expect_ok(cert_make_ca(world->other_key, "test CA", now, &world->other_ca, &error), &error);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	pki_key_destroy(world->ca_key);
	pki_key_destroy(world->node_key);
	pki_key_destroy(world->other_key);
	buf_deinit(&world->ca);
	buf_deinit(&world->other_ca);
	free(world);
	return 0;
}

static void issue_node(struct world *world, enum cert_role role, struct buf *pem)
{
	const struct cert_issuer issuer = {buf_text(&world->ca), world->ca_key};
	struct error error;

	expect_ok(cert_issue_node(&issuer, world->node_key, NODE, role, now, pem, &error), &error);
}

/* proves: JOIN-22 */
static void test_node(void **state)
{
	struct world *world = *state;
	struct error error;
	char pin[PIN_SIZE];

	pki_key_pin(world->node_key, pin);
	for (int i = CERT_ROLE_NODE; i <= CERT_ROLE_NODE_TENANT; i++) {
		CLEANUP(buf) struct buf pem = {0};
		struct cert_node node;

		issue_node(world, (enum cert_role)i, &pem);
		expect_ok(cert_read_node(buf_text(&pem), pem.length, &node, &error), &error);
		assert_string_equal(node.node_id, NODE);
		assert_int_equal(node.role, i);
		assert_string_equal(node.info.key_pin, pin);
		assert_int_equal(strlen(node.info.serial), 32);
		/* proves: JOIN-41 */
		assert_int_equal(node.info.not_after.ms - now.ms, 30 * DAY);
		assert_int_equal(now.ms - node.info.not_before.ms, CERT_BACKDATE_MS);
		expect_ok(cert_check_key(buf_text(&pem), world->node_key, &error), &error);
		expect_error(cert_check_key(buf_text(&pem), world->ca_key, &error), &error,
			     ERROR_FORBIDDEN, "another key");
	}
}

static void test_role_names(void **state)
{
	enum cert_role role;

	(void)state;
	for (int i = CERT_ROLE_NODE; i <= CERT_ROLE_NODE_TENANT; i++) {
		assert_true(cert_role_parse(cert_role_name((enum cert_role)i), &role));
		assert_int_equal(role, i);
	}
	assert_false(cert_role_parse("operator", &role));
}

static void test_verify(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf pem = {0};
	struct error error;
	const char *text, *ca = buf_text(&world->ca);

	issue_node(world, CERT_ROLE_NODE, &pem);
	text = buf_text(&pem);
	expect_ok(cert_verify(text, ca, now, &error), &error);
	expect_ok(cert_verify(text, ca, (struct wall){now.ms + 30 * DAY - 1000}, &error), &error);
	expect_error(cert_verify(text, ca, (struct wall){now.ms + 30 * DAY + 1000}, &error), &error,
		     ERROR_FORBIDDEN, "expired");
	expect_error(cert_verify(text, ca, (struct wall){now.ms - CERT_BACKDATE_MS - 1000}, &error),
		     &error, ERROR_FORBIDDEN, "not yet valid");
	/* same name, another key */
	expect_error(cert_verify(text, buf_text(&world->other_ca), now, &error), &error,
		     ERROR_FORBIDDEN, "not trusted");
	expect_error(cert_verify("", ca, now, &error), &error, ERROR_INVALID_INPUT, "unreadable");
}

static void test_gateway(void **state)
{
	struct world *world = *state;
	const struct cert_issuer issuer = {buf_text(&world->ca), world->ca_key};
	const char *names[] = {"gateway.example.com", "gw2.example.com"};
	static const char *const bad[] = {"",   "a b", "UPPER.example.com", "a,DNS:evil",
					  ".a", "-a",  "*.example.com"};
	CLEANUP(buf) struct buf pem = {0};
	struct cert_node node;
	struct error error;

	expect_ok(cert_issue_gateway(&issuer, world->node_key, names, 2, now, &pem, &error),
		  &error);
	expect_ok(cert_verify(buf_text(&pem), buf_text(&world->ca), now, &error), &error);
	assert_true(cert_has_dns_name(buf_text(&pem), names[0]));
	assert_true(cert_has_dns_name(buf_text(&pem), names[1]));
	assert_false(cert_has_dns_name(buf_text(&pem), "example.com"));
	assert_false(cert_has_dns_name("no PEM", names[0]));
	expect_error(cert_read_node(buf_text(&pem), pem.length, &node, &error), &error,
		     ERROR_INVALID_INPUT, "not a node's");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		expect_error(
			cert_issue_gateway(&issuer, world->node_key, &bad[i], 1, now, &pem, &error),
			&error, ERROR_INVALID_CONFIG, "DNS name");
}

static void test_request(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf pem = {0};
	CLEANUP(buf) struct buf der = {0};
	char pin[PIN_SIZE], asked[PIN_SIZE];
	struct error error;

	expect_ok(cert_request_make(world->node_key, &pem, &der, &error), &error);
	pki_key_pin(world->node_key, pin);
	for (int i = 0; i < 2; i++) {
		const struct buf *form = i ? &der : &pem;
		CLEANUP(pki_key) struct pki_key *key = NULL;

		expect_ok(cert_request_check(form->data, form->length, &key, &error), &error);
		assert_false(pki_key_is_private(key));
		pki_key_pin(key, asked);
		assert_string_equal(asked, pin);
	}
}

/* Whatever byte is turned, the request is refused: its signature covers all of it. */
static void test_request_tampered(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf der = {0};
	struct pki_key *key = NULL;
	struct error error;

	expect_ok(cert_request_make(world->node_key, NULL, &der, &error), &error);
	for (size_t i = 0; i < der.length; i++) {
		der.data[i] ^= 0x01;
		if (cert_request_check(der.data, der.length, &key, &error))
			fail_msg("byte %zu was changed and the request still taken", i);
		assert_int_equal(error.code, ERROR_INVALID_INPUT);
		der.data[i] ^= 0x01;
	}
	for (size_t length = 0; length < der.length; length++)
		assert_false(cert_request_check(der.data, length, &key, &error));
}

static void test_bounds(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf big = {0};
	CLEANUP(buf) struct buf pem = {0};
	struct pki_key *key = NULL;
	struct cert_info info;
	struct cert_node node;
	struct error error;

	issue_node(world, CERT_ROLE_NODE, &pem);
	buf_add(&big, pem.data, pem.length);
	while (big.length < PKI_PEM_MAX)
		buf_add_char(&big, '\n');
	expect_ok(cert_read(buf_text(&big), big.length, &info, &error), &error);
	buf_add_char(&big, '\n');
	expect_error(cert_read(buf_text(&big), big.length, &info, &error), &error,
		     ERROR_INVALID_INPUT, "unreadable");
	expect_error(cert_read_node(buf_text(&big), big.length, &node, &error), &error,
		     ERROR_INVALID_INPUT, "unreadable");
	expect_error(cert_request_check(big.data, big.length, &key, &error), &error,
		     ERROR_INVALID_INPUT, "over");
	expect_error(cert_request_check("", 0, &key, &error), &error, ERROR_INVALID_INPUT,
		     "PKCS#10");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_node),    cmocka_unit_test(test_role_names),
		cmocka_unit_test(test_verify),  cmocka_unit_test(test_gateway),
		cmocka_unit_test(test_request), cmocka_unit_test(test_request_tampered),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
