#include "text/exposition.h"

#include "base/utf8.h"

void exposition_family(struct exposition *out, const char *name, const char *type, const char *help)
{
	out->name = name;
	out->type = type;
	out->help = help;
	out->begun = false;
}

static void begin(struct exposition *out)
{
	assert(out->name);
	if (out->begun)
		return;
	out->begun = true;
	buf_printf(out->text, "# HELP %s%s %s\n# TYPE %s%s %s\n", out->prefix, out->name, out->help,
		   out->prefix, out->name, out->type);
}

static void add_name(struct exposition *out, const char *suffix, const char *labels)
{
	begin(out);
	buf_add_text(out->text, out->prefix);
	buf_add_text(out->text, out->name);
	buf_add_text(out->text, suffix);
	if (labels && *labels) {
		buf_add_char(out->text, '{');
		buf_add_text(out->text, labels);
		buf_add_char(out->text, '}');
	}
	buf_add_char(out->text, ' ');
}

static void add_scaled(struct buf *text, int64_t value, int exponent)
{
	/* The smallest integer has no positive one of its size in int64_t. */
	uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value, unit = 1;

	if (value < 0)
		buf_add_char(text, '-');
	for (int i = 0; i > exponent; i--)
		unit *= 10;
	buf_printf(text, "%llu", (unsigned long long)(size / unit));
	for (int i = 0; size > 0 && i < exponent; i++)
		buf_add_char(text, '0');
	if (exponent < 0)
		buf_printf(text, ".%0*llu", -exponent, (unsigned long long)(size % unit));
}

void exposition_add(struct exposition *out, const char *labels, int64_t value)
{
	exposition_add_scaled(out, labels, value, 0);
}

void exposition_add_scaled(struct exposition *out, const char *labels, int64_t value, int exponent)
{
	assert(exponent >= -18 && exponent <= 18);
	add_name(out, "", labels);
	add_scaled(out->text, value, exponent);
	buf_add_char(out->text, '\n');
}

void exposition_add_histogram(struct exposition *out, const char *labels,
			      const struct histogram *histogram)
{
	const char *comma = labels && *labels ? "," : "";
	uint64_t count = 0;

	begin(out);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		count += histogram->counts[i];
		buf_printf(out->text, "%s%s_bucket{%s%sle=\"", out->prefix, out->name,
			   labels ? labels : "", comma);
		if (i < HISTOGRAM_BUCKETS - 1)
			add_scaled(out->text, HISTOGRAM_BOUNDS_US[i], -6);
		else
			buf_add_text(out->text, "+Inf");
		buf_printf(out->text, "\"} %llu\n", (unsigned long long)count);
	}
	add_name(out, "_sum", labels);
	add_scaled(out->text, (int64_t)histogram->sum_us, -6);
	buf_add_char(out->text, '\n');
	add_name(out, "_count", labels);
	buf_printf(out->text, "%llu\n", (unsigned long long)count);
}

void exposition_gauge(struct exposition *out, const char *name, const char *help, int64_t value)
{
	exposition_family(out, name, "gauge", help);
	exposition_add(out, NULL, value);
}

void exposition_counter(struct exposition *out, const char *name, const char *help, int64_t value)
{
	exposition_family(out, name, "counter", help);
	exposition_add(out, NULL, value);
}

void exposition_label(struct buf *labels, const char *name, const char *value)
{
	CLEANUP(buf) struct buf clean = {0};

	utf8_add_clean(&clean, value);
	if (labels->length > 0)
		buf_add_char(labels, ',');
	buf_printf(labels, "%s=\"", name);
	for (const char *at = buf_text(&clean); *at; at++) {
		if (*at == '\\' || *at == '"')
			buf_add_char(labels, '\\');
		if (*at == '\n')
			buf_add_text(labels, "\\n");
		else
			buf_add_char(labels, *at);
	}
	buf_add_char(labels, '"');
}

void exposition_label_number(struct buf *labels, const char *name, int64_t value)
{
	if (labels->length > 0)
		buf_add_char(labels, ',');
	buf_printf(labels, "%s=\"%lld\"", name, (long long)value);
}
