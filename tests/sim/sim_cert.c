/*
 * pki/cert.h's readers, put before the real ones by the linker: what the last certificate said is kept,
 * since all runs have the same one and OpenSSL takes longer over it than all else about a connection.
 */
#include "base/buf.h"
#include "pki/cert.h"

bool __real_cert_read(const char *pem, size_t length, struct cert_info *ret_info,
		      struct error *error);
bool __wrap_cert_read(const char *pem, size_t length, struct cert_info *ret_info,
		      struct error *error);
bool __real_cert_read_node(const void *certificate, size_t length, struct cert_node *ret_node,
			   struct error *error);
bool __wrap_cert_read_node(const void *certificate, size_t length, struct cert_node *ret_node,
			   struct error *error);

static struct {
	struct buf info_of, node_of;
	struct cert_info info;
	struct cert_node node;
} last;

static bool is_last(const struct buf *of, const void *certificate, size_t length)
{
	return of->length > 0 && of->length == length && memcmp(of->data, certificate, length) == 0;
}

static void remember(struct buf *of, const void *certificate, size_t length)
{
	buf_clear(of);
	buf_add(of, certificate, length);
}

bool __wrap_cert_read(const char *pem, size_t length, struct cert_info *ret_info,
		      struct error *error)
{
	if (!is_last(&last.info_of, pem, length)) {
		if (!__real_cert_read(pem, length, &last.info, error))
			return false;
		remember(&last.info_of, pem, length);
	}
	*ret_info = last.info;
	return true;
}

bool __wrap_cert_read_node(const void *certificate, size_t length, struct cert_node *ret_node,
			   struct error *error)
{
	if (!is_last(&last.node_of, certificate, length)) {
		if (!__real_cert_read_node(certificate, length, &last.node, error))
			return false;
		remember(&last.node_of, certificate, length);
	}
	*ret_node = last.node;
	return true;
}
