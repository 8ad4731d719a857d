/*
 * exporter: GET /metrics for Prometheus, on run/metrics.sock and, if asked, on TCP.
 *
 * Never     in the way: a place that can't be listened on is logged, tried again, and costs the node
 *           nothing; nothing is asked of kubelet, driver or disk for a scrape. What is said is
 *           what the last turn left, so the kubelet's list of pods is as old as its metric says
 *           (release.c asks for it every five seconds while devices are bound).
 * Bounds    8 connections at each place, so that a crowd on TCP leaves the socket free; 8 KiB and 5 s
 *           for a request and its answer; the text is made at most once a second, however often it
 *           is asked for.
 * Safety    the socket is the user's alone (0600, in a folder of 0700); on TCP whoever reaches the
 *           port reads.
 * Threads   the loop's.
 */
#pragma once

struct node;
struct exporter;

#define EXPORTER_SOCKET          "metrics.sock"
#define EXPORTER_MAX_CONNECTIONS 8 /* at each place */
#define EXPORTER_TIMEOUT_MS      5000
#define EXPORTER_FRESH_MS        1000
#define EXPORTER_RETRY_MS        10000

struct exporter *exporter_create(struct node *node);
void exporter_destroy(struct exporter *exporter); /* takes NULL */
