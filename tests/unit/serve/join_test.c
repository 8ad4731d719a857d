/* The join service over real TLS, with a control plane that answers as the test says. */
#include "serve/join.h"

#include "pki/cert.h"
#include "pki/envelope.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "serve/wire.h"
#include "sys/clock.h"
#include "world.h"

#include <stdio.h>

#define TOKEN "bcj1_jt_01jd4z5x9f0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

/* A machine that joins. */
struct machine {
	struct world *world;
	struct pki_key *key;
	struct rpc_tls *tls;
	struct rpc_client *client;
	struct join_request request;
	bool done;
	enum rpc_code code;
	char message[512];
	struct buf answer;
};

static void on_down(void *arg, const struct error *error)
{
	(void)arg, (void)error;
}

static void machine_init(struct machine *machine, struct world *world)
{
	static const struct rpc_client_handlers handlers = {.on_down = on_down};
	struct rpc_tls_client_options options = {.server_name = GATEWAY_NAME};
	CLEANUP(buf) struct buf csr = {0};
	char pin[PIN_SIZE];
	struct error error;

	*machine = (struct machine){.world = world};
	world_pin(world, pin);
	options.pins = pin;
	expect_ok(pki_key_generate(&machine->key, &error), &error);
	expect_ok(cert_request_make(machine->key, &csr, NULL, &error), &error);
	machine->request = (struct join_request){
		.token = mem_strdup(TOKEN),
		.csr_pem = buf_take_text(&csr),
		.hostname = mem_strdup("gpu-1"),
		.boot_id = mem_strdup("boot"),
	};
	join_nonce(machine->request.nonce);
	expect_ok(rpc_tls_client_create(&options, &machine->tls, &error), &error);
	machine->client = rpc_client_create(world->loop, gateway_address(world->gateway),
					    machine->tls, 0, &handlers, machine);
}

static void machine_deinit(struct machine *machine)
{
	rpc_client_destroy(machine->client);
	rpc_tls_destroy(machine->tls);
	pki_key_destroy(machine->key);
	join_request_deinit(&machine->request);
	buf_deinit(&machine->answer);
}

static void on_answer(void *arg, const struct rpc_status *status, const uint8_t *data,
		      size_t length)
{
	struct machine *machine = arg;

	machine->done = true;
	machine->code = status->code;
	str_copy(machine->message, sizeof machine->message, status->message);
	buf_clear(&machine->answer);
	if (data)
		buf_add(&machine->answer, data, length);
	loop_stop(machine->world->loop);
}

static void send_envelope(struct machine *machine, const char *envelope)
{
	Bettercompute__V1__JoinRequest message = BETTERCOMPUTE__V1__JOIN_REQUEST__INIT;
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;

	message.envelope = message_text(envelope);
	expect_ok(wire_join_request_pack(&message, &bytes, &error), &error);
	machine->done = false;
	rpc_unary(machine->client, METHOD_JOIN_JOIN, 0, 0, bytes.data, bytes.length, on_answer,
		  machine);
	while (!machine->done)
		world_wait(machine->world);
}

static void ask(struct machine *machine)
{
	char *envelope;
	struct error error;

	expect_ok(join_request_seal(&machine->request, machine->world->pki.join_encryption_key,
				    &envelope, &error),
		  &error);
	send_envelope(machine, envelope);
	free(envelope);
}

/* proves: JOIN-38 JOIN-22 */
static void test_joins(void **state)
{
	struct world *world = *state;
	CLEANUP(message) Bettercompute__V1__JoinAnswer *message = NULL;
	struct pin_list pins = {.count = 1};
	struct join_answer answer = {0};
	struct cert_node node;
	struct machine machine;
	char pin[PIN_SIZE];
	struct error error;

	fake.trust = CONTROL_TRUST_TENANT_CONTROLLED;
	machine_init(&machine, world);
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "OK");
	assert_string_equal(fake.last_token, TOKEN);
	pki_key_pin(machine.key, pin);
	assert_string_equal(fake.machine_key, pin);
	expect_ok(wire_join_answer_unpack(machine.answer.data, machine.answer.length, &message,
					  &error),
		  &error);
	pki_key_pin(world->pki.join_signing_key, pins.pins[0]);
	expect_ok(join_answer_verify(message->envelope, &pins, machine.request.nonce, &answer,
				     &error),
		  &error);
	assert_string_equal(answer.node_id, NODE);
	assert_string_equal(answer.trust, "tenant-controlled");
	assert_string_equal(answer.gateway_address, "gw:7443");
	assert_string_equal(answer.gateway_server_name, GATEWAY_NAME);
	expect_ok(cert_check_key(answer.certificate_pem, machine.key, &error), &error);
	expect_ok(cert_read_node(answer.certificate_pem, strlen(answer.certificate_pem), &node,
				 &error),
		  &error);
	assert_int_equal(node.role, CERT_ROLE_NODE_TENANT);
	join_answer_deinit(&answer);
	machine_deinit(&machine);
}

