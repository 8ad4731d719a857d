/*
 * replay: the main of a fuzz target without a fuzzer. Gives it each file of corpus/<stem> and
 * regress/<stem>, and each of them cut short and with one byte changed; a crash is the failure.
 */
#include "base/buf.h"

#include <dirent.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In memory of exactly this size, so that a sanitizer sees a read past the end. */
static void give(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void give_variants(struct buf *input)
{
	size_t step = input->length / 64 + 1;

	give(input->data, input->length);
	for (size_t at = 0; at < input->length; at += step) {
		uint8_t before = input->data[at];

		give(input->data, at);
		input->data[at] ^= (uint8_t)(1u << (at % 8));
		give(input->data, input->length);
		input->data[at] = before;
	}
}

static bool replay_file(const char *path)
{
	CLEANUP(buf) struct buf input = {0};
	FILE *file = fopen(path, "rb");
	int c;

	if (!file) {
		perror(path);
		return false;
	}
	while ((c = fgetc(file)) != EOF)
		buf_add_char(&input, (char)c);
	fclose(file);
	printf("%s (%zu bytes)\n", path, input.length);
	fflush(stdout); /* names the input that crashes */
	give_variants(&input);
	return true;
}

/* How many files it replayed; a missing folder has none. */
static int replay_folder(const char *root, const char *kind, const char *stem)
{
	char path[4096];
	struct dirent *entry;
	int count = 0;
	DIR *folder;

	snprintf(path, sizeof path, "%s/%s/%s", root, kind, stem);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s/%s/%s", root, kind, stem, entry->d_name);
		count += replay_file(path);
	}
	if (folder)
		closedir(folder);
	return count;
}

int main(int argc, char **argv)
{
	int count;

	if (argc != 3)
		return 2;
	give(NULL, 0);
	count = replay_folder(argv[1], "corpus", argv[2]) +
		replay_folder(argv[1], "regress", argv[2]);
	printf("%d passed, %d failed\n", count, count == 0);
	return count == 0; /* a target without seeds proves nothing */
}
