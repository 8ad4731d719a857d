#include "manifest/core/render.h"
#include "text/yaml.h"

void render_json_object(const json_t *object, struct buf *out)
{
	CLEANUP(free) char *text = json_dumps(object, JSON_INDENT(2) | JSON_SORT_KEYS);

	buf_printf(out, "%s\n", text);
}

void render_json(const json_t *objects, struct buf *out)
{
	CLEANUP(tree)
	json_t *list =
		json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", objects);

	render_json_object(list, out);
}

/* The writer keeps the order of the tree. */
static json_t *sorted(const json_t *object)
{
	CLEANUP(free) char *text = json_dumps(object, JSON_SORT_KEYS);

	return json_loads(text, 0, NULL);
}

void render_yaml(const json_t *objects, struct buf *out)
{
	size_t index;
	json_t *object;

	json_array_foreach((json_t *)objects, index, object)
	{
		CLEANUP(tree) json_t *copy = sorted(object);

		buf_add_text(out, index ? "---\n" : "");
		yaml_dump(out, copy);
	}
}
