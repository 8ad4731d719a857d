#include "rpc/secure.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509v3.h>
#include <stdio.h>

struct secure {
	SSL *ssl;
	bool client, ready;
	uint8_t *peer;
	int peer_length;
	struct error *verify_error; /* client: of our check of the peer; NULL: not checked yet */
	/* Of the call under way: what came and isn't read yet, and where what OpenSSL writes goes. */
	const uint8_t *in;
	size_t in_length;
	struct buf *out;
};

/* --- OpenSSL's way to the bytes: it keeps none of its own between calls --- */

static int pipe_read(BIO *bio, char *data, int length)
{
	struct secure *secure = BIO_get_data(bio);
	size_t taken = (size_t)length < secure->in_length ? (size_t)length : secure->in_length;

	BIO_clear_retry_flags(bio);
	if (taken == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	memcpy(data, secure->in, taken);
	secure->in += taken;
	secure->in_length -= taken;
	return (int)taken;
}

static int pipe_write(BIO *bio, const char *data, int length)
{
	struct secure *secure = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	buf_add(secure->out, data, (size_t)length);
	return length;
}

static long pipe_control(BIO *bio, int command, long number, void *arg)
{
	(void)bio, (void)number, (void)arg;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *pipe_method;

static void make_pipe_method(void)
{
	pipe_method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "secure");
	if (!pipe_method || !BIO_meth_set_read(pipe_method, pipe_read) ||
	    !BIO_meth_set_write(pipe_method, pipe_write) ||
	    !BIO_meth_set_ctrl(pipe_method, pipe_control))
		abort();
}

static BIO *pipe_create(struct secure *secure)
{
	static CRYPTO_ONCE once = CRYPTO_ONCE_STATIC_INIT;
	BIO *bio;

	if (!CRYPTO_THREAD_run_once(&once, make_pipe_method))
		abort();
	bio = BIO_new(pipe_method);
	if (!bio)
		abort();
	BIO_set_data(bio, secure);
	BIO_set_init(bio, 1);
	return bio;
}

/* --- certificates --- */

void secure_pin(const X509 *certificate, char out[SECURE_PIN_SIZE])
{
	uint8_t digest[32];
	uint8_t *der = NULL;
	int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
	bool done = length > 0 &&
		    EVP_Digest(der, (size_t)length, digest, NULL, EVP_sha256(), NULL) == 1;
	OPENSSL_free(der);
	if (!done)
		abort(); /* out of memory: the certificate was read, so its key can be written */
	memcpy(out, "sha256/", 7);
	EVP_EncodeBlock((uint8_t *)out + 7, digest, sizeof digest);
}

struct secure *secure_create(const struct rpc_tls *tls)
{
	struct secure *secure = mem_alloc(sizeof *secure);
	BIO *bio;

	secure->client = tls->server_name != NULL;
	secure->ssl = SSL_new(tls->context);
	if (!secure->ssl)
		abort();
	bio = pipe_create(secure);
	SSL_set_bio(secure->ssl, bio, bio);
	SSL_set_app_data(secure->ssl, secure);
	if (!secure->client) {
		SSL_set_accept_state(secure->ssl);
		return secure;
	}
	SSL_set_connect_state(secure->ssl);
	SSL_set_hostflags(secure->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
					       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (!SSL_set_tlsext_host_name(secure->ssl, tls->server_name) ||
	    !SSL_set1_host(secure->ssl, tls->server_name))
		abort();
	return secure;
}

void secure_destroy(struct secure *secure)
{
	if (!secure)
		return;
	SSL_free(secure->ssl);
	OPENSSL_free(secure->peer);
	free(secure->verify_error);
	free(secure);
}

struct error *secure_verify_error(SSL *ssl)
{
	struct secure *secure = SSL_get_app_data(ssl);
	if (!secure->verify_error)
		secure->verify_error = mem_alloc(sizeof *secure->verify_error);
	return secure->verify_error;
}

/* Alerts by which a server says that it does not accept our certificate. */
static bool is_refusal(int reason)
{
	return reason == SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED ||
	       reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA ||
	       reason == SSL_R_TLSV1_ALERT_ACCESS_DENIED ||
	       reason == SSL_R_SSLV3_ALERT_BAD_CERTIFICATE ||
	       reason == SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED ||
	       reason == SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED ||
	       reason == SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN ||
	       reason == SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE;
}

static bool failed(struct secure *secure, struct error *error)
{
	unsigned long code = ERR_peek_last_error();
	const char *reason = ERR_reason_error_string(code);
	bool is_ssl = ERR_GET_LIB(code) == ERR_LIB_SSL;
	ERR_clear_error();
	if (secure->verify_error && secure->verify_error->code != ERROR_NONE) {
		*error = *secure->verify_error;
		return false;
	}
	if (!reason)
		reason = "the peer ended the connection";
	if (secure->client && is_ssl && is_refusal(ERR_GET_REASON(code)))
		return error_set(error, ERROR_UNAUTHENTICATED,
				 "the server refused our certificate: %s", reason);
	return error_set(error, ERROR_UNAVAILABLE, "TLS: %s", reason);
}

static void keep_peer(struct secure *secure)
{
	X509 *peer = SSL_get0_peer_certificate(secure->ssl);
	if (!peer)
		return;
	secure->peer_length = i2d_X509(peer, &secure->peer);
	if (secure->peer_length <= 0)
		abort();
}

/* Goes on with the handshake as far as the bytes in hand go. */
static bool shake_hands(struct secure *secure, struct error *error)
{
	ERR_clear_error();
	int done = SSL_do_handshake(secure->ssl);
	if (done != 1)
		return SSL_get_error(secure->ssl, done) == SSL_ERROR_WANT_READ ||
		       failed(secure, error);
	const uint8_t *protocol;
	unsigned length;
	SSL_get0_alpn_selected(secure->ssl, &protocol, &length);
	if (length != 2 || memcmp(protocol, "h2", 2) != 0)
		return error_set(error, ERROR_UNAVAILABLE,
				 "TLS: the peer does not speak HTTP/2 (ALPN h2)");
	keep_peer(secure);
	secure->ready = true;
	return true;
}

bool secure_start(struct secure *secure, struct buf *out, struct error *error)
{
	secure->out = out;
	return shake_hands(secure, error);
}

static bool decrypt(struct secure *secure, struct buf *plain, struct error *error)
{
	uint8_t bytes[16384]; /* a record holds no more */
	ERR_clear_error();
	for (;;) {
		int length = SSL_read(secure->ssl, bytes, sizeof bytes);
		if (length > 0) {
			buf_add(plain, bytes, (size_t)length);
			continue;
		}
		int why = SSL_get_error(secure->ssl, length);
		/* After a goodbye the socket's end follows. */
		return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_ZERO_RETURN ||
		       failed(secure, error);
	}
}

bool secure_receive(struct secure *secure, const uint8_t *data, size_t length, struct buf *plain,
		    struct buf *out, struct error *error)
{
	bool done;

	/* All of it is read: what makes no record yet waits inside of OpenSSL. */
	secure->in = data;
	secure->in_length = length;
	secure->out = out;
	done = secure->ready || shake_hands(secure, error);
	if (done && secure->ready)
		done = decrypt(secure, plain, error);
	secure->in_length = 0;
	return done;
}

bool secure_send(struct secure *secure, const uint8_t *data, size_t length, struct buf *out,
		 struct error *error)
{
	assert(secure->ready && length <= INT32_MAX);
	secure->out = out;
	ERR_clear_error();
	/* Into memory, so all of it is taken. */
	return length == 0 || SSL_write(secure->ssl, data, (int)length) == (int)length ||
	       failed(secure, error);
}

void secure_end(struct secure *secure, struct buf *out)
{
	if (!secure->ready)
		return;
	secure->out = out;
	SSL_shutdown(secure->ssl); /* best effort: a connection that is broken can't say goodbye */
	ERR_clear_error();
}

bool secure_is_ready(const struct secure *secure)
{
	return secure->ready;
}

const uint8_t *secure_peer_certificate(const struct secure *secure, size_t *ret_length)
{
	*ret_length = (size_t)secure->peer_length;
	return secure->peer;
}
