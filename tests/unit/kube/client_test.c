#include "kube/client.h"

#include "fake_api.h"
#include "kube/events.h"
#include "lib/folder.h"
#include "lib/test.h"
#include "sys/clock.h"
#include "text/tree.h"
#include "unit/rpc/certs.h"

#include <openssl/pem.h>
#include <sys/stat.h>

#define OK_BODY "{\"metadata\":{\"name\":\"n0\"}}"

static const struct fake_api_answer FINE = {.status = 200, .body = OK_BODY};
static const struct kube_ref NODE = {&KUBE_NODE, "", "n0"};

/* A server, its certificates, and two client identities on disk. */
static struct world {
	struct certs_pair ca, server, first, second;
	struct fake_api *api;
	struct loop *loop;
	struct kube_client *client;
	void **folder;
	/* what came back */
	int told;
	enum kube_reason reason;
	bool unknown;
	struct error error;
	char log[256]; /* one letter a callback */
} world;

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void write_pair(const char *name, const struct certs_pair *certificate,
		       const struct certs_pair *key)
{
	char path[512], text[8192];

	snprintf(text, sizeof text, "%s%s", certificate->certificate, key->key);
	snprintf(path, sizeof path, "%s.new", folder_path(world.folder, name));
	write_file(path, text);
	assert_int_equal(rename(path, folder_path(world.folder, name)), 0);
}

static void write_kubeconfig(const char *cluster_more, const char *user)
{
	char text[2048];

	snprintf(text, sizeof text,
		 "current-context: x\n"
		 "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
		 "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d', "
		 "certificate-authority: ca.pem%s%s}}]\n"
		 "users: [{name: u, user: {%s}}]\n",
		 fake_api_port(world.api), cluster_more,
		 strstr(cluster_more, "tls-server-name") ? "" : ", tls-server-name: api.test",
		 user);
	write_file(folder_path(world.folder, "kubeconfig"), text);
}

#define PAIR "client-certificate: pair.pem, client-key: pair.pem"

static void begin(void **state, const struct fake_api_answer *answers, size_t count)
{
	world.folder = state;
	world.told = 0;
	world.log[0] = '\0';
	world.api = fake_api_start(&(struct fake_api_options){
		.certificate_pem = world.server.certificate,
		.key_pem = world.server.key,
		.answers = answers,
		.count = count,
	});
	write_file(folder_path(state, "ca.pem"), world.ca.certificate);
	write_pair("pair.pem", &world.first, &world.first);
	write_kubeconfig("", PAIR);
	world.loop = loop_create();
	world.client = kube_client_create(
		world.loop,
		&(struct credentials_options){.kubeconfig = folder_path(state, "kubeconfig")});
}

static const char *finish(void)
{
	kube_client_destroy(world.client);
	loop_destroy(world.loop);
	return fake_api_finish(world.api);
}

static void on_answer(void *arg, struct kube_answer *answer)
{
	const char *letter = arg;

	world.told++;
	world.reason = answer->reason;
	world.unknown = answer->unknown;
	world.error = answer->error;
	if (letter)
		strncat(world.log, letter, 1);
}

static struct kube_call *send_as(struct kube_request request, enum kube_priority priority,
				 int64_t timeout_ms, const char *letter)
{
	return kube_send(world.client, &request,
			 (struct kube_call_options){.priority = priority, .timeout_ms = timeout_ms},
			 on_answer, (void *)letter);
}

/* Sends one and runs until nothing is left to wait for. */
static void call(struct kube_request request)
{
	send_as(request, KUBE_NORMAL, 0, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 1);
	world.told = 0;
}

static size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

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

static struct kube_request create_slice(void)
{
	CLEANUP(tree) json_t *object = json_pack("{s:{s:s}}", "metadata", "name", "s");

	return kube_create(&KUBE_RESOURCE_SLICE, "", object);
}

static struct loop_timer *later;

static void stop(void *arg UNUSED)
{
	loop_stop(world.loop);
}

static void mend_pair(void *arg UNUSED)
{
	write_file(folder_path(world.folder, "key.pem"), world.second.key);
}

