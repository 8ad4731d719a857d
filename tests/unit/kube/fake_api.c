#include "fake_api.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_CONNECTIONS 64
#define LOOKS_MS        20

struct connection {
	struct fake_api *api;
	pthread_t thread;
	int fd;
	size_t number;
};

struct fake_api {
	SSL_CTX *context;
	const struct fake_api_answer *answers;
	size_t count, next, requests;
	const char *aside;
	struct fake_api_answer aside_answer, deletion;
	const struct fake_api_answer *watches;
	size_t watches_count, watched;
	int listener, stop[2], port;
	pthread_t thread;
	pthread_mutex_t lock;
	struct connection connections[MAX_CONNECTIONS];
	size_t connections_count;
	bool joined;
	struct buf seen;
};

static size_t content_length(const char *head)
{
	const char *at = strcasestr(head, "\r\ncontent-length:");

	return at ? strtoul(at + 17, NULL, 10) : 0;
}

/* Waits for bytes, or for the end of the test. */
static bool readable(const struct connection *connection, SSL *tls)
{
	struct pollfd polls[] = {{connection->fd, POLLIN, 0},
				 {connection->api->stop[0], POLLIN, 0}};

	return SSL_pending(tls) > 0 || (poll(polls, 2, -1) > 0 && !polls[1].revents);
}

static bool read_request(const struct connection *connection, SSL *tls, struct buf *request)
{
	for (;;) {
		const char *head = buf_text(request), *end = strstr(head, "\r\n\r\n");
		char chunk[4096];
		int got;

		if (end && request->length >= (size_t)(end + 4 - head) + content_length(head))
			return true;
		if (!readable(connection, tls))
			return false;
		got = SSL_read(tls, chunk, sizeof chunk);
		if (got <= 0)
			return false;
		buf_add(request, chunk, (size_t)got);
	}
}

/* "GET /path": does the path begin with what is asked aside? */
static bool is_aside(const struct fake_api *api, const struct buf *request)
{
	const char *path = strchr(buf_text(request), ' ');

	return api->aside && path && str_starts(path + 1, api->aside);
}

static bool is_watch(const struct fake_api *api, const struct buf *request)
{
	const char *watch = strstr(buf_text(request), "watch=true");

	return api->watches && watch && watch < strstr(buf_text(request), "\r\n");
}

static struct fake_api_answer next_watch(struct fake_api *api)
{
	struct fake_api_answer answer;

	pthread_mutex_lock(&api->lock);
	answer = api->watches[api->watched];
	if (api->watched + 1 < api->watches_count)
		api->watched++;
	pthread_mutex_unlock(&api->lock);
	return answer;
}

static struct fake_api_answer note_request(struct connection *connection, SSL *tls,
					   const struct buf *request)
{
	struct fake_api *api = connection->api;
	X509 *client = SSL_get1_peer_certificate(tls);
	struct fake_api_answer answer;
	char name[64] = "";

	if (is_aside(api, request) || is_watch(api, request)) {
		X509_free(client);
		return is_aside(api, request) ? api->aside_answer : next_watch(api);
	}
	if (client)
		X509_NAME_get_text_by_NID(X509_get_subject_name(client), NID_commonName, name,
					  sizeof name);
	X509_free(client);
	pthread_mutex_lock(&api->lock);
	buf_printf(&api->seen, "#%zu CN=%s\n%s\n", connection->number, name, buf_text(request));
	if (api->deletion.status && str_starts(buf_text(request), "DELETE ")) {
		answer = api->deletion;
	} else {
		answer = api->answers[api->next];
		if (api->next + 1 < api->count)
			api->next++;
	}
	api->requests++;
	pthread_mutex_unlock(&api->lock);
	return answer;
}

/* False: the client is tired of it, or the test is over. */
static bool wait_for_requests(const struct connection *connection, size_t requests)
{
	struct pollfd polls[] = {{connection->fd, POLLIN, 0},
				 {connection->api->stop[0], POLLIN, 0}};

	while (fake_api_requests(connection->api) < requests)
		if (poll(polls, 2, LOOKS_MS) != 0)
			return false;
	return true;
}

/* False when nobody may ask again on this connection. */
static bool send_stream(const struct connection *connection, SSL *tls,
			const struct fake_api_answer *say)
{
	CLEANUP(buf) struct buf out = {0};

	buf_printf(&out, "HTTP/1.1 %d Said\r\nTransfer-Encoding: chunked\r\n\r\n", say->status);
	if (say->after > 0) {
		if (SSL_write(tls, out.data, (int)out.length) <= 0 ||
		    !wait_for_requests(connection, say->after))
			return false;
		buf_clear(&out);
	}
	if (*say->body)
		buf_printf(&out, "%zx\r\n%s\r\n", strlen(say->body), say->body);
	if (say->stream == FAKE_API_ENDS)
		buf_add_text(&out, "0\r\n\r\n");
	if (SSL_write(tls, out.data, (int)out.length) <= 0)
		return false;
	if (say->stream == FAKE_API_HOLDS)
		(void)readable(connection, tls);
	return say->stream == FAKE_API_ENDS;
}

