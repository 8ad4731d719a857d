#include "client_world.h"

#include "lib/folder.h"
#include "text/tree.h"

const struct fake_api_answer FINE = {.status = 200, .body = OK_BODY};
const struct kube_ref NODE = {&KUBE_NODE, "", "n0"};
struct world world;

void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

void write_pair(const char *name, const struct certs_pair *certificate,
		const struct certs_pair *key)
{
	char path[512], text[8192];

	snprintf(text, sizeof text, "%s%s", certificate->certificate, key->key);
	snprintf(path, sizeof path, "%s.new", folder_path(world.folder, name));
	write_file(path, text);
	assert_int_equal(rename(path, folder_path(world.folder, name)), 0);
}

void write_kubeconfig(const char *cluster_more, const char *user)
{
	char text[2048];

	snprintf(text, sizeof text,
		 "current-context: x\n"
		 "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
		 "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:%d', "
		 "certificate-authority: ca.pem%s%s}}]\n"
		 "users: [{name: u, user: {%s}}]\n",
		 fake_api_port(world.api), cluster_more,
		 strstr(cluster_more, "tls-server-name") ? "" : ", tls-server-name: api.test",
		 user);
	write_file(folder_path(world.folder, "kubeconfig"), text);
}

void begin(void **state, const struct fake_api_answer *answers, size_t count)
{
	world.folder = state;
	world.told = 0;
	world.log[0] = '\0';
	world.api = fake_api_start(&(struct fake_api_options){
		.certificate_pem = world.server.certificate,
		.key_pem = world.server.key,
		.answers = answers,
		.count = count,
	});
	write_file(folder_path(state, "ca.pem"), world.ca.certificate);
	write_pair("pair.pem", &world.first, &world.first);
	write_kubeconfig("", PAIR);
	world.loop = loop_create();
	world.client = kube_client_create(
		world.loop,
		&(struct credentials_options){.kubeconfig = folder_path(state, "kubeconfig")});
}

const char *finish(void)
{
	kube_client_destroy(world.client);
	loop_destroy(world.loop);
	return fake_api_finish(world.api);
}

static void on_answer(void *arg, struct kube_answer *answer)
{
	const char *letter = arg;

	world.told++;
	world.reason = answer->reason;
	world.unknown = answer->unknown;
	world.error = answer->error;
	if (letter)
		strncat(world.log, letter, 1);
}

struct kube_call *send_as(struct kube_request request, enum kube_priority priority,
			  int64_t timeout_ms, const char *letter)
{
	return kube_send(world.client, &request,
			 (struct kube_call_options){.priority = priority, .timeout_ms = timeout_ms},
			 on_answer, (void *)letter);
}

void call(struct kube_request request)
{
	send_as(request, KUBE_NORMAL, 0, NULL);
	loop_run(world.loop);
	assert_int_equal(world.told, 1);
	world.told = 0;
}

size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
		count++;
	return count;
}

struct kube_request create_slice(void)
{
	CLEANUP(tree)
	json_t *object = json_pack("{s:s, s:s, s:{s:s}}", "kind", "ResourceSlice", "apiVersion",
				   "resource.k8s.io/v1", "metadata", "name", "s");

	return kube_create(&KUBE_RESOURCE_SLICE, "", object);
}

void stop(void *arg UNUSED)
{
	loop_stop(world.loop);
}

int make_world(void **state UNUSED)
{
	world.ca = certs_make(&(struct certs_options){.name = "ca", .is_ca = true});
	world.server = certs_make(&(struct certs_options){.name = "api.test", .issuer = &world.ca});
	world.first = certs_make(
		&(struct certs_options){.name = "system:node:first", .issuer = &world.ca});
	world.second = certs_make(
		&(struct certs_options){.name = "system:node:second", .issuer = &world.ca});
	return 0;
}

int drop_world(void **state UNUSED)
{
	certs_free(&world.ca);
	certs_free(&world.server);
	certs_free(&world.first);
	certs_free(&world.second);
	return 0;
}
