/* As whom the client asks: certificates, tokens, programs, and kubeconfigs that change under it. */
#include "client_world.h"

#include "lib/folder.h"
#include "sys/clock.h"

#include <openssl/pem.h>
#include <sys/stat.h>

static void test_a_rotated_certificate_is_used_without_a_restart(void **state)
{
	begin(state, &FINE, 1);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);
	call(kube_get(NODE));
	write_pair("pair.pem", &world.second, &world.second);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);

	const char *seen = finish();
	assert_int_equal(count_of(seen, "#0 CN=system:node:first\nGET /api/v1/nodes/n0 HTTP/1.1"),
			 2); /* one connection */
	assert_int_equal(count_of(seen, "#1 CN=system:node:second\n"), 1);
	assert_non_null(strstr(seen, "\r\nHost: 127.0.0.1:"));
	fake_api_destroy(world.api);
}

static struct loop_timer *later;

static void mend_pair(void *arg UNUSED)
{
	write_file(folder_path(world.folder, "key.pem"), world.second.key);
}

static void test_a_torn_pair_is_tried_again(void **state)
{
	static const struct fake_api_answer MADE = {.status = 201, .echo = true};

	begin(state, &MADE, 1);
	write_kubeconfig("", "client-certificate: certificate.pem, client-key: key.pem");
	write_file(folder_path(state, "certificate.pem"), world.second.certificate);
	write_file(folder_path(state, "key.pem"), world.first.key);
	later = loop_timer_create(world.loop, mend_pair, NULL);
	loop_timer_start(later, 50);
	call(create_slice());
	assert_int_equal(world.reason, KUBE_DONE);
	loop_timer_destroy(later);
	assert_int_equal(count_of(finish(), "CN=system:node:second\nPOST "), 1);
	fake_api_destroy(world.api);
}

static void test_a_pair_that_stays_torn_says_so(void **state)
{
	begin(state, &FINE, 1);
	write_kubeconfig("", "client-certificate: certificate.pem, client-key: key.pem");
	write_file(folder_path(state, "certificate.pem"), world.second.certificate);
	write_file(folder_path(state, "key.pem"), world.first.key);
	send_as(kube_get(NODE), KUBE_NORMAL, 1000, NULL);
	loop_run(world.loop);
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_int_equal(world.error.code, ERROR_INVALID_CONFIG);
	assert_false(world.unknown);
	assert_null(strstr(world.error.what, "BEGIN"));
	assert_string_equal(finish(), "");
	fake_api_destroy(world.api);
}

/* OpenSSL would ask for the password, and wait for it. */
static void test_an_encrypted_key_is_refused(void **state)
{
	CLEANUP(buf) struct buf key = {0};
	BIO *bio = BIO_new(BIO_s_mem()), *plain = BIO_new_mem_buf(world.first.key, -1);
	EVP_PKEY *pkey = PEM_read_bio_PrivateKey(plain, NULL, NULL, NULL);
	char *text;

	assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, pkey, EVP_aes_128_cbc(), "secret", 6,
						       NULL, NULL),
			 1);
	long length = BIO_get_mem_data(bio, &text);
	buf_add(&key, text, (size_t)length);
	begin(state, &FINE, 1);
	write_kubeconfig("", "client-certificate: pair.pem, client-key: key.pem");
	write_file(folder_path(state, "key.pem"), buf_text(&key));
	send_as(kube_get(NODE), KUBE_NORMAL, 50, NULL);
	loop_run(world.loop);
	assert_int_equal(world.error.code, ERROR_INVALID_CONFIG);
	assert_string_equal(finish(), "");
	fake_api_destroy(world.api);
	EVP_PKEY_free(pkey);
	BIO_free(bio);
	BIO_free(plain);
}

/* Whoever reads it may have several clusters. */
static void assert_server_named(const char *what)
{
	char server[64];

	snprintf(server, sizeof server, "'https://127.0.0.1:%d", fake_api_port(world.api));
	assert_non_null(strstr(world.error.what, server));
	assert_non_null(strstr(world.error.what, what));
}

static void test_401_renews_once(void **state)
{
	static const struct fake_api_answer NEVER = {.status = 401, .body = "{}"};
	const struct fake_api_answer answers[] = {FINE, NEVER, FINE, NEVER};

	begin(state, answers, 4);
	call(kube_get(NODE));
	call(kube_get(NODE)); /* the old connection's identity has run out */
	assert_int_equal(world.reason, KUBE_DONE);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_UNAUTHORIZED);
	const char *seen = finish();
	assert_server_named("get node 'n0': the API server says 401");
	assert_int_equal(count_of(seen, "GET "), 5);
	assert_non_null(strstr(seen, "#1 "));
	fake_api_destroy(world.api);
}

