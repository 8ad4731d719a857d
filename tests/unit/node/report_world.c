#include "report_world.h"

#include "base/histogram.h"
#include "lib/folder.h"
#include "proto/message.h"
#include "sys/durable.h"
#include "sys/log.h"
#include "text/toml.h"

MESSAGE_TYPE(up, Bettercompute__V1__Up, bettercompute__v1__up)

/* --- node/uplink.h --- */

struct uplink *uplink;

struct uplink *uplink_create(struct loop *loop UNUSED, const struct uplink_options *options)
{
	uplink = mem_alloc(sizeof *uplink);
	uplink->options = *options;
	return uplink;
}

void uplink_destroy(struct uplink *gone)
{
	assert_null(gone->spec);
	free(gone);
	uplink = NULL;
}

const char *uplink_phase_name(enum uplink_phase phase UNUSED)
{
	return "open";
}

struct mono uplink_step(struct uplink *self, const struct uplink_hello *hello, struct mono now,
			bool *ret_timed)
{
	self->unready = hello->unready;
	*ret_timed = false;
	return now;
}

enum uplink_phase uplink_phase(const struct uplink *self UNUSED)
{
	return UPLINK_OPEN;
}

enum uplink_standing uplink_standing(const struct uplink *self UNUSED)
{
	return UPLINK_MEMBER;
}

const char *uplink_error(const struct uplink *self UNUSED)
{
	return "";
}

const char *uplink_address(const struct uplink *self UNUSED)
{
	return "test";
}

struct wall uplink_since(const struct uplink *self UNUSED)
{
	return (struct wall){1};
}

bool uplink_take_welcome(struct uplink *self, struct uplink_welcome *ret_welcome)
{
	if (!self->welcome)
		return false;
	*ret_welcome = (struct uplink_welcome){0};
	if (self->pool) {
		str_copy(ret_welcome->site, sizeof ret_welcome->site, "site_x");
		str_copy(ret_welcome->pool, sizeof ret_welcome->pool, self->pool);
	}
	str_copy(ret_welcome->lineage, sizeof ret_welcome->lineage, TAKE(self->welcome));
	return true;
}

struct spec *uplink_take_spec(struct uplink *self)
{
	return TAKE(self->spec);
}

const char *uplink_spec_error(const struct uplink *self UNUSED)
{
	return "";
}

int64_t uplink_acknowledged(const struct uplink *self)
{
	return self->acknowledged;
}

void uplink_take_certificate(struct uplink *self UNUSED, struct buf *ret_pem UNUSED)
{
}

void uplink_return(struct uplink *self, struct spec *spec, struct buf *certificate UNUSED)
{
	assert_null(self->spec);
	self->spec = spec;
}

bool uplink_needs_somebody(const struct uplink *self UNUSED)
{
	return false;
}

void uplink_hurry(struct uplink *self UNUSED)
{
}

void uplink_again(struct uplink *self UNUSED)
{
}

bool uplink_take_operation(struct uplink *self, struct uplink_operation *ret_operation)
{
	if (!self->operation)
		return false;
	*ret_operation = (struct uplink_operation){.id = "op_1"};
	str_copy(ret_operation->kind, sizeof ret_operation->kind, TAKE(self->operation));
	return true;
}

static void note_report(const Bettercompute__V1__Report *report, struct sent *sent)
{
	CLEANUP(buf) struct buf text = {0};

	*sent = (struct sent){.sequence = report->sequence,
			      .generation = report->spec_generation,
			      .kind = report->body_case};
	if (report->body_case == BETTERCOMPUTE__V1__REPORT__BODY_OPERATION_RESULT)
		buf_printf(&text, "%s %s: %s: %s", report->operation_result->operation,
			   report->operation_result->ok ? "done" : "refused",
			   report->operation_result->reason, report->operation_result->message);
	if (report->body_case == BETTERCOMPUTE__V1__REPORT__BODY_INVENTORY)
		buf_printf(&text, "%zu GPUs, %d vCPUs, driver %s", report->inventory->n_gpus,
			   (int)report->inventory->vcpus, report->inventory->driver_version);
	for (size_t i = 0; report->body_case == BETTERCOMPUTE__V1__REPORT__BODY_CONDITIONS &&
			   i < report->conditions->n_conditions;
	     i++)
		buf_printf(&text, "%s (%s): %s\n", report->conditions->conditions[i]->type,
			   report->conditions->conditions[i]->reason,
			   report->conditions->conditions[i]->message);
	str_copy(sent->told, sizeof sent->told, buf_text(&text));
}

void uplink_send(struct uplink *self, int64_t sequence UNUSED, const struct buf *message)
{
	CLEANUP(message) Bettercompute__V1__Up *up = NULL;
	struct error error;

	expect_ok(up_unpack(message->data, message->length, &up, &error), &error);
	assert_int_equal(up->body_case, BETTERCOMPUTE__V1__UP__BODY_REPORT);
	assert_in_range(self->sent_count, 0, MAX_SENT - 1);
	note_report(up->report, &self->sent[self->sent_count++]);
}

void uplink_beat(struct uplink *self UNUSED)
{
}

bool uplink_full(const struct uplink *self UNUSED)
{
	return false;
}

void uplink_renew(struct uplink *self UNUSED, struct wall now UNUSED)
{
}

/* --- the world --- */

