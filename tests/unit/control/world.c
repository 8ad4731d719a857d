#include "unit/control/world.h"

#include "unit/serve/schema_check.h"

#include <stdio.h>

#define MAX_ANSWERS 4096
#define MAX_ATOMS   256

static json_t *answers[MAX_ANSWERS];
static size_t answers_count;

/* --- life --- */

void world_connect(struct world *world, const char *replica, struct control *ret_control)
{
	struct error error;

	*ret_control = (struct control){0};
	str_copy(ret_control->replica, sizeof ret_control->replica, replica);
	expect_ok(store_connect(world->store, &ret_control->connection, &error), &error);
}

void world_disconnect(struct control *control)
{
	store_disconnect(control->connection);
	control->connection = NULL;
}

int world_setup(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	char key[CONTROL_KEY_SIZE];
	struct error error;

	database_setup(NULL);
	expect_ok(store_open(database_url(), &world->store, &error), &error);
	world_connect(world, "replica-1", &world->control);
	expect_ok(control_init(&world->control, key, &error), &error);
	expect_ok(control_authenticate(&world->control, key, &world->operator, & error), &error);
	str_copy(world->operator.request, ID_SIZE, "req_test");
	str_copy(world->tenant, ID_SIZE,
		 world_text(world_call(world, control_tenant_create, NULL, "{\"name\":\"acme\"}"),
			    "id"));
	str_copy(
		world->site, ID_SIZE,
		world_text(world_call(world, control_site_create, NULL,
				      "{\"tenantId\":\"%s\",\"name\":\"home\",\"kind\":\"custom\"}",
				      world->tenant),
			   "id"));
	str_copy(world->pool, ID_SIZE,
		 world_text(world_call(world, control_pool_create, NULL,
				       "{\"tenantId\":\"%s\",\"siteId\":\"%s\",\"name\":\"h100\","
				       "\"class\":\"metal-host\",\"gpuModel\":\"H100\","
				       "\"policy\":{}}",
				       world->tenant, world->site),
			    "id"));
	*state = world;
	return 0;
}

int world_teardown(void **state)
{
	struct world *world = *state;

	while (answers_count > 0)
		json_decref(answers[--answers_count]);
	world_disconnect(&world->control);
	store_destroy(world->store);
	free(world);
	return database_teardown(NULL);
}

/* --- calls --- */

static json_t *parse_body(const char *format, va_list args)
{
	char text[4096];
	json_t *body;

	if (!format)
		return NULL;
	vsnprintf(text, sizeof text, format, args);
	body = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	if (!body)
		fail_msg("not JSON: %s", text);
	return body;
}

bool world_ask(struct world *world, world_call_fn *function, const struct control_call *call,
	       json_t **ret_answer, struct error *error)
{
	if (!function(&world->control, call, ret_answer, error))
		return false;
	schema_check_call(function, call->body, *ret_answer);
	return true;
}

json_t *world_call(struct world *world, world_call_fn *function, const char *id,
		   const char *body_format, ...)
{
	struct control_call call = {.principal = &world->operator, .id = id };
	json_t *answer = NULL, *body;
	struct error error = {0};
	va_list args;

	va_start(args, body_format);
	body = parse_body(body_format, args);
	va_end(args);
	call.body = body;
	if (!world_ask(world, function, &call, &answer, &error))
		fail_msg("%s %s: %s", id ? id : "call", error_code_name(error.code), error.what);
	json_decref(body);
	assert_true(answers_count < MAX_ANSWERS);
	answers[answers_count++] = answer;
	return answer;
}

void world_refused(struct world *world, world_call_fn *function, const char *id,
		   enum error_code code, const char *text, const char *body_format, ...)
{
	struct control_call call = {.principal = &world->operator, .id = id };
	json_t *answer = NULL, *body;
	struct error error = {0};
	va_list args;

