/* Options that are complete, changed by a test. */
#pragma once

#include "lib/test.h"
#include "manifest/core/settings.h"

#define SAMPLE_DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define SAMPLE_IMAGE  "registry.example.com/bcd@sha256:" SAMPLE_DIGEST
#define SAMPLE_PIN    "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define SAMPLE_SITE   "site_01kb7s4x5n000000000000000a"

static inline json_t *sample_parse(const char *text)
{
	json_t *tree = json_loads(text, JSON_DECODE_ANY, NULL);

	if (!tree)
		fail_msg("no JSON: %s", text);
	return tree;
}

static inline json_t *sample_options(void)
{
	return sample_parse("{\"image\":\"" SAMPLE_IMAGE "\",\"gatewayUrl\":"
			    "\"https://gw.example.com:7443\",\"siteId\":\"" SAMPLE_SITE
			    "\",\"pins\":"
			    "{\"servingCaPin\":\"" SAMPLE_PIN "\",\"joinSigningPin\":\"" SAMPLE_PIN
			    "\",\"joinEncryptionPin\":\"" SAMPLE_PIN "\"},\"controlPlaneUrl\":"
			    "\"https://compute.example.com\"}");
}

/* The complete options with those of `changes`, an object; "controlPlaneUrl":null takes that out. */
static inline json_t *sample_with(const char *changes)
{
	json_t *options = sample_options(), *more = sample_parse(changes);

	json_object_update(options, more);
	if (json_is_null(json_object_get(options, "controlPlaneUrl")))
		json_object_del(options, "controlPlaneUrl");
	json_decref(more);
	return options;
}

static inline void sample_read(const char *changes, struct settings *settings)
{
	CLEANUP(tree) json_t *options = sample_with(changes);
	struct error error;

	expect_ok(settings_read(options, settings, &error), &error);
	expect_ok(settings_check_complete(settings, &error), &error);
}
