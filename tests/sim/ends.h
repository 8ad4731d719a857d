/*
 * ends: pods that end while somebody isn't looking.
 *
 * Each begins one such end now; its parts come within half a minute. What must hold of it is
 * invariants.h's.
 */
#pragma once

void ends_while_kubelet_is_away(void);
void ends_while_bcd_is_away(void); /* or just before that */
void ends_as_it_begins(void);      /* a pod is given what is taken back that moment */

/* A pod comes and goes while bcd is refused by the API server, and its kubelet or bcd may be killed meanwhile. */
void ends_untold(void);

/* A static pod whose manifest is removed, and whose kubelet may take its time to kill it, while a release waits. */
void ends_slowly(void);

/* Its process may live on, and the node's state is lost: nothing that is recorded knows it. */
void ends_forgotten(void);
