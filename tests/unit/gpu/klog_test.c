#include "base/buf.h"
#include "gpu/klog.h"
#include "lib/folder.h"
#include "lib/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct world {
	struct loop *loop;
	struct loop_timer *patience;
	struct klog *log;
	struct klog_event events[16];
	size_t count, wanted;
	void *folder;
	char path[256];
};

static void on_event(void *arg, const struct klog_event *event)
{
	struct world *world = arg;

	assert_true(world->count < ARRAY_SIZE(world->events));
	world->events[world->count++] = *event;
	if (world->count == world->wanted)
		loop_stop(world->loop);
}

static void on_lost(void *arg UNUSED)
{
	fail_msg("nothing was lost");
}

static const struct klog_handlers handlers = {on_event, on_lost};

static void on_patience(void *arg UNUSED)
{
	fail_msg("it took too long");
}

/* Runs until there are so many. */
static void wait_for(struct world *world, size_t count)
{
	world->wanted = count;
	if (world->count >= count)
		return;
	loop_timer_start(world->patience, 5000);
	loop_run(world->loop);
	loop_timer_stop(world->patience);
	assert_int_equal(world->count, count);
}

static int set_up(void **state)
{
	struct world *world = mem_alloc(sizeof *world);

	world->loop = loop_create();
	world->patience = loop_timer_create(world->loop, on_patience, world);
	assert_int_equal(folder_make(&world->folder), 0);
	snprintf(world->path, sizeof world->path, "%s/kmsg", (char *)world->folder);
	*state = world;
	return 0;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	klog_destroy(world->log);
	loop_timer_destroy(world->patience);
	loop_run(world->loop);
	loop_destroy(world->loop);
	folder_remove(&world->folder);
	free(world);
	return 0;
}

static void append(struct world *world, const char *text)
{
	int fd = open(world->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void follow(struct world *world, uint64_t after)
{
	world->log = klog_create(world->loop, world->path, after, &handlers, world);
}

#define XID(sequence, xid) "4," #sequence ",1,-;NVRM: Xid (PCI:0000:1a:00): " #xid ", x\n"

/* What was there and what comes, also in pieces; the records' own time counts for nothing (N04). */
static void test_a_file(void **state)
{
	struct world *world = *state;

	append(world, "6,1,0,-;Linux version\n" XID(2, 79) " SUBSYSTEM=pci\n" XID(3, 48));
	follow(world, 2);
	assert_null(klog_error(world->log));
	assert_int_equal(world->count, 1);
	append(world, "4,4,99,-;NVRM: Xid (PCI:00");
	append(world, "00:1a:00): 62\n6,5,1,-;nvidia 0000:1a:00.0: reset done\n");
	wait_for(world, 3);
	assert_int_equal(world->events[0].xid, 48);
	assert_int_equal(world->events[1].xid, 62);
	assert_int_equal(world->events[2].kind, KLOG_RESET);
}

static void test_another_file_of_the_name(void **state)
{
	struct world *world = *state;
	char aside[300];

	append(world, XID(7, 79));
	follow(world, 0);
	snprintf(aside, sizeof aside, "%s.1", world->path);
	assert_int_equal(rename(world->path, aside), 0);
	append(world, XID(1, 48));
	wait_for(world, 2);
	assert_int_equal(world->events[1].xid, 48);
	assert_int_equal(truncate(world->path, 0), 0);
	append(world, "4,1,1,-;NVRM: Xid (PCI:0000:1a:00): 64\n"); /* shorter than what was read */
	wait_for(world, 3);
}

static void test_a_log_that_comes_later(void **state)
{
	struct world *world = *state;

	follow(world, 0);
	assert_non_null(strstr(klog_error(world->log)->what, world->path));
	append(world, XID(1, 79));
	klog_look(world->log);
	assert_null(klog_error(world->log));
	assert_int_equal(world->count, 1);
	klog_look(world->log);
	assert_int_equal(world->count, 1);
}

/* Its writers come and go. */
static void test_a_fifo(void **state)
{
	struct world *world = *state;

	assert_int_equal(mkfifo(world->path, 0600), 0);
	follow(world, 0);
	assert_null(klog_error(world->log));
	append(world, XID(1, 79));
	wait_for(world, 1);
	append(world, XID(2, 48));
	wait_for(world, 2);
	klog_look(world->log);
	assert_int_equal(world->count, 2);
}

static void test_a_line_without_end(void **state)
{
	struct world *world = *state;
	char line[KLOG_RECORD_SIZE + 2];

	memset(line, 'x', sizeof line - 1);
	line[sizeof line - 1] = '\0';
	append(world, line);
	append(world, line);
	append(world, "\n" XID(1, 79));
	follow(world, 0);
	assert_int_equal(world->count, 1);
}

/* 4 MiB of others' records: no look takes them all, and what stands behind them is heard. */
static void test_more_than_is_read_at_once(void **state)
{
	struct world *world = *state;
	CLEANUP(buf) struct buf text = {0};

	append(world, "");
	follow(world, 0);
	for (int i = 1; text.length < (size_t)4 << 20; i++)
		buf_printf(&text, "6,%d,1,-;eth0: link becomes ready\n", i);
	buf_add_text(&text, XID(999999, 79));
	append(world, buf_text(&text));
	klog_look(world->log);
	assert_int_equal(world->count, 0);
	wait_for(world, 1);
	assert_int_equal(world->events[0].xid, 79);
	/* but at the start they are */
	klog_destroy(world->log);
	world->count = 0;
	follow(world, 0);
	assert_int_equal(world->count, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_file_of_the_name, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_log_that_comes_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_fifo, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_line_without_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_more_than_is_read_at_once, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
