#include "node/core/offer.h"

#include "base/vec.h"

#include <stdio.h>

void offers_deinit(struct offers *offers)
{
	if (!offers)
		return;
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		vec_deinit(&offers->classes[i].devices);
}

void offer_resource(char out[OFFER_RESOURCE_SIZE], enum atom_class class)
{
	snprintf(out, OFFER_RESOURCE_SIZE, "bcd.dev/%s", atom_class_name(class));
}

struct health offer_health(const struct inventory *inventory, const struct hold_device *device)
{
	const struct inventory_atom *now = inventory_find_atom(inventory, &device->atom);

	if (!now)
		return health_bad("gone: no longer in the inventory");
	if (!str_equal(now->visible, device->visible))
		return health_bad("AtomReplaced: another instance stands at its place");
	if (now->health.healthy && holds_moved(inventory, device))
		return health_bad("moved: its device node is another one now");
	return now->health;
}

static int compare_devices(const void *a, const void *b)
{
	const struct offer_device *left = a, *right = b;

	return strcmp(left->id, right->id);
}

static void offer_hold(const struct hold *hold, const struct inventory *inventory,
		       struct offers *offers)
{
	for (size_t i = 0; i < hold->devices.count; i++) {
		const struct hold_device *device = &hold->devices.items[i];
		const struct inventory_gpu *gpu = inventory_find_gpu(inventory, device->atom.gpu);
		struct offer *offer = &offers->classes[device->atom.class];
		struct offer_device *item = vec_push(&offer->devices);

		offer->served = true;
		holds_device_id(item->id, device, hold->allocation);
		str_copy(item->allocation, sizeof item->allocation, hold->allocation);
		item->atom = device->atom;
		item->numa = gpu ? gpu->numa : INVENTORY_NUMA_UNKNOWN;
		item->health = offer_health(inventory, device);
	}
}

/* The last list, all of it unhealthy for one reason. */
static void offer_unreadable(const struct offer_view *view, struct offers *offers)
{
	char cause[HEALTH_CAUSE_SIZE];

	snprintf(cause, sizeof cause, "holds unreadable: %.70s", view->holds_error);
	for (size_t class = 0; class < ATOM_CLASSES; class ++) {
		const struct offer *before = &view->before->classes[class];

		for (size_t i = 0; i < before->devices.count; i++) {
			struct offer_device *item = vec_push(&offers->classes[class].devices);

			*item = before->devices.items[i];
			item->health = health_bad(cause);
		}
	}
}

void offer_decide(const struct offer_view *view, struct offers *ret_offers)
{
	struct offers offers = {0};

	for (size_t i = 0; i < ATOM_CLASSES; i++)
		offers.classes[i].served = view->enabled && view->before->classes[i].served;
	/* After a restart nothing may be bound any more: an empty list is one, too. */
	if (view->list_awaited)
		offers.classes[ATOM_GPU].served = view->enabled;
	if (view->enabled && !view->holds)
		offer_unreadable(view, &offers);
	for (size_t i = 0; view->enabled && view->holds && i < view->holds->count; i++)
		if (str_equal(view->holds->items[i].binding, OFFER_BINDING))
			offer_hold(&view->holds->items[i], view->inventory, &offers);
	for (size_t i = 0; i < ATOM_CLASSES; i++)
		vec_sort(&offers.classes[i].devices, compare_devices);
	*ret_offers = offers;
}

static bool device_equal(const struct offer_device *a, const struct offer_device *b)
{
	return str_equal(a->id, b->id) && a->numa == b->numa &&
	       a->health.healthy == b->health.healthy &&
	       str_equal(a->health.cause, b->health.cause);
}

bool offer_equal(const struct offer *a, const struct offer *b)
{
	if (a->served != b->served || a->devices.count != b->devices.count)
		return false;
	for (size_t i = 0; i < a->devices.count; i++)
		if (!device_equal(&a->devices.items[i], &b->devices.items[i]))
			return false;
	return true;
}

const struct offer_device *offer_find(const struct offer *offer, const char *id)
{
	const struct offer_device *devices = offer->devices.items;
	size_t i = vec_lower(offer->devices.count, at, strcmp(devices[at].id, id) < 0);

	return i < offer->devices.count && str_equal(devices[i].id, id) ? &devices[i] : NULL;
}

size_t offer_healthy_count(const struct offer *offer)
{
	size_t count = 0;

	for (size_t i = 0; i < offer->devices.count; i++)
		count += offer->devices.items[i].health.healthy;
	return count;
}
