/*
 * openapi: the OpenAPI 3.1 document of the HTTP API, made of the tables of routes.c and schema.c.
 *
 * Owns      nothing that those tables could say: paths, operations, their errors and links. A link
 *           says that an answer's id is what another call takes, in its path or its body.
 * Pure.
 */
#pragma once

#include "base/buf.h"

/* Appends the document, JSON text with a newline at its end. */
void openapi_write(struct buf *out);
