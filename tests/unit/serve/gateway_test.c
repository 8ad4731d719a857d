/* The gateway over real TLS on loopback, with a control plane that answers as the test says. */
#include "serve/gateway.h"

#include "pki/cert.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "serve/wire.h"
#include "sys/clock.h"
#include "world.h"

#define MAX_SEEN 64

/* One node's end of a stream. */
struct peer {
	struct world *world;
	struct pki_key *key;
	struct rpc_tls *tls;
	struct rpc_client *client;
	struct rpc_call *call;
	Bettercompute__V1__Down *seen[MAX_SEEN];
	size_t count;
	bool done;
	enum rpc_code code;
	char message[256];
};

static void peer_on_message(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	struct peer *peer = arg;
	struct error error;

	(void)call;
	assert_true(peer->count < MAX_SEEN);
	expect_ok(wire_down_unpack(data, length, &peer->seen[peer->count++], &error), &error);
	loop_stop(peer->world->loop);
}

static void peer_on_done(struct rpc_call *call, void *arg, const struct rpc_status *status)
{
	struct peer *peer = arg;

	(void)call;
	peer->done = true;
	peer->call = NULL;
	peer->code = status->code;
	str_copy(peer->message, sizeof peer->message, status->message);
	loop_stop(peer->world->loop);
}

static void peer_on_down(void *arg, const struct error *error)
{
	(void)arg, (void)error;
}

/* Connects as `node`, or without a certificate for NULL. */
static void peer_init(struct peer *peer, struct world *world, const char *node, struct wall issued)
{
	static const struct rpc_client_handlers client_handlers = {.on_down = peer_on_down};
	static const struct rpc_call_handlers call_handlers = {
		.on_message = peer_on_message,
		.on_done = peer_on_done,
	};
	CLEANUP(buf) struct buf certificate = {0};
	CLEANUP(buf) struct buf secret = {0};
	struct rpc_tls_client_options options = {.server_name = GATEWAY_NAME};
	char pin[PIN_SIZE];
	struct error error;

	*peer = (struct peer){.world = world};
	world_pin(world, pin);
	options.pins = pin;
	if (node) {
		expect_ok(pki_key_generate(&peer->key, &error), &error);
		expect_ok(pki_key_to_pem(peer->key, &secret, &error), &error);
		expect_ok(cert_issue_node(&(struct cert_issuer){world->pki.node_ca_pem,
								world->pki.node_ca_key},
					  peer->key, node, CERT_ROLE_NODE, issued, &certificate,
					  &error),
			  &error);
		options.certificate_pem = buf_text(&certificate);
		options.key_pem = buf_text(&secret);
	}
	expect_ok(rpc_tls_client_create(&options, &peer->tls, &error), &error);
	peer->client = rpc_client_create(world->loop, gateway_address(world->gateway), peer->tls, 0,
					 &client_handlers, peer);
	peer->call =
		rpc_call_start(peer->client, METHOD_GATEWAY_CONNECT, 0, 0, &call_handlers, peer);
}

static void peer_deinit(struct peer *peer)
{
	rpc_client_destroy(peer->client);
	rpc_tls_destroy(peer->tls);
	pki_key_destroy(peer->key);
	for (size_t i = 0; i < peer->count; i++)
		message_free(peer->seen[i]);
}

static void peer_send(struct peer *peer, const Bettercompute__V1__Up *up)
{
	CLEANUP(buf) struct buf bytes = {0};
	struct error error;

	expect_ok(wire_up_pack(up, &bytes, &error), &error);
	rpc_send(peer->call, bytes.data, bytes.length);
}

static void send_hello(struct peer *peer, int64_t last_sequence)
{
	Bettercompute__V1__Up up = BETTERCOMPUTE__V1__UP__INIT;
	Bettercompute__V1__Hello hello = BETTERCOMPUTE__V1__HELLO__INIT;

	hello.version = (char[]){"0.1.0"};
	hello.last_sequence = last_sequence;
	hello.opened_ms = 1234;
	up.body_case = BETTERCOMPUTE__V1__UP__BODY_HELLO;
	up.hello = &hello;
	peer_send(peer, &up);
}

