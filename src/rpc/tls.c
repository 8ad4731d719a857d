#include "rpc/tls.h"

#include "rpc/secure.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>

static bool ssl_error(struct error *error, enum error_code code, const char *doing)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	ERR_clear_error();
	return error_set(error, code, "%s: %s", doing,
			 reason ? reason : "nothing of that kind in it");
}

/* --- reading PEM --- */

static void bio_cleanup(BIO **bio)
{
	BIO_free(*bio);
}

static void x509_cleanup(X509 **certificate)
{
	X509_free(*certificate);
}

static BIO *pem_open(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	if (!bio)
		abort();
	ERR_clear_error();
	return bio;
}

/* Keys are never encrypted; without this OpenSSL would ask on the terminal. */
static int no_password(char *out, int size, int writing, void *arg)
{
	(void)out, (void)size, (void)writing, (void)arg;
	return -1;
}

static bool use_certificate(SSL_CTX *context, const char *pem, struct error *error)
{
	CLEANUP(bio) BIO *bio = pem_open(pem);
	CLEANUP(x509) X509 *leaf = PEM_read_bio_X509(bio, NULL, no_password, NULL);
	if (!leaf || !SSL_CTX_use_certificate(context, leaf))
		return ssl_error(error, ERROR_INVALID_CONFIG, "read the TLS certificate");
	X509 *above;
	while ((above = PEM_read_bio_X509(bio, NULL, no_password, NULL)))
		if (!SSL_CTX_add0_chain_cert(context, above)) {
			X509_free(above);
			return ssl_error(error, ERROR_INVALID_CONFIG, "read the TLS chain");
		}
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return ssl_error(error, ERROR_INVALID_CONFIG, "read the TLS chain");
	ERR_clear_error();
	return true;
}

static bool use_key(SSL_CTX *context, const char *pem, struct error *error)
{
	CLEANUP(bio) BIO *bio = pem_open(pem);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
	bool done =
		key && SSL_CTX_use_PrivateKey(context, key) && SSL_CTX_check_private_key(context);
	EVP_PKEY_free(key);
	return done || ssl_error(error, ERROR_INVALID_CONFIG, "read the TLS key");
}

static bool use_ca(SSL_CTX *context, const char *pem, bool announce, struct error *error)
{
	CLEANUP(bio) BIO *bio = pem_open(pem);
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	for (size_t count = 0;; count++) {
		CLEANUP(x509) X509 *ca = PEM_read_bio_X509(bio, NULL, no_password, NULL);
		if (!ca && count && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) {
			ERR_clear_error();
			return true;
		}
		if (!ca || !X509_STORE_add_cert(store, ca) ||
		    (announce && !SSL_CTX_add_client_CA(context, ca)))
			return ssl_error(error, ERROR_INVALID_CONFIG, "read the CA certificate");
	}
}

/* --- what both sides want --- */

static struct rpc_tls *tls_create(const SSL_METHOD *method)
{
	struct rpc_tls *tls = mem_alloc(sizeof *tls);
	tls->context = SSL_CTX_new(method);
	if (!tls->context)
		abort();
	SSL_CTX_set_min_proto_version(tls->context, TLS1_3_VERSION);
	/* The chain that is shown is the one that was given, not what the trusted CAs can make of
	 * it. */
	SSL_CTX_set_mode(tls->context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
	/* Each connection is judged anew: no resumption past a certificate's end. */
	SSL_CTX_set_options(tls->context, SSL_OP_NO_TICKET);
	SSL_CTX_set_num_tickets(tls->context, 0);
	SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_OFF);
	return tls;
}

void rpc_tls_destroy(struct rpc_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context);
	free(tls->server_name);
	free(tls);
}

DEFINE_CLEANUP(rpc_tls, struct rpc_tls *, rpc_tls_destroy)

static bool use_identity(SSL_CTX *context, const char *certificate_pem, const char *key_pem,
			 struct error *error)
{
	return use_certificate(context, certificate_pem, error) && use_key(context, key_pem, error);
}

/* --- server --- */