static void test_a_torn_pair_is_tried_again(void **state)
{
	begin(state, &FINE, 1);
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
	send_as(kube_get(NODE), KUBE_NORMAL, 400, NULL);
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
		send_as(kube_get(NODE), KUBE_NORMAL, 400, NULL);
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

static void test_later_and_later(void **state)
{
	const struct fake_api_answer answers[] = {
		{.status = 429, .body = "{}", .headers = "Retry-After: 1\r\n"},
		{.status = 503, .body = "{}"},
		{.slam = true},
		FINE,
	};
	struct mono start;

	begin(state, answers, 4);
	start = clock_mono();
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);
	assert_in_range(mono_until(start, clock_mono()), 1000, 5000);
	assert_int_equal(count_of(finish(), "GET "), 4);
	fake_api_destroy(world.api);
}

static void test_a_create_is_not_sent_twice(void **state)
{
	const struct fake_api_answer answers[] = {{.slam = true},
						  {.status = 500, .body = "{}"},
						  {.status = 200, .cut = true, .body = OK_BODY}};

	begin(state, answers, 3);
	call(create_slice());
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_true(world.unknown);
	call(create_slice());
	assert_int_equal(world.reason, KUBE_UNAVAILABLE);
	call(create_slice());
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_true(world.unknown);
	assert_int_equal(count_of(finish(), "POST "), 3);
	fake_api_destroy(world.api);
}

static void test_nobody_there(void **state)
{
	begin(state, &FINE, 1);
	fake_api_destroy(world.api); /* the port is closed now */
	send_as(create_slice(), KUBE_NORMAL, 700, NULL);
	loop_run(world.loop);
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_int_equal(world.error.code, ERROR_UNAVAILABLE);
	assert_false(world.unknown);
	kube_client_destroy(world.client);
	loop_destroy(world.loop);
}

static void test_too_much(void **state)
{
	const struct fake_api_answer answers[] = {
		{.status = 200, .body = OK_BODY, .padding = KUBE_MAX_ANSWER - sizeof OK_BODY + 1},
		{.status = 200, .body = OK_BODY, .padding = KUBE_MAX_ANSWER - sizeof OK_BODY + 2}};

	begin(state, answers, 2);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_int_equal(world.error.code, ERROR_RESOURCES_EXHAUSTED);
	assert_int_equal(count_of(finish(), "GET "), 2);
	fake_api_destroy(world.api);
}

/* While a worker reads it. */
static void test_ends_while_an_answer_is_read(void **state)
{
	static const struct fake_api_answer LARGE = {
		.status = 200, .body = OK_BODY, .padding = KUBE_INLINE_MAX};
	struct kube_call *calls[4];

	begin(state, &LARGE, 1);
	for (int ms = 1; ms < 40; ms += 3) {
		for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
			calls[i] = send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
		later = loop_timer_create(world.loop, stop, NULL);
		loop_timer_start(later, ms);
		loop_run(world.loop);
		loop_timer_destroy(later);
		if (world.told == 0)
			for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
				kube_call_cancel(calls[i]);
		loop_run(world.loop);
		world.told = 0;
	}
	call(kube_get(NODE));
	assert_int_equal(world.reason, KUBE_DONE);
	finish();
	fake_api_destroy(world.api);
}

static int ticks;

static void tick(void *arg UNUSED)
{
	ticks++;
	if (world.told < 12)
		loop_timer_start(later, 5);
}

/* The server takes its time; the loop keeps its own. */
static void test_a_slow_server_holds_up_nobody(void **state)
{
	static const struct fake_api_answer SLOW = {
		.status = 200, .body = OK_BODY, .delay_ms = 200};
	struct mono start;

	begin(state, &SLOW, 1);
	ticks = 0;
	later = loop_timer_create(world.loop, tick, NULL);
	loop_timer_start(later, 5);
	start = clock_mono();
	for (int i = 0; i < 12; i++) /* six at a time */
		send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 12);
	assert_in_range(mono_until(start, clock_mono()), 400, 2000);
	assert_true(ticks > 30);
	loop_timer_destroy(later);
	finish();
	fake_api_destroy(world.api);
}

