#include "node/core/prepared.h"

#include "gpu/core/field.h"
#include "text/tree.h"

static const char *const top_keys[] = {"version", "bootId", "claims", NULL};
static const char *const claim_keys[] = {"uid", "namespace", "name", "devices", NULL};
static const char *const device_keys[] = {"device", "pool", "allocation", NULL};

static void claim_deinit(struct prepared_claim *claim)
{
	vec_deinit(&claim->devices);
	json_decref(claim->extra);
}

void prepared_deinit(struct prepared *prepared)
{
	if (!prepared)
		return;
	vec_each (&prepared->claims, struct prepared_claim * claim)
		claim_deinit(claim);
	vec_deinit(&prepared->claims);
	json_decref(prepared->extra);
	prepared->extra = NULL;
}

bool prepared_counts(const struct prepared *prepared, const char *boot_id)
{
	return !*boot_id || !*prepared->boot_id || str_equal(prepared->boot_id, boot_id);
}

/* --- writing --- */

static json_t *format_claim(const struct prepared_claim *claim)
{
	json_t *devices = json_array(), *object;

	vec_each (&claim->devices, const struct prepared_device *device)
		json_array_append_new(devices,
				      json_pack("{s:s, s:s, s:s}", "device", device->device, "pool",
						device->pool, "allocation", device->allocation));
	object = json_pack("{s:s, s:s, s:s, s:o}", "uid", claim->uid, "namespace", claim->namespace,
			   "name", claim->name, "devices", devices);
	if (claim->extra)
		json_object_update_missing(object, claim->extra);
	return object;
}

void prepared_format(const struct prepared *prepared, struct buf *out)
{
	json_t *claims = json_array();
	CLEANUP(tree)
	json_t *tree = json_pack("{s:i, s:s, s:o}", "version", PREPARED_VERSION, "bootId",
				 prepared->boot_id, "claims", claims);

	vec_each (&prepared->claims, const struct prepared_claim *claim)
		json_array_append_new(claims, format_claim(claim));
	if (prepared->extra)
		json_object_update_missing(tree, prepared->extra);
	tree_dump_pretty(out, tree);
}

/* --- reading --- */

static bool read_device(json_t *object, const char *where, struct prepared_device *device,
			struct error *error)
{
	char tag[DRA_TAG_SIZE], wanted[DRA_TAG_SIZE];
	struct atom atom;

	if (!field_object(object, where, error) ||
	    !tree_check_keys(object, where, device_keys, error) ||
	    !field_text(object, where, "device", true, device->device, sizeof device->device,
			error) ||
	    !field_text(object, where, "pool", true, device->pool, sizeof device->pool, error) ||
	    !field_text(object, where, "allocation", true, device->allocation,
			sizeof device->allocation, error))
		return false;
	if (!dra_name_parse(device->device, &atom, tag))
		return error_field(error, where, "device '%s' is none of bcd's", device->device);
	if (!id_valid(device->allocation, "alc"))
		return error_field(error, where, "allocation '%s' is no id", device->allocation);
	dra_tag(wanted, device->allocation);
	if (!str_equal(tag, wanted))
		return error_field(error, where, "device and allocation disagree");
	return true;
}

static bool read_claim(json_t *object, const char *where, struct prepared_claim *claim,
		       struct error *error)
{
	json_t *devices;

	if (!field_object(object, where, error) ||
	    !field_text(object, where, "uid", true, claim->uid, sizeof claim->uid, error) ||
	    !field_text(object, where, "namespace", true, claim->namespace, sizeof claim->namespace,
			error) ||
	    !field_text(object, where, "name", true, claim->name, sizeof claim->name, error) ||
	    !field_array(object, where, "devices", true, PREPARED_MAX_DEVICES, &devices, error))
		return false;
	if (!*claim->uid || !*claim->namespace || !*claim->name)
		return error_field(error, where, "uid, namespace and name can't be empty");
	for (size_t i = 0; i < json_array_size(devices); i++) {
		struct prepared_device device = {0};
		char item[FIELD_WHERE_SIZE];

		tree_path_item(item, where, "devices", i);
		if (!read_device(json_array_get(devices, i), item, &device, error))
			return false;
		*vec_push(&claim->devices) = device;
	}
	claim->extra = field_others(object, claim_keys);
	return true;
}

