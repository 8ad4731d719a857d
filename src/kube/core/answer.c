#include "kube/core/answer.h"

#include "text/tree.h"

#include <stdio.h>

#define SAID_SIZE 240 /* of a server's words in our message */

void kube_answer_deinit(struct kube_answer *answer)
{
	if (!answer)
		return;
	json_decref(answer->body);
	*answer = (struct kube_answer){0};
}

const char *kube_reason_name(enum kube_reason reason)
{
	static const char *const NAMES[] = {
		[KUBE_DONE] = "done",
		[KUBE_INVALID] = "invalid",
		[KUBE_UNAUTHORIZED] = "unauthorized",
		[KUBE_FORBIDDEN] = "forbidden",
		[KUBE_NOT_FOUND] = "not found",
		[KUBE_ALREADY_EXISTS] = "already exists",
		[KUBE_CONFLICT] = "conflict",
		[KUBE_EXPIRED] = "expired",
		[KUBE_DISRUPTION] = "held back by a disruption budget",
		[KUBE_BUSY] = "too many requests",
		[KUBE_UNAVAILABLE] = "unavailable",
		[KUBE_STRANGE] = "no answer of an API server",
		[KUBE_UNREACHED] = "no answer",
	};

	return NAMES[reason];
}

/* Each reason's code, and what to do about it. */
static const struct {
	enum error_code code;
	const char *hint;
} MEANING[] = {
	[KUBE_DONE] = {ERROR_NONE, NULL},
	[KUBE_INVALID] = {ERROR_INVALID_INPUT, NULL},
	[KUBE_UNAUTHORIZED] =
		{ERROR_UNAUTHENTICATED,
		 "Check that the kubeconfig's certificate or token is of this cluster "
		 "and hasn't run out."},
	[KUBE_FORBIDDEN] =
		{ERROR_FORBIDDEN,
		 "A node is told this also of what isn't there, and for a moment after a "
		 "change; else its role lacks the right."},
	[KUBE_NOT_FOUND] = {ERROR_NOT_FOUND, NULL},
	[KUBE_ALREADY_EXISTS] = {ERROR_CONFLICT, NULL},
	[KUBE_CONFLICT] = {ERROR_CONFLICT, "It has changed meanwhile: read it again."},
	[KUBE_EXPIRED] = {ERROR_INVALID_STATE, "Start the list again."},
	[KUBE_DISRUPTION] = {ERROR_INVALID_STATE,
			     "A PodDisruptionBudget doesn't allow this eviction now."},
	[KUBE_BUSY] = {ERROR_RATE_LIMITED, "The API server is busy: try again later."},
	[KUBE_UNAVAILABLE] = {ERROR_UNAVAILABLE,
			      "Try again later, or look at the API server's log."},
	[KUBE_STRANGE] = {ERROR_UNAVAILABLE,
			  "Check that the kubeconfig's server is a Kubernetes API server, with "
			  "nothing before it that answers instead."},
	[KUBE_UNREACHED] = {ERROR_UNAVAILABLE, NULL},
};

/* --- the Status --- */

