#include "kube/credentials.h"

#include "base/vec.h"
#include "sys/durable.h"

struct file {
	char *path;
	struct durable_stamp stamp; /* as it was when it was parsed */
};

struct credentials {
	VEC(struct file) files; /* none: a service account */
	bool too_many, relative;
	char *context, *service_host, *service_port, *service_folder;
	bool loaded;
	struct kube_access access;
};

DEFINE_CLEANUP(config, struct kube_config *, kube_config_destroy)

static void secret_cleanup(struct buf *text)
{
	buf_wipe(text);
	buf_deinit(text);
}

static void secret_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void identity_deinit(struct identity *identity)
{
	if (!identity)
		return;
	free(identity->server);
	free(identity->server_name);
	secret_free(identity->proxy);
	free(identity->ca_pem);
	free(identity->certificate_pem);
	secret_free(identity->key_pem);
	secret_free(identity->token);
	*identity = (struct identity){0};
}

/* --- the kubeconfig --- */

static void add_paths(struct credentials *credentials, const char *list)
{
	while (*list) {
		size_t length = strcspn(list, ":");

		if (length > 0) {
			char *path = mem_alloc(length + 1);

			memcpy(path, list, length);
			credentials->relative |= path[0] != '/';
			vec_push(&credentials->files)->path = path;
		}
		list += length + (list[length] == ':');
	}
	credentials->too_many = credentials->files.count > CREDENTIALS_MAX_FILES;
}

struct credentials *credentials_create(const struct credentials_options *options)
{
	struct credentials *credentials = mem_alloc(sizeof *credentials);

	if (options->kubeconfig)
		add_paths(credentials, options->kubeconfig);
	credentials->context = mem_strdup(options->context);
	credentials->service_host = mem_strdup(options->service_host);
	credentials->service_port = mem_strdup(options->service_port);
	credentials->service_folder = mem_strdup(options->service_folder ? options->service_folder
									 : KUBE_SERVICE_ACCOUNT);
	return credentials;
}

void credentials_destroy(struct credentials *credentials)
{
	if (!credentials)
		return;
	vec_each (&credentials->files, struct file * file)
		free(file->path);
	vec_deinit(&credentials->files);
	free(credentials->context);
	free(credentials->service_host);
	free(credentials->service_port);
	free(credentials->service_folder);
	kube_access_deinit(&credentials->access);
	free(credentials);
}

const char *credentials_namespace(const struct credentials *credentials)
{
	return credentials->access.namespace;
}

static bool check_list(const struct credentials *credentials, struct error *error)
{
	if (credentials->too_many)
		return error_set(error, ERROR_INVALID_CONFIG, "more than %d kubeconfigs are named",
				 CREDENTIALS_MAX_FILES);
	if (credentials->relative)
		return error_set(error, ERROR_INVALID_CONFIG,
				 "a kubeconfig's path doesn't begin with '/'");
	return true;
}

static bool unchanged(const struct credentials *credentials)
{
	for (size_t i = 0; i < credentials->files.count; i++) {
		const struct file *file = &credentials->files.items[i];

		if (!durable_stamp_equal(file->stamp, durable_stamp(file->path)))
			return false;
	}
	return credentials->loaded;
}

/* Reads one file of the list; *found tells whether it is there. */
static bool add_file(struct kube_config *config, struct file *file, bool *found,
		     struct error *error)
{
	CLEANUP(secret) struct buf text = {0};

	/* The stamp is older than the content: what changes in between is noticed next time. */
	file->stamp = durable_stamp(file->path);
	if (!durable_read(file->path, KUBE_CONFIG_MAX_SIZE, &text, error))
		return error->code == ERROR_NOT_FOUND || error_wrap(error, "read the kubeconfig");
	*found = true;
	return kube_config_add(config, text.data, text.length, file->path, error);
}

static bool load_files(struct credentials *credentials, struct kube_access *ret_access,
		       struct error *error)
{
	CLEANUP(config) struct kube_config *config = kube_config_create();
	bool found = false;

