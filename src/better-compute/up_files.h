/*
 * up_files: where `up` keeps everything, and the files it writes. Blocks on disk.
 *
 * Layout    docs/internals/layout.md, "better-compute up".
 * Secrets   the state folder is 0700; context.json, the key and the join token are 0600.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

/* The name in the certificate of the gateway that up starts. */
#define UP_GATEWAY_NAME "gateway.better-compute.internal"

enum up_kubelet {
	UP_KUBELET_STANDIN,
	UP_KUBELET_NONE,
	UP_KUBELET_REAL,
};

/* What the flags say. Borrowed. */
struct up_options {
	const char *state;      /* "./.better-compute" */
	const char *listen;     /* "127.0.0.1:7480" */
	const char *gpus;       /* "auto", "sim:8xH100", "sim:FILE" */
	const char *kubelet;    /* "auto", "stand-in", "none", or a kubelet's root folder */
	const char *cdi;        /* NULL: by the kubelet */
	const char *ready_file; /* NULL: none */
};

/* Absolute paths, in the arena. */
struct up_files {
	const char *state, *lock, *context;
	const char *serve_home, *serve_ready, *admin_key, *secret_key, *pki;
	const char *node, *node_data, *node_run, *config, *token, *identity;
	const char *gpus, *cdi, *kubelet_root;
	const char *serve_log, *bcd_log, *kubelet_log;
	const char *better_compute, *bcd, *standin; /* executables */
	enum up_kubelet kubelet;
	const char *kubelet_why; /* for people: "no kubelet on this machine" */
	bool gpus_auto;          /* whatever GPUs the machine has */
	bool gpus_real;          /* it has a driver for them: none are simulated */
	bool gpus_kept;          /* --gpus came too late: gpus.toml was there, and says otherwise */
	bool gpus_made;          /* gpus.toml was written by this start */
	const char *pool_model;  /* "H100" */
};

/* The state folder, made if absent, and the names in it. Refuses one that others own or can enter.
 */
MUST_CHECK bool up_files_open(const char *state, struct arena *arena, struct up_files *ret_files,
			      struct error *error);

/* With the folder locked: decides the rest, and makes what the first start needs but the control
 * plane's own home. CONFLICT when --gpus would take the place of a gpus.toml that a person edited. */
MUST_CHECK bool up_files_prepare(const struct up_options *options, struct arena *arena,
				 struct up_files *files, struct error *error);

/* A first start that failed: the next one may be given other GPUs, unless somebody edited these. */
void up_files_forget_gpus(const struct up_files *files);

/* The database, keys and first operator key in serve/: whole or not at all. */
MUST_CHECK bool up_files_init_serve(const struct up_files *files, struct error *error);

/* What serve wrote when it was ready: {"api","gateway"}. NOT_FOUND before. In the arena. */
MUST_CHECK bool up_files_read_ready(const struct up_files *files, struct arena *arena,
				    const char **ret_api, const char **ret_gateway,
				    struct error *error);

/* bcd's config.toml, for the gateway where it is now. */
MUST_CHECK bool up_files_write_config(const struct up_files *files, const char *gateway,
				      struct error *error);

/* The last thing a program said before it ended, for the error: "" when it said nothing. */
void up_files_last_words(const char *log_path, char *out, size_t out_size);
