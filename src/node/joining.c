#include "node/joining.h"

#include "pki/cert.h"
#include "pki/wellknown.h"
#include "proto/join.pb-c.h"
#include "proto/message.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/machine.h"

#define MAX_UUID 64

MESSAGE_TYPE(join_request, Bettercompute__V1__JoinRequest, bettercompute__v1__join_request)
MESSAGE_TYPE(join_answer, Bettercompute__V1__JoinAnswer, bettercompute__v1__join_answer)

void joining_deinit(struct joining *joining)
{
	pki_key_destroy(joining->encryption_key);
	buf_deinit(&joining->request);
	arena_deinit(&joining->arena);
	*joining = (struct joining){0};
}

/* --- whom to ask, and under which key --- */

static bool take_key(struct joining *joining, const char *text, struct error *error)
{
	char pin[PIN_SIZE];

	if (!pki_key_from_jwk(text, strlen(text), PKI_USE_ENCRYPTION, &joining->encryption_key,
			      error))
		return error_wrap(error, "the join encryption key in join.encryption_jwk");
	pki_key_pin(joining->encryption_key, pin);
	return pin_check(&joining->encryption_pins, pin, "the join encryption key", error);
}

static bool configured_key(struct joining *joining, struct error *error)
{
	const char *text = joining->config->encryption_jwk;
	CLEANUP(buf) struct buf file = {0};

	if (text[0] == '{')
		return take_key(joining, text, error);
	return durable_read(text, PKI_JWK_MAX, &file, error) &&
	       take_key(joining, buf_text(&file), error);
}

static bool check_addresses(const struct joining *joining, struct error *error)
{
	return joining->address_count > 0 ||
	       error_set(error, ERROR_INVALID_CONFIG, "gateway.addresses is not configured");
}

/* Those of the configuration were looked at when it was read. */
static bool check_told(const struct joining *joining, struct error *error)
{
	if (!check_addresses(joining, error))
		return false;
	if (str_is_address(joining->addresses[0], 1))
		return true;
	error_set(error, ERROR_INVALID_CONFIG,
		  "the control plane's document: gateway '%s' is not ADDRESS:PORT",
		  joining->addresses[0]);
	return error_hint(error, "serve's --gateway-address names it; until then configure "
				 "gateway.addresses");
}

bool joining_begin(struct joining *joining, const struct config *config, struct error *error)
{
	joining->config = config;
	if (!pin_list_parse(config->encryption_pins, "join.encryption_pins",
			    &joining->encryption_pins, error) ||
	    !pin_list_parse(config->signing_pins, "join.signing_pins", &joining->signing_pins,
			    error))
		return false;
	joining->server_name = config->server_name;
	for (size_t i = 0; i < config->address_count; i++)
		joining->addresses[joining->address_count++] = config->addresses[i];
	if (*config->encryption_jwk)
		return configured_key(joining, error) && check_addresses(joining, error);
	if (*config->join_server)
		return true;
	error_set(error, ERROR_INVALID_CONFIG,
		  "neither join.server nor join.encryption_jwk is configured");
	return error_hint(error, "%s", JOINING_KEY_HINT);
}

bool joining_needs_key(const struct joining *joining)
{
	return !joining->encryption_key;
}

void joining_url(const struct joining *joining, struct buf *out)
{
	buf_printf(out, "%s" WELLKNOWN_PATH, joining->config->join_server);
}

/* "https://host:port" without a path, as "host:port". */
static void take_gateway(struct joining *joining, const struct wellknown *found)
{
	const char *host = found->gateway_url + strlen("https://");

	if (joining->address_count > 0)
		return;
	joining->addresses[joining->address_count++] =
		arena_strndup(&joining->arena, host, strcspn(host, "/?#"));
	joining->server_name = arena_strdup(&joining->arena, found->gateway_server_name);
}

bool joining_take_document(struct joining *joining, int status, const struct buf *body,
			   struct error *error)
{
	CLEANUP(wellknown) struct wellknown found = {0};
	CLEANUP(buf) struct buf url = {0};

	if (status != 200) {
		joining_url(joining, &url);
		return error_set(error, ERROR_UNAVAILABLE, "'%s' answers %d", buf_text(&url),
				 status);
	}
	if (!wellknown_read(body, &joining->encryption_pins, &found, error))
		return false;
	take_gateway(joining, &found);
	joining->encryption_key = TAKE(found.encryption_key);
	return check_told(joining, error);
}

/* --- the request --- */

