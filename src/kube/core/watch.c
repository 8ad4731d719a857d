#include "kube/core/watch.h"

#include "text/tree.h"

#include <stdio.h>

/* As a watch writes them; the first three in the order of enum kube_watch_kind. */
static const char *const TYPES[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", NULL};
#define TYPE_BOOKMARK 3
#define TYPE_ERROR    4

#define KEPT_LINE ((size_t)64 << 10) /* of its memory between two events */

void kube_watch_reader_deinit(struct kube_watch_reader *reader)
{
	if (!reader)
		return;
	buf_deinit(&reader->line);
	*reader = (struct kube_watch_reader){.resource = reader->resource};
}

void kube_watch_reader_begin(struct kube_watch_reader *reader)
{
	if (reader->line.capacity > KEPT_LINE)
		buf_deinit(&reader->line);
	buf_clear(&reader->line);
	reader->passing = false;
}

/* --- one event --- */

/* Of an answer without a version the first ADDED may be of what is there. */
static bool read_version(struct kube_watch_reader *reader, size_t type, const json_t *object,
			 struct error *error)
{
	const char *text;
	json_t *metadata;

	if (!tree_get_object(object, "metadata", "object", &metadata, error) ||
	    !tree_get_string(metadata, "resourceVersion", "object.metadata",
			     KUBE_WATCH_VERSION_SIZE - 1, &text, error))
		return false;
	if (type != KUBE_WATCH_ADDED || *reader->version)
		str_copy(reader->version, sizeof reader->version, text);
	return true;
}

/* An ERROR's object. Always false. */
static bool end_with(struct kube_watch_reader *reader, const json_t *status,
		     struct kube_answer *ret_end)
{
	char subject[KUBE_SUBJECT_SIZE];

	snprintf(subject, sizeof subject, "watch %ss", reader->resource->kind);
	kube_answer_of_status(subject, status, ret_end);
	if (ret_end->reason == KUBE_EXPIRED || reader->failed)
		reader->version[0] = '\0';
	reader->failed = true;
	return false;
}

/* Always false. */
static bool end_strange(struct kube_watch_reader *reader, struct error *error,
			struct kube_answer *ret_end)
{
	error_wrap(error, "watch %ss: what came is no event", reader->resource->kind);
	error_hint(error,
		   "Check that the kubeconfig's server is a Kubernetes API server, with nothing "
		   "before it that answers instead.");
	error->code = ERROR_UNAVAILABLE;
	*ret_end = (struct kube_answer){.reason = KUBE_STRANGE, .error = *error};
	reader->version[0] = '\0';
	return false;
}

static bool take_line(struct kube_watch_reader *reader, kube_watch_take_fn *take, void *arg,
		      struct kube_answer *ret_end)
{
	CLEANUP(tree) json_t *event = NULL;
	CLEANUP(tree) json_t *object = NULL;
	json_t *member;
	struct error error;
	size_t type;

	if (!tree_parse(reader->line.data, reader->line.length, KUBE_WATCH_MAX_EVENT, "event",
			&event, &error) ||
	    !tree_get_choice(event, "type", "", TYPES, &type, &error) ||
	    !tree_get_object(event, "object", "", &member, &error))
		return end_strange(reader, &error, ret_end);
	if (type == TYPE_ERROR)
		return end_with(reader, member, ret_end);
	if (!read_version(reader, type, member, &error))
		return end_strange(reader, &error, ret_end);
	reader->failed = false;
	reader->heard = true;
	if (type == TYPE_BOOKMARK)
		return true;
	object = json_incref(member);
	json_decref(TAKE(event)); /* the object is its taker's alone */
	take(arg, (enum kube_watch_kind)type, &object);
	return true;
}

/* --- lines --- */

static void add_part(struct kube_watch_reader *reader, const char *bytes, size_t length)
{
	if (reader->passing || length > KUBE_WATCH_MAX_EVENT - reader->line.length) {
		reader->passing = true;
		buf_clear(&reader->line);
		return;
	}
	buf_add(&reader->line, bytes, length);
}

static bool end_line(struct kube_watch_reader *reader, kube_watch_take_fn *take, void *arg,
		     struct kube_answer *ret_end)
{
	bool goes_on = reader->line.length == 0 || take_line(reader, take, arg, ret_end);

	reader->heard |= reader->passing;
	kube_watch_reader_begin(reader);
	return goes_on;
}

bool kube_watch_read(struct kube_watch_reader *reader, const char *bytes, size_t length,
		     kube_watch_take_fn *take, void *arg, struct kube_answer *ret_end)
{
	const char *end = bytes + length;

	while (bytes < end) {
		const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));

		add_part(reader, bytes, (size_t)((newline ? newline : end) - bytes));
		if (!newline)
			return true;
		if (!end_line(reader, take, arg, ret_end))
			return false;
		bytes = newline + 1;
	}
	return true;
}

