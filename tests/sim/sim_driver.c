/* gpu/driver.c: the simulated machine has no driver, its GPUs are described by a file. */
#include "gpu/source_internal.h"

struct source *driver_create(struct loop *loop UNUSED, const struct source_options *options UNUSED,
			     loop_fn *on_change UNUSED, void *arg UNUSED)
{
	abort();
}
