#include "gpu/belief.h"

#include "sys/clock.h"
#include "sys/durable.h"

#include <stdio.h>

#define WRITE_AGAIN_MS 1000

/* Of a list under way; outlives a file that is destroyed meanwhile. */
struct ticket {
	struct loop *loop;
	struct belief_file *file;  /* NULL: gone */
	struct durable_steps last; /* what it left to be written then */
	struct durable_job *job;
};

struct belief_file {
	struct loop *loop;
	struct belief *belief;
	char *path, *marker;
	struct ticket *ticket;     /* of the list under way; NULL: none is */
	uint64_t written, writing; /* belief.record */
	struct mono again;
	struct error error;
};

static char *path_in(const char *folder, const char *name)
{
	struct buf path = {0};

	buf_printf(&path, "%s/%s", folder, name);
	return buf_take_text(&path);
}

/* The marker names its boot: in another one nothing of before counts. */
static bool marker_stands(const struct belief_file *file)
{
	CLEANUP(buf) struct buf text = {0};
	struct error error;

	if (durable_absent(file->marker))
		return false;
	return !durable_read(file->marker, BELIEF_MAX_RECORD, &text, &error) ||
	       !*file->belief->boot_id ||
	       strncmp(buf_text(&text), file->belief->boot_id, BELIEF_BOOT_SIZE - 1) == 0;
}

/* Marker first, then the rename: no state in between reads as "all were well". */
static void set_aside(struct belief_file *file, const struct error *why)
{
	CLEANUP(buf) struct buf text = {0}, aside = {0};
	struct wall now = clock_wall();
	struct error error = {0};

	file->belief->doubted = true;
	file->error = *why;
	buf_printf(&text, "%s %lld %s\n", file->belief->boot_id, (long long)(now.ms / 1000),
		   why->what);
	if (!durable_replace(file->marker, text.data, text.length, 0600, &error)) {
		file->error = error;
		return;
	}
	if (!durable_set_aside(file->path, now, &aside, &error))
		file->error = error;
}

/* What can't be read is set aside; nothing at all is fine. */
static void read_record(struct belief_file *file, struct belief *belief)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error = {0};

	str_copy(belief->boot_id, sizeof belief->boot_id, file->belief->boot_id);
	if ((durable_read_record(file->path, BELIEF_MAX_RECORD, &text, &error) &&
	     tree_parse(text.data, text.length, BELIEF_MAX_RECORD, file->path, &tree, &error) &&
	     (belief_read_record(belief, tree, &error) || error_wrap(&error, "%s", file->path))) ||
	    error.code == ERROR_NOT_FOUND)
		return;
	set_aside(file, &error);
}

static void remove_marker(struct belief_file *file)
{
	struct error error;

	if (!durable_absent(file->marker) && !durable_remove(file->marker, &error))
		file->error = error; /* it counts again at the next start */
}

struct belief_file *belief_file_create(struct loop *loop, const char *folder, struct belief *belief)
{
	struct belief_file *file = mem_alloc(sizeof *file);

	file->loop = loop;
	file->belief = belief;
	file->path = path_in(folder, BELIEF_FILE);
	file->marker = path_in(folder, BELIEF_MARKER);
	clock_boot_id(belief->boot_id);
	if (marker_stands(file))
		belief->doubted = true;
	else
		remove_marker(file);
	read_record(file, belief);
	file->written = belief->record;
	return file;
}

/* --- writing --- */

static struct durable_steps steps_of(const struct belief_file *file)
{
	CLEANUP(tree) json_t *tree = belief_json(file->belief);
	CLEANUP(buf) struct buf text = {0};
	struct durable_steps steps = {0};

	tree_dump_pretty(&text, tree);
	durable_steps_replace(&steps, file->path, text.data, text.length, 0600);
	return steps;
}

static void on_written(void *arg, size_t done_count UNUSED, const struct error *error)
{
	struct ticket *ticket = arg;
	struct belief_file *file = ticket->file;

	if (!file && ticket->last.count > 0) {
		durable_submit(ticket->loop, &ticket->last, on_written, ticket);
		return;
	}
	free(ticket);
	if (!file)
		return;
	file->ticket = NULL;
	if (error)
		file->again = mono_after(loop_now(file->loop), WRITE_AGAIN_MS);
	else
		file->written = file->writing;
	file->error = error ? *error : (struct error){0};
}

static void write_record(struct belief_file *file)
{
	struct durable_steps steps = steps_of(file);

	file->writing = file->belief->record;
	file->ticket = mem_alloc(sizeof *file->ticket);
	*file->ticket = (struct ticket){.loop = file->loop, .file = file};
	file->ticket->job = durable_submit(file->loop, &steps, on_written, file->ticket);
}

/* A doubt that has no marker yet must not be written over. */
static bool may_write(const struct belief_file *file)
{
	return !file->belief->doubted || !durable_absent(file->marker);
}

/* The marker is gone: an operator removed it, or it could not be written. */
static bool end_doubt(struct belief_file *file)
{
	CLEANUP(belief) struct belief scratch = {0};

	file->belief->doubted = false;
	read_record(file, &scratch);
	if (file->belief->doubted)
		return false;
	belief_merge(file->belief, &scratch);
	return true;
}

bool belief_file_look(struct belief_file *file)
{
	bool there = !durable_absent(file->marker), ended = false;

	if (file->ticket) /* one that hangs has failed, as long as it does */
		(void)durable_hangs(file->ticket->job, loop_now(file->loop), &file->error);
	if (there && !file->belief->doubted) /* the driver is another one now */
		remove_marker(file);
	if (!there && file->belief->doubted)
		ended = end_doubt(file);
	if (file->written != file->belief->record && !file->ticket &&
	    (there || !file->belief->doubted) && mono_until(loop_now(file->loop), file->again) <= 0)
		write_record(file);
	return ended;
}

const char *belief_file_marker(const struct belief_file *file)
{
	return file->belief->doubted ? file->marker : NULL;
}

const struct error *belief_file_error(const struct belief_file *file)
{
	return file->error.code == ERROR_NONE ? NULL : &file->error;
}

void belief_file_destroy(struct belief_file *file)
{
	if (!file)
		return;
	if (file->written != file->belief->record && !file->ticket && may_write(file))
		write_record(file);
	if (file->ticket) {
		if (file->writing != file->belief->record && may_write(file))
			file->ticket->last = steps_of(file);
		file->ticket->file = NULL;
	}
	free(file->path);
	free(file->marker);
	free(file);
}