static const char *read_smbios(struct joining *joining)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	struct error ignored; /* a machine without one has none */

	buf_printf(&path, "%s/class/dmi/id/product_uuid", joining->config->sys);
	if (!durable_read(buf_text(&path), MAX_UUID, &text, &ignored))
		return NULL;
	return arena_strndup(&joining->arena, buf_text(&text), strcspn(buf_text(&text), "\n"));
}

bool joining_seal(struct joining *joining, const struct pki_key *key, const char *token,
		  const char *certificate_pem, struct error *error)
{
	Bettercompute__V1__JoinRequest message = BETTERCOMPUTE__V1__JOIN_REQUEST__INIT;
	CLEANUP(buf) struct buf csr = {0};
	char boot_id[CLOCK_BOOT_ID_SIZE];
	struct join_request request = {0};
	struct machine machine;
	bool ok;

	if (!cert_request_make(key, &csr, NULL, error))
		return false;
	clock_boot_id(boot_id);
	machine_read(&machine);
	join_nonce(joining->nonce);
	str_copy(request.nonce, sizeof request.nonce, joining->nonce);
	request.token = message_text(token); /* all of these are borrowed, never freed here */
	request.csr_pem = message_text(buf_text(&csr));
	request.certificate_pem = message_text(certificate_pem);
	request.smbios_uuid = message_text(read_smbios(joining));
	request.hostname = machine.hostname;
	request.boot_id = boot_id;
	if (!join_request_seal(&request, joining->encryption_key, &message.envelope, error))
		return false;
	buf_clear(&joining->request);
	ok = join_request_pack(&message, &joining->request, error);
	free(message.envelope);
	return ok;
}

bool joining_tls(const struct joining *joining, struct rpc_tls **ret_tls, struct error *error)
{
	const struct rpc_tls_client_options options = {.server_name = joining->server_name,
						       .pins = joining->config->ca_pins};

	return rpc_tls_client_create(&options, ret_tls, error);
}

/* --- the answer --- */

void joining_hint_token(const struct config *config, const char *token_file, struct error *error)
{
	if (config->in_pod)
		error_hint(error,
			   "Apply a Secret with a live token: 'better-compute kubernetes "
			   "manifest --options FILE --pool POOL --secret-out NEW' makes one, "
			   "'kubectl apply -f NEW' brings it here; this container is started "
			   "again until it has one");
	else
		error_hint(error,
			   "Make a new token (better-compute join-tokens create --pool POOL), "
			   "write it to a private file, and join again: bcd join --token-file '%s'",
			   token_file ? token_file : "FILE");
}

enum join_exit joining_exit_of(const struct rpc_status *status)
{
	if (status->code == RPC_OK)
		return JOIN_DONE;
	if (status->code == RPC_UNAUTHENTICATED || status->code == RPC_PERMISSION_DENIED)
		return JOIN_TOKEN;
	if (status->code == RPC_UNAVAILABLE || status->code == RPC_DEADLINE_EXCEEDED)
		return JOIN_NETWORK;
	return JOIN_FAILED;
}

bool joining_judge(const struct joining *joining, const struct pki_key *key, const uint8_t *data,
		   size_t length, struct identity *ret_identity, struct error *error)
{
	CLEANUP(message) Bettercompute__V1__JoinAnswer *message = NULL;
	struct identity identity = {0};
	struct join_answer answer = {0};

	if (!join_answer_unpack(data, length, &message, error))
		return false;
	if (!join_answer_verify(message->envelope, &joining->signing_pins, joining->nonce, &answer,
				error))
		return error_wrap(error, "the join answer");
	str_copy(identity.node_id, sizeof identity.node_id, answer.node_id);
	str_copy(identity.trust, sizeof identity.trust, answer.trust);
	str_copy(identity.gateway_address, sizeof identity.gateway_address, answer.gateway_address);
	str_copy(identity.gateway_server_name, sizeof identity.gateway_server_name,
		 answer.gateway_server_name);
	buf_add_text(&identity.certificate_pem, answer.certificate_pem);
	join_answer_deinit(&answer);
	if (!cert_check_key(buf_text(&identity.certificate_pem), key, error)) {
		error->code = ERROR_INVALID_STATE; /* signed by who is pinned, and no use to us */
		error_wrap(error, "the join answer");
	} else if (pki_key_to_pem(key, &identity.key_pem, error)) {
		*ret_identity = identity;
		return true;
	}
	identity_deinit(&identity);
	return false;
}
