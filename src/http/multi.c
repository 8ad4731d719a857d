#include "http/multi.h"

#include "base/vec.h"
#include "http/exchange.h"

/* A descriptor that libcurl wants watched. */
struct watched {
	struct http_multi *multi;
	struct loop_poll *poll;
	curl_socket_t fd;
	struct watched *next, **at;
};

struct http_call {
	struct http_multi *multi;
	CURL *curl;
	struct exchange exchange;
	struct curl_slist *connect_to;
	char *url, *body;
	char *ca_source, *certificate_source, *trust_hint;
	http_take_fn *on_data; /* of a stream, with what isn't handed on yet */
	struct buf come;
	bool begun; /* on_data was told so */
	bool *gone; /* set while on_data runs: destroyed by it */
	http_multi_fn *fn;
	void *arg;
	bool refused, ended;
	CURLcode rc;
	struct error error; /* of a refused one */
	struct http_call *next, **at;
};

struct http_multi {
	CURLM *curl;
	struct loop *loop;
	struct loop_timer *timer;
	struct loop_defer *settle;
	struct watched *watched;
	struct http_call *calls; /* newest first */
	struct http_multi
		*streams; /* that the streams are on, with connections of their own; or NULL */
	bool *gone;       /* set while callbacks run: destroyed by one of them */
};

static void must(CURLMcode rc)
{
	if (rc != CURLM_OK)
		abort(); /* only out of memory or a wrong program */
}

static void must_set(CURLcode rc)
{
	if (rc != CURLE_OK)
		abort();
}

/* --- libcurl's events on our loop --- */

static void on_ready(void *arg, int events)
{
	struct watched *watched = arg;
	struct http_multi *multi = watched->multi; /* it may be gone after this */
	int running;

	static_assert(LOOP_READABLE == CURL_CSELECT_IN && LOOP_WRITABLE == CURL_CSELECT_OUT,
		      "one set of events");
	curl_multi_socket_action(multi->curl, watched->fd, events, &running);
	loop_defer_arm(multi->settle);
}

static void on_time(void *arg)
{
	struct http_multi *multi = arg;
	int running;

	curl_multi_socket_action(multi->curl, CURL_SOCKET_TIMEOUT, 0, &running);
	loop_defer_arm(multi->settle);
}

static int want_time(CURLM *curl UNUSED, long timeout_ms, void *arg)
{
	struct http_multi *multi = arg;

	if (timeout_ms < 0)
		loop_timer_stop(multi->timer);
	else
		loop_timer_start(multi->timer, timeout_ms);
	return 0;
}

static void watched_destroy(struct watched *watched)
{
	loop_poll_destroy(watched->poll);
	*watched->at = watched->next;
	if (watched->next)
		watched->next->at = watched->at;
	free(watched);
}

static struct watched *watched_create(struct http_multi *multi, curl_socket_t fd, int events)
{
	struct watched *watched = mem_alloc(sizeof *watched);

	*watched = (struct watched){
		.multi = multi, .fd = fd, .next = multi->watched, .at = &multi->watched};
	if (watched->next)
		watched->next->at = &watched->next;
	multi->watched = watched;
	watched->poll = loop_poll_create(multi->loop, fd, events, on_ready, watched);
	return watched;
}

static int want_socket(CURL *easy UNUSED, curl_socket_t fd, int what, void *arg, void *known)
{
	struct http_multi *multi = arg;
	struct watched *watched = known;
	int events = 0;

	if (what == CURL_POLL_REMOVE) {
		if (watched)
			watched_destroy(watched);
		return 0;
	}
	events |= what & CURL_POLL_IN ? LOOP_READABLE : 0;
	events |= what & CURL_POLL_OUT ? LOOP_WRITABLE : 0;
	if (watched)
		loop_poll_set(watched->poll, events);
	else
		must(curl_multi_assign(multi->curl, fd, watched_create(multi, fd, events)));
	return 0;
}

/* --- calls --- */

