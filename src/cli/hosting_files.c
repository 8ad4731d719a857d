#include "cli/hosting_files.h"
#include "sys/durable.h"

#include <unistd.h>

#define NEVER_REPLACED "It is never replaced: name a new one."

static bool check_new(const char *path, struct error *error)
{
	if (!path)
		return true;
	if (str_equal(path, "-")) {
		error_set(error, ERROR_INVALID_INPUT, "'-' would be a file of that name");
		return error_hint(error, "Name a file; without --out the manifests are printed.");
	}
	/* What can't be looked at isn't there for that. */
	if (!durable_absent(path) && durable_stamp(path).os == 0) {
		error_set(error, ERROR_CONFLICT, "'%s' exists", path);
		return error_hint(error, NEVER_REPLACED);
	}
	return durable_check_writable(path, error) ||
	       error_hint(error, "Name another one. Nothing was changed.");
}

bool hosting_files_check(const struct hosting_files *files, struct error *error)
{
	const char *paths[] = {files->out, files->helm, files->options_out, files->secret_out};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		for (size_t k = 0; k < i; k++) {
			if (!paths[i] || !paths[k] || !str_equal(paths[i], paths[k]))
				continue;
			error_set(error, ERROR_INVALID_INPUT, "'%s' is named twice", paths[i]);
			return error_hint(error, "Each output is a file of its own.");
		}
	}
	return check_new(files->out, error) && check_new(files->helm, error) &&
	       check_new(files->options_out, error) && check_new(files->secret_out, error);
}

/* Whoever makes the folder has it alone: of two runs with one name the other is refused. */
static bool write_chart(struct hosting_files *files, struct error *error)
{
	CLEANUP(arena) struct arena arena = {0};

	if (!durable_make_new_folder(files->helm, 0755, error))
		return false;
	files->made_helm = true;
	if (!durable_make_folder(arena_printf(&arena, "%s/templates", files->helm), 0755, error))
		return false;
	for (size_t i = 0; i < CHART_FILES; i++) {
		const struct chart_file *file = &files->chart->files[i];

		if (!durable_create(arena_printf(&arena, "%s/%s", files->helm, file->name),
				    file->text.data, file->text.length, 0644, error))
			return false;
		files->made_chart_files++;
	}
	return true;
}

static void remove_chart(const struct hosting_files *files)
{
	CLEANUP(arena) struct arena arena = {0};

	for (size_t i = 0; i < files->made_chart_files; i++)
		unlink(arena_printf(&arena, "%s/%s", files->helm, files->chart->files[i].name));
	rmdir(arena_printf(&arena, "%s/templates", files->helm));
	rmdir(files->helm);
}

static bool write_options(const struct hosting_files *files, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};

	render_json_object(files->options, &text);
	return durable_create(files->options_out, text.data, text.length, 0644, error);
}

/* A file system that gives it to somebody else, or to all, is found before there is a token. */
static bool write_placeholder(struct hosting_files *files, struct error *error)
{
	if (!durable_create(files->secret_out, files->placeholder, strlen(files->placeholder), 0600,
			    error))
		return false;
	files->made_secret = true;
	return durable_check_fillable(files->secret_out, error);
}

static bool make(struct hosting_files *files, struct error *error)
{
	if (files->secret_out && !write_placeholder(files, error))
		return false;
	if (files->out && !durable_create(files->out, files->manifests->data,
					  files->manifests->length, 0644, error))
		return false;
	files->made_out = files->out != NULL;
	if (files->helm && !write_chart(files, error))
		return false;
	if (files->options_out && !write_options(files, error))
		return false;
	files->made_options = files->options_out != NULL;
	return true;
}

/* Each was new when it was looked at; another run may have been faster. */
bool hosting_files_make(struct hosting_files *files, struct error *error)
{
	return make(files, error) ||
	       (error->code == ERROR_CONFLICT && error_hint(error, NEVER_REPLACED));
}

void hosting_files_remove(const struct hosting_files *files)
{
	struct error ignored; /* the first failure is the one to tell */

	(void)(!files->made_secret || durable_remove(files->secret_out, &ignored));
	(void)(!files->made_out || durable_remove(files->out, &ignored));
	(void)(!files->made_options || durable_remove(files->options_out, &ignored));
	if (files->made_helm)
		remove_chart(files);
}

bool hosting_files_secret(const struct hosting_files *files, const json_t *secret,
			  struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	bool ok;

	render_json_object(secret, &text);
	ok = durable_overwrite_text(files->secret_out, text.data, text.length, error);
	buf_wipe(&text);
	return ok;
}
