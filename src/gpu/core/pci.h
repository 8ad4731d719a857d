/*
 * pci: the place of a GPU, in one form for all who name it.
 *
 * NVML and nvidia-smi write "0000000F:01:00.0", sysfs and the device plugin API "000f:01:00.0", the
 * kernel log "PCI:000f:01:00" without the function, which is 0 for a GPU. All become "000f:01:00.0":
 * the domain as a number in at least four digits (never a fixed "0000" cut off), lower case.
 * Pure.
 */
#pragma once

#include "gpu/core/inventory.h"

/* The whole text, spaces around it allowed; false leaves `out` untouched. */
bool pci_parse(const char *text, char out[INVENTORY_PCI_SIZE]);
/* Reads one at the beginning of `text` and returns what stands behind it; NULL: none there. */
const char *pci_take(const char *text, char out[INVENTORY_PCI_SIZE]);
