#include "nvml/child.h"

#include "nvml/events.h"

#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define READ_SIZE 4096

struct talk {
	int socket;
	pthread_mutex_t lock; /* one frame at a time is written */
	struct buf in;        /* the main thread's */
};

/* False: bcd is gone. */
static bool send_all(int socket, const uint8_t *data, size_t length)
{
	while (length > 0) {
		ssize_t sent = send(socket, data, length, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return false;
		data += sent;
		length -= (size_t)sent;
	}
	return true;
}

/* Takes over `object`. False: bcd is gone, or it is larger than a frame. */
static bool say(struct talk *talk, json_t *object)
{
	CLEANUP(buf) struct buf out = {0};
	struct error error;
	bool sent;

	sent = frame_put(&out, object, &error);
	json_decref(object);
	if (!sent)
		return false;
	pthread_mutex_lock(&talk->lock);
	sent = send_all(talk->socket, out.data, out.length);
	pthread_mutex_unlock(&talk->lock);
	return sent;
}

static void say_error(struct talk *talk, const struct error *error)
{
	json_t *object = json_object();

	tree_set(object, "error", tree_string(error->what));
	tree_set(object, "code", tree_string(error_code_name(error->code)));
	if (*error->hint)
		tree_set(object, "hint", tree_string(error->hint));
	(void)!say(talk, object); /* the process ends in any case */
}

static void on_xid(void *arg, const struct frame_xid *xid)
{
	(void)!say(arg, frame_xid(xid)); /* the main thread sees that bcd is gone */
}

static void on_look(void *arg, const char *why)
{
	json_t *object = json_object();

	tree_set(object, "look", tree_string(why));
	(void)!say(arg, object);
}

/* The next question; false with the status to end with. */
static bool hear(struct talk *talk, int *ret_status)
{
	json_t *question = NULL;
	struct error error;
	uint8_t data[READ_SIZE];
	const char *op;
	ssize_t length;
	bool known;

	for (;;) {
		if (!frame_take(&talk->in, &question, &error)) {
			*ret_status = CHILD_END_TALK;
			return false;
		}
		if (question)
			break;
		length = recv(talk->socket, data, sizeof data, 0);
		if (length < 0 && errno == EINTR)
			continue;
		if (length <= 0) {
			*ret_status = CHILD_END_ASKED;
			return false;
		}
		buf_add(&talk->in, data, (size_t)length);
	}
	op = json_string_value(json_object_get(question, "op"));
	known = op && str_equal(op, "read");
	json_decref(question);
	if (!known)
		*ret_status = CHILD_END_TALK;
	return known;
}

static int serve(struct talk *talk, struct session *session)
{
	static const struct events_handlers handlers = {.on_xid = on_xid, .on_look = on_look};
	struct events *events = NULL;
	bool started = false;
	int status;

	while (hear(talk, &status)) {
		CLEANUP(reading) struct reading reading = {0};
		struct error error;
		json_t *answer;

		if (!session_read(session, &reading, &error)) {
			say_error(talk, &error);
			return CHILD_END_DRIVER;
		}
		if (!started)
			events = events_start(session, &handlers, talk);
		else
			events_follow(events, session);
		started = true;
		answer = json_object();
		tree_set(answer, "reading", reading_json(&reading));
		if (!say(talk, answer))
			return CHILD_END_ASKED;
	}
	return status;
}

/* The threads of events and of the driver go with the process: nothing is taken down before, and what
 * they may use stays up to the end. */
int nvml_child_run(int socket, const char *path, const char *root)
{
	static struct talk talk = {.lock = PTHREAD_MUTEX_INITIALIZER};
	static struct session session;
	struct error error;

	talk.socket = socket;
	prctl(PR_SET_NAME, "bcd-nvml");
	if (!session_open(path, root, &session, &error)) {
		say_error(&talk, &error);
		return CHILD_END_DRIVER;
	}
	return serve(&talk, &session);
}
