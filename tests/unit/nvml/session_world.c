#include "session_world.h"

struct world world;

int make(void **state UNUSED)
{
	world = (struct world){0};
	if (folder_make(&world.folder) < 0)
		return -1;
	setenv("FAKE_DRIVER", folder_path(&world.folder, "scene.json"), 1);
	world.scene = fakedriver_new(2);
	return 0;
}

int drop(void **state UNUSED)
{
	session_deinit(&world.session);
	reading_deinit(&world.reading);
	json_decref(world.scene);
	return folder_remove(&world.folder);
}

void open_driver(const char *library)
{
	struct error error;

	fakedriver_write(world.scene);
	session_deinit(&world.session);
	expect_ok(session_open(library, "/", &world.session, &error), &error);
}

const struct reading *read_scene(void)
{
	struct error error;

	fakedriver_write(world.scene);
	reading_deinit(&world.reading);
	expect_ok(session_read(&world.session, &world.reading, &error), &error);
	return &world.reading;
}

void set(size_t gpu, const char *name, json_t *value)
{
	json_object_set_new(fakedriver_gpu(world.scene, gpu), name, value);
}

void unset(size_t gpu, const char *name)
{
	json_object_del(fakedriver_gpu(world.scene, gpu), name);
}

void expect_consistent(const struct reading_gpu *gpu)
{
	int32_t owners[8] = {0};

	vec_each (&gpu->mig, const struct reading_mig *mig) {
		for (int32_t i = mig->start; i >= 0 && i < mig->start + mig->size; i++) {
			assert_in_range(i, 0, 7);
			assert_true(owners[i] == 0 || owners[i] == mig->gi + 1);
			owners[i] = mig->gi + 1;
		}
	}
}