static void send_released(struct peer *peer, int64_t sequence)
{
	Bettercompute__V1__Up up = BETTERCOMPUTE__V1__UP__INIT;
	Bettercompute__V1__Report report = BETTERCOMPUTE__V1__REPORT__INIT;
	Bettercompute__V1__AllocationReleased released =
		BETTERCOMPUTE__V1__ALLOCATION_RELEASED__INIT;

	released.allocation = (char[]){"alc_1"};
	report.sequence = sequence;
	report.body_case = BETTERCOMPUTE__V1__REPORT__BODY_RELEASED;
	report.released = &released;
	up.body_case = BETTERCOMPUTE__V1__UP__BODY_REPORT;
	up.report = &report;
	peer_send(peer, &up);
}

static void send_heartbeat(struct peer *peer)
{
	Bettercompute__V1__Up up = BETTERCOMPUTE__V1__UP__INIT;
	Bettercompute__V1__Heartbeat heartbeat = BETTERCOMPUTE__V1__HEARTBEAT__INIT;

	up.body_case = BETTERCOMPUTE__V1__UP__BODY_HEARTBEAT;
	up.heartbeat = &heartbeat;
	peer_send(peer, &up);
}

static void await(struct peer *peer, size_t count)
{
	while (!peer->done && peer->count < count)
		world_wait(peer->world);
}

static void await_end(struct peer *peer, enum rpc_code code, const char *message)
{
	while (!peer->done)
		world_wait(peer->world);
	assert_string_equal(rpc_code_name(peer->code), rpc_code_name(code));
	if (!strstr(peer->message, message))
		fail_msg("ended with \"%s\", not \"%s\"", peer->message, message);
}

/* A stream that has its Welcome and its Spec. */
static void open_stream(struct peer *peer, struct world *world, const char *node)
{
	peer_init(peer, world, node, clock_wall());
	send_hello(peer, 0);
	await(peer, 2);
	assert_int_equal(peer->count, 2);
}

/* --- tests --- */

/* proves: GW-25 */
static void test_opening(void **state)
{
	struct world *world = *state;
	struct peer peer;
	const Bettercompute__V1__Spec *spec;

	fake.generation = 7;
	peer_init(&peer, world, NODE, clock_wall());
	send_hello(&peer, 41);
	await(&peer, 2);
	assert_int_equal(peer.seen[0]->body_case, BETTERCOMPUTE__V1__DOWN__BODY_WELCOME);
	assert_int_equal(peer.seen[0]->welcome->epoch, 1);
	assert_int_equal(peer.seen[0]->welcome->acknowledged, 41);
	assert_string_equal(peer.seen[0]->welcome->lineage, "lineage");
	assert_string_equal(peer.seen[0]->welcome->node, NODE);
	assert_string_equal(peer.seen[0]->welcome->site, "site_x");
	assert_string_equal(peer.seen[0]->welcome->pool, "h100");
	assert_string_equal(fake.last_node, NODE);
	assert_int_equal(fake.last_opened_ms, 1234);
	assert_int_equal(peer.seen[1]->body_case, BETTERCOMPUTE__V1__DOWN__BODY_SPEC);
	spec = peer.seen[1]->spec;
	assert_int_equal(spec->generation, 7);
	assert_int_equal(spec->n_assignments, 1);
	assert_string_equal(spec->assignments[0]->allocation, "alc_1");
	assert_int_equal(spec->assignments[0]->binding,
			 BETTERCOMPUTE__V1__BINDING__BINDING_KUBERNETES);
	assert_string_equal(spec->assignments[0]->devices[0]->visible_device, "GPU-1");
	assert_int_equal(spec->assignments[0]->limits->vcpus, 3);
	assert_int_equal(spec->assignments[0]->booked->vcpus, 3);
	assert_int_equal(spec->assignments[0]->booked->n_huge_pages, 1);
	assert_int_equal(spec->assignments[0]->booked->huge_pages[0]->page_bytes, 1 << 30);
	assert_int_equal(spec->assignments[0]->booked->huge_pages[0]->bytes, 7);
	peer_deinit(&peer);
}

