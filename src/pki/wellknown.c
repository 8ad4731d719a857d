#include "pki/wellknown.h"
#include "text/tree.h"

#define SOURCE "the well-known document"

void wellknown_deinit(struct wellknown *wellknown)
{
	if (!wellknown)
		return;
	pki_key_destroy(wellknown->encryption_key);
	wellknown->encryption_key = NULL;
}

static bool read_gateway(const json_t *tree, struct wellknown *out, struct error *error)
{
	const char *url, *name;
	json_t *gateway;

	if (!tree_get_object(tree, "gateway", "", &gateway, error) ||
	    !tree_get_string(gateway, "url", "gateway", sizeof out->gateway_url - 1, &url, error) ||
	    !tree_get_string(gateway, "serverName", "gateway", sizeof out->gateway_server_name - 1,
			     &name, error))
		return false;
	if (!str_starts(url, "https://") || strcspn(url + strlen("https://"), "/?#") == 0)
		return error_set(error, ERROR_INVALID_INPUT, "gateway.url '%.200s' is not https://",
				 url);
	str_copy(out->gateway_url, sizeof out->gateway_url, url);
	str_copy(out->gateway_server_name, sizeof out->gateway_server_name, name);
	return true;
}

static bool take_key(const json_t *jwk, const struct pin_list *pins, struct wellknown *out,
		     struct error *error)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(buf) struct buf text = {0};
	char pin[PIN_SIZE];

	tree_dump_canonical(&text, jwk);
	if (!pki_key_from_jwk(buf_text(&text), text.length, PKI_USE_ENCRYPTION, &key, error))
		return error_wrap(error, "the join encryption key");
	pki_key_pin(key, pin);
	if (!pin_check(pins, pin, "the join encryption key of the control plane", error))
		return false;
	out->encryption_key = TAKE(key);
	return true;
}

static bool read_keys(const json_t *tree, const struct pin_list *pins, struct wellknown *out,
		      struct error *error)
{
	json_t *join, *jwk, *next;

	if (!tree_get_object(tree, "join", "", &join, error) ||
	    !tree_get_object(join, "encryptionJwk", "join", &jwk, error))
		return false;
	if (take_key(jwk, pins, out, error))
		return true;
	/* While the control plane's keys change, its next one may be the one that is pinned. */
	next = json_object_get(join, "nextEncryptionJwk");
	return next && error->code == ERROR_FORBIDDEN && take_key(next, pins, out, error);
}

/* Whatever isn't as known is as if it weren't there: nothing is trusted for it. */
static void read_pins(const json_t *tree, struct wellknown *out)
{
	const json_t *pins = json_object_get(tree, "pins");
	const struct {
		const char *name;
		struct pin_list *list;
	} rows[] = {{"caPins", &out->ca_pins}, {"signingPins", &out->signing_pins}};
	struct error ignored;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *text = json_string_value(json_object_get(pins, rows[i].name));

		if (text && !pin_list_parse(text, rows[i].name, rows[i].list, &ignored))
			*rows[i].list = (struct pin_list){0};
	}
}

bool wellknown_read(const struct buf *body, const struct pin_list *encryption_pins,
		    struct wellknown *ret, struct error *error)
{
	CLEANUP(wellknown) struct wellknown out = {0};
	CLEANUP(tree) json_t *tree = NULL;
	int64_t version;

	if (!tree_parse(body->data, body->length, WELLKNOWN_MAX_SIZE, SOURCE, &tree, error))
		return false;
	if (!tree_get_int(tree, "version", "", 1, 1, &version, error) ||
	    !read_gateway(tree, &out, error) || !read_keys(tree, encryption_pins, &out, error))
		return error_wrap(error, SOURCE);
	read_pins(tree, &out);
	*ret = out;
	out = (struct wellknown){0};
	return true;
}
