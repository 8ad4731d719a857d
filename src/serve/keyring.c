#include "serve/keyring.h"

#include "base/vec.h"
#include "rpc/tls.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/log.h"

/* What one reading found. */
struct reading {
	struct pki_folder pki;
	struct rpc_tls *tls;
	struct wall not_before, not_after; /* of the gateway's certificate */
	bool trusts_old;                   /* nodes of the node CA before are let in */
	struct mono forget; /* when nobody can look at it any more; once it isn't the newest */
};

struct look;

struct keyring {
	struct loop *loop;
	char *path, *gateway_name;
	struct durable_stamp stamp; /* of the folder, as the last reading began */
	VEC(struct reading *) readings;
	struct loop_timer *timer;
	int64_t look_ms;
	struct look *looking; /* NULL: none is under way */
	loop_fn *on_change;
	void *arg;
};

/* --- reading --- */

static void reading_destroy(struct reading *reading)
{
	if (!reading)
		return;
	rpc_tls_destroy(reading->tls);
	pki_folder_deinit(&reading->pki);
	free(reading);
}

static bool make_tls(struct reading *reading, const char *gateway_name, struct wall now,
		     struct error *error)
{
	CLEANUP(buf) struct buf certificate = {0};
	CLEANUP(buf) struct buf chain = {0};
	CLEANUP(buf) struct buf authorities = {0};
	struct buf key = {0};
	struct cert_info info;
	bool done;

	pki_folder_node_cas(&reading->pki, now, &authorities);
	reading->trusts_old = pki_folder_has_old(&reading->pki, now);
	done = pki_folder_gateway(&reading->pki, gateway_name, now, &certificate, &key, error) &&
	       cert_read(buf_text(&certificate), certificate.length, &info, error);
	if (done) {
		pki_folder_gateway_chain(&reading->pki, buf_text(&certificate), &chain);
		reading->not_before = info.not_before;
		reading->not_after = info.not_after;
		done = rpc_tls_server_create(
			&(struct rpc_tls_server_options){
				.certificate_pem = buf_text(&chain),
				.key_pem = buf_text(&key),
				.client_ca_pem = buf_text(&authorities),
			},
			&reading->tls, error);
	}
	pki_wipe(&key);
	return done;
}

static bool read_folder(const char *path, const char *gateway_name, struct reading **ret_reading,
			struct error *error)
{
	struct reading *reading = mem_alloc(sizeof *reading);

	if (pki_folder_load(path, &reading->pki, error) &&
	    make_tls(reading, gateway_name, clock_wall(), error)) {
		*ret_reading = reading;
		return true;
	}
	reading_destroy(reading);
	return false;
}

static const struct reading *newest(const struct keyring *keyring)
{
	return keyring->readings.items[keyring->readings.count - 1];
}

bool keyring_create(struct loop *loop, const char *path, const char *gateway_name,
		    struct keyring **ret_keyring, struct error *error)
{
	struct keyring *keyring;
	struct reading *reading;
	struct durable_stamp stamp;

	pki_folder_tidy(path, clock_wall());
	stamp = durable_stamp(path);
	if (!read_folder(path, gateway_name, &reading, error))
		return false;
	keyring = mem_alloc(sizeof *keyring);
	keyring->loop = loop;
	keyring->path = mem_strdup(path);
	keyring->gateway_name = mem_strdup(gateway_name);
	keyring->stamp = stamp;
	*vec_push(&keyring->readings) = reading;
	*ret_keyring = keyring;
	return true;
}

/* --- looking again --- */

struct look {
	struct keyring *keyring; /* NULL: gone meanwhile; the loop's */
	char *path, *gateway_name;
	struct durable_stamp stamp;
	/* the result */
	bool ok;
	struct reading *reading;
	struct error error;
};

static void look_destroy(struct look *look)
{
	reading_destroy(look->reading);
	free(look->path);
	free(look->gateway_name);
	free(look);
}

static void look_work(void *arg)
{
	struct look *look = arg;

	look->stamp = durable_stamp(look->path);
	look->ok = read_folder(look->path, look->gateway_name, &look->reading, &look->error);
}

static void look_done(void *arg)
{
	struct look *look = arg;
	struct keyring *keyring = look->keyring;

	if (keyring && look->ok) {
		keyring->stamp = look->stamp;
		keyring->readings.items[keyring->readings.count - 1]->forget =
			mono_after(loop_now(keyring->loop), KEYRING_KEEP_MS);
		*vec_push(&keyring->readings) = TAKE(look->reading);
		log_info("keys.read", "the control plane's keys were read anew", "stage",
			 pki_stage_name(pki_folder_stage(keyring_pki(keyring), clock_wall())),
			 NULL);
		keyring->on_change(keyring->arg);
	} else if (keyring) {
		log_failure(LOG_ERROR, "keys.read", &look->error, "the keys that were read last");
	}
	if (keyring) {
		keyring->looking = NULL;
		loop_timer_start(keyring->timer, keyring->look_ms);
	}
	look_destroy(look);
}

static bool is_due(const struct keyring *keyring)
{
	const struct reading *last = newest(keyring);
	struct wall now = clock_wall();

	return !durable_stamp_equal(keyring->stamp, durable_stamp(keyring->path)) ||
	       pki_gateway_due(last->not_before, last->not_after, now) ||
	       (last->trusts_old && !pki_folder_has_old(&last->pki, now));
}

static void forget_old(struct keyring *keyring)
{
	while (keyring->readings.count > 1 &&
	       mono_until(loop_now(keyring->loop), keyring->readings.items[0]->forget) <= 0) {
		reading_destroy(keyring->readings.items[0]);
		vec_remove(&keyring->readings, 0);
	}
}

static void on_timer(void *arg)
{
	struct keyring *keyring = arg;
	struct look *look;

	forget_old(keyring);
	if (!is_due(keyring)) {
		loop_timer_start(keyring->timer, keyring->look_ms);
		return;
	}
	look = mem_alloc(sizeof *look);
	look->keyring = keyring;
	look->path = mem_strdup(keyring->path);
	look->gateway_name = mem_strdup(keyring->gateway_name);
	keyring->looking = look;
	loop_work(keyring->loop, look_work, look_done, look);
}

void keyring_watch(struct keyring *keyring, int64_t look_ms, loop_fn *on_change, void *arg)
{
	keyring->look_ms = look_ms;
	keyring->on_change = on_change;
	keyring->arg = arg;
	keyring->timer = loop_timer_create(keyring->loop, on_timer, keyring);
	loop_timer_start(keyring->timer, keyring->look_ms);
}

void keyring_destroy(struct keyring *keyring)
{
	if (!keyring)
		return;
	if (keyring->looking) /* it ends by itself, and finds nobody */
		keyring->looking->keyring = NULL;
	loop_timer_destroy(keyring->timer);
	vec_each (&keyring->readings, struct reading * *reading)
		reading_destroy(*reading);
	vec_deinit(&keyring->readings);
	free(keyring->path);
	free(keyring->gateway_name);
	free(keyring);
}

const struct pki_folder *keyring_pki(const struct keyring *keyring)
{
	return &newest(keyring)->pki;
}

struct rpc_tls *keyring_tls(const struct keyring *keyring)
{
	return newest(keyring)->tls;
}

size_t keyring_kept(const struct keyring *keyring)
{
	return keyring->readings.count;
}

struct wall keyring_gateway_end(const struct keyring *keyring)
{
	return newest(keyring)->not_after;
}