static void test_deadlines(void **state)
{
	static const struct fake_api_answer SLOW = {
		.status = 200, .body = OK_BODY, .delay_ms = 2000};
	struct mono start = clock_mono();

	begin(state, &SLOW, 1);
	for (int i = 0; i < KUBE_IN_FLIGHT + 1; i++)
		send_as(kube_get(NODE), KUBE_URGENT, 300, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, KUBE_IN_FLIGHT + 1);
	assert_int_equal(world.reason, KUBE_UNREACHED);
	assert_in_range(mono_until(start, clock_mono()), 290, 1500);
	finish();
	fake_api_destroy(world.api);
}

static void send_three(void *arg UNUSED)
{
	send_as(kube_get(NODE), KUBE_LATER, 0, "e");
	send_as(kube_get(NODE), KUBE_NORMAL, 0, "n");
	send_as(kube_get(NODE), KUBE_URGENT, 0, "u");
}

static void test_the_urgent_goes_first(void **state)
{
	static const struct fake_api_answer SLOW = {
		.status = 200, .body = OK_BODY, .delay_ms = 400};
	struct fake_api_answer answers[KUBE_IN_FLIGHT - 1];

	for (int i = 0; i < KUBE_IN_FLIGHT - 2; i++)
		answers[i] = SLOW;
	answers[KUBE_IN_FLIGHT - 2] = FINE;
	begin(state, answers, KUBE_IN_FLIGHT - 1);
	for (int i = 0; i < KUBE_IN_FLIGHT - 2; i++) /* all that others may have */
		send_as(kube_get(NODE), KUBE_NORMAL, 0, "x");
	later = loop_timer_create(world.loop, send_three, NULL);
	loop_timer_start(later, 150);
	loop_run(world.loop);
	/* The urgent one didn't wait; the others did, the one that can wait longest. */
	assert_int_equal(strlen(world.log), KUBE_IN_FLIGHT + 1);
	assert_int_equal(world.log[0], 'u');
	assert_true(strchr(world.log, 'x') < strchr(world.log, 'n'));
	assert_true(strchr(world.log, 'n') < strchr(world.log, 'e'));
	loop_timer_destroy(later);
	finish();
	fake_api_destroy(world.api);
}

static void test_too_many_wait(void **state)
{
	begin(state, &FINE, 1);
	for (int i = 0; i < KUBE_WAITING; i++)
		send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	send_as(kube_get(NODE), KUBE_NORMAL, 0, "z");
	loop_run(world.loop);
	assert_int_equal(world.told, KUBE_WAITING + 1);
	assert_string_equal(world.log, "z");
	assert_int_equal(count_of(finish(), "GET "), KUBE_WAITING);
	fake_api_destroy(world.api);
}

static void on_answer_destroys(void *arg UNUSED, struct kube_answer *answer UNUSED)
{
	world.told++;
	kube_client_destroy(TAKE(world.client));
}

static void test_ends_at_any_moment(void **state)
{
	static const struct fake_api_answer SLOW = {
		.status = 200, .body = OK_BODY, .delay_ms = 500};
	struct kube_request request = kube_get(NODE);
	struct kube_call *cancelled;

	begin(state, &SLOW, 1);
	cancelled = send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	kube_call_cancel(cancelled);
	kube_send(world.client, &request, (struct kube_call_options){.timeout_ms = 100},
		  on_answer_destroys, NULL);
	send_as(kube_get(NODE), KUBE_NORMAL, 0, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 1);
	assert_null(world.client);
	finish();
	fake_api_destroy(world.api);
}

/* --- lists --- */

static json_t *items;

static void on_items(void *arg UNUSED, json_t **got, const struct error *error)
{
	world.told++;
	world.error = error ? *error : (struct error){0};
	items = *got ? TAKE(*got) : NULL;
}

static void list(void)
{
	json_decref(items);
	kube_collect(world.client, &KUBE_RESOURCE_SLICE,
		     &(struct kube_list_options){.field_selector = "spec.nodeName=n0"},
		     (struct kube_call_options){0}, on_items, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 1);
	world.told = 0;
}

