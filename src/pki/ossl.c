#include "pki/ossl.h"

#include <openssl/err.h>
#include <stdarg.h>
#include <stdio.h>

bool ossl_error(struct error *error, const char *format, ...)
{
	char what[ERROR_WHAT_SIZE];
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	ERR_clear_error();
	return error_set(error, ERROR_INTERNAL, "%s: %s", what, reason ? reason : "unknown reason");
}

void ossl_bio_take(BIO *bio, struct buf *out)
{
	char *data = NULL;
	long length = BIO_get_mem_data(bio, &data);

	assert(length >= 0);
	buf_add(out, data, (size_t)length);
}

BIO *ossl_bio_of(const void *data, size_t length)
{
	assert(length <= INT32_MAX);
	return BIO_new_mem_buf(data, (int)length);
}

bool ossl_json_read(const char *text, size_t length, size_t max, const char *thing,
		    json_t **ret_json, struct error *error)
{
	CLEANUP(tree) json_t *json = NULL;

	if (!tree_parse(text, length, max, thing, &json, error))
		return false;
	if (!json_is_object(json))
		return error_set(error, ERROR_INVALID_INPUT, "%s: not a JSON object", thing);
	*ret_json = TAKE(json);
	return true;
}
