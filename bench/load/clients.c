#include "load/clients.h"

#include "base/buf.h"
#include "base/vec.h"
#include "sys/clock.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_ANSWER ((size_t)16 << 20)
#define ID_ROOM    64

/* --- HTTP on a blocking socket --- */

struct link {
	int port, fd; /* -1: not connected */
	struct buf in;
};

static bool connect_link(struct link *link)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons((uint16_t)link->port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int on = 1;

	link->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	(void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	if (connect(link->fd, (struct sockaddr *)&address, sizeof address) == 0)
		return true;
	close(link->fd);
	link->fd = -1;
	return false;
}

static bool write_all(int fd, const struct buf *text)
{
	size_t done = 0;

	while (done < text->length) {
		ssize_t wrote = send(fd, text->data + done, text->length - done, MSG_NOSIGNAL);

		if (wrote <= 0)
			return false;
		done += (size_t)wrote;
	}
	return true;
}

static bool read_more(struct link *link)
{
	char part[65536];
	ssize_t got = recv(link->fd, part, sizeof part, 0);

	if (got <= 0 || link->in.length > MAX_ANSWER)
		return false;
	buf_add(&link->in, part, (size_t)got);
	return true;
}

/* The answer's status; 0 when the connection ended. Its body stays in link->in at *ret_body. */
static int read_answer(struct link *link, size_t *ret_body)
{
	const char *end, *length;
	size_t body, size;

	buf_clear(&link->in);
	do {
		if (!read_more(link))
			return 0;
		end = strstr(buf_text(&link->in), "\r\n\r\n");
	} while (!end);
	length = strcasestr(buf_text(&link->in), "content-length: ");
	body = (size_t)(end + 4 - buf_text(&link->in));
	size = length ? strtoul(length + 16, NULL, 10) : 0;
	while (link->in.length < body + size) {
		if (!read_more(link))
			return 0;
	}
	*ret_body = body;
	return (int)strtol(buf_text(&link->in) + 9, NULL, 10);
}

static int ask(struct link *link, const char *key, const char *method, const char *path,
	       const char *body, size_t *ret_body)
{
	CLEANUP(buf) struct buf text = {0};
	int status = 0;

	if (link->fd < 0 && !connect_link(link))
		return 0;
	buf_printf(&text, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n",
		   method, path, key);
	if (body)
		buf_printf(&text, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			   strlen(body));
	buf_printf(&text, "\r\n%s", body ? body : "");
	if (write_all(link->fd, &text))
		status = read_answer(link, ret_body);
	if (status == 0) {
		close(link->fd);
		link->fd = -1;
	}
	return status;
}

bool client_ask(int port, const char *key, const char *method, const char *path, const char *body,
		char **ret_body)
{
	struct link link = {.port = port, .fd = -1};
	size_t at = 0;
	int status = ask(&link, key, method, path, body, &at);

	if (link.fd >= 0)
		close(link.fd);
	if (status == 200)
		*ret_body = mem_strdup(buf_text(&link.in) + at);
	else
		fprintf(stderr, "%s %s: %d %s\n", method, path, status,
			buf_text(&link.in) + (status ? at : 0));
	buf_deinit(&link.in);
	return status == 200;
}

/* --- clients --- */

struct times VEC_BODY(double);

struct client {
	struct clients *clients;
	pthread_t thread;
	struct link link;
	struct times ms[CLIENT_CALLS];
	long failures, unplaced;
};

struct clients {
	struct clients_options options;
	struct client *items;
	atomic_bool stop;
	int64_t began_us;
};

const char *client_call_name(enum client_call call)
{
	switch (call) {
	case CLIENT_RESERVE:
		return "reserve";
	case CLIENT_RELEASE:
		return "release";
	case CLIENT_PREVIEW:
		return "preview";
	case CLIENT_PREVIEW_NOWHERE:
		return "preview of what fits nowhere";
	case CLIENT_LIST_NODES:
		return "list 100 nodes";
	case CLIENT_LIST_RESERVATIONS:
		return "list 100 reservations";
	case CLIENT_CALLS:
		break;
	}
	abort();
}

static bool timed(struct client *client, enum client_call call, const char *method,
		  const char *path, const char *body, size_t *ret_body)
{
	int64_t began = clock_us();
	int status = ask(&client->link, client->clients->options.key, method, path, body, ret_body);

	if (status != 200) {
		if (client->failures++ == 0)
			fprintf(stderr, "%s %s: %d %.300s\n", method, path, status,
				status ? buf_text(&client->link.in) + *ret_body : "");
		return false;
	}
	*vec_push(&client->ms[call]) = (double)(clock_us() - began) / 1000;
	if (client->clients->options.pause_us)
		usleep((useconds_t)client->clients->options.pause_us);
	return true;
}

static void reserve(struct client *client, const char *body)
{
	char id[ID_ROOM] = "", path[160];
	const char *text, *found;
	size_t at = 0;

	if (!timed(client, CLIENT_RESERVE, "POST", "/v1/reservations", body, &at))
		return;
	text = buf_text(&client->link.in) + at;
	found = strstr(text, "\"id\": \"");
	if (!strstr(text, "\"state\": \"placed\""))
		client->unplaced++;
	if (!found)
		return;
	snprintf(id, sizeof id, "%.*s", (int)strcspn(found + 7, "\""), found + 7);
	snprintf(path, sizeof path, "/v1/reservations/%s/release", id);
	(void)timed(client, CLIENT_RELEASE, "POST", path, "{}", &at);
}

static void write_request(const struct clients_options *options, int gpus, char out[512])
{
	snprintf(out, 512,
		 "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
		 "\"count\":%d}],\"duration\":\"1h\",\"binding\":\"kubernetes\"}",
		 options->tenant, options->pool, gpus);
}

static void *client_main(void *arg)
{
	struct client *client = arg;
	const struct clients_options *options = &client->clients->options;
	char booking[512], preview[512], nowhere[512];
	size_t at = 0;

	write_request(options, 2, preview);
	write_request(options, 9, nowhere);
	memcpy(booking, preview, sizeof booking);
	while (!client->clients->stop) {
		reserve(client, booking);
		if (options->only_reserve)
			continue;
		(void)timed(client, CLIENT_PREVIEW, "POST", "/v1/capacity/preview", preview, &at);
		(void)timed(client, CLIENT_PREVIEW_NOWHERE, "POST", "/v1/capacity/preview", nowhere,
			    &at);
		(void)timed(client, CLIENT_LIST_NODES, "GET", "/v1/nodes?limit=100", NULL, &at);
		(void)timed(client, CLIENT_LIST_RESERVATIONS, "GET", "/v1/reservations?limit=100",
			    NULL, &at);
	}
	return NULL;
}

struct clients *clients_start(const struct clients_options *options)
{
	struct clients *clients = mem_alloc(sizeof *clients);

	clients->options = *options;
	clients->items = mem_alloc((size_t)options->threads * sizeof *clients->items);
	clients->began_us = clock_us();
	for (int i = 0; i < options->threads; i++) {
		struct client *client = &clients->items[i];

		client->clients = clients;
		client->link = (struct link){.port = options->port, .fd = -1};
		if (pthread_create(&client->thread, NULL, client_main, client) != 0)
			abort();
	}
	return clients;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void clients_stop(struct clients *clients, struct clients_result *ret_result)
{
	struct clients_result result = {0};
	struct times all[CLIENT_CALLS] = {0};

	clients->stop = true;
	for (int i = 0; i < clients->options.threads; i++)
		pthread_join(clients->items[i].thread, NULL);
	result.seconds = (double)(clock_us() - clients->began_us) / 1e6;
	for (int i = 0; i < clients->options.threads; i++) {
		struct client *client = &clients->items[i];

		result.failures += client->failures;
		result.unplaced += client->unplaced;
		for (size_t call = 0; call < CLIENT_CALLS; call++) {
			vec_each (&client->ms[call], const double *ms)
				*vec_push(&all[call]) = *ms;
			vec_deinit(&client->ms[call]);
		}
		if (client->link.fd >= 0)
			close(client->link.fd);
		buf_deinit(&client->link.in);
	}
	for (size_t call = 0; call < CLIENT_CALLS; call++) {
		size_t count = all[call].count;

		result.calls[call] = (long)count;
		vec_sort(&all[call], compare);
		if (count > 0) {
			result.p50_ms[call] = all[call].items[count / 2];
			result.p99_ms[call] = all[call].items[count * 99 / 100];
		}
		vec_deinit(&all[call]);
	}
	free(clients->items);
	free(clients);
	*ret_result = result;
}
