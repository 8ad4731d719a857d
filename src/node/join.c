#include "node/join.h"

#include "http/client.h"
#include "pki/cert.h"
#include "pki/envelope.h"
#include "proto/join.pb-c.h"
#include "proto/message.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "rpc/tls.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/machine.h"
#include "text/tree.h"

#define MAX_WELL_KNOWN  ((size_t)16 << 10)
#define MAX_UUID        64
#define CALL_TIMEOUT_MS 20000

MESSAGE_TYPE(join_request, Bettercompute__V1__JoinRequest, bettercompute__v1__join_request)
MESSAGE_TYPE(join_answer, Bettercompute__V1__JoinAnswer, bettercompute__v1__join_answer)

/* Everything of one try. */
struct join {
	const struct config *config;
	struct error *error;
	struct arena arena;
	struct buf token;    /* secret */
	const char *expired; /* the certificate that is renewed by its key; NULL: joins by token */
	struct pki_key *key, *encryption_key;
	struct pin_list encryption_pins, signing_pins;
	const char *addresses[CONFIG_MAX_ADDRESSES];
	size_t address_count;
	const char *server_name;
	char nonce[JOIN_NONCE_SIZE];
	char *envelope;
	/* one call */
	struct loop *loop;
	struct loop_timer *timer;
	struct rpc_client *client;
	bool over;
	enum join_exit exit;
	struct error trust; /* of a handshake that failed on trust */
	struct buf answer;
};

static void join_deinit(struct join *join)
{
	pki_wipe(&join->token);
	pki_key_destroy(join->key);
	pki_key_destroy(join->encryption_key);
	free(join->envelope);
	buf_deinit(&join->answer);
	arena_deinit(&join->arena);
}

/* --- the token's file (JOIN-8, 9, 10) --- */

/* A link into a Secret volume is followed. */
static bool read_token(struct join *join, const char *path)
{
	struct buf *token = &join->token;

	if (!durable_read_private(path, JOIN_MAX_TOKEN, token, join->error))
		return error_wrap(join->error, "the join token");
	while (token->length > 0 &&
	       (token->data[token->length - 1] == '\n' || token->data[token->length - 1] == '\r' ||
		token->data[token->length - 1] == ' '))
		token->data[--token->length] = '\0';
	if (token->length == 0 || memchr(token->data, '\0', token->length))
		return error_set(join->error, ERROR_INVALID_INPUT,
				 "the join token: '%s' holds none", path);
	return true;
}

/* --- this machine's key: made once, so that a second try is the same machine --- */

static bool load_key(struct join *join)
{
	CLEANUP(free) char *path = identity_path(join->config->data, IDENTITY_KEY);
	struct buf pem = {0};
	bool ok;

	if (durable_read(path, PKI_PEM_MAX, &pem, join->error)) {
		ok = pki_key_from_pem(buf_text(&pem), pem.length, &join->key, join->error);
		pki_wipe(&pem);
		return ok || error_wrap(join->error, "'%s'", path);
	}
	if (join->error->code != ERROR_NOT_FOUND)
		return false;
	ok = pki_key_generate(&join->key, join->error) &&
	     pki_key_to_pem(join->key, &pem, join->error) &&
	     durable_create(path, pem.data, pem.length, 0600, join->error);
	pki_wipe(&pem);
	return ok;
}

/* --- whom to ask, and under which key --- */

static bool take_encryption_key(struct join *join, const char *text, const char *from)
{
	char pin[PIN_SIZE];

	if (!pki_key_from_jwk(text, strlen(text), PKI_USE_ENCRYPTION, &join->encryption_key,
			      join->error))
		return error_wrap(join->error, "the join encryption key %s", from);
	pki_key_pin(join->encryption_key, pin);
	if (pin_check(&join->encryption_pins, pin, "the join encryption key", join->error))
		return true;
	join->exit = JOIN_PINS;
	return false;
}

static bool configured_key(struct join *join)
{
	const char *text = join->config->encryption_jwk;
	CLEANUP(buf) struct buf file = {0};

	if (text[0] == '{')
		return take_encryption_key(join, text, "in join.encryption_jwk");
	return durable_read(text, PKI_JWK_MAX, &file, join->error) &&
	       take_encryption_key(join, buf_text(&file), "in join.encryption_jwk");
}

