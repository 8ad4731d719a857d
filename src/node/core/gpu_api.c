#include "node/core/gpu_api.h"

bool gpu_api_offers(const char *own, const char *pool, struct buf *why)
{
	if (!str_equal(own, "device-plugin")) {
		buf_printf(
			why,
			"config.toml says [kubernetes] gpu_api = \"%s\", and this bcd has no DRA "
			"driver; give it \"device-plugin\" there (kubernetes manifest: --gpu-api "
			"device-plugin), and the pool, too",
			own);
		return false;
	}
	if (*pool && !str_equal(pool, own)) {
		buf_printf(why,
			   "the pool's gpuApi is %s, and this node's [kubernetes] gpu_api %s; make "
			   "them the same: better-compute pools update POOL --gpu-api %s",
			   pool, own, own);
		return false;
	}
	return true;
}
