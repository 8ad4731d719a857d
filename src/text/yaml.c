#include "text/yaml.h"

#include <errno.h>
#include <yaml.h>

/* An object or array that is being filled, and the key that waits for its value. */
struct level {
	json_t *value; /* borrowed from the level below; the root is the load's */
	char *key;
};

struct load {
	yaml_parser_t parser;
	const char *source;
	json_t *root;
	struct level levels[TREE_MAX_DEPTH];
	size_t depth;
	struct error *error;
};

static void load_cleanup(struct load *load)
{
	for (size_t i = 0; i < load->depth; i++)
		free(load->levels[i].key);
	json_decref(load->root);
	yaml_parser_delete(&load->parser);
}

static void event_cleanup(yaml_event_t *event)
{
	yaml_event_delete(event);
}

static bool refuse(struct load *load, const yaml_event_t *event, const char *why)
{
	return error_set(load->error, ERROR_INVALID_INPUT, "%s:%zu: %s", load->source,
			 event->start_mark.line + 1, why);
}

/* libyaml's words are constant texts that quote nothing. */
static bool parser_failed(const struct load *load)
{
	const yaml_parser_t *parser = &load->parser;

	if (parser->error == YAML_MEMORY_ERROR)
		abort();
	return error_set(load->error, ERROR_INVALID_INPUT, "%s:%zu: %s%s%s", load->source,
			 parser->problem_mark.line + 1,
			 parser->problem ? parser->problem : "no YAML", parser->context ? " " : "",
			 parser->context ? parser->context : "");
}

/* --- scalars --- */

static bool one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (str_equal(text, *words))
			return true;
	return false;
}

static size_t digits(const char *text)
{
	return strspn(text, "0123456789");
}

enum number {
	NUMBER_NONE,
	NUMBER_WHOLE,
	NUMBER_REAL,
};

/* [-+]? digits [. digits] [e [-+] digits], or [-+]? . digits, by the core schema. */
static enum number number_kind(const char *text)
{
	const char *at = text + strspn(text, "+-");
	size_t whole = digits(at), part = 0;
	bool real = false;

	if (at - text > 1)
		return NUMBER_NONE;
	at += whole;
	if (*at == '.') {
		part = digits(++at);
		at += part;
		real = true;
	}
	if (whole + part == 0)
		return NUMBER_NONE;
	if (*at == 'e' || *at == 'E') {
		at++;
		at += *at == '+' || *at == '-';
		if (digits(at) == 0)
			return NUMBER_NONE;
		at += digits(at);
		real = true;
	}
	return *at ? NUMBER_NONE : real ? NUMBER_REAL : NUMBER_WHOLE;
}

static json_t *whole_number(struct load *load, const yaml_event_t *event, const char *text,
			    int base)
{
	long long number;

	errno = 0;
	number = strtoll(text, NULL, base);
	if (errno == ERANGE) {
		refuse(load, event, "the number is too large");
		return NULL;
	}
	return json_integer(number);
}

static json_t *real_number(struct load *load, const yaml_event_t *event, const char *text)
{
	double number = strtod(text, NULL);
	json_t *value = json_real(number); /* NULL for what isn't finite */

	if (!value)
		refuse(load, event, "the number is too large");
	return value;
}

static bool leading_zero(const char *text)
{
	text += strspn(text, "+-");
	return text[0] == '0' && digits(text) > 1;
}

static bool is_prefixed(const char *text, const char *prefix, const char *accepted)
{
	size_t length = strlen(prefix);

	return str_starts(text, prefix) && text[length] &&
	       text[length + strspn(text + length, accepted)] == '\0';
}