	va_start(args, body_format);
	body = parse_body(body_format, args);
	va_end(args);
	call.body = body;
	expect_error(world_ask(world, function, &call, &answer, &error), &error, code, text);
	assert_null(answer);
	json_decref(body);
}

/* --- reading answers --- */

static const json_t *find(const json_t *json, const char *path)
{
	char part[64];

	while (json && *path) {
		size_t length = strcspn(path, ".");

		assert_true(length < sizeof part);
		memcpy(part, path, length);
		part[length] = '\0';
		json = json_is_array(json) ? json_array_get(json, (size_t)atoi(part))
					   : json_object_get(json, part);
		path += length + (path[length] == '.');
	}
	return json;
}

const char *world_text(const json_t *json, const char *path)
{
	const json_t *value = find(json, path);

	if (!json_is_string(value)) {
		char *text = json_dumps(json, JSON_INDENT(1));

		fail_msg("no text at %s of %s", path, text);
	}
	return json_string_value(value);
}

int64_t world_int(const json_t *json, const char *path)
{
	const json_t *value = find(json, path);

	if (!json_is_integer(value) && !json_is_boolean(value))
		fail_msg("no number at %s", path);
	return json_is_boolean(value) ? json_is_true(value) : json_integer_value(value);
}

bool world_has(const json_t *json, const char *path)
{
	return find(json, path) != NULL;
}

struct control_principal world_principal(struct world *world, const char *tenant, const char *role)
{
	static int number;
	struct control_principal principal;
	struct error error;
	json_t *key = world_call(world, control_key_create, NULL,
				 "{\"tenantId\":\"%s\",\"role\":\"%s\",\"name\":\"k%d\"}", tenant,
				 role, ++number);

	expect_ok(control_authenticate(&world->control, world_text(key, "key"), &principal, &error),
		  &error);
	return principal;
}

/* --- nodes --- */

static bool issue(void *context UNUSED, const char *node_id, enum control_trust trust UNUSED,
		  struct wall now UNUSED, char **ret_certificate, struct error *error UNUSED)
{
	*ret_certificate = mem_strdup(node_id);
	return true;
}

void world_join(struct world *world, struct world_node *ret_node)
{
	static int number;
	struct world_node node = {
		.gpus = WORLD_GPUS, .vcpus = 128, .memory_bytes = (int64_t)1024 << 30};
	struct control_joined joined = {0};
	struct error error;
	json_t *token = world_call(world, control_join_token_create, NULL, "{\"poolId\":\"%s\"}",
				   world->pool);
	int my_number = ++number;

	snprintf(node.machine_key, sizeof node.machine_key, "sha256/key-%d", my_number);
	struct control_join_request request = {.token = world_text(token, "token"),
					       .machine_key = node.machine_key,
					       .smbios_uuid = "",
					       .hostname = "gpu-node",
					       .boot_id = "boot",
					       .issue = issue};

	expect_ok(control_join(&world->control, &request, &joined, &error), &error);
	assert_string_equal(joined.certificate, joined.node);
	str_copy(node.id, ID_SIZE, joined.node);
	control_joined_deinit(&joined);
	for (int i = 0; i < WORLD_GPUS; i++)
		snprintf(node.uuids[i], sizeof node.uuids[i], "%08x-0000-0000-0000-%012x",
			 my_number, i);
	*ret_node = node;
}

void world_hello(struct world *world, struct world_node *node, const char *const *capabilities)
{
	static const char *const both[] = {"kubernetes-binding", "assignment-limits", NULL};
	struct control_welcome welcome;
	struct control_hello hello = {.node = node->id,
				      .boot_id = "boot",
				      .version = "0.1.0",
				      .hostname = "gpu-node",
				      .capabilities = capabilities ? capabilities : both,
				      .lineage =
					      store_connection_lineage(world->control.connection),
				      .spec_generation = node->generation,
				      .last_sequence = node->sequence};
	struct error error;

	while (hello.capabilities[hello.capabilities_count])
		hello.capabilities_count++;
	expect_ok(control_node_hello(&world->control, &hello, &welcome, &error), &error);
	assert_string_equal(welcome.lineage, store_connection_lineage(world->control.connection));
	node->epoch = welcome.epoch;
}

