/* A pod, uid-1 of ns/web, as the kubelet and the API server list it or not. */
#pragma once

#include "node/core/unlisted.h"

#include "lib/test.h"

#define GRACE_MS 60000 /* uid-1's */
#define END_MS   (GRACE_MS + UNLISTED_MARGIN_MS)

static struct unlisted none; /* words */
static const struct unlisted_asking LISTS_ALONE = {.heard = true},
				    WITH_EVENTS = {.heard = true, .watched = true};

static inline struct mono at(int64_t ms)
{
	return (struct mono){ms};
}

/* `name`: the kubelet lists one of this name; NULL: none. */
static inline void follow_one(struct unlisted *unlisted, int64_t ms,
			      const struct unlisted_seen *seen, const char *name, bool counts)
{
	char *text = (char *)(uintptr_t)name;
	struct unlisted_names names = {.items = &text, .count = name != NULL};

	unlisted_follow(unlisted, &none,
			&(struct unlisted_view){
				.seen = seen, .count = 1, .names = &names, .counts = counts},
			at(ms));
}

/* Of uid-1: the kubelet lists it, or doesn't; a release waits. */
static inline void follow(struct unlisted *unlisted, int64_t ms, bool listed)
{
	follow_one(unlisted, ms,
		   &(struct unlisted_seen){.uid = "uid-1", .listed = listed, .waited = true}, NULL,
		   true);
}

static inline void take(struct unlisted *unlisted, int64_t ms, const struct unlisted_listed *pod)
{
	unlisted_take(unlisted, pod, pod != NULL, at(ms), at(ms));
}

static inline struct unlisted_end end_of(const struct unlisted *unlisted, int64_t ms)
{
	return unlisted_end(unlisted_find(unlisted, "uid-1"), at(-1000000), at(ms));
}

static inline enum unlisted_state state_of(const struct unlisted *unlisted, int64_t ms)
{
	return end_of(unlisted, ms).state;
}

static inline int64_t due(const struct unlisted *unlisted, int64_t ms)
{
	return unlisted_due(unlisted_find(unlisted, "uid-1"), LISTS_ALONE, at(ms)).ms;
}

#define IS(id, mirror, ...)                                                                        \
	{.uid = id,                                                                                \
	 .static_uid = mirror,                                                                     \
	 .namespace = "ns",                                                                        \
	 .name = "web",                                                                            \
	 .grace_s = 60,                                                                            \
	 __VA_ARGS__}
static const struct unlisted_listed RUNS = IS("uid-1", ""), OVER = IS("uid-1", "", .over = true),
				    OTHER = IS("uid-2", ""), MIRROR = IS("uid-3", "uid-1"),
				    OVER_MIRROR = IS("uid-3", "uid-1", .over = true),
				    GOES = IS("uid-1", "", .deleting = true, .deletion_s = 10),
				    GOES_SOONER =
					    IS("uid-1", "", .deleting = true, .deletion_s = 2),
				    GOES_LATER =
					    IS("uid-1", "", .deleting = true, .deletion_s = 90),
				    GOES_AT_ONCE = IS("uid-1", "", .deleting = true);
