#include "manifest/core/resources.h"
#include "manifest/core/syntax.h"
#include "text/tree.h"

#include <stdlib.h>

#define MAX_RESOURCES 16
#define ALIKE         1e-12L /* two ways to write one amount differ by less */

/* --- names --- */

static bool is_huge_pages(const char *name)
{
	return str_starts(name, "hugepages-");
}

static bool is_extended(const char *name)
{
	return strchr(name, '/') && !strstr(name, "kubernetes.io/");
}

/* What a node has by itself goes by one word; whatever else has its maker's domain before it. */
static bool is_known(const char *name)
{
	static const char *const WORDS[] = {"cpu", "memory", "ephemeral-storage"};

	for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++) {
		if (str_equal(name, WORDS[i]))
			return true;
	}
	return is_huge_pages(name) || (strchr(name, '/') && !str_starts(name, "requests."));
}

/* --- amounts --- */

static long double amount_of(const char *text)
{
	static const struct {
		const char *suffix;
		long double factor;
	} ROWS[] = {
		{"n", 1e-9L},    {"u", 1e-6L},    {"m", 1e-3L},    {"k", 1e3L},     {"M", 1e6L},
		{"G", 1e9L},     {"T", 1e12L},    {"P", 1e15L},    {"E", 1e18L},    {"Ki", 0x1p10L},
		{"Mi", 0x1p20L}, {"Gi", 0x1p30L}, {"Ti", 0x1p40L}, {"Pi", 0x1p50L}, {"Ei", 0x1p60L},
	};
	char *suffix;
	long double amount = strtold(text, &suffix);

	for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
		if (str_equal(suffix, ROWS[i].suffix))
			return amount * ROWS[i].factor;
	}
	return amount;
}

static bool is_over(long double amount, long double other)
{
	return amount > other * (1 + ALIKE);
}

static bool is_whole(long double amount)
{
	long double whole;

	if (amount >= 0x1p62L)
		return true;
	whole = (long double)(int64_t)(amount + 0.5L);
	return !is_over(amount, whole) && !is_over(whole, amount);
}

static bool check_amount(const char *name, const json_t *value, const char *path,
			 struct error *error)
{
	const char *text = json_string_value(value);

	if (!syntax_label_key(name))
		return error_field(error, path, "'%.120s' is no resource", name);
	if (!is_known(name)) {
		error_field(error, path, "'%.120s' is no resource of Kubernetes", name);
		return error_hint(error, "cpu, memory, ephemeral-storage, hugepages-SIZE, or "
					 "another's with its domain: example.com/NAME");
	}
	if (!text || !syntax_quantity(text)) {
		error_field(error, path, "%.60s is '%.60s', which is no quantity", name,
			    text ? text : "no text");
		return error_hint(error, "A quantity is a text, such as \"100m\" or \"128Mi\".");
	}
	return !is_extended(name) || is_whole(amount_of(text)) ||
	       error_field(error, path, "%.60s is '%.60s', and is counted in whole ones", name,
			   text);
}

static bool check_amounts(const json_t *resources, const char *part, struct error *error)
{
	char path[ERROR_FIELD_SIZE];
	json_t *amounts = NULL, *value;
	const char *name;

	tree_path(path, "resources", part);
	if (!tree_opt_object(resources, part, "resources", &amounts, error))
		return false;
	if (json_object_size(amounts) > MAX_RESOURCES)
		return error_field(error, path, "has more than %d resources", MAX_RESOURCES);
	json_object_foreach(amounts, name, value)
	{
		if (!check_amount(name, value, path, error))
			return false;
	}
	return true;
}

/* --- what is requested beside what is the limit --- */

static bool check_request(const char *name, const char *request, const char *limit,
			  struct error *error)
{
	bool must_match = is_extended(name) || is_huge_pages(name);

	if (!limit)
		return !must_match ||
		       error_field(error, "resources.limits",
				   "has no %.60s, which can't be requested without a limit", name);
	if (is_over(amount_of(request), amount_of(limit)))
		return error_field(error, "resources.requests",
				   "%.60s is '%.60s', over its limit of '%.60s'", name, request,
				   limit);
	return !must_match || !is_over(amount_of(limit), amount_of(request)) ||
	       error_field(error, "resources.requests",
			   "%.60s is '%.60s', and must be as its limit of '%.60s'", name, request,
			   limit);
}

static bool has_huge_pages(const json_t *amounts)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)amounts, name, value)
	{
		if (is_huge_pages(name))
			return true;
	}
	return false;
}

static bool has_memory_or_cpu(const json_t *amounts)
{
	return json_object_get(amounts, "cpu") || json_object_get(amounts, "memory");
}

bool resources_check(const json_t *resources, struct error *error)
{
	const json_t *limits, *requests;
	const char *name;
	json_t *value;

	if (!tree_check_keys(resources, "resources", TREE_KEYS("limits", "requests"), error) ||
	    !check_amounts(resources, "limits", error) ||
	    !check_amounts(resources, "requests", error))
		return false;
	limits = json_object_get(resources, "limits");
	requests = json_object_get(resources, "requests");
	json_object_foreach((json_t *)requests, name, value)
	{
		if (!check_request(name, json_string_value(value),
				   json_string_value(json_object_get(limits, name)), error))
			return false;
	}
	return !has_huge_pages(limits) || has_memory_or_cpu(limits) ||
	       has_memory_or_cpu(requests) ||
	       error_field(error, "resources.limits", "has huge pages, and no cpu or memory");
}
