#include "control/core/pool_policy.h"

#include "base/id.h"
#include "control/core/body.h"
#include "control/core/label.h"

#include <stdio.h>

#define MAX_URL  512
#define MAX_HOST 253

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* --- apiServer --- */

static bool is_host(const char *text, size_t length)
{
	bool ip6 = length > 2 && text[0] == '[' && text[length - 1] == ']';

	if (length == 0 || length > MAX_HOST)
		return false;
	if (ip6)
		return strspn(text + 1, "0123456789abcdefABCDEF:.") == length - 2 &&
		       memchr(text + 1, ':', length - 2);
	for (size_t i = 0; i < length; i++) {
		bool inner = i > 0 && i + 1 < length && (text[i] == '-' || text[i] == '.');

		if (!is_alnum(text[i]) && !inner)
			return false;
		if (i > 0 && text[i] == '.' && text[i - 1] == '.')
			return false;
	}
	return true;
}

static bool is_port(const char *text, size_t length)
{
	int port = 0;

	if (length == 0 || length > 5)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		port = port * 10 + (text[i] - '0');
	}
	return port > 0 && port < 65536;
}

static bool check_api_server(const char *url, struct error *error)
{
	static const char field[] = "policy.kubernetes.apiServer";
	const char *host, *bracket, *colon;
	size_t length, host_length;

	if (!str_starts(url, "https://"))
		return error_field(error, field, "'%.80s' is not an https URL", url);
	host = url + strlen("https://");
	length = strcspn(host, "/?#");
	if (memchr(host, '@', length))
		return error_field(error, field, "must hold no user or password");
	if (strpbrk(host, "?#") || (host[length] == '/' && host[length + 1] != '\0'))
		return error_field(error, field, "must end after the host and port");
	/* The port's colon is the one after an IPv6 address's bracket. */
	bracket = memchr(host, ']', length);
	colon = bracket ? memchr(bracket, ':', length - (size_t)(bracket - host))
			: memchr(host, ':', length);
	host_length = colon ? (size_t)(colon - host) : length;
	if (!is_host(host, host_length))
		return error_field(error, field, "'%.80s' names no host", url);
	if (colon && !is_port(colon + 1, length - host_length - 1))
		return error_field(error, field, "'%.80s' has no port between 1 and 65535", url);
	return true;
}

/* --- the other two join fields --- */

static bool check_ca_pin(const char *pin, struct error *error)
{
	const char *hex = pin + strlen("sha256:");

	if (!str_starts(pin, "sha256:") || strlen(hex) != 64 ||
	    strspn(hex, "0123456789abcdefABCDEF") != 64)
		return error_field(error, "policy.kubernetes.caCertSha256",
				   "must be 'sha256:' and 64 hex digits");
	return true;
}

static bool check_token_ref(const char *reference, struct error *error)
{
	char tenant[ID_SIZE] = "";
	const char *at = reference + strlen("secret://");
	size_t length;

	if (str_starts(reference, "secret://")) {
		length = strcspn(at, "/");
		if (length < sizeof tenant)
			memcpy(tenant, at, length);
		if (at[length] == '/' && id_valid(tenant, "ten") &&
		    id_valid(at + length + 1, "sec"))
			return true;
	}
	/* The value isn't shown: somebody may have put the secret itself there. */
	error_field(error, "policy.kubernetes.joinTokenRef", "is not a secret's reference");
	return error_hint(error, "Write it as secret://ten_…/sec_….");
}

static bool read_join_fields(const struct body *body, struct pool_policy *policy,
			     struct error *error)
{
	static const char *const names[] = {"apiServer", "caCertSha256", "joinTokenRef"};
	const char *values[ARRAY_SIZE(names)];
	char path[BODY_PATH_SIZE];
	size_t present = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!body_text(body, names[i], BODY_OPTIONAL, MAX_URL, &values[i], error))
			return false;
		present += values[i] != NULL;
	}
	for (size_t i = 0; i < ARRAY_SIZE(names) && present > 0; i++) {
		if (values[i])
			continue;
		body_path(path, body, names[i]);
		error_field(error, path, "is missing beside the other join fields");
		return error_hint(error, "Give apiServer, caCertSha256 and joinTokenRef, or none.");
	}
	if (present == 0)
		return true;
	policy->joins = true;
	policy->api_server = values[0];
	policy->ca_cert_sha256 = values[1];
	policy->join_token_ref = values[2];
	return check_api_server(values[0], error) && check_ca_pin(values[1], error) &&
	       check_token_ref(values[2], error);
}

/* --- labels and taints --- */

static bool check_label(const char *key, const json_t *value, struct error *error)
{
	char path[BODY_PATH_SIZE];
	const char *text = json_string_value(value);

	snprintf(path, sizeof path, "policy.kubernetes.labels.%s", key);
	if (!label_name_valid(key, strlen(key)))
		return error_field(error, path, "is not a label's name");
	if (label_reserved_domain(key))
		return error_field(error, path, "labels under %s can't be set",
				   label_reserved_domain(key));
	if (!text || !label_value_valid(text, json_string_length(value)))
		return error_field(error, path,
				   "must be a label's value: at most %d letters, digits, '-', '_', "
				   "'.'",
				   LABEL_PART_MAX);
	return true;
}

