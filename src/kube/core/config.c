#include "kube/core/config.h"

#include "text/base64.h"
#include "text/yaml.h"

#include <ctype.h>

/* What is merged: {"clusters": {NAME: {…}}, "users": …, "contexts": …, "current-context": TEXT},
 * with paths made absolute and *-data decoded. */
struct kube_config {
	json_t *merged;
};

enum field_kind {
	FIELD_TEXT,
	FIELD_FLAG,
	FIELD_PATH,
	FIELD_BYTES, /* base64 of a text */
	FIELD_OBJECT,
};

struct field {
	const char *name;
	enum field_kind kind;
};

static const struct field CLUSTER[] = {
	{"server", FIELD_TEXT},
	{"tls-server-name", FIELD_TEXT},
	{"insecure-skip-tls-verify", FIELD_FLAG},
	{"certificate-authority", FIELD_PATH},
	{"certificate-authority-data", FIELD_BYTES},
	{"proxy-url", FIELD_TEXT},
	{0},
};
static const struct field USER[] = {
	{"client-certificate", FIELD_PATH},
	{"client-certificate-data", FIELD_BYTES},
	{"client-key", FIELD_PATH},
	{"client-key-data", FIELD_BYTES},
	{"token", FIELD_TEXT},
	{"tokenFile", FIELD_PATH},
	{"as", FIELD_TEXT},
	{"as-uid", FIELD_TEXT},
	{"username", FIELD_TEXT},
	{"password", FIELD_TEXT},
	{"auth-provider", FIELD_OBJECT},
	{"exec", FIELD_OBJECT},
	{0},
};
static const struct field CONTEXT[] = {
	{"cluster", FIELD_TEXT},
	{"user", FIELD_TEXT},
	{"namespace", FIELD_TEXT},
	{0},
};

/* The three lists of a file: their name, what an item's content is called, its fields. */
static const struct list {
	const char *name, *content;
	const struct field *fields;
} LISTS[] = {
	{"clusters", "cluster", CLUSTER},
	{"users", "user", USER},
	{"contexts", "context", CONTEXT},
};

/* --- reading a file --- */

/* kubectl reads null as "not there". */
static void drop_nulls(json_t *tree)
{
	const char *name;
	json_t *value;
	void *next;
	size_t index;

	json_object_foreach_safe(tree, next, name, value)
	{
		if (json_is_null(value))
			json_object_del(tree, name);
		else
			drop_nulls(value);
	}
	json_array_foreach(tree, index, value)
	{
		drop_nulls(value);
	}
}

static json_t *joined(const char *file, const char *path)
{
	CLEANUP(buf) struct buf whole = {0};

	if (path[0] != '/')
		buf_add(&whole, file, (size_t)(strrchr(file, '/') + 1 - file));
	buf_add_text(&whole, path);
	return tree_string(buf_text(&whole));
}

static json_t *decoded(const char *text)
{
	CLEANUP(buf) struct buf packed = {0}, bytes = {0};
	json_t *value = NULL;

	for (; *text; text++)
		if (*text != '\n' && *text != '\r')
			buf_add_char(&packed, *text);
	/* PEM is text: a NUL byte is a mistake that would cut it short. */
	if (base64_decode(buf_text(&packed), &bytes) && !memchr(bytes.data, 0, bytes.length))
		value = json_string(buf_text(&bytes));
	buf_wipe(&packed);
	buf_wipe(&bytes);
	return value;
}

