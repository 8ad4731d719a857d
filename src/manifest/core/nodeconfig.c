#include "manifest/core/nodeconfig.h"

void nodeconfig_quote(struct buf *out, const char *text)
{
	buf_add_char(out, '"');
	for (const char *at = text; *at; at++) {
		unsigned char c = (unsigned char)*at;

		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < ' ' || c == 0x7f)
			buf_printf(out, "\\u%04X", c);
		else
			buf_add_char(out, *at);
	}
	buf_add_char(out, '"');
}

static void add(struct buf *out, const char *key, const char *text)
{
	buf_printf(out, "%s = ", key);
	nodeconfig_quote(out, text);
	buf_add_char(out, '\n');
}

/* What bcd is to read of the host, as it is mounted. */
static void add_paths(struct buf *out, const char *key, const struct path_set *set)
{
	buf_printf(out, "%s = [", key);
	for (size_t i = 0; i < set->file_count + set->folder_count; i++) {
		buf_add_text(out, i ? ", " : "");
		nodeconfig_quote(out, i < set->file_count ? set->files[i]
							  : set->folders[i - set->file_count]);
	}
	buf_add_text(out, "]\n");
}

void nodeconfig_write(const struct settings *settings, struct buf *out)
{
	CLEANUP(arena) struct arena arena = {0};

	buf_add_text(out, "[gateway]\naddresses = [");
	nodeconfig_quote(out, settings_gateway_address(settings, &arena));
	buf_add_text(out, "]\n");
	add(out, "server_name", settings_gateway_name(settings, &arena));
	add(out, "ca_pins", settings->serving_ca_pin);
	buf_add_text(out, "\n[join]\n");
	if (settings->join_jwk)
		add(out, "encryption_jwk", NODECONFIG_FOLDER "/" NODECONFIG_JWK);
	else
		add(out, "server", settings->control_plane_url);
	add(out, "encryption_pins", settings->join_encryption_pin);
	add(out, "signing_pins", settings->join_signing_pin);
	if (!settings->host_units)
		buf_add_text(out, "\n[host]\nunits = false\n");
	buf_add_text(out, "\n[kubernetes]\n");
	add(out, "site_id", settings->site_id);
	if (settings->dra)
		add(out, "gpu_api", "dra");
	add_paths(out, "runtime_config", &settings->runtime);
	add_paths(out, "toolkit_config", &settings->toolkit);
}
