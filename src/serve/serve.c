#include "serve/serve.h"

#include "control/control.h"
#include "pki/folder.h"
#include "rpc/tls.h"
#include "serve/gateway.h"
#include "serve/listener.h"
#include "serve/passes.h"
#include "serve/workers.h"
#include "store/store.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "sys/random.h"
#include "text/tree.h"

#include <stdio.h>

#define PATH_SIZE 4096

struct serve {
	struct loop *loop;
	struct store *store;
	struct pki_folder pki;
	struct workers *workers;
	struct join_service *join;
	struct gateway *gateway;
	struct rpc_tls *gateway_tls;
	struct passes *passes;
	struct listener *listener;
	struct router router;
	char *gateway_told; /* HOST:PORT, as nodes are told */
	char *gateway_name;
	char *well_known;
	struct loop_timer *drain_timer;
	int drains; /* still to come */
	loop_fn *on_drained;
	void *drained_arg;
};

/* --- start --- */

static bool open_database(const struct serve_options *options, struct store **ret_store,
			  struct error *error)
{
	char url[PATH_SIZE];

	if (options->database)
		return store_open(options->database, ret_store, error);
	if (snprintf(url, sizeof url, "sqlite:%s/better-compute.db", options->home) >= PATH_SIZE)
		return error_set(error, ERROR_INVALID_INPUT, "the home folder's path is too long");
	return store_open(url, ret_store, error);
}

static bool pki_path(const struct serve_options *options, char out[PATH_SIZE], struct error *error)
{
	if (snprintf(out, PATH_SIZE, "%s/pki", options->home) < PATH_SIZE)
		return true;
	return error_set(error, ERROR_INVALID_INPUT, "the home folder's path is too long");
}

/* Runs a control function before there are workers. */
static bool with_control(struct store *store, bool (*fn)(struct control *, void *, struct error *),
			 void *arg, struct error *error)
{
	struct control control = {0};
	bool done;

	if (!store_connect(store, &control.connection, error))
		return false;
	done = fn(&control, arg, error);
	store_disconnect(control.connection);
	return done;
}

static bool first_key(struct control *control, void *arg, struct error *error)
{
	return control_init(control, arg, error);
}

bool serve_init(const struct serve_options *options, char ret_key[SERVE_KEY_SIZE],
		struct error *error)
{
	struct store *store;
	char path[PATH_SIZE];
	bool done;

	static_assert(SERVE_KEY_SIZE == CONTROL_KEY_SIZE, "one size of keys");
	if (!pki_path(options, path, error))
		return false;
	if (!durable_stamp(path).exists && !pki_folder_init(path, clock_wall(), error))
		return false;
	if (!open_database(options, &store, error))
		return false;
	done = with_control(store, first_key, ret_key, error);
	store_destroy(store);
	return done;
}

static bool outbox_end(struct control *control, void *arg, struct error *error)
{
	struct control_outbox outbox = {0};
	int64_t *ret_end = arg;

	if (!control_outbox_poll(control, -1, &outbox, error))
		return false;
	*ret_end = outbox.last;
	control_outbox_deinit(&outbox);
	return true;
}

static bool load_pki(struct serve *serve, const struct serve_options *options, struct error *error)
{
	char path[PATH_SIZE];
	CLEANUP(buf) struct buf certificate = {0};
	struct buf key = {0};
	bool done;

	if (!pki_path(options, path, error))
		return false;
	if (!pki_folder_load(path, &serve->pki, error)) {
		if (error->code == ERROR_NOT_FOUND)
			error_hint(error, "Run 'better-compute serve --init --home %s' first.",
				   options->home);
		return false;
	}
	done = pki_folder_gateway(&serve->pki, options->gateway_name, clock_wall(), &certificate,
				  &key, error) &&
	       rpc_tls_server_create(
		       &(struct rpc_tls_server_options){
			       .certificate_pem = buf_text(&certificate),
			       .key_pem = buf_text(&key),
			       .client_ca_pem = serve->pki.node_ca_pem,
		       },
		       &serve->gateway_tls, error);
	pki_wipe(&key);
	return done;
}

/* The document of JOIN-39. It carries no trust: what is in it is checked against pins. */
static bool make_well_known(struct serve *serve, const struct serve_options *options,
			    struct error *error)
{
	CLEANUP(tree) json_t *document = json_object();
	CLEANUP(tree) json_t *jwk = NULL;
	CLEANUP(buf) struct buf text = {0};
	json_t *gateway = json_object(), *join = json_object();
	char url[600], kid[PKI_KEY_ID_SIZE];

	snprintf(url, sizeof url, "https://%.500s", serve->gateway_told);
	tree_set(document, "version", json_integer(1));
	tree_set(gateway, "url", tree_string(url));
	tree_set(gateway, "serverName", tree_string(options->gateway_name));
	tree_set(document, "gateway", gateway);
	tree_set(document, "join", join);
	tree_set(join, "url", tree_string(url));
	if (!pki_key_to_jwk(serve->pki.join_encryption_key, PKI_USE_ENCRYPTION, false, &text,
			    error) ||
	    !tree_parse(text.data, text.length, PKI_JWK_MAX, "join key", &jwk, error))
		return false;
	tree_set(join, "encryptionJwk", json_incref(jwk));
	pki_key_id(serve->pki.join_signing_key, kid);
	tree_set(join, "signingKid", tree_string(kid));
	buf_clear(&text);
	tree_dump_pretty(&text, document);
	serve->well_known = buf_take_text(&text);
	serve->router.well_known = serve->well_known;
	return true;
}