static bool check_labels(const struct body *body, struct error *error)
{
	static const char field[] = "policy.kubernetes.labels";
	json_t *labels = json_object_get(body->object, "labels");
	const char *key;
	json_t *value;

	if (!labels)
		return true;
	if (!json_is_object(labels))
		return error_field(error, field, "must be an object");
	if (json_object_size(labels) > POOL_POLICY_MAX_LABELS)
		return error_field(error, field, "has %zu labels, at most %d are allowed",
				   json_object_size(labels), POOL_POLICY_MAX_LABELS);
	json_object_foreach(labels, key, value)
	{
		if (!check_label(key, value, error))
			return false;
	}
	return true;
}

static bool is_taint(const char *text)
{
	static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
	const char *equals = strchr(text, '=');
	const char *colon = equals ? strchr(equals, ':') : NULL;
	size_t value_length;

	if (!colon || !label_name_valid(text, (size_t)(equals - text)))
		return false;
	value_length = (size_t)(colon - equals) - 1;
	if (!label_value_valid(equals + 1, value_length))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(effects); i++) {
		if (str_equal(colon + 1, effects[i]))
			return true;
	}
	return false;
}

static bool check_taints(const struct body *body, struct error *error)
{
	json_t *taints = json_object_get(body->object, "taints");
	char path[BODY_PATH_SIZE] = "policy.kubernetes.taints";

	if (!taints)
		return true;
	if (!json_is_array(taints))
		return error_field(error, path, "must be a list");
	if (json_array_size(taints) > POOL_POLICY_MAX_TAINTS)
		return error_field(error, path, "has %zu taints, at most %d are allowed",
				   json_array_size(taints), POOL_POLICY_MAX_TAINTS);
	for (size_t i = 0; i < json_array_size(taints); i++) {
		const char *text = json_string_value(json_array_get(taints, i));

		snprintf(path, sizeof path, "policy.kubernetes.taints[%zu]", i);
		if (!text)
			return error_field(error, path, "must be a text");
		if (!is_taint(text)) {
			error_field(error, path, "'%.80s' is not key=value:Effect", text);
			return error_hint(error, "Effects are NoSchedule, PreferNoSchedule and "
						 "NoExecute.");
		}
	}
	return true;
}

/* --- the rest --- */

/* "1.34" or "1.34.1". */
static bool is_version(const char *text)
{
	size_t numbers = 0;

	for (;;) {
		size_t digits = strspn(text, "0123456789");

		if (digits == 0 || digits > 4)
			return false;
		numbers++;
		text += digits;
		if (*text == '\0')
			return numbers == 2 || numbers == 3;
		if (*text++ != '.')
			return false;
	}
}

static bool read_kubernetes(const json_t *json, struct pool_policy *policy, struct error *error)
{
	static const char *const known[] = {"apiServer", "caCertSha256",     "joinTokenRef",
					    "labels",    "taints",           "kubernetesVersion",
					    "gpuApi",    "platformOperated", NULL};
	static const char *const apis[] = {"device-plugin", "dra", NULL};
	const char *version;
	struct body body;
	int api = 0;

	if (!body_open(json, "policy.kubernetes", known, &body, error) ||
	    !read_join_fields(&body, policy, error) || !check_labels(&body, error) ||
	    !check_taints(&body, error) ||
	    !body_choice(&body, "gpuApi", BODY_OPTIONAL, apis, &api, error) ||
	    !body_bool(&body, "platformOperated", &policy->platform_operated, error) ||
	    !body_text(&body, "kubernetesVersion", BODY_OPTIONAL, 16, &version, error))
		return false;
	if (version && !is_version(version))
		return error_field(error, "policy.kubernetes.kubernetesVersion",
				   "'%s' is not a version such as 1.34.1", version);
	policy->gpu_api = apis[api];
	return true;
}

bool pool_policy_parse(const json_t *json, struct pool_policy *ret_policy, struct error *error)
{
	static const char *const known[] = {"kubernetes", "placement", NULL};
	static const char *const placements[] = {"bin-pack", "spread", NULL};
	struct pool_policy policy = {.gpu_api = "device-plugin"};
	const json_t *kubernetes;
	struct body body;
	int placement = 0;

	if (!body_open(json, "policy", known, &body, error) ||
	    !body_choice(&body, "placement", BODY_OPTIONAL, placements, &placement, error))
		return false;
	kubernetes = json_object_get(json, "kubernetes");
	if (kubernetes && !read_kubernetes(kubernetes, &policy, error))
		return false;
	policy.spread = placement == 1;
	*ret_policy = policy;
	return true;
}

bool pool_policy_check_class(const char *class, struct error *error)
{
	if (str_equal(class, "metal-host"))
		return true;
	return error_field(error, "class", "'%.40s' is unknown, known: metal-host", class);
}

bool pool_policy_check_site(const struct pool_policy *policy, bool site_is_custom,
			    bool platform_counts, struct error *error)
{
	if (!policy->joins || site_is_custom || platform_counts)
		return true;
	error_field(error, "policy.kubernetes.platformOperated",
		    "machines of a platform's site join only clusters that the platform operates");
	return error_hint(error, "Set platformOperated in a pool of the tenant that owns the site, "
				 "or use a custom site.");
}
