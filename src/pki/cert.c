#include "pki/cert.h"

#include "pki/ossl.h"
#include "sys/random.h"

#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <time.h>

#define DAY_MS       ((int64_t)24 * 60 * 60 * 1000)
#define SERIAL_BYTES 16
#define NODE_SCHEME  "better-compute://"

DEFINE_CLEANUP(ossl_names, GENERAL_NAMES *, GENERAL_NAMES_free)
DEFINE_CLEANUP(ossl_store, X509_STORE *, X509_STORE_free)
DEFINE_CLEANUP(ossl_store_ctx, X509_STORE_CTX *, X509_STORE_CTX_free)

static const char *const role_names[] = {
	[CERT_ROLE_NODE] = "node",
	[CERT_ROLE_NODE_TENANT] = "node-tenant",
};

const char *cert_role_name(enum cert_role role)
{
	return role_names[role];
}

bool cert_role_parse(const char *name, enum cert_role *ret_role)
{
	for (size_t i = 0; i < ARRAY_SIZE(role_names); i++) {
		if (str_equal(role_names[i], name)) {
			*ret_role = (enum cert_role)i;
			return true;
		}
	}
	return false;
}

/* --- requests --- */

bool cert_request_make(const struct pki_key *key, struct buf *ret_pem, struct buf *ret_der,
		       struct error *error)
{
	CLEANUP(ossl_request) X509_REQ *request = X509_REQ_new();
	CLEANUP(ossl_bio) BIO *pem = BIO_new(BIO_s_mem());
	CLEANUP(ossl_bio) BIO *der = BIO_new(BIO_s_mem());

	assert(pki_key_is_private(key));
	if (!request || !pem || !der || !X509_REQ_set_version(request, X509_REQ_VERSION_1) ||
	    !X509_REQ_set_pubkey(request, ossl_key(key)) ||
	    X509_REQ_sign(request, ossl_key(key), EVP_sha256()) <= 0 ||
	    !PEM_write_bio_X509_REQ(pem, request) || !i2d_X509_REQ_bio(der, request))
		return ossl_error(error, "make certificate request");
	if (ret_pem)
		ossl_bio_take(pem, ret_pem);
	if (ret_der)
		ossl_bio_take(der, ret_der);
	return true;
}

/* DER of a certificate or a request always begins with a SEQUENCE. */
static bool is_der(const void *data, size_t length)
{
	return length > 0 && *(const uint8_t *)data == 0x30;
}

bool cert_request_check(const void *request, size_t length, struct pki_key **ret_key,
			struct error *error)
{
	CLEANUP(ossl_request) X509_REQ *parsed = NULL;
	CLEANUP(ossl_bio) BIO *bio = NULL;
	CLEANUP(pki_key) struct pki_key *key = NULL;
	EVP_PKEY *pkey;

	if (length > PKI_PEM_MAX)
		return error_set(error, ERROR_INVALID_INPUT,
				 "the certificate request is over %zu bytes", PKI_PEM_MAX);
	bio = ossl_bio_of(request, length);
	parsed = is_der(request, length) ? d2i_X509_REQ_bio(bio, NULL)
					 : PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);
	pkey = parsed ? X509_REQ_get_pubkey(parsed) : NULL;
	if (!pkey) {
		ERR_clear_error();
		return error_set(error, ERROR_INVALID_INPUT,
				 "the certificate request is not a PKCS#10 request");
	}
	if (!ossl_key_wrap(pkey, false, &key, error))
		return error_wrap(error, "certificate request");
	if (X509_REQ_verify(parsed, ossl_key(key)) != 1) {
		ERR_clear_error();
		return error_set(error, ERROR_INVALID_INPUT,
				 "the certificate request is not signed by its own key");
	}
	*ret_key = TAKE(key);
	return true;
}

/* --- issuing --- */

static X509 *read_pem(const char *pem, size_t length)
{
	CLEANUP(ossl_bio) BIO *bio = NULL;
	X509 *certificate;

	if (length > PKI_PEM_MAX)
		return NULL;
	bio = ossl_bio_of(pem, length);
	certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	ERR_clear_error();
	return certificate;
}

