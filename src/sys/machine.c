#include "sys/machine.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

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
	*ret_machine = machine;
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
