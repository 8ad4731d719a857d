#include "gpu/source_internal.h"

struct source *source_create(struct loop *loop, const struct source_options *options,
			     loop_fn *on_change, void *arg)
{
	return options->kind == SOURCE_SIM ? simulated_create(loop, options, on_change, arg)
					   : driver_create(loop, options, on_change, arg);
}

void source_init(struct source *source, const struct source_ops *ops, struct loop *loop,
		 const struct source_options *options, loop_fn *on_change, void *arg)
{
	source->ops = ops;
	source->loop = loop;
	source->on_change = on_change;
	source->arg = arg;
	source->slots = options->slots;
	source->name = "";
}

void source_deinit(struct source *source)
{
	inventory_deinit(&source->inventory);
	reading_deinit(&source->reading);
}

void source_put_inventory(struct source *source, struct inventory *inventory)
{
	inventory_deinit(&source->inventory);
	source->inventory = *inventory;
	*inventory = (struct inventory){0};
}

void source_put_reading(struct source *source, struct reading *reading)
{
	reading_deinit(&source->reading);
	source->reading = *reading;
	*reading = (struct reading){0};
	source->has_reading = true;
	source->read_at = loop_now(source->loop);
}

void source_destroy(struct source *source)
{
	if (source)
		source->ops->destroy(source);
}

bool source_look(struct source *source)
{
	return source->ops->look(source);
}

int32_t source_last_xid(const struct source *source, struct atom_uuid gpu)
{
	return source->ops->last_xid(source, gpu);
}

const struct health_facts *source_facts(const struct source *source, struct atom_uuid gpu)
{
	return source->ops->facts(source, gpu);
}

const struct inventory *source_inventory(const struct source *source)
{
	return &source->inventory;
}

bool source_settled(const struct source *source)
{
	return source->settled;
}

const char *source_name(const struct source *source)
{
	return source->name;
}

const struct reading *source_reading(const struct source *source)
{
	return source->has_reading ? &source->reading : NULL;
}

struct mono source_read_at(const struct source *source)
{
	return source->read_at;
}

uint64_t source_failures(const struct source *source)
{
	return source->failures;
}

const struct error *source_error(const struct source *source)
{
	return source->error.code == ERROR_NONE ? NULL : &source->error;
}

const char *source_strangers(const struct source *source)
{
	return source->strangers;
}

const struct error *source_log_error(const struct source *source)
{
	return source->log_error;
}

const struct error *source_record_error(const struct source *source)
{
	return source->record_error;
}

const char *source_marker(const struct source *source)
{
	return source->marker;
}

uint64_t source_log_lost(const struct source *source)
{
	return source->log_lost;
}
