#include "node/core/staticpod.h"

#include "text/tree.h"
#include "text/yaml.h"

#define MAX_NAME 253

bool staticpod_folder(const char *config, size_t length, char ret_path[STATICPOD_MAX_PATH])
{
	CLEANUP(tree) json_t *tree = NULL;
	struct error ignored; /* as the header says */
	const char *path = "";

	if (!yaml_parse(config, length, STATICPOD_MAX_FILE, "config.yaml", &tree, &ignored) ||
	    !json_is_object(tree) ||
	    !tree_opt_string(tree, "staticPodPath", "", STATICPOD_MAX_PATH - 1, &path, &ignored) ||
	    *path != '/')
		return false;
	str_copy(ret_path, STATICPOD_MAX_PATH, path);
	return true;
}

bool staticpod_is_of(const char *text, size_t length, const char *node, const char *namespace,
		     const char *mirror)
{
	CLEANUP(tree) json_t *tree = NULL;
	const char *name, *own = "default";
	struct error ignored;
	size_t end = strlen(mirror), node_length = strlen(node);
	json_t *metadata;

	if (end <= node_length + 1 || mirror[end - node_length - 1] != '-' ||
	    !str_equal(mirror + end - node_length, node))
		return false;
	end -= node_length + 1;
	/* Parsing costs a hundred times as much as looking, and most manifests are other pods'. */
	if (!memmem(text, length, mirror, end) ||
	    !yaml_parse(text, length, STATICPOD_MAX_FILE, "manifest", &tree, &ignored) ||
	    !json_is_object(tree) || !tree_get_object(tree, "metadata", "", &metadata, &ignored) ||
	    !tree_get_string(metadata, "name", "metadata", MAX_NAME, &name, &ignored) ||
	    !tree_opt_string(metadata, "namespace", "metadata", MAX_NAME, &own, &ignored))
		return false;
	return str_equal(own, namespace) && strlen(name) == end && strncmp(mirror, name, end) == 0;
}
