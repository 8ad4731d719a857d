#include "node/identity.h"

#include "gpu/core/field.h"
#include "pki/cert.h"
#include "pki/keys.h"
#include "sys/durable.h"
#include "text/tree.h"

#include <errno.h>
#include <stdio.h>

#define VERSION         1
#define DIFFERENCE_SIZE 32

/* One of the three files, and what to do about one that can't be used. */
struct part {
	const char *name, *next;
};

static const struct part RECORD = {
	IDENTITY_FILE,
	"Put it back as it was; or move it away and run bcd join, which gets it again by the "
	"node's key and certificate.",
};
static const struct part KEY = {
	IDENTITY_KEY,
	"Put it back as it was. If it is lost, this machine joins as a new node: move "
	"identity.json, node.key and node.pem away, run bcd join --token-file FILE, and retire "
	"the old node.",
};
static const struct part CERTIFICATE = {
	IDENTITY_CERTIFICATE,
	"Put it back as it was; or move it and identity.json away and run bcd join --token-file "
	"FILE: by its key this machine is the same node.",
};

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

/* --- reading --- */

/* It can be read, and isn't what it should be. */
static bool damaged(struct error *error, const char *path, const struct part *part)
{
	error->code = ERROR_INVALID_STATE;
	error_wrap(error, "'%s' can't be used", path);
	return error_hint(error, "%s", part->next);
}

static bool read_part(const char *folder, const struct part *part, struct buf *ret_content,
		      struct error *error)
{
	CLEANUP(free) char *path = identity_path(folder, part->name);

	if (durable_read_own_record(path, PKI_PEM_MAX, ret_content, error))
		return ret_content->length > 0 ||
		       (error_set(error, ERROR_INVALID_STATE, "it is empty"),
			damaged(error, path, part));
	if (error->code == ERROR_FORBIDDEN && error->os == 0 && part != &KEY)
		error_hint(error,
			   "It must be bcd's alone: chown it to the user that bcd runs as, and "
			   "chmod 600 '%s'.",
			   path);
	else if (error->code == ERROR_FORBIDDEN && error->os == 0 && !*error->hint)
		error_hint(error,
			   "If that user may have read it, join as a new node with a new key; "
			   "else chown it to the user that bcd runs as.");
	else if (error->os == EACCES || error->os == EPERM)
		error_hint(error, "Run it as the user whose file it is, mostly root.");
	else if (!*error->hint && !durable_is_passing(error) &&
		 (error->code != ERROR_NOT_FOUND || part != &RECORD))
		error_hint(error, "%s", part->next);
	return false;
}

static bool parse_record(const struct buf *text, const char *path, struct identity *identity,
			 struct error *error)
{
	CLEANUP(tree) json_t *tree = NULL;
	json_t *gateway;

	if (!tree_parse(text->data, text->length, PKI_PEM_MAX, path, &tree, error) ||
	    !field_version(tree, VERSION, error) ||
	    !field_text(tree, "", "nodeId", true, identity->node_id, sizeof identity->node_id,
			error) ||
	    !field_text(tree, "", "trust", true, identity->trust, sizeof identity->trust, error) ||
	    !field_text(tree, "", "site", false, identity->site, sizeof identity->site, error) ||
	    !field_text(tree, "", "pool", false, identity->pool, sizeof identity->pool, error) ||
	    !field_bool(tree, "", "fresh", false, &identity->fresh, error) ||
	    !field_child(tree, "", "gateway", true, &gateway, error) ||
	    !field_text(gateway, "gateway", "address", true, identity->gateway_address,
			sizeof identity->gateway_address, error) ||
	    !field_text(gateway, "gateway", "serverName", true, identity->gateway_server_name,
			sizeof identity->gateway_server_name, error))
		return false;
	return id_valid(identity->node_id, "node") ||
	       error_field(error, "nodeId", "'%s' is not a node's id", identity->node_id);
}

