/* The secret broker: who may have a secret is decided by core/secrets.h; it is opened here and handed over. */
#include "control/core/secrets.h"
#include "control/nodes.h"
#include "control/pools.h"
#include "control/sealing.h"
#include "control/stream.h"
#include "pki/keys.h"
#include "sys/log.h"

struct give_work {
	const struct control_secret_request *request;
	struct secret_view view;
	char id[ID_SIZE];
	struct store_rows rows; /* of the secret; empty when it is refused, or isn't there */
};

/* "secret://<tenant>/<id>" of this tenant; *id is "" when it isn't such a text. */
static bool is_of_tenant(const char *text, const char *tenant, char id[ID_SIZE])
{
	char expected[SEALING_REFERENCE_SIZE];
	const char *last = strrchr(text, '/');

	id[0] = '\0';
	if (!last || !id_valid(last + 1, "sec"))
		return false;
	str_copy(id, ID_SIZE, last + 1);
	sealing_reference(expected, tenant, id);
	return str_equal(text, expected);
}

static bool look_at_allocation(struct store_connection *db, struct give_work *work,
			       struct error *error)
{
	CLEANUP(store_rows) struct store_rows rows = {0};
	const char *state;

	work->view.for_allocation = work->request->allocation[0] != '\0';
	if (!work->view.for_allocation)
		return true;
	if (!store_query(db,
			 "SELECT state FROM allocations WHERE id = $1 AND node = $2 AND "
			 "assigned_generation IS NOT NULL",
			 STORE_PARAMS(store_text(work->request->allocation),
				      store_text(work->request->node)),
			 &rows, error))
		return false;
	work->view.allocation_here = rows.count == 1;
	state = rows.count == 1 ? store_get_text(&rows, 0, 0) : "";
	work->view.allocation_leaving = !str_equal(state, "placed") && !str_equal(state, "bound");
	return true;
}

static bool give_body(struct store_connection *db, void *argument, struct error *error)
{
	struct give_work *work = argument;
	const struct control_secret_request *request = work->request;
	CLEANUP(pool) struct pool pool = {0};
	CLEANUP(node) struct node node = {0};

	store_rows_deinit(&work->rows);
	work->view = (struct secret_view){.tenants_certificate = request->tenants_certificate};
	if (!stream_check(db, request->node, request->epoch, &node, error) ||
	    !pool_load(db, node.pool, &pool, error))
		return false;
	work->view.tenant_controlled = node.trust == CONTROL_TRUST_TENANT_CONTROLLED;
	work->view.working = str_equal(node.state, "joining") ||
			     str_equal(node.state, "adopting") || str_equal(node.state, "ready");
	work->view.named = !pool.archived && pool.policy.joins &&
			   str_equal(pool.policy.join_token_ref, request->reference);
	work->view.own_tenant = is_of_tenant(request->reference, pool.tenant, work->id);
	if (!look_at_allocation(db, work, error))
		return false;
	return secret_refusal(&work->view) ||
	       store_query(db, "SELECT " SEALING_COLUMNS " FROM secrets WHERE id = $1",
			   STORE_PARAMS(store_text(work->id)), &work->rows, error);
}

static bool open_for(struct control *control, const struct give_work *work,
		     struct control_secret *ret_secret, struct error *error)
{
	CLEANUP(seal_keys) struct seal_keys *keys = NULL;

	if (work->rows.count == 0) {
		ret_secret->refusal = "the secret that the node's pool names is not there";
		return true;
	}
	if (!sealing_keys(control, &keys, error) ||
	    !sealing_open(keys, &work->rows, &ret_secret->value, error)) {
		/* The stream goes on: the node asks again. */
		log_failure(LOG_ERROR, "secret.open", error, "it is not given");
		ret_secret->refusal = "the secret can't be opened now";
	}
	return true;
}

bool control_secret_give(struct control *control, const struct control_secret_request *request,
			 struct control_secret *ret_secret, struct error *error)
{
	struct give_work work = {.request = request};
	struct control_secret secret = {0};
	bool done = store_run(control->connection, STORE_READ, give_body, &work, error);

	if (done) {
		secret.refusal = secret_refusal(&work.view);
		done = secret.refusal || open_for(control, &work, &secret, error);
	}
	if (done && secret.refusal)
		log_warn("secret.refused", secret.refusal, "node", request->node, NULL);
	else if (done)
		log_info("secret.given", "given to a node that its pool's policy names it for",
			 "node", request->node, "secret", work.id, NULL);
	store_rows_deinit(&work.rows);
	if (done)
		*ret_secret = secret;
	return done;
}

void control_secret_deinit(struct control_secret *secret)
{
	pki_wipe(&secret->value);
}