static void call_destroy(struct http_call *call)
{
	if (call->gone)
		*call->gone = true;
	if (!call->refused)
		curl_multi_remove_handle(call->multi->curl, call->curl);
	curl_easy_cleanup(call->curl);
	exchange_deinit(&call->exchange);
	curl_slist_free_all(call->connect_to);
	free(call->url);
	free(call->body);
	free(call->ca_source);
	free(call->certificate_source);
	free(call->trust_hint);
	buf_deinit(&call->come);
	*call->at = call->next;
	if (call->next)
		call->next->at = call->at;
	free(call);
}

void http_call_cancel(struct http_call *call)
{
	if (call)
		call_destroy(call);
}

static enum http_way way_of(const struct http_call *call)
{
	curl_off_t sent = 0, connect_us = 0;
	long request_size = 0;

	if (call->exchange.too_large)
		return HTTP_HOPELESS;
	switch ((int)call->rc) {
	case CURLE_SSL_CERTPROBLEM:
		return HTTP_CREDENTIALS;
	case CURLE_URL_MALFORMAT:
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return HTTP_HOPELESS;
	default:
		break;
	}
	/* A request to a proxy counts here too: then the connect isn't through. */
	curl_easy_getinfo(call->curl, CURLINFO_REQUEST_SIZE, &request_size);
	curl_easy_getinfo(call->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
	curl_easy_getinfo(call->curl, CURLINFO_PRETRANSFER_TIME_T, &connect_us);
	return (request_size == 0 && sent == 0) || connect_us == 0 ? HTTP_UNSENT : HTTP_BROKEN;
}

/* Tells one that has ended. False when the multi is gone after it. */
static bool tell(struct http_multi *multi, struct http_call *call)
{
	struct exchange exchange = {0};
	struct error error = call->error;
	http_multi_fn *fn = call->fn;
	void *arg = call->arg;
	enum http_way way = HTTP_HOPELESS;
	bool gone = false;

	if (!call->refused && call->rc == CURLE_OK) {
		way = HTTP_ANSWERED;
		exchange_finish(&call->exchange, call->curl);
		exchange.answer = call->exchange.answer;
		call->exchange.answer = (struct http_answer){0};
	} else if (!call->refused) {
		way = way_of(call);
		exchange_failed(&call->exchange, call->rc, call->url, &error);
	}
	call_destroy(call);
	multi->gone = &gone;
	fn(arg, way, way == HTTP_ANSWERED ? &exchange.answer : NULL,
	   way == HTTP_ANSWERED ? NULL : &error);
	exchange_deinit(&exchange);
	if (!gone)
		multi->gone = NULL;
	return !gone;
}

static void note_ended(struct http_multi *multi)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(multi->curl, &left))) {
		struct http_call *call;

		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
		call->ended = true;
		call->rc = message->data.result;
	}
}

/* The oldest one that has ended: they are told in the order they were started. */
static struct http_call *next_ended(const struct http_multi *multi)
{
	struct http_call *found = NULL;

	for (struct http_call *call = multi->calls; call; call = call->next)
		if (call->ended)
			found = call;
	return found;
}

/* --- streams --- */

/* Inside libcurl, where nobody may end a call: they hear of it in settle(). */
static bool on_piece(void *arg, const char *data, size_t length, struct error *error UNUSED)
{
	struct http_call *call = arg;

	buf_add(&call->come, data, length);
	return true;
}

static bool has_news(const struct http_call *call)
{
	long status = 0;

	if (!call->on_data || call->exchange.refused)
		return false;
	if (!call->begun)
		curl_easy_getinfo(call->curl, CURLINFO_RESPONSE_CODE, &status);
	return status == 200 || call->come.length > 0;
}

static struct http_call *next_with_news(const struct http_multi *multi)
{
	struct http_call *found = NULL;

	for (struct http_call *call = multi->calls; call; call = call->next)
		if (has_news(call))
			found = call;
	return found;
}

/* What has come of it, or that it has begun. False when the multi is gone after it. */
static bool hand_on(struct http_multi *multi, struct http_call *call)
{
	CLEANUP(buf) struct buf come = {0};
	bool gone = false, call_gone = false, goes_on;
	struct error error = {0};

	if (call->begun) {
		come = call->come;
		call->come = (struct buf){0};
	}
	call->begun = true;
	multi->gone = &gone;
	call->gone = &call_gone;
	goes_on = call->on_data(call->arg, buf_text(&come), come.length, &error);
	if (!gone)
		multi->gone = NULL;
	if (call_gone)
		return !gone;
	call->gone = NULL;
	if (!goes_on) {
		call->exchange.refused = call->ended = true;
		call->exchange.error = error;
		call->rc = CURLE_WRITE_ERROR;
	}
	return true;
}

