#include "control/core/gpu_model.h"

static int lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : (unsigned char)c;
}

static bool is_word(char c)
{
	int l = lower(c);

	return (l >= 'a' && l <= 'z') || (l >= '0' && l <= '9');
}

static bool starts_without_case(const char *text, const char *prefix)
{
	for (; *prefix; text++, prefix++) {
		if (lower(*text) != lower(*prefix))
			return false;
	}
	return true;
}

bool gpu_model_matches(const char *model, const char *text)
{
	size_t length = strlen(model);

	if (length == 0)
		return false;
	for (const char *at = text; *at; at++) {
		if (at > text && is_word(at[-1]) && is_word(*at))
			continue;
		if (starts_without_case(at, model) &&
		    !(is_word(model[length - 1]) && is_word(at[length])))
			return true;
	}
	return false;
}
