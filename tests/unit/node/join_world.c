#include "join_world.h"

#include "lib/folder.h"
#include "lib/nodecert.h"
#include "pki/cert.h"
#include "pki/envelope.h"
#include "pki/folder.h"
#include "proto/gateway.pb-c.h"
#include "proto/join.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "rpc/tls.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/random.h"
#include "text/toml.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

MESSAGE_TYPE(join_request, Bettercompute__V1__JoinRequest, bettercompute__v1__join_request)
MESSAGE_TYPE(down, Bettercompute__V1__Down, bettercompute__v1__down)
MESSAGE_TYPE(join_answer, Bettercompute__V1__JoinAnswer, bettercompute__v1__join_answer)

/* --- the service, in its own process --- */

struct service {
	struct loop *loop;
	struct pki_folder *pki;
	enum mode mode;
};

static void must(bool ok, const struct error *error)
{
	if (ok)
		return;
	fprintf(stderr, "join service: %s\n", error->what);
	_exit(1);
}

static bool read_node_id(const char *pem, char out[ID_SIZE], struct error *error)
{
	struct cert_node node;

	if (!cert_read_node(pem, strlen(pem), &node, error))
		return false;
	str_copy(out, ID_SIZE, node.node_id);
	return true;
}

static struct wall clock_of(const struct service *service)
{
	const int days = service->mode == MODE_BEHIND ? -40 : service->mode == MODE_AHEAD ? 3 : 0;

	return (struct wall){clock_wall().ms + days * NODECERT_DAY_MS};
}

static void make_answer(struct service *service, const struct join_request *request,
			struct buf *certificate, char **ret_envelope)
{
	const struct cert_issuer issuer = {service->pki->node_ca_pem, service->pki->node_ca_key};
	CLEANUP(pki_key) struct pki_key *asker = NULL, *stranger = NULL;
	struct join_answer answer = {.trust = message_text("platform"),
				     .gateway_address = message_text("gw:7443"),
				     .gateway_server_name = message_text(NAME)};
	struct error error;

	must(cert_request_check(request->csr_pem, strlen(request->csr_pem), &asker, &error),
	     &error);
	must(pki_key_generate(&stranger, &error), &error);
	random_id(answer.node_id, "node", clock_wall());
	if (request->certificate_pem)
		must(cert_check_key(request->certificate_pem, asker, &error) &&
			     read_node_id(request->certificate_pem, answer.node_id, &error),
		     &error);
	must(cert_issue_node(&issuer, asker, answer.node_id, CERT_ROLE_NODE, clock_of(service),
			     certificate, &error),
	     &error);
	answer.certificate_pem = message_text(buf_text(certificate));
	str_copy(answer.nonce, sizeof answer.nonce, request->nonce);
	if (service->mode == MODE_OTHER_NONCE)
		join_nonce(answer.nonce);
	must(join_answer_sign(&answer,
			      service->mode == MODE_OTHER_SIGNER ? stranger
								 : service->pki->join_signing_key,
			      ret_envelope, &error),
	     &error);
}

static void on_join(struct rpc_call *call, void *arg, const uint8_t *data, size_t length)
{
	CLEANUP(message) Bettercompute__V1__JoinRequest *message = NULL;
	Bettercompute__V1__JoinAnswer answer = BETTERCOMPUTE__V1__JOIN_ANSWER__INIT;
	CLEANUP(buf) struct buf certificate = {0}, out = {0};
	struct service *service = arg;
	struct join_request request = {0};
	struct error error;

	if (service->mode == MODE_BUSY) {
		rpc_finish(call, RPC_UNAVAILABLE, "later");
		return;
	}
	must(join_request_unpack(data, length, &message, &error), &error);
	must(join_request_open(message->envelope, service->pki->join_encryption_key, &request,
			       &error),
	     &error);
	if (!str_equal(request.token, request.certificate_pem ? "" : TOKEN))
		_exit(1);
	if (service->mode == MODE_REFUSES ||
	    service->mode == (request.certificate_pem ? MODE_BY_TOKEN : MODE_BY_KEY)) {
		rpc_finish(call, RPC_UNAUTHENTICATED,
			   request.certificate_pem ? "the certificate expired too long ago"
						   : "the join token has expired");
		join_request_deinit(&request);
		return;
	}
	make_answer(service, &request, &certificate, &answer.envelope);
	must(join_answer_pack(&answer, &out, &error), &error);
	rpc_send(call, out.data, out.length);
	rpc_finish(call, RPC_OK, "");
	free(answer.envelope);
	join_request_deinit(&request);
}