static void settle(void *arg)
{
	struct http_multi *multi = arg;
	struct http_call *call;

	note_ended(multi);
	while ((call = next_with_news(multi)))
		if (!hand_on(multi, call))
			return;
	while ((call = next_ended(multi)))
		if (!tell(multi, call))
			return;
}

/* --- starting one --- */

static void set_blob(CURL *curl, CURLoption option, const char *text)
{
	struct curl_blob blob = {
		.data = (void *)text, .len = strlen(text), .flags = CURL_BLOB_COPY};

	must_set(curl_easy_setopt(curl, option, &blob));
}

/* The certificate is checked for the URL's host: so that is the name, and the connection goes to
 * where the host was. */
static bool rename_host(struct http_call *call, const struct target *target, const char *name,
			struct error *error)
{
	CLEANUP(buf) struct buf line = {0};
	CURLU *url = curl_url();
	char *text = NULL;
	CURLUcode rc = url ? curl_url_set(url, CURLUPART_URL, call->url, 0) : CURLUE_OUT_OF_MEMORY;

	if (!rc)
		rc = curl_url_set(url, CURLUPART_HOST, name, 0);
	if (!rc)
		rc = curl_url_get(url, CURLUPART_URL, &text, 0);
	curl_url_cleanup(url);
	if (rc)
		return error_set(error, ERROR_INVALID_CONFIG, "server name '%s': %s", name,
				 curl_url_strerror(rc));
	must_set(curl_easy_setopt(call->curl, CURLOPT_URL, text));
	curl_free(text);
	buf_printf(&line, "%s:%s:%s:%s", name, target->port, target->host, target->port);
	call->connect_to = curl_slist_append(NULL, buf_text(&line));
	curl_easy_setopt(call->curl, CURLOPT_CONNECT_TO, call->connect_to);
	buf_clear(&line);
	buf_printf(&line, "Host: %s:%s", target->host, target->port);
	call->exchange.headers = curl_slist_append(call->exchange.headers, buf_text(&line));
	return true;
}

static bool set_identity(struct http_call *call, const struct http_identity *identity,
			 const struct target *target, struct error *error)
{
	CURL *curl = call->curl;

	if (identity->certificate_pem) {
		set_blob(curl, CURLOPT_SSLCERT_BLOB, identity->certificate_pem);
		set_blob(curl, CURLOPT_SSLKEY_BLOB, identity->key_pem);
		/* An encrypted key is refused; OpenSSL would ask the terminal. */
		must_set(curl_easy_setopt(curl, CURLOPT_KEYPASSWD, ""));
	}
	if (identity->ca_pem) {
		set_blob(curl, CURLOPT_CAINFO_BLOB, identity->ca_pem);
		curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
	}
	if (identity->proxy)
		must_set(curl_easy_setopt(curl, CURLOPT_PROXY, identity->proxy));
	else if (target_is_loopback(target))
		curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* whatever the environment says */
	curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, identity->fresh ? 1L : 0L);
	return !identity->server_name || rename_host(call, target, identity->server_name, error);
}

static void keep_words(struct http_call *call, const struct http_identity *identity)
{
	struct exchange *exchange = &call->exchange;

	exchange->ca_source = call->ca_source = mem_strdup(identity->ca_source);
	exchange->certificate_source = call->certificate_source =
		mem_strdup(identity->certificate_source);
	exchange->trust_hint = call->trust_hint = mem_strdup(identity->trust_hint);
}

