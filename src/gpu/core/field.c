#include "gpu/core/field.h"

bool field_object(const json_t *value, const char *where, struct error *error)
{
	return json_is_object(value) ||
	       error_field(error, *where ? where : "the whole", "must be an object");
}

static bool absent(const json_t *object, const char *key, bool required)
{
	return !required && !json_object_get(object, key);
}

bool field_text(const json_t *object, const char *where, const char *key, bool required, char *out,
		size_t size, struct error *error)
{
	const char *text;

	if (absent(object, key, required))
		return true;
	return tree_get_text(object, key, where, size - 1, &text, error) &&
	       str_copy(out, size, text);
}

bool field_number(const json_t *object, const char *where, const char *key, bool required,
		  int64_t min, int64_t max, int64_t *ret_number, struct error *error)
{
	return absent(object, key, required) ||
	       tree_get_int(object, key, where, min, max, ret_number, error);
}

bool field_int(const json_t *object, const char *where, const char *key, bool required, int32_t min,
	       int32_t max, int32_t *ret_number, struct error *error)
{
	int64_t number = *ret_number;

	if (!field_number(object, where, key, required, min, max, &number, error))
		return false;
	*ret_number = (int32_t)number;
	return true;
}

bool field_bool(const json_t *object, const char *where, const char *key, bool required,
		bool *ret_bool, struct error *error)
{
	return absent(object, key, required) || tree_get_bool(object, key, where, ret_bool, error);
}

bool field_version(const json_t *record, int32_t wanted, struct error *error)
{
	int32_t version = 0;

	if (!field_int(record, "", "version", true, 0, INT32_MAX, &version, error))
		return false;
	if (version == wanted)
		return true;
	error_field(error, "version", "is %d%s; this bcd reads version %d", (int)version,
		    version > wanted ? ", of a newer bcd" : "", (int)wanted);
	return version > wanted &&
	       error_hint(error,
			  "Run the bcd that wrote it, or a later one, and it is read again.");
}

bool field_array(const json_t *object, const char *where, const char *key, bool required,
		 size_t max_count, json_t **ret_array, struct error *error)
{
	if (absent(object, key, required)) {
		*ret_array = NULL;
		return true;
	}
	return tree_get_array(object, key, where, max_count, ret_array, error);
}

bool field_child(const json_t *object, const char *where, const char *key, bool required,
		 json_t **ret_object, struct error *error)
{
	if (absent(object, key, required)) {
		*ret_object = NULL;
		return true;
	}
	return tree_get_object(object, key, where, ret_object, error);
}

json_t *field_others(json_t *object, const char *const *keys)
{
	json_t *others = json_copy(object);

	for (; *keys; keys++)
		json_object_del(others, *keys);
	if (json_object_size(others) > 0)
		return others;
	json_decref(others);
	return NULL;
}
