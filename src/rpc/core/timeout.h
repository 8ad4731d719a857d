/*
 * timeout: the grpc-timeout header. At most eight digits and a unit of H M S m u n.
 *
 * Pure.
 * Source    grpc.io "gRPC over HTTP2", Requests.
 */
#pragma once

#include "base/base.h"

#define TIMEOUT_SIZE 12

/* Parts of a millisecond are rounded up. False: malformed. */
bool timeout_parse(const uint8_t *text, size_t length, int64_t *ret_ms);

/* `ms` below 1 is written as 1: 0 would mean "already too late". Rounds up to what fits. */
void timeout_format(char out[TIMEOUT_SIZE], int64_t ms);