static int choose_protocol(SSL *ssl, const uint8_t **out, uint8_t *out_length, const uint8_t *in,
			   unsigned in_length, void *arg)
{
	(void)ssl, (void)arg;
	for (unsigned i = 0; i < in_length; i += in[i] + 1u)
		if (in[i] == 2 && i + 2 < in_length && memcmp(&in[i + 1], "h2", 2) == 0) {
			*out = &in[i + 1];
			*out_length = 2;
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

bool rpc_tls_server_create(const struct rpc_tls_server_options *options, struct rpc_tls **ret_tls,
			   struct error *error)
{
	CLEANUP(rpc_tls) struct rpc_tls *tls = tls_create(TLS_server_method());
	if (!use_identity(tls->context, options->certificate_pem, options->key_pem, error))
		return false;
	SSL_CTX_set_alpn_select_cb(tls->context, choose_protocol, NULL);
	if (options->client_ca_pem) {
		if (!use_ca(tls->context, options->client_ca_pem, true, error))
			return false;
		SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
	}
	*ret_tls = TAKE(tls);
	return true;
}

/* --- client: is this the server we mean? --- */

static bool is_pinned(const struct rpc_tls *tls, X509 *certificate)
{
	char pin[SECURE_PIN_SIZE];
	secure_pin(certificate, pin);
	for (size_t i = 0; i < tls->pins_count; i++)
		if (str_equal(tls->pins[i], pin))
			return true;
	return false;
}

static X509 *find_anchor(const struct rpc_tls *tls, const STACK_OF(X509) * chain)
{
	for (int i = 0; i < sk_X509_num(chain); i++) {
		X509 *certificate = sk_X509_value(chain, i);
		if (X509_check_ca(certificate) > 0 && is_pinned(tls, certificate))
			return certificate;
	}
	return NULL;
}

/* Names the pins that would have fitted: of the CAs the server showed. */
static bool no_anchor(const STACK_OF(X509) * chain, struct error *error)
{
	char seen[3 * SECURE_PIN_SIZE] = "";
	size_t length = 0;
	for (int i = 0; i < sk_X509_num(chain) && length + SECURE_PIN_SIZE < sizeof seen; i++) {
		if (X509_check_ca(sk_X509_value(chain, i)) <= 0)
			continue;
		if (length)
			seen[length++] = ' ';
		secure_pin(sk_X509_value(chain, i), seen + length);
		length += strlen(seen + length);
	}
	error_set(error, ERROR_FORBIDDEN,
		  "no certificate authority of the server has a pinned key; seen: %s",
		  length ? seen : "no certificate authority at all");
	return error_hint(error, "Compare the pins with what `better-compute pki show` says on the "
				 "control plane.");
}

static bool verify_failed(int why, const char *server_name, struct error *error)
{
	if (why == X509_V_ERR_HOSTNAME_MISMATCH)
		return error_set(error, ERROR_FORBIDDEN,
				 "the server's certificate is not for the name '%s'", server_name);
	return error_set(error, ERROR_FORBIDDEN, "the server's certificate is not trusted: %s",
			 X509_verify_cert_error_string(why));
}

/* The pinned CA, and it alone, is trusted. */
static bool verify_with_anchor(const struct rpc_tls *tls, X509_STORE_CTX *given, X509 *anchor,
			       int *ret_why)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *context = X509_STORE_CTX_new();
	if (!store || !context || !X509_STORE_add_cert(store, anchor) ||
	    !X509_STORE_CTX_init(context, store, X509_STORE_CTX_get0_cert(given),
				 X509_STORE_CTX_get0_untrusted(given)))
		abort();
	X509_VERIFY_PARAM *param = X509_STORE_CTX_get0_param(context);
	X509_VERIFY_PARAM_set_flags(param, X509_V_FLAG_PARTIAL_CHAIN);
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
						       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (!X509_VERIFY_PARAM_set_purpose(param, X509_PURPOSE_SSL_SERVER) ||
	    !X509_VERIFY_PARAM_set1_host(param, tls->server_name, 0))
		abort();
	bool trusted = X509_verify_cert(context) == 1;
	*ret_why = X509_STORE_CTX_get_error(context);
	X509_STORE_CTX_free(context);
	X509_STORE_free(store);
	return trusted;
}

static int verify_server(X509_STORE_CTX *given, void *arg)
{
	const struct rpc_tls *tls = arg;
	SSL *ssl = X509_STORE_CTX_get_ex_data(given, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct error *error = secure_verify_error(ssl);
	int why = X509_V_ERR_CERT_UNTRUSTED;
	bool trusted;

	if (tls->pins_count) {
		const STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(given);
		X509 *anchor = find_anchor(tls, chain);
		trusted = anchor ? verify_with_anchor(tls, given, anchor, &why)
				 : no_anchor(chain, error);
	} else {
		trusted = X509_verify_cert(given) == 1;
		why = X509_STORE_CTX_get_error(given);
	}
	if (trusted) {
		X509_STORE_CTX_set_error(given, X509_V_OK);
		return 1;
	}
	if (error->code == ERROR_NONE)
		verify_failed(why, tls->server_name, error);
	X509_STORE_CTX_set_error(given, why);
	return 0;
}

static bool is_pin(const char *text, size_t length)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	return length == SECURE_PIN_SIZE - 1 && str_starts(text, "sha256/") &&
	       strspn(text + 7, digits) == 43 && text[length - 1] == '=';
}

static bool parse_pins(struct rpc_tls *tls, const char *pins, struct error *error)
{
	for (const char *pin = pins;; pin++) {
		size_t length = strcspn(pin, ",");
		if (!is_pin(pin, length))
			return error_set(error, ERROR_INVALID_CONFIG,
					 "pin '%.*s': not \"sha256/\" and 44 base64 characters",
					 (int)(length < 64 ? length : 64), pin);
		if (tls->pins_count == SECURE_MAX_PINS)
			return error_set(error, ERROR_INVALID_CONFIG, "more than %d pins",
					 SECURE_MAX_PINS);
		memcpy(tls->pins[tls->pins_count++], pin, length);
		pin += length;
		if (!*pin)
			return true;
	}
}

bool rpc_tls_client_create(const struct rpc_tls_client_options *options, struct rpc_tls **ret_tls,
			   struct error *error)
{
	CLEANUP(rpc_tls) struct rpc_tls *tls = tls_create(TLS_client_method());
	assert(options->server_name && (options->pins || options->ca_pem));
	tls->server_name = mem_strdup(options->server_name);
	if (options->pins ? !parse_pins(tls, options->pins, error)
			  : !use_ca(tls->context, options->ca_pem, false, error))
		return false;
	if (options->certificate_pem &&
	    !use_identity(tls->context, options->certificate_pem, options->key_pem, error))
		return false;
	static const uint8_t protocols[] = "\x02h2";
	if (SSL_CTX_set_alpn_protos(tls->context, protocols, sizeof protocols - 1) != 0)
		abort();
	SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_cert_verify_callback(tls->context, verify_server, tls);
	*ret_tls = TAKE(tls);
	return true;
}