static bool unreadable(struct error *error)
{
	return error_set(error, ERROR_INVALID_INPUT, "the certificate is unreadable");
}

static bool add_extension(X509 *certificate, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *extension;
	bool done;

	X509V3_set_ctx(&ctx, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	done = extension && X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
	return done;
}

static bool set_serial(X509 *certificate)
{
	uint8_t serial[SERIAL_BYTES];
	BIGNUM *number;
	bool done;

	random_bytes(serial, sizeof serial);
	serial[0] = (uint8_t)((serial[0] & 0x7f) | 0x40); /* positive, and always of one length */
	number = BN_bin2bn(serial, sizeof serial, NULL);
	done = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate));
	BN_free(number);
	return done;
}

static bool set_common_name(X509_NAME *name, const char *text)
{
	return X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
					  (const unsigned char *)text, -1, -1, 0);
}

/* All of a certificate but its extensions and signature; NULL: OpenSSL's queue says why. */
static X509 *begin(EVP_PKEY *pkey, const char *common_name, struct wall now, int days)
{
	CLEANUP(ossl_x509) X509 *certificate = X509_new();

	if (!certificate || !X509_set_version(certificate, X509_VERSION_3) ||
	    !set_serial(certificate) ||
	    !ASN1_TIME_set(X509_getm_notBefore(certificate), (now.ms - CERT_BACKDATE_MS) / 1000) ||
	    !ASN1_TIME_set(X509_getm_notAfter(certificate), (now.ms + days * DAY_MS) / 1000) ||
	    !set_common_name(X509_get_subject_name(certificate), common_name) ||
	    !X509_set_pubkey(certificate, pkey))
		return NULL;
	return TAKE(certificate);
}

bool cert_make_ca(const struct pki_key *key, const char *common_name, struct wall now,
		  struct buf *ret_pem, struct error *error)
{
	CLEANUP(ossl_x509) X509 *ca = begin(ossl_key(key), common_name, now, CERT_CA_DAYS);
	CLEANUP(ossl_bio) BIO *pem = BIO_new(BIO_s_mem());

	assert(pki_key_is_private(key));
	if (!ca || !pem || !X509_set_issuer_name(ca, X509_get_subject_name(ca)) ||
	    !add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:1") ||
	    !add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") ||
	    !add_extension(ca, ca, NID_subject_key_identifier, "hash") ||
	    X509_sign(ca, ossl_key(key), EVP_sha256()) <= 0 || !PEM_write_bio_X509(pem, ca))
		return ossl_error(error, "make CA certificate");
	ossl_bio_take(pem, ret_pem);
	return true;
}

bool cert_cross_sign(const struct cert_issuer *issuer, const char *subject_pem, struct wall now,
		     struct buf *ret_pem, struct error *error)
{
	CLEANUP(ossl_x509) X509 *subject = read_pem(subject_pem, strlen(subject_pem));
	CLEANUP(ossl_x509) X509 *ca = read_pem(issuer->ca_pem, strlen(issuer->ca_pem));
	CLEANUP(ossl_x509) X509 *cross = NULL;
	CLEANUP(ossl_bio) BIO *pem = BIO_new(BIO_s_mem());

