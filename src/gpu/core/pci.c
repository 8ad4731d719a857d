#include "gpu/core/pci.h"

#include <stdio.h>

#define MAX_DOMAIN 0xfffffff /* what the canonical form has room for */

/* `min` to `max` hex digits and no more. */
static const char *take_hex(const char *text, size_t min, size_t max, unsigned *ret_number)
{
	size_t digits = strspn(text, "0123456789abcdefABCDEF");

	if (digits < min || digits > max)
		return NULL;
	*ret_number = (unsigned)strtoul(text, NULL, 16);
	return text + digits;
}

static const char *take_colon(const char *text)
{
	return text && *text == ':' ? text + 1 : NULL;
}

const char *pci_take(const char *text, char out[INVENTORY_PCI_SIZE])
{
	unsigned domain, bus, device, function = 0;

	if (str_starts(text, "PCI:"))
		text += strlen("PCI:");
	if (!(text = take_colon(take_hex(text, 4, 8, &domain))) ||
	    !(text = take_hex(text, 2, 2, &bus)) || !(text = take_colon(text)) ||
	    !(text = take_hex(text, 2, 2, &device)))
		return NULL;
	/* A sentence may end behind an id without function: only a digit makes it one. */
	if (*text == '.' && text[1] >= '0' && text[1] <= '7') {
		function = (unsigned)(text[1] - '0');
		text += 2;
	}
	if (domain > MAX_DOMAIN || device > 0x1f)
		return NULL;
	snprintf(out, INVENTORY_PCI_SIZE, "%04x:%02x:%02x.%u", domain, bus, device, function);
	return text;
}

bool pci_parse(const char *text, char out[INVENTORY_PCI_SIZE])
{
	char pci[INVENTORY_PCI_SIZE];

	text += strspn(text, " \t");
	if (!(text = pci_take(text, pci)) || text[strspn(text, " \t")] != '\0')
		return false;
	return str_copy(out, INVENTORY_PCI_SIZE, pci);
}
