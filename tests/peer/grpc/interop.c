#include "interop.h"

#include <stdio.h>

void interop_die(const char *doing, const struct error *error)
{
	fprintf(stderr, "%s: %s\n", doing, error->what);
	exit(1);
}

static char *read_file(const char *path)
{
	struct buf text = {0};
	char chunk[4096];
	size_t length;
	FILE *file = fopen(path, "re");
	if (!file) {
		struct error error;
		error_os(&error, "open '%s'", path);
		interop_die("read a file", &error);
	}
	while ((length = fread(chunk, 1, sizeof chunk, file)) > 0)
		buf_add(&text, chunk, length);
	fclose(file);
	return buf_take_text(&text);
}

void interop_options_parse(struct interop_options *options, char **arguments)
{
	*options = (struct interop_options){0};
	for (; arguments[0] && arguments[1]; arguments += 2) {
		if (str_equal(arguments[0], "--cert"))
			options->certificate = read_file(arguments[1]);
		else if (str_equal(arguments[0], "--key"))
			options->key = read_file(arguments[1]);
		else if (str_equal(arguments[0], "--ca"))
			options->ca = read_file(arguments[1]);
		else if (str_equal(arguments[0], "--name"))
			options->name = arguments[1];
	}
}

void interop_options_deinit(struct interop_options *options)
{
	free(options->certificate);
	free(options->key);
	free(options->ca);
}
