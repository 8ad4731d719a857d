/*
 * gpumetrics: what bcd tells Prometheus of GPUs, and of what of them can be booked: the part of
 * exporter.h's text that speaks of hardware and of who has it.
 *
 * Owns      OBS-14, OBS-20: the families bcd_gpu_* and bcd_device_info, _healthy, _memory_bytes, and the
 *           names that a DCGM exporter uses. Which labels and bounds they have says exporter.h.
 * Pure.
 * Tests     tests/unit/node/core/gpumetrics_test.c
 */
#pragma once

#include "node/core/exporter.h"
#include "text/exposition.h"

/* To `out`, which has bcd's prefix; the DCGM names, where the view wants them, behind it in the same text. */
void gpumetrics_add(struct exposition *out, const struct exporter_view *view);
