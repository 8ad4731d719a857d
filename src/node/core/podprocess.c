#include "node/core/podprocess.h"

#include <ctype.h>
#include <stdio.h>

#define UID_HEX   32 /* of a pod from a manifest: a hash */
#define UID_TEXT  36 /* of any other: with dashes */
#define MINOR_MAX 65535

/* A part of a text; not ended by NUL. */
struct span {
	const char *at;
	size_t length;
};

static struct span cut(struct span *rest, char end)
{
	const char *found = memchr(rest->at, end, rest->length);
	struct span part = {rest->at, found ? (size_t)(found - rest->at) : rest->length};
	size_t taken = part.length + (found ? 1 : 0);

	rest->at += taken;
	rest->length -= taken;
	return part;
}

static bool span_is(struct span span, const char *text)
{
	return span.length == strlen(text) && memcmp(span.at, text, span.length) == 0;
}

static bool span_ends(struct span span, const char *text)
{
	size_t length = strlen(text);

	return span.length >= length && memcmp(span.at + span.length - length, text, length) == 0;
}

static struct span without_end(struct span span, const char *text)
{
	if (span_ends(span, text))
		span.length -= strlen(text);
	return span;
}

/* What stands behind the last `mark`, or all of it. */
static struct span behind_last(struct span span, char mark)
{
	for (size_t i = span.length; i-- > 0;)
		if (span.at[i] == mark)
			return (struct span){span.at + i + 1, span.length - i - 1};
	return span;
}

static bool all_hex(struct span span, const char *also)
{
	for (size_t i = 0; i < span.length; i++)
		if (!isxdigit((unsigned char)span.at[i]) && !strchr(also, span.at[i]))
			return false;
	return true;
}

/* --- cgroups --- */

static bool is_pods_root(struct span name)
{
	return span_is(name, "kubepods") || span_is(name, "kubepods.slice") ||
	       span_ends(name, "-kubepods.slice");
}

/* "pod<uid>" of cgroupfs; "kubepods-burstable-pod<uid>.slice" of systemd, with '_' for '-'. */
static bool read_pod(struct span name, struct podprocess *ret)
{
	struct span uid = name;

	if (span_ends(name, ".slice"))
		uid = behind_last(without_end(name, ".slice"), '-');
	if (uid.length < 3 || memcmp(uid.at, "pod", 3) != 0)
		return false;
	uid.at += 3;
	uid.length -= 3;
	if ((uid.length != UID_HEX && uid.length != UID_TEXT) || !all_hex(uid, "-_"))
		return false;
	snprintf(ret->pod, sizeof ret->pod, "%.*s", (int)uid.length, uid.at);
	for (char *c = ret->pod; *c; c++)
		if (*c == '_')
			*c = '-';
	ret->is_static = uid.length == UID_HEX;
	return true;
}

/* "<id>" of cgroupfs; "cri-containerd-<id>.scope", "crio-<id>.scope" of systemd. */
static void read_container(struct span name, struct podprocess *ret)
{
	struct span id = behind_last(without_end(name, ".scope"), '-');

	if (id.length >= sizeof ret->container - 1 && all_hex(id, ""))
		snprintf(ret->container, sizeof ret->container, "%.*s",
			 (int)sizeof ret->container - 1, id.at);
}

/* "<n>:<controllers>:<path>" */
static bool read_line(struct span line, struct podprocess *ret)
{
	bool found = false, in_pod = false;

	cut(&line, ':');
	cut(&line, ':');
	while (line.length > 0) {
		struct span name = cut(&line, '/');

		if (in_pod && !*ret->container)
			read_container(name, ret);
		found |= is_pods_root(name);
		in_pod |= read_pod(name, ret);
	}
	return found || in_pod;
}

bool podprocess_read(const char *cgroup, size_t length, struct podprocess *ret)
{
	struct span rest = {cgroup, length};
	struct podprocess process = {0};
	bool found = false;

	while (rest.length > 0)
		found |= read_line(cut(&rest, '\n'), &process);
	if (found)
		*ret = process;
	return found;
}

/* --- the driver's --- */

static struct span trim(struct span span)
{
	while (span.length > 0 && isspace((unsigned char)*span.at)) {
		span.at++;
		span.length--;
	}
	while (span.length > 0 && isspace((unsigned char)span.at[span.length - 1]))
		span.length--;
	return span;
}

static bool read_number(struct span text, int32_t *ret_number)
{
	int32_t number = 0;

	if (text.length == 0)
		return false;
	for (size_t i = 0; i < text.length; i++) {
		if (!isdigit((unsigned char)text.at[i]))
			return false;
		number = number * 10 + (text.at[i] - '0');
		if (number > MINOR_MAX)
			return false;
	}
	*ret_number = number;
	return true;
}

static bool read_uuid(struct span text, struct atom_uuid *ret_uuid)
{
	char copy[ATOM_UUID_SIZE + 4];

	if (text.length >= sizeof copy)
		return false;
	snprintf(copy, sizeof copy, "%.*s", (int)text.length, text.at);
	return atom_uuid_parse(copy, ret_uuid);
}

bool podprocess_minor(const char *text, size_t length, struct atom_uuid *ret_gpu,
		      int32_t *ret_minor)
{
	struct span rest = {text, length};
	bool has_gpu = false, has_minor = false;
	struct atom_uuid gpu;
	int32_t minor;

	while (rest.length > 0) {
		struct span value = cut(&rest, '\n');
		struct span key = trim(cut(&value, ':'));

		value = trim(value);
		if (span_is(key, "GPU UUID"))
			has_gpu = read_uuid(value, &gpu);
		else if (span_is(key, "Device Minor"))
			has_minor = read_number(value, &minor);
	}
	if (!has_gpu || !has_minor)
		return false;
	*ret_gpu = gpu;
	*ret_minor = minor;
	return true;
}
