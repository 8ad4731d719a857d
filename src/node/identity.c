#include "node/identity.h"

#include "gpu/core/field.h"
#include "pki/keys.h"
#include "sys/durable.h"
#include "text/tree.h"

#define VERSION 1

void identity_deinit(struct identity *identity)
{
	if (!identity)
		return;
	pki_wipe(&identity->key_pem);
	buf_deinit(&identity->certificate_pem);
}

char *identity_path(const char *data_folder, const char *name)
{
	struct buf path = {0};

	buf_printf(&path, "%s/%s", data_folder, name);
	return buf_take_text(&path);
}

static bool read_record(const char *path, struct identity *identity, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	json_t *gateway;
	int32_t version = 0;

	if (!durable_read_record(path, PKI_PEM_MAX, &text, error) ||
	    !tree_parse(text.data, text.length, PKI_PEM_MAX, path, &tree, error) ||
	    !field_int(tree, "", "version", true, 1, VERSION, &version, error) ||
	    !field_text(tree, "", "nodeId", true, identity->node_id, sizeof identity->node_id,
			error) ||
	    !field_text(tree, "", "trust", true, identity->trust, sizeof identity->trust, error) ||
	    !field_child(tree, "", "gateway", true, &gateway, error) ||
	    !field_text(gateway, "gateway", "address", true, identity->gateway_address,
			sizeof identity->gateway_address, error) ||
	    !field_text(gateway, "gateway", "serverName", true, identity->gateway_server_name,
			sizeof identity->gateway_server_name, error))
		return false;
	return id_valid(identity->node_id, "node") ||
	       error_field(error, "nodeId", "'%s' is not a node's id", identity->node_id);
}

static bool read_pem(const char *folder, const char *name, struct buf *ret_pem, struct error *error)
{
	CLEANUP(free) char *path = identity_path(folder, name);

	if (durable_read_record(path, PKI_PEM_MAX, ret_pem, error))
		return true;
	if (error->code == ERROR_NOT_FOUND) /* joined, but in part: not the same as never joined */
		error->code = ERROR_INVALID_STATE;
	return false;
}

bool identity_load(const char *data_folder, struct identity *ret_identity, struct error *error)
{
	CLEANUP(free) char *path = identity_path(data_folder, IDENTITY_FILE);
	CLEANUP(identity) struct identity identity = {0};

	if (!read_record(path, &identity, error) ||
	    !read_pem(data_folder, IDENTITY_KEY, &identity.key_pem, error) ||
	    !read_pem(data_folder, IDENTITY_CERTIFICATE, &identity.certificate_pem, error))
		return error_wrap(error, "this node's identity");
	*ret_identity = identity;
	identity = (struct identity){0};
	return true;
}

static bool store(const char *folder, const char *name, const struct buf *content,
		  struct error *error)
{
	CLEANUP(free) char *path = identity_path(folder, name);

	return durable_replace(path, content->data, content->length, 0600, error);
}

bool identity_store(const char *data_folder, const struct identity *identity, struct error *error)
{
	CLEANUP(tree)
	json_t *tree =
		json_pack("{s:i, s:s, s:s, s:{s:s, s:s}}", "version", VERSION, "nodeId",
			  identity->node_id, "trust", identity->trust, "gateway", "address",
			  identity->gateway_address, "serverName", identity->gateway_server_name);
	CLEANUP(buf) struct buf text = {0};

	tree_dump_pretty(&text, tree);
	return store(data_folder, IDENTITY_KEY, &identity->key_pem, error) &&
	       store(data_folder, IDENTITY_CERTIFICATE, &identity->certificate_pem, error) &&
	       store(data_folder, IDENTITY_FILE, &text, error);
}
