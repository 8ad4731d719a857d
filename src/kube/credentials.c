#include "kube/credentials.h"

#include "base/vec.h"
#include "kube/program.h"
#include "sys/clock.h"
#include "sys/durable.h"

struct file {
	char *path;
	struct durable_stamp stamp; /* as it was when it was parsed */
};

/* What a program says, and when it is asked. */
struct asking {
	struct program *program; /* while it runs */
	bool answered;
	struct kube_exec_answer answer;
	struct mono asked;    /* when that was */
	struct error trouble; /* of one that failed */
};

struct credentials {
	struct loop *loop;
	loop_fn *ready;
	void *arg;
	struct asking asking;
	VEC(struct file) files;
	bool too_many, relative;
	char *context;
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

void kube_identity_deinit(struct kube_identity *identity)
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
	free(identity->ca_source);
	free(identity->certificate_source);
	free(identity->trust_hint);
	*identity = (struct kube_identity){0};
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

struct credentials *credentials_create(struct loop *loop, const struct credentials_options *options,
				       loop_fn *ready, void *arg)
{
	struct credentials *credentials = mem_alloc(sizeof *credentials);

	credentials->loop = loop;
	credentials->ready = ready;
	credentials->arg = arg;
	add_paths(credentials, options->kubeconfig);
	credentials->context = mem_strdup(options->context);
	return credentials;
}

static void asking_clear(struct asking *asking)
{
	program_destroy(asking->program);
	kube_exec_answer_deinit(&asking->answer);
	*asking = (struct asking){0};
}

void credentials_destroy(struct credentials *credentials)
{
	if (!credentials)
		return;
	asking_clear(&credentials->asking);
	vec_each (&credentials->files, struct file * file)
		free(file->path);
	vec_deinit(&credentials->files);
	free(credentials->context);
	kube_access_deinit(&credentials->access);
	free(credentials);
}

static bool check_list(const struct credentials *credentials, struct error *error)
{
	if (credentials->files.count == 0)
		return error_set(error, ERROR_INVALID_CONFIG, "no kubeconfig is named");
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
		return error_hint(error,
				  "Name the file that the kubelet uses (its --kubeconfig) as "
				  "[kubernetes] kubeconfig in bcd's config.toml.");
	}
	return kube_config_resolve(config, credentials->context, ret_access, error) ||
	       error_wrap(error, "kubeconfig %s%s", credentials->files.items[0].path,
			  credentials->files.count > 1 ? " and others" : "");
}

static bool load_access(struct credentials *credentials, struct error *error)
{
	struct kube_access access = {0};

	if (!check_list(credentials, error))
		return false;
	if (unchanged(credentials))
		return true;
	credentials->loaded = false;
	if (!load_files(credentials, &access, error))
		return false;
	asking_clear(&credentials->asking); /* it borrows the access */
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
static bool read_pair(const struct kube_access *access, struct kube_identity *identity,
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

static bool read_all(const struct kube_access *access, struct kube_identity *identity,
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

/* --- the program it names --- */

static void on_program(void *arg, struct kube_exec_answer *answer, const struct error *error)
{
	struct credentials *credentials = arg;
	struct asking *asking = &credentials->asking;

	asking->program = NULL;
	kube_exec_answer_deinit(&asking->answer);
	asking->answered = answer;
	asking->asked = loop_now(credentials->loop);
	if (answer) {
		asking->answer = *answer;
		*answer = (struct kube_exec_answer){0};
	} else {
		asking->trouble = *error;
	}
	credentials->ready(credentials->arg);
}

/* Asking again so soon wouldn't help. */
static bool just_asked(const struct credentials *credentials)
{
	const struct asking *asking = &credentials->asking;

	return asking->asked.ms > 0 &&
	       mono_until(asking->asked, loop_now(credentials->loop)) < CREDENTIALS_PAUSE_MS;
}

static bool runs_out(const struct kube_exec_answer *answer)
{
	return answer->expires.ms > 0 &&
	       clock_wall().ms > answer->expires.ms - CREDENTIALS_EARLY_MS;
}

/* Takes what the program said into the identity, or has it asked. */
static bool ask_program(struct credentials *credentials, bool *ret_ready,
			struct kube_identity *identity, struct error *error)
{
	struct asking *asking = &credentials->asking;

	if (asking->answered && (just_asked(credentials) || !runs_out(&asking->answer))) {
		identity->token = mem_strdup(asking->answer.token);
		identity->certificate_pem = mem_strdup(asking->answer.certificate_pem);
		identity->key_pem = mem_strdup(asking->answer.key_pem);
		return !identity->token || clean_token(identity->token, error);
	}
	if (!asking->program && just_asked(credentials)) {
		*error = asking->trouble;
		return false;
	}
	*ret_ready = false;
	return asking->program ||
	       program_start(credentials->loop, &credentials->access, identity->ca_pem, on_program,
			     credentials, &asking->program, error);
}

/* --- what messages say of them --- */

/* " '/etc/ca.crt'", or "-data": as the field goes on. */
static void add_place(struct buf *out, const char *field, const struct kube_source *source)
{
	if (source->path)
		buf_printf(out, "%s '%s'", field, source->path);
	else
		buf_printf(out, "%s-data", field);
}

static void name_certificate(const struct kube_access *access, struct buf *out)
{
	if (access->exec) {
		buf_printf(out, "the client certificate and key that the program '%s' gave",
			   access->exec->command);
		return;
	}
	buf_add_text(out, "the ");
	add_place(out, "client-certificate", &access->certificate);
	buf_add_text(out, " with the ");
	add_place(out, "client-key", &access->key);
}

static void name_sources(const struct credentials *credentials, struct kube_identity *identity)
{
	const struct kube_access *access = &credentials->access;
	CLEANUP(buf) struct buf file = {0}, ca = {0}, certificate = {0}, hint = {0};

	buf_printf(&file, "kubeconfig %s%s", credentials->files.items[0].path,
		   credentials->files.count > 1 ? " or another" : "");
	if (identity->ca_pem) {
		buf_add_text(&ca, "the ");
		add_place(&ca, "certificate-authority", &access->ca);
		buf_printf(&ca, " of cluster '%s' (%s)", access->cluster, buf_text(&file));
		buf_printf(&hint, "Is %s the authority of this server?", buf_text(&ca));
		identity->ca_source = mem_strdup(buf_text(&ca));
	} else {
		buf_printf(&hint,
			   "If the server has a certificate of a private authority, name it as "
			   "certificate-authority of cluster '%s' in %s.",
			   access->cluster, buf_text(&file));
	}
	if (identity->certificate_pem) {
		name_certificate(access, &certificate);
		buf_printf(&certificate, " of user '%s' (%s)", access->user, buf_text(&file));
		identity->certificate_source = mem_strdup(buf_text(&certificate));
	}
	identity->trust_hint = mem_strdup(buf_text(&hint));
}

void credentials_renew(struct credentials *credentials)
{
	if (!just_asked(credentials))
		credentials->asking.answered = false;
}

bool credentials_load(struct credentials *credentials, bool *ret_ready,
		      struct kube_identity *ret_identity, struct error *error)
{
	CLEANUP(kube_identity) struct kube_identity identity = {0};
	bool ready = true;

	if (!load_access(credentials, error) || !read_all(&credentials->access, &identity, error))
		return false;
	if (credentials->access.exec && !ask_program(credentials, &ready, &identity, error))
		return false;
	*ret_ready = ready;
	if (!ready)
		return true;
	name_sources(credentials, &identity);
	*ret_identity = identity;
	identity = (struct kube_identity){0};
	return true;
}
