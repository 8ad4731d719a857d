/*
 * utf8: is it text? Protobuf and JSON peers refuse a whole message for one bad byte. Pure.
 */
#pragma once

#include "base/buf.h"

/* Length of the one valid sequence at `text` (1 to 4), or 0. Reads no further than a NUL. */
size_t utf8_length(const char *text);

bool utf8_valid(const char *text);

/* Adds `text` with each byte that is no UTF-8 replaced by U+FFFD. */
void utf8_add_clean(struct buf *out, const char *text);
