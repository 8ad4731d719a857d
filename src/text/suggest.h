/*
 * suggest: the word that was probably meant. Pure.
 */
#pragma once

#include "base/base.h"

/* The candidate nearest to `word` (insertions, deletions, replacements and swapped neighbours count
 * one each), NULL when none is near enough to be a slip: one edit for three letters, two for more.
 */
const char *suggest_nearest(const char *word, const char *const *candidates, size_t count);