/* proves: GW-25 */
static void test_certificate_is_needed(void **state)
{
	struct world *world = *state;
	struct peer peer;

	peer_init(&peer, world, NULL, clock_wall());
	send_hello(&peer, 0);
	await_end(&peer, RPC_UNAUTHENTICATED, "certificate is needed");
	peer_deinit(&peer);
	/* one of another CA doesn't get through the handshake */
	struct pki_key *ours = world->pki.node_ca_key;
	struct error error;
	expect_ok(pki_key_generate(&world->pki.node_ca_key, &error), &error);
	peer_init(&peer, world, NODE, clock_wall());
	await_end(&peer, RPC_UNAVAILABLE, "");
	peer_deinit(&peer);
	pki_key_destroy(world->pki.node_ca_key);
	world->pki.node_ca_key = ours;
	/* nor does an expired one */
	peer_init(&peer, world, NODE, (struct wall){clock_wall().ms - 31 * INT64_C(86400000)});
	await_end(&peer, RPC_UNAVAILABLE, "");
	peer_deinit(&peer);
	assert_string_equal(fake.last_node, "");
}

static void test_retired_node(void **state)
{
	struct world *world = *state;
	struct peer peer;

	fake.hello_code = ERROR_FORBIDDEN;
	peer_init(&peer, world, NODE, clock_wall());
	send_hello(&peer, 0);
	await_end(&peer, RPC_PERMISSION_DENIED, "retired");
	assert_int_equal(peer.count, 0);
	world_idle(world);
	assert_int_equal(fake.gones, 0); /* it never was here */
	peer_deinit(&peer);
}

static void test_order(void **state)
{
	struct world *world = *state;
	struct peer peer;

	peer_init(&peer, world, NODE, clock_wall());
	send_heartbeat(&peer);
	await_end(&peer, RPC_INVALID_ARGUMENT, "first message must be a Hello");
	peer_deinit(&peer);
	open_stream(&peer, world, NODE);
	send_hello(&peer, 0);
	await_end(&peer, RPC_INVALID_ARGUMENT, "second Hello");
	peer_deinit(&peer);
	open_stream(&peer, world, NODE);
	rpc_send(peer.call, "\xff\xff", 2);
	await_end(&peer, RPC_INVALID_ARGUMENT, "");
	peer_deinit(&peer);
	assert_int_equal(fake.heartbeats, 0);
}

/* proves: GW-25 */
static void test_ack_follows_commit(void **state)
{
	struct world *world = *state;
	struct peer peer;

	open_stream(&peer, world, NODE);
	send_released(&peer, 1);
	send_released(&peer, 2);
	await(&peer, 4);
	assert_int_equal(fake.reports, 2);
	for (size_t i = 2; i < 4; i++) {
		assert_int_equal(peer.seen[i]->body_case, BETTERCOMPUTE__V1__DOWN__BODY_ACK);
		assert_int_equal(peer.seen[i]->ack->sequence, i - 1);
	}
	assert_int_equal(fake.last_kind, CONTROL_REPORT_RELEASED);
	assert_int_equal(world->looks, 0);
	fake.look_again = true;
	send_released(&peer, 3);
	await(&peer, 5);
	assert_int_equal(world->looks, 1);

	fake.report_code = ERROR_UNAVAILABLE; /* the commit failed: no Ack, ever */
	send_released(&peer, 4);
	await_end(&peer, RPC_UNAVAILABLE, "not committed");
	assert_int_equal(peer.count, 5);
	world_idle(world);
	assert_int_equal(fake.gones, 1);
	assert_int_equal(fake.gone_epoch, 1);
	peer_deinit(&peer);
}

/* A report of a kind that only a newer bcd knows must not hold up those behind it. */
static void test_unknown_kinds(void **state)
{
	struct world *world = *state;
	struct peer peer;

	open_stream(&peer, world, NODE);
	rpc_send(peer.call, "\xa2\x06\x00", 3);                 /* Up with field 100 */
	rpc_send(peer.call, "\x12\x05\x08\x01\xa2\x06\x00", 7); /* Report 1 with field 100 */
	await(&peer, 3);
	assert_int_equal(peer.seen[2]->ack->sequence, 1);
	assert_int_equal(fake.last_kind, CONTROL_REPORT_UNKNOWN);
	peer_deinit(&peer);
}

