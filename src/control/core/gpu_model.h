/*
 * gpu_model: is a GPU of the model that a pool speaks of?
 *
 * Pure      texts in, truth out.
 */
#pragma once

#include "base/base.h"

/* Is `model` found in `text` as whole words, whatever the case? An empty one isn't. */
bool gpu_model_matches(const char *model, const char *text);