	if (!subject || !ca)
		return unreadable(error);
	cross = begin(X509_get0_pubkey(subject), "-", now, CERT_CA_DAYS);
	if (!cross || !pem || !X509_set_subject_name(cross, X509_get_subject_name(subject)) ||
	    !X509_set_issuer_name(cross, X509_get_subject_name(ca)) ||
	    !add_extension(cross, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
	    !add_extension(cross, ca, NID_key_usage, "critical,keyCertSign,cRLSign") ||
	    !add_extension(cross, ca, NID_subject_key_identifier, "hash") ||
	    !add_extension(cross, ca, NID_authority_key_identifier, "keyid:always") ||
	    X509_sign(cross, ossl_key(issuer->ca_key), EVP_sha256()) <= 0 ||
	    !PEM_write_bio_X509(pem, cross))
		return ossl_error(error, "sign a CA by the next one");
	ossl_bio_take(pem, ret_pem);
	return true;
}

static bool add_name(GENERAL_NAMES *names, int type, const char *text)
{
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *value = ASN1_IA5STRING_new();

	if (!name || !value || !ASN1_STRING_set(value, text, -1)) {
		GENERAL_NAME_free(name);
		ASN1_IA5STRING_free(value);
		return false;
	}
	GENERAL_NAME_set0_value(name, type, value);
	if (!sk_GENERAL_NAME_push(names, name)) {
		GENERAL_NAME_free(name);
		return false;
	}
	return true;
}

struct leaf {
	const struct pki_key *key;
	const char *common_name;
	GENERAL_NAMES *names;
	const char *extended_usage;
	int days;
};

static bool issue(const struct cert_issuer *issuer, const struct leaf *leaf, struct wall now,
		  struct buf *ret_pem, struct error *error)
{
	CLEANUP(ossl_x509) X509 *ca = read_pem(issuer->ca_pem, strlen(issuer->ca_pem));
	CLEANUP(ossl_x509)
	X509 *certificate = begin(ossl_key(leaf->key), leaf->common_name, now, leaf->days);
	CLEANUP(ossl_bio) BIO *pem = BIO_new(BIO_s_mem());

	assert(pki_key_is_private(issuer->ca_key));
	if (!ca)
		return error_set(error, ERROR_INTERNAL,
				 "the issuing CA's certificate is unreadable");
	if (!certificate || !pem || !X509_set_issuer_name(certificate, X509_get_subject_name(ca)) ||
	    !add_extension(certificate, ca, NID_basic_constraints, "critical,CA:FALSE") ||
	    !add_extension(certificate, ca, NID_key_usage, "critical,digitalSignature") ||
	    !add_extension(certificate, ca, NID_ext_key_usage, leaf->extended_usage) ||
	    !add_extension(certificate, ca, NID_subject_key_identifier, "hash") ||
	    !add_extension(certificate, ca, NID_authority_key_identifier, "keyid:always") ||
	    !X509_add1_ext_i2d(certificate, NID_subject_alt_name, leaf->names, 0,
			       X509V3_ADD_DEFAULT) ||
	    X509_sign(certificate, ossl_key(issuer->ca_key), EVP_sha256()) <= 0 ||
	    !PEM_write_bio_X509(pem, certificate) || !PEM_write_bio_X509(pem, ca))
		return ossl_error(error, "issue certificate for '%s'", leaf->common_name);
	ossl_bio_take(pem, ret_pem);
	return true;
}

static void node_uri(char out[128], enum cert_role role, const char *node_id)
{
	snprintf(out, 128, NODE_SCHEME "%s/%s", cert_role_name(role), node_id);
}

bool cert_issue_node(const struct cert_issuer *issuer, const struct pki_key *key,
		     const char *node_id, enum cert_role role, struct wall now, struct buf *ret_pem,
		     struct error *error)
{
	CLEANUP(ossl_names) GENERAL_NAMES *names = GENERAL_NAMES_new();
	char uri[128];
	struct leaf leaf = {
		.key = key,
		.common_name = node_id,
		.names = names,
		.extended_usage = "clientAuth",
		.days = CERT_NODE_DAYS,
	};

	assert(id_valid(node_id, "node"));
	node_uri(uri, role, node_id);
	if (!names || !add_name(names, GEN_URI, uri))
		return ossl_error(error, "name the certificate of '%s'", node_id);
	return issue(issuer, &leaf, now, ret_pem, error);
}

/* Letters, digits, '-' and '.' only: nothing that could be read as more than one name. */
static bool dns_name_valid(const char *name)
{
	size_t length = strnlen(name, 254);

	return length > 0 && length < 254 && name[0] != '.' && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == length;
}

bool cert_issue_gateway(const struct cert_issuer *issuer, const struct pki_key *key,
			const char *const *dns_names, size_t dns_count, struct wall now,
			struct buf *ret_pem, struct error *error)
{
	CLEANUP(ossl_names) GENERAL_NAMES *names = GENERAL_NAMES_new();
	struct leaf leaf = {
		.key = key,
		.common_name = "better-compute gateway",
		.names = names,
		.extended_usage = "serverAuth",
		.days = CERT_GATEWAY_DAYS,
	};

