#include "serve/issue.h"

#include "pki/cert.h"

static enum cert_role role_of(enum control_trust trust)
{
	switch (trust) {
	case CONTROL_TRUST_PLATFORM:
	case CONTROL_TRUST_TENANT_OWNED:
		return CERT_ROLE_NODE;
	case CONTROL_TRUST_TENANT_CONTROLLED:
		return CERT_ROLE_NODE_TENANT;
	}
	abort();
}

bool issue_node(const struct pki_folder *pki, const struct pki_key *key, const char *node_id,
		enum control_trust trust, struct wall now, struct buf *ret_pem, struct error *error)
{
	const struct cert_issuer issuer = {pki->node_ca_pem, pki->node_ca_key};

	return cert_issue_node(&issuer, key, node_id, role_of(trust), now, ret_pem, error);
}
