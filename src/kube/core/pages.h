/*
 * pages: a list that comes in pages, as one.
 *
 * Owns      what a page means: an empty page with a continue token is not the end; a token that
 *           has run out (410) on a later page starts the list again, since going on would mix two
 *           states of the world; that and everything else is bounded.
 * Pure      the shell sends kube_list() with `continue_token` until the step is KUBE_PAGES_DONE.
 * Source    API concepts, "Retrieving large results sets in chunks".
 * Tests     tests/unit/kube/core/pages_test.c, fuzz/kubeanswer_fuzz.c, tests/peer/kube
 */
#pragma once

#include "kube/core/answer.h"

#define KUBE_PAGES_LIMIT     50    /* objects a page that we ask for */
#define KUBE_PAGES_MAX       500   /* pages of one list */
#define KUBE_PAGES_MAX_ITEMS 20000 /* objects of one list */
#define KUBE_PAGES_RESTARTS  3

struct kube_pages {
	json_t *items;        /* array; what has come so far */
	char *continue_token; /* of the next page; NULL: from the start */
	int count, restarts;
};
void kube_pages_deinit(struct kube_pages *pages);

static inline void kube_pages_cleanup(struct kube_pages *pages)
{
	kube_pages_deinit(pages);
}

enum kube_pages_step {
	KUBE_PAGES_DONE, /* `items` is the whole list */
	KUBE_PAGES_MORE, /* ask for the page of `continue_token` */
	KUBE_PAGES_FAILED,
};

/* Takes one page's answer; its items are moved out. FAILED sets *error: the answer's, or that a
 * bound was passed (RESOURCES_EXHAUSTED) or the answer is no whole list (UNAVAILABLE). */
enum kube_pages_step kube_pages_take(struct kube_pages *pages, const struct kube_answer *answer,
				     struct error *error);