	assert(dns_count > 0);
	for (size_t i = 0; i < dns_count; i++) {
		if (!dns_name_valid(dns_names[i]))
			return error_set(error, ERROR_INVALID_CONFIG,
					 "the gateway's name '%.253s' is not a lower-case DNS name",
					 dns_names[i]);
		if (!names || !add_name(names, GEN_DNS, dns_names[i]))
			return ossl_error(error, "name the gateway's certificate");
	}
	return issue(issuer, &leaf, now, ret_pem, error);
}

/* --- reading --- */

static bool read_time(const ASN1_TIME *time, struct wall *ret_time)
{
	struct tm tm;

	if (!ASN1_TIME_to_tm(time, &tm))
		return false;
	*ret_time = (struct wall){(int64_t)timegm(&tm) * 1000};
	return true;
}

static bool read_info(X509 *certificate, struct cert_info *ret_info, struct error *error)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	const ASN1_INTEGER *serial = X509_get0_serialNumber(certificate);
	EVP_PKEY *pkey = X509_get_pubkey(certificate);
	struct cert_info info = {0};

	if (!pkey)
		return error_set(error, ERROR_INVALID_INPUT, "the certificate's key is unreadable");
	if (!ossl_key_wrap(pkey, false, &key, error))
		return error_wrap(error, "certificate");
	if (!read_time(X509_get0_notBefore(certificate), &info.not_before) ||
	    !read_time(X509_get0_notAfter(certificate), &info.not_after) ||
	    ASN1_STRING_length(serial) > (CERT_SERIAL_SIZE - 1) / 2)
		return error_set(error, ERROR_INVALID_INPUT,
				 "the certificate's times or serial number are malformed");
	for (int i = 0; i < ASN1_STRING_length(serial); i++)
		snprintf(info.serial + 2 * (size_t)i, 3, "%02x", ASN1_STRING_get0_data(serial)[i]);
	pki_key_pin(key, info.key_pin);
	*ret_info = info;
	return true;
}

bool cert_read(const char *pem, size_t length, struct cert_info *ret_info, struct error *error)
{
	CLEANUP(ossl_x509) X509 *certificate = read_pem(pem, length);

	return certificate ? read_info(certificate, ret_info, error) : unreadable(error);
}

/* Copies text that fits and holds no NUL. */
static bool copy_text(const ASN1_STRING *string, char *out, size_t out_size)
{
	const char *text = (const char *)ASN1_STRING_get0_data(string);
	int length = ASN1_STRING_length(string);

	if (length < 0 || (size_t)length >= out_size || memchr(text, '\0', (size_t)length))
		return false;
	memcpy(out, text, (size_t)length);
	out[length] = '\0';
	return true;
}

static bool read_common_name(X509 *certificate, char *out, size_t out_size)
{
	X509_NAME *subject = X509_get_subject_name(certificate);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

	if (at < 0 || X509_NAME_entry_count(subject) != 1)
		return false;
	return copy_text(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), out, out_size);
}

static bool read_only_uri(X509 *certificate, char *out, size_t out_size)
{
	CLEANUP(ossl_names)
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	const GENERAL_NAME *name;

	if (!names || sk_GENERAL_NAME_num(names) != 1)
		return false;
	name = sk_GENERAL_NAME_value(names, 0);
	return name->type == GEN_URI && copy_text(name->d.uniformResourceIdentifier, out, out_size);
}

bool cert_read_node(const void *certificate, size_t length, struct cert_node *ret_node,
		    struct error *error)
{
	CLEANUP(ossl_x509) X509 *parsed = NULL;
	struct cert_node node = {0};
	char uri[128], wanted[128];