static bool read_record(const char *folder, struct identity *identity, struct error *error)
{
	CLEANUP(free) char *path = identity_path(folder, IDENTITY_FILE);
	CLEANUP(buf) struct buf text = {0};

	return read_part(folder, &RECORD, &text, error) &&
	       (parse_record(&text, IDENTITY_FILE, identity, error) ||
		damaged(error, path, &RECORD));
}

static bool parse_key(const struct buf *pem, const char *folder, struct pki_key **ret_key,
		      struct error *error)
{
	CLEANUP(free) char *path = identity_path(folder, IDENTITY_KEY);

	return pki_key_from_pem(buf_text(pem), pem->length, ret_key, error) ||
	       damaged(error, path, &KEY);
}

bool identity_load_key(const char *data_folder, struct pki_key **ret_key, struct error *error)
{
	struct buf pem = {0};
	bool ok = read_part(data_folder, &KEY, &pem, error) &&
		  parse_key(&pem, data_folder, ret_key, error);

	pki_wipe(&pem);
	return ok;
}

/* The certificate is whole, a node's, and the key's. */
static bool check_certificate(const char *folder, const struct identity *identity,
			      struct cert_node *ret_node, struct error *error)
{
	CLEANUP(free) char *path = identity_path(folder, IDENTITY_CERTIFICATE);
	CLEANUP(pki_key) struct pki_key *key = NULL;
	const struct buf *pem = &identity->certificate_pem;
	char pin[PIN_SIZE];

	if (!parse_key(&identity->key_pem, folder, &key, error))
		return false;
	if (!cert_read_node(buf_text(pem), pem->length, ret_node, error) ||
	    !cert_check_chain(buf_text(pem), error))
		return damaged(error, path, &CERTIFICATE);
	pki_key_pin(key, pin);
	if (str_equal(pin, ret_node->info.key_pin))
		return true;
	error_set(error, ERROR_INVALID_STATE, "'%s' is of '%s' and for another key than %s holds",
		  path, ret_node->node_id, IDENTITY_KEY);
	return error_hint(error, "Put back the file that isn't this node's; or join as a new node: "
				 "move identity.json, node.key and node.pem away and run bcd join "
				 "--token-file FILE.");
}

static bool read_pair(const char *folder, struct identity *identity, struct cert_node *ret_node,
		      struct error *error)
{
	if (read_part(folder, &KEY, &identity->key_pem, error) &&
	    read_part(folder, &CERTIFICATE, &identity->certificate_pem, error))
		return check_certificate(folder, identity, ret_node, error);
	if (error->code == ERROR_NOT_FOUND) /* joined, but in part: not the same as never joined */
		error->code = ERROR_INVALID_STATE;
	return false;
}

static bool load(const char *folder, struct identity *identity, struct error *error)
{
	CLEANUP(free) char *path = identity_path(folder, IDENTITY_CERTIFICATE);
	struct cert_node node;

	if (!read_record(folder, identity, error) || !read_pair(folder, identity, &node, error))
		return false;
	if (str_equal(node.node_id, identity->node_id))
		return true;
	error_set(error, ERROR_INVALID_STATE, "'%s' is of '%s', but %s says '%s'", path,
		  node.node_id, IDENTITY_FILE, identity->node_id);
	return error_hint(error, "Put back the file that isn't this node's; or move identity.json "
				 "away and run bcd join, which gets that of the key's node.");
}

bool identity_load(const char *data_folder, struct identity *ret_identity, struct error *error)
{
	CLEANUP(identity) struct identity identity = {0};

	if (!load(data_folder, &identity, error))
		return error_wrap(error, "this node's identity");
	*ret_identity = identity;
	identity = (struct identity){0};
	return true;
}

bool identity_load_rest(const char *data_folder, struct identity *ret_identity, struct error *error)
{
	CLEANUP(identity) struct identity identity = {0};
	struct cert_node node;

	if (!read_pair(data_folder, &identity, &node, error))
		return false;
	str_copy(identity.node_id, sizeof identity.node_id, node.node_id);
	*ret_identity = identity;
	identity = (struct identity){0};
	return true;
}

