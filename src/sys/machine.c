#include "sys/machine.h"

#include "base/buf.h"
#include "sys/durable.h"

#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

#define COUNT_MAX_SIZE 4096 /* what the kernel says is the file's size */

void machine_read(struct machine *ret_machine)
{
	struct machine machine = {0};
	struct utsname names;

	if (uname(&names) == 0) {
		str_copy(machine.hostname, sizeof machine.hostname, names.nodename);
		str_copy(machine.kernel, sizeof machine.kernel, names.release);
	}
	machine.vcpus = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
	machine.memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	machine_hugepages(MACHINE_HUGEPAGES, &machine.hugepages);
	*ret_machine = machine;
}

static int64_t read_count(const char *path)
{
	CLEANUP(buf) struct buf text = {0};
	struct error ignored; /* the kernel has no such pages */
	long long count;

	if (!durable_read(path, COUNT_MAX_SIZE, &text, &ignored) ||
	    sscanf(buf_text(&text), "%18lld", &count) != 1 || count < 0)
		return 0;
	return count;
}

void machine_hugepages(const char *folder, struct hugepages *ret_pages)
{
	for (int i = 0; i < HUGEPAGES_SIZES; i++) {
		int64_t page = hugepages_page_bytes((enum hugepages_size)i), count;
		CLEANUP(buf) struct buf path = {0};

		buf_printf(&path, "%s/hugepages-%lldkB/nr_hugepages", folder,
			   (long long)page / 1024);
		count = read_count(buf_text(&path));
		ret_pages->bytes[i] = count <= INT64_MAX / page ? count * page : 0;
	}
}

bool machine_device(const char *path, struct machine_device *ret_device)
{
	struct stat stat_buffer;

	if (stat(path, &stat_buffer) != 0)
		return false;
	if (!S_ISCHR(stat_buffer.st_mode) && !S_ISBLK(stat_buffer.st_mode))
		return false;
	*ret_device = (struct machine_device){
		.type = S_ISCHR(stat_buffer.st_mode) ? 'c' : 'b',
		.major = major(stat_buffer.st_rdev),
		.minor = minor(stat_buffer.st_rdev),
	};
	return true;
}
