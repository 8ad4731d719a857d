/* `bcd join` against a join service in a child process, over TLS on loopback. */
#include "node/join.h"

#include "lib/folder.h"
#include "lib/test.h"
#include "pki/cert.h"
#include "pki/envelope.h"
#include "pki/folder.h"
#include "proto/join.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "rpc/tls.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/random.h"
#include "text/toml.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME  "gateway.test"
#define TOKEN "bcj1_jt_01kb00000000000000000000aa_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA"

MESSAGE_TYPE(join_request, Bettercompute__V1__JoinRequest, bettercompute__v1__join_request)
MESSAGE_TYPE(join_answer, Bettercompute__V1__JoinAnswer, bettercompute__v1__join_answer)

enum mode {
	MODE_HONEST,
	MODE_REFUSES,      /* the token is expired */
	MODE_OTHER_SIGNER, /* a key that nobody pinned */
	MODE_OTHER_NONCE,
	MODE_BUSY,
};

struct world {
	void *folder;
	struct pki_folder pki;
	struct pki_pins pins;
	struct config config;
	char token[512];
	char address[64];
	pid_t server;
};

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
	must(cert_issue_node(&issuer, asker, answer.node_id, CERT_ROLE_NODE, clock_wall(),
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

	if (service->mode == MODE_REFUSES) {
		rpc_finish(call, RPC_UNAUTHENTICATED, "the join token has expired");
		return;
	}
	if (service->mode == MODE_BUSY) {
		rpc_finish(call, RPC_UNAVAILABLE, "later");
		return;
	}
	must(join_request_unpack(data, length, &message, &error), &error);
	must(join_request_open(message->envelope, service->pki->join_encryption_key, &request,
			       &error),
	     &error);
	if (!str_equal(request.token, TOKEN))
		_exit(1);
	make_answer(service, &request, &certificate, &answer.envelope);
	must(join_answer_pack(&answer, &out, &error), &error);
	rpc_send(call, out.data, out.length);
	rpc_finish(call, RPC_OK, "");
	free(answer.envelope);
	join_request_deinit(&request);
}

static void serve(struct world *world, enum mode mode, int out)
{
	static const struct rpc_method methods[] = {
		{.path = METHOD_JOIN_JOIN, .unary = true, .on_message = on_join}};
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
	server = rpc_server_create(service.loop, methods, 1, &service);
	must(rpc_server_listen_tcp(server, "127.0.0.1:0", tls, &error), &error);
	address = rpc_server_address(server);
	if (write(out, address, strlen(address) + 1) < 0)
		_exit(1);
	loop_run(service.loop);
	_exit(0);
}

static void start_service(struct world *world, enum mode mode)
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

static void stop_service(struct world *world)
{
	if (world->server <= 0)
		return;
	kill(world->server, SIGKILL);
	waitpid(world->server, NULL, 0);
	world->server = 0;
}

/* --- the machine --- */

static int setup(void **state)
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

static int teardown(void **state)
{
	struct world *world = *state;

	stop_service(world);
	pki_folder_deinit(&world->pki);
	config_deinit(&world->config);
	assert_int_equal(folder_remove(&world->folder), 0);
	free(world);
	return 0;
}

static void expect_join(struct world *world, enum join_exit wanted, const char *message)
{
	CLEANUP(identity) struct identity identity = {0};
	struct error error = {0};
	bool already;
	enum join_exit exit = join_run(&world->config, world->token, &identity, &already, &error);

	if (exit != wanted)
		fail_msg("exit %d: %s", exit, error.what);
	if (message && !strstr(error.what, message))
		fail_msg("'%s' lacks '%s'", error.what, message);
	/* proves: JOIN-13: the secret is in no message */
	assert_null(strstr(error.what, "BBBBBBBBBB"));
	assert_null(strstr(error.hint, "BBBBBBBBBB"));
}

/* proves: JOIN-6 JOIN-7 JOIN-12 JOIN-14 JOIN-38 JOIN-42 */
static void test_joins_once(void **state)
{
	static const char *const files[] = {"identity.json", "node.key", "node.pem"};
	CLEANUP(identity) struct identity first = {0}, second = {0};
	struct world *world = *state;
	struct error error = {0};
	bool already;

	start_service(world, MODE_HONEST);
	assert_int_equal(join_run(&world->config, world->token, &first, &already, &error),
			 JOIN_DONE);
	assert_false(already);
	assert_string_equal(first.trust, "platform");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		CLEANUP(free) char *path = identity_path(world->config.data, files[i]);
		struct stat info;

		assert_int_equal(stat(path, &info), 0);
		assert_int_equal(info.st_mode & 0777, 0600);
	}
	/* again: nobody to ask, no token, and it is fine */
	stop_service(world);
	assert_int_equal(unlink(world->token), 0);
	assert_int_equal(join_run(&world->config, NULL, &second, &already, &error), JOIN_DONE);
	assert_true(already);
	assert_string_equal(first.node_id, second.node_id);
}

