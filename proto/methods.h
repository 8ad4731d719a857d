/*
 * methods: the path of every gRPC method that we serve or call.
 *
 * The .proto files carry no service blocks (see deviceplugin.proto), so the paths stand here, and a
 * peer test compares the published ones with the official descriptors.
 */
#pragma once

/* The kubelet serves Registration; a plugin serves DevicePlugin. */
#define METHOD_REGISTRATION_REGISTER                  "/v1beta1.Registration/Register"
#define METHOD_DEVICE_PLUGIN_GET_OPTIONS              "/v1beta1.DevicePlugin/GetDevicePluginOptions"
#define METHOD_DEVICE_PLUGIN_LIST_AND_WATCH           "/v1beta1.DevicePlugin/ListAndWatch"
#define METHOD_DEVICE_PLUGIN_GET_PREFERRED_ALLOCATION "/v1beta1.DevicePlugin/GetPreferredAllocation"
#define METHOD_DEVICE_PLUGIN_ALLOCATE                 "/v1beta1.DevicePlugin/Allocate"
#define METHOD_DEVICE_PLUGIN_PRE_START_CONTAINER      "/v1beta1.DevicePlugin/PreStartContainer"

/* The kubelet serves it. */
#define METHOD_POD_RESOURCES_LIST            "/v1.PodResourcesLister/List"
#define METHOD_POD_RESOURCES_GET_ALLOCATABLE "/v1.PodResourcesLister/GetAllocatableResources"
#define METHOD_POD_RESOURCES_GET             "/v1.PodResourcesLister/Get"

/* A plugin serves it to the kubelet's plugin watcher. */
#define METHOD_PLUGIN_REGISTRATION_GET_INFO "/pluginregistration.Registration/GetInfo"
#define METHOD_PLUGIN_REGISTRATION_NOTIFY                                                          \
	"/pluginregistration.Registration/NotifyRegistrationStatus"

/* Ours: the control plane serves both. */
#define METHOD_GATEWAY_CONNECT "/bettercompute.v1.Gateway/Connect"
#define METHOD_JOIN_JOIN       "/bettercompute.v1.Join/Join"