static const char *text_in(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static const json_t *causes_of(const json_t *status)
{
	return json_object_get(json_object_get(status, "details"), "causes");
}

static bool has_cause(const json_t *status, const char *reason)
{
	size_t i;
	json_t *cause;

	json_array_foreach(causes_of(status), i, cause)
	{
		if (str_equal(text_in(cause, "reason"), reason))
			return true;
	}
	return false;
}

/* --- is it an answer to what was asked? --- */

static bool is_success(int status)
{
	return status >= 200 && status <= 299;
}

static bool is_status(const json_t *body)
{
	return str_equal(text_in(body, "kind"), "Status") &&
	       str_equal(text_in(body, "apiVersion"), "v1");
}

static bool is_empty_or(const char *text, const char *wanted)
{
	return !*text || str_equal(text, wanted);
}

/* A Status's details name the collection ("pods") and the object, where they are there. An object can't
 * be where its namespace isn't. */
static bool is_about(const json_t *status, const struct kube_wanted *wanted)
{
	const json_t *details = json_object_get(status, "details");
	const char *kind = text_in(details, "kind"), *name = text_in(details, "name");

	if (!wanted->resource)
		return true;
	if (str_equal(kind, "namespaces") && *wanted->namespace)
		return str_equal(name, wanted->namespace);
	return (is_empty_or(kind, wanted->resource->plural) ||
		strcasecmp(kind, wanted->resource->object) == 0) &&
	       is_empty_or(text_in(details, "group"), wanted->resource->group) &&
	       (!*wanted->name || is_empty_or(name, wanted->name));
}

/* Something before an API server may make a Status of its own page's absence; that one says of what. */
static bool says_of_what(const json_t *status, const struct kube_wanted *wanted)
{
	const json_t *details = json_object_get(status, "details");

	return !wanted->resource ||
	       (*text_in(details, "kind") && (!*wanted->name || *text_in(details, "name")));
}

/* Not what anything on the way says of a page it doesn't have. */
static bool is_refusal(const json_t *body, const char *reason, const struct kube_wanted *wanted)
{
	return is_status(body) && str_equal(text_in(body, "status"), "Failure") &&
	       str_equal(text_in(body, "reason"), reason) && is_about(body, wanted);
}

static bool is_of_version(const json_t *object, const struct kube_resource *resource)
{
	const char *text = text_in(object, "apiVersion");
	size_t length = strlen(resource->group);

	if (length > 0) {
		if (!str_starts(text, resource->group) || text[length] != '/')
			return false;
		text += length + 1;
	}
	return str_equal(text, resource->version);
}

static bool is_of_kind(const json_t *object, const struct kube_wanted *wanted)
{
	const char *kind = text_in(object, "kind"), *name = wanted->resource->object;

	return str_starts(kind, name) &&
	       str_equal(kind + strlen(name), wanted->form == KUBE_FORM_LIST ? "List" : "") &&
	       is_of_version(object, wanted->resource);
}

static bool is_the_one(const json_t *object, const struct kube_wanted *wanted)
{
	const json_t *metadata = json_object_get(object, "metadata");

	return str_equal(text_in(metadata, "name"), wanted->name) &&
	       str_equal(text_in(metadata, "namespace"), wanted->namespace);
}

/* Is a 2xx with this object what was asked for? */
static bool is_wanted(const json_t *body, const struct kube_wanted *wanted)
{
	bool done = is_status(body) && str_equal(text_in(body, "status"), "Success");

	switch (wanted->form) {
	case KUBE_FORM_ANY:
		return done || !str_equal(text_in(body, "kind"), "Status");
	case KUBE_FORM_LIST:
		return is_of_kind(body, wanted);
	case KUBE_FORM_OBJECT:
		return is_of_kind(body, wanted) && is_the_one(body, wanted);
	case KUBE_FORM_DELETION:
		return (done && is_about(body, wanted)) ||
		       (is_of_kind(body, wanted) && is_the_one(body, wanted));
	case KUBE_FORM_EVICTION:
		return done && is_about(body, wanted);
	}
	abort();
}

/* The server has never been where the version says: it was put back. API servers before 1.19 say so in words only. */
static bool is_ahead(const json_t *status)
{
	size_t i;
	json_t *cause;

	json_array_foreach(causes_of(status), i, cause)
	{
		if (str_equal(text_in(cause, "message"), "Too large resource version"))
			return true;
	}
	return has_cause(status, "ResourceVersionTooLarge");
}

static enum kube_reason reason_of(int status, const json_t *body, const struct kube_wanted *wanted)
{
	if (is_success(status))
		return body && is_wanted(body, wanted) ? KUBE_DONE : KUBE_STRANGE;
	if (status == 504 && is_ahead(body))
		return KUBE_EXPIRED;
	switch (status) {
	case 400:
	case 405:
	case 406:
	case 413:
	case 415:
	case 422:
		return KUBE_INVALID;
	case 401:
		return KUBE_UNAUTHORIZED;
	case 403:
		return KUBE_FORBIDDEN;
	case 404:
		return is_refusal(body, "NotFound", wanted) && says_of_what(body, wanted)
			       ? KUBE_NOT_FOUND
			       : KUBE_STRANGE;
	case 409:
		if (is_refusal(body, "AlreadyExists", wanted))
			return KUBE_ALREADY_EXISTS;
		/* An apply's has the fields alone. */
		return is_refusal(body, "Conflict", wanted) &&
				       (wanted->form != KUBE_FORM_DELETION ||
					says_of_what(body, wanted))
			       ? KUBE_CONFLICT
			       : KUBE_STRANGE;
	case 410:
		return KUBE_EXPIRED;
	case 429:
		return has_cause(body, "DisruptionBudget") ? KUBE_DISRUPTION : KUBE_BUSY;
	default:
		return status >= 500 && status <= 599 ? KUBE_UNAVAILABLE : KUBE_STRANGE;
	}
}

/* A server's words for our messages: one line of visible characters. */
static void add_said(char out[SAID_SIZE], const char *text, size_t length)
{
	size_t used = 0;

	for (size_t i = 0; i < length && used < SAID_SIZE - 1; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == 0x7f || (c <= ' ' && (used == 0 || out[used - 1] == ' ')))
			continue;
		out[used++] = c <= ' ' ? ' ' : (char)c;
	}
	while (used > 0 && out[used - 1] == ' ')
		used--;
	out[used] = '\0';
}