/* proves: JOIN-8 JOIN-9 JOIN-10 JOIN-42 */
static void test_token_files_that_are_refused(void **state)
{
	struct world *world = *state;
	char link[600], large[5000];
	struct error error;

	for (mode_t mode = 1; mode < 0100; mode <<= 1) {
		assert_int_equal(chmod(world->token, 0600 | mode), 0);
		if (mode & 077)
			expect_join(world, JOIN_TOKEN_FILE, "others may read");
	}
	assert_int_equal(chmod(world->token, 0600), 0);
	/* a link, as in a Secret volume, is followed */
	snprintf(link, sizeof link, "%s.link", world->token);
	assert_int_equal(symlink(world->token, link), 0);
	str_copy(world->token, sizeof world->token, link);
	expect_join(world, JOIN_NETWORK, NULL);
	memset(large, 'x', sizeof large);
	expect_ok(durable_replace(world->token, large, sizeof large, 0600, &error), &error);
	expect_join(world, JOIN_TOKEN_FILE, "larger than");
	expect_ok(durable_replace(world->token, "\n", 1, 0600, &error), &error);
	expect_join(world, JOIN_TOKEN_FILE, "holds none");
	str_copy(world->token, sizeof world->token, "/dev/null");
	expect_join(world, JOIN_TOKEN_FILE, "not a file but");
	str_copy(world->token, sizeof world->token, "/nonexistent/token");
	expect_join(world, JOIN_TOKEN_FILE, "/nonexistent/token");
}

/* proves: JOIN-19 JOIN-20 JOIN-37 JOIN-42 */
static void test_wrong_pins(void **state)
{
	static const char other[] = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
	struct world *world = *state;
	const char *right;

	start_service(world, MODE_HONEST);
	right = world->config.encryption_pins;
	world->config.encryption_pins = other;
	expect_join(world, JOIN_PINS, "encryption key");
	world->config.encryption_pins = right;
	right = world->config.ca_pins;
	world->config.ca_pins = other;
	expect_join(world, JOIN_PINS, "pin");
	world->config.ca_pins = right;
	right = world->config.signing_pins;
	world->config.signing_pins = other;
	expect_join(world, JOIN_PINS, "join answer");
	world->config.signing_pins = right;
	right = world->config.server_name;
	world->config.server_name = "other.test";
	expect_join(world, JOIN_PINS, NULL);
	world->config.server_name = right;
	expect_join(world, JOIN_DONE, NULL);
}

static void test_answers_that_are_refused(void **state)
{
	struct world *world = *state;

	start_service(world, MODE_REFUSES);
	expect_join(world, JOIN_TOKEN, "has expired");
	stop_service(world);
	start_service(world, MODE_OTHER_SIGNER);
	expect_join(world, JOIN_PINS, "join answer");
	stop_service(world);
	start_service(world, MODE_OTHER_NONCE);
	expect_join(world, JOIN_PINS, "join answer");
	stop_service(world);
	start_service(world, MODE_BUSY);
	expect_join(world, JOIN_NETWORK, NULL);
	/* the second address answers */
	world->config.addresses[1] = world->address;
	world->config.addresses[0] = "127.0.0.1:1";
	world->config.address_count = 2;
	stop_service(world);
	expect_join(world, JOIN_NETWORK, NULL);
	/* An address that can't be right isn't one to try again. */
	world->config.encryption_jwk = "";
	world->config.join_server = "http://127.0.0.1:1";
	expect_join(world, JOIN_FAILED, "not https");
	world->config.join_server = "https://127.0.0.1:1";
	expect_join(world, JOIN_NETWORK, NULL);
}

int main(void)
{
#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_WORLD(test_joins_once),
		WITH_WORLD(test_token_files_that_are_refused),
		WITH_WORLD(test_wrong_pins),
		WITH_WORLD(test_answers_that_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
