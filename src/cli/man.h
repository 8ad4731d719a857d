/*
 * man: pieces of a page in man(7) form, for the programs that make theirs from their tables. Pure.
 */
#pragma once

#include "base/buf.h"
#include "text/options.h"

/* ".TH NAME section": the page's head, and its NAME section. */
void man_head(struct buf *out, const char *name, int section, const char *about);
/* A section's or subsection's title (".SH", ".SS"). */
void man_title(struct buf *out, const char *macro, const char *title);
/* Text on lines of its own: escaped, so that dots, dashes and backslashes stand for themselves. */
void man_text(struct buf *out, const char *text);
/* A paragraph whose line breaks stay. */
void man_lines(struct buf *out, const char *text);
/* One tagged paragraph for each row of the table. */
void man_options(struct buf *out, const struct option *table);
/* One tagged paragraph. */
void man_item(struct buf *out, const char *tag, const char *text);
