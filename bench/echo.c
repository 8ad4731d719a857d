/* echo: the floor of the bench: sends back what comes in, over a unix socket, and does nothing
 * else. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char data[65536];
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), conn;

	if (argc != 2 || strlen(argv[1]) >= sizeof address.sun_path) {
		fprintf(stderr, "usage: bench-echo SOCKET\n");
		return 2;
	}
	memcpy(address.sun_path, argv[1], strlen(argv[1]));
	if (listener < 0 || bind(listener, (const struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(listener, 8) < 0) {
		perror("bench-echo");
		return 1;
	}
	while ((conn = accept(listener, NULL, NULL)) >= 0) {
		ssize_t got;

		while ((got = read(conn, data, sizeof data)) > 0)
			if (write(conn, data, (size_t)got) != got)
				break;
		close(conn);
	}
	return 1;
}
