#include "serve/apitls.h"

#include "control/core/timestamp.h"
#include "pki/keys.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/log.h"

#include <gnutls/x509.h>

struct apitls_pair {
	gnutls_certificate_credentials_t credentials;
	struct wall not_after;
	size_t users; /* connections, and who has it as the newest */
};

struct stamps {
	struct durable_stamp certificate, key;
};

struct look;

struct apitls {
	struct loop *loop;
	char *certificate_file, *key_file;
	struct stamps stamps; /* as the last reading began */
	struct apitls_pair *newest;
	struct loop_timer *timer;
	struct look *looking; /* NULL: none is under way */
	bool look_again;
};

/* --- a pair --- */

void apitls_give_back(struct apitls_pair *pair)
{
	if (!pair || --pair->users > 0)
		return;
	gnutls_certificate_free_credentials(pair->credentials);
	free(pair);
}

/* Out of date is as bad as unreadable: nobody would believe it. */
static bool read_times(struct apitls_pair *pair, struct wall now, struct error *error)
{
	gnutls_x509_crt_t *chain;
	unsigned length;
	int result = gnutls_certificate_get_x509_crt(pair->credentials, 0, &chain, &length);

	if (result < 0)
		return error_set(error, ERROR_INVALID_CONFIG, "the certificate: %s",
				 gnutls_strerror(result));
	pair->not_after.ms = (int64_t)gnutls_x509_crt_get_expiration_time(chain[0]) * 1000;
	for (unsigned i = 0; i < length; i++)
		gnutls_x509_crt_deinit(chain[i]);
	gnutls_free(chain);
	return pair->not_after.ms > now.ms ||
	       error_set(error, ERROR_INVALID_CONFIG, "the certificate is out of date");
}

static bool make_pair(const struct buf *certificate, const struct buf *key,
		      struct apitls_pair **ret_pair, struct error *error)
{
	struct apitls_pair *pair = mem_alloc(sizeof *pair);
	const gnutls_datum_t certificate_pem = {certificate->data, (unsigned)certificate->length};
	const gnutls_datum_t key_pem = {key->data, (unsigned)key->length};
	int result;

	pair->users = 1;
	if (gnutls_certificate_allocate_credentials(&pair->credentials) != 0)
		abort(); /* out of memory */
	result = gnutls_certificate_set_x509_key_mem(pair->credentials, &certificate_pem, &key_pem,
						     GNUTLS_X509_FMT_PEM);
	if (result < 0)
		error_set(error, ERROR_INVALID_CONFIG, "the certificate or its key: %s",
			  gnutls_strerror(result));
	else if (read_times(pair, clock_wall(), error)) {
		*ret_pair = pair;
		return true;
	}
	apitls_give_back(pair);
	return false;
}

static bool read_pair(const char *certificate_file, const char *key_file,
		      struct apitls_pair **ret_pair, struct error *error)
{
	CLEANUP(buf) struct buf certificate = {0};
	struct buf key = {0};
	bool done = durable_read(certificate_file, APITLS_MAX_PEM, &certificate, error) &&
		    durable_read_hidden(key_file, APITLS_MAX_PEM, &key, error) &&
		    make_pair(&certificate, &key, ret_pair, error);

	pki_wipe(&key);
	return done;
}

static struct stamps stamps_of(const char *certificate_file, const char *key_file)
{
	return (struct stamps){durable_stamp(certificate_file), durable_stamp(key_file)};
}

/* --- looking again --- */

struct look {
	struct apitls *tls; /* NULL: gone meanwhile; the loop's */
	char *certificate_file, *key_file;
	struct stamps before; /* as they were read last */
	bool always;          /* whatever they are now */
	/* the result */
	struct stamps stamps;
	bool changed;
	struct apitls_pair *pair; /* NULL: failed */
	struct error error;
};

static void look_work(void *arg)
{
	struct look *look = arg;

	look->stamps = stamps_of(look->certificate_file, look->key_file);
	look->changed = look->always ||
			!durable_stamp_equal(look->before.certificate, look->stamps.certificate) ||
			!durable_stamp_equal(look->before.key, look->stamps.key);
	if (look->changed &&
	    !read_pair(look->certificate_file, look->key_file, &look->pair, &look->error))
		look->pair = NULL;
}

static void take_up(struct apitls *tls, struct look *look)
{
	char end[TIMESTAMP_SIZE];

	tls->stamps = look->stamps;
	if (!look->pair) {
		log_failure(LOG_ERROR, "api-certificate.refused", &look->error,
			    "the certificate that was read last");
		return;
	}
	apitls_give_back(tls->newest);
	tls->newest = TAKE(look->pair);
	timestamp_format(end, tls->newest->not_after);
	log_info("api-certificate.read", "new connections are greeted with it", "until", end, NULL);
}

static void begin_look(struct apitls *tls, bool always);

static void look_done(void *arg)
{
	struct look *look = arg;
	struct apitls *tls = look->tls;

	if (tls) {
		tls->looking = NULL;
		if (look->changed)
			take_up(tls, look);
		if (tls->look_again)
			begin_look(tls, true);
		else
			loop_timer_start(tls->timer, APITLS_LOOK_MS);
	}
	apitls_give_back(look->pair);
	free(look->certificate_file);
	free(look->key_file);
	free(look);
}

static void begin_look(struct apitls *tls, bool always)
{
	struct look *look = mem_alloc(sizeof *look);

	*look = (struct look){
		.tls = tls,
		.certificate_file = mem_strdup(tls->certificate_file),
		.key_file = mem_strdup(tls->key_file),
		.before = tls->stamps,
		.always = always,
	};
	tls->looking = look;
	tls->look_again = false;
	loop_timer_stop(tls->timer);
	loop_work(tls->loop, look_work, look_done, look);
}

static void on_timer(void *arg)
{
	begin_look(arg, false);
}

void apitls_reload(struct apitls *tls)
{
	if (tls->looking)
		tls->look_again = true; /* what is being read may be half of it */
	else
		begin_look(tls, true);
}

/* --- greeting --- */

struct apitls_pair *apitls_greet(struct apitls *tls, gnutls_session_t session)
{
	if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->newest->credentials) != 0)
		abort(); /* out of memory */
	tls->newest->users++;
	return tls->newest;
}

/* --- life --- */

bool apitls_create(struct loop *loop, const char *certificate_file, const char *key_file,
		   struct apitls **ret_tls, struct error *error)
{
	struct apitls *tls;
	struct stamps stamps = stamps_of(certificate_file, key_file);
	struct apitls_pair *pair;

	if (!read_pair(certificate_file, key_file, &pair, error))
		return false;
	tls = mem_alloc(sizeof *tls);
	*tls = (struct apitls){
		.loop = loop,
		.certificate_file = mem_strdup(certificate_file),
		.key_file = mem_strdup(key_file),
		.stamps = stamps,
		.newest = pair,
	};
	tls->timer = loop_timer_create(loop, on_timer, tls);
	loop_timer_start(tls->timer, APITLS_LOOK_MS);
	*ret_tls = tls;
	return true;
}

void apitls_destroy(struct apitls *tls)
{
	if (!tls)
		return;
	if (tls->looking) /* it ends by itself, and finds nobody */
		tls->looking->tls = NULL;
	loop_timer_destroy(tls->timer);
	assert(tls->newest->users == 1);
	apitls_give_back(tls->newest);
	free(tls->certificate_file);
	free(tls->key_file);
	free(tls);
}
