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
	json_error_t where;
	json_t *json;

	if (length > max)
		return error_set(error, ERROR_INVALID_INPUT, "the %s is over %zu bytes", thing,
				 max);
	json = json_loadb(text, length, JSON_REJECT_DUPLICATES, &where);
	/* The library's own message could quote a secret: only the place is told. */
	if (!json)
		return error_set(error, ERROR_INVALID_INPUT,
				 "the %s is not JSON (line %d, column %d)", thing, where.line,
				 where.column);
	if (!json_is_object(json)) {
		json_decref(json);
		return error_set(error, ERROR_INVALID_INPUT, "the %s is not a JSON object", thing);
	}
	*ret_json = json;
	return true;
}
