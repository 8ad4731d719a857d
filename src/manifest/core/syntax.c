#include "manifest/core/syntax.h"

#define MAX_LABEL     63
#define MAX_NAME      253
#define MAX_TAG       128
#define MAX_IMAGE     512
#define DIGEST_LENGTH 64
#define MAX_QUANTITY  32

#define LOWER_ALNUM "abcdefghijklmnopqrstuvwxyz0123456789"
#define DIGITS      "0123456789"
#define HEX         DIGITS "abcdefABCDEF"
#define ALNUM       LOWER_ALNUM "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool is_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c);
}

static bool all_of(const char *text, size_t length, const char *set)
{
	return length > 0 && strspn(text, set) >= length;
}

/* Of `inner`, beginning and ending with one of `outer`. */
static bool is_word(const char *text, size_t length, size_t max, const char *outer,
		    const char *inner)
{
	return length > 0 && length <= max && is_of(text[0], outer) &&
	       is_of(text[length - 1], outer) && all_of(text, length, inner);
}

static bool is_label(const char *text, size_t length)
{
	return is_word(text, length, MAX_LABEL, LOWER_ALNUM, LOWER_ALNUM "-");
}

bool syntax_label(const char *text)
{
	return is_label(text, strlen(text));
}

/* Words with dots between them, each of at most `max` of these characters. *ret_last: where the last begins. */
static bool is_dotted(const char *text, size_t length, size_t max, const char *ends,
		      const char *inside, size_t *ret_last)
{
	if (length > MAX_NAME)
		return false;
	for (size_t at = 0;; at++) {
		size_t start = at;

		while (at < length && text[at] != '.')
			at++;
		if (!is_word(text + start, at - start, max, ends, inside))
			return false;
		*ret_last = start;
		if (at == length)
			return true;
	}
}

static bool is_name(const char *text, size_t length)
{
	size_t last;

	return is_dotted(text, length, MAX_NAME, LOWER_ALNUM, LOWER_ALNUM "-", &last);
}

bool syntax_name(const char *text)
{
	return is_name(text, strlen(text));
}

bool syntax_data_key(const char *text)
{
	size_t length = strlen(text);

	return length <= MAX_NAME && all_of(text, length, ALNUM "-_.") && !str_equal(text, ".") &&
	       !str_starts(text, "..");
}

bool syntax_label_key(const char *text)
{
	const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;

	return (!slash || is_name(text, (size_t)(slash - text))) &&
	       is_word(name, strlen(name), MAX_LABEL, ALNUM, ALNUM "-_.");
}

bool syntax_label_value(const char *text)
{
	size_t length = strlen(text);

	return length == 0 || is_word(text, length, MAX_LABEL, ALNUM, ALNUM "-_.");
}

