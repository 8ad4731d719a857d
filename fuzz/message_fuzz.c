/*
 * Unpacking of protobuf messages. The first byte says which type the rest is. What was unpacked
 * packs again, and what was packed unpacks.
 */
#include "proto/deviceplugin.pb-c.h"
#include "proto/gateway.pb-c.h"
#include "proto/join.pb-c.h"
#include "proto/message.h"
#include "proto/podresources.pb-c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const types[] = {
	&bettercompute__v1__up__descriptor,
	&bettercompute__v1__down__descriptor,
	&bettercompute__v1__join_request__descriptor,
	&v1beta1__allocate_request__descriptor,
	&v1beta1__allocate_response__descriptor,
	&v1beta1__list_and_watch_response__descriptor,
	&v1beta1__preferred_allocation_request__descriptor,
	&v1beta1__register_request__descriptor,
	&v1__list_pod_resources_response__descriptor,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error error;
	CLEANUP(message) ProtobufCMessage *message = NULL, *again = NULL;
	CLEANUP(buf) struct buf out = {0};
	if (size == 0)
		return 0;
	const ProtobufCMessageDescriptor *type = types[data[0] % ARRAY_SIZE(types)];
	if (!message_unpack(type, data + 1, size - 1, &message, &error))
		return 0;
	if (!message_pack(message, &out, &error) ||
	    (!message_unpack(type, out.data, out.length, &again, &error) &&
	     error.code != ERROR_RESOURCES_EXHAUSTED))
		abort();
	return 0;
}
