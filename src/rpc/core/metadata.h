/*
 * metadata: the names and values that go beside a call's messages.
 *
 * Names are lower case. Values of names that end in "-bin" are bytes, base64 on the wire and
 * decoded here; all others are printable ASCII. Owns      copies of names and values; `{0}` is
 * empty. Limits    none of its own: the session counts header bytes before it adds them. Pure.
 */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

struct metadata_entry {
	char *name;
	uint8_t *value; /* a NUL follows it */
	size_t length;
};

struct metadata VEC_BODY(struct metadata_entry);

/* Bytes that don't belong in a value that isn't "-bin" become '?'. `name` must be a legal one. */
void metadata_add(struct metadata *metadata, const char *name, const void *value, size_t length);

/* As it came from a peer. False: a "-bin" value that is not base64. */
bool metadata_add_wire(struct metadata *metadata, const uint8_t *name, size_t name_length,
		       const uint8_t *value, size_t length);

/* Appends the wire form of an entry's value. */
void metadata_value_encode(struct buf *out, const struct metadata_entry *entry);

/* The first entry of that name, or NULL. */
const struct metadata_entry *metadata_find(const struct metadata *metadata, const char *name);

void metadata_deinit(struct metadata *metadata);
