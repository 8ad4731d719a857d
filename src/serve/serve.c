#include "serve/serve.h"

#include "control/control.h"
#include "pki/cert.h"
#include "pki/folder.h"
#include "pki/seal.h"
#include "serve/apitls.h"
#include "serve/gateway.h"
#include "serve/keyring.h"
#include "serve/listener.h"
#include "serve/metrics.h"
#include "serve/openapi.h"
#include "serve/passes.h"
#include "serve/proxies.h"
#include "serve/workers.h"
#include "store/store.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "sys/random.h"
#include "text/tree.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define PATH_SIZE 4096

/* A database on its way; the thread that opens it sees nothing else. */
struct opening {
	struct serve *serve; /* NULL: gone meanwhile; the loop's */
	char *url;
	bool migrate;
	atomic_bool given_up;
	struct store *store; /* the result, when it isn't given up or failed */
	bool ok;
	struct error error;
};

struct serve {
	struct loop *loop;
	const struct serve_options *options; /* until it is ready */
	struct serve_handlers handlers;
	struct opening *opening; /* NULL: done */
	struct metrics *metrics;
	struct store *store;
	struct keyring *keyring;
	struct workers *workers;
	struct join_service *join;
	struct gateway *gateway;
	struct passes *passes;
	struct apitls *tls; /* NULL: plain HTTP */
	struct listener *listener;
	struct router router;
	char *gateway_told; /* HOST:PORT, as nodes are told */
	char *gateway_name;
	char *secret_key_file, *pki_folder;
	char *well_known, *openapi;
	struct loop_timer *drain_timer, *delay_timer;
	int drains; /* still to come */
	int64_t drain_delay_ms;
	loop_fn *on_drained;
	void *drained_arg;
};

/* --- start --- */

bool serve_database_url(const char *home, const char *database, char **ret_url, struct error *error)
{
	char url[PATH_SIZE];

	if (database) {
		*ret_url = mem_strdup(database);
		return true;
	}
	if (snprintf(url, sizeof url, "sqlite:%s/better-compute.db", home) >= PATH_SIZE)
		return error_set(error, ERROR_INVALID_INPUT, "the home folder's path is too long");
	*ret_url = mem_strdup(url);
	return true;
}

