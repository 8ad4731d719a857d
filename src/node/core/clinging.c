#include "node/core/clinging.h"

#include "base/utc.h"

#define NAMED 8 /* devices of one holder: the whole message has 1,024 bytes */

/* Without its date, where that is the same as of the one before. */
static void add_time(struct buf *out, struct wall time, struct wall before)
{
	char text[UTC_SIZE], old[UTC_SIZE];
	bool same_date;

	utc_format(text, time);
	utc_format(old, before);
	same_date = before.ms != 0 && strncmp(text, old, UTC_DATE_SIZE) == 0;
	buf_add_text(out, same_date ? text + UTC_DATE_SIZE : text);
}

void clinging_plan(enum reap_state state, const struct reap_times *times, struct wall since,
		   struct buf *out)
{
	bool is_asked = state == REAP_ASKED || state == REAP_FORCED;

	if (is_asked && times->done.ms == 0) { /* in this turn */
		buf_add_text(out, reap_state_name(state));
		return;
	}
	switch (state) {
	case REAP_HOLDING:
		buf_add_text(out, "to be asked to go at ");
		add_time(out, times->next, since);
		if (times->unlisted)
			break;
		buf_add_text(out, ", forced at ");
		add_time(out, (struct wall){times->next.ms + REAP_FORCE_MS}, times->next);
		break;
	case REAP_ASKED:
		buf_add_text(out, "asked to go at ");
		add_time(out, times->done, since);
		if (times->unlisted) {
			buf_add_text(out, ", and not forced unless the kubelet lists it with a "
					  "device");
			break;
		}
		buf_add_text(out, ", to be forced at ");
		add_time(out, times->next, times->done);
		break;
	case REAP_FORCED:
		buf_add_text(out, "deleted by force at ");
		add_time(out, times->done, since);
		buf_add_text(out, ", still there: now only its kubelet can end it");
		break;
	case REAP_NOTHING:
		break;
	case REAP_ABSENT:
	case REAP_STATIC:
	case REAP_NAMELESS:
	case REAP_ORPHAN:
		buf_add_text(out, reap_state_name(state));
		break;
	}
}

static bool is_same(const struct clinging_holder *a, const struct clinging_holder *b)
{
	return str_equal(a->name, b->name) && str_equal(a->uid, b->uid) &&
	       str_equal(a->plan, b->plan);
}

/* One is listed once for each of its devices. */
static bool was_told(const struct clinging_holder *holders, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (is_same(&holders[i], &holders[index]))
			return true;
	return false;
}

static bool has_device(const struct release_entry *entry, const struct release_device *device,
		       const struct clinging_holder *holders, size_t count, size_t of)
{
	for (size_t i = 0; i < count; i++)
		if (is_same(&holders[i], &holders[of]) &&
		    holds_id_is(holders[i].id, &device->atom, entry->allocation))
			return true;
	return false;
}

static bool add_devices(const struct release_entry *entry, const struct clinging_holder *holders,
			size_t count, size_t of, struct buf *out)
{
	size_t all = entry->devices.count, had = 0;
	CLEANUP(buf) struct buf names = {0};

	vec_each (&entry->devices, const struct release_device *device) {
		char atom[ATOM_TEXT_SIZE];

		if (!has_device(entry, device, holders, count, of) || had++ >= NAMED)
			continue;
		atom_format(atom, &device->atom);
		buf_printf(&names, "%s%s", had > 1 ? ", " : "", atom);
	}
	if (had == all && all > 1)
		buf_printf(out, ", all its %zu devices", all);
	if (had == 0 || had == all)
		return false;
	if (had > NAMED)
		buf_printf(&names, " and %zu more", had - NAMED);
	buf_printf(out, ", %zu of its %zu devices (%s)", had, all, buf_text(&names));
	return true;
}

bool clinging_describe(const struct release_entry *entry, const struct clinging_holder *holders,
		       size_t count, struct buf *out)
{
	bool named = false;

	for (size_t i = 0; i < count; i++) {
		if (was_told(holders, i))
			continue;
		if (i == 0 && entry->since > 0) {
			buf_add_text(out, "held since ");
			add_time(out, (struct wall){entry->since * 1000}, (struct wall){0});
			buf_add_text(out, " by ");
		} else {
			buf_add_text(out, i == 0 ? "held by " : ", and by ");
		}
		buf_add_text(out, holders[i].name);
		named |= add_devices(entry, holders, count, i, out);
		buf_printf(out, "%s%s", *holders[i].plan ? ": " : "", holders[i].plan);
	}
	return named;
}
