/*
 * openapi_types: the types of schema.c as OpenAPI says them. Private to openapi.c. Pure.
 *
 * All answers are new references. `asked`: the field or type is one of a body, so its bounds are those that are checked.
 */
#pragma once

#include "serve/schema.h"
#include "text/tree.h"

/* {"$ref": "#/components/KIND/NAME"} */
json_t *openapi_reference(const char *kind, const char *name);

json_t *openapi_scalar(const struct schema_field *field, bool asked);
json_t *openapi_scalar_example(const struct schema_field *field);
json_t *openapi_type_example(const struct schema_type *type);

json_t *openapi_schemas(void); /* of all types, by name */
