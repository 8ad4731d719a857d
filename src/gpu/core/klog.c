#include "gpu/core/klog.h"

#include "gpu/core/pci.h"
#include "gpu/core/xid.h"

#define FACILITY_SHIFT 3 /* below are the level's bits */
#define TEXT_MAX       1024

/* Decimal digits up to `end`; moves past them. */
static bool take_number(const char **text, char end, uint64_t *ret_number)
{
	const char *at = *text;
	uint64_t number = 0;

	if (*at < '0' || *at > '9')
		return false;
	for (; *at >= '0' && *at <= '9'; at++) {
		if (number > (UINT64_MAX - 9) / 10)
			return false;
		number = number * 10 + (uint64_t)(*at - '0');
	}
	if (*at != end)
		return false;
	*text = at + 1;
	*ret_number = number;
	return true;
}

static bool is_word_end(char c)
{
	return c == '\0' || c == ' ' || c == ',' || c == '.' || c == ')';
}

static bool has_word(const char *text, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || is_word_end(at[-1])) && is_word_end(at[length]))
			return true;
	return false;
}

/* "NVRM: Xid (PCI:0000:1a:00): 79, …"; in MIG mode more stands behind the place, old drivers leave
 * "PCI:" out. What follows the number is for people, but for two words. */
static void read_xid(const char *text, struct klog_event *event)
{
	char pci[INVENTORY_PCI_SIZE];
	const char *at = pci_take(text, pci);
	int32_t xid = 0;

	at = at ? strstr(at, "): ") : NULL;
	if (!at)
		return;
	at += strlen("): ");
	if (*at < '1' || *at > '9')
		return;
	for (; *at >= '0' && *at <= '9'; at++) {
		xid = xid * 10 + (*at - '0');
		if (xid > XID_MAX)
			return;
	}
	if (!is_word_end(*at))
		return;
	event->kind = KLOG_XID;
	event->xid = xid;
	/* A program may call itself so: the driver says one of both. */
	event->nonfatal = has_word(at, "Nonfatal") && !has_word(at, "Fatal");
	if (xid == XID_RECOVERY_CHANGED) {
		event->recovered = strstr(at, " to 0x0 (None)");
		event->advised = !event->recovered && strstr(at, " to 0x");
	}
	str_copy(event->pci, sizeof event->pci, pci);
}

/* "nvidia 0000:1a:00.0: reset done", as the kernel writes it of any device. */
static void read_reset(const char *text, struct klog_event *event)
{
	const char *at = strchr(text, ' ');
	char pci[INVENTORY_PCI_SIZE];

	at = at ? pci_take(at + 1, pci) : NULL;
	if (!at || !str_equal(at, ": reset done"))
		return;
	event->kind = KLOG_RESET;
	str_copy(event->pci, sizeof event->pci, pci);
}

bool klog_parse(const char *record, size_t length, struct klog_event *ret_event)
{
	static const char xid[] = "NVRM: Xid (", loaded[] = "NVRM: loading NVIDIA UNIX";
	struct klog_event event = {.kind = KLOG_NOTHING};
	const char *at = memchr(record, ';', length);
	char head[128], text[TEXT_MAX];
	uint64_t priority, time;
	size_t size;

	if (!at || (size_t)(at - record) >= sizeof head)
		return false;
	memcpy(head, record, (size_t)(at - record));
	head[at - record] = '\0';
	at++;
	size = length - (size_t)(at - record);
	size = size < sizeof text ? size : sizeof text - 1;
	memcpy(text, at, size);
	text[size] = '\0';
	text[strcspn(text, "\n")] = '\0';
	at = head;
	if (!take_number(&at, ',', &priority) || !take_number(&at, ',', &event.sequence) ||
	    !take_number(&at, ',', &time))
		return false;
	if (priority >> FACILITY_SHIFT == 0) {
		if (str_starts(text, xid))
			read_xid(text + strlen(xid), &event);
		else if (str_starts(text, loaded))
			event.kind = KLOG_LOADED;
		else
			read_reset(text, &event);
	}
	*ret_event = event;
	return true;
}
