#include "gpu/core/frame.h"

#include "gpu/core/pci.h"

bool frame_put(struct buf *out, const json_t *object, struct error *error)
{
	size_t start = out->length, length;

	buf_extend(out, FRAME_HEAD_BYTES);
	tree_dump_canonical(out, object);
	length = out->length - start - FRAME_HEAD_BYTES;
	if (length > FRAME_MAX_BYTES) {
		out->length = start;
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "%zu bytes are more than the %zu of a frame", length,
				 FRAME_MAX_BYTES);
	}
	for (size_t i = 0; i < FRAME_HEAD_BYTES; i++)
		out->data[start + i] = (uint8_t)(length >> (8 * (FRAME_HEAD_BYTES - 1 - i)));
	return true;
}

bool frame_take(struct buf *in, json_t **ret_object, struct error *error)
{
	json_t *object = NULL;
	size_t length = 0;

	if (in->length < FRAME_HEAD_BYTES) {
		*ret_object = NULL;
		return true;
	}
	for (size_t i = 0; i < FRAME_HEAD_BYTES; i++)
		length = length << 8 | in->data[i];
	if (length > FRAME_MAX_BYTES)
		return error_set(error, ERROR_INVALID_INPUT,
				 "a frame of %zu bytes is more than %zu", length, FRAME_MAX_BYTES);
	if (in->length - FRAME_HEAD_BYTES < length) {
		*ret_object = NULL;
		return true;
	}
	if (!tree_parse(in->data + FRAME_HEAD_BYTES, length, FRAME_MAX_BYTES, "frame", &object,
			error))
		return false;
	if (!json_is_object(object)) {
		json_decref(object);
		return error_set(error, ERROR_INVALID_INPUT, "a frame holds no object");
	}
	buf_drop_front(in, FRAME_HEAD_BYTES + length);
	*ret_object = object;
	return true;
}

json_t *frame_xid(const struct frame_xid *xid)
{
	json_t *object = json_object(), *frame = json_object();
	char uuid[ATOM_UUID_SIZE];

	tree_set(object, "xid", json_integer(xid->xid));
	if (*xid->pci)
		tree_set(object, "pci", tree_string(xid->pci));
	if (xid->has_uuid) {
		atom_uuid_format(uuid, xid->uuid);
		tree_set(object, "uuid", tree_string(uuid));
	}
	if (xid->gi >= 0)
		tree_set(object, "gi", json_integer(xid->gi));
	if (xid->ci >= 0)
		tree_set(object, "ci", json_integer(xid->ci));
	tree_set(frame, "xid", object);
	return frame;
}

bool frame_read_xid(const json_t *object, struct frame_xid *ret_xid, struct error *error)
{
	struct frame_xid xid = {.gi = -1, .ci = -1};
	char uuid[ATOM_UUID_SIZE] = "", pci[INVENTORY_PCI_SIZE] = "";

	if (!field_object(object, "xid", error) ||
	    !field_int(object, "xid", "xid", true, 0, FRAME_MAX_XID, &xid.xid, error) ||
	    !field_text(object, "xid", "pci", false, pci, sizeof pci, error) ||
	    !field_text(object, "xid", "uuid", false, uuid, sizeof uuid, error) ||
	    !field_int(object, "xid", "gi", false, 0, ATOM_MAX_NUMBER, &xid.gi, error) ||
	    !field_int(object, "xid", "ci", false, 0, ATOM_MAX_NUMBER, &xid.ci, error))
		return false;
	if (*pci && !pci_parse(pci, xid.pci))
		return error_field(error, "xid.pci", "must be as \"0000:1a:00.0\"");
	xid.has_uuid = *uuid != '\0';
	if (xid.has_uuid && !atom_uuid_parse(uuid, &xid.uuid))
		return error_field(error, "xid.uuid", "must be a UUID");
	*ret_xid = xid;
	return true;
}
