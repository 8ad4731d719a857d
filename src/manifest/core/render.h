/*
 * render: objects as the bytes that are applied. Equal objects give equal bytes: keys are sorted.
 *
 * Pure.
 * Tests     tests/unit/manifest/core/render_test.c
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>

/* One `v1` List. */
void render_json(const json_t *objects, struct buf *out);
/* One object. */
void render_json_object(const json_t *object, struct buf *out);
/* One document an object. */
void render_yaml(const json_t *objects, struct buf *out);
