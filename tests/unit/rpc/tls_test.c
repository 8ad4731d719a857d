/* Mutual TLS over real sockets: who is let in, and what the others are told. */
#include "rpc/tls.h"

#include "certs.h"
#include "lib/test.h"
#include "rpc/rpc.h"

#include <openssl/ssl.h>
#include <stdio.h>

static void on_guard(void *arg)
{
	(void)arg;
	fail_msg("nothing happened for %d s", TEST_PATIENCE_MS / 1000);
}

/* Made once: authorities, and what they signed. */
struct house {
	struct certs_pair ca, other_ca, middle, server, server_of_middle, expired_server,
		future_server;
	struct certs_pair node, expired_node, foreign_node;
	char *ca_pin, *other_pin, *middle_pin, *server_pin;
};

static struct house *house_build(void)
{
	struct house *house = mem_alloc(sizeof *house);
	const struct certs_pair *ca = &house->ca;
	house->ca = certs_make(&(struct certs_options){.name = "ca", .is_ca = true});
	house->other_ca = certs_make(&(struct certs_options){.name = "other", .is_ca = true});
	house->middle =
		certs_make(&(struct certs_options){.name = "middle", .is_ca = true, .issuer = ca});
	house->server = certs_make(&(struct certs_options){.name = "gateway.test", .issuer = ca});
	house->server_of_middle = certs_make(
		&(struct certs_options){.name = "gateway.test", .issuer = &house->middle});
	house->expired_server = certs_make(&(struct certs_options){
		.name = "gateway.test", .issuer = ca, .from_s = -7200, .to_s = -60});
	house->future_server = certs_make(&(struct certs_options){
		.name = "gateway.test", .issuer = ca, .from_s = 60, .to_s = 7200});
	house->node = certs_make(&(struct certs_options){.name = "node-1", .issuer = ca});
	house->expired_node = certs_make(&(struct certs_options){
		.name = "node-1", .issuer = ca, .from_s = -7200, .to_s = -60});
	house->foreign_node =
		certs_make(&(struct certs_options){.name = "node-1", .issuer = &house->other_ca});
	house->ca_pin = certs_pin(&house->ca);
	house->other_pin = certs_pin(&house->other_ca);
	house->middle_pin = certs_pin(&house->middle);
	house->server_pin = certs_pin(&house->server);
	return house;
}

static int build(void **state)
{
	*state = house_build();
	return 0;
}

static int demolish(void **state)
{
	struct house *house = *state;
	struct certs_pair *all[] = {&house->ca,
				    &house->other_ca,
				    &house->middle,
				    &house->server,
				    &house->server_of_middle,
				    &house->expired_server,
				    &house->future_server,
				    &house->node,
				    &house->expired_node,
				    &house->foreign_node};
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		certs_free(all[i]);
	free(house->ca_pin);
	free(house->other_pin);
	free(house->middle_pin);
	free(house->server_pin);
	free(house);
	return 0;
}

static char *chain(const struct certs_pair *leaf, const struct certs_pair *ca)
{
	struct buf text = {0};
	buf_add_text(&text, leaf->certificate);
	if (ca)
		buf_add_text(&text, ca->certificate);
	return buf_take_text(&text);
}

/* --- one attempt to call --- */

struct attempt {
	/* given */
	const struct certs_pair *server; /* NULL: the good one */
	const struct certs_pair *above;  /* sent after it; NULL: the CA */
	bool bare;                       /* nothing is sent after it */
	const char *name, *pins, *ca;    /* client */
	const struct certs_pair *node;   /* NULL: no client certificate */
	bool no_client_ca;
	/* found */
	struct loop *loop;
	bool up, down, done;
	struct error error;
	enum rpc_code code;
	bool certificate_seen;
	char seen[64];
};

static void whoami_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct attempt *attempt = arg;
	size_t size;
	const uint8_t *der = rpc_peer_certificate(call, &size);
	assert_int_equal(rpc_peer_uid(call), -1);
	attempt->certificate_seen = der != NULL;
	if (!der) {
		assert_int_equal(size, 0);
		rpc_finish(call, RPC_UNAUTHENTICATED, "a node certificate is needed");
		return;
	}
	X509 *certificate = d2i_X509(NULL, &der, (long)size);
	assert_non_null(certificate);
	X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, attempt->seen,
				  sizeof attempt->seen);
	X509_free(certificate);
	rpc_send(call, data, length);
	rpc_finish(call, RPC_OK, NULL);
}

static const struct rpc_method methods[] = {
	{.path = "/t/WhoAmI", .unary = true, .on_message = whoami_message},
};

static void on_up(void *arg)
{
	struct attempt *attempt = arg;
	attempt->up = true;
}

