#include "serve/callers.h"

#include "pki/token.h"

struct callers {
	struct ratelimit *limits;
	struct ratelimit_rate key_rate, address_rate;
};

struct callers *callers_create(struct ratelimit_rate key_rate, struct ratelimit_rate address_rate)
{
	struct callers *callers = mem_alloc(sizeof *callers);

	callers->limits = ratelimit_create();
	callers->key_rate = key_rate;
	callers->address_rate = address_rate;
	return callers;
}

void callers_destroy(struct callers *callers)
{
	if (!callers)
		return;
	ratelimit_destroy(callers->limits);
	free(callers);
}

static uint64_t hash_text(const char *text)
{
	char hash[TOKEN_HASH_SIZE];

	token_hash(text, hash);
	hash[16] = '\0';
	return strtoull(hash, NULL, 16) | 1; /* 0 is nobody */
}

bool callers_may(struct callers *callers, const char *shown, const struct address *from,
		 struct mono now, struct caller *ret_caller, int64_t *ret_wait_ms)
{
	struct caller caller = {.key = shown ? hash_text(shown) : 0};
	char network[INET6_ADDRSTRLEN];
	bool may;

	if (caller.key && ratelimit_knows(callers->limits, caller.key)) {
		may = ratelimit_take(callers->limits, caller.key, callers->key_rate, now,
				     ret_wait_ms);
	} else {
		address_network(from, network);
		caller.address = hash_text(network);
		may = ratelimit_may(callers->limits, caller.address, callers->address_rate, now,
				    ret_wait_ms);
	}
	*ret_caller = caller;
	return may;
}

void callers_note(struct callers *callers, const struct caller *caller, enum callers_key key,
		  struct mono now)
{
	int64_t wait_ms;

	if (!caller->address)
		return;
	switch (key) {
	case CALLERS_UNASKED:
		return;
	case CALLERS_OPENED:
		ratelimit_take(callers->limits, caller->key, callers->key_rate, now, &wait_ms);
		return;
	case CALLERS_REFUSED:
		ratelimit_take(callers->limits, caller->address, callers->address_rate, now,
			       &wait_ms);
		return;
	}
}
