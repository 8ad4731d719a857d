/*
 * events: tells Kubernetes what bcd did to a pod or node, so that `kubectl describe` shows it.
 *
 * Nobody waits for an Event and nothing depends on one: it is sent with the lowest priority, one
 * that fails is forgotten, and the next of its kind is made anew. What is worth sending and how
 * often is kube/core/event.h's.
 * Threads   the loop's.
 * Tests     tests/unit/kube/collect_test.c (a scripted server), tests/peer/kube (a real one)
 */
#pragma once

#include "kube/client.h"
#include "kube/core/event.h"

struct kube_events;
/* `node` is the Node's name. The client must outlive it. */
struct kube_events *kube_events_create(struct kube_client *kube, struct loop *loop,
				       const char *node);
void kube_events_destroy(struct kube_events *events); /* before the client */

void kube_events_tell(struct kube_events *events, const struct kube_event *event);
