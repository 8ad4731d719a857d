/*
 * cluster: a machine under test in a Kubernetes cluster: bcd's configuration, a kubelet on sockets,
 * the kubelet's kubeconfig, and a scripted API server behind it.
 */
#pragma once

#include "kubelet.h"
#include "node/node.h"
#include "unit/kube/fake_api.h"
#include "unit/rpc/certs.h"

struct cluster {
	void **folder;
	struct certs_pair ca, server, client;
	struct fake_api *api;
	struct loop *loop;
	struct config config;
	struct kubelet kubelet;
	struct node *node;
};

/* The one of this program. */
extern struct cluster cluster;
/* Fixtures of cmocka for all tests together: its certificates; the client's name is "system:node:n1". */
int cluster_set_up(void **state);
int cluster_tear_down(void **state);

struct cluster_options {
	bool units; /* [host] units */
	/* Without watches each is refused: lists alone tell. */
	struct fake_api_options api;
};
/* All but the node: files may be put into its folders before cluster_begin(). */
void cluster_prepare(struct cluster *it, void **folder, const struct cluster_options *options);
/* `identity` as of node_create(). */
void cluster_begin(struct cluster *it, struct identity *identity);
void cluster_write(const struct cluster *it, const char *name, const char *text);
/* What the API server was asked; its api is still to be destroyed. */
const char *cluster_finish(struct cluster *it);
/* Until the API server got so many requests. */
void cluster_wait(struct cluster *it, size_t requests);
/* The message of a condition in what bcd says of itself; NULL while it isn't there. Valid until the next call. */
const char *cluster_condition(const struct cluster *it, const char *type);