	if (is_der(certificate, length) && length <= CERT_MAX_DER) {
		const uint8_t *at = certificate;

		parsed = d2i_X509(NULL, &at, (long)length);
		ERR_clear_error();
	} else {
		parsed = read_pem(certificate, length);
	}
	if (!parsed)
		return unreadable(error);
	if (!read_common_name(parsed, node.node_id, sizeof node.node_id) ||
	    !id_valid(node.node_id, "node") || !read_only_uri(parsed, uri, sizeof uri))
		return error_set(error, ERROR_INVALID_INPUT, "the certificate is not a node's");
	for (size_t i = 0; i < ARRAY_SIZE(role_names); i++) {
		node.role = (enum cert_role)i;
		node_uri(wanted, node.role, node.node_id);
		if (str_equal(uri, wanted)) {
			if (!read_info(parsed, &node.info, error))
				return false;
			*ret_node = node;
			return true;
		}
	}
	return error_set(error, ERROR_INVALID_INPUT, "the certificate of '%s' names no known role",
			 node.node_id);
}

bool cert_verify(const char *pem, const char *ca_pem, struct wall now, struct error *error)
{
	CLEANUP(ossl_x509) X509 *certificate = read_pem(pem, strlen(pem));
	CLEANUP(ossl_x509) X509 *ca = read_pem(ca_pem, strlen(ca_pem));
	CLEANUP(ossl_store) X509_STORE *store = X509_STORE_new();
	CLEANUP(ossl_store_ctx) X509_STORE_CTX *ctx = X509_STORE_CTX_new();

	if (!certificate || !ca)
		return unreadable(error);
	if (!store || !ctx || !X509_STORE_add_cert(store, ca) ||
	    !X509_STORE_CTX_init(ctx, store, certificate, NULL))
		return ossl_error(error, "verify certificate");
	X509_STORE_CTX_set_time(ctx, 0, now.ms / 1000);
	if (X509_verify_cert(ctx) != 1)
		return error_set(error, ERROR_FORBIDDEN, "the certificate is not trusted: %s",
				 X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
	return true;
}

bool cert_check_key(const char *pem, const struct pki_key *key, struct error *error)
{
	struct cert_info info;
	char pin[PIN_SIZE];

	if (!cert_read(pem, strlen(pem), &info, error))
		return false;
	pki_key_pin(key, pin);
	if (!str_equal(pin, info.key_pin))
		return error_set(error, ERROR_FORBIDDEN, "the certificate is for another key");
	return true;
}

/* The next one of `bio`, or NULL at its end, which is no error. */
static bool read_next(BIO *bio, X509 **ret_next, struct error *error)
{
	X509 *next = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	unsigned long code = ERR_peek_last_error();
	bool over = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;

	ERR_clear_error();
	if (!next && !over)
		return unreadable(error);
	*ret_next = next;
	return true;
}

bool cert_check_chain(const char *pem, struct error *error)
{
	CLEANUP(ossl_bio) BIO *bio = ossl_bio_of(pem, strlen(pem));
	CLEANUP(ossl_x509) X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	X509 *issuer = NULL;
	bool ok = true;

	ERR_clear_error();
	if (!certificate)
		return unreadable(error);
	while (ok && (ok = read_next(bio, &issuer, error)) && issuer) {
		ok = X509_verify(certificate, X509_get0_pubkey(issuer)) == 1 ||
		     error_set(error, ERROR_INVALID_INPUT,
			       "the certificate is not signed by the one that follows it");
		ERR_clear_error();
		X509_free(certificate);
		certificate = TAKE(issuer);
	}
	return ok;
}

bool cert_has_dns_name(const char *pem, const char *name)
{
	CLEANUP(ossl_x509) X509 *certificate = read_pem(pem, strlen(pem));

	return certificate &&
	       X509_check_host(certificate, name, strlen(name),
			       X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_WILDCARDS,
			       NULL) == 1;
}