static bool prepare(struct http_call *call, const struct http_identity *identity,
		    const struct http_request *request, struct error *error)
{
	CLEANUP(target) struct target target = {0};
	struct http_request own = *request;
	CURL *curl = call->curl;

	assert(!identity->certificate_pem == !identity->key_pem);
	if (!target_parse(call->url, &target, error) ||
	    !target_allowed(&target, call->url, identity->https_only, identity->bearer, error))
		return false;
	if (request->body)
		own.body = call->body = mem_dup(request->body, request->body_length);
	exchange_prepare(&call->exchange, curl, &own, call->url, identity->bearer);
	keep_words(call, identity);
	curl_easy_setopt(curl, CURLOPT_PRIVATE, call);
	/* A name that doesn't resolve must not hold up who gives up on it. */
	curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_MAXAGE_CONN, (long)HTTP_MULTI_IDLE_S);
	if (call->on_data) {
		call->exchange.take = on_piece;
		call->exchange.arg = call;
		curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
		curl_easy_setopt(curl, CURLOPT_TCP_KEEPIDLE, (long)HTTP_MULTI_SILENCE_S);
		curl_easy_setopt(curl, CURLOPT_TCP_KEEPINTVL, (long)HTTP_MULTI_PROBE_S);
	}
	if (!set_identity(call, identity, &target, error))
		return false;
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, call->exchange.headers);
	return true;
}

static struct http_call *start(struct http_multi *multi, const struct http_identity *identity,
			       const struct http_request *request, http_take_fn *on_data,
			       http_multi_fn *fn, void *arg)
{
	struct http_call *call = mem_alloc(sizeof *call);

	assert(!request->take);
	*call = (struct http_call){.multi = multi,
				   .curl = curl_easy_init(),
				   .url = mem_strdup(request->url),
				   .on_data = on_data,
				   .fn = fn,
				   .arg = arg,
				   .next = multi->calls,
				   .at = &multi->calls};
	if (!call->curl)
		abort(); /* only out of memory */
	if (call->next)
		call->next->at = &call->next;
	multi->calls = call;
	if (prepare(call, identity, request, &call->error)) {
		must(curl_multi_add_handle(multi->curl, call->curl));
	} else {
		call->refused = call->ended = true;
		loop_defer_arm(multi->settle);
	}
	return call;
}

struct http_call *http_multi_start(struct http_multi *multi, const struct http_identity *identity,
				   const struct http_request *request, http_multi_fn *fn, void *arg)
{
	return start(multi, identity, request, NULL, fn, arg);
}

struct http_call *http_multi_stream(struct http_multi *multi, const struct http_identity *identity,
				    const struct http_request *request, http_take_fn *on_data,
				    http_multi_fn *fn, void *arg)
{
	if (!multi->streams)
		multi->streams = http_multi_create(multi->loop);
	return start(multi->streams, identity, request, on_data, fn, arg);
}

/* --- all of it --- */

struct http_multi *http_multi_create(struct loop *loop)
{
	struct http_multi *multi = mem_alloc(sizeof *multi);

	multi->loop = loop;
	multi->curl = curl_multi_init();
	if (!multi->curl)
		abort(); /* only out of memory */
	multi->timer = loop_timer_create(loop, on_time, multi);
	multi->settle = loop_defer_create(loop, settle, multi);
	curl_multi_setopt(multi->curl, CURLMOPT_SOCKETFUNCTION, want_socket);
	curl_multi_setopt(multi->curl, CURLMOPT_SOCKETDATA, multi);
	curl_multi_setopt(multi->curl, CURLMOPT_TIMERFUNCTION, want_time);
	curl_multi_setopt(multi->curl, CURLMOPT_TIMERDATA, multi);
	curl_multi_setopt(multi->curl, CURLMOPT_MAX_TOTAL_CONNECTIONS,
			  (long)HTTP_MULTI_CONNECTIONS);
	curl_multi_setopt(multi->curl, CURLMOPT_MAXCONNECTS, (long)HTTP_MULTI_CONNECTIONS);
	return multi;
}

void http_multi_destroy(struct http_multi *multi)
{
	if (!multi)
		return;
	http_multi_destroy(multi->streams);
	if (multi->gone)
		*multi->gone = true;
	while (multi->calls)
		call_destroy(multi->calls);
	curl_multi_cleanup(multi->curl);
	while (multi->watched)
		watched_destroy(multi->watched);
	loop_timer_destroy(multi->timer);
	loop_defer_destroy(multi->settle);
	free(multi);
}
