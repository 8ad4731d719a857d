#include "node/join.h"

#include "http/client.h"
#include "node/joining.h"
#include "pki/token.h"
#include "pki/wellknown.h"
#include "proto/methods.h"
#include "rpc/rpc.h"
#include "sys/clock.h"
#include "sys/durable.h"

/* Everything of one run. */
struct join {
	const struct config *config;
	struct error *error;
	struct buf token; /* secret */
	struct pki_key *key;
	struct joining joining;
	/* one call */
	struct loop *loop;
	struct rpc_client *client;
	bool over;
	bool answered; /* it is the control plane itself that can't take it now */
	enum join_exit exit;
	struct error trust; /* of a handshake that failed on trust */
	struct buf answer;
};

static void join_deinit(struct join *join)
{
	pki_wipe(&join->token);
	pki_key_destroy(join->key);
	joining_deinit(&join->joining);
	buf_deinit(&join->answer);
}

/* --- the token's file (JOIN-8, 9, 10) --- */

/* Nothing of the text is told: a secret may be in it. */
static bool refuse_form(struct join *join, const char *path)
{
	const char *text = buf_text(&join->token), *why;

	if (str_starts(text, "\xef\xbb\xbf"))
		why = "a byte order mark comes before it";
	else if (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r')
		why = "white space comes before it";
	else if (*text == '"' || *text == '\'' || *text == '`')
		why = "it is in quotation marks";
	else if (*text == '{')
		why = "it is JSON";
	else if (!str_starts(text, TOKEN_PREFIX_JOIN "_"))
		why = "it doesn't begin with " TOKEN_PREFIX_JOIN "_";
	else if (text[strcspn(text, " \t\r\n")])
		why = "something comes after it";
	else
		why = "a part of it is missing, or changed";
	error_set(join->error, ERROR_INVALID_INPUT, "the join token: '%s' holds none: %s", path,
		  why);
	if (!join->config->in_pod)
		error_hint(join->error, "Write it there alone, as it was shown: " TOKEN_PREFIX_JOIN
					"_jt_…, 78 characters.");
	return false;
}

/* A link into a Secret volume is followed. */
static bool read_token(struct join *join, const char *path)
{
	struct buf *token = &join->token;
	char id[ID_SIZE];

	if (!durable_read_private(path, JOIN_MAX_TOKEN, token, join->error))
		return error_wrap(join->error, "the join token");
	while (token->length > 0 &&
	       (token->data[token->length - 1] == '\n' || token->data[token->length - 1] == '\r' ||
		token->data[token->length - 1] == ' '))
		token->data[--token->length] = '\0';
	if (token->length == 0 || memchr(token->data, '\0', token->length))
		return error_set(join->error, ERROR_INVALID_INPUT,
				 "the join token: '%s' holds none", path);
	return token_parse(buf_text(token), TOKEN_PREFIX_JOIN, "jt", id) || refuse_form(join, path);
}

/* --- this machine's key: made once, so that a second try is the same machine --- */

static bool load_key(struct join *join)
{
	CLEANUP(free) char *path = identity_path(join->config->data, IDENTITY_KEY);
	struct buf pem = {0};
	bool ok;

	if (join->key || identity_load_key(join->config->data, &join->key, join->error))
		return true;
	if (join->error->code != ERROR_NOT_FOUND)
		return false;
	ok = pki_key_generate(&join->key, join->error) &&
	     pki_key_to_pem(join->key, &pem, join->error) &&
	     durable_create(path, pem.data, pem.length, 0600, join->error);
	pki_wipe(&pem);
	return ok;
}

/* --- whom to ask, and under which key --- */

/* What the step before ended with, if nothing else is known of it. */
static bool mistrust(struct join *join)
{
	if (joining_is_mistrust(join->error))
		join->exit = JOIN_PINS;
	return false;
}

static bool fetch_key(struct join *join)
{
	const struct http_options options = {
		.ca_file = *join->config->ca_file ? join->config->ca_file : NULL,
		.https_only = true,
	};
	CLEANUP(http_answer) struct http_answer answer = {0};
	CLEANUP(buf) struct buf url = {0};

	joining_url(&join->joining, &url);
	if (!http_get(&options, buf_text(&url), WELLKNOWN_MAX_SIZE, JOINING_CALL_MS, &answer,
		      join->error)) {
		join->exit = JOIN_NETWORK;
		if (join->error->code == ERROR_FORBIDDEN)
			return error_hint(join->error, JOINING_AUTHORITY_HINT);
		if (join->error->code != ERROR_INVALID_INPUT)
			return false;
		join->exit = JOIN_FAILED; /* a wrong address stays wrong */
		return error_hint(join->error, "%s", JOINING_KEY_HINT);
	}
	if (answer.status != 200)
		join->exit = JOIN_NETWORK;
	return joining_take_document(&join->joining, answer.status, &answer.body, join->error) ||
	       mistrust(join);
}

/* Once, however often is asked. */
static bool find_control_plane(struct join *join)
{
	join->exit = JOIN_FAILED;
	if (join->joining.encryption_key)
		return true;
	joining_deinit(&join->joining);
	if (!joining_begin(&join->joining, join->config, join->error))
		return mistrust(join);
	return !joining_needs_key(&join->joining) || fetch_key(join);
}

/* --- the call --- */

static void end(struct join *join, enum join_exit exit)
{
	join->exit = exit;
	join->over = true;
	loop_stop(join->loop);
}

static void on_down(void *arg, const struct error *error)
{
	struct join *join = arg;

	if (error && error->code == ERROR_FORBIDDEN)
		join->trust = *error;
}

static void on_answer(void *arg, const struct rpc_status *status, const uint8_t *data,
		      size_t length)
{
	struct join *join = arg;

	buf_clear(&join->answer);
	if (status->code == RPC_OK)
		buf_add(&join->answer, data, length);
	else
		rpc_status_to_error(status, join->error);
	join->answered = status->code == RPC_UNAVAILABLE && rpc_client_is_up(join->client);
	end(join, joining_exit_of(status));
}

/* One address. The reason of a refused handshake comes with the end of the connection. */
static void call(struct join *join, const char *address)
{
	static const struct rpc_client_handlers handlers = {.on_down = on_down};
	const struct buf *request = &join->joining.request;
	struct rpc_tls *tls = NULL;

	join->over = join->answered = false;
	join->trust = (struct error){0};
	join->exit = JOIN_FAILED;
	if (!joining_tls(&join->joining, &tls, join->error))
		return;
	join->loop = loop_create();
	join->client = rpc_client_create(join->loop, address, tls, 0, &handlers, join);
	rpc_unary(join->client, METHOD_JOIN_JOIN, JOINING_CALL_MS, 0, request->data,
		  request->length, on_answer, join);
	while (!join->over)
		loop_run(join->loop);
	rpc_client_destroy(join->client);
	loop_run(join->loop); /* what closing left behind */
	loop_destroy(join->loop);
	rpc_tls_destroy(tls);
	if (join->exit != JOIN_DONE && join->trust.code != ERROR_NONE) {
		*join->error = join->trust;
		join->exit = JOIN_PINS;
	}
	if (join->exit != JOIN_DONE)
		error_wrap(join->error, "join at '%s'", address);
}

static void call_any(struct join *join)
{
	for (size_t i = 0; i < join->joining.address_count; i++) {
		call(join, join->joining.addresses[i]);
		if (join->exit != JOIN_NETWORK)
			return;
	}
}

/* By this token, or by this certificate, of which one is "" or NULL. */
static enum join_exit ask(struct join *join, const char *token, const char *certificate_pem,
			  struct identity *ret_identity)
{
	const struct buf *answer = &join->answer;

	if (!find_control_plane(join) || !load_key(join))
		return join->exit;
	if (!joining_seal(&join->joining, join->key, token, certificate_pem, join->error))
		return JOIN_FAILED;
	call_any(join);
	if (join->exit != JOIN_DONE)
		return join->exit;
	if (!joining_judge(&join->joining, join->key, answer->data, answer->length, ret_identity,
			   join->error))
		return joining_is_mistrust(join->error) ? JOIN_PINS : JOIN_FAILED;
	if (identity_check_clock(&ret_identity->certificate_pem, clock_wall(), join->error))
		return JOIN_DONE;
	identity_deinit(ret_identity);
	*ret_identity = (struct identity){0};
	return JOIN_FAILED;
}

/* --- what to do next --- */

static void say_next(const struct join *join, enum join_exit exit, const char *token_file)
{
	bool pod = join->config->in_pod;

	/* Of pins more is to be said than which of them it was. */
	if (*join->error->hint && exit != JOIN_PINS)
		return;
	switch (exit) {
	case JOIN_DONE:
		break;
	case JOIN_TOKEN_FILE:
	case JOIN_TOKEN:
		joining_hint_token(join->config, token_file, join->error);
		break;
	case JOIN_PINS:
		error_hint(join->error,
			   "Compare config.toml's pins, and [gateway] server_name, with "
			   "'better-compute pki show' on the control plane's host. Where a key was "
			   "changed, %s; where none was, somebody is in between",
			   pod ? "render the manifests anew and apply them"
			       : "put the new pin there");
		break;
	case JOIN_NETWORK:
		if (join->answered) {
			error_hint(join->error,
				   "The control plane is reached, and says this itself. %s",
				   pod ? "This container is started again until it is let in"
				       : "Wait a minute, then run this again");
			break;
		}
		error_hint(
			join->error,
			"See to it that the control plane runs and is reached from here: address, "
			"name resolution, firewalls. %s",
			pod ? "This container is started again until it is"
			    : "Then run this again");
		break;
	case JOIN_FAILED:
	case JOIN_USAGE:
		error_hint(join->error,
			   "Mend what it names, then %s; of what the control plane refuses its log "
			   "says more",
			   pod ? "this container goes on when it is started again"
			       : "run this again");
		break;
	}
}

/* --- all of it --- */

/* Before anything is spent for what couldn't be kept then. */
static bool check_writable(const struct join *join)
{
	static const char *const names[] = {IDENTITY_KEY, IDENTITY_CERTIFICATE, IDENTITY_FILE};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(free) char *path = identity_path(join->config->data, names[i]);

		if (!durable_check_writable(path, join->error))
			return false;
	}
	return true;
}