static const char *text_in(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* Copies one field of `from` that is there. Empty texts count as absent, as in kubectl. */
static bool take_field(const json_t *from, const struct field *field, const char *where,
		       const char *file, json_t *to, struct error *error)
{
	const char *text = "";
	bool flag = false;
	json_t *value = NULL;

	switch (field->kind) {
	case FIELD_FLAG:
		if (!tree_opt_bool(from, field->name, where, &flag, error))
			return false;
		value = flag ? json_true() : NULL;
		break;
	case FIELD_OBJECT:
		if (!tree_opt_object(from, field->name, where, &value, error))
			return false;
		value = value ? json_deep_copy(value) : NULL;
		if (value && strchr(text_in(value, "command"), '/'))
			tree_set(value, "command", joined(file, text_in(value, "command")));
		break;
	case FIELD_TEXT:
	case FIELD_PATH:
	case FIELD_BYTES:
		if (json_object_get(from, field->name) &&
		    !tree_get_text(from, field->name, where, KUBE_CONFIG_MAX_TEXT, &text, error))
			return false;
		if (!*text)
			return true;
		if (field->kind == FIELD_TEXT)
			value = tree_string(text);
		else if (field->kind == FIELD_PATH)
			value = joined(file, text);
		else
			value = decoded(text);
		if (!value) {
			char path[ERROR_FIELD_SIZE];
			tree_path(path, where, field->name);
			return error_field(error, path, "is not the base64 of a text");
		}
		break;
	}
	if (value)
		tree_set(to, field->name, value);
	return true;
}

static bool take_item(const json_t *array, size_t index, const struct list *list, const char *file,
		      json_t *seen, json_t *merged, struct error *error)
{
	char path[ERROR_FIELD_SIZE], content_path[ERROR_FIELD_SIZE];
	CLEANUP(tree) json_t *taken = json_object();
	json_t *item, *content = NULL;
	const char *name = "";

	tree_path_item(path, "", list->name, index);
	tree_path(content_path, path, list->content);
	if (!tree_item_object(array, index, list->name, "", &item, error) ||
	    (json_object_get(item, "name") &&
	     !tree_get_text(item, "name", path, KUBE_CONFIG_MAX_TEXT, &name, error)) ||
	    !tree_opt_object(item, list->content, path, &content, error))
		return false;
	for (const struct field *field = list->fields; field->name; field++)
		if (!take_field(content, field, content_path, file, taken, error))
			return false;
	if (json_object_get(seen, name))
		return error_field(error, path, "the name \"%.64s\" is there twice", name);
	tree_set(seen, name, json_true());
	if (!json_object_get(merged, name)) /* an earlier file's wins */
		tree_set(merged, name, TAKE(taken));
	return true;
}

static bool take_list(const json_t *tree, const struct list *list, const char *file, json_t *merged,
		      struct error *error)
{
	CLEANUP(tree) json_t *seen = json_object();
	json_t *array = NULL;

	if (!tree_opt_array(tree, list->name, "", KUBE_CONFIG_MAX_ENTRIES, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++)
		if (!take_item(array, i, list, file, seen, json_object_get(merged, list->name),
			       error))
			return false;
	return true;
}

/* Absent, empty, or this. */
static bool check_is(const json_t *tree, const char *name, const char *wanted, struct error *error)
{
	const char *text = "";

	if (json_object_get(tree, name) && !tree_get_text(tree, name, "", 256, &text, error))
		return false;
	if (!*text || str_equal(text, wanted))
		return true;
	return error_field(error, name, "is \"%s\", not \"%s\": no kubeconfig", text, wanted);
}

static bool take_file(json_t *tree, const char *file, json_t *merged, struct error *error)
{
	const char *current = "";

	if (!json_is_object(tree))
		return error_set(error, ERROR_INVALID_CONFIG, "not an object");
	drop_nulls(tree);
	if (!check_is(tree, "apiVersion", "v1", error) ||
	    !check_is(tree, "kind", "Config", error) ||
	    (json_object_get(tree, "current-context") &&
	     !tree_get_text(tree, "current-context", "", KUBE_CONFIG_MAX_TEXT, &current, error)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(LISTS); i++)
		if (!take_list(tree, &LISTS[i], file, merged, error))
			return false;
	if (*current && !json_object_get(merged, "current-context"))
		tree_set(merged, "current-context", tree_string(current));
	return true;
}

static bool all_blank(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!strchr(" \t\r\n", text[i]) || !text[i])
			return false;
	return true;
}

bool kube_config_add(struct kube_config *config, const void *text, size_t length, const char *path,
		     struct error *error)
{
	CLEANUP(tree) json_t *tree = NULL, *merged = NULL;

	assert(path[0] == '/');
	if (all_blank(text, length))
		return true;
	if (!yaml_parse(text, length, KUBE_CONFIG_MAX_SIZE, path, &tree, error)) {
		error->code = ERROR_INVALID_CONFIG;
		return error_wrap(error, "kubeconfig");
	}
	merged = json_deep_copy(config->merged); /* all of the file or nothing of it */
	if (!merged)
		abort();
	if (!take_file(tree, path, merged, error)) {
		error->code = ERROR_INVALID_CONFIG;
		return error_wrap(error, "kubeconfig %s", path);
	}
	json_decref(config->merged);
	config->merged = TAKE(merged);
	return true;
}

struct kube_config *kube_config_create(void)
{
	struct kube_config *config = mem_alloc(sizeof *config);

	config->merged = json_object();
	for (size_t i = 0; i < ARRAY_SIZE(LISTS); i++)
		tree_set(config->merged, LISTS[i].name, json_object());
	return config;
}

void kube_config_destroy(struct kube_config *config)
{
	if (!config)
		return;
	json_decref(config->merged);
	free(config);
}

/* --- one context of it --- */

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static void take_source(const json_t *object, const char *data, const char *path,
			struct kube_source *ret_source)
{
	const char *text = text_of(object, data);

	if (text)
		ret_source->text = mem_strdup(text);
	else
		ret_source->path = mem_strdup(text_of(object, path));
}

static bool present(const struct kube_source *source)
{
	return source->text || source->path;
}

static bool check_server(const char *server, const char *cluster, struct error *error)
{
	if (!server)
		return error_set(error, ERROR_INVALID_CONFIG, "cluster '%s' names no server",
				 cluster);
	if (strlen(server) >= KUBE_SERVER_SIZE)
		return error_set(error, ERROR_INVALID_CONFIG,
				 "the server of cluster '%s' is longer than %d bytes", cluster,
				 KUBE_SERVER_SIZE - 1);
	if (strncasecmp(server, "https://", 8) != 0 || !server[8] || server[8] == '/') {
		error_set(error, ERROR_INVALID_CONFIG,
			  "the server of cluster '%s' is no https:// address", cluster);
		return error_hint(error, "A key is never sent unencrypted: use the API server's "
					 "https:// address.");
	}
	if (strpbrk(server, "@?#") || strpbrk(server, " \t\r\n"))
		return error_set(error, ERROR_INVALID_CONFIG,
				 "the server of cluster '%s' holds more than a host, a "
				 "port and a path",
				 cluster);
	return true;
}

/* --- a proxy's URL: [USER[:PASSWORD]@]HOST[:PORT][/] behind its scheme, of which nothing is ever quoted --- */

static int hex_of(char c)
{
	static const char DIGITS[] = "0123456789abcdef";
	const char *at = c ? strchr(DIGITS, c | 0x20) : NULL;

	return at && isxdigit((unsigned char)c) ? (int)(at - DIGITS) : -1;
}

/* As RFC 3986 has a user and a password; what an escape stands for is visible. */
static bool is_userinfo(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (isalnum((unsigned char)text[i]) || strchr("-._~!$&'()*+,;=:", text[i]))
			continue;
		if (text[i] != '%' || length - i < 3 || hex_of(text[i + 1]) < 0 ||
		    hex_of(text[i + 2]) < 0)
			return false;
		int c = hex_of(text[i + 1]) * 16 + hex_of(text[i + 2]);
		if (c < ' ' || c == 0x7f)
			return false;
		i += 2;
	}
	return true;
}

static bool is_host(const char *text, size_t length)
{
	bool brackets = length > 2 && text[0] == '[' && text[length - 1] == ']';

	if (length == 0)
		return false;
	for (size_t i = brackets; i < length - brackets; i++)
		if (!isalnum((unsigned char)text[i]) && (unsigned char)text[i] < 0x80 &&
		    !strchr(brackets ? ":.%" : "-._", text[i]))
			return false;
	return true;
}

/* ":1" to ":65535". */
static bool is_port(const char *text, size_t length)
{
	long port = 0;

	if (length < 2 || length > 6)
		return false;
	for (size_t i = 1; i < length; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		port = port * 10 + (text[i] - '0');
	}
	return port >= 1 && port <= 65535;
}

static bool is_proxy(const char *rest)
{
	const char *at = strchr(rest, '@'), *host = at ? at + 1 : rest, *port;
	size_t length = strlen(host), host_length;

	if (length > 0 && host[length - 1] == '/')
		length--;
	port = memchr(host, *host == '[' ? ']' : ':', length);
	if (port && *host == '[')
		port++;
	host_length = port ? (size_t)(port - host) : length;
	return (!at || is_userinfo(rest, (size_t)(at - rest))) && is_host(host, host_length) &&
	       (host_length == length || is_port(host + host_length, length - host_length));
}

static bool take_proxy(const char *proxy, const char *cluster, struct kube_access *access,
		       struct error *error)
{
	CLEANUP(buf) struct buf whole = {0};

	if (!proxy)
		return true;
	/* A SOCKS proxy resolves the name, as it does for kubectl; libcurl calls that socks5h. */
	if (str_starts(proxy, "socks5://"))
		buf_printf(&whole, "socks5h://%s", proxy + strlen("socks5://"));
	else if (str_starts(proxy, "http://") || str_starts(proxy, "https://") ||
		 str_starts(proxy, "socks5h://"))
		buf_add_text(&whole, proxy);
	else
		return error_set(error, ERROR_INVALID_CONFIG,
				 "the proxy-url of cluster '%s' is neither http, https "
				 "nor socks5",
				 cluster);
	if (!is_proxy(strstr(proxy, "://") + 3)) {
		buf_wipe(&whole);
		error_set(error, ERROR_INVALID_CONFIG,
			  "the proxy-url of cluster '%s' can't be read", cluster);
		return error_hint(error,
				  "It is SCHEME://[USER:PASSWORD@]HOST[:PORT]: in USER and "
				  "PASSWORD write each special character as %% and its two "
				  "hexadecimal digits ('#' is %%23, '@' is %%40, '/' is %%2F).");
	}
	access->proxy = buf_take_text(&whole);
	return true;
}

static bool take_cluster(const json_t *cluster, const char *name, struct kube_access *access,
			 struct error *error)
{
	const char *server = text_of(cluster, "server");
	size_t length;

	if (json_object_get(cluster, "insecure-skip-tls-verify")) {
		error_set(error, ERROR_INVALID_CONFIG,
			  "cluster '%s' has insecure-skip-tls-verify, which isn't taken", name);
		return error_hint(error, "Give the server's authority instead, as "
					 "certificate-authority or certificate-authority-data.");
	}
	if (!check_server(server, name, error) ||
	    !take_proxy(text_of(cluster, "proxy-url"), name, access, error))
		return false;
	length = strlen(server);
	while (server[length - 1] == '/')
		length--;
	access->server = mem_alloc(length + 1);
	memcpy(access->server, server, length);
	access->server_name = mem_strdup(text_of(cluster, "tls-server-name"));
	take_source(cluster, "certificate-authority-data", "certificate-authority", &access->ca);
	return true;
}

/* Ways of proving who one is that aren't taken, and why. */
static bool check_user(const json_t *user, const char *name, struct error *error)
{
	static const struct {
		const char *field, *why, *hint;
	} NEVER[] = {
		{"auth-provider", "which Kubernetes has removed", "Use a certificate or a token."},
		{"username", "and passwords aren't taken", "Use a certificate or a token."},
		{"password", "and passwords aren't taken", "Use a certificate or a token."},
		{"as", "and acting as somebody else isn't taken", "Leave it out."},
		{"as-uid", "and acting as somebody else isn't taken", "Leave it out."},
	};

	for (size_t i = 0; i < ARRAY_SIZE(NEVER); i++)
		if (json_object_get(user, NEVER[i].field)) {
			error_set(error, ERROR_INVALID_CONFIG, "user '%s' has %s, %s", name,
				  NEVER[i].field, NEVER[i].why);
			return error_hint(error, "%s", NEVER[i].hint);
		}
	return true;
}

/* --- credential programs --- */

static bool take_words(const json_t *exec, const char *list, struct kube_exec *taken,
		       struct error *error)
{
	json_t *array = NULL;

	if (!tree_opt_array(exec, list, "exec", KUBE_EXEC_MAX_WORDS, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		const char *text = json_string_value(json_array_get(array, i));

		if (!text)
			return error_field(error, "exec.args", "must be a list of texts");
		*vec_push(&taken->args) = mem_strdup(text);
	}
	return true;
}

static bool take_environment(const json_t *exec, struct kube_exec *taken, struct error *error)
{
	json_t *array = NULL, *item;

	if (!tree_opt_array(exec, "env", "exec", KUBE_EXEC_MAX_WORDS, &array, error))
		return false;
	for (size_t i = 0; i < json_array_size(array); i++) {
		CLEANUP(buf) struct buf word = {0};
		const char *name, *value = "";

		if (!tree_item_object(array, i, "env", "exec", &item, error) ||
		    !tree_get_string(item, "name", "exec.env", 4096, &name, error) ||
		    (json_object_get(item, "value") &&
		     !tree_get_text(item, "value", "exec.env", KUBE_CONFIG_MAX_TEXT, &value,
				    error)))
			return false;
		if (strchr(name, '='))
			return error_field(error, "exec.env", "a name holds '='");
		buf_printf(&word, "%s=%s", name, value);
		*vec_push(&taken->env) = buf_take_text(&word);
	}
	return true;
}

static bool read_exec(const json_t *exec, struct kube_exec *taken, struct error *error)
{
	static const char *const VERSIONS[] = {"client.authentication.k8s.io/v1",
					       "client.authentication.k8s.io/v1beta1", NULL};
	static const char *const MODES[] = {"Never", "IfAvailable", "Always", NULL};
	const char *command, *hint = NULL;
	size_t version, mode = 0;

	if (!tree_get_string(exec, "command", "exec", 4096, &command, error) ||
	    !tree_get_choice(exec, "apiVersion", "exec", VERSIONS, &version, error) ||
	    !tree_opt_choice(exec, "interactiveMode", "exec", MODES, &mode, error) ||
	    !tree_opt_string(exec, "installHint", "exec", KUBE_CONFIG_MAX_TEXT, &hint, error) ||
	    !tree_opt_bool(exec, "provideClusterInfo", "exec", &taken->cluster_info, error) ||
	    !take_words(exec, "args", taken, error) || !take_environment(exec, taken, error))
		return false;
	if (str_equal(MODES[mode], "Always"))
		return error_field(error, "exec.interactiveMode",
				   "is \"Always\", and nobody is there to talk to");
	taken->command = mem_strdup(command);
	taken->api_version = mem_strdup(VERSIONS[version]);
	taken->install_hint = mem_strdup(hint);
	return true;
}

static bool take_exec(const json_t *exec, const char *user, struct kube_access *access,
		      struct error *error)
{
	access->exec = mem_alloc(sizeof *access->exec);
	if (read_exec(exec, access->exec, error))
		return true;
	error->code = ERROR_INVALID_CONFIG;
	return error_wrap(error, "user '%s'", user);
}

static bool take_user(const json_t *user, const char *name, struct kube_access *access,
		      struct error *error)
{
	if (!check_user(user, name, error))
		return false;
	take_source(user, "client-certificate-data", "client-certificate", &access->certificate);
	take_source(user, "client-key-data", "client-key", &access->key);
	/* The file is the fresher one. */
	if (text_of(user, "tokenFile"))
		access->token.path = mem_strdup(text_of(user, "tokenFile"));
	else
		access->token.text = mem_strdup(text_of(user, "token"));
	if (present(&access->certificate) != present(&access->key))
		return error_set(error, ERROR_INVALID_CONFIG, "user '%s' has a %s", name,
				 present(&access->key) ? "client-key without a client-certificate"
						       : "client-certificate without a client-key");
	if (present(&access->certificate) || present(&access->token))
		return true;
	if (json_object_get(user, "exec"))
		return take_exec(json_object_get(user, "exec"), name, access, error);
	error_set(error, ERROR_INVALID_CONFIG, "user '%s' has neither a certificate nor a token",
		  name);
	return error_hint(error, "Without either the API server knows nobody.");
}

/* An entry that a context names. NULL with error set. */
static const json_t *entry(const struct kube_config *config, const char *list, const char *kind,
			   const char *name, const char *context, struct error *error)
{
	const json_t *found =
		json_object_get(json_object_get(config->merged, list), name ? name : "");

	if (!name)
		error_set(error, ERROR_INVALID_CONFIG, "context '%s' names no %s", context, kind);
	else if (!found)
		error_set(error, ERROR_INVALID_CONFIG, "%s '%s' of context '%s' is not there", kind,
			  name, context);
	return name ? found : NULL;
}

bool kube_config_resolve(const struct kube_config *config, const char *context,
			 struct kube_access *ret_access, struct error *error)
{
	CLEANUP(kube_access) struct kube_access access = {0};
	const char *name = context ? context : text_of(config->merged, "current-context");
	const json_t *chosen, *cluster, *user;

	if (!name) {
		error_set(error, ERROR_INVALID_CONFIG, "no current-context");
		return error_hint(error, "Name the context to use.");
	}
	chosen = json_object_get(json_object_get(config->merged, "contexts"), name);
	if (!chosen)
		return error_set(error, ERROR_NOT_FOUND, "no context '%s'", name);
	cluster = entry(config, "clusters", "cluster", text_of(chosen, "cluster"), name, error);
	user = cluster ? entry(config, "users", "user", text_of(chosen, "user"), name, error)
		       : NULL;
	if (!user || !take_cluster(cluster, text_of(chosen, "cluster"), &access, error) ||
	    !take_user(user, text_of(chosen, "user"), &access, error))
		return false;
	access.context = mem_strdup(name);
	access.cluster = mem_strdup(text_of(chosen, "cluster"));
	access.user = mem_strdup(text_of(chosen, "user"));
	access.namespace = mem_strdup(text_of(chosen, "namespace"));
	*ret_access = access;
	access = (struct kube_access){0};
	return true;
}

/* --- ends --- */

static void secret_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void exec_destroy(struct kube_exec *exec)
{
	if (!exec)
		return;
	free(exec->command);
	free(exec->api_version);
	free(exec->install_hint);
	vec_each (&exec->args, char **word)
		free(*word);
	vec_deinit(&exec->args);
	vec_each (&exec->env, char **word)
		secret_free(*word);
	vec_deinit(&exec->env);
	free(exec);
}

static void source_deinit(struct kube_source *source)
{
	secret_free(source->text);
	free(source->path);
}

void kube_access_deinit(struct kube_access *access)
{
	if (!access)
		return;
	free(access->context);
	free(access->cluster);
	free(access->user);
	free(access->server);
	free(access->server_name);
	secret_free(access->proxy);
	free(access->namespace);
	source_deinit(&access->ca);
	source_deinit(&access->certificate);
	source_deinit(&access->key);
	source_deinit(&access->token);
	exec_destroy(access->exec);
	*access = (struct kube_access){0};
}
