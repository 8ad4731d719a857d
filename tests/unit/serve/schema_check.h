/*
 * schema_check: JSON held against the tables that the OpenAPI document is made of.
 */
#pragma once

#include "control/control.h"
#include "serve/routes.h"

/* Fails the test, naming the field, unless `json` is exactly what src/serve/schema.c says of this
 * type: no field that it doesn't know, every field that is always there, each in its form. */
void schema_check(const char *type, const json_t *json);

/* The body and the answer of a call that was done. */
void schema_check_call(route_call_fn *function, const json_t *body, const json_t *answer);

/* Was this field of this type in anything that was checked so far? */
bool schema_seen(const struct schema_field *field);
