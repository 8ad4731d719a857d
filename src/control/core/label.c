#include "control/core/label.h"

#define DOMAIN_MAX 253

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool label_part_valid(const char *text, size_t length)
{
	if (length == 0 || length > LABEL_PART_MAX || !is_alnum(text[0]) ||
	    !is_alnum(text[length - 1]))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!is_alnum(text[i]) && text[i] != '-' && text[i] != '_' && text[i] != '.')
			return false;
	}
	return true;
}

/* Lower-case parts between dots; each begins and ends with a letter or digit. */
static bool is_domain(const char *text, size_t length)
{
	if (length == 0 || length > DOMAIN_MAX)
		return false;
	for (size_t i = 0; i < length; i++) {
		bool edge = i == 0 || i + 1 == length || text[i - 1] == '.' || text[i + 1] == '.';
		bool letter = is_alnum(text[i]) && !(text[i] >= 'A' && text[i] <= 'Z');

		if (!letter && (edge || (text[i] != '-' && text[i] != '.')))
			return false;
	}
	return true;
}

bool label_name_valid(const char *name, size_t length)
{
	const char *slash = memchr(name, '/', length);
	size_t domain = slash ? (size_t)(slash - name) : 0;

	if (!slash)
		return label_part_valid(name, length);
	return is_domain(name, domain) && label_part_valid(slash + 1, length - domain - 1);
}

bool label_value_valid(const char *value, size_t length)
{
	return length == 0 || label_part_valid(value, length);
}

const char *label_reserved_domain(const char *name)
{
	static const char *const domains[] = {"bcd.dev", "bc.dev", "better-compute.dev",
					      "kubernetes.io", "k8s.io"};
	const char *slash = strchr(name, '/');
	size_t length = slash ? (size_t)(slash - name) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(domains); i++) {
		size_t size = strlen(domains[i]);

		if (length < size || strncmp(name + length - size, domains[i], size) != 0)
			continue;
		if (length == size || name[length - size - 1] == '.')
			return domains[i];
	}
	return NULL;
}

bool label_is_topology(const char *name)
{
	static const char *const names[] = {"bc.dev/topology.rack", "bc.dev/topology.block",
					    "bc.dev/topology.nvlinkDomain"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (str_equal(names[i], name))
			return true;
	}
	return false;
}
