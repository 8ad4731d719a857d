/* base64: RFC 4648 section 4, with padding. Pure. */
#pragma once

#include "base/buf.h"

void base64_encode(const void *data, size_t length, struct buf *out);
/* False when the text isn't base64; `out` may have grown then. */
MUST_CHECK bool base64_decode(const char *text, struct buf *out);
