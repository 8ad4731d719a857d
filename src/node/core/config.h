/*
 * config: bcd's config.toml, checked (docs/internals/layout.md).
 *
 * Errors    INVALID_CONFIG naming the key, such as "kubernetes.gpu_api", and the value.
 * Lifetimes strings live in the config's arena; config_deinit() frees.
 * Pure.
 * Tests     tests/unit/node/core/config_test.c
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "gpu/core/xid.h"
#include "text/tree.h"

#define CONFIG_MAX_FILE      ((size_t)256 << 10)
#define CONFIG_DEFAULT_PATH  "/etc/bcd/config.toml"
#define CONFIG_MAX_ADDRESSES 16
#define CONFIG_MAX_CLUSTERS  64
#define CONFIG_MAX_PATH      1024
#define CONFIG_MAX_PATHS     8

/* Where GPUs come from; the words of [gpu] source are in this order. */
enum config_gpus {
	CONFIG_GPUS_AUTO, /* NVML, else nvidia-smi */
	CONFIG_GPUS_NVML,
	CONFIG_GPUS_NVIDIA_SMI,
	CONFIG_GPUS_SIM,
};

/* Absolute, as they were given. */
struct config_paths {
	const char *items[CONFIG_MAX_PATHS];
	size_t count;
};

struct config {
	struct arena arena;
	/* paths: where each is on this machine, root already in front */
	const char *root, *data, *run, *kubelet, *cdi, *run_cdi, *proc, *sys, *dev;
	/* gateway */
	const char *addresses[CONFIG_MAX_ADDRESSES];
	size_t address_count; /* 0: no control plane; what is on disk is served */
	const char *server_name, *ca_pins;
	/* join: "" when absent */
	const char *join_server, *encryption_jwk, *encryption_pins, *signing_pins, *ca_file;
	/* host */
	bool host_units;
	int64_t reserved_memory_mib;
	int32_t reserved_vcpu;
	bool confine; /* give up what bcd doesn't need: node/core/confine.h */
	/* gpu */
	enum config_gpus gpus;
	const char *sim_file, *sim_reason;
	int32_t slots;
	const char *kernel_log;                /* "": none is followed */
	const char *nvml_library, *nvidia_smi; /* "": where the driver has them */
	struct xid_policy xids;
	/* who started bcd: by its environment, not by the file */
	bool in_pod;
	/* kubernetes */
	const char *node_name;  /* "" when neither the file nor NODE_NAME says it */
	const char *site_id;    /* the pool's site, for the Node's labels; "" when not said */
	const char *gpu_api;    /* "device-plugin" or "dra" */
	const char *kubeconfig; /* the kubelet's: whom bcd is for the API server; "": none */
	/* files and folders that say who else may give GPUs away: nothing is offered while one can't be
	 * read */
	struct config_paths runtime_config, toolkit_config;
	const char *allowed_clusters[CONFIG_MAX_CLUSTERS];
	size_t cluster_count;
	/* metrics: on run/metrics.sock in any case */
	const char *metrics_listen; /* "ADDR:PORT" of a second place, on TCP; "": none */
	bool dcgm_names;            /* DCGM_FI_DEV_* as well */
};
void config_deinit(struct config *config);

static inline void config_cleanup(struct config *config)
{
	config_deinit(config);
}

/* `node_name` is NODE_NAME of the environment, or NULL. `*ret_config` must be empty. */
MUST_CHECK bool config_read(json_t *tree, const char *node_name, struct config *ret_config,
			    struct error *error);

/* A node whose host another party owns, in a cluster that exists already. */
bool config_hosted(const struct config *config);
/* What `bcd node` needs beyond what can be read: a hosted node has a name (HOSTED-41). */
MUST_CHECK bool config_check_node(const struct config *config, struct error *error);
