/*
 * pages: one thing for a person to read, where its fields alone would be a riddle.
 */
#pragma once

#include "cli/cli.h"

void page_of_reservation(struct cli *cli, const json_t *reservation);
void page_of_principal(const json_t *item); /* whose key it is */
void page_of_node(struct cli *cli, const json_t *node);

/* "resources: {limits: {bcd.dev/gpu: 2, cpu: 32, memory: 256Gi}}": what a pod writes to use all of
 * a reservation (HOST-6). In the arena. */
const char *page_pods_ask(struct arena *arena, const json_t *reservation);