/* "https://host:port" without a path, as "host:port". */
static bool take_gateway_url(struct join *join, const char *url)
{
	size_t length = str_starts(url, "https://") ? strcspn(url + 8, "/?#") : 0;

	if (length == 0)
		return error_set(join->error, ERROR_INVALID_INPUT,
				 "the well-known document: gateway.url '%.200s' is not https://",
				 url);
	join->addresses[join->address_count++] = arena_strndup(&join->arena, url + 8, length);
	return true;
}

/* What it says carries no trust: the key is checked by its pin, the gateway by its certificate. */
static bool read_well_known(struct join *join, const struct buf *body)
{
	CLEANUP(tree) json_t *tree = NULL, *jwk = NULL;
	CLEANUP(buf) struct buf text = {0};
	json_t *gateway, *section, *next;
	const char *url, *name;
	int64_t version;

	if (!tree_parse(body->data, body->length, MAX_WELL_KNOWN, "the well-known document", &tree,
			join->error) ||
	    !tree_get_int(tree, "version", "", 1, 1, &version, join->error) ||
	    !tree_get_object(tree, "gateway", "", &gateway, join->error) ||
	    !tree_get_string(gateway, "url", "gateway", 512, &url, join->error) ||
	    !tree_get_string(gateway, "serverName", "gateway", 255, &name, join->error) ||
	    !tree_get_object(tree, "join", "", &section, join->error) ||
	    !tree_get_object(section, "encryptionJwk", "join", &jwk, join->error))
		return false;
	json_incref(jwk);
	if (join->address_count == 0) {
		if (!take_gateway_url(join, url))
			return false;
		join->server_name = arena_strdup(&join->arena, name);
	}
	tree_dump_canonical(&text, jwk);
	if (take_encryption_key(join, buf_text(&text), "of the control plane"))
		return true;
	/* While the control plane's keys change, its next one may be the one that is pinned. */
	next = json_object_get(section, "nextEncryptionJwk");
	if (!next || join->error->code != ERROR_FORBIDDEN)
		return false;
	pki_key_destroy(join->encryption_key);
	join->encryption_key = NULL;
	join->exit = JOIN_FAILED;
	buf_clear(&text);
	tree_dump_canonical(&text, next);
	return take_encryption_key(join, buf_text(&text), "of the control plane");
}

static bool fetch_key(struct join *join)
{
	const struct http_options options = {
		.ca_file = *join->config->ca_file ? join->config->ca_file : NULL,
		.https_only = true,
	};
	CLEANUP(http_answer) struct http_answer answer = {0};
	CLEANUP(buf) struct buf url = {0};

	if (!*join->config->join_server)
		return error_set(join->error, ERROR_INVALID_CONFIG,
				 "neither join.server nor join.encryption_jwk is configured");
	buf_printf(&url, "%s/.well-known/better-compute", join->config->join_server);
	join->exit = JOIN_NETWORK;
	if (!http_get(&options, buf_text(&url), MAX_WELL_KNOWN, CALL_TIMEOUT_MS, &answer,
		      join->error)) {
		if (join->error->code != ERROR_INVALID_INPUT)
			return false;
		join->exit = JOIN_FAILED; /* a wrong address stays wrong */
		return error_hint(join->error, "join.server is an https:// address; where there is "
					       "none, configure join.encryption_jwk.");
	}
	if (answer.status != 200)
		return error_set(join->error, ERROR_UNAVAILABLE, "'%s' answers %d", buf_text(&url),
				 answer.status);
	join->exit = JOIN_FAILED;
	return read_well_known(join, &answer.body);
}

static bool find_control_plane(struct join *join)
{
	const struct config *config = join->config;

	if (!pin_list_parse(config->encryption_pins, "join.encryption_pins", &join->encryption_pins,
			    join->error) ||
	    !pin_list_parse(config->signing_pins, "join.signing_pins", &join->signing_pins,
			    join->error))
		return false;
	join->server_name = config->server_name;
	for (size_t i = 0; i < config->address_count; i++)
		join->addresses[join->address_count++] = config->addresses[i];
	if (*config->encryption_jwk) {
		if (!configured_key(join))
			return false;
	} else if (!fetch_key(join)) {
		return false;
	}
	if (join->address_count > 0)
		return true;
	return error_set(join->error, ERROR_INVALID_CONFIG, "gateway.addresses is not configured");
}