void serve_forget_url(char *url)
{
	explicit_bzero(url, strlen(url));
	free(url);
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

static bool another_key(struct control *control, void *arg, struct error *error)
{
	return control_another_key(control, arg, error);
}

bool serve_init(const struct serve_options *options, char ret_key[SERVE_KEY_SIZE],
		struct error *error)
{
	struct store *store;
	char path[PATH_SIZE];
	char *url;
	bool done;

	static_assert(SERVE_KEY_SIZE == CONTROL_KEY_SIZE, "one size of keys");
	if (!pki_path(options, path, error))
		return false;
	if (!durable_stamp(path).exists && !pki_folder_init(path, clock_wall(), error))
		return false;
	if (!serve_database_url(options->home, options->database, &url, error))
		return false;
	done = store_open_as(url, options->migrate ? STORE_MIGRATE : STORE_MIGRATE_ASKED, &store,
			     error);
	serve_forget_url(url);
	if (!done)
		return false;
	done = with_control(store, first_key, ret_key, error) &&
	       (!options->another_key || ret_key[0] ||
		with_control(store, another_key, ret_key, error));
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

	if (!pki_path(options, path, error))
		return false;
	if (keyring_create(serve->loop, path, options->gateway_name, &serve->keyring, error)) {
		serve->pki_folder = mem_strdup(path);
		return true;
	}
	if (error->code == ERROR_NOT_FOUND)
		error_hint(error,
			   "Run 'better-compute serve --init --home %s' first; for a database "
			   "that has nodes, copy its control plane's folder pki there instead.",
			   options->home);
	return false;
}

static bool add_jwk(json_t *join, const char *field, const struct pki_key *key, struct error *error)
{
	CLEANUP(tree) json_t *jwk = NULL;
	CLEANUP(buf) struct buf text = {0};

	if (!pki_key_to_jwk(key, PKI_USE_ENCRYPTION, false, &text, error) ||
	    !tree_parse(text.data, text.length, PKI_JWK_MAX, "join key", &jwk, error))
		return false;
	tree_set(join, field, json_incref(jwk));
	return true;
}

/* The document of JOIN-39. It carries no trust: what is in it is checked against pins. */
static bool make_well_known(struct serve *serve, struct error *error)
{
	const struct pki_folder *pki = keyring_pki(serve->keyring);
	CLEANUP(tree) json_t *document = json_object();
	CLEANUP(buf) struct buf text = {0};
	json_t *gateway = json_object(), *join = json_object(), *shown = json_object();
	struct pki_pin_texts texts;
	char url[600], kid[PKI_KEY_ID_SIZE];

	snprintf(url, sizeof url, "https://%.500s", serve->gateway_told);
	tree_set(document, "version", json_integer(1));
	tree_set(gateway, "url", tree_string(url));
	tree_set(gateway, "serverName", tree_string(serve->gateway_name));
	tree_set(document, "gateway", gateway);
	tree_set(document, "join", join);
	tree_set(join, "url", tree_string(url));
	if (!add_jwk(join, "encryptionJwk", pki->join_encryption_key, error) ||
	    (pki->next &&
	     !add_jwk(join, "nextEncryptionJwk", pki->next->join_encryption_key, error)))
		return false;
	pki_key_id(pki->join_signing_key, kid);
	tree_set(join, "signingKid", tree_string(kid));
	pki_folder_pin_texts(pki, &texts);
	tree_set(document, "pins", shown); /* to find mistakes by; nobody pins them */
	tree_set(shown, "caPins", tree_string(texts.gateway_ca));
	tree_set(shown, "signingPins", tree_string(texts.join_signing));
	tree_dump_pretty(&text, document);
	free(serve->well_known); /* answers copy it, on this thread */
	serve->well_known = buf_take_text(&text);
	serve->router.well_known = serve->well_known;
	return true;
}

/* New connections and new jobs see the new keys; what is there goes on. */
static void on_keys_changed(void *arg)
{
	struct serve *serve = arg;
	struct error error;

	gateway_set_keys(serve->gateway, keyring_pki(serve->keyring), keyring_tls(serve->keyring));
	join_service_set_pki(serve->join, keyring_pki(serve->keyring));
	if (!make_well_known(serve, &error))
		log_failure(LOG_ERROR, "keys.tell", &error, "the document as it was before");
}

static void describe_api(struct serve *serve)
{
	struct buf text = {0};

	openapi_write(&text);
	serve->openapi = buf_take_text(&text);
	serve->router.openapi = serve->openapi;
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
	serve->join = join_service_create(serve->loop, serve->workers, keyring_pki(serve->keyring));
	serve->gateway = gateway_create(serve->loop, serve->workers, keyring_pki(serve->keyring),
					serve->join, &handlers);
	serve->passes = passes_create(serve->loop, serve->workers, serve->gateway, end);
	if (!gateway_listen(serve->gateway, options->gateway_listen, keyring_tls(serve->keyring),
			    error))
		return error_wrap(error, "the gateway");
	serve->gateway_told =
		mem_strdup(options->gateway_address ? options->gateway_address
						    : gateway_address(serve->gateway));
	join_service_tell(serve->join, serve->gateway_told, serve->gateway_name);
	return true;
}

/* --- metrics --- */

static const char *state_name(enum router_state state)
{
	switch (state) {
	case ROUTER_READY:
		return "ready";
	case ROUTER_STARTING:
		return "starting";
	case ROUTER_DRAINING:
		return "draining";
	}
	abort();
}

static struct wall end_of(const char *pem)
{
	struct cert_info info;
	struct error ignored; /* it was checked when it was loaded */

	return cert_read(pem, strlen(pem), &info, &ignored) ? info.not_after : (struct wall){0};
}

static void add_metrics(void *arg, struct buf *text)
{
	const struct serve *serve = arg;
	const struct passes_figures passes = passes_figures(serve->passes);

	metrics_add_process(
		serve->metrics,
		&(struct metrics_process){
			.state = state_name(serve->router.state),
			.streams = gateway_streams(serve->gateway),
			.jobs = workers_under_way(serve->workers),
			.jobs_max = WORKERS_MAX_JOBS,
			.outbox_end = passes.outbox_end,
			.passes = passes.ticks,
			.failures = passes.failed_ticks,
			.serving_ca_end = end_of(keyring_pki(serve->keyring)->serving_ca_pem),
			.node_ca_end = end_of(keyring_pki(serve->keyring)->node_ca_pem),
			.gateway_end = keyring_gateway_end(serve->keyring),
			.store = serve->store,
		},
		text);
}

static struct ratelimit_rate rate_of(int64_t calls)
{
	return (struct ratelimit_rate){.per_second = calls, .burst = 2 * calls};
}

static bool start_api(struct serve *serve, const struct serve_options *options, struct error *error)
{
	struct proxies proxies = {0};
	bool done;

	for (size_t i = 0; i < options->trusted_proxies_count; i++) {
		if (!proxies_add(&proxies, options->trusted_proxies[i], error))
			return error_wrap(error, "the trusted proxies");
	}
	done = !options->tls_certificate_file ||
	       apitls_create(serve->loop, options->tls_certificate_file, options->tls_key_file,
			     &serve->tls, error);
	done = done &&
	       listener_create(serve->loop,
			       &(struct listener_options){
				       .address = options->listen,
				       .tls = serve->tls,
				       .proxies = &proxies,
				       .key_rate = rate_of(options->key_calls),
				       .address_rate = rate_of(options->address_calls),
				       .metrics = serve->metrics,
				       .add_metrics = add_metrics,
			       },
			       &serve->router, NULL, on_change, serve, &serve->listener, error);
	return done || error_wrap(error, "the API");
}

/* --- the database, and what waits for it --- */

static void opening_destroy(struct opening *opening)
{
	if (!opening)
		return;
	store_destroy(opening->store);
	serve_forget_url(opening->url);
	free(opening);
}

/* A database that can't be reached may come yet; any other failure stays. */
static void open_work(void *arg)
{
	struct opening *opening = arg;
	const struct timespec pause = {.tv_sec = SERVE_RETRY_MS / 1000};

	for (int tries = 1; !opening->given_up; tries++) {
		opening->ok = store_open_as(opening->url,
					    opening->migrate ? STORE_MIGRATE : STORE_MIGRATE_ASKED,
					    &opening->store, &opening->error);
		if (opening->ok || opening->error.code != ERROR_UNAVAILABLE)
			return;
		if (tries == 1)
			log_failure(LOG_WARN, "database.wait", &opening->error,
				    "it is tried again each second");
		nanosleep(&pause, NULL);
	}
}

static void failed(struct serve *serve, const struct error *error)
{
	serve->handlers.on_failed(serve->handlers.arg, error);
}

/* Workers read the file when they need it; one that is wrong is told of at once. */
static bool tell_files(struct serve *serve, const struct serve_options *options,
		       struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;

	if (options->secret_key_file) {
		durable_tidy(options->secret_key_file, clock_wall());
		if (!seal_keys_load(options->secret_key_file, &keys, error))
			return false;
		serve->secret_key_file = mem_strdup(options->secret_key_file);
	}
	workers_set_files(serve->workers, serve->secret_key_file, serve->pki_folder);
	return true;
}

static bool start_rest(struct serve *serve, struct error *error)
{
	const struct serve_options *options = serve->options;
	char replica[ID_SIZE];

	random_id(replica, "rep", clock_wall());
	if (!workers_create(serve->loop, serve->store, replica, options->workers, &serve->workers,
			    error) ||
	    !tell_files(serve, options, error) || !start_gateway(serve, options, error) ||
	    !make_well_known(serve, error))
		return false;
	keyring_watch(serve->keyring, KEYRING_LOOK_MS, on_keys_changed, serve);
	listener_set_workers(serve->listener, serve->workers);
	serve->router.state = ROUTER_READY;
	return true;
}

static void open_done(void *arg)
{
	struct opening *opening = arg;
	struct serve *serve = opening->serve;
	struct error error;

	if (serve)
		serve->opening = NULL;
	if (!serve || opening->given_up) {
		/* Nobody waits for it any more. */
	} else if (!opening->ok) {
		failed(serve, &opening->error);
	} else {
		serve->store = TAKE(opening->store);
		if (start_rest(serve, &error))
			serve->handlers.on_ready(serve->handlers.arg);
		else
			failed(serve, &error);
	}
	opening_destroy(opening);
}

static bool start_opening(struct serve *serve, struct error *error)
{
	struct opening *opening;
	char *url;

	if (!serve_database_url(serve->options->home, serve->options->database, &url, error))
		return false;
	opening = mem_alloc(sizeof *opening);
	opening->serve = serve;
	opening->url = url;
	opening->migrate = serve->options->migrate;
	serve->opening = opening;
	loop_work(serve->loop, open_work, open_done, opening);
	return true;
}

bool serve_create(struct loop *loop, const struct serve_options *options,
		  const struct serve_handlers *handlers, struct serve **ret_serve,
		  struct error *error)
{
	struct serve *serve = mem_alloc(sizeof *serve);

	serve->loop = loop;
	serve->options = options;
	serve->handlers = *handlers;
	serve->drain_delay_ms = options->drain_delay_ms;
	serve->router.state = ROUTER_STARTING;
	serve->metrics = metrics_create();
	describe_api(serve);
	if (load_pki(serve, options, error) && start_api(serve, options, error) &&
	    start_opening(serve, error)) {
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

void serve_reload(struct serve *serve)
{
	if (serve->tls)
		apitls_reload(serve->tls);
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

static void drain_now(void *arg)
{
	struct serve *serve = arg;

	loop_timer_start(serve->drain_timer, SERVE_DRAIN_MS);
	serve->drains = 3;
	listener_drain(serve->listener, on_one_drained, serve);
	gateway_drain(serve->gateway, on_one_drained, serve);
	passes_drain(serve->passes, on_one_drained, serve);
}

void serve_drain(struct serve *serve, loop_fn *fn, void *arg)
{
	bool ready = serve->router.state == ROUTER_READY;

	serve->on_drained = fn;
	serve->drained_arg = arg;
	serve->drain_timer = loop_timer_create(serve->loop, on_drain_timeout, serve);
	serve->delay_timer = loop_timer_create(serve->loop, drain_now, serve);
	if (!ready) {
		if (serve->opening)
			serve->opening->given_up = true;
		serve->drains = 1;
		loop_timer_start(serve->drain_timer, SERVE_DRAIN_MS);
		listener_drain(serve->listener, on_one_drained, serve);
		return;
	}
	serve->router.state = ROUTER_DRAINING;
	listener_turn_away(serve->listener);
	loop_timer_start(serve->delay_timer, serve->drain_delay_ms);
}

void serve_destroy(struct serve *serve)
{
	if (!serve)
		return;
	if (serve->opening) { /* it ends by itself, and finds nobody */
		serve->opening->given_up = true;
		serve->opening->serve = NULL;
	}
	if (serve->store)
		store_hurry(serve->store);
	workers_destroy(serve->workers); /* first: its jobs come back to what follows */
	loop_timer_destroy(serve->drain_timer);
	loop_timer_destroy(serve->delay_timer);
	listener_destroy(serve->listener);
	apitls_destroy(serve->tls);
	passes_destroy(serve->passes);
	gateway_destroy(serve->gateway);
	join_service_destroy(serve->join);
	keyring_destroy(serve->keyring);
	free(serve->pki_folder);
	store_destroy(serve->store);
	metrics_destroy(serve->metrics);
	free(serve->gateway_told);
	free(serve->gateway_name);
	free(serve->secret_key_file);
	free(serve->well_known);
	free(serve->openapi);
	free(serve);
}