/* What came instead of what was asked for, and what it says. */
static void add_stranger(char out[SAID_SIZE], const json_t *body, const struct kube_wanted *wanted)
{
	CLEANUP(buf) struct buf said = {0};
	const char *kind = text_in(body, "kind"), *message = text_in(body, "message");
	const char *name = text_in(json_object_get(body, "metadata"), "name");

	buf_printf(&said, *kind ? "it is a %.64s" : "it is an object without a kind", kind);
	if (*name)
		buf_printf(&said, " '%.64s'", name);
	if (wanted->form == KUBE_FORM_EVICTION)
		buf_add_text(&said, ", no Status of success");
	else if (wanted->resource)
		buf_printf(&said, ", not the %s%s", wanted->resource->object,
			   wanted->form == KUBE_FORM_LIST ? "List" : "");
	if (wanted->resource)
		buf_add_text(&said, " that was asked for");
	if (*message)
		buf_printf(&said, ": %s", message);
	add_said(out, buf_text(&said), said.length);
}

static void add_causes(char out[KUBE_CAUSES_SIZE], const json_t *status)
{
	CLEANUP(buf) struct buf all = {0};
	size_t i;
	json_t *cause;

	json_array_foreach(causes_of(status), i, cause)
	{
		char said[SAID_SIZE];
		const char *message = text_in(cause, "message");

		add_said(said, message, strlen(message));
		if (*said && all.length < KUBE_CAUSES_SIZE)
			buf_printf(&all, "%s%s", all.length ? "; " : "", said);
	}
	str_copy(out, KUBE_CAUSES_SIZE, buf_text(&all));
}

/* Who set which field: often half of an object. */
static void drop_managed_fields(json_t *object)
{
	size_t i;
	json_t *item;

	json_object_del(json_object_get(object, "metadata"), "managedFields");
	json_array_foreach(json_object_get(object, "items"), i, item)
	{
		json_object_del(json_object_get(item, "metadata"), "managedFields");
	}
}

static void fail(struct kube_answer *answer, const char *subject, const char *said)
{
	const char *hint = MEANING[answer->reason].hint;

	error_set(&answer->error, MEANING[answer->reason].code,
		  "%s: the API server says %d (%s)%s%s", subject, answer->status,
		  kube_reason_name(answer->reason), *said ? ": " : "", said);
	if (hint)
		error_hint(&answer->error, "%s", hint);
}

/* What the server says of a failure. `status` may be NULL. */
static void read_failure(struct kube_answer *answer, const char *subject, const json_t *status,
			 const char *said)
{
	json_t *wait = json_object_get(json_object_get(status, "details"), "retryAfterSeconds");

	if (answer->retry_after_s <= 0 && json_integer_value(wait) > 0)
		answer->retry_after_s = json_integer_value(wait);
	add_causes(answer->causes, status);
	fail(answer, subject, said);
}

void kube_answer_read(const struct kube_request *request, int status, int64_t retry_after_s,
		      const void *body, size_t length, struct kube_answer *ret_answer)
{
	CLEANUP(tree) json_t *tree = NULL;
	char said[SAID_SIZE] = "";
	struct error ignored; /* what is no JSON is told as the text it is */
	struct kube_answer answer = {.status = status, .retry_after_s = retry_after_s};

	if (!tree_parse(body, length, KUBE_MAX_ANSWER, "answer", &tree, &ignored) ||
	    !json_is_object(tree))
		add_said(said, body, length);
	else
		add_said(said, text_in(tree, "message"), strlen(text_in(tree, "message")));
	if (!json_is_object(tree)) {
		json_decref(tree);
		tree = NULL;
	}
	answer.reason = reason_of(status, tree, &request->wanted);
	if (answer.reason == KUBE_DONE) {
		drop_managed_fields(tree);
		answer.body = TAKE(tree);
	} else {
		if (tree && is_success(status))
			add_stranger(said, tree, &request->wanted);
		read_failure(&answer, request->subject, tree, said);
	}
	*ret_answer = answer;
}