static void on_down(void *arg, const struct error *error)
{
	struct attempt *attempt = arg;
	attempt->down = true;
	attempt->error = *error;
	loop_stop(attempt->loop);
}

static void on_answer(void *arg, const struct rpc_status *status, const uint8_t *data,
		      size_t length)
{
	struct attempt *attempt = arg;
	attempt->done = true;
	attempt->code = status->code;
	if (status->code == RPC_OK) {
		assert_int_equal(length, 100000);
		assert_int_equal(data[99999], 'x');
	}
	if (status->code == RPC_OK || status->code == RPC_UNAUTHENTICATED)
		loop_stop(attempt->loop);
}

static void try(const struct house *house, struct attempt *attempt)
{
	static const struct rpc_client_handlers handlers = {on_up, on_down};
	struct error error;
	struct rpc_tls *server_tls, *client_tls;
	CLEANUP(free)
	char *served = chain(attempt->server ? attempt->server : &house->server,
			     attempt->bare    ? NULL
			     : attempt->above ? attempt->above
					      : &house->ca);
	const struct rpc_tls_server_options server_options = {
		.certificate_pem = served,
		.key_pem = attempt->server ? attempt->server->key : house->server.key,
		.client_ca_pem = attempt->no_client_ca ? NULL : house->ca.certificate,
	};
	const struct rpc_tls_client_options client_options = {
		.server_name = attempt->name ? attempt->name : "gateway.test",
		.pins = attempt->pins,
		.ca_pem = attempt->ca,
		.certificate_pem = attempt->node ? attempt->node->certificate : NULL,
		.key_pem = attempt->node ? attempt->node->key : NULL,
	};
	expect_ok(rpc_tls_server_create(&server_options, &server_tls, &error), &error);
	expect_ok(rpc_tls_client_create(&client_options, &client_tls, &error), &error);

	attempt->loop = loop_create();
	struct loop_timer *guard = loop_timer_create(attempt->loop, on_guard, NULL);
	loop_timer_start(guard, TEST_PATIENCE_MS);
	struct rpc_server *server =
		rpc_server_create(attempt->loop, methods, ARRAY_SIZE(methods), attempt);
	expect_ok(rpc_server_listen_tcp(server, "127.0.0.1:0", server_tls, &error), &error);
	struct rpc_client *client = rpc_client_create(attempt->loop, rpc_server_address(server),
						      client_tls, 0, &handlers, attempt);
	CLEANUP(free) uint8_t *request = mem_alloc(100000);
	memset(request, 'x', 100000);
	rpc_unary(client, "/t/WhoAmI", 0, 0, request, 100000, on_answer, attempt);
	loop_run(attempt->loop);

	rpc_client_destroy(client);
	rpc_server_destroy(server);
	assert_true(attempt->done);
	loop_timer_destroy(guard);
	loop_run(attempt->loop);
	loop_destroy(attempt->loop);
	rpc_tls_destroy(client_tls);
	rpc_tls_destroy(server_tls);
}

static void expect_in(const struct house *house, struct attempt attempt)
{
	try(house, &attempt);
	if (attempt.down)
		fail_msg("refused: %s", attempt.error.what);
	assert_true(attempt.up);
	assert_int_equal(attempt.code, RPC_OK);
	assert_string_equal(attempt.seen, "node-1");
}

static void expect_out(const struct house *house, struct attempt attempt, enum error_code code,
		       const char *text)
{
	try(house, &attempt);
	if (!attempt.down)
		fail_msg("let in, or %s, where \"%s\" was due", rpc_code_name(attempt.code), text);
	assert_false(attempt.up); /* or a backoff would start anew at each refusal */
	assert_int_equal(attempt.code, RPC_UNAVAILABLE);
	if (!strstr(attempt.error.what, text))
		fail_msg("\"%s\" lacks \"%s\"", attempt.error.what, text);
	assert_string_equal(error_code_name(attempt.error.code), error_code_name(code));
}

/* --- tests --- */

/* proves: JOIN-37 */
static void test_who_is_let_in(void **state)
{
	const struct house *house = *state;
	const struct certs_pair *node = &house->node;
	char two[2 * 64];
	expect_in(house, (struct attempt){.pins = house->ca_pin, .node = node});
	expect_in(house, (struct attempt){.ca = house->ca.certificate, .node = node});
	snprintf(two, sizeof two, "%s,%s", house->other_pin, house->ca_pin);
	expect_in(house, (struct attempt){.pins = two, .node = node});
	/* A pinned authority may stand below another one. */
	expect_in(house, (struct attempt){.pins = house->middle_pin,
					  .server = &house->server_of_middle,
					  .above = &house->middle,
					  .node = node});
}

