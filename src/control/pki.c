#include "control/work.h"
#include "pki/rotation.h"
#include "sys/clock.h"

static bool add_authority(json_t *list, const char *authority, const char *use, const char *pem,
			  struct error *error)
{
	struct cert_info info;

	if (!pem)
		return true;
	if (!cert_read(pem, strlen(pem), &info, error))
		return false;
	json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "authority", authority,
					      "use", use, "pin", info.key_pin, "notBefore",
					      work_time(info.not_before.ms), "notAfter",
					      work_time(info.not_after.ms)));
	return true;
}

static bool describe(const struct pki_folder *folder, struct wall now, json_t **ret_answer,
		     struct error *error)
{
	CLEANUP(json_ref) json_t *list = json_array();
	enum pki_stage stage = pki_folder_stage(folder, now);
	const struct pki_folder *next = folder->next;
	struct pki_pin_texts pins;

	pki_folder_pin_texts(folder, &pins);
	if (!add_authority(list, "serving", "current", folder->serving_ca_pem, error) ||
	    !add_authority(list, "serving", "next", next ? next->serving_ca_pem : NULL, error) ||
	    !add_authority(list, "node", "current", folder->node_ca_pem, error) ||
	    !add_authority(list, "node", "next", next ? next->node_ca_pem : NULL, error) ||
	    !add_authority(list, "node", "old",
			   pki_folder_has_old(folder, now) ? folder->old_node_ca_pem : NULL, error))
		return false;
	*ret_answer =
		json_pack("{s:s, s:{s:s, s:s, s:s}, s:O}", "stage", pki_stage_name(stage), "pins",
			  "caPins", pins.gateway_ca, "encryptionPins", pins.join_encryption,
			  "signingPins", pins.join_signing, "authorities", list);
	if (pki_folder_has_old(folder, now))
		json_object_set_new(*ret_answer, "oldNodesUntil",
				    work_time(folder->finished.ms + PKI_OLD_NODE_MS));
	return true;
}

/* Nothing of it is in the database. */
bool control_pki_get(struct control *control, const struct control_call *call, json_t **ret_answer,
		     struct error *error)
{
	struct pki_folder folder = {0};
	bool done;

	if (!access_check(call->principal, ACCESS_PKI_READ, error))
		return false;
	if (!control->pki_folder)
		return error_set(error, ERROR_UNAVAILABLE, "this program has no keys of its own");
	if (!pki_folder_load(control->pki_folder, &folder, error))
		return false;
	done = describe(&folder, clock_wall(), ret_answer, error);
	pki_folder_deinit(&folder);
	return done;
}