/* --- the request --- */

static void read_smbios(struct join *join, const char **ret_uuid)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	struct error ignored; /* a machine without one has none */

	buf_printf(&path, "%s/class/dmi/id/product_uuid", join->config->sys);
	*ret_uuid = NULL;
	if (!durable_read(buf_text(&path), MAX_UUID, &text, &ignored))
		return;
	*ret_uuid = arena_strndup(&join->arena, buf_text(&text), strcspn(buf_text(&text), "\n"));
}

static bool seal(struct join *join)
{
	CLEANUP(buf) struct buf csr = {0};
	char boot_id[CLOCK_BOOT_ID_SIZE];
	struct join_request request = {0};
	struct machine machine;
	const char *uuid;

	if (!cert_request_make(join->key, &csr, NULL, join->error))
		return false;
	clock_boot_id(boot_id);
	machine_read(&machine);
	read_smbios(join, &uuid);
	join_nonce(join->nonce);
	str_copy(request.nonce, sizeof request.nonce, join->nonce);
	request.token = (char *)(uintptr_t)buf_text(&join->token); /* borrowed, never freed here */
	request.csr_pem = (char *)(uintptr_t)buf_text(&csr);
	request.certificate_pem = (char *)(uintptr_t)join->expired;
	request.smbios_uuid = (char *)(uintptr_t)uuid;
	request.hostname = machine.hostname;
	request.boot_id = boot_id;
	return join_request_seal(&request, join->encryption_key, &join->envelope, join->error);
}

/* --- the call --- */

static void end(struct join *join, enum join_exit exit)
{
	join->exit = exit;
	join->over = true;
	loop_stop(join->loop);
}

static void on_down(void *arg, const struct error *error)
{
	struct join *join = arg;

	if (error && error->code == ERROR_FORBIDDEN)
		join->trust = *error;
}

static void on_answer(void *arg, const struct rpc_status *status, const uint8_t *data,
		      size_t length)
{
	struct join *join = arg;

	if (status->code == RPC_OK) {
		buf_add(&join->answer, data, length);
		end(join, JOIN_DONE);
		return;
	}
	rpc_status_to_error(status, join->error);
	if (status->code == RPC_UNAUTHENTICATED || status->code == RPC_PERMISSION_DENIED)
		end(join, JOIN_TOKEN);
	else if (status->code == RPC_UNAVAILABLE || status->code == RPC_DEADLINE_EXCEEDED)
		end(join, JOIN_NETWORK);
	else
		end(join, JOIN_FAILED);
}

static bool make_tls(struct join *join, struct rpc_tls **ret_tls)
{
	const struct rpc_tls_client_options options = {.server_name = join->server_name,
						       .pins = join->config->ca_pins};

	return rpc_tls_client_create(&options, ret_tls, join->error);
}

/* One address. The reason of a refused handshake comes with the end of the connection. */
static void call(struct join *join, const char *address)
{
	static const struct rpc_client_handlers handlers = {.on_down = on_down};
	Bettercompute__V1__JoinRequest message = BETTERCOMPUTE__V1__JOIN_REQUEST__INIT;
	CLEANUP(buf) struct buf request = {0};
	struct rpc_tls *tls = NULL;

	join->over = false;
	join->trust = (struct error){0};
	join->exit = JOIN_FAILED;
	message.envelope = join->envelope;
	if (!make_tls(join, &tls) || !join_request_pack(&message, &request, join->error)) {
		rpc_tls_destroy(tls);
		return;
	}
	join->loop = loop_create();
	join->client = rpc_client_create(join->loop, address, tls, 0, &handlers, join);
	rpc_unary(join->client, METHOD_JOIN_JOIN, CALL_TIMEOUT_MS, 0, request.data, request.length,
		  on_answer, join);
	while (!join->over)
		loop_run(join->loop);
	rpc_client_destroy(join->client);
	loop_run(join->loop); /* what closing left behind */
	loop_destroy(join->loop);
	rpc_tls_destroy(tls);
	if (join->exit != JOIN_DONE && join->trust.code != ERROR_NONE) {
		*join->error = join->trust;
		join->exit = JOIN_PINS;
	}
	if (join->exit != JOIN_DONE)
		error_wrap(join->error, "join at '%s'", address);
}