/* A gateway that greets each stream and ends it. */
static void on_connect(struct rpc_call *call, void *arg UNUSED, const uint8_t *data UNUSED,
		       size_t length UNUSED)
{
	Bettercompute__V1__Welcome welcome = BETTERCOMPUTE__V1__WELCOME__INIT;
	Bettercompute__V1__Down down = BETTERCOMPUTE__V1__DOWN__INIT;
	CLEANUP(buf) struct buf out = {0};
	struct error error;

	down.body_case = BETTERCOMPUTE__V1__DOWN__BODY_WELCOME;
	down.welcome = &welcome;
	must(down_pack(&down, &out, &error), &error);
	rpc_send(call, out.data, out.length);
	rpc_finish(call, RPC_ABORTED, "a newer stream of this node took over");
}

static void serve(struct world *world, enum mode mode, int out)
{
	static const struct rpc_method methods[] = {
		{.path = METHOD_JOIN_JOIN, .unary = true, .on_message = on_join},
		{.path = METHOD_GATEWAY_CONNECT, .on_message = on_connect}};
	struct service service = {.pki = &world->pki, .mode = mode};
	struct rpc_tls_server_options options = {0};
	struct buf certificate = {0}, key = {0};
	struct rpc_server *server;
	struct rpc_tls *tls;
	struct error error;
	const char *address;

	service.loop = loop_create();
	must(pki_folder_gateway(&world->pki, NAME, clock_wall(), &certificate, &key, &error),
	     &error);
	options.certificate_pem = buf_text(&certificate);
	options.key_pem = buf_text(&key);
	must(rpc_tls_server_create(&options, &tls, &error), &error);
	server = rpc_server_create(service.loop, methods, ARRAY_SIZE(methods), &service);
	must(rpc_server_listen_tcp(server, "127.0.0.1:0", tls, &error), &error);
	address = rpc_server_address(server);
	if (write(out, address, strlen(address) + 1) < 0)
		_exit(1);
	loop_run(service.loop);
	_exit(0);
}

void start_service(struct world *world, enum mode mode)
{
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	world->server = fork();
	if (world->server == 0)
		serve(world, mode, pipes[1]);
	assert_true(read(pipes[0], world->address, sizeof world->address) > 0);
	close(pipes[0]);
	close(pipes[1]);
	world->config.addresses[0] = world->address;
	world->config.address_count = 1;
}

void stop_service(struct world *world)
{
	if (world->server <= 0)
		return;
	kill(world->server, SIGKILL);
	waitpid(world->server, NULL, 0);
	world->server = 0;
}

/* --- the machine --- */