static void test_tokens_are_read_anew(void **state)
{
	begin(state, &FINE, 1);
	write_kubeconfig("", "tokenFile: token");
	write_file(folder_path(state, "token"), " one\n");
	call(kube_get(NODE));
	write_file(folder_path(state, "token"), "two\n");
	call(kube_get(NODE));
	write_file(folder_path(state, "token"), "th\nree");
	send_as(kube_get(NODE), KUBE_NORMAL, 100, NULL);
	loop_run(world.loop);
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_null(strstr(world.error.what, "ree"));
	const char *seen = finish();
	assert_non_null(strstr(seen, "\r\nAuthorization: Bearer one\r\n"));
	assert_non_null(strstr(seen, "\r\nAuthorization: Bearer two\r\n"));
	assert_int_equal(count_of(seen, "GET "), 2);
	fake_api_destroy(world.api);
}

/* --- credential programs --- */

#define EXEC "exec: {command: ./program, apiVersion: client.authentication.k8s.io/v1, args: [one]}"

static void write_program(const char *script)
{
	char text[2048];

	snprintf(text, sizeof text, "#!/bin/sh\ncd %s\necho run >>runs\n%s\n",
		 (const char *)*world.folder, script);
	write_file(folder_path(world.folder, "program"), text);
	chmod(folder_path(world.folder, "program"), 0700);
	write_kubeconfig("", EXEC);
}

static size_t runs(void)
{
	char text[256] = "";
	FILE *file = fopen(folder_path(world.folder, "runs"), "r");

	if (!file)
		return 0;
	assert_true(fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	return count_of(text, "run\n");
}

static void nothing(void *arg UNUSED)
{
}

static void pause_for(int64_t ms)
{
	struct loop_timer *timer = loop_timer_create(world.loop, nothing, NULL);

	loop_timer_start(timer, ms);
	loop_run(world.loop);
	loop_timer_destroy(timer);
}

#define SAY(status)                                                                                \
	"echo '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"status\":{" status "}}'"

static void test_a_program_s_token(void **state)
{
	const struct fake_api_answer answers[] = {
		FINE, FINE, FINE, {.status = 401, .body = "{}"}, FINE};

	begin(state, answers, 5);
	write_program("echo \"$@ $KUBERNETES_EXEC_INFO\" >told\n" SAY("\"token\":\"tok\""));
	for (int i = 0; i < 3; i++)
		send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 3);
	assert_int_equal(world.reason, KUBE_DONE);
	assert_int_equal(runs(), 1); /* once for all */
	pause_for(CREDENTIALS_PAUSE_MS);
	world.told = 0;
	call(kube_get(NODE)); /* 401: it is asked again */
	assert_int_equal(world.reason, KUBE_DONE);
	assert_int_equal(runs(), 2);
	assert_int_equal(count_of(finish(), "\r\nAuthorization: Bearer tok\r\n"), 5);
	fake_api_destroy(world.api);

	char told[512] = "";
	FILE *file = fopen(folder_path(state, "told"), "r");
	assert_non_null(fgets(told, sizeof told, file));
	fclose(file);
	assert_string_equal(told,
			    "one {\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":"
			    "\"ExecCredential\",\"spec\":{\"interactive\":false}}\n");
}

static void test_a_program_s_answer_runs_out(void **state)
{
	begin(state, &FINE, 1);
	write_program(SAY("\"token\":\"t\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\""));
	call(kube_get(NODE)); /* what it has just said is used all the same */
	call(kube_get(NODE));
	assert_int_equal(runs(), 1);
	pause_for(CREDENTIALS_PAUSE_MS);
	call(kube_get(NODE));
	assert_int_equal(runs(), 2);
	assert_int_equal(world.reason, KUBE_DONE);
	finish();
	fake_api_destroy(world.api);
}