/* The value of a plain scalar. NULL with the error set. */
static json_t *plain_value(struct load *load, const yaml_event_t *event, const char *text)
{
	static const char *const NOTHING[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const YES[] = {"true", "True", "TRUE", NULL};
	static const char *const NO[] = {"false", "False", "FALSE", NULL};
	static const char *const NOT_FINITE[] = {".inf",  ".Inf",  ".INF",  "+.inf", "+.Inf",
						 "+.INF", "-.inf", "-.Inf", "-.INF", ".nan",
						 ".NaN",  ".NAN",  NULL};

	if (one_of(text, NOTHING))
		return json_null();
	if (one_of(text, YES) || one_of(text, NO))
		return json_boolean(one_of(text, YES));
	if (one_of(text, NOT_FINITE)) {
		refuse(load, event, "a number is nan or inf, which JSON has not");
		return NULL;
	}
	if (is_prefixed(text, "0x", "0123456789abcdefABCDEF"))
		return whole_number(load, event, text + 2, 16);
	if (is_prefixed(text, "0o", "01234567"))
		return whole_number(load, event, text + 2, 8);
	enum number kind = number_kind(text);
	if (kind != NUMBER_NONE && leading_zero(text)) {
		refuse(load, event, "a number with a leading zero: quote it if it is a text");
		return NULL;
	}
	switch (kind) {
	case NUMBER_WHOLE:
		return whole_number(load, event, text, 10);
	case NUMBER_REAL:
		return real_number(load, event, text);
	case NUMBER_NONE:
		break;
	}
	return tree_string(text);
}

static bool tag_is(const yaml_char_t *tag, const char *wanted)
{
	return !tag || str_equal((const char *)tag, wanted);
}

static json_t *scalar_value(struct load *load, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;

	if (strlen(text) != event->data.scalar.length) {
		refuse(load, event, "the byte 0 isn't taken");
		return NULL;
	}
	if (!tag_is(event->data.scalar.tag, YAML_STR_TAG)) {
		refuse(load, event, "a tag other than !!str isn't taken");
		return NULL;
	}
	if (event->data.scalar.tag || !event->data.scalar.plain_implicit)
		return tree_string(text);
	return plain_value(load, event, text);
}

/* --- placing values --- */

static bool take_key(struct load *load, struct level *level, const yaml_event_t *event)
{
	const char *text = (const char *)event->data.scalar.value;

	if (event->type != YAML_SCALAR_EVENT)
		return refuse(load, event, "a key must be a text");
	if (strlen(text) != event->data.scalar.length)
		return refuse(load, event, "the byte 0 isn't taken");
	if (!tag_is(event->data.scalar.tag, YAML_STR_TAG))
		return refuse(load, event, "a tag other than !!str isn't taken");
	if (event->data.scalar.plain_implicit && str_equal(text, "<<"))
		return refuse(load, event, "merge keys (<<) aren't taken: write the fields out");
	if (json_object_get(level->value, text))
		return error_set(load->error, ERROR_INVALID_INPUT,
				 "%s:%zu: \"%.64s\" is there twice", load->source,
				 event->start_mark.line + 1, text);
	level->key = mem_strdup(text);
	return true;
}

/* Puts a value where the innermost level wants it; takes it over. */
static void place(struct load *load, json_t *value)
{
	struct level *level = &load->levels[load->depth - 1];

	if (json_is_array(level->value)) {
		tree_append(level->value, value);
		return;
	}
	tree_set(level->value, level->key, value);
	free(TAKE(level->key));
}

static bool begin(struct load *load, const yaml_event_t *event, json_t *value)
{
	const yaml_char_t *tag = event->type == YAML_MAPPING_START_EVENT
					 ? event->data.mapping_start.tag
					 : event->data.sequence_start.tag;
	CLEANUP(tree) json_t *held = value;

	if (!tag_is(tag, event->type == YAML_MAPPING_START_EVENT ? YAML_MAP_TAG : YAML_SEQ_TAG))
		return refuse(load, event, "a tag other than !!str isn't taken");
	if (load->depth == TREE_MAX_DEPTH)
		return error_set(load->error, ERROR_INVALID_INPUT,
				 "%s:%zu: nested deeper than %d levels", load->source,
				 event->start_mark.line + 1, TREE_MAX_DEPTH);
	if (load->depth == 0)
		load->root = TAKE(held);
	else
		place(load, TAKE(held));
	load->levels[load->depth++] = (struct level){.value = value};
	return true;
}

static bool on_node(struct load *load, const yaml_event_t *event)
{
	struct level *level = load->depth ? &load->levels[load->depth - 1] : NULL;
	json_t *value;

	if (event->type == YAML_ALIAS_EVENT)
		return refuse(load, event, "aliases (*name) aren't taken: write the value out");
	if (level && json_is_object(level->value) && !level->key)
		return take_key(load, level, event);
	if (event->type == YAML_MAPPING_START_EVENT)
		return begin(load, event, json_object());
	if (event->type == YAML_SEQUENCE_START_EVENT)
		return begin(load, event, json_array());
	if (!level)
		return refuse(load, event, "an object or an array is expected");
	value = scalar_value(load, event);
	if (value)
		place(load, value);
	return value;
}

/* Sets *ret_done at the end of the text. */
static bool on_event(struct load *load, const yaml_event_t *event, bool *ret_done)
{
	switch (event->type) {
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return true;
	case YAML_DOCUMENT_START_EVENT:
		return !load->root || refuse(load, event, "a second document isn't taken");
	case YAML_STREAM_END_EVENT:
		*ret_done = true;
		return true;
	case YAML_MAPPING_END_EVENT:
	case YAML_SEQUENCE_END_EVENT:
		load->depth--;
		return true;
	case YAML_ALIAS_EVENT:
	case YAML_SCALAR_EVENT:
	case YAML_MAPPING_START_EVENT:
	case YAML_SEQUENCE_START_EVENT:
		return on_node(load, event);
	}
	abort();
}

static bool looks_like_json(const char *text, size_t length)
{
	size_t i = 0;

	while (i < length && strchr(" \t\r\n", text[i]))
		i++;
	return i < length && text[i] == '{';
}

bool yaml_parse(const char *text, size_t length, size_t max_size, const char *source,
		json_t **ret_tree, struct error *error)
{
	bool done = false;

	if (length > max_size || looks_like_json(text, length))
		return tree_parse(text, length, max_size, source, ret_tree, error);
	CLEANUP(load) struct load load = {.source = source, .error = error};
	if (!yaml_parser_initialize(&load.parser))
		abort(); /* only out of memory */
	yaml_parser_set_encoding(&load.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&load.parser, (const unsigned char *)text, length);
	while (!done) {
		CLEANUP(event) yaml_event_t event = {0};

		if (!yaml_parser_parse(&load.parser, &event))
			return parser_failed(&load);
		if (!on_event(&load, &event, &done))
			return false;
	}
	if (!load.root)
		return error_set(error, ERROR_INVALID_INPUT, "%s: empty", source);
	*ret_tree = TAKE(load.root);
	return true;
}
