#include "node/exposure.h"

#include "sys/durable.h"
#include "sys/log.h"

struct exposure {
	const struct config *config;
	struct mono again;                     /* the next look */
	bool suspected;                        /* the last look found something */
	size_t left;                           /* of EXPOSURE_MAX_ALL, in this look */
	char message[CONDITIONS_MESSAGE_SIZE]; /* "": nothing is open */
};

static bool read_file(struct exposure *exposure, const char *path, struct error *error)
{
	CLEANUP(buf) struct buf content = {0};

	if (!durable_read(path, EXPOSURE_MAX_FILE, &content, error))
		return false;
	if (content.length > exposure->left)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "read '%s': all that is looked at is more than %zu MiB", path,
				 EXPOSURE_MAX_ALL >> 20);
	exposure->left -= content.length;
	return true;
}

/* Of a folder, what is no file in it is passed over, and what is gone from it. */
static bool read_folder(struct exposure *exposure, const char *path, struct error *error)
{
	CLEANUP(arena) struct arena arena = {0};
	struct durable_names names = {0};
	bool ok = durable_list(path, EXPOSURE_MAX_LIST, &names, error);

	for (size_t i = 0; ok && i < names.count; i++) {
		const char *file = arena_printf(&arena, "%s/%s", path, names.names[i]);

		ok = read_file(exposure, file, error) || error->code == ERROR_INVALID_STATE ||
		     (error->code == ERROR_NOT_FOUND && durable_absent(file));
	}
	durable_names_deinit(&names);
	return ok;
}

static bool read_path(struct exposure *exposure, const char *path, struct error *error)
{
	return read_file(exposure, path, error) ||
	       (error->code == ERROR_INVALID_STATE && read_folder(exposure, path, error));
}

static void look_at(struct exposure *exposure, const struct config_paths *paths, bool toolkit,
		    struct arena *arena, struct exposure_view *view)
{
	for (size_t i = 0; i < paths->count; i++) {
		struct error error;

		if (!read_path(exposure, paths->items[i], &error))
			*vec_push(view) =
				(struct exposure_unread){arena_strdup(arena, error.what), toolkit};
	}
}

/* `sure`: what it finds counts. */
static void look(struct exposure *exposure, bool sure)
{
	CLEANUP(arena) struct arena arena = {0};
	struct exposure_view view = {0};
	char message[CONDITIONS_MESSAGE_SIZE];

	exposure->left = EXPOSURE_MAX_ALL;
	look_at(exposure, &exposure->config->runtime_config, false, &arena, &view);
	look_at(exposure, &exposure->config->toolkit_config, true, &arena, &view);
	exposure_decide(&view, message);
	vec_deinit(&view);
	sure = sure || exposure->suspected;
	exposure->suspected = *message;
	if (*message && !sure)
		return;
	if (str_equal(message, exposure->message))
		return;
	if (*message)
		log_error("exposure", "nothing is offered: other ways to the GPUs may be open",
			  "open", message, NULL);
	else
		log_info("exposure", "no other way to the GPUs is open any more", NULL);
	str_copy(exposure->message, sizeof exposure->message, message);
}

void exposure_look(struct exposure *exposure, struct mono now)
{
	if (mono_until(now, exposure->again) > 0)
		return;
	look(exposure, false);
	exposure->again = mono_after(now, exposure->suspected ? EXPOSURE_AGAIN_MS : EXPOSURE_MS);
}

const char *exposure_open(const struct exposure *exposure)
{
	return *exposure->message ? exposure->message : NULL;
}

struct exposure *exposure_create(const struct config *config)
{
	struct exposure *exposure = mem_alloc(sizeof *exposure);

	exposure->config = config;
	exposure->again = mono_after(clock_mono(), EXPOSURE_MS);
	look(exposure, true);
	return exposure;
}

void exposure_destroy(struct exposure *exposure)
{
	free(exposure);
}