/* The key proves who this machine is. `why` is what a token was good for; NULL: none was given. */
static enum join_exit renew(struct join *join, const struct identity *before,
			    const char *token_file, const struct error *why,
			    enum join_exit why_exit, struct identity *ret_identity)
{
	enum join_exit exit = ask(join, "", buf_text(&before->certificate_pem), ret_identity);

	if (exit != JOIN_TOKEN)
		return exit;
	if (why)
		error_wrap(join->error, "%s; nor can '%s' be renewed by its key", why->what,
			   before->node_id);
	else
		error_wrap(join->error, "'%s' can't be renewed by its key", before->node_id);
	joining_hint_token(join->config, token_file, join->error);
	return why ? why_exit : exit;
}

static enum join_exit by_token(struct join *join, const char *token_file,
			       const struct identity *before, struct identity *ret_identity)
{
	bool has_key = before->certificate_pem.length > 0;
	struct error why;
	enum join_exit exit = JOIN_TOKEN_FILE;

	if (read_token(join, token_file)) {
		exit = ask(join, buf_text(&join->token), NULL, ret_identity);
		if (exit != JOIN_TOKEN || !has_key)
			return exit;
	} else if (join->error->code != ERROR_NOT_FOUND || !has_key) {
		return exit;
	}
	why = *join->error;
	return renew(join, before, token_file, &why, exit, ret_identity);
}