static void on_look_again(void *arg)
{
	struct serve *serve = arg;

	passes_tick(serve->passes);
	passes_look(serve->passes);
}

static void on_change(void *arg)
{
	struct serve *serve = arg;

	passes_look(serve->passes);
}

static bool start_gateway(struct serve *serve, const struct serve_options *options,
			  struct error *error)
{
	const struct gateway_handlers handlers = {on_look_again, serve};
	int64_t end;

	/* Before the first stream: what the outbox names later is news to it. */
	if (!with_control(serve->store, outbox_end, &end, error))
		return false;
	serve->gateway_name = mem_strdup(options->gateway_name);
	serve->join = join_service_create(serve->loop, serve->workers, &serve->pki);
	serve->gateway =
		gateway_create(serve->loop, serve->workers, &serve->pki, serve->join, &handlers);
	serve->passes = passes_create(serve->loop, serve->workers, serve->gateway, end);
	if (!gateway_listen(serve->gateway, options->gateway_listen, serve->gateway_tls, error))
		return error_wrap(error, "the gateway");
	serve->gateway_told =
		mem_strdup(options->gateway_address ? options->gateway_address
						    : gateway_address(serve->gateway));
	join_service_tell(serve->join, serve->gateway_told, serve->gateway_name);
	return true;
}

static bool start_api(struct serve *serve, const struct serve_options *options, struct error *error)
{
	CLEANUP(buf) struct buf certificate = {0};
	struct buf key = {0};
	bool tls = options->tls_certificate_file != NULL, done;

	done = !tls ||
	       (durable_read(options->tls_certificate_file, SERVE_MAX_PEM, &certificate, error) &&
		durable_read(options->tls_key_file, SERVE_MAX_PEM, &key, error));
	done = done &&
	       listener_create(serve->loop,
			       &(struct listener_options){
				       .address = options->listen,
				       .certificate_pem = tls ? buf_text(&certificate) : NULL,
				       .key_pem = tls ? buf_text(&key) : NULL,
			       },
			       &serve->router, serve->workers, on_change, serve, &serve->listener,
			       error);
	pki_wipe(&key);
	return done || error_wrap(error, "the API");
}

bool serve_create(struct loop *loop, const struct serve_options *options, struct serve **ret_serve,
		  struct error *error)
{
	struct serve *serve = mem_alloc(sizeof *serve);
	char replica[ID_SIZE];

	serve->loop = loop;
	random_id(replica, "rep", clock_wall());
	if (open_database(options, &serve->store, error) && load_pki(serve, options, error) &&
	    workers_create(loop, serve->store, replica, options->workers, &serve->workers, error) &&
	    start_gateway(serve, options, error) && make_well_known(serve, options, error) &&
	    start_api(serve, options, error)) {
		*ret_serve = serve;
		return true;
	}
	serve_destroy(serve);
	return false;
}

const char *serve_api_address(const struct serve *serve)
{
	return listener_address(serve->listener);
}

const char *serve_gateway_address(const struct serve *serve)
{
	return gateway_address(serve->gateway);
}

/* --- stop --- */

static void drained(struct serve *serve)
{
	loop_fn *fn = serve->on_drained;

	loop_timer_stop(serve->drain_timer);
	serve->on_drained = NULL;
	if (fn)
		fn(serve->drained_arg);
}

static void on_one_drained(void *arg)
{
	struct serve *serve = arg;

	if (--serve->drains == 0)
		drained(serve);
}

static void on_drain_timeout(void *arg)
{
	log_warn("serve.drain", "what is under way takes too long", NULL);
	drained(arg);
}

void serve_drain(struct serve *serve, loop_fn *fn, void *arg)
{
	serve->on_drained = fn;
	serve->drained_arg = arg;
	serve->drains = 3;
	serve->drain_timer = loop_timer_create(serve->loop, on_drain_timeout, serve);
	loop_timer_start(serve->drain_timer, SERVE_DRAIN_MS);
	listener_drain(serve->listener, on_one_drained, serve);
	gateway_drain(serve->gateway, on_one_drained, serve);
	passes_drain(serve->passes, on_one_drained, serve);
}

void serve_destroy(struct serve *serve)
{
	if (!serve)
		return;
	workers_destroy(serve->workers); /* first: its jobs come back to what follows */
	loop_timer_destroy(serve->drain_timer);
	listener_destroy(serve->listener);
	passes_destroy(serve->passes);
	gateway_destroy(serve->gateway);
	join_service_destroy(serve->join);
	rpc_tls_destroy(serve->gateway_tls);
	pki_folder_deinit(&serve->pki);
	store_destroy(serve->store);
	free(serve->gateway_told);
	free(serve->gateway_name);
	free(serve->well_known);
	free(serve);
}
