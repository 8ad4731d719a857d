/*
 * exposition: figures as the text that Prometheus reads.
 *
 * Writes    a family's HELP and TYPE before its first sample and at no other time, so one without
 *           samples leaves nothing. A family's samples stand together: that is the caller's part.
 * Labels    values are made UTF-8 (one bad byte costs Prometheus the whole scrape) and escaped.
 * Numbers   integers times a power of ten: what was counted is never rounded on the way.
 * Source    Prometheus text format 0.0.4.
 * Pure.
 * Tests     tests/unit/text/exposition_test.c
 */
#pragma once

#include "base/buf.h"
#include "base/histogram.h"

#define EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct exposition {
	struct buf *text;
	const char *prefix; /* of every name: "better_compute_" */
	/* the family under way */
	const char *name, *type, *help;
	bool begun;
};

/* The samples that follow are of this family. Texts are constants; `type` is "gauge", "counter" or
 * "histogram"; `help` has no backslash and no line break. */
void exposition_family(struct exposition *out, const char *name, const char *type,
		       const char *help);

/* One sample. `labels` is what exposition_label() made, or constant text; NULL or "": none. */
void exposition_add(struct exposition *out, const char *labels, int64_t value);
/* value * 10^exponent: -3 for milliwatts as watts, 6 for megahertz as hertz. */
void exposition_add_scaled(struct exposition *out, const char *labels, int64_t value, int exponent);
void exposition_add_histogram(struct exposition *out, const char *labels,
			      const struct histogram *histogram);

/* A family of one sample without labels. */
void exposition_gauge(struct exposition *out, const char *name, const char *help, int64_t value);
void exposition_counter(struct exposition *out, const char *name, const char *help, int64_t value);

/* Adds name="value" to labels, with a comma before it if there are some. */
void exposition_label(struct buf *labels, const char *name, const char *value);
void exposition_label_number(struct buf *labels, const char *name, int64_t value);
