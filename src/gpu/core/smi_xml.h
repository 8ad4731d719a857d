/*
 * smi_xml: the XML of `nvidia-smi -q -x`, and what stands beside it.
 *
 * Used by smi.c only. Elements are known by their path below <gpu>, in any order; the first value of
 * an element counts. Pure.
 */
#pragma once

#include "gpu/core/smi.h"

/* Where the XML stands in what was printed; false: nowhere. `beside` gets the text around it. */
bool smi_xml_find(const char *text, size_t length, const char **ret_xml, size_t *ret_length,
		  struct buf *beside);

/* `*smi` is empty; on failure it may hold part. `beside` gets the text between the GPUs. */
MUST_CHECK bool smi_xml_read(const char *xml, size_t length, struct smi *smi, struct buf *beside,
			     struct error *error);
