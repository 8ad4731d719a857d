/*
 * mig: the MIG instances of one GPU, as NVML tells them.
 *
 * Whole     instances only: one whose numbers, UUID or place can't be had any more was removed while
 *           it was looked at, and all are looked at again, MIG_ATTEMPTS times at most.
 * Place     in eighths of the GPU, whatever the GPU's own slices are; -1 when NVML doesn't tell (it
 *           tells it to root alone, and only of GPU instances).
 */
#pragma once

#include "nvml/look.h"

#define MIG_ATTEMPTS 3

void mig_read(struct look *look);
