/*
 * chart: the same objects as the templates of a Helm chart.
 *
 * What doesn't touch bcd's configuration is left to values.yaml: image, pull secrets, node selector,
 * tolerations, priority class, resources. Everything else is as rendered: a chart is for one
 * deployment. The Namespace is made only with createNamespace, as Helm keeps its release in a
 * namespace that is there before.
 * Source    Helm 3: chart format, template functions.
 * Pure.
 * Tests     tests/unit/manifest/core/chart_test.c; Helm itself: tests/peer/manifest
 */
#pragma once

#include "manifest/core/settings.h"

#define CHART_FILES 3

struct chart_file {
	const char *name; /* in the chart's folder */
	struct buf text;
};
struct chart {
	struct chart_file files[CHART_FILES];
};
void chart_deinit(struct chart *chart);

static inline void chart_cleanup(struct chart *chart)
{
	chart_deinit(chart);
}

/* `objects` are objects_make()'s, with the Namespace; `version` is the chart's. */
void chart_make(const struct settings *settings, const json_t *objects, const char *version,
		struct chart *ret_chart);
