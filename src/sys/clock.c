#include "sys/clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec time;

	if (clock_gettime(id, &time) != 0)
		abort();
	return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

struct mono clock_mono(void)
{
	return (struct mono){read_clock(CLOCK_BOOTTIME)};
}

struct wall clock_wall(void)
{
	return (struct wall){read_clock(CLOCK_REALTIME)};
}

int64_t clock_us(void)
{
	struct timespec time;

	if (clock_gettime(CLOCK_BOOTTIME, &time) != 0)
		abort();
	return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

void clock_boot_id(char out[CLOCK_BOOT_ID_SIZE])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length = 0;

	if (fd >= 0) {
		length = read(fd, out, CLOCK_BOOT_ID_SIZE - 1);
		close(fd);
	}
	out[length == CLOCK_BOOT_ID_SIZE - 1 ? length : 0] = '\0';
}
