#include "kube/core/exec.h"

#include "kube/core/event.h"
#include "text/base64.h"
#include "text/tree.h"

static json_t *cluster_info(const struct kube_access *access, const char *ca_pem)
{
	CLEANUP(buf) struct buf packed = {0};
	json_t *cluster = json_object();

	tree_set(cluster, "server", tree_string(access->server));
	if (access->server_name)
		tree_set(cluster, "tls-server-name", tree_string(access->server_name));
	if (access->proxy)
		tree_set(cluster, "proxy-url", tree_string(access->proxy));
	if (ca_pem) {
		base64_encode(ca_pem, strlen(ca_pem), &packed);
		tree_set(cluster, "certificate-authority-data", tree_string(buf_text(&packed)));
	}
	return cluster;
}

void kube_exec_info(const struct kube_access *access, const char *ca_pem, struct buf *out)
{
	CLEANUP(tree) json_t *object = json_object();
	json_t *spec = json_object();

	tree_set(spec, "interactive", json_false());
	if (access->exec->cluster_info)
		tree_set(spec, "cluster", cluster_info(access, ca_pem));
	tree_set(object, "apiVersion", tree_string(access->exec->api_version));
	tree_set(object, "kind", tree_string("ExecCredential"));
	tree_set(object, "spec", spec);
	tree_dump_canonical(out, object);
}

static void secret_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

void kube_exec_answer_deinit(struct kube_exec_answer *answer)
{
	if (!answer)
		return;
	secret_free(answer->token);
	free(answer->certificate_pem);
	secret_free(answer->key_pem);
	*answer = (struct kube_exec_answer){0};
}

static bool read_status(const json_t *status, struct kube_exec_answer *answer, struct error *error)
{
	const char *token = "", *certificate = "", *key = "", *expires = "";

	if (!tree_opt_string(status, "token", "status", KUBE_EXEC_MAX_ANSWER, &token, error) ||
	    !tree_opt_string(status, "clientCertificateData", "status", KUBE_EXEC_MAX_ANSWER,
			     &certificate, error) ||
	    !tree_opt_string(status, "clientKeyData", "status", KUBE_EXEC_MAX_ANSWER, &key,
			     error) ||
	    !tree_opt_string(status, "expirationTimestamp", "status", 64, &expires, error))
		return false;
	if (!*certificate != !*key)
		return error_set(error, ERROR_INVALID_CONFIG,
				 "a certificate without its key, or a key without its certificate");
	if (!*token && !*key)
		return error_set(error, ERROR_INVALID_CONFIG, "neither a token nor a certificate");
	if (*expires && !kube_time_parse(expires, &answer->expires))
		return error_field(error, "status.expirationTimestamp", "is no time");
	answer->token = *token ? mem_strdup(token) : NULL;
	answer->certificate_pem = *key ? mem_strdup(certificate) : NULL;
	answer->key_pem = *key ? mem_strdup(key) : NULL;
	return true;
}

bool kube_exec_read(const struct kube_exec *exec, const void *text, size_t length,
		    struct kube_exec_answer *ret_answer, struct error *error)
{
	CLEANUP(kube_exec_answer) struct kube_exec_answer answer = {0};
	CLEANUP(tree) json_t *tree = NULL;
	json_t *status;
	const char *version;

	bool ok = tree_parse(text, length, KUBE_EXEC_MAX_ANSWER, "its answer", &tree, error) &&
		  tree_get_string(tree, "apiVersion", "", 128, &version, error) &&
		  tree_get_object(tree, "status", "", &status, error) &&
		  (str_equal(version, exec->api_version) ||
		   error_field(error, "apiVersion", "is \"%s\", not \"%s\"", version,
			       exec->api_version)) &&
		  read_status(status, &answer, error);
	if (!ok) {
		error->code = ERROR_INVALID_CONFIG;
		return error_wrap(error, "what '%s' answers", exec->command);
	}
	*ret_answer = answer;
	answer = (struct kube_exec_answer){0};
	return true;
}
