#include "node/core/dra.h"

#include <openssl/sha.h>
#include <stdio.h>

#define PREFIX      "gpu-"
#define UUID_LENGTH ((size_t)ATOM_UUID_SIZE - 1)

void dra_tag(char out[DRA_TAG_SIZE], const char *allocation)
{
	unsigned char sum[SHA256_DIGEST_LENGTH];

	SHA256((const unsigned char *)allocation, strlen(allocation), sum);
	snprintf(out, DRA_TAG_SIZE, "%02x%02x%02x%02x", sum[0], sum[1], sum[2], sum[3]);
}

static void name_of(char out[DRA_NAME_SIZE], const struct atom *atom, const char *tag)
{
	char uuid[ATOM_UUID_SIZE];

	atom_uuid_format(uuid, atom->gpu);
	switch (atom->class) {
	case ATOM_GPU:
		snprintf(out, DRA_NAME_SIZE, PREFIX "%s-%s", uuid, tag);
		return;
	case ATOM_MIG:
		snprintf(out, DRA_NAME_SIZE, PREFIX "%s-gi%u-ci%u-%s", uuid, atom->gi, atom->ci,
			 tag);
		return;
	case ATOM_SLOT:
		snprintf(out, DRA_NAME_SIZE, PREFIX "%s-s%u-%s", uuid, atom->slot, tag);
		return;
	}
	assert(false && "an atom of no class");
}

void dra_name(char out[DRA_NAME_SIZE], const struct atom *atom, const char *allocation)
{
	char tag[DRA_TAG_SIZE];

	dra_tag(tag, allocation);
	name_of(out, atom, tag);
}

/* What follows the UUID, up to the tag: "-gi1-ci0", "-s3", or nothing. */
static bool read_part(const char *part, struct atom *atom)
{
	unsigned first, second;

	if (!*part) {
		atom->class = ATOM_GPU;
	} else if (sscanf(part, "-gi%3u-ci%3u", &first, &second) == 2) {
		atom->class = ATOM_MIG;
		atom->gi = (uint16_t)first;
		atom->ci = (uint16_t)second;
	} else if (sscanf(part, "-s%3u", &first) == 1) {
		atom->class = ATOM_SLOT;
		atom->slot = (uint16_t)first;
	} else {
		return false;
	}
	return true;
}

bool dra_name_parse(const char *name, struct atom *ret_atom, char ret_tag[DRA_TAG_SIZE])
{
	const size_t prefix = sizeof PREFIX - 1 + UUID_LENGTH, tag = DRA_TAG_SIZE - 1;
	char uuid[ATOM_UUID_SIZE], part[DRA_NAME_SIZE], again[DRA_NAME_SIZE];
	size_t length = strlen(name);
	struct atom atom = {0};

	if (!str_starts(name, PREFIX) || length >= DRA_NAME_SIZE || length < prefix + 1 + tag)
		return false;
	memcpy(uuid, name + sizeof PREFIX - 1, UUID_LENGTH);
	uuid[UUID_LENGTH] = '\0';
	memcpy(part, name + prefix, length - prefix - 1 - tag);
	part[length - prefix - 1 - tag] = '\0';
	if (!atom_uuid_parse(uuid, &atom.gpu) || !read_part(part, &atom))
		return false;
	/* One form only: what is read must be written the same. */
	name_of(again, &atom, name + length - tag);
	if (!str_equal(again, name) || strspn(name + length - tag, "0123456789abcdef") != tag)
		return false;
	*ret_atom = atom;
	str_copy(ret_tag, DRA_TAG_SIZE, name + length - tag);
	return true;
}
