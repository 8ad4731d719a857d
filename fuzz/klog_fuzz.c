#include "gpu/core/klog.h"
#include "gpu/core/pci.h"
#include "gpu/core/xid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is believed is whole: a place in its one form, a number that there can be. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct klog_event event;
	char pci[INVENTORY_PCI_SIZE];

	if (!klog_parse((const char *)data, size, &event))
		return 0;
	if (event.kind == KLOG_XID && (event.xid < 1 || event.xid > XID_MAX))
		abort();
	if ((event.kind == KLOG_XID || event.kind == KLOG_RESET) &&
	    (!pci_parse(event.pci, pci) || !str_equal(pci, event.pci)))
		abort();
	return 0;
}
