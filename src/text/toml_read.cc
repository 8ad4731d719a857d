// The only file that knows toml++.
#define TOML_EXCEPTIONS        0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 80
#include "text/toml_read.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <toml++/toml.h>

namespace
{

json_t *convert(const toml::node &node, toml_mistake *mistake);

json_t *refuse(const toml::node &node, const char *why, toml_mistake *mistake)
{
	mistake->line = node.source().begin.line;
	std::snprintf(mistake->why, sizeof mistake->why, "%s", why);
	return nullptr;
}

void must(bool done)
{
	if (!done)
		std::abort();
}

json_t *convert_table(const toml::table &table, toml_mistake *mistake)
{
	json_t *object = json_object();

	must(object);
	for (auto &&[key, node] : table) {
		json_t *value = convert(node, mistake);
		std::string name{key.str()};

		if (value && name.find('\0') != std::string::npos) {
			json_decref(value);
			value = refuse(node, "a key holds a NUL", mistake);
		}
		if (!value) {
			json_decref(object);
			return nullptr;
		}
		must(json_object_set_new(object, name.c_str(), value) == 0);
	}
	return object;
}

json_t *convert_array(const toml::array &items, toml_mistake *mistake)
{
	json_t *array = json_array();

	must(array);
	for (auto &&node : items) {
		json_t *value = convert(node, mistake);

		if (!value) {
			json_decref(array);
			return nullptr;
		}
		must(json_array_append_new(array, value) == 0);
	}
	return array;
}

json_t *convert_text(const toml::node &node, const std::string &text, toml_mistake *mistake)
{
	if (text.find('\0') != std::string::npos)
		return refuse(node, "a string holds a NUL", mistake);
	json_t *value = json_stringn(text.data(), text.size());

	return value ? value : refuse(node, "a string is not UTF-8", mistake);
}

std::string date_text(const toml::date &date)
{
	char text[32];

	std::snprintf(text, sizeof text, "%04u-%02u-%02u", static_cast<unsigned>(date.year),
		      static_cast<unsigned>(date.month), static_cast<unsigned>(date.day));
	return text;
}

std::string time_text(const toml::time &time)
{
	char text[32];
	int length = std::snprintf(
		text, sizeof text, "%02u:%02u:%02u", static_cast<unsigned>(time.hour),
		static_cast<unsigned>(time.minute), static_cast<unsigned>(time.second));

	if (time.nanosecond)
		std::snprintf(text + length, sizeof text - static_cast<size_t>(length), ".%09u",
			      static_cast<unsigned>(time.nanosecond));
	return text;
}

std::string moment_text(const toml::date_time &moment)
{
	std::string text = date_text(moment.date) + "T" + time_text(moment.time);
	char zone[16];

	if (!moment.offset)
		return text;
	int minutes = moment.offset->minutes;

	if (minutes == 0)
		return text + "Z";
	std::snprintf(zone, sizeof zone, "%c%02d:%02d", minutes < 0 ? '-' : '+',
		      std::abs(minutes) / 60, std::abs(minutes) % 60);
	return text + zone;
}

json_t *convert(const toml::node &node, toml_mistake *mistake)
{
	json_t *value = nullptr;

	switch (node.type()) {
	case toml::node_type::table:
		return convert_table(*node.as_table(), mistake);
	case toml::node_type::array:
		return convert_array(*node.as_array(), mistake);
	case toml::node_type::string:
		return convert_text(node, node.as_string()->get(), mistake);
	case toml::node_type::integer:
		value = json_integer(node.as_integer()->get());
		break;
	case toml::node_type::floating_point:
		value = json_real(node.as_floating_point()->get());
		if (!value)
			return refuse(node, "a number is nan or inf", mistake);
		break;
	case toml::node_type::boolean:
		value = json_boolean(node.as_boolean()->get());
		break;
	case toml::node_type::date:
		return convert_text(node, date_text(node.as_date()->get()), mistake);
	case toml::node_type::time:
		return convert_text(node, time_text(node.as_time()->get()), mistake);
	case toml::node_type::date_time:
		return convert_text(node, moment_text(node.as_date_time()->get()), mistake);
	case toml::node_type::none:
		break;
	}
	must(value);
	return value;
}

} // namespace

json_t *toml_read(const char *text, size_t length, toml_mistake *mistake)
{
	toml::parse_result result = toml::parse(std::string_view{text, length});

	if (result)
		return convert_table(result.table(), mistake);
	mistake->line = result.error().source().begin.line;
	std::snprintf(mistake->why, sizeof mistake->why, "%.*s",
		      static_cast<int>(result.error().description().size()),
		      result.error().description().data());
	return nullptr;
}