static bool send_answer(const struct connection *connection, SSL *tls,
			const struct fake_api_answer *say)
{
	CLEANUP(buf) struct buf out = {0};
	struct pollfd stop = {connection->api->stop[0], POLLIN, 0};

	if (say->delay_ms && poll(&stop, 1, say->delay_ms) != 0)
		return false;
	if (say->slam)
		return false;
	if (say->stream)
		return send_stream(connection, tls, say);
	buf_printf(&out, "HTTP/1.1 %d Said\r\nContent-Length: %zu\r\n%s\r\n", say->status,
		   strlen(say->body) + say->padding, say->headers ? say->headers : "");
	if (!say->cut) {
		buf_add_text(&out, say->body);
		memset(buf_extend(&out, say->padding), ' ', say->padding);
	}
	return SSL_write(tls, out.data, (int)out.length) > 0 && !say->cut;
}

static void *serve_connection(void *arg)
{
	struct connection *connection = arg;
	SSL *tls = SSL_new(connection->api->context);

	SSL_set_fd(tls, connection->fd);
	if (SSL_accept(tls) == 1)
		for (;;) {
			CLEANUP(buf) struct buf request = {0};
			if (!read_request(connection, tls, &request))
				break;
			struct fake_api_answer answer = note_request(connection, tls, &request);
			if (answer.echo)
				answer.body = strstr(buf_text(&request), "\r\n\r\n") + 4;
			if (!send_answer(connection, tls, &answer))
				break;
		}
	ERR_clear_error();
	SSL_free(tls);
	close(connection->fd);
	return NULL;
}

static void *serve(void *arg)
{
	struct fake_api *api = arg;

	for (;;) {
		struct pollfd polls[] = {{api->listener, POLLIN, 0}, {api->stop[0], POLLIN, 0}};
		struct connection *connection = &api->connections[api->connections_count];

		if (poll(polls, 2, -1) < 0 || polls[1].revents)
			return NULL;
		*connection = (struct connection){.api = api,
						  .fd = accept(api->listener, NULL, NULL),
						  .number = api->connections_count};
		if (connection->fd < 0)
			continue;
		assert(api->connections_count < MAX_CONNECTIONS - 1);
		if (pthread_create(&connection->thread, NULL, serve_connection, connection) != 0)
			abort();
		api->connections_count++;
	}
}

/* Any certificate is fine, as the test reads its name. */
static int take_any(int ok UNUSED, X509_STORE_CTX *context UNUSED)
{
	return 1;
}

static SSL_CTX *make_context(const struct fake_api_options *options)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	BIO *certificate = BIO_new_mem_buf(options->certificate_pem, -1);
	BIO *key = BIO_new_mem_buf(options->key_pem, -1);
	X509 *x509 = PEM_read_bio_X509(certificate, NULL, NULL, NULL);
	EVP_PKEY *pkey = PEM_read_bio_PrivateKey(key, NULL, NULL, NULL);

	if (SSL_CTX_use_certificate(context, x509) != 1 ||
	    SSL_CTX_use_PrivateKey(context, pkey) != 1)
		abort();
	SSL_CTX_set_session_id_context(context, (const unsigned char *)"fake", 4);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, take_any);
	X509_free(x509);
	EVP_PKEY_free(pkey);
	BIO_free(certificate);
	BIO_free(key);
	return context;
}

struct fake_api *fake_api_start(const struct fake_api_options *options)
{
	struct fake_api *api = mem_alloc(sizeof *api);
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;

	signal(SIGPIPE, SIG_IGN);
	api->context = make_context(options);
	api->answers = options->answers;
	api->count = options->count;
	api->aside = options->aside;
	api->aside_answer = options->aside_answer;
	api->deletion = options->deletion;
	api->watches = options->watches;
	api->watches_count = options->watches_count;
	pthread_mutex_init(&api->lock, NULL);
	api->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (api->listener < 0 || bind(api->listener, (struct sockaddr *)&address, length) != 0 ||
	    listen(api->listener, 64) != 0 ||
	    getsockname(api->listener, (struct sockaddr *)&address, &length) != 0 ||
	    pipe(api->stop) != 0)
		abort();
	api->port = ntohs(address.sin_port);
	if (pthread_create(&api->thread, NULL, serve, api) != 0)
		abort();
	return api;
}

void fake_api_delete_with(struct fake_api *api, struct fake_api_answer answer)
{
	api->deletion = answer;
}

int fake_api_port(const struct fake_api *api)
{
	return api->port;
}

size_t fake_api_requests(struct fake_api *api)
{
	size_t requests;

	pthread_mutex_lock(&api->lock);
	requests = api->requests;
	pthread_mutex_unlock(&api->lock);
	return requests;
}

const char *fake_api_finish(struct fake_api *api)
{
	if (!api->joined) {
		(void)!write(api->stop[1], "x", 1);
		pthread_join(api->thread, NULL);
		for (size_t i = 0; i < api->connections_count; i++)
			pthread_join(api->connections[i].thread, NULL);
		api->joined = true;
	}
	return buf_text(&api->seen);
}

void fake_api_destroy(struct fake_api *api)
{
	fake_api_finish(api);
	close(api->listener);
	close(api->stop[0]);
	close(api->stop[1]);
	SSL_CTX_free(api->context);
	pthread_mutex_destroy(&api->lock);
	buf_deinit(&api->seen);
	free(api);
}