/* proves: JOIN-4 */
static void test_refusals_say_why(void **state)
{
	static const char *const reasons[] = {
		"the join token has expired", "the join token is used up",
		"the join token was revoked", "the join token is unknown"};
	struct world *world = *state;
	struct machine machine;

	machine_init(&machine, world);
	fake.join_code = ERROR_UNAUTHENTICATED;
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		fake.join_message = reasons[i];
		ask(&machine);
		assert_string_equal(rpc_code_name(machine.code), "UNAUTHENTICATED");
		assert_non_null(strstr(machine.message, reasons[i]));
		assert_null(strstr(machine.message, TOKEN));
		assert_int_equal(machine.answer.length, 0);
	}
	machine_deinit(&machine);
}

static void test_bad_envelopes(void **state)
{
	struct world *world = *state;
	struct machine machine;
	struct pki_key *other;
	char *envelope;
	struct error error;

	machine_init(&machine, world);
	send_envelope(&machine, "");
	assert_string_equal(rpc_code_name(machine.code), "INVALID_ARGUMENT");
	send_envelope(&machine, "a.b.c.d.e");
	assert_string_equal(rpc_code_name(machine.code), "INVALID_ARGUMENT");

	expect_ok(pki_key_generate(&other, &error), &error);
	expect_ok(join_request_seal(&machine.request, other, &envelope, &error), &error);
	send_envelope(&machine, envelope);
	assert_string_equal(rpc_code_name(machine.code), "INVALID_ARGUMENT");
	assert_non_null(strstr(machine.message, "not sealed to this control plane's key"));
	free(envelope);
	pki_key_destroy(other);

	free(machine.request.csr_pem);
	machine.request.csr_pem = mem_strdup("no request");
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "INVALID_ARGUMENT");
	assert_non_null(strstr(machine.message, "PKCS#10"));
	assert_string_equal(fake.last_token, ""); /* control never heard of any of it */
	machine_deinit(&machine);
}

/* What `node` got so long ago, for the machine's key. */
static void issue_old(struct machine *machine, const struct pki_key *ca_key, int days_ago)
{
	const struct pki_folder *pki = &machine->world->pki;
	const struct wall then = {clock_wall().ms - days_ago * INT64_C(86400000)};
	CLEANUP(buf) struct buf pem = {0};
	struct error error;

	expect_ok(cert_issue_node(&(struct cert_issuer){pki->node_ca_pem, ca_key}, machine->key,
				  NODE, CERT_ROLE_NODE, then, &pem, &error),
		  &error);
	free(machine->request.certificate_pem);
	machine->request.certificate_pem = buf_take_text(&pem);
}

/* proves: JOIN-41 */
static void test_expired_certificate(void **state)
{
	struct world *world = *state;
	struct machine machine, other;

	machine_init(&machine, world);
	machine.request.token[0] = '\0';
	fake.join_code = ERROR_UNAUTHENTICATED; /* no token would do */
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "UNAUTHENTICATED");
	pki_key_pin(machine.key, fake.machine_key);
	issue_old(&machine, world->pki.node_ca_key, 36); /* expired 6 days ago */
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "OK");
	assert_string_equal(fake.last_node, NODE);
	issue_old(&machine, world->pki.node_ca_key, 38);
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "UNAUTHENTICATED");
	assert_non_null(strstr(machine.message, "more than 7 days ago"));
	assert_null(
		strstr(machine.message, "token")); /* bcd says what to do: it knows where it is */

	issue_old(&machine, world->pki.serving_ca_key, 36); /* of another CA */
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "UNAUTHENTICATED");
	assert_non_null(strstr(machine.message, "not trusted"));

	machine_init(&other, world); /* shows the certificate, has not its key */
	other.request.token[0] = '\0';
	issue_old(&machine, world->pki.node_ca_key, 36);
	other.request.certificate_pem = mem_strdup(machine.request.certificate_pem);
	ask(&other);
	assert_string_equal(rpc_code_name(other.code), "UNAUTHENTICATED");
	assert_non_null(strstr(other.message, "another key"));
	machine_deinit(&other);

	str_copy(fake.machine_key, sizeof fake.machine_key, "sha256/joined again since");
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "UNAUTHENTICATED");
	machine_deinit(&machine);
}

