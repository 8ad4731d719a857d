#include "text/yaml.h"

/* A string that YAML readers of all versions take as that string without quotes. */
static bool plain_in_yaml(const char *text)
{
	static const char *const WORDS[] = {"true", "false", "yes", "no", "on",
					    "off",  "null",  "y",   "n"};

	if (!((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z') ||
	      text[0] == '/'))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++) {
		if (strcasecmp(text, WORDS[i]) == 0)
			return false;
	}
	for (const char *at = text; *at; at++) {
		bool word = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
			    (*at >= '0' && *at <= '9') || strchr("_-./", *at);
		if (!word)
			return false;
	}
	return true;
}

/* The UTF-8 at `text` of a character that JSON takes as it is and readers of YAML refuse, or fold as
 * the end of a line: DEL, U+0080 to U+009F, U+2028, U+2029, U+FEFF, U+FFFE and U+FFFF. 0: another. */
static unsigned unprintable(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	unsigned code;

	if (c[0] == 0x7f)
		return 0x7f;
	if (c[0] == 0xc2)
		return c[1] < 0xa0 ? c[1] : 0;
	if ((c[0] & 0xf0) != 0xe0)
		return 0;
	code = (c[0] & 0x0fu) << 12 | (c[1] & 0x3fu) << 6 | (c[2] & 0x3fu);
	return code == 0x2028 || code == 0x2029 || code == 0xfeff || code >= 0xfffe ? code : 0;
}

static void yaml_quoted(struct buf *out, const char *text)
{
	while (*text) {
		unsigned code = unprintable(text);

		if (code == 0) {
			buf_add_char(out, *text++);
			continue;
		}
		buf_printf(out, "\\u%04x", code);
		text += code < 0x80 ? 1 : code < 0x800 ? 2 : 3;
	}
}

static void yaml_scalar(struct buf *out, const json_t *value)
{
	CLEANUP(free) char *text = NULL;

	if (json_is_string(value) && plain_in_yaml(json_string_value(value))) {
		buf_add_text(out, json_string_value(value));
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT); /* "{}" and "[]" too */
	yaml_quoted(out, text ? text : "null");
}

static bool is_block(const json_t *value)
{
	return json_object_size(value) > 0 || json_array_size(value) > 0;
}

/* Whole lines that a literal block gives back byte by byte. */
static bool is_lines(const json_t *value)
{
	const char *text = json_string_value(value);
	size_t length = text ? strlen(text) : 0;

	if (length < 2 || text[0] == ' ' || text[0] == '\n' || text[length - 1] != '\n' ||
	    text[length - 2] == '\n')
		return false;
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at < ' ' ? *at != '\n' : (unsigned char)*at >= 0x7f)
			return false;
	}
	return true;
}

static void yaml_lines(struct buf *out, const char *text, int indent)
{
	buf_add_text(out, "|\n");
	while (*text) {
		size_t length = strcspn(text, "\n");

		buf_printf(out, "%*s%.*s\n", length ? indent : 0, "", (int)length, text);
		text += length + 1;
	}
}

static void yaml_value(struct buf *out, const json_t *value, int indent);

static void yaml_object(struct buf *out, const json_t *value, int indent)
{
	const char *key;
	json_t *item;
	bool first = true;

	json_object_foreach((json_t *)value, key, item)
	{
		CLEANUP(tree) json_t *name = json_string(key);
		if (!first)
			buf_printf(out, "%*s", indent, "");
		first = false;
		yaml_scalar(out, name);
		buf_add_char(out, ':');
		if (is_block(item))
			buf_printf(out, "\n%*s", indent + 2, "");
		else
			buf_add_char(out, ' ');
		yaml_value(out, item, indent + 2);
	}
}

static void yaml_array(struct buf *out, const json_t *value, int indent)
{
	size_t index;
	json_t *item;

	json_array_foreach(value, index, item)
	{
		if (index)
			buf_printf(out, "%*s", indent, "");
		buf_add_text(out, "- ");
		yaml_value(out, item, indent + 2);
	}
}

/* The cursor stands where the value begins; nested blocks are indented by `indent`. */
static void yaml_value(struct buf *out, const json_t *value, int indent)
{
	if (json_object_size(value) > 0) {
		yaml_object(out, value, indent);
	} else if (json_array_size(value) > 0) {
		yaml_array(out, value, indent);
	} else if (is_lines(value)) {
		yaml_lines(out, json_string_value(value), indent);
	} else {
		yaml_scalar(out, value);
		buf_add_char(out, '\n');
	}
}

void yaml_dump(struct buf *out, const json_t *tree)
{
	yaml_value(out, tree, 0);
}