const char *at(struct world *world, const char *name)
{
	snprintf(world->path, sizeof world->path, "%s/%s", (const char *)world->folder, name);
	return world->path;
}

void write_text(struct world *world, const char *name, const struct buf *text)
{
	struct error error;

	expect_ok(durable_replace(at(world, name), text->data, text->length, 0600, &error), &error);
}

struct spec *make_spec(struct world *world, const char *lineage, int64_t generation, bool with_a)
{
	struct spec *spec = mem_alloc(sizeof *spec);

	if (with_a)
		fixture_assign(fixture_assignment(spec, ALC_A), &world->inventory,
			       fixture_gpu(&world->inventory, 0));
	str_copy(spec->lineage, sizeof spec->lineage, lineage);
	spec->generation = generation;
	return spec;
}

static void free_spec(struct spec *spec)
{
	spec_deinit(spec);
	free(spec);
}

void write_spec(struct world *world, const char *lineage, int64_t generation, bool with_a)
{
	struct spec *spec = make_spec(world, lineage, generation, with_a);
	CLEANUP(buf) struct buf text = {0};

	spec_format(spec, &text);
	write_text(world, "var/lib/bcd/spec.json", &text);
	free_spec(spec);
}

/* Something to fill the file with, that a newer bcd may have written. */
void write_releases(struct world *world, bool reported, size_t filling)
{
	struct releases releases = {0};
	struct holds holds = {0};
	struct atom atom = fixture_gpu(&world->inventory, 0);
	CLEANUP(buf) struct buf text = {0}, filler = {0};
	char boot[CLOCK_BOOT_ID_SIZE];

	fixture_bind(&holds, &world->inventory, ALC_A, &atom, 1);
	clock_boot_id(boot); /* one of another boot is written anew at once */
	releases_add(&releases, &holds.items[0], (struct wall){1000}, (struct mono){1000}, boot);
	releases.entries.items[0].reported = reported;
	for (size_t i = 0; i < filling; i++)
		buf_add_text(&filler, "x");
	releases.extra = json_pack("{s:s}", "filling", filling ? buf_text(&filler) : "");
	releases_format(&releases, &text);
	write_text(world, "var/lib/bcd/releasing.json", &text);
	releases_deinit(&releases);
	holds_deinit(&holds);
}

void start_node(struct world *world, const char *lineage)
{
	struct error error;

	expect_ok(node_create(world->loop, &world->config, NULL, &world->node, &error), &error);
	uplink->welcome = lineage;
	settle(world);
}

int setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	CLEANUP(scenario) struct scenario scenario = {0};
	CLEANUP(buf) struct buf text = {0}, gpus = {0};
	CLEANUP(tree) json_t *tree = NULL;
	struct error error;

	log_set_level(LOG_ERROR);
	assert_int_equal(folder_make(&world->folder), 0);
	buf_printf(&text,
		   "[paths]\nroot = '%s'\n[host]\nunits = true\nreserved_memory_mib = 0\n"
		   "[gpu]\nsource = 'sim'\nsim_file = '%s/gpus.toml'\n"
		   "[kubernetes]\nnode_name = 'n1'\n",
		   (const char *)world->folder, (const char *)world->folder);
	expect_ok(toml_parse(buf_text(&text), text.length, CONFIG_MAX_FILE, "config.toml", &tree,
			     &error),
		  &error);
	expect_ok(config_read(tree, NULL, &world->config, &error), &error);
	expect_ok(durable_make_folder(at(world, "var/lib/bcd"), 0700, &error), &error);
	fixture_scenario(&scenario);
	scenario_inventory(&scenario, 0, "test", &world->inventory);
	scenario_format(&scenario, &gpus);
	write_text(world, "gpus.toml", &gpus);
	world->loop = loop_create();
	*state = world;
	return 0;
}

/* Turns, as often as somebody looked and there was none. */
struct quiet {
	const struct node *node;
	uint64_t turns;
	int looks;
};

static bool is_quiet(void *arg)
{
	struct quiet *quiet = arg;
	uint64_t turns = histogram_count(&quiet->node->figures.turns);
	bool same =
		turns == quiet->turns && !quiet->node->ticket && source_settled(quiet->node->gpus);

	quiet->turns = turns;
	quiet->looks = same ? quiet->looks + 1 : 0;
	return quiet->looks >= 3;
}

void settle(struct world *world)
{
	struct quiet quiet = {.node = world->node, .turns = UINT64_MAX};

	kubelet_until(world->loop, is_quiet, &quiet, 10000, "the node comes to rest");
}

void pass(struct world *world, int64_t ms)
{
	kubelet_pass(world->loop, ms);
	settle(world);
}

void tell(struct world *world)
{
	node_wake(world->node);
	settle(world);
}

void stop_node(struct world *world)
{
	node_destroy(TAKE(world->node));
	kubelet_rest(world->loop);
	kubelet_run(world->loop, 20);
}

int teardown(void **state)
{
	struct world *world = *state;

	stop_node(world);
	loop_destroy(world->loop);
	inventory_deinit(&world->inventory);
	config_deinit(&world->config);
	assert_int_equal(folder_remove(&world->folder), 0);
	free(world);
	return 0;
}

const struct sent *last_sent(Bettercompute__V1__Report__BodyCase kind)
{
	for (size_t i = uplink->sent_count; i-- > 0;)
		if (uplink->sent[i].kind == kind)
			return &uplink->sent[i];
	return NULL;
}

void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}