void kube_answer_of_status(const char *subject, const json_t *status,
			   struct kube_answer *ret_answer)
{
	static const struct kube_wanted ANY = {0};
	json_int_t code = json_integer_value(json_object_get(status, "code"));
	const char *message = text_in(status, "message");
	char said[SAID_SIZE];
	struct kube_answer answer = {.status = code >= 400 && code <= 599 ? (int)code : 0};

	add_said(said, message, strlen(message));
	answer.reason = reason_of(answer.status, status, &ANY);
	read_failure(&answer, subject, status, said);
	*ret_answer = answer;
}

bool kube_answer_deleted(const struct kube_answer *answer)
{
	return answer->reason == KUBE_DONE || answer->reason == KUBE_NOT_FOUND ||
	       answer->reason == KUBE_CONFLICT;
}

/* --- asking again --- */

static struct kube_next again(const struct kube_try *outcome, int64_t delay_ms)
{
	if (outcome->tries >= KUBE_TRIES || delay_ms >= outcome->left_ms)
		return (struct kube_next){KUBE_GIVE_UP, 0};
	return (struct kube_next){KUBE_AGAIN, delay_ms};
}

/* Half of what has doubled with each try, and up to as much again. */
static int64_t backoff_ms(const struct kube_try *outcome)
{
	int64_t delay = KUBE_BACKOFF_MS;

	for (int i = 1; i < outcome->tries && delay < KUBE_BACKOFF_MAX_MS; i++)
		delay *= 2;
	if (delay > KUBE_BACKOFF_MAX_MS)
		delay = KUBE_BACKOFF_MAX_MS;
	return delay / 2 + (int64_t)(outcome->random % (uint64_t)(delay / 2 + 1));
}

static struct kube_next after_answer(const struct kube_try *outcome)
{
	const struct kube_answer *answer = outcome->answer;
	int64_t wait_s = answer->retry_after_s;
	bool later = false, renew = false;

	switch (answer->reason) {
	case KUBE_UNAUTHORIZED:
		renew = !outcome->renewed && outcome->tries < KUBE_TRIES;
		break;
	case KUBE_BUSY: /* turned away at the door: nothing was done */
		later = true;
		break;
	case KUBE_UNAVAILABLE:
		later = outcome->repeatable;
		break;
	case KUBE_DONE:
	case KUBE_INVALID:
	case KUBE_FORBIDDEN:
	case KUBE_NOT_FOUND:
	case KUBE_ALREADY_EXISTS:
	case KUBE_CONFLICT:
	case KUBE_EXPIRED:
	case KUBE_DISRUPTION:
	case KUBE_STRANGE:
	case KUBE_UNREACHED:
		break;
	}
	if (renew)
		return (struct kube_next){KUBE_AGAIN_RENEWED, 0};
	if (!later || wait_s > KUBE_RETRY_AFTER_MAX_S)
		return (struct kube_next){KUBE_GIVE_UP, 0};
	/* All who were turned away come back at that second: spread them a little. */
	return again(outcome, wait_s > 0 ? wait_s * 1000 + (int64_t)(outcome->random % 250)
					 : backoff_ms(outcome));
}

struct kube_next kube_try_decide(const struct kube_try *outcome)
{
	assert(outcome->tries >= 1);
	switch (outcome->way) {
	case KUBE_WAY_ANSWERED:
		return after_answer(outcome);
	case KUBE_WAY_UNSENT:
	case KUBE_WAY_CREDENTIALS:
		return again(outcome, backoff_ms(outcome));
	case KUBE_WAY_BROKEN:
		return outcome->repeatable ? again(outcome, backoff_ms(outcome))
					   : (struct kube_next){KUBE_GIVE_UP, 0};
	case KUBE_WAY_HOPELESS:
		return (struct kube_next){KUBE_GIVE_UP, 0};
	}
	abort();
}