static void call_any(struct join *join)
{
	for (size_t i = 0; i < join->address_count; i++) {
		call(join, join->addresses[i]);
		if (join->exit != JOIN_NETWORK)
			return;
	}
}

/* --- the answer --- */

static bool take_answer(struct join *join, struct identity *identity)
{
	CLEANUP(message) Bettercompute__V1__JoinAnswer *message = NULL;
	struct join_answer answer = {0};
	bool ok;

	join->exit = JOIN_FAILED;
	if (!join_answer_unpack(join->answer.data, join->answer.length, &message, join->error))
		return false;
	if (!join_answer_verify(message->envelope, &join->signing_pins, join->nonce, &answer,
				join->error)) {
		if (join->error->code == ERROR_FORBIDDEN)
			join->exit = JOIN_PINS;
		return error_wrap(join->error, "the join answer");
	}
	ok = cert_check_key(answer.certificate_pem, join->key, join->error) &&
	     pki_key_to_pem(join->key, &identity->key_pem, join->error);
	if (ok) {
		str_copy(identity->node_id, sizeof identity->node_id, answer.node_id);
		str_copy(identity->trust, sizeof identity->trust, answer.trust);
		str_copy(identity->gateway_address, sizeof identity->gateway_address,
			 answer.gateway_address);
		str_copy(identity->gateway_server_name, sizeof identity->gateway_server_name,
			 answer.gateway_server_name);
		buf_add_text(&identity->certificate_pem, answer.certificate_pem);
	}
	join_answer_deinit(&answer);
	return ok && identity_store(join->config->data, identity, join->error);
}

/* --- all of it --- */

static bool is_expired(const struct identity *identity)
{
	struct cert_info info;
	struct error ignored; /* an unreadable one is no good either */

	return !cert_read(buf_text(&identity->certificate_pem), identity->certificate_pem.length,
			  &info, &ignored) ||
	       info.not_after.ms <= clock_wall().ms;
}

static enum join_exit run(struct join *join, const char *token_file, bool renews,
			  struct identity *identity)
{
	join->exit = JOIN_FAILED;
	if (token_file && !read_token(join, token_file))
		return JOIN_TOKEN_FILE;
	if (!token_file && !renews) {
		error_set(join->error, ERROR_INVALID_INPUT, "this machine has not joined");
		error_hint(join->error, "Give the join token with --token-file FILE.");
		return JOIN_USAGE;
	}
	if (!find_control_plane(join) || !load_key(join) || !seal(join))
		return join->exit;
	call_any(join);
	if (join->exit != JOIN_DONE)
		return join->exit;
	return take_answer(join, identity) ? JOIN_DONE : join->exit;
}

enum join_exit join_run(const struct config *config, const char *token_file,
			struct identity *ret_identity, bool *ret_already, struct error *error)
{
	struct join join = {.config = config, .error = error};
	CLEANUP(identity) struct identity identity = {0};
	CLEANUP(identity) struct identity before = {0};
	struct durable_lock *lock = NULL;
	CLEANUP(free) char *lock_path = identity_path(config->data, "join.lock");
	enum join_exit exit = JOIN_FAILED;
	bool joined;

	if (!durable_make_folder(config->data, 0700, error) ||
	    !durable_lock_take(lock_path, &lock, error))
		return JOIN_FAILED;
	joined = identity_load(config->data, &before, error);
	*ret_already = joined && !is_expired(&before);
	if (*ret_already) {
		*ret_identity = before;
		before = (struct identity){0};
		exit = JOIN_DONE;
	} else if (joined || error->code == ERROR_NOT_FOUND) {
		join.expired = joined && !token_file ? buf_text(&before.certificate_pem) : NULL;
		exit = run(&join, token_file, joined, &identity);
		if (exit == JOIN_DONE) {
			*ret_identity = identity;
			identity = (struct identity){0};
		}
	}
	join_deinit(&join);
	durable_lock_destroy(lock);
	return exit;
}
