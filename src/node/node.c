#include "node/node.h"

#include "kube/client.h"
#include "node/exporter.h"
#include "node/records.h"
#include "node/state.h"
#include "node/status.h"
#include "sys/log.h"

void node_wake(void *arg)
{
	struct node *node = arg;

	if (!node->stopping)
		loop_defer_arm(node->turn);
}

void node_again(struct node *node, struct mono when)
{
	if (node->timer_set && node->timer_at.ms <= when.ms)
		return;
	node->timer_set = true;
	node->timer_at = when;
}

bool node_serves_kubelet(const struct node *node)
{
	return config_hosted(node->config) && !labels_node_unknown(node->labels);
}

struct kube_client *node_kube(struct node *node)
{
	const struct credentials_options options = {.kubeconfig = node->config->kubeconfig};

	assert(*node->config->kubeconfig);
	if (!node->kube)
		node->kube = kube_client_create(node->loop, &options);
	return node->kube;
}

/* --- looking --- */

static void read_holds(struct node *node, struct mono now)
{
	struct holds holds = {0};
	struct error error = {0};

	int64_t again = node->holds_error.code == ERROR_NONE ? NODE_HOLDS_MS : NODE_TICK_MS;

	if (!node->holds_due && mono_until(now, mono_after(node->holds_read_at, again)) > 0)
		return;
	node->holds_due = false;
	node->holds_read_at = now;
	if (holds_read(node->config->cdi, &holds, &error)) {
		holds_deinit(&node->holds);
		node->holds = holds;
		node->unread |= node->holds_error.code != ERROR_NONE; /* bound, but not told */
		node->holds_error = (struct error){0};
		return;
	}
	if (node->holds_error.code == ERROR_NONE)
		log_failure(LOG_ERROR, "holds.unreadable", &error,
			    "every device is unhealthy, and nothing is bound, given or released");
	node->holds_error = error;
}

static void look_at_offers(struct node *node)
{
	CLEANUP(buf) struct buf why = {0};
	const struct offer_view view = {
		.holds = node->holds_error.code == ERROR_NONE ? &node->holds : NULL,
		.holds_error = node->holds_error.what,
		.inventory = source_inventory(node->gpus),
		.before = &node->offers,
		.enabled = source_settled(node->gpus) && node_serves_kubelet(node) &&
			   !exposure_open(node->exposure) && node_offers(node, &why),
		.list_awaited = release_only_in_checkpoint(node),
	};
	struct offers offers = {0};
	bool changed[ATOM_CLASSES];

	offer_decide(&view, &offers);
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		changed[i] = !offer_equal(&offers.classes[i], &node->offers.classes[i]);
	offers_deinit(&node->offers);
	node->offers = offers;
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		if (changed[i])
			deviceplugin_changed(node->plugins[i]);
}

static void on_cdi(void *arg, const char *name)
{
	struct node *node = arg;

	if (!name) {
		watch_destroy(TAKE(node->cdi_watch));
		node->watches_due = true;
	}
	if (name && *name && !holds_is_file_name(name))
		return;
	node->holds_due = true;
	node_wake(node);
}

static void on_plugin_folder(void *arg, const char *name)
{
	struct node *node = arg;

	if (!name) {
		watch_destroy(TAKE(node->plugin_watch));
		node->watches_due = true;
	}
	node_wake(node);
}

static void watch_folders(struct node *node)
{
	struct error ignored; /* an absent folder is tried again at the next tick */

	if (!node->watches_due)
		return;
	if (!node->cdi_watch &&
	    !watch_create(node->loop, node->config->cdi, on_cdi, node, &node->cdi_watch, &ignored))
		node->cdi_watch = NULL;
	if (!node->plugin_watch && !watch_create(node->loop, node->plugin_folder, on_plugin_folder,
						 node, &node->plugin_watch, &ignored))
		node->plugin_watch = NULL;
	node->watches_due = !node->cdi_watch || !node->plugin_watch;
}

/* --- the turn --- */

static void step_plugins(struct node *node, struct mono now)
{
	for (size_t i = 0; i < ATOM_CLASSES; i++) {
		bool timed;
		struct mono again = deviceplugin_step(node->plugins[i], now, &timed);

		if (timed)
			node_again(node, again);
	}
}

static void log_change(char told[ERROR_WHAT_SIZE], const struct error *now, const char *event,
		       const char *meanwhile)
{
	if (str_equal(told, now ? now->what : ""))
		return;
	str_copy(told, ERROR_WHAT_SIZE, now ? now->what : "");
	if (now)
		log_failure(LOG_ERROR, event, now, meanwhile);
	else
		log_info(event, "it works again", NULL);
}

static struct node_health *find_health(const struct node *node, struct atom_uuid gpu)
{
	for (size_t i = 0; i < node->health.count; i++)
		if (atom_uuid_equal(node->health.items[i].gpu, gpu))
			return &node->health.items[i];
	return NULL;
}

