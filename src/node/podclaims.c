#include "node/podclaims.h"

#include "kube/core/claim.h"
#include "kube/core/pod.h"

struct claim {
	char *namespace, *name;
	json_t *object; /* as the API server has it; NULL: not asked yet, not there, or not told */
};

struct podclaims {
	podclaims_fn *fn;
	void *arg;
	struct kube_client *kube;
	struct kube_call *call;
	VEC(struct claim) claims;
	size_t asked; /* so many of them */
	struct error trouble;
};

static bool names(const json_t *pod, const struct holder *holder)
{
	const char *namespace =
		json_string_value(json_object_get(json_object_get(pod, "metadata"), "namespace"));

	return namespace && str_equal(namespace, holder->claim_namespace) &&
	       kube_pod_has_claim(pod, holder->claim_name);
}

static const struct claim *find(const struct podclaims *podclaims, const struct holder *holder)
{
	vec_each (&podclaims->claims, const struct claim *claim)
		if (str_equal(claim->namespace, holder->claim_namespace) &&
		    str_equal(claim->name, holder->claim_name))
			return claim;
	return NULL;
}

/* --- asking --- */

static void ask_next(struct podclaims *podclaims);

static void on_claim(void *arg, struct kube_answer *answer)
{
	struct podclaims *podclaims = arg;
	struct claim *claim = &podclaims->claims.items[podclaims->asked++];

	podclaims->call = NULL;
	if (answer->reason == KUBE_DONE)
		claim->object = TAKE(answer->body);
	else if (answer->reason != KUBE_NOT_FOUND)
		podclaims->trouble = answer->error;
	ask_next(podclaims);
}

static void ask_next(struct podclaims *podclaims)
{
	static const struct kube_call_options options = {.priority = KUBE_URGENT};
	bool good = podclaims->trouble.code == ERROR_NONE;
	const struct claim *claim;
	struct kube_request request;

	if (podclaims->asked == podclaims->claims.count) {
		podclaims->fn(podclaims->arg, good ? NULL : &podclaims->trouble);
		return;
	}
	claim = &podclaims->claims.items[podclaims->asked];
	request = kube_get((struct kube_ref){&KUBE_RESOURCE_CLAIM, claim->namespace, claim->name});
	podclaims->call = kube_send(podclaims->kube, &request, options, on_claim, podclaims);
}

void podclaims_ask(struct podclaims *podclaims, struct kube_client *kube,
		   const struct holders_listing *listing, const json_t *pods)
{
	podclaims_forget(podclaims);
	podclaims->kube = kube;
	vec_each (&listing->holders, const struct holder *holder) {
		struct claim *claim;

		if (!holder->claim || find(podclaims, holder) || !podclaims_named(holder, pods))
			continue;
		claim = vec_push(&podclaims->claims);
		claim->namespace = mem_strdup(holder->claim_namespace);
		claim->name = mem_strdup(holder->claim_name);
	}
	ask_next(podclaims);
}

bool podclaims_asking(const struct podclaims *podclaims)
{
	return podclaims->call;
}

/* --- what is known --- */

bool podclaims_asked(const struct podclaims *podclaims, const struct holder *holder)
{
	return find(podclaims, holder);
}

bool podclaims_named(const struct holder *holder, const json_t *pods)
{
	for (size_t i = 0; i < json_array_size(pods); i++)
		if (names(json_array_get(pods, i), holder))
			return true;
	return false;
}

bool podclaims_has(const struct podclaims *podclaims, const struct holder *holder,
		   const json_t *pod)
{
	const struct claim *claim = find(podclaims, holder);
	char device[HOLDS_ID_SIZE];

	if (!claim || !names(pod, holder))
		return false;
	if (*holder->claim_uid)
		return kube_claim_is(claim->object, holder->claim_uid);
	str_copy(device, sizeof device, holder->id);
	device[strcspn(device, "@")] = '\0';
	return kube_claim_has(claim->object, DRA_DRIVER, device);
}

/* --- life --- */

struct podclaims *podclaims_create(podclaims_fn *fn, void *arg)
{
	struct podclaims *podclaims = mem_alloc(sizeof *podclaims);

	podclaims->fn = fn;
	podclaims->arg = arg;
	return podclaims;
}

void podclaims_forget(struct podclaims *podclaims)
{
	kube_call_cancel(TAKE(podclaims->call));
	vec_each (&podclaims->claims, struct claim * claim) {
		free(claim->namespace);
		free(claim->name);
		json_decref(claim->object);
	}
	vec_clear(&podclaims->claims);
	podclaims->asked = 0;
	podclaims->trouble = (struct error){0};
}

void podclaims_destroy(struct podclaims *podclaims)
{
	if (!podclaims)
		return;
	podclaims_forget(podclaims);
	vec_deinit(&podclaims->claims);
	free(podclaims);
}