/* A name, and where it stands. */
struct place {
	const char *name;
	size_t claim, device;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order == 0)
		order = (x->claim > y->claim) - (x->claim < y->claim);
	return order ? order : (x->device > y->device) - (x->device < y->device);
}

/* Sorted: a file has room for thousands. NULL: each is there once. */
static const struct place *find_double(struct place *places, size_t count)
{
	if (count > 1)
		qsort(places, count, sizeof *places, compare_places);
	for (size_t i = 1; i < count; i++)
		if (str_equal(places[i - 1].name, places[i].name))
			return &places[i];
	return NULL;
}

static bool check_claims(const struct prepared *prepared, struct error *error)
{
	VEC(struct place) places = {0};
	const struct place *twice;
	char where[FIELD_WHERE_SIZE];

	for (size_t i = 0; i < prepared->claims.count; i++)
		*vec_push(&places) = (struct place){prepared->claims.items[i].uid, i, 0};
	twice = find_double(places.items, places.count);
	if (twice) {
		tree_path_item(where, "", "claims", twice->claim);
		error_field(error, where, "claim '%s' is there twice", twice->name);
	}
	vec_deinit(&places);
	return !twice;
}

static bool check_devices(const struct prepared *prepared, struct error *error)
{
	VEC(struct place) places = {0};
	const struct place *twice;
	char claim[FIELD_WHERE_SIZE], where[FIELD_WHERE_SIZE];

	for (size_t i = 0; i < prepared->claims.count; i++)
		for (size_t j = 0; j < prepared->claims.items[i].devices.count; j++)
			*vec_push(&places) = (struct place){
				prepared->claims.items[i].devices.items[j].device, i, j};
	twice = find_double(places.items, places.count);
	if (twice) {
		tree_path_item(claim, "", "claims", twice->claim);
		tree_path_item(where, claim, "devices", twice->device);
		error_field(error, where, "device '%s' is %s", twice->name,
			    (twice - 1)->claim == twice->claim ? "there twice"
							       : "another claim's, too");
	}
	vec_deinit(&places);
	return !twice;
}

static bool read_tree(json_t *tree, struct prepared *prepared, struct error *error)
{
	json_t *claims;

	if (!field_object(tree, "", error) || !field_version(tree, PREPARED_VERSION, error))
		return false;
	if (!field_text(tree, "", "bootId", true, prepared->boot_id, sizeof prepared->boot_id,
			error) ||
	    !field_array(tree, "", "claims", true, PREPARED_MAX_CLAIMS, &claims, error))
		return false;
	for (size_t i = 0; i < json_array_size(claims); i++) {
		struct prepared_claim claim = {0};
		char where[FIELD_WHERE_SIZE];

		tree_path_item(where, "", "claims", i);
		if (!read_claim(json_array_get(claims, i), where, &claim, error)) {
			claim_deinit(&claim);
			return false;
		}
		*vec_push(&prepared->claims) = claim;
	}
	prepared->extra = field_others(tree, top_keys);
	return check_claims(prepared, error) && check_devices(prepared, error);
}

bool prepared_parse(const char *text, size_t length, struct prepared *ret_prepared,
		    struct error *error)
{
	CLEANUP(prepared) struct prepared prepared = {0};
	CLEANUP(tree) json_t *tree = NULL;

	if (!tree_parse(text, length, PREPARED_MAX_FILE, "prepared.json", &tree, error))
		return false;
	if (!read_tree(tree, &prepared, error))
		return error_wrap(error, "prepared.json");
	*ret_prepared = prepared;
	prepared = (struct prepared){0};
	return true;
}
