#include "text/suggest.h"

#define SUGGEST_MAX 64 /* longer words are not slips of each other */

static size_t min2(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment distance by three rows. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t rows[3][SUGGEST_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2];

	for (size_t j = 0; j <= b_length; j++)
		last[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t replace = last[j - 1] + (a[i - 1] != b[j - 1]);
			row[j] = min2(replace, min2(last[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = min2(row[j], before[j - 2] + 1);
		}
		size_t *spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[b_length];
}

const char *suggest_nearest(const char *word, const char *const *candidates, size_t count)
{
	size_t length = strlen(word), best = length <= 3 ? 2 : 3;
	const char *nearest = NULL;

	if (length > SUGGEST_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		size_t candidate_length = strlen(candidates[i]);
		if (candidate_length > SUGGEST_MAX)
			continue;
		size_t edits = distance(word, length, candidates[i], candidate_length);
		if (edits >= best || edits >= candidate_length)
			continue;
		best = edits;
		nearest = candidates[i];
	}
	return nearest;
}
