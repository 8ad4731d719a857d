/*
 * podresources: the pod-resources API, v1: which container holds which device.
 *
 * Lists     running pods that the kubelet has heard of, each device as an entry of its own with the NUMA nodes of its hold, as
 * the kubelet of 1.34 and later does. Get of an unknown pod fails with UNKNOWN, as there. Source
 * k8s.io/kubelet pkg/apis/podresources/v1
 */
#pragma once

#include "standin/manager.h"
#include "standin/pods.h"
#include "sys/loop.h"

struct podresources;

/* Serves PATH; a file that is there is replaced. Borrows `manager` and `pods`. */
MUST_CHECK bool podresources_create(struct loop *loop, const char *path,
				    const struct manager *manager, const struct pods *pods,
				    struct podresources **ret_podresources, struct error *error);
void podresources_destroy(struct podresources *podresources); /* takes NULL */
