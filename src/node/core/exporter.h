/*
 * exporter: what bcd tells Prometheus, as text (docs/formats/metrics.md).
 *
 * Owns      OBS-14..16, 20: the names bcd_*, their units and labels, and the DCGM aliases (of GPUs and
 *           devices: gpumetrics.h). What a GPU can't tell leaves no sample: never a zero that nobody measured.
 * Labels    a sample of a GPU says which GPU (gpu, uuid, pci, minor, model) and who has it whole
 *           (allocation, namespace, pod, container; "" when nobody is known). Who has a part stands at
 *           the part, in device_info, once.
 * Bounds    so many samples a GPU and a device, at most INVENTORY_MAX_GPUS and INVENTORY_MAX_ATOMS, and
 *           the devices that are bound though their place is gone. A cause's count is no label value.
 * Takes     about a millisecond for 16 GPUs in 112 MIG instances, all of them in use.
 * Source    dcgm-exporter's default counters and label names, for the aliases.
 * Pure.
 * Tests     tests/unit/node/core/exporter_test.c, tests/peer/ops (promtool)
 */
#pragma once

#include "base/histogram.h"
#include "gpu/core/reading.h"
#include "node/core/conditions.h"
#include "node/core/offer.h"

/* A device that a container has, by the kubelet's word. Borrowed texts, "" unknown. */
struct exporter_holder {
	const char *id; /* as the kubelet knows the device */
	const char *namespace, *pod, *container;
};

/* What this process counts of itself. */
struct exporter_figures {
	struct histogram turns; /* one a pass */
	uint64_t writes, write_failures;
};

struct exporter_xids {
	int32_t active[HEALTH_MAX_XIDS]; /* seen, and nothing has ended them */
	size_t count;
	int32_t last; /* 0: none was seen */
};

#define EXPORTER_UNKNOWN (-1) /* of a time or a count */

struct exporter_view {
	/* who */
	const char *node, *hostname, *kubernetes_node, *api;
	struct wall started;

	/* GPUs */
	const struct inventory *inventory;
	bool gpus_readable;
	const char *source;            /* "simulated", "nvml", "nvidia-smi"; "" nothing was read */
	const struct reading *reading; /* NULL: gauges are unknown */
	const struct exporter_xids *xids; /* one for each GPU of the inventory; NULL: unknown */
	int64_t reading_age_ms;           /* or EXPORTER_UNKNOWN */
	uint64_t source_failures;         /* tries to read them */
	uint64_t log_gaps;                /* of the kernel's log */

	/* devices */
	const struct holds *holds; /* NULL: unreadable */
	const struct offers *offers;
	bool registered[ATOM_CLASSES];
	const struct releases *releases;
	int64_t oldest_release_ms; /* since the oldest pending one; 0: none pending */
	size_t releases_stuck;
	const struct conditions *conditions;

	/* the kubelet's list of pods */
	const struct exporter_holder *holders;
	size_t holder_count;
	int64_t pods_age_ms;    /* or EXPORTER_UNKNOWN: not asked, since nothing is bound */
	uint32_t pods_failures; /* in a row */

	/* the control plane */
	bool gateway_configured, gateway_connected;
	struct wall gateway_since; /* of that state; 0: it never changed */
	size_t reports_queued;

	const struct exporter_figures *figures;
	bool dcgm_names;
};

void exporter_format(const struct exporter_view *view, struct buf *text);