static void test_a_list_in_pages(void **state)
{
	const struct fake_api_answer answers[] = {
		{.status = 200, .body = "{\"metadata\":{\"continue\":\"a/+\"},\"items\":[]}"},
		{.status = 410, .body = "{\"reason\":\"Expired\"}"},
		{.status = 200, .body = "{\"metadata\":{\"continue\":\"b\"},\"items\":[1]}"},
		{.status = 503, .body = "{}"},
		{.status = 200, .body = "{\"items\":[2]}"},
		{.status = 403, .body = "{}"},
	};

	begin(state, answers, 6);
	list();
	assert_int_equal(world.error.code, ERROR_NONE);
	assert_int_equal(json_array_size(items), 2);
	list();
	assert_int_equal(world.error.code, ERROR_FORBIDDEN);
	assert_null(items);
	const char *seen = finish();
	assert_int_equal(count_of(seen, "fieldSelector=spec.nodeName%3Dn0&limit=50 "), 3);
	assert_int_equal(count_of(seen, "&continue=a%2F%2B "), 1);
	assert_int_equal(count_of(seen, "&continue=b "), 2);
	fake_api_destroy(world.api);
}

static void test_events_are_told_and_made_anew(void **state)
{
	const struct fake_api_answer answers[] = {{.status = 201, .body = "{}"},
						  {.status = 403, .body = "{}"},
						  {.status = 201, .body = "{}"}};
	const struct kube_event event = {.regarding = {&KUBE_POD, "ns", "web"},
					 .uid = "u",
					 .reason = "Released",
					 .action = "Delete",
					 .note = "why"};
	struct kube_event other = event;
	struct kube_events *events;

	begin(state, answers, 3);
	events = kube_events_create(world.client, world.loop, "n0");
	kube_events_tell(events, &event);
	kube_events_tell(events, &event); /* counted, but not yet worth a call */
	loop_run(world.loop);
	assert_int_equal(kube_events_trouble(events)->code, ERROR_NONE);
	other.note = "other";
	kube_events_tell(events, &other);
	loop_run(world.loop);
	assert_int_equal(kube_events_trouble(events)->code, ERROR_FORBIDDEN);
	kube_events_tell(events, &other);
	loop_run(world.loop);
	assert_int_equal(kube_events_trouble(events)->code, ERROR_NONE);
	kube_events_tell(events,
			 &(struct kube_event){{&KUBE_NODE, "", "n0"}, "", true, "A", "B", "c"});
	kube_events_destroy(events);
	assert_int_equal(count_of(finish(), "POST /api/v1/namespaces/ns/events?fieldManager=bcd"),
			 3);
	fake_api_destroy(world.api);
}

static int make_world(void **state UNUSED)
{
	world.ca = certs_make(&(struct certs_options){.name = "ca", .is_ca = true});
	world.server = certs_make(&(struct certs_options){.name = "api.test", .issuer = &world.ca});
	world.first = certs_make(
		&(struct certs_options){.name = "system:node:first", .issuer = &world.ca});
	world.second = certs_make(
		&(struct certs_options){.name = "system:node:second", .issuer = &world.ca});
	return 0;
}

static int drop_world(void **state UNUSED)
{
	json_decref(items);
	certs_free(&world.ca);
	certs_free(&world.server);
	certs_free(&world.first);
	certs_free(&world.second);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_rotated_certificate_is_used_without_a_restart),
		TEST(test_a_torn_pair_is_tried_again),
		TEST(test_a_pair_that_stays_torn_says_so),
		TEST(test_an_encrypted_key_is_refused),
		TEST(test_401_renews_once),
		TEST(test_tokens_are_read_anew),
		TEST(test_a_program_s_token),
		TEST(test_a_program_s_answer_runs_out),
		TEST(test_programs_that_fail),
		TEST(test_a_program_that_hangs),
		TEST(test_a_kubeconfig_that_comes_and_changes),
		TEST(test_only_the_named_authority_and_name),
		TEST(test_later_and_later),
		TEST(test_a_create_is_not_sent_twice),
		TEST(test_nobody_there),
		TEST(test_too_much),
		TEST(test_ends_while_an_answer_is_read),
		TEST(test_a_slow_server_holds_up_nobody),
		TEST(test_deadlines),
		TEST(test_the_urgent_goes_first),
		TEST(test_too_many_wait),
		TEST(test_ends_at_any_moment),
		TEST(test_a_list_in_pages),
		TEST(test_events_are_told_and_made_anew),
	};

	return cmocka_run_group_tests(tests, make_world, drop_world);
}
