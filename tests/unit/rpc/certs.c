#include "certs.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

static X509 *read_certificate(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	X509 *certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	assert(certificate);
	return certificate;
}

static EVP_PKEY *read_key(const char *pem)
{
	BIO *bio = BIO_new_mem_buf(pem, -1);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
	BIO_free(bio);
	assert(key);
	return key;
}

static char *take_text(BIO *bio)
{
	char *data;
	long length = BIO_get_mem_data(bio, &data);
	char *text = mem_alloc((size_t)length + 1);
	memcpy(text, data, (size_t)length);
	BIO_free(bio);
	return text;
}

static void add_extension(X509 *certificate, X509 *issuer, int id, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
	assert(extension);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
}

static void add_extensions(X509 *certificate, X509 *issuer, const struct certs_options *options)
{
	char names[160] = "DNS:";
	add_extension(certificate, issuer, NID_basic_constraints,
		      options->is_ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
	add_extension(certificate, issuer, NID_key_usage,
		      options->is_ca ? "critical,keyCertSign" : "critical,digitalSignature");
	if (options->is_ca)
		return;
	strncat(names, options->name, 150);
	add_extension(certificate, issuer, NID_subject_alt_name, names);
	add_extension(certificate, issuer, NID_ext_key_usage, "serverAuth,clientAuth");
}

struct certs_pair certs_make(const struct certs_options *options)
{
	static const int64_t hour = 3600;
	bool any_time = !options->from_s && !options->to_s;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	X509 *issuer = options->issuer ? read_certificate(options->issuer->certificate) : NULL;
	EVP_PKEY *signer = options->issuer ? read_key(options->issuer->key) : NULL;
	X509_NAME *name = X509_get_subject_name(certificate);

	X509_set_version(certificate, X509_VERSION_3);
	ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), (uintptr_t)key >> 4);
	X509_gmtime_adj(X509_getm_notBefore(certificate), any_time ? -hour : options->from_s);
	X509_gmtime_adj(X509_getm_notAfter(certificate), any_time ? hour : options->to_s);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)options->name, -1, -1,
				   0);
	X509_set_issuer_name(certificate, issuer ? X509_get_subject_name(issuer) : name);
	X509_set_pubkey(certificate, key);
	add_extensions(certificate, issuer ? issuer : certificate, options);
	assert(X509_sign(certificate, signer ? signer : key, EVP_sha256()));

	struct certs_pair pair;
	BIO *bio = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(bio, certificate);
	pair.certificate = take_text(bio);
	bio = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
	pair.key = take_text(bio);
	X509_free(certificate);
	X509_free(issuer);
	EVP_PKEY_free(key);
	EVP_PKEY_free(signer);
	return pair;
}

void certs_free(struct certs_pair *pair)
{
	free(pair->certificate);
	free(pair->key);
}

char *certs_pin(const struct certs_pair *pair)
{
	X509 *certificate = read_certificate(pair->certificate);
	uint8_t *der = NULL, digest[32], text[45];
	int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
	assert(length > 0);
	EVP_Digest(der, (size_t)length, digest, NULL, EVP_sha256(), NULL);
	EVP_EncodeBlock(text, digest, sizeof digest);
	OPENSSL_free(der);
	X509_free(certificate);
	char *pin = mem_alloc(sizeof "sha256/" + sizeof text);
	strcpy(pin, "sha256/");
	strcat(pin, (char *)text);
	return pin;
}