/* proves: GW-27 */
static void test_newest_hello_wins(void **state)
{
	struct world *world = *state;
	struct peer first, second, other;

	open_stream(&other, world, OTHER);
	open_stream(&first, world, NODE);
	open_stream(&second, world, NODE);
	await_end(&first, RPC_ABORTED, "newer stream");
	send_released(&second, 1);
	await(&second, 3);
	assert_int_equal(second.count, 3);
	assert_false(other.done);
	world_idle(world);
	assert_int_equal(fake.gones, 1);
	assert_int_equal(fake.gone_epoch, 2); /* the first's: `other` has 1 */
	/* on another replica: what is said with a void epoch is a CONFLICT */
	fake.heartbeat_code = ERROR_CONFLICT;
	send_heartbeat(&second);
	await_end(&second, RPC_ABORTED, "newer stream");
	peer_deinit(&first);
	peer_deinit(&second);
	peer_deinit(&other);
}

/* The first heartbeat says which generation is stored; those that say the same are noted together.
 * proves: GW-27 */
static void test_heartbeats_are_noted_together(void **state)
{
	struct world *world = *state;
	struct peer first, second;

	open_stream(&first, world, NODE);
	open_stream(&second, world, OTHER);
	for (int i = 0; i < 3; i++) {
		send_heartbeat(&first);
		send_heartbeat(&second);
		world_idle(world);
	}
	for (int i = 0; i < 20 && fake.beats < 2; i++)
		world_idle(world);
	assert_int_equal(fake.heartbeats, 2);
	assert_true(fake.beats >= 2);
	assert_true(fake.rounds < fake.beats);
	assert_false(first.done);
	/* A database that is away ends nobody's stream; a void epoch ends its own. */
	fake.heartbeat_code = ERROR_UNAVAILABLE;
	send_heartbeat(&first);
	for (int i = 0; i < 12; i++)
		world_idle(world);
	assert_false(first.done);
	fake.heartbeat_code = ERROR_CONFLICT;
	await_end(&first, RPC_ABORTED, "newer stream");
	peer_deinit(&first);
	peer_deinit(&second);
}

static void test_push(void **state)
{
	struct world *world = *state;
	struct peer peer;

	fake.generation = 5;
	open_stream(&peer, world, NODE);
	gateway_push(world->gateway, NODE, 5); /* it has that */
	gateway_push(world->gateway, OTHER, 9);
	world_idle(world);
	assert_int_equal(peer.count, 2);
	fake.generation = 6;
	gateway_push(world->gateway, NODE, 6);
	await(&peer, 3);
	assert_int_equal(peer.seen[2]->spec->generation, 6);
	fake.spec_code = ERROR_CONFLICT;
	gateway_push(world->gateway, NODE, 7);
	await_end(&peer, RPC_ABORTED, "newer stream");
	peer_deinit(&peer);
}