static void test_programs_that_fail(void **state)
{
	static const struct {
		const char *script, *message;
		enum error_code code;
	} TABLE[] = {
		{"echo s3cr3t; exit 3", "program' ended with exit status 3", ERROR_UNAVAILABLE},
		{"kill -9 $$", "program' ended with signal 9", ERROR_UNAVAILABLE},
		{"echo s3cr3t", "program' answers: its answer:1", ERROR_INVALID_CONFIG},
		{"yes s3cr3t", "answers more than 262144 bytes", ERROR_RESOURCES_EXHAUSTED},
		{SAY("\"token\":\"s3 cr3t\""), "a character that no token has",
		 ERROR_INVALID_CONFIG},
	};

	begin(state, &FINE, 1);
	for (size_t i = 0; i < ARRAY_SIZE(TABLE); i++) {
		write_program(TABLE[i].script);
		send_as(kube_get(NODE), KUBE_NORMAL, 1000, NULL);
		loop_run(world.loop);
		assert_int_equal(world.reason, KUBE_UNREACHED);
		assert_int_equal(world.error.code, TABLE[i].code);
		if (!strstr(world.error.what, TABLE[i].message))
			fail_msg("\"%s\" lacks \"%s\"", world.error.what, TABLE[i].message);
		assert_null(strstr(world.error.what, "s3"));
	}
	assert_int_equal(runs(), ARRAY_SIZE(TABLE)); /* none of them twice in its pause */
	unlink(folder_path(state, "program"));
	write_kubeconfig("", "exec: {command: no-such-program, apiVersion: "
			     "client.authentication.k8s.io/v1}");
	send_as(kube_get(NODE), KUBE_NORMAL, 50, NULL);
	loop_run(world.loop);
	assert_non_null(strstr(world.error.what, "'no-such-program' is nowhere in PATH"));
	assert_string_equal(finish(), "");
	fake_api_destroy(world.api);
}

static void test_a_program_that_hangs(void **state)
{
	struct mono start = clock_mono();

	begin(state, &FINE, 1);
	write_program("exec sleep 1000");
	later = loop_timer_create(world.loop, stop, NULL);
	loop_timer_start(later, 200);
	send_as(kube_get(NODE), KUBE_NORMAL, 50, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 1); /* the call has its own time */
	assert_int_equal(world.reason, KUBE_UNREACHED);
	loop_timer_destroy(later);
	assert_string_equal(finish(), ""); /* and the client's end is the program's */
	assert_in_range(mono_until(start, clock_mono()), 150, 3000);
	fake_api_destroy(world.api);
}

static void test_a_kubeconfig_that_comes_and_changes(void **state)
{
	begin(state, &FINE, 1);
	unlink(folder_path(state, "kubeconfig"));
	send_as(kube_get(NODE), KUBE_NORMAL, 50, NULL);
	loop_run(world.loop);
	assert_int_equal(world.error.code, ERROR_NOT_FOUND);
	assert_non_null(strstr(world.error.what, "get node 'n0': no kubeconfig at '"));
	write_kubeconfig("", PAIR);
	world.told = 0;
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);
	write_kubeconfig(", insecure-skip-tls-verify: true", PAIR);
	send_as(kube_get(NODE), KUBE_NORMAL, 50, NULL);
	loop_run(world.loop);
	assert_int_equal(world.error.code, ERROR_INVALID_CONFIG);
	assert_non_null(strstr(world.error.what, "/kubeconfig: cluster 'c' has insecure-skip-"));
	finish();
	fake_api_destroy(world.api);
}

static void test_only_the_named_authority_and_name(void **state)
{
	struct certs_pair other =
		certs_make(&(struct certs_options){.name = "other", .is_ca = true});

	begin(state, &FINE, 1);
	write_file(folder_path(state, "ca.pem"), other.certificate);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_int_equal(world.error.code, ERROR_FORBIDDEN);
	write_file(folder_path(state, "ca.pem"), world.ca.certificate);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);
	write_kubeconfig(", tls-server-name: wrong.test", PAIR);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_int_equal(world.error.code, ERROR_FORBIDDEN);
	finish();
	fake_api_destroy(world.api);
	certs_free(&other);
}

static void ask_in_vain(void)
{
	world.told = 0;
	send_as(kube_get(NODE), KUBE_NORMAL, 400, NULL);
	loop_run(world.loop);
	assert_int_equal(world.reason, KUBE_UNREACHED);
}

static void expect_said(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" lacks \"%s\"", text, part);
}