struct control_report_result world_report(struct world *world, struct world_node *node,
					  struct control_report report)
{
	struct control_report_result result;
	struct error error;

	report.node = node->id;
	report.epoch = node->epoch;
	report.sequence = ++node->sequence;
	report.spec_generation = node->generation;
	expect_ok(control_node_report(&world->control, &report, &result, &error), &error);
	assert_int_equal(result.acknowledged, node->sequence);
	return result;
}

/* Room for what an inventory points at. */
struct inventory_room {
	struct control_gpu gpus[WORLD_GPUS];
	struct control_atom atoms[MAX_ATOMS];
	char names[MAX_ATOMS][96], visible[MAX_ATOMS][96];
	size_t atoms_count;
};

static void add_atom(struct inventory_room *room, const char *uuid, const char *class,
		     const char *suffix, int lo, int hi, struct control_health health)
{
	size_t i = room->atoms_count++;

	assert_true(i < MAX_ATOMS);
	snprintf(room->names[i], sizeof room->names[i], "gpu/%s%s", uuid, suffix);
	snprintf(room->visible[i], sizeof room->visible[i], "GPU-%s%s", uuid, suffix);
	room->atoms[i] = (struct control_atom){
		.atom = room->names[i],
		.class = class,
		.gpu = uuid,
		.profile = str_equal(class, "gpu.mig") ? "1g.10gb" : "",
		.visible_device = room->visible[i],
		.leaf_lo = lo,
		.leaf_hi = hi,
		.health = health,
	};
}

void world_inventory(struct world *world, struct world_node *node)
{
	struct inventory_room *room = mem_alloc(sizeof *room);
	struct control_report report = {.kind = CONTROL_REPORT_INVENTORY};

	for (int i = 0; i < node->gpus; i++) {
		bool healthy = !(node->unhealthy & 1U << i);
		struct control_health health = {healthy, healthy ? "" : "XID 79"};
		char suffix[24];

		room->gpus[i] = (struct control_gpu){.uuid = node->uuids[i],
						     .model = "NVIDIA H100 80GB HBM3",
						     .pci = "0000:00:00.0",
						     .memory_bytes = (int64_t)80 << 30,
						     .numa = i / 4,
						     .health = health};
		add_atom(room, node->uuids[i], "gpu", "", 0, 1024, health);
		if (node->uncut & 1U << i)
			continue;
		for (int s = 0; s < node->slots; s++) {
			snprintf(suffix, sizeof suffix, "/s%d", s);
			add_atom(room, node->uuids[i], "gpu.slot", suffix, 1024 * s / node->slots,
				 1024 * (s + 1) / node->slots, health);
		}
		for (int m = 0; m < node->migs; m++) {
			snprintf(suffix, sizeof suffix, "/gi%d/ci0", m + 7);
			add_atom(room, node->uuids[i], "gpu.mig", suffix, 128 * m, 128 * (m + 1),
				 health);
		}
	}
	report.inventory =
		(struct control_inventory){.kubernetes_node_name = "gpu-node",
					   .hostname = "gpu-node",
					   .kernel = "6.8",
					   .vcpus = node->vcpus,
					   .memory_bytes = node->memory_bytes,
					   .hugepages = node->hugepages,
					   .simulated = true,
					   .simulated_reason = "a test",
					   .driver_version = "580",
					   .gpu_api = node->dra ? "dra" : "device-plugin",
					   .gpus = room->gpus,
					   .gpus_count = (size_t)node->gpus,
					   .atoms = room->atoms,
					   .atoms_count = room->atoms_count};
	world_report(world, node, report);
	free(room);
}