struct wall node_health_since(const struct node *node, struct atom_uuid gpu)
{
	const struct node_health *health = find_health(node, gpu);

	return health ? health->since : (struct wall){0};
}

static void log_health(struct node *node, const struct inventory_gpu *gpu)
{
	struct node_health *health = find_health(node, gpu->uuid);
	char uuid[ATOM_UUID_SIZE];

	if (health && str_equal(health->cause, gpu->health.cause))
		return;
	atom_uuid_format(uuid, gpu->uuid);
	if (!gpu->health.healthy)
		log_warn("gpu.unhealthy", gpu->health.cause, "gpu", uuid, "before",
			 health && *health->cause ? health->cause : "healthy", NULL);
	else if (health)
		log_info("gpu.healthy", "the GPU is healthy again", "gpu", uuid, "before",
			 health->cause, NULL);
	if (!health) {
		health = vec_push(&node->health);
		health->gpu = gpu->uuid;
	}
	str_copy(health->cause, sizeof health->cause, gpu->health.cause);
	health->since = clock_wall();
}

static void log_gpus(struct node *node)
{
	const struct source *gpus = node->gpus;
	struct node_told *told = &node->gpus_told;

	log_change(told->gpus, source_error(gpus), "gpus.unreadable",
		   "the GPUs of before stay, all of them unhealthy");
	log_change(told->log, source_log_error(gpus), "gpus.kernel-log",
		   "XIDs are known only as far as NVML tells them");
	log_change(told->record, source_record_error(gpus), "gpus.health-record",
		   source_marker(gpus) ? "every GPU is unhealthy until it is known"
				       : "who is sick now may be taken for well after a restart");
	if (source_settled(gpus))
		vec_each (&source_inventory(gpus)->gpus, const struct inventory_gpu *gpu)
			log_health(node, gpu);
	if (told->log_lost != source_log_lost(gpus))
		log_warn("gpus.kernel-log", "records were lost; the driver is asked instead", NULL);
	told->log_lost = source_log_lost(gpus);
}

/* Blind, bcd knows after a restart only of those pods that it put on record. */
static void look_at_records(struct node *node, struct mono now)
{
	const struct error *trouble = records_trouble(node, now);

	node->withheld = (struct error){0};
	if (!node->blind || !trouble || !records_fail(node))
		return;
	node->withheld = *trouble;
	error_wrap(&node->withheld, "no device is given out while it can't be recorded who has it");
}

static void node_turn(struct node *node, struct mono now)
{
	node->timer_set = false;
	node_again(node, mono_after(now, NODE_TICK_MS));
	watch_folders(node);
	node->gpus_changed |= source_look(node->gpus);
	log_gpus(node);
	release_look(node);
	/* While a list is being written disk is between two states; what it leaves is read then. */
	if (!node->ticket)
		read_holds(node, now);
	exposure_look(node->exposure, now);
	look_at_offers(node);
	podwatch_step(node->podwatch);
	release_step(node, now);
	strays_step(node, now);
	reaper_step(node->reaper, now);
	labels_step(node->labels, now);
	look_at_records(node, now);
	report_look(node, now);
	converge_step(node, now);
	step_plugins(node, now);
	report_step(node, now);
	loop_timer_start(node->timer,
			 mono_until(now, node->timer_at) > 0 ? mono_until(now, node->timer_at) : 0);
}

static void on_turn(void *arg)
{
	struct node *node = arg;
	int64_t began_us = clock_us();

	if (node->stopping)
		return;
	node_turn(node, loop_now(node->loop));
	histogram_add(&node->figures.turns, clock_us() - began_us);
}

/* --- life --- */

static void make_paths(struct node *node)
{
	const char *data = node->config->data;
	struct buf path = {0};

	node->spec_path = identity_path(data, SPEC_FILE);
	node->reports_path = identity_path(data, REPORTS_FILE);
	node->releases_path = identity_path(data, RELEASES_FILE);
	node->marker_path = identity_path(data, RELEASES_MARKER);
	node->plugin_folder = identity_path(node->config->kubelet, "device-plugins");
	buf_printf(&path, "%s/pod-resources/kubelet.sock", node->config->kubelet);
	node->pod_resources_path = buf_take_text(&path);
}

static void make_plugins(struct node *node)
{
	node->allocator = allocator_create(node->config->cdi, node->config->run_cdi);
	deviceplugin_clean(node->plugin_folder);
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		node->plugins[i] = deviceplugin_create(
			node->loop,
			&(struct deviceplugin_options){.class = (enum atom_class)i,
						       .folder = node->plugin_folder,
						       .allocator = node->allocator,
						       .gpus = node->gpus,
						       .strays = &node->strays,
						       .withheld = &node->withheld,
						       .offer = &node->offers.classes[i],
						       .wake = node_wake,
						       .arg = node});
}

