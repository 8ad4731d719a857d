/*
 * base: the words every room uses. Attributes, scope cleanup, and the two kinds of time.
 *
 * Pure      no syscall, no state.
 * Includes  libc only.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define NORETURN          __attribute__((noreturn))
#define UNUSED            __attribute__((unused))
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Scope cleanup: `CLEANUP(buf) struct buf body = {0};` calls buf_cleanup(&body) at the scope's
 * end. Ownership leaves a scope by TAKE(pointer), which leaves NULL behind.
 */
#define CLEANUP(name) __attribute__((cleanup(name##_cleanup)))
#define TAKE(pointer)                                                                              \
	__extension__({                                                                            \
		__typeof__(pointer) *take_from_ = &(pointer);                                      \
		__typeof__(pointer) taken_ = *take_from_;                                          \
		*take_from_ = NULL;                                                                \
		taken_;                                                                            \
	})

/* Defines NAME_cleanup() for a pointer type that NAME_destroy()-like FUNCTION frees. */
#define DEFINE_CLEANUP(name, type, function)                                                       \
	static inline void name##_cleanup(type *slot)                                              \
	{                                                                                          \
		function(*slot);                                                                   \
	}

static inline void free_cleanup(void *slot)
{
	free(*(void **)slot);
}

/* Milliseconds on the boot-time clock (CLOCK_BOOTTIME): for waiting. Never compared across boots. */
struct mono {
	int64_t ms;
};

/* Milliseconds UTC since 1970: for bookings and for people. Never used for waiting. */
struct wall {
	int64_t ms;
};

static inline struct mono mono_after(struct mono time, int64_t ms)
{
	return (struct mono){time.ms + ms};
}

/* Milliseconds from `from` until `to`; negative when `to` is earlier. */
static inline int64_t mono_until(struct mono from, struct mono to)
{
	return to.ms - from.ms;
}

static inline struct mono mono_later(struct mono a, struct mono b)
{
	return a.ms > b.ms ? a : b;
}

/* Out of memory aborts (every moment is a legal crash moment), so these never return NULL. */
void *mem_alloc(size_t size) __attribute__((malloc));       /* zeroed; size 0 is 1 byte */
void *mem_resize(void *memory, size_t count, size_t size);  /* overflow-checked, not zeroed */
char *mem_strdup(const char *text) __attribute__((malloc)); /* text may be NULL: NULL back */
void *mem_dup(const void *data, size_t size) __attribute__((malloc));

static inline bool str_equal(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static inline bool str_starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *text, const char *suffix);

/* "HOST:PORT" by its form, as sys/net takes it: an IPv6 address in brackets, nothing around it. */
bool str_is_address(const char *text, int64_t least_port);

/* Copies `text` into `out` and always terminates it; false when it had to be cut. */
bool str_copy(char *out, size_t out_size, const char *text);
