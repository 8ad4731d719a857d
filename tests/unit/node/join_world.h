/* A machine that joins, and a join service with its gateway in a child process, over TLS on loopback. */
#pragma once

#include "lib/test.h"
#include "node/join.h"
#include "pki/folder.h"

#include <sys/types.h>

#define NAME  "gateway.test"
#define TOKEN "bcj1_jt_01kb00000000000000000000aa_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA"
#define NODE  "node_01kb00000000000000000000aa"

enum mode {
	MODE_HONEST,
	MODE_REFUSES,      /* the token is expired, and so is every certificate */
	MODE_BY_KEY,       /* the token is expired */
	MODE_BY_TOKEN,     /* each certificate is, for too long */
	MODE_OTHER_SIGNER, /* a key that nobody pinned */
	MODE_OTHER_NONCE,
	MODE_BUSY,
	MODE_BEHIND, /* its clock */
	MODE_AHEAD,
};

struct world {
	void *folder;
	struct pki_folder pki;
	struct pki_pins pins;
	struct config config;
	char token[512];
	char address[64];
	pid_t server;
};

/* The service of the world runs, until it is stopped or the test ends. */
void start_service(struct world *world, enum mode mode);
void stop_service(struct world *world);
/* The machine joins with its token; `message`: part of the error, or NULL. */
void expect_join(struct world *world, enum join_exit wanted, const char *message);
/* And part of what is to be done then, or NULL. */
void expect_next(struct world *world, enum join_exit wanted, const char *message, const char *next);
/* The machine joins with a token file or none; what is said, with its hint. */
const char *say(struct world *world, const char *token_file, enum join_exit wanted);
/* The machine joined `days_ago`, and its certificate is of then. */
void have_joined(struct world *world, int days_ago);
/* A file of its identity. */
void lose(struct world *world, const char *name);
/* What is on disk is of NODE or of another; of one that has stored no Spec yet. */
void expect_node(struct world *world, bool same, bool fresh);
int setup(void **state);
int teardown(void **state);

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