int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	CLEANUP(buf) struct buf text = {0}, jwk = {0};
	CLEANUP(tree) json_t *tree = NULL;
	char path[512];
	struct error error;

	assert_int_equal(folder_make(&world->folder), 0);
	snprintf(path, sizeof path, "%s/pki", (char *)world->folder);
	expect_ok(pki_folder_init(path, clock_wall(), &error), &error);
	expect_ok(pki_folder_load(path, &world->pki, &error), &error);
	pki_folder_pins(&world->pki, &world->pins);
	expect_ok(pki_key_to_jwk(world->pki.join_encryption_key, PKI_USE_ENCRYPTION, false, &jwk,
				 &error),
		  &error);
	buf_printf(&text,
		   "[paths]\nroot = '%s'\n[gateway]\naddresses = ['127.0.0.1:1']\n"
		   "server_name = '%s'\nca_pins = '%s'\n[join]\nencryption_jwk = '''%s'''\n"
		   "encryption_pins = '%s'\nsigning_pins = '%s'\n",
		   (char *)world->folder, NAME, world->pins.gateway_ca, buf_text(&jwk),
		   world->pins.join_encryption, world->pins.join_signing);
	expect_ok(toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, "config.toml", &tree,
			     &error),
		  &error);
	expect_ok(config_read(tree, NULL, &world->config, &error), &error);
	snprintf(world->token, sizeof world->token, "%s/token", (char *)world->folder);
	expect_ok(durable_replace(world->token, TOKEN "\n", sizeof TOKEN, 0600, &error), &error);
	*state = world;
	return 0;
}

int teardown(void **state)
{
	struct world *world = *state;

	stop_service(world);
	pki_folder_deinit(&world->pki);
	config_deinit(&world->config);
	assert_int_equal(folder_remove(&world->folder), 0);
	free(world);
	return 0;
}

void expect_next(struct world *world, enum join_exit wanted, const char *message, const char *next)
{
	CLEANUP(identity) struct identity identity = {0};
	struct error error = {0};
	bool already;
	enum join_exit exit = join_run(&world->config, world->token, &identity, &already, &error);

	if (exit != wanted)
		fail_msg("exit %d: %s", exit, error.what);
	if (message && !strstr(error.what, message))
		fail_msg("'%s' lacks '%s'", error.what, message);
	if (wanted != JOIN_DONE && !*error.hint)
		fail_msg("'%s' doesn't say what to do", error.what);
	if (next && !strstr(error.hint, next))
		fail_msg("'%s' says to do '%s', nothing of '%s'", error.what, error.hint, next);
	/* proves: JOIN-13: the secret is in no message */
	assert_null(strstr(error.what, "BBBBBBBBBB"));
	assert_null(strstr(error.hint, "BBBBBBBBBB"));
}

void expect_join(struct world *world, enum join_exit wanted, const char *message)
{
	expect_next(world, wanted, message, NULL);
}

void have_joined(struct world *world, int days_ago)
{
	CLEANUP(identity) struct identity identity = {0};
	struct error error;

	nodecert_identity(&identity, NODE, days_ago);
	str_copy(identity.pool, sizeof identity.pool, "h100");
	expect_ok(durable_make_folder(world->config.data, 0700, &error), &error);
	expect_ok(identity_store(world->config.data, &identity, &error), &error);
}

void lose(struct world *world, const char *name)
{
	CLEANUP(free) char *path = identity_path(world->config.data, name);

	assert_int_equal(unlink(path), 0);
}

void expect_node(struct world *world, bool same, bool fresh)
{
	CLEANUP(identity) struct identity found = {0};
	struct error error;

	expect_ok(identity_load(world->config.data, &found, &error), &error);
	assert_false(identity_expired(&found, clock_wall()));
	assert_int_equal(str_equal(found.node_id, NODE), same);
	assert_int_equal(found.fresh, fresh);
	assert_string_equal(found.pool, same && *found.pool ? "h100" : "");
}

const char *say(struct world *world, const char *token_file, enum join_exit wanted)
{
	static char text[ERROR_WHAT_SIZE + ERROR_HINT_SIZE];
	CLEANUP(identity) struct identity identity = {0};
	struct error error = {0};
	bool already;
	enum join_exit exit = join_run(&world->config, token_file, &identity, &already, &error);

	snprintf(text, sizeof text, "%s | %s", error.what, error.hint);
	if (exit != wanted)
		fail_msg("exit %d, not %d: %s", exit, wanted, text);
	if (exit == JOIN_DONE)
		assert_false(already);
	return text;
}
