/*
 * nodecert: a node's real key and certificate, of an authority of the test's own.
 */
#pragma once

#include "lib/test.h"
#include "node/identity.h"
#include "pki/cert.h"
#include "sys/clock.h"

#define NODECERT_DAY_MS (INT64_C(24) * 60 * 60 * 1000)

/* The certificate began `days_ago`, by an authority that is made for it. */
static inline void nodecert_issue(const struct pki_key *key, const char *node_id, int days_ago,
				  struct buf *ret_pem)
{
	const struct wall then = {clock_wall().ms - days_ago * NODECERT_DAY_MS};
	CLEANUP(pki_key) struct pki_key *ca_key = NULL;
	CLEANUP(buf) struct buf ca = {0};
	struct error error;

	buf_clear(ret_pem);
	expect_ok(pki_key_generate(&ca_key, &error), &error);
	expect_ok(cert_make_ca(ca_key, "better-compute node CA", then, &ca, &error), &error);
	expect_ok(cert_issue_node(&(struct cert_issuer){buf_text(&ca), ca_key}, key, node_id,
				  CERT_ROLE_NODE, then, ret_pem, &error),
		  &error);
}

/* A whole identity, as after a join. */
static inline void nodecert_identity(struct identity *identity, const char *node_id, int days_ago)
{
	CLEANUP(pki_key) struct pki_key *key = NULL;
	struct error error;

	str_copy(identity->node_id, sizeof identity->node_id, node_id);
	str_copy(identity->trust, sizeof identity->trust, "platform");
	str_copy(identity->gateway_address, sizeof identity->gateway_address, "gw:7443");
	str_copy(identity->gateway_server_name, sizeof identity->gateway_server_name, "gw");
	expect_ok(pki_key_generate(&key, &error), &error);
	expect_ok(pki_key_to_pem(key, &identity->key_pem, &error), &error);
	nodecert_issue(key, node_id, days_ago, &identity->certificate_pem);
}
