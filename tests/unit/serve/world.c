#include "world.h"

#include "pki/cert.h"
#include "store/store.h"
#include "sys/clock.h"

static void on_timeout(void *arg)
{
	(void)arg;
	fail_msg("nothing came for %d s", TEST_PATIENCE_MS / 1000);
}

static void on_look_again(void *arg)
{
	((struct world *)arg)->looks++;
}

static void make_pki(struct world *world)
{
	struct pki_folder *pki = &world->pki;
	CLEANUP(pki_key) struct pki_key *key = NULL;
	CLEANUP(buf) struct buf serving = {0};
	CLEANUP(buf) struct buf node = {0};
	CLEANUP(buf) struct buf certificate = {0};
	CLEANUP(buf) struct buf secret = {0};
	const char *name = GATEWAY_NAME;
	const struct wall year_ago = {clock_wall().ms - INT64_C(365) * 86400000};
	struct error error;

	expect_ok(pki_key_generate(&key, &error), &error);
	expect_ok(pki_key_generate(&pki->serving_ca_key, &error), &error);
	expect_ok(pki_key_generate(&pki->node_ca_key, &error), &error);
	expect_ok(pki_key_generate(&pki->join_encryption_key, &error), &error);
	expect_ok(pki_key_generate(&pki->join_signing_key, &error), &error);
	expect_ok(cert_make_ca(pki->serving_ca_key, "s", clock_wall(), &serving, &error), &error);
	expect_ok(cert_make_ca(pki->node_ca_key, "n", year_ago, &node, &error), &error);
	pki->serving_ca_pem = buf_take_text(&serving);
	pki->node_ca_pem = buf_take_text(&node);
	expect_ok(
		cert_issue_gateway(&(struct cert_issuer){pki->serving_ca_pem, pki->serving_ca_key},
				   key, &name, 1, clock_wall(), &certificate, &error),
		&error);
	expect_ok(pki_key_to_pem(key, &secret, &error), &error);
	expect_ok(rpc_tls_server_create(
			  &(struct rpc_tls_server_options){
				  .certificate_pem = buf_text(&certificate),
				  .key_pem = buf_text(&secret),
				  .client_ca_pem = pki->node_ca_pem,
			  },
			  &world->tls, &error),
		  &error);
}

int world_set_up(void **state)
{
	struct world *world = mem_alloc(sizeof *world);
	struct error error;

	fake_reset();
	world->loop = loop_create();
	make_pki(world);
	expect_ok(store_open("sqlite::memory:", &world->store, &error), &error);
	expect_ok(workers_create(world->loop, world->store, "rep", 0, &world->workers, &error),
		  &error);
	world->join = join_service_create(world->loop, world->workers, &world->pki);
	join_service_tell(world->join, "gw:7443", GATEWAY_NAME);
	world->gateway = gateway_create(world->loop, world->workers, &world->pki, world->join,
					&(struct gateway_handlers){on_look_again, world});
	expect_ok(gateway_listen(world->gateway, "127.0.0.1:0", world->tls, &error), &error);
	world->timeout = loop_timer_create(world->loop, on_timeout, NULL);
	*state = world;
	return 0;
}

int world_tear_down(void **state)
{
	struct world *world = *state;

	loop_timer_destroy(world->timeout);
	workers_destroy(world->workers);
	gateway_destroy(world->gateway);
	join_service_destroy(world->join);
	rpc_tls_destroy(world->tls);
	store_destroy(world->store);
	pki_folder_deinit(&world->pki);
	loop_destroy(world->loop);
	free(world);
	return 0;
}

/* Runs the loop until something of interest happened. */
void world_wait(struct world *world)
{
	loop_timer_start(world->timeout, TEST_PATIENCE_MS);
	loop_run(world->loop);
}

static void on_pause(void *arg)
{
	struct world *world = arg;

	world->paused = true;
	loop_stop(world->loop);
}

/* Runs the loop for a while in which nothing ought to happen. */
void world_idle(struct world *world)
{
	world_run(world, 100);
}

static void on_look_for_it(void *arg)
{
	loop_stop(((struct world *)arg)->loop);
}

void world_until(struct world *world, bool (*has_come)(void))
{
	struct loop_timer *look = loop_timer_create(world->loop, on_look_for_it, world);
	struct mono end = mono_after(clock_mono(), TEST_PATIENCE_MS);

	while (!has_come()) {
		if (mono_until(clock_mono(), end) <= 0)
			on_timeout(world);
		loop_timer_start(look, 5);
		world_wait(world);
	}
	loop_timer_destroy(look);
}

void world_run(struct world *world, int64_t ms)
{
	struct loop_timer *pause = loop_timer_create(world->loop, on_pause, world);

	world->paused = false;
	loop_timer_start(pause, ms);
	while (!world->paused)
		world_wait(world);
	loop_timer_destroy(pause);
}

void world_pin(const struct world *world, char out[PIN_SIZE])
{
	pki_key_pin(world->pki.serving_ca_key, out);
}