void world_conditions(struct world *world, struct world_node *node,
		      const struct control_condition *conditions, size_t count)
{
	struct control_report report = {.kind = CONTROL_REPORT_CONDITIONS};

	report.conditions.items = conditions;
	report.conditions.count = count;
	world_report(world, node, report);
}

void world_ready(struct world *world, struct world_node *ret_node, int gpus)
{
	world_join(world, ret_node);
	ret_node->gpus = gpus;
	world_hello(world, ret_node, NULL);
	world_inventory(world, ret_node);
	world_conditions(world, ret_node, NULL, 0);
}

void world_heartbeat(struct world *world, struct world_node *node)
{
	struct error error;

	expect_ok(control_node_heartbeat(&world->control, node->id, node->epoch, node->generation,
					 &error),
		  &error);
}

void world_bound(struct world *world, struct world_node *node, const char *allocation)
{
	struct control_report report = {.kind = CONTROL_REPORT_BOUND};

	report.bound.allocation = allocation;
	world_report(world, node, report);
}

void world_released(struct world *world, struct world_node *node, const char *allocation)
{
	struct control_report report = {.kind = CONTROL_REPORT_RELEASED};

	report.released.allocation = allocation;
	world_report(world, node, report);
}

void world_failed(struct world *world, struct world_node *node, const char *allocation,
		  const char *reason)
{
	struct control_report report = {.kind = CONTROL_REPORT_FAILED};

	report.failed.allocation = allocation;
	report.failed.reason = reason;
	report.failed.message = "as the test wants";
	world_report(world, node, report);
}

void world_take_spec(struct world *world, struct world_node *node, struct control_spec *ret_spec)
{
	struct error error;

	expect_ok(control_spec_load(&world->control, node->id, node->epoch, ret_spec, &error),
		  &error);
	node->generation = ret_spec->generation;
	world_heartbeat(world, node);
}

void world_store_spec(struct world *world, struct world_node *node)
{
	struct control_spec spec;

	world_take_spec(world, node, &spec);
	control_spec_deinit(&spec);
}

bool world_spec_has(const struct control_spec *spec, const char *allocation)
{
	for (size_t i = 0; i < spec->assignments_count; i++) {
		if (str_equal(spec->assignments[i].allocation, allocation))
			return true;
	}
	return false;
}

void world_bind(struct world *world, struct world_node *node, const char *allocation)
{
	struct control_spec spec;

	world_take_spec(world, node, &spec);
	assert_true(world_spec_has(&spec, allocation));
	control_spec_deinit(&spec);
	world_bound(world, node, allocation);
}

void world_tick(struct world *world)
{
	struct error error;

	expect_ok(control_tick(&world->control, &error), &error);
}

/* --- reservations --- */

json_t *world_reserve(struct world *world, int count)
{
	return world_call(world, control_reservation_create, NULL,
			  "{\"tenantId\":\"%s\",\"poolId\":\"%s\",\"devices\":[{\"class\":\"gpu\","
			  "\"count\":%d}],\"duration\":\"1h\",\"binding\":\"kubernetes\"}",
			  world->tenant, world->pool, count);
}

json_t *world_reservation(struct world *world, const char *id)
{
	return world_call(world, control_reservation_get, id, NULL);
}

/* --- events --- */

int64_t world_count_events(struct world *world, const char *type, const char *subject)
{
	struct control_call call = {.principal = &world->operator, .limit = "1000" };
	json_t *answer;
	int64_t count = 0;
	struct error error;

	expect_ok(world_ask(world, control_event_list, &call, &answer, &error), &error);
	for (size_t i = 0; i < json_array_size(json_object_get(answer, "items")); i++) {
		const json_t *item = json_array_get(json_object_get(answer, "items"), i);

		count += str_equal(world_text(item, "type"), type) &&
			 str_equal(world_text(item, "subject"), subject);
	}
	json_decref(answer);
	return count;
}