/* Which field of which file, and what to do. */
static void test_what_is_damaged_is_named(void **state)
{
	CLEANUP(buf) struct buf damaged = {0};
	struct error bad_pair, bad_file, bad_data;

	begin(state, &FINE, 1);
	write_kubeconfig("", "client-certificate: key.pem, client-key: certificate.pem");
	write_file(folder_path(state, "certificate.pem"), world.first.certificate);
	write_file(folder_path(state, "key.pem"), world.first.key);
	ask_in_vain();
	bad_pair = world.error;
	write_kubeconfig("", PAIR);
	write_file(folder_path(state, "ca.pem"),
		   "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
	ask_in_vain();
	bad_file = world.error;
	buf_printf(&damaged,
		   "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
		   "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d', "
		   "certificate-authority-data: bm9uc2Vuc2U=}}]\nusers: [{name: u, user: {%s}}]\n",
		   fake_api_port(world.api), PAIR);
	write_file(folder_path(state, "kubeconfig"), buf_text(&damaged));
	ask_in_vain();
	bad_data = world.error;

	assert_int_equal(bad_pair.code, ERROR_INVALID_CONFIG);
	expect_said(bad_pair.what, "the client-certificate '/");
	expect_said(bad_pair.what, "/key.pem' with the client-key '/");
	expect_said(bad_pair.what, "/certificate.pem' of user 'u' (kubeconfig /");
	expect_said(bad_pair.what, "can't be used");
	assert_null(strstr(bad_pair.what, "CURLOPT"));
	expect_said(bad_pair.hint, "swapped");
	assert_int_equal(bad_file.code, ERROR_INVALID_CONFIG);
	expect_said(bad_file.what, "the certificate-authority '/");
	expect_said(bad_file.what, "/ca.pem' of cluster 'c' (kubeconfig /");
	expect_said(bad_file.what, "can't be read as certificates");
	expect_said(bad_file.hint, "PEM");
	assert_int_equal(bad_data.code, ERROR_INVALID_CONFIG);
	expect_said(bad_data.what, "the certificate-authority-data of cluster 'c' (kubeconfig /");
	assert_null(strstr(bad_data.what, "blob"));
	finish();
	fake_api_destroy(world.api);
}

/* bcd has no --ca-file: what there is to do stands in the kubeconfig. */
static void test_an_authority_that_is_not_named(void **state)
{
	CLEANUP(buf) struct buf text = {0};
	struct error unnamed, other;

	begin(state, &FINE, 1);
	write_kubeconfig(", tls-server-name: wrong.test", PAIR);
	ask_in_vain();
	other = world.error;
	buf_printf(&text,
		   "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
		   "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d'}}]\n"
		   "users: [{name: u, user: {%s}}]\n",
		   fake_api_port(world.api), PAIR);
	write_file(folder_path(state, "kubeconfig"), buf_text(&text));
	ask_in_vain();
	unnamed = world.error;

	assert_int_equal(unnamed.code, ERROR_FORBIDDEN);
	assert_null(strstr(unnamed.hint, "--ca-file"));
	expect_said(unnamed.hint, "as certificate-authority of cluster 'c' in kubeconfig /");
	assert_int_equal(other.code, ERROR_FORBIDDEN);
	expect_said(other.hint, "/ca.pem' of cluster 'c' (kubeconfig /");
	finish();
	fake_api_destroy(world.api);
}

static void test_a_kubeconfig_must_be_named(void **state UNUSED)
{
	const struct credentials_options options = {.kubeconfig = ":"};
	struct loop *loop = loop_create();
	struct credentials *credentials = credentials_create(loop, &options, NULL, NULL);
	struct kube_identity identity = {0};
	struct error error;
	bool ready;

	expect_error(credentials_load(credentials, &ready, &identity, &error), &error,
		     ERROR_INVALID_CONFIG, "no kubeconfig is named");
	credentials_destroy(credentials);
	loop_destroy(loop);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_FOLDER(test_a_rotated_certificate_is_used_without_a_restart),
		IN_FOLDER(test_a_torn_pair_is_tried_again),
		IN_FOLDER(test_a_pair_that_stays_torn_says_so),
		IN_FOLDER(test_an_encrypted_key_is_refused),
		IN_FOLDER(test_401_renews_once),
		IN_FOLDER(test_tokens_are_read_anew),
		IN_FOLDER(test_a_program_s_token),
		IN_FOLDER(test_a_program_s_answer_runs_out),
		IN_FOLDER(test_programs_that_fail),
		IN_FOLDER(test_a_program_that_hangs),
		IN_FOLDER(test_a_kubeconfig_that_comes_and_changes),
		IN_FOLDER(test_only_the_named_authority_and_name),
		IN_FOLDER(test_what_is_damaged_is_named),
		IN_FOLDER(test_an_authority_that_is_not_named),
		cmocka_unit_test(test_a_kubeconfig_must_be_named),
	};

	return cmocka_run_group_tests(tests, make_world, drop_world);
}