	vec_each (&credentials->files, struct file * file)
		if (!add_file(config, file, &found, error))
			return false;
	if (!found) {
		error_set(error, ERROR_NOT_FOUND, "no kubeconfig at '%s'%s",
			  credentials->files.items[0].path,
			  credentials->files.count > 1 ? " nor at the others named" : "");
		return error_hint(error, "Name the file that the kubelet uses (its --kubeconfig).");
	}
	return kube_config_resolve(config, credentials->context, ret_access, error) ||
	       error_wrap(error, "kubeconfig %s%s", credentials->files.items[0].path,
			  credentials->files.count > 1 ? " and others" : "");
}

static bool load_access(struct credentials *credentials, struct error *error)
{
	struct kube_access access = {0};
	bool ok;

	if (!check_list(credentials, error))
		return false;
	if (unchanged(credentials))
		return true;
	credentials->loaded = false;
	ok = credentials->files.count > 0
		     ? load_files(credentials, &access, error)
		     : kube_access_in_cluster(credentials->service_host, credentials->service_port,
					      credentials->service_folder, &access, error);
	if (!ok)
		return false;
	kube_access_deinit(&credentials->access);
	credentials->access = access;
	credentials->loaded = true;
	return true;
}

/* --- the files it names --- */

static bool read_text(const struct kube_source *source, const char *what, size_t max_size,
		      char **ret_text, struct error *error)
{
	CLEANUP(secret) struct buf text = {0};

	if (source->text)
		*ret_text = mem_strdup(source->text);
	if (!source->path)
		return true;
	if (!durable_read(source->path, max_size, &text, error))
		return error_wrap(error, "read the %s", what);
	if (text.length == 0)
		return error_set(error, ERROR_INVALID_CONFIG, "the %s '%s' is empty", what,
				 source->path);
	if (memchr(text.data, 0, text.length))
		return error_set(error, ERROR_INVALID_CONFIG, "the %s '%s' is no text", what,
				 source->path);
	*ret_text = mem_strdup(buf_text(&text));
	return true;
}

/* Both from one file are of one moment. */
static bool read_pair(const struct kube_access *access, struct identity *identity,
		      struct error *error)
{
	const struct kube_source *certificate = &access->certificate, *key = &access->key;

	if (!read_text(certificate, "client certificate", CREDENTIALS_MAX_SIZE,
		       &identity->certificate_pem, error))
		return false;
	if (certificate->path && key->path && str_equal(certificate->path, key->path)) {
		identity->key_pem = mem_strdup(identity->certificate_pem);
		return true;
	}
	return read_text(key, "client key", CREDENTIALS_MAX_SIZE, &identity->key_pem, error);
}

/* As it goes into a header: what stands around it is cut off, what doesn't belong there refused. */
static bool clean_token(char *token, struct error *error)
{
	size_t start = strspn(token, " \t\r\n"), length = strlen(token + start);

	while (length > 0 && strchr(" \t\r\n", token[start + length - 1]))
		length--;
	memmove(token, token + start, length);
	token[length] = '\0';
	for (size_t i = 0; i < length; i++)
		if (token[i] <= ' ' || token[i] >= 0x7f)
			return error_set(error, ERROR_INVALID_CONFIG,
					 "the token holds a character that no token has");
	return length > 0 || error_set(error, ERROR_INVALID_CONFIG, "the token is empty");
}

static bool read_all(const struct kube_access *access, struct identity *identity,
		     struct error *error)
{
	identity->server = mem_strdup(access->server);
	identity->server_name = mem_strdup(access->server_name);
	identity->proxy = mem_strdup(access->proxy);
	return read_text(&access->ca, "certificate authority", CREDENTIALS_MAX_SIZE,
			 &identity->ca_pem, error) &&
	       read_pair(access, identity, error) &&
	       read_text(&access->token, "token", CREDENTIALS_MAX_TOKEN, &identity->token, error) &&
	       (!identity->token || clean_token(identity->token, error));
}

bool credentials_load(struct credentials *credentials, struct identity *ret_identity,
		      struct error *error)
{
	CLEANUP(identity) struct identity identity = {0};

	if (!load_access(credentials, error) || !read_all(&credentials->access, &identity, error))
		return false;
	*ret_identity = identity;
	identity = (struct identity){0};
	return true;
}
