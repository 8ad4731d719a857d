/*
 * deviceplugin: one class of devices, served to the kubelet (docs/internals/deviceplugin.md).
 *
 * Owns      its socket, its registration and the kubelet's streams. Decides by
 *           node/core/registration.h when to make a socket and register; ListAndWatch gets the
 *           offer at once and on each change.
 * Asks      the allocator at each Allocate.
 * Threads   the loop's. deviceplugin_step() is part of the turn, never called from a callback.
 */
#pragma once

#include "gpu/source.h"
#include "node/allocate.h"
#include "node/core/offer.h"
#include "sys/loop.h"

struct deviceplugin;

struct deviceplugin_options {
	enum atom_class class;
	const char *folder;          /* the kubelet's device-plugins */
	struct allocator *allocator; /* these five outlive the plugin */
	const struct source *gpus;
	const struct strays *strays;  /* who has what isn't bound here, as far as is known now */
	const struct error *withheld; /* why no device is given out now; its code NONE: they are */
	const struct offer *offer;    /* as offered now; the caller tells of changes */
	loop_fn *wake;                /* something happened: a turn is due */
	void *arg;
};

struct deviceplugin *deviceplugin_create(struct loop *loop,
					 const struct deviceplugin_options *options);
void deviceplugin_destroy(struct deviceplugin *plugin); /* takes the socket away */

/* One look: registers, stops or does nothing. Returns when to look again, or false in `ret_timed`.
 */
struct mono deviceplugin_step(struct deviceplugin *plugin, struct mono now, bool *ret_timed);
/* The offer changed: tell the kubelet. */
void deviceplugin_changed(struct deviceplugin *plugin);

/* When this process last answered an Allocate; {0}: never. */
struct mono deviceplugin_given(const struct deviceplugin *plugin);

/* For status. */
struct deviceplugin_state {
	bool registered;
	const char *socket; /* base name; "" while there is none */
	const char *why;    /* what it does or waits for */
	const char *error;  /* of the last try, or of the look at the sockets; "" */
	bool failing;       /* by that error, since then: it may be that the kubelet isn't told */
	struct mono failing_since;
	struct wall since; /* of `registered` */
};
struct deviceplugin_state deviceplugin_state(const struct deviceplugin *plugin);

/* Unlinks sockets that a dead bcd left in the folder; living ones stay. */
void deviceplugin_clean(const char *folder);