static void test_oversize(void **state)
{
	struct world *world = *state;
	char *envelope = mem_alloc((size_t)64 << 10);
	struct machine machine;

	memset(envelope, 'a', ((size_t)64 << 10) - 1);
	machine_init(&machine, world);
	send_envelope(&machine, envelope);
	assert_string_equal(rpc_code_name(machine.code), "RESOURCE_EXHAUSTED");
	free(envelope);
	machine_deinit(&machine);
}

/* Who guesses is slowed down; who is right is not. */
static void test_rate(void **state)
{
	struct world *world = *state;
	struct machine machine;

	machine_init(&machine, world);
	for (int i = 0; i < JOIN_MAX_REFUSED + 5; i++) {
		ask(&machine);
		assert_string_equal(rpc_code_name(machine.code), "OK");
	}
	fake.join_code = ERROR_UNAUTHENTICATED;
	for (int i = 0; i < JOIN_MAX_REFUSED; i++) {
		ask(&machine);
		assert_string_equal(rpc_code_name(machine.code), "UNAUTHENTICATED");
	}
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "UNAVAILABLE");
	assert_non_null(strstr(machine.message, "too many joins from address 127.0.0.1 were"));
	assert_non_null(strstr(machine.message, "Wait: one each 3 s"));
	assert_non_null(strstr(machine.message, "the machine or pod at this address"));
	machine_deinit(&machine);
}

/* Nor who was right once: whoever stands behind the same address is let in. */
static void test_a_dead_token_is_no_guess(void **state)
{
	struct world *world = *state;
	struct machine machine;

	machine_init(&machine, world);
	fake.join_code = ERROR_UNAUTHENTICATED;
	fake.join_known = true;
	for (int i = 0; i < JOIN_MAX_REFUSED + 5; i++) {
		ask(&machine);
		assert_string_equal(rpc_code_name(machine.code), "UNAUTHENTICATED");
	}
	/* The same of a certificate that is too old; one of another CA is a guess. */
	machine.request.token[0] = '\0';
	issue_old(&machine, world->pki.node_ca_key, 38);
	for (int i = 0; i < JOIN_MAX_REFUSED + 5; i++) {
		ask(&machine);
		assert_string_equal(rpc_code_name(machine.code), "UNAUTHENTICATED");
	}
	issue_old(&machine, world->pki.serving_ca_key, 38);
	for (int i = 0; i < JOIN_MAX_REFUSED; i++) {
		ask(&machine);
		assert_string_equal(rpc_code_name(machine.code), "UNAUTHENTICATED");
	}
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "UNAVAILABLE");
	machine_deinit(&machine);
}

static void test_our_fault_is_not_charged(void **state)
{
	struct world *world = *state;
	struct machine machine;

	machine_init(&machine, world);
	fake.join_code = ERROR_UNAVAILABLE;
	for (int i = 0; i < JOIN_MAX_REFUSED + 5; i++)
		ask(&machine);
	fake.join_code = ERROR_NONE;
	ask(&machine);
	assert_string_equal(rpc_code_name(machine.code), "OK");
	machine_deinit(&machine);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_joins, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_refusals_say_why, world_set_up,
						world_tear_down),
		cmocka_unit_test_setup_teardown(test_bad_envelopes, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_expired_certificate, world_set_up,
						world_tear_down),
		cmocka_unit_test_setup_teardown(test_oversize, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_rate, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_a_dead_token_is_no_guess, world_set_up,
						world_tear_down),
		cmocka_unit_test_setup_teardown(test_our_fault_is_not_charged, world_set_up,
						world_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