/* --- asking again --- */

/* Half of what has doubled with each failure, and up to as much again. */
static int64_t backoff_ms(int failures, uint64_t random)
{
	int64_t delay = KUBE_WATCH_BACKOFF_MS;

	for (int i = 1; i < failures && delay < KUBE_WATCH_BACKOFF_MAX_MS; i++)
		delay *= 2;
	if (delay > KUBE_WATCH_BACKOFF_MAX_MS)
		delay = KUBE_WATCH_BACKOFF_MAX_MS;
	return delay / 2 + (int64_t)(random % (uint64_t)(delay / 2 + 1));
}

/* It may only be the moment; later, hardly. */
static int64_t refused_ms(const struct kube_watch_course *course, uint64_t random)
{
	if (course->refusals < KUBE_WATCH_REFUSALS)
		return backoff_ms(course->failures, random);
	return KUBE_WATCH_REFUSED_MS + (int64_t)(random % (KUBE_WATCH_REFUSED_MS / 10));
}

/* All who were turned away come back at that second: spread them a little. */
static int64_t told_ms(int64_t delay_ms, int64_t retry_after_s, uint64_t random)
{
	int64_t told =
		retry_after_s > KUBE_RETRY_AFTER_MAX_S ? KUBE_RETRY_AFTER_MAX_S : retry_after_s;

	return told * 1000 > delay_ms ? told * 1000 + (int64_t)(random % 1000) : delay_ms;
}

static bool is_refusal(enum kube_reason reason)
{
	return reason == KUBE_INVALID || reason == KUBE_FORBIDDEN || reason == KUBE_NOT_FOUND;
}

/* Not who has said when to come back, nor who will hardly be allowed. */
static bool may_hurry(const struct kube_watch_end *end, int refusals)
{
	return end->reason == KUBE_UNREACHED ||
	       (end->reason == KUBE_UNAVAILABLE && end->retry_after_s <= 0) ||
	       (is_refusal(end->reason) && refusals < KUBE_WATCH_REFUSALS);
}

struct kube_watch_next kube_watch_decide(const struct kube_watch_end *end)
{
	bool steady = end->lasted_ms >= KUBE_WATCH_STEADY_MS;
	struct kube_watch_next next = {0};
	struct kube_watch_course *course = &next.course;

	if (!steady)
		*course = end->before;
	course->failures += !steady;
	course->refusals = is_refusal(end->reason) ? course->refusals + 1 : 0;
	next.hasty = may_hurry(end, course->refusals);
	next.delay_ms = backoff_ms(course->failures, end->random);
	switch (end->reason) {
	case KUBE_DONE:
		next.delay_ms = steady ? 0 : next.delay_ms;
		break;
	case KUBE_UNREACHED:
	case KUBE_STRANGE:
		break;
	case KUBE_UNAUTHORIZED:
		next.renew = true;
		next.delay_ms = course->renewed ? next.delay_ms : 0;
		course->renewed = true;
		break;
	case KUBE_EXPIRED:
		next.anew = true;
		next.delay_ms = course->anew ? next.delay_ms : backoff_ms(1, end->random);
		course->anew = true;
		break;
	case KUBE_INVALID: /* the version, or else the whole request */
		next.anew = true;
		next.delay_ms = refused_ms(course, end->random);
		break;
	case KUBE_FORBIDDEN:
	case KUBE_NOT_FOUND:
		next.delay_ms = refused_ms(course, end->random);
		break;
	case KUBE_BUSY:
	case KUBE_UNAVAILABLE:
	case KUBE_ALREADY_EXISTS:
	case KUBE_CONFLICT:
	case KUBE_DISRUPTION:
		next.delay_ms = told_ms(next.delay_ms, end->retry_after_s, end->random);
		break;
	}
	next.anew |= end->silent_ms >= KUBE_WATCH_SILENT_MS;
	return next;
}