static void test_no_client_certificate_is_the_methods_to_judge(void **state)
{
	struct attempt attempt = {.pins = ((struct house *)*state)->ca_pin};
	try(*state, &attempt);
	assert_true(attempt.up);
	assert_false(attempt.certificate_seen);
	assert_int_equal(attempt.code, RPC_UNAUTHENTICATED);
	struct attempt unasked = {.pins = attempt.pins,
				  .node = &((struct house *)*state)->node,
				  .no_client_ca = true};
	try(*state, &unasked);
	assert_false(unasked.certificate_seen);
}

/* proves: JOIN-20 */
static void test_wrong_servers(void **state)
{
	const struct house *house = *state;
	const struct certs_pair *node = &house->node;
	expect_out(house, (struct attempt){.pins = house->other_pin, .node = node}, ERROR_FORBIDDEN,
		   house->ca_pin); /* says which it saw */
	expect_out(house, (struct attempt){.pins = house->ca_pin, .bare = true}, ERROR_FORBIDDEN,
		   "no certificate authority at all");
	expect_out(house, (struct attempt){.pins = house->server_pin, .node = node},
		   ERROR_FORBIDDEN, "no certificate authority of the server has a pinned key");
	expect_out(house, (struct attempt){.ca = house->other_ca.certificate, .node = node},
		   ERROR_FORBIDDEN, "not trusted");
	expect_out(house, (struct attempt){.pins = house->ca_pin, .name = "other.test"},
		   ERROR_FORBIDDEN, "not for the name 'other.test'");
	expect_out(house, (struct attempt){.ca = house->ca.certificate, .name = "other.test"},
		   ERROR_FORBIDDEN, "not for the name 'other.test'");
	expect_out(house, (struct attempt){.pins = house->ca_pin, .server = &house->expired_server},
		   ERROR_FORBIDDEN, "certificate has expired");
	expect_out(house, (struct attempt){.pins = house->ca_pin, .server = &house->future_server},
		   ERROR_FORBIDDEN, "not yet valid");
	/* The pinned authority is shown, but it did not sign this server. */
	expect_out(house,
		   (struct attempt){.pins = house->ca_pin, .server = &house->server_of_middle},
		   ERROR_FORBIDDEN, "not trusted");
}

static void test_wrong_clients(void **state)
{
	const struct house *house = *state;
	/* The refusal comes after the client's own handshake is done: each time it must be read. */
	for (unsigned i = 0; i < 10; i++) {
		expect_out(house,
			   (struct attempt){.pins = house->ca_pin, .node = &house->foreign_node},
			   ERROR_UNAUTHENTICATED, "the server refused our certificate");
		expect_out(house,
			   (struct attempt){.pins = house->ca_pin, .node = &house->expired_node},
			   ERROR_UNAUTHENTICATED, "the server refused our certificate");
	}
}

static void test_bad_settings(void **state)
{
	const struct house *house = *state;
	struct error error;
	struct rpc_tls *tls = NULL;
	struct rpc_tls_client_options options = {.server_name = "x"};
	static const char *const pins[] = {"", "sha256/", "sha1/abc", "sha256/AAAA,",
					   "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA!"};
	for (size_t i = 0; i < ARRAY_SIZE(pins); i++) {
		options.pins = pins[i];
		expect_error(rpc_tls_client_create(&options, &tls, &error), &error,
			     ERROR_INVALID_CONFIG, "44 base64 characters");
	}
	char three[3 * 64];
	snprintf(three, sizeof three, "%s,%s,%s", house->ca_pin, house->ca_pin, house->ca_pin);
	options.pins = three;
	expect_error(rpc_tls_client_create(&options, &tls, &error), &error, ERROR_INVALID_CONFIG,
		     "more than 2 pins");
	options.pins = NULL;
	options.ca_pem = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
	expect_error(rpc_tls_client_create(&options, &tls, &error), &error, ERROR_INVALID_CONFIG,
		     "read the CA certificate");
	options.ca_pem = "";
	expect_error(rpc_tls_client_create(&options, &tls, &error), &error, ERROR_INVALID_CONFIG,
		     "read the CA certificate");
	struct rpc_tls_server_options server = {.certificate_pem = house->server.certificate,
						.key_pem = house->node.key};
	expect_error(rpc_tls_server_create(&server, &tls, &error), &error, ERROR_INVALID_CONFIG,
		     "read the TLS key");
	server.certificate_pem = "nothing";
	expect_error(rpc_tls_server_create(&server, &tls, &error), &error, ERROR_INVALID_CONFIG,
		     "read the TLS certificate");
	assert_null(tls);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_let_in),
		cmocka_unit_test(test_no_client_certificate_is_the_methods_to_judge),
		cmocka_unit_test(test_wrong_servers),
		cmocka_unit_test(test_wrong_clients),
		cmocka_unit_test(test_bad_settings),
	};
	return cmocka_run_group_tests(tests, build, demolish);
}