static struct source *open_source(struct node *node)
{
	static const enum source_kind kinds[] = {
		[CONFIG_GPUS_AUTO] = SOURCE_AUTO,
		[CONFIG_GPUS_NVML] = SOURCE_NVML,
		[CONFIG_GPUS_NVIDIA_SMI] = SOURCE_NVIDIA_SMI,
		[CONFIG_GPUS_SIM] = SOURCE_SIM,
	};
	const struct config *config = node->config;
	const struct source_options options = {
		.kind = kinds[config->gpus],
		.slots = config->slots,
		.file = config->sim_file,
		.reason = config->sim_reason,
		.data = config->data,
		.root = config->root,
		.sys = config->sys,
		.kernel_log = config->kernel_log,
		.nvml_library = *config->nvml_library ? config->nvml_library : NULL,
		.nvidia_smi = *config->nvidia_smi ? config->nvidia_smi : NULL,
		.xids = config->xids,
	};

	return source_create(node->loop, &options, node_wake, node);
}

static void load(struct node *node)
{
	struct mono now = loop_now(node->loop);

	node->holds_due = true;
	read_holds(node, now);
	release_load(node);
	records_load(node);
	node->kubelet_since = node->refused_at = node->marked = now;
	node->kubelet_heard = UNLISTED_NEVER;
	node->watches_due = true;
}

bool node_create(struct loop *loop, const struct config *config, struct identity *identity,
		 struct node **ret_node, struct error *error)
{
	struct node *node;

	if (!durable_make_folder(config->data, 0700, error) ||
	    !durable_make_folder(config->cdi, NODE_CDI_MODE, error))
		return false;
	node = mem_alloc(sizeof *node);
	node->loop = loop;
	node->config = config;
	node->identity = identity;
	node->started = clock_wall();
	machine_read(&node->machine);
	clock_boot_id(node->boot_id);
	make_paths(node);
	node->turn = loop_defer_create(loop, on_turn, node);
	node->timer = loop_timer_create(loop, node_wake, node);
	node->gpus = open_source(node);
	log_gpus(node);
	node->holders =
		holders_create(loop, &(struct holders_options){config->kubelet, node->boot_id,
							       release_on_holders, node});
	node->podprocesses = podprocesses_create(
		loop, &(struct podprocesses_options){.proc = config->proc,
						     .dev = config->dev,
						     .kubelet = node->pod_resources_path,
						     .fn = release_on_processes,
						     .arg = node});
	node->reaper = reaper_create(node);
	node->podwatch = podwatch_create(node);
	node->labels = labels_create(node);
	node->exposure = exposure_create(node->config);
	node->uplink = uplink_create(loop, &(struct uplink_options){.config = config,
								    .identity = identity,
								    .wake = node_wake,
								    .arg = node});
	make_plugins(node);
	load(node);
	if (!status_create(node, &node->status, error)) {
		node_destroy(node);
		return false;
	}
	node->exporter = exporter_create(node);
	node_wake(node);
	*ret_node = node;
	return true;
}

static void free_records(struct node *node)
{
	holds_deinit(&node->holds);
	spec_deinit(node->spec);
	free(node->spec);
	releases_deinit(&node->releases);
	reports_deinit(&node->reports);
	records_write_deinit(&node->write);
	offers_deinit(&node->offers);
	holders_listing_deinit(&node->listing);
	holders_listing_deinit(&node->coming);
	podprocesses_answer_deinit(&node->processes);
	release_deinit(node);
	strays_deinit(&node->strays);
	vec_deinit(&node->pending);
	vec_deinit(&node->health);
	vec_deinit(&node->conditions);
	buf_deinit(&node->inventory_told);
}

void node_set_confinement(struct node *node, const struct confinement *confinement)
{
	node->confinement = confinement;
}

void node_destroy(struct node *node)
{
	if (!node)
		return;
	node->stopping = true;
	if (node->ticket)
		node->ticket->node = NULL;
	exporter_destroy(node->exporter);
	status_destroy(node->status);
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		deviceplugin_destroy(node->plugins[i]);
	uplink_destroy(node->uplink);
	holders_destroy(node->holders);
	podprocesses_destroy(node->podprocesses);
	reaper_destroy(node->reaper);
	podwatch_destroy(node->podwatch);
	labels_destroy(node->labels);
	exposure_destroy(node->exposure);
	kube_client_destroy(node->kube);
	allocator_destroy(node->allocator);
	source_destroy(node->gpus);
	watch_destroy(node->cdi_watch);
	watch_destroy(node->plugin_watch);
	loop_defer_destroy(node->turn);
	loop_timer_destroy(node->timer);
	free_records(node);
	free(node->spec_path);
	free(node->reports_path);
	free(node->releases_path);
	free(node->marker_path);
	free(node->plugin_folder);
	free(node->pod_resources_path);
	free(node);
}
