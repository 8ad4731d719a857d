#include "node/staticpods.h"

#include "sys/durable.h"

#include <stdio.h>

/* The file at this path of the host, if it is the pod's. */
static bool is_it(const struct staticpods_question *question, const char *path, size_t *bytes)
{
	const char *root = str_equal(question->root, "/") ? "" : question->root;
	CLEANUP(buf) struct buf full = {0}, text = {0};
	size_t left = STATICPODS_MAX_BYTES - *bytes;
	struct error ignored; /* then it isn't known to be */

	buf_printf(&full, "%s%s", root, path);
	if (!durable_read(buf_text(&full), left < STATICPOD_MAX_FILE ? left : STATICPOD_MAX_FILE,
			  &text, &ignored))
		return false;
	*bytes += text.length;
	return staticpod_is_of(buf_text(&text), text.length, question->node, question->namespace,
			       question->mirror);
}

static bool find_in(const struct staticpods_question *question, const char *folder,
		    char ret_path[STATICPOD_MAX_PATH])
{
	const char *root = str_equal(question->root, "/") ? "" : question->root;
	struct durable_names names = {0};
	CLEANUP(buf) struct buf full = {0};
	struct error ignored;
	bool found = false;
	size_t bytes = 0;

	buf_printf(&full, "%s%s", root, folder);
	if (!durable_list(buf_text(&full), STATICPODS_MAX, &names, &ignored))
		return false;
	for (size_t i = 0; i < names.count && !found; i++) {
		char path[STATICPOD_MAX_PATH];

		/* The kubelet doesn't read those with a dot in front. */
		if (names.names[i][0] == '.' || (size_t)snprintf(path, sizeof path, "%s/%s", folder,
								 names.names[i]) >= sizeof path)
			continue;
		found = is_it(question, path, &bytes);
		if (found)
			str_copy(ret_path, STATICPOD_MAX_PATH, path);
	}
	durable_names_deinit(&names);
	return found;
}

bool staticpods_find(const struct staticpods_question *question, char ret_path[STATICPOD_MAX_PATH])
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	char folder[STATICPOD_MAX_PATH];
	struct error ignored;
	size_t bytes = 0;

	buf_printf(&path, "%s/config.yaml", question->kubelet);
	if (!durable_read(buf_text(&path), STATICPOD_MAX_FILE, &text, &ignored) ||
	    !staticpod_folder(buf_text(&text), text.length, folder))
		return false;
	if (find_in(question, folder, ret_path))
		return true;
	if (!is_it(question, folder, &bytes)) /* it may be a file, too */
		return false;
	str_copy(ret_path, STATICPOD_MAX_PATH, folder);
	return true;
}
