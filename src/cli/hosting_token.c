#include "cli/hosting_token.h"
#include "cli/api.h"
#include "cli/view.h"
#include "pki/token.h"
#include "sys/random.h"

#include <stdio.h>

#define KEY_SIZE         37 /* of a UUID, and NUL */
#define MAX_USES_DEFAULT 100

/* A version 4 UUID. */
static const char *make_key(struct arena *arena)
{
	char out[KEY_SIZE];
	uint8_t r[16];

	random_bytes(r, sizeof r);
	r[6] = (uint8_t)((r[6] & 0x0f) | 0x40);
	r[8] = (uint8_t)((r[8] & 0x3f) | 0x80);
	snprintf(out, KEY_SIZE,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", r[0], r[1],
		 r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14],
		 r[15]);
	return arena_strdup(arena, out);
}

/* It stands in a comment of the placeholder, and a line of its own there would be none. */
static bool check_key(const char *key, struct error *error)
{
	for (; key && *key; key++)
		if (*key < 0x20 || *key > 0x7e)
			return error_set(error, ERROR_INVALID_INPUT,
					 "--key must be printable ASCII");
	return true;
}

bool hosting_token_of(struct cli *cli, struct hosting_token *ret_token, struct error *error)
{
	const char *ttl = options_text(cli->options, "ttl");
	const char *key = options_text(cli->options, "key");

	if (!check_key(key, error))
		return false;
	*ret_token = (struct hosting_token){
		.ttl = ttl ? ttl : "24h",
		.max_uses = options_number(cli->options, "max-uses", MAX_USES_DEFAULT),
		.key = key ? key : make_key(&cli->arena),
		.names = arena_printf(&cli->arena, "--secret-out%s%s%s",
				      options_given(cli->options, "out") ? ", --out" : "",
				      options_given(cli->options, "helm") ? ", --helm" : "",
				      options_given(cli->options, "options-out") ? ", --options-out"
										 : ""),
		.own_key = key == NULL,
	};
	return true;
}

const char *hosting_token_placeholder(const struct hosting_token *token, struct arena *arena)
{
	return arena_printf(
		arena,
		"# There is no Secret here yet: it is being made, or whoever was to write it was "
		"killed.\n# Then the same command with --key '%s' and new names for %s says which "
		"join\n# token to revoke; if none was made, it makes one.\n",
		token->key, token->names);
}

bool hosting_token_take_back(struct cli *cli, const char *id, struct error *error)
{
	const char *path = arena_printf(&cli->arena, "/v1/join-tokens/%s/revoke", id);
	CLEANUP(tree) json_t *answer = NULL;
	struct error second;

	error_wrap(error, "the join token could not be handed over");
	if (api_call(cli->api, "POST", path, NULL, &answer, &second) &&
	    view_text(answer, "state") && str_equal(view_text(answer, "state"), "revoked"))
		return error_hint(error, "It was revoked: nobody can join by it.");
	return error_hint(error, "Nor could it be revoked: better-compute join-tokens revoke %s",
			  id);
}

/* What is taken into a path, a Secret and the advice to revoke it. */
static bool check_record(const json_t *record, struct error *error)
{
	const json_t *token = json_object_get(record, "token");
	const char *id = view_text(record, "id");
	char token_id[ID_SIZE];

	if (id && id_valid(id, "jt") &&
	    (!token || json_is_null(token) ||
	     (json_is_string(token) &&
	      token_parse(json_string_value(token), TOKEN_PREFIX_JOIN, "jt", token_id) &&
	      str_equal(token_id, id))))
		return true;
	error_set(error, ERROR_UNAVAILABLE, "the answer holds no join token and its id");
	return error_hint(error, "No control plane answers so: what is between?");
}

static bool ask(struct cli *cli, json_t *body, json_t **ret_record, struct error *error)
{
	CLEANUP(tree) json_t *record = NULL;

	if (!api_call(cli->api, "POST", "/v1/join-tokens", body, &record, error))
		return false;
	if (!check_record(record, error))
		return false;
	*ret_record = TAKE(record);
	return true;
}

/* Of the control plane's refusal there is no token; of silence, and of whatever somebody else says in its
 * place, there may be. */
static bool may_be_made(const struct cli *cli, const struct error *error)
{
	return !api_was_refused(cli->api) || error->code == ERROR_UNAVAILABLE ||
	       error->code == ERROR_INTERNAL;
}

/* The key was used, for what it can't be used now. */
static bool add_key_hint(struct error *error)
{
	if (error->code == ERROR_CONFLICT && str_equal(error->field, "idempotencyKey"))
		error_hint(error, "Give the --pool, --ttl and --max-uses of then, or another "
				  "--key. If no Secret has the token of then: better-compute "
				  "join-tokens revoke TOKEN");
	return false;
}

/* The first answer was lost, as `error` says. */
static bool ask_again(struct cli *cli, const struct hosting_token *token, json_t *body,
		      json_t **ret_record, struct error *error)
{
	CLEANUP(tree) json_t *record = NULL;
	struct error second;

	if (!ask(cli, body, &record, &second))
		return error_hint(error,
				  "It may have been made: the same command with --key '%s' says "
				  "which one to revoke.",
				  token->key);
	if (view_text(record, "token")) { /* only now it was made */
		*ret_record = TAKE(record);
		return true;
	}
	if (token->own_key)
		return hosting_token_take_back(cli, view_text(record, "id"), error);
	return error_hint(error,
			  "Token %s was made under that --key, now or before. Unless a Secret has "
			  "it: better-compute join-tokens revoke %s",
			  view_text(record, "id"), view_text(record, "id"));
}

static bool made_before(const struct hosting_token *token, const char *id, struct error *error)
{
	error_set(error, ERROR_CONFLICT,
		  "the token of --key '%s' was made before (%s); its secret was shown then",
		  token->key, id);
	return error_hint(error,
			  "Apply the Secret that was written then, or revoke it "
			  "(better-compute join-tokens revoke %s) and take another --key.",
			  id);
}

bool hosting_token_mint(struct cli *cli, const struct hosting_token *token, json_t **ret_record,
			struct error *error)
{
	CLEANUP(tree)
	json_t *body = json_pack("{s:s, s:s, s:I, s:s, s:s}", "poolId", token->pool, "ttl",
				 token->ttl, "maxUses", (json_int_t)token->max_uses, "hosted",
				 "kubernetes", "idempotencyKey", token->key);
	CLEANUP(tree) json_t *record = NULL;

	if (!ask(cli, body, &record, error))
		return may_be_made(cli, error) ? ask_again(cli, token, body, ret_record, error)
					       : add_key_hint(error);
	if (!view_text(record, "token"))
		return made_before(token, view_text(record, "id"), error);
	*ret_record = TAKE(record);
	return true;
}