static enum join_exit run(struct join *join, const char *token_file, const struct identity *before,
			  struct identity *ret_identity)
{
	if (!check_writable(join))
		return JOIN_FAILED;
	if (token_file)
		return by_token(join, token_file, before, ret_identity);
	if (before->certificate_pem.length > 0)
		return renew(join, before, NULL, NULL, JOIN_TOKEN, ret_identity);
	error_set(join->error, ERROR_INVALID_INPUT, "this machine has not joined");
	error_hint(join->error, "Give the join token with --token-file FILE.");
	return JOIN_USAGE;
}

static bool keep(const struct join *join, const struct identity *before, struct identity *identity)
{
	identity->fresh = before->fresh || !str_equal(identity->node_id, before->node_id);
	if (!identity->fresh) {
		str_copy(identity->site, sizeof identity->site, before->site);
		str_copy(identity->pool, sizeof identity->pool, before->pool);
	}
	return identity_store(join->config->data, identity, join->error);
}

enum join_exit join_run(const struct config *config, const char *token_file,
			struct identity *ret_identity, bool *ret_already, struct error *error)
{
	struct join join = {.config = config, .error = error};
	CLEANUP(identity) struct identity identity = {0};
	CLEANUP(identity) struct identity before = {0};
	struct durable_lock *lock = NULL;
	CLEANUP(free) char *lock_path = identity_path(config->data, "join.lock");
	enum join_exit exit = JOIN_FAILED;
	struct error ignored; /* without a rest of it the machine joins by a token */
	bool joined;

	if (!durable_make_folder(config->data, 0700, error) ||
	    !durable_lock_take(lock_path, &lock, error)) {
		say_next(&join, exit, token_file);
		return exit;
	}
	durable_tidy(lock_path, clock_wall());
	joined = identity_load(config->data, &before, error);
	*ret_already = joined && !identity_expired(&before, clock_wall());
	if (*ret_already) {
		*ret_identity = before;
		before = (struct identity){0};
		exit = JOIN_DONE;
	} else if (joined || error->code == ERROR_NOT_FOUND) {
		if (!joined && !identity_load_rest(config->data, &before, &ignored))
			before = (struct identity){0};
		exit = run(&join, token_file, &before, &identity);
		if (exit == JOIN_DONE && !keep(&join, &before, &identity))
			exit = JOIN_FAILED;
		if (exit == JOIN_DONE) {
			*ret_identity = identity;
			identity = (struct identity){0};
		}
	}
	say_next(&join, exit, token_file);
	join_deinit(&join);
	durable_lock_destroy(lock);
	return exit;
}
