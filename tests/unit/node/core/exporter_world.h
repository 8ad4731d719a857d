/* A machine and what is told of it: for what makes the text (header only). */
#pragma once

#include "node/core/exporter.h"

#include "fixture.h"

#define UUID_0 "GPU-042f84dd-1dba-4a94-a43e-84b505cf9d5e"

/* A machine, what is bound on it, and the view of both. */
struct world {
	struct scenario scenario;
	struct inventory inventory;
	struct reading reading;
	struct holds holds;
	struct offers offers;
	struct releases releases;
	struct conditions conditions;
	struct exporter_figures figures;
	struct exporter_view view;
	struct buf text;
};

/* Reads the scenario again, as changed. */
static inline void look(struct world *world)
{
	inventory_deinit(&world->inventory);
	world->inventory = (struct inventory){0};
	scenario_inventory(&world->scenario, 0, "test", &world->inventory);
	reading_deinit(&world->reading);
	world->reading = (struct reading){0};
	scenario_reading(&world->scenario, &world->reading);
}

static inline void change(struct world *world, size_t gpu, const char *assignment)
{
	struct error error;

	expect_ok(scenario_set(&world->scenario.gpus.items[gpu], assignment, 7, &error), &error);
	look(world);
}

static inline const char *format(struct world *world)
{
	buf_clear(&world->text);
	exporter_format(&world->view, &world->text);
	return buf_text(&world->text);
}

static inline int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);

	fixture_scenario(&world->scenario);
	look(world);
	world->view = (struct exporter_view){
		.node = "node_1",
		.hostname = "host-1",
		.kubernetes_node = "n1",
		.api = "device-plugin",
		.started = {1795999412529},
		.inventory = &world->inventory,
		.gpus_readable = true,
		.source = "simulated",
		.reading = &world->reading,
		.reading_age_ms = EXPORTER_UNKNOWN,
		.holds = &world->holds,
		.offers = &world->offers,
		.releases = &world->releases,
		.conditions = &world->conditions,
		.pods_age_ms = EXPORTER_UNKNOWN,
		.figures = &world->figures,
	};
	*state = world;
	return 0;
}

static inline int teardown(void **state)
{
	struct world *world = *state;

	scenario_deinit(&world->scenario);
	inventory_deinit(&world->inventory);
	reading_deinit(&world->reading);
	holds_deinit(&world->holds);
	offers_deinit(&world->offers);
	releases_deinit(&world->releases);
	vec_deinit(&world->conditions);
	buf_deinit(&world->text);
	free(world);
	return 0;
}

/* The sample whose line begins with `begin` and has `part` in it. */
static inline const char *find(const char *text, const char *begin, const char *part)
{
	static char line[1024];

	for (const char *at = text; *at;) {
		size_t length = strcspn(at, "\n");

		snprintf(line, sizeof line, "%.*s", (int)length, at);
		if (str_starts(line, begin) && strstr(line, part))
			return line;
		at += length + (at[length] == '\n');
	}
	return NULL;
}

static inline void expect_sample(const char *text, const char *begin, const char *part,
				 const char *value)
{
	const char *line = find(text, begin, part);

	if (!line || !str_equal(strrchr(line, ' ') + 1, value))
		fail_msg("%s with %s: '%s', not %s", begin, part, line ? line : "none", value);
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
