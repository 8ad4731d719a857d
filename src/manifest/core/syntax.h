/*
 * syntax: the forms of names, labels, quantities, images and addresses in manifests.
 *
 * Each tells whether a text has the form; what is wrong then is the caller's to say.
 * Source    Kubernetes' apimachinery validation (RFC 1123 labels and subdomains, qualified names,
 *           quantities), the distribution project's reference grammar; hosts: RFC 1123, RFC 4291, RFC
 *           3986.
 * Pure.
 * Tests     tests/unit/manifest/core/syntax_test.c
 */
#pragma once

#include "base/base.h"

#define SYNTAX_MAX_URL 512

bool syntax_label(const char *text);       /* an RFC 1123 label: 63 of a-z, 0-9, '-' */
bool syntax_name(const char *text);        /* labels with dots, 253 */
bool syntax_data_key(const char *text);    /* a key of a ConfigMap or Secret */
bool syntax_label_key(const char *text);   /* "example.com/name" */
bool syntax_label_value(const char *text); /* 63; may be empty */
bool syntax_quantity(const char *text);    /* "100m", "1.5Gi", "1e3"; not negative */

/* "registry/repo[:tag]@sha256:<64 hex digits>" */
bool syntax_image(const char *text);

/* What a gateway's certificate may name: a name (RFC 1123) or an IPv4 address, no IPv6 one. */
bool syntax_server_name(const char *text);

/* "https://host[:port]", an IPv6 host in brackets; without user, query and fragment. with_path: a
 * path may follow. */
bool syntax_https(const char *text, bool with_path);