/* proves: JOIN-41 */
static void test_renewal(void **state)
{
	struct world *world = *state;
	Bettercompute__V1__Up up = BETTERCOMPUTE__V1__UP__INIT;
	Bettercompute__V1__Renew renew = BETTERCOMPUTE__V1__RENEW__INIT;
	CLEANUP(buf) struct buf der = {0};
	const Bettercompute__V1__Certificate *answer;
	CLEANUP(buf) struct buf pem = {0};
	struct cert_node node;
	struct peer peer;
	struct error error;

	open_stream(&peer, world, NODE);
	pki_key_pin(peer.key, fake.machine_key);
	fake.trust = CONTROL_TRUST_TENANT_CONTROLLED; /* lowered meanwhile */
	expect_ok(cert_request_make(peer.key, NULL, &der, &error), &error);
	renew.certificate_request_der.data = der.data;
	renew.certificate_request_der.len = der.length;
	up.body_case = BETTERCOMPUTE__V1__UP__BODY_RENEW;
	up.renew = &renew;
	peer_send(&peer, &up);
	await(&peer, 3);
	answer = peer.seen[2]->certificate;
	assert_true(answer->ok);
	buf_add(&pem, answer->certificate_pem.data, answer->certificate_pem.len);
	expect_ok(cert_verify(buf_text(&pem), world->pki.node_ca_pem, clock_wall(), &error),
		  &error);
	expect_ok(cert_check_key(buf_text(&pem), peer.key, &error), &error);
	expect_ok(cert_read_node(buf_text(&pem), pem.length, &node, &error), &error);
	assert_string_equal(node.node_id, NODE);
	assert_int_equal(node.role, CERT_ROLE_NODE_TENANT);

	str_copy(fake.machine_key, sizeof fake.machine_key, "sha256/other");
	peer_send(&peer, &up);
	await(&peer, 4);
	assert_false(peer.seen[3]->certificate->ok);
	assert_non_null(strstr(peer.seen[3]->certificate->message, "another key"));
	assert_false(peer.done);
	peer_deinit(&peer);
}

/* proves: JOIN-22 */
static void test_secrets(void **state)
{
	struct world *world = *state;
	Bettercompute__V1__Up up = BETTERCOMPUTE__V1__UP__INIT;
	Bettercompute__V1__SecretRequest request = BETTERCOMPUTE__V1__SECRET_REQUEST__INIT;
	struct peer peer;

	open_stream(&peer, world, NODE);
	request.reference = (char[]){"secret://ten_1/sec_1"};
	up.body_case = BETTERCOMPUTE__V1__UP__BODY_SECRET_REQUEST;
	up.secret_request = &request;
	peer_send(&peer, &up);
	await(&peer, 3);
	assert_string_equal(peer.seen[2]->secret->reference, "secret://ten_1/sec_1");
	assert_false(peer.seen[2]->secret->ok);
	assert_int_equal(peer.seen[2]->secret->value.len, 0);
	assert_non_null(strstr(peer.seen[2]->secret->message, "names no such secret"));
	assert_false(fake.tenants_certificate);
	assert_string_equal(fake.last_allocation, "");

	fake.secret = "hunter2";
	request.allocation = (char[]){"alc_1"};
	peer_send(&peer, &up);
	await(&peer, 4);
	assert_true(peer.seen[3]->secret->ok);
	assert_int_equal(peer.seen[3]->secret->value.len, 7);
	assert_memory_equal(peer.seen[3]->secret->value.data, "hunter2", 7);
	assert_string_equal(fake.last_allocation, "alc_1");
	peer_deinit(&peer);
}

static void on_drained(void *arg)
{
	struct world *world = arg;

	world->drained = true;
	loop_stop(world->loop);
}

static void test_drain(void **state)
{
	struct world *world = *state;
	struct peer peer;

	open_stream(&peer, world, NODE);
	gateway_drain(world->gateway, on_drained, world);
	await_end(&peer, RPC_UNAVAILABLE, "restarting");
	while (!world->drained)
		world_wait(world);
	assert_int_equal(fake.gones, 1); /* told before the end */
	peer_deinit(&peer);
}

static void test_peer_vanishes(void **state)
{
	struct world *world = *state;
	struct peer peer;

	open_stream(&peer, world, NODE);
	send_released(&peer, 1);
	peer_deinit(&peer); /* the connection goes at once */
	world_idle(world);
	assert_int_equal(fake.gones, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_opening, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_certificate_is_needed, world_set_up,
						world_tear_down),
		cmocka_unit_test_setup_teardown(test_retired_node, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_order, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_ack_follows_commit, world_set_up,
						world_tear_down),
		cmocka_unit_test_setup_teardown(test_unknown_kinds, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_newest_hello_wins, world_set_up,
						world_tear_down),
		cmocka_unit_test_setup_teardown(test_heartbeats_are_noted_together, world_set_up,
						world_tear_down),
		cmocka_unit_test_setup_teardown(test_push, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_renewal, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_secrets, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_drain, world_set_up, world_tear_down),
		cmocka_unit_test_setup_teardown(test_peer_vanishes, world_set_up, world_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
