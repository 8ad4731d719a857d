/*
 * vec: a typed growing array in one macro, and nothing else.
 *
 *     VEC(int) numbers = {0};
 *     *vec_push(&numbers) = 42;
 *     vec_each (&numbers, int *number) ...
 *     vec_deinit(&numbers);
 *
 * Name a vector type where it crosses a function: `struct atom_list VEC_BODY(struct atom);`.
 * Elements are plain data; what they own is the user's to free. `{0}` is empty. Pure.
 */
#pragma once

#include "base/base.h"

#define VEC_BODY(type)                                                                             \
	{                                                                                          \
		type *items;                                                                       \
		size_t count, capacity;                                                            \
	}
#define VEC(type) struct VEC_BODY(type)

/* A pointer to a new zeroed last element; valid until the next push. */
#define vec_push(vec)                                                                              \
	__extension__({                                                                            \
		__typeof__(vec) vec_to_ = (vec);                                                   \
		if (vec_to_->count == vec_to_->capacity) {                                         \
			vec_to_->capacity = vec_to_->capacity ? vec_to_->capacity * 2 : 8;         \
			vec_to_->items = mem_resize(vec_to_->items, vec_to_->capacity,             \
						    sizeof *vec_to_->items);                       \
		}                                                                                  \
		&vec_to_->items[vec_zeroed_(vec_to_->items, vec_to_->count++,                      \
					    sizeof *vec_to_->items)];                              \
	})

static inline size_t vec_zeroed_(void *items, size_t index, size_t size)
{
	memset((char *)items + index * size, 0, size);
	return index;
}

/* Loops may stand in each other: their counters are named by line. */
#define vec_each(vec, item)        vec_each_at_(vec, item, __LINE__)
#define vec_each_at_(vec, item, n) vec_each_named_(vec, item, n)
#define vec_each_named_(vec, item, n)                                                              \
	for (size_t vec_i_##n = 0, vec_once_##n = 1; vec_i_##n < (vec)->count;                     \
	     vec_i_##n++, vec_once_##n = 1)                                                        \
		for (item = &(vec)->items[vec_i_##n]; vec_once_##n; vec_once_##n = 0)

#define vec_remove(vec, index)                                                                     \
	(memmove(&(vec)->items[index], &(vec)->items[(index) + 1],                                 \
		 ((vec)->count - (index) - 1) * sizeof *(vec)->items),                             \
	 (void)(vec)->count--)

#define vec_clear(vec) ((void)((vec)->count = 0))

#define vec_deinit(vec)                                                                            \
	(free((vec)->items), (vec)->items = NULL, (void)((vec)->count = (vec)->capacity = 0))

/* In what is sorted, a vector or not: the first index for which `before`, an expression of the index `at`, is false, or
 * `count`. It is true up to there and false from there on. So it is where a key stands, or would stand:
 *
 *     size_t i = vec_lower(names.count, at, strcmp(names.items[at], name) < 0);
 */
#define vec_lower(count, at, before)                                                               \
	__extension__({                                                                            \
		size_t vec_low_ = 0, vec_high_ = (count);                                          \
		while (vec_low_ < vec_high_) {                                                     \
			size_t at = vec_low_ + (vec_high_ - vec_low_) / 2;                         \
			if (before)                                                                \
				vec_low_ = at + 1;                                                 \
			else                                                                       \
				vec_high_ = at;                                                    \
		}                                                                                  \
		vec_low_;                                                                          \
	})

#define vec_sort(vec, compare) vec_sort_((vec)->items, (vec)->count, sizeof *(vec)->items, compare)

static inline void vec_sort_(void *items, size_t count, size_t size,
			     int (*compare)(const void *, const void *))
{
	if (count > 1)
		qsort(items, count, size, compare);
}