/* What may stand behind a quantity's number. */
static bool is_suffix(const char *text)
{
	static const char *const SUFFIXES[] = {"",  "n", "u",  "m",  "k",  "M",  "G",  "T",
					       "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

	for (size_t i = 0; i < ARRAY_SIZE(SUFFIXES); i++) {
		if (str_equal(text, SUFFIXES[i]))
			return true;
	}
	if (!is_of(text[0], "eE"))
		return false;
	text += is_of(text[1], "+-") ? 2 : 1;
	return strlen(text) <= 2 && all_of(text, strlen(text), DIGITS);
}

bool syntax_quantity(const char *text)
{
	size_t whole = strspn(text, DIGITS), part = 0;

	if (strlen(text) > MAX_QUANTITY)
		return false;
	text += whole;
	if (*text == '.') {
		part = strspn(text + 1, DIGITS);
		text += 1 + part;
	}
	return whole + part > 0 && is_suffix(text);
}

/* --- hosts --- */

static bool is_ipv4(const char *text, size_t length)
{
	size_t at = 0;

	for (int part = 0; part < 4; part++) {
		size_t start;
		int value = 0;

		if (part > 0 && (at == length || text[at++] != '.'))
			return false;
		for (start = at; at < length && at - start < 3 && is_of(text[at], DIGITS); at++)
			value = value * 10 + (text[at] - '0');
		if (at == start || value > 255 || (at - start > 1 && text[start] == '0'))
			return false;
	}
	return at == length;
}

/* Eight groups of hex digits, or fewer around one "::"; the last two may be an IPv4. */
static bool is_ipv6(const char *text, size_t length)
{
	size_t groups = 0, at = 0;
	bool gap = false;

	while (at < length) {
		size_t digits;

		if (length - at >= 2 && str_starts(text + at, "::")) {
			if (gap)
				return false;
			gap = true;
			at += 2;
			if (at == length)
				break;
		} else if (groups > 0 && text[at++] != ':') {
			return false;
		}
		if (is_ipv4(text + at, length - at)) {
			groups += 2;
			break;
		}
		for (digits = 0; at < length && is_of(text[at], HEX); at++)
			digits++;
		if (digits < 1 || digits > 4)
			return false;
		groups++;
	}
	return gap ? groups < 8 : groups == 8;
}

/* RFC 1123; its last label isn't all digits, or it would be a broken IPv4. */
static bool is_host_name(const char *text, size_t length)
{
	size_t last;

	return is_dotted(text, length, MAX_LABEL, ALNUM, ALNUM "-", &last) &&
	       !all_of(text + last, length - last, DIGITS);
}

bool syntax_server_name(const char *text)
{
	size_t length = strlen(text);

	return is_host_name(text, length) || is_ipv4(text, length);
}

static bool is_port(const char *text, size_t length)
{
	return length <= 5 && all_of(text, length, DIGITS) && text[0] != '0' &&
	       strtol(text, NULL, 10) <= 65535;
}

/* A host, an IPv6 one in brackets, and perhaps a port; *ret_port: where its colon is, or `length`. */
static bool is_authority(const char *text, size_t length, size_t *ret_port)
{
	size_t host = 0;

	if (length > 0 && text[0] == '[') {
		while (host < length && text[host] != ']')
			host++;
		if (host == length || !is_ipv6(text + 1, host - 1))
			return false;
		host++;
	} else {
		while (host < length && text[host] != ':')
			host++;
		if (!is_host_name(text, host) && !is_ipv4(text, host))
			return false;
	}
	*ret_port = host;
	return host == length || (text[host] == ':' && is_port(text + host + 1, length - host - 1));
}

/* --- images --- */

/* "host", "host:5000", "10.0.0.1:5000": with a port, a dot, or "localhost", else it would be a part
 * of a path on some registry that is assumed. */
static bool is_registry(const char *text, size_t length)
{
	size_t port;

	return is_authority(text, length, &port) &&
	       (port < length || text[0] == '[' || memchr(text, '.', port) ||
		(port == strlen("localhost") && str_starts(text, "localhost")));
}

/* Words of a-z and 0-9 with '.', '_', "__" or dashes between them. */
static bool is_component(const char *text, size_t length)
{
	for (size_t at = 0; at < length;) {
		size_t start = at;

		if (!is_of(text[at], LOWER_ALNUM))
			return false;
		while (at < length && is_of(text[at], LOWER_ALNUM))
			at++;
		start = at;
		while (at < length && !is_of(text[at], LOWER_ALNUM))
			at++;
		if (at == start)
			continue;
		if (at == length || !(all_of(text + start, at - start, "-") ||
				      (at - start == 1 && is_of(text[start], "._")) ||
				      (at - start == 2 && str_starts(text + start, "__"))))
			return false;
	}
	return length > 0;
}

static bool is_path(const char *text, size_t length)
{
	for (size_t at = 0;; at++) {
		size_t start = at;

		while (at < length && text[at] != '/')
			at++;
		if (!is_component(text + start, at - start))
			return false;
		if (at == length)
			return true;
	}
}

bool syntax_image(const char *text)
{
	const char *slash = strchr(text, '/'), *digest = strchr(text, '@'), *colon;
	size_t registry, path;

	if (strlen(text) > MAX_IMAGE || !slash || !digest || slash > digest ||
	    !str_starts(digest, "@sha256:") ||
	    strlen(digest + strlen("@sha256:")) != DIGEST_LENGTH ||
	    !all_of(digest + strlen("@sha256:"), DIGEST_LENGTH, DIGITS "abcdef"))
		return false;
	registry = (size_t)(slash - text);
	path = (size_t)(digest - slash) - 1;
	colon = memchr(slash + 1, ':', path);
	if (colon) {
		const char *tag = colon + 1;
		size_t length = (size_t)(digest - tag);

		if (length > MAX_TAG || !all_of(tag, length, ALNUM "_.-") || is_of(*tag, ".-"))
			return false;
		path = (size_t)(colon - slash) - 1;
	}
	return is_registry(text, registry) && is_path(slash + 1, path);
}

/* --- addresses --- */

bool syntax_https(const char *text, bool with_path)
{
	const char *host = text + strlen("https://");
	size_t length, path, port;

	if (!str_starts(text, "https://") || strlen(text) > SYNTAX_MAX_URL)
		return false;
	length = strcspn(host, "/?#");
	path = strlen(host + length);
	return is_authority(host, length, &port) &&
	       (path == 0 || str_equal(host + length, "/") ||
		(with_path && host[length] == '/' && all_of(host + length, path, ALNUM "/-._~%")));
}
