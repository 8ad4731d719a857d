#include "gpu/core/atom.h"

#include <stdio.h>

static const char *const class_names[ATOM_CLASSES] = {
	[ATOM_GPU] = "gpu",
	[ATOM_MIG] = "gpu.mig",
	[ATOM_SLOT] = "gpu.slot",
};

const char *atom_class_name(enum atom_class class)
{
	assert((size_t)class < ATOM_CLASSES);
	return class_names[class];
}

bool atom_class_parse(const char *name, enum atom_class *ret_class)
{
	for (size_t i = 0; i < ATOM_CLASSES; i++) {
		if (!str_equal(name, class_names[i]))
			continue;
		*ret_class = (enum atom_class)i;
		return true;
	}
	return false;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Reads 36 characters at *text and moves past them. */
static bool scan_uuid(const char **text, struct atom_uuid *ret_uuid)
{
	struct atom_uuid uuid = {0};
	const char *at = *text;

	for (size_t i = 0; i < ATOM_UUID_BYTES; i++) {
		int high, low;

		if ((i == 4 || i == 6 || i == 8 || i == 10) && *at++ != '-')
			return false;
		high = hex_digit(at[0]);
		low = high < 0 ? -1 : hex_digit(at[1]);
		if (low < 0)
			return false;
		uuid.bytes[i] = (uint8_t)(high << 4 | low);
		at += 2;
	}
	*text = at;
	*ret_uuid = uuid;
	return true;
}

bool atom_uuid_parse(const char *text, struct atom_uuid *ret_uuid)
{
	struct atom_uuid uuid;

	if (str_starts(text, "GPU-"))
		text += strlen("GPU-");
	if (!scan_uuid(&text, &uuid) || *text)
		return false;
	*ret_uuid = uuid;
	return true;
}

void atom_uuid_format(char out[ATOM_UUID_SIZE], struct atom_uuid uuid)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < ATOM_UUID_BYTES; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		*out++ = digits[uuid.bytes[i] >> 4];
		*out++ = digits[uuid.bytes[i] & 15];
	}
	*out = '\0';
}

/* "<prefix><number>" without leading zeros; moves past it. */
static bool scan_number(const char **text, const char *prefix, uint16_t *ret_number)
{
	const char *at = *text;
	int number = 0;

	if (!str_starts(at, prefix))
		return false;
	at += strlen(prefix);
	if (*at < '0' || *at > '9' || (*at == '0' && at[1] >= '0' && at[1] <= '9'))
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		number = number * 10 + (*at - '0');
		if (number > ATOM_MAX_NUMBER)
			return false;
	}
	*text = at;
	*ret_number = (uint16_t)number;
	return true;
}

static bool scan_atom(const char *text, struct atom *atom)
{
	if (!str_starts(text, "gpu/"))
		return false;
	text += strlen("gpu/");
	if (!scan_uuid(&text, &atom->gpu))
		return false;
	if (!*text) {
		atom->class = ATOM_GPU;
		return true;
	}
	if (scan_number(&text, "/s", &atom->slot)) {
		atom->class = ATOM_SLOT;
		return !*text;
	}
	atom->class = ATOM_MIG;
	return scan_number(&text, "/gi", &atom->gi) && scan_number(&text, "/ci", &atom->ci) &&
	       !*text;
}

bool atom_parse(const char *text, struct atom *ret_atom, struct error *error)
{
	struct atom atom = {0};

	if (!scan_atom(text, &atom))
		return error_set(error, ERROR_INVALID_INPUT,
				 "'%.80s' is not a device such as gpu/<uuid>, gpu/<uuid>/gi1/ci0 "
				 "or gpu/<uuid>/s0",
				 text);
	*ret_atom = atom;
	return true;
}

void atom_format(char out[ATOM_TEXT_SIZE], const struct atom *atom)
{
	char uuid[ATOM_UUID_SIZE];

	atom_uuid_format(uuid, atom->gpu);
	switch (atom->class) {
	case ATOM_GPU:
		snprintf(out, ATOM_TEXT_SIZE, "gpu/%s", uuid);
		return;
	case ATOM_MIG:
		snprintf(out, ATOM_TEXT_SIZE, "gpu/%s/gi%u/ci%u", uuid, atom->gi, atom->ci);
		return;
	case ATOM_SLOT:
		snprintf(out, ATOM_TEXT_SIZE, "gpu/%s/s%u", uuid, atom->slot);
		return;
	}
	assert(false && "an atom of no class");
}

void atom_device_name(char out[ATOM_TEXT_SIZE], const struct atom *atom)
{
	atom_format(out, atom);
	for (char *at = out; *at; at++)
		if (*at == '/')
			*at = '_';
}

int atom_compare(const struct atom *a, const struct atom *b)
{
	int order = memcmp(a->gpu.bytes, b->gpu.bytes, ATOM_UUID_BYTES);

	if (order)
		return order;
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	if (a->gi != b->gi)
		return a->gi < b->gi ? -1 : 1;
	if (a->ci != b->ci)
		return a->ci < b->ci ? -1 : 1;
	if (a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	return 0;
}

struct atom_range atom_whole(void)
{
	return (struct atom_range){0, ATOM_LEAVES};
}

struct atom_range atom_slot_range(int32_t slot, int32_t slots)
{
	assert(slot >= 0 && slot < slots);
	assert(slots <= ATOM_LEAVES);
	return (struct atom_range){slot * ATOM_LEAVES / slots, (slot + 1) * ATOM_LEAVES / slots};
}

struct atom_range atom_mig_range(int32_t start, int32_t size)
{
	assert(start >= 0 && size > 0 && start + size <= 8);
	return (struct atom_range){start * (ATOM_LEAVES / 8), (start + size) * (ATOM_LEAVES / 8)};
}

bool atom_overlap(struct atom_uuid a, struct atom_range a_range, struct atom_uuid b,
		  struct atom_range b_range)
{
	return atom_uuid_equal(a, b) && a_range.lo < b_range.hi && b_range.lo < a_range.hi;
}