/* --- its certificate's time --- */

static int64_t end_of(const struct identity *identity)
{
	const struct buf *pem = &identity->certificate_pem;
	struct cert_info info;
	struct error ignored; /* an unreadable one is no good either */

	return cert_read(buf_text(pem), pem->length, &info, &ignored) ? info.not_after.ms : 0;
}

bool identity_expired(const struct identity *identity, struct wall now)
{
	return end_of(identity) <= now.ms;
}

/* "31 days", "3 hours", "6 minutes": whole ones, so that the words stay the same from one try to the next. */
static void format_difference(char out[DIFFERENCE_SIZE], int64_t ms)
{
	static const struct {
		int64_t ms;
		const char *name;
	} UNITS[] = {{86400000, "days"}, {3600000, "hours"}, {60000, "minutes"}};
	size_t i = 0;

	while (i < ARRAY_SIZE(UNITS) - 1 && ms < 2 * UNITS[i].ms)
		i++;
	snprintf(out, DIFFERENCE_SIZE, "%lld %s", (long long)((ms + UNITS[i].ms / 2) / UNITS[i].ms),
		 UNITS[i].name);
}

bool identity_check_clock(const struct buf *certificate_pem, struct wall now, struct error *error)
{
	char difference[DIFFERENCE_SIZE];
	struct cert_info info;
	int64_t ahead;

	if (!cert_read(buf_text(certificate_pem), certificate_pem->length, &info, error))
		return false;
	if (info.not_before.ms <= now.ms && now.ms < info.not_after.ms)
		return true;
	ahead = now.ms - (info.not_before.ms + CERT_BACKDATE_MS);
	format_difference(difference, ahead < 0 ? -ahead : ahead);
	error_set(
		error, ERROR_INVALID_STATE,
		"this machine's clock and the control plane's differ by %s: by this machine's, the "
		"certificate that it was given now %s",
		difference, ahead < 0 ? "isn't valid yet" : "has expired");
	return error_hint(error,
			  "Set the clock that is wrong: this machine's is %s the control plane's.",
			  ahead < 0 ? "behind" : "ahead of");
}

bool identity_refresh(struct identity *identity, const char *data_folder)
{
	CLEANUP(identity) struct identity found = {0};
	struct error ignored; /* the next start says it */

	if (!identity_load(data_folder, &found, &ignored) ||
	    !str_equal(found.node_id, identity->node_id) || end_of(&found) <= end_of(identity))
		return false;
	pki_wipe(&identity->key_pem);
	buf_deinit(&identity->certificate_pem);
	identity->key_pem = found.key_pem;
	identity->certificate_pem = found.certificate_pem;
	found.key_pem = found.certificate_pem = (struct buf){0};
	return true;
}

/* --- writing --- */

static bool store(const char *folder, const char *name, const struct buf *content,
		  struct error *error)
{
	CLEANUP(free) char *path = identity_path(folder, name);

	return durable_replace(path, content->data, content->length, 0600, error);
}

void identity_format(const struct identity *identity, struct buf *out)
{
	CLEANUP(tree)
	json_t *tree =
		json_pack("{s:i, s:s, s:s, s:{s:s, s:s}}", "version", VERSION, "nodeId",
			  identity->node_id, "trust", identity->trust, "gateway", "address",
			  identity->gateway_address, "serverName", identity->gateway_server_name);

	if (*identity->site)
		tree_set(tree, "site", tree_string(identity->site));
	if (*identity->pool)
		tree_set(tree, "pool", tree_string(identity->pool));
	if (identity->fresh)
		tree_set(tree, "fresh", json_true());
	tree_dump_pretty(out, tree);
}

bool identity_store(const char *data_folder, const struct identity *identity, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};

	identity_format(identity, &text);
	return store(data_folder, IDENTITY_KEY, &identity->key_pem, error) &&
	       store(data_folder, IDENTITY_CERTIFICATE, &identity->certificate_pem, error) &&
	       store(data_folder, IDENTITY_FILE, &text, error);
}
