/* A replica of the control plane: what serve.c puts together, but for the HTTP listener. */
#include "control/control.h"

#include "pki/folder.h"
#include "rpc/tls.h"
#include "serve/gateway.h"
#include "serve/join.h"
#include "serve/passes.h"
#include "serve/workers.h"
#include "sim/programs.h"
#include "store/store.h"
#include "sys/clock.h"
#include "sys/random.h"

#include <stdio.h>

struct replica {
	const char *address;
	struct workers *workers;
	struct join_service *join;
	struct gateway *gateway;
	struct rpc_tls *tls;
	struct passes *passes;
};

static struct replica replicas[PROGRAMS_REPLICAS] = {
	{.address = GATEWAY_ADDRESS},
	{.address = GATEWAY_ADDRESS_2},
};

static void must(bool ok, const struct error *error)
{
	if (ok)
		return;
	fprintf(stderr, "sim: setting up the control plane: %s\n", error->what);
	abort();
}

static void on_look_again(void *arg)
{
	struct replica *replica = arg;
	passes_tick(replica->passes);
	passes_look(replica->passes);
}

/* Where its outbox begins: as serve asks before the gateway takes its first stream. */
static int64_t outbox_end(void)
{
	struct control control = {0};
	struct control_outbox outbox = {0};
	struct error error;
	int64_t last;
	must(store_connect(programs_store(), &control.connection, &error), &error);
	must(control_outbox_poll(&control, -1, &outbox, &error), &error);
	last = outbox.last;
	control_outbox_deinit(&outbox);
	store_disconnect(control.connection);
	return last;
}

static void control_start(struct sim_process *process)
{
	struct replica *replica = process->data;
	const struct gateway_handlers handlers = {on_look_again, replica};
	const struct pki_folder *pki = programs_pki();
	struct loop *loop = loop_create();
	struct error error;
	char name[ID_SIZE];
	random_id(name, "rep", clock_wall());
	must(workers_create(loop, programs_store(), name, 0, &replica->workers, &error), &error);
	replica->join = join_service_create(loop, replica->workers, pki);
	replica->gateway = gateway_create(loop, replica->workers, pki, replica->join, &handlers);
	replica->passes = passes_create(loop, replica->workers, replica->gateway, outbox_end());
	must(rpc_tls_server_create(&(struct rpc_tls_server_options){0}, &replica->tls, &error),
	     &error);
	must(gateway_listen(replica->gateway, replica->address, replica->tls, &error), &error);
}

static void control_destroy(struct sim_process *process)
{
	struct replica *replica = process->data;
	workers_destroy(TAKE(replica->workers));
	passes_destroy(TAKE(replica->passes));
	gateway_destroy(TAKE(replica->gateway));
	join_service_destroy(TAKE(replica->join));
	rpc_tls_destroy(TAKE(replica->tls));
}

void control_prepare(struct sim_process *process, int number)
{
	process->start = control_start;
	process->destroy = control_destroy;
	process->data = &replicas[number];
}

void control_changed(void *process)
{
	const struct replica *replica = ((struct sim_process *)process)->data;
	passes_look(replica->passes);
}
