/*
 * issue: certificates as the product makes them, of another day than today.
 *
 *     issue ca KEY SECONDS                        the node CA of this key, made so long ago
 *     issue node CA CA-KEY NODE-KEY ID SECONDS    a node's, issued so long ago
 *
 * PEM on stdout.
 */
#include "pki/cert.h"
#include "pki/keys.h"
#include "sys/clock.h"
#include "sys/durable.h"

#include <stdio.h>

static void must(bool ok, const struct error *error)
{
	if (ok)
		return;
	fprintf(stderr, "issue: %s\n", error->what);
	exit(1);
}

static struct pki_key *read_key(const char *path)
{
	struct pki_key *key = NULL;
	struct buf pem = {0};
	struct error error;

	must(durable_read(path, PKI_PEM_MAX, &pem, &error) &&
		     pki_key_from_pem(buf_text(&pem), pem.length, &key, &error),
	     &error);
	pki_wipe(&pem);
	return key;
}

static struct wall ago(const char *seconds)
{
	return (struct wall){clock_wall().ms - strtoll(seconds, NULL, 10) * 1000};
}

int main(int argc, char **argv)
{
	CLEANUP(buf) struct buf ca = {0}, out = {0};
	CLEANUP(pki_key) struct pki_key *key = NULL, *ca_key = NULL;
	struct error error;

	if (argc == 4 && str_equal(argv[1], "ca")) {
		key = read_key(argv[2]);
		must(cert_make_ca(key, "better-compute node CA", ago(argv[3]), &out, &error),
		     &error);
	} else if (argc == 7 && str_equal(argv[1], "node")) {
		must(durable_read(argv[2], PKI_PEM_MAX, &ca, &error), &error);
		ca_key = read_key(argv[3]);
		key = read_key(argv[4]);
		must(cert_issue_node(&(struct cert_issuer){buf_text(&ca), ca_key}, key, argv[5],
				     CERT_ROLE_NODE, ago(argv[6]), &out, &error),
		     &error);
	} else {
		fprintf(stderr, "usage: issue ca KEY SECONDS\n"
				"       issue node CA CA-KEY NODE-KEY ID SECONDS\n");
		return 2;
	}
	fputs(buf_text(&out), stdout);
	return 0;
}
