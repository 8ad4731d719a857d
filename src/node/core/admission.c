#include "node/core/admission.h"

#define MIB ((int64_t)1 << 20)

/* What is counted: processors, memory, then each size of huge pages. */
#define KINDS (2 + HUGEPAGES_SIZES)

static int64_t *amount(struct admission_share *share, int kind)
{
	if (kind == 0)
		return &share->vcpus;
	return kind == 1 ? &share->memory_bytes : &share->hugepages.bytes[kind - 2];
}

static int64_t amount_of(const struct admission_share *share, int kind)
{
	struct admission_share copy = *share;

	return *amount(&copy, kind);
}

static int64_t at_least(int64_t number, int64_t least)
{
	return number > least ? number : least;
}

/* --- in records --- */

void admission_set(json_t *object, const struct admission_share *share)
{
	json_t *pages = json_object();

	for (int i = 0; i < HUGEPAGES_SIZES; i++)
		if (share->hugepages.bytes[i] > 0)
			tree_set(pages, hugepages_name((enum hugepages_size)i),
				 json_integer(share->hugepages.bytes[i]));
	tree_set(object, "vcpus", json_integer(share->vcpus));
	tree_set(object, "memoryBytes", json_integer(share->memory_bytes));
	if (json_object_size(pages) > 0)
		tree_set(object, "hugePages", json_incref(pages));
	json_decref(pages);
}

static bool parse_hugepages(const json_t *object, const char *where, struct hugepages *ret_pages,
			    struct error *error)
{
	static const char *const known[] = {"2Mi", "1Gi", NULL};
	char path[FIELD_WHERE_SIZE];
	json_t *pages;

	if (!field_child(object, where, "hugePages", false, &pages, error))
		return false;
	if (!pages)
		return true;
	tree_path(path, where, "hugePages");
	if (!tree_check_keys(pages, path, known, error))
		return false;
	for (int i = 0; i < HUGEPAGES_SIZES; i++)
		if (!field_number(pages, path, hugepages_name((enum hugepages_size)i), false, 0,
				  INT64_MAX, &ret_pages->bytes[i], error))
			return false;
	return true;
}

bool admission_parse(const json_t *object, const char *where, bool required,
		     struct admission_share *ret_share, struct error *error)
{
	struct admission_share share = {0};

	if (!field_number(object, where, "vcpus", required, 0, INT32_MAX, &share.vcpus, error) ||
	    !field_number(object, where, "memoryBytes", required, 0, INT64_MAX, &share.memory_bytes,
			  error) ||
	    !parse_hugepages(object, where, &share.hugepages, error))
		return false;
	*ret_share = share;
	return true;
}

/* --- sums --- */

struct admission_share admission_bookable(const struct admission_share *machine,
					  const struct admission_share *reserved)
{
	struct admission_share host = *machine;

	host.vcpus = at_least(host.vcpus - reserved->vcpus, 1);
	host.memory_bytes -= reserved->memory_bytes;
	for (int i = 0; i < HUGEPAGES_SIZES; i++)
		host.memory_bytes -= host.hugepages.bytes[i];
	host.memory_bytes = at_least(host.memory_bytes, 1);
	return host;
}

static int64_t sum_of(int64_t a, int64_t b)
{
	return a > INT64_MAX - b ? INT64_MAX : a + b;
}

void admission_add(struct admission_share *sum, const struct admission_share *share)
{
	for (int kind = 0; kind < KINDS; kind++)
		*amount(sum, kind) = sum_of(amount_of(sum, kind), amount_of(share, kind));
}

static void name_kind(struct buf *out, int kind)
{
	if (kind >= 2)
		buf_printf(out, "huge pages of %s",
			   hugepages_name((enum hugepages_size)(kind - 2)));
	else
		buf_add_text(out, kind == 0 ? "vCPU" : "memory");
}

/* Bytes are told in MiB, rounded up: what is short is never told as nothing. */
static long long shown(int kind, int64_t number)
{
	return kind == 0 ? number : number / MIB + (number % MIB > 0);
}

static void begin(struct buf *why, int kind, int64_t by)
{
	if (why->length > 0)
		buf_add_text(why, "; ");
	name_kind(why, kind);
	buf_printf(why, " short by %lld%s", shown(kind, by), kind == 0 ? "" : " MiB");
}

bool admission_fits(const struct admission_share *host, const struct admission_share *taken,
		    const struct admission_share *wanted, struct buf *why)
{
	size_t before = why->length;

	for (int kind = 0; host->vcpus > 0 && kind < KINDS; kind++) {
		const char *unit = kind == 0 ? "" : " MiB";
		int64_t has = amount_of(host, kind), booked = amount_of(taken, kind);
		int64_t asked = amount_of(wanted, kind);

		if (asked == 0 || asked <= has - booked)
			continue;
		begin(why, kind, sum_of(asked, booked) - has);
		buf_printf(why, ": %lld%s asked for, %lld of %lld%s are booked", shown(kind, asked),
			   unit, shown(kind, booked), shown(kind, has), unit);
	}
	return why->length == before;
}

bool admission_overbooked(const struct admission_share *host, const struct admission_share *taken,
			  struct buf *why)
{
	size_t before = why->length;

	for (int kind = 0; host->vcpus > 0 && kind < KINDS; kind++) {
		int64_t has = amount_of(host, kind), booked = amount_of(taken, kind);

		if (booked <= has)
			continue;
		begin(why, kind, booked - has);
		buf_printf(why, ": %lld%s booked, %lld there", shown(kind, booked),
			   kind == 0 ? "" : " MiB", shown(kind, has));
	}
	return why->length > before;
}
