#include "fake_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct fake_server {
	const struct fake_answer *answers;
	size_t count, next;
	int listener, stop[2];
	pthread_t thread;
	bool joined;
	char url[64];
	struct buf seen;
};

static size_t content_length(const char *head)
{
	const char *at = strcasestr(head, "\r\ncontent-length:");

	return at ? strtoul(at + 17, NULL, 10) : 0;
}

/* Reads one request, head and body, into seen. */
static bool read_request(struct fake_server *server, int fd)
{
	size_t start = server->seen.length;

	for (;;) {
		char chunk[4096];
		const char *head = buf_text(&server->seen) + start;
		const char *end = strstr(head, "\r\n\r\n");
		if (end &&
		    server->seen.length - start >= (size_t)(end + 4 - head) + content_length(head))
			return true;
		ssize_t got = read(fd, chunk, sizeof chunk);
		if (got <= 0)
			return false;
		buf_add(&server->seen, chunk, (size_t)got);
	}
}

static void say_it(const struct fake_answer *say, int fd)
{
	CLEANUP(buf) struct buf out = {0};

	usleep((useconds_t)say->delay_ms * 1000);
	if (say->raw) {
		(void)!send(fd, say->raw, strlen(say->raw), MSG_NOSIGNAL);
		return;
	}
	buf_printf(&out, "HTTP/1.1 %d Said\r\nConnection: close\r\nContent-Length: %zu\r\n%s\r\n",
		   say->status, strlen(say->body), say->headers ? say->headers : "");
	if (!say->cut)
		buf_add_text(&out, say->body);
	(void)!send(fd, out.data, out.length, MSG_NOSIGNAL);
}

/* Also when the server is to stop. */
static void wait_for_close(struct fake_server *server, int fd)
{
	struct pollfd polls[] = {{fd, POLLIN, 0}, {server->stop[0], POLLIN, 0}};

	(void)!poll(polls, 2, -1);
}

static void answer(struct fake_server *server, int fd)
{
	const struct fake_answer *say = &server->answers[server->next];

	if (server->next + 1 < server->count)
		server->next++;
	say_it(say, fd);
	if (say->hold)
		wait_for_close(server, fd);
}

static void *serve(void *arg)
{
	struct fake_server *server = arg;

	for (;;) {
		struct pollfd polls[] = {{server->listener, POLLIN, 0},
					 {server->stop[0], POLLIN, 0}};
		if (poll(polls, 2, -1) < 0 || polls[1].revents)
			return NULL;
		int fd = accept(server->listener, NULL, NULL);
		if (fd < 0)
			continue;
		if (read_request(server, fd))
			answer(server, fd);
		close(fd);
	}
}

struct fake_server *fake_server_start(const struct fake_answer *answers, size_t count)
{
	struct fake_server *server = mem_alloc(sizeof *server);
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof address;

	server->answers = answers;
	server->count = count;
	server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server->listener < 0 ||
	    bind(server->listener, (struct sockaddr *)&address, length) != 0 ||
	    listen(server->listener, 16) != 0 ||
	    getsockname(server->listener, (struct sockaddr *)&address, &length) != 0 ||
	    pipe(server->stop) != 0)
		abort();
	snprintf(server->url, sizeof server->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
	if (pthread_create(&server->thread, NULL, serve, server) != 0)
		abort();
	return server;
}

const char *fake_server_url(const struct fake_server *server)
{
	return server->url;
}

const char *fake_server_finish(struct fake_server *server)
{
	if (!server->joined) {
		(void)!write(server->stop[1], "x", 1);
		pthread_join(server->thread, NULL);
		server->joined = true;
	}
	return buf_text(&server->seen);
}

void fake_server_destroy(struct fake_server *server)
{
	fake_server_finish(server);
	close(server->listener);
	close(server->stop[0]);
	close(server->stop[1]);
	buf_deinit(&server->seen);
	free(server);
}
