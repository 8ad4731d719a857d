/* The API's certificate: what is refused, and what new connections are greeted with. */
#include "serve/apitls.h"

#include "lib/folder.h"
#include "pki/cert.h"
#include "sys/clock.h"
#include "sys/durable.h"

#define YEAR_MS ((int64_t)365 * 24 * 60 * 60 * 1000)

static const char *certificate_file, *key_file;

static void write_pair(const struct pki_key *of_certificate, const struct pki_key *of_key,
		       struct wall from)
{
	CLEANUP(buf) struct buf certificate = {0};
	CLEANUP(buf) struct buf key = {0};
	struct error error;

	expect_ok(cert_make_ca(of_certificate, "api", from, &certificate, &error), &error);
	expect_ok(pki_key_to_pem(of_key, &key, &error), &error);
	expect_ok(durable_replace(certificate_file, certificate.data, certificate.length, 0644,
				  &error),
		  &error);
	expect_ok(durable_replace(key_file, key.data, key.length, 0600, &error), &error);
}

static struct pki_key *make_key(void)
{
	struct pki_key *key;
	struct error error;

	expect_ok(pki_key_generate(&key, &error), &error);
	return key;
}

static int setup(void **state)
{
	static char paths[2][512];

	if (folder_make(state) != 0)
		return -1;
	str_copy(paths[0], sizeof paths[0], folder_path(state, "api.pem"));
	str_copy(paths[1], sizeof paths[1], folder_path(state, "api.key"));
	certificate_file = paths[0];
	key_file = paths[1];
	return 0;
}

static void test_what_is_wrong_is_refused(void **state UNUSED)
{
	CLEANUP(pki_key) struct pki_key *key = make_key();
	CLEANUP(pki_key) struct pki_key *other = make_key();
	struct loop *loop = loop_create();
	struct apitls *tls = NULL;
	struct error error;

	expect_error(apitls_create(loop, certificate_file, key_file, &tls, &error), &error,
		     ERROR_NOT_FOUND, "api.pem");
	write_pair(key, other, clock_wall());
	expect_error(apitls_create(loop, certificate_file, key_file, &tls, &error), &error,
		     ERROR_INVALID_CONFIG, "the certificate or its key");
	write_pair(key, key, (struct wall){clock_wall().ms - 11 * YEAR_MS});
	expect_error(apitls_create(loop, certificate_file, key_file, &tls, &error), &error,
		     ERROR_INVALID_CONFIG, "out of date");
	write_pair(key, key, clock_wall());
	expect_ok(durable_replace(certificate_file, "x", 1, 0644, &error), &error);
	expect_error(apitls_create(loop, certificate_file, key_file, &tls, &error), &error,
		     ERROR_INVALID_CONFIG, "the certificate or its key");
	assert_null(tls);
	loop_destroy(loop);
}

static struct apitls_pair *greet(struct apitls *tls)
{
	gnutls_session_t session;
	struct apitls_pair *pair;

	assert_int_equal(gnutls_init(&session, GNUTLS_SERVER), 0);
	pair = apitls_greet(tls, session);
	gnutls_deinit(session);
	return pair;
}

static void stop(void *arg)
{
	loop_stop(arg);
}

static void run_for(struct loop *loop, int64_t ms)
{
	struct loop_timer *timer = loop_timer_create(loop, stop, loop);

	loop_timer_start(timer, ms);
	loop_run(loop);
	loop_timer_destroy(timer);
}

/* Waits until something else is greeted with. */
static void wait_for_another(struct loop *loop, struct apitls *tls, const struct apitls_pair *than)
{
	for (int i = 0; i < 500; i++) {
		struct apitls_pair *now = greet(tls);

		apitls_give_back(now);
		if (now != than)
			return;
		run_for(loop, 10);
	}
	fail_msg("the new pair was not taken up");
}

/* By a word, or because the files changed; one that is wrong changes nothing, and whoever was
 * greeted before keeps what it was greeted with. */
static void test_a_new_pair_is_taken_up(void **state UNUSED)
{
	CLEANUP(pki_key) struct pki_key *key = make_key();
	CLEANUP(pki_key) struct pki_key *other = make_key();
	struct loop *loop = loop_create();
	struct apitls_pair *first, *second, *now;
	struct apitls *tls;
	struct error error;

	write_pair(key, key, clock_wall());
	expect_ok(apitls_create(loop, certificate_file, key_file, &tls, &error), &error);
	first = greet(tls);
	write_pair(key, other, clock_wall());
	apitls_reload(tls);
	run_for(loop, 100);
	now = greet(tls);
	assert_ptr_equal(now, first);
	apitls_give_back(now);
	write_pair(other, other, clock_wall());
	apitls_reload(tls);
	apitls_reload(tls); /* while it reads */
	wait_for_another(loop, tls, first);
	run_for(loop, 100);
	second = greet(tls);
	write_pair(key, key, clock_wall());
	wait_for_another(loop, tls, second);
	apitls_give_back(first);
	apitls_give_back(second);
	apitls_reload(tls);
	apitls_destroy(tls); /* while it reads */
	run_for(loop, 100);
	loop_destroy(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_is_wrong_is_refused, setup,
						folder_remove),
		cmocka_unit_test_setup_teardown(test_a_new_pair_is_taken_up, setup, folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
