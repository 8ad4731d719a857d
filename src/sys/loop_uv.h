/*
 * loop_uv: what the files of this room share about the loop; nobody else includes it.
 */
#pragma once

#include "sys/loop.h"

#include <uv.h>

#define LOOP_READ_SIZE 65536

uv_loop_t *loop_uv(struct loop *loop);

/* One buffer of LOOP_READ_SIZE for all reads: what is read is handed on before the next read. */
uint8_t *loop_read_buffer(struct loop *loop);

/* For libuv calls that fail only when the program is wrong or out of memory. */
void loop_must(int status);
