#include "http/client.h"
#include "sys/clock.h"

#include <curl/curl.h>
#include <stdio.h>

struct http_client {
	CURL *curl;
	char *bearer, *ca_file;
	bool https_only;
	char detail[CURL_ERROR_SIZE];
};

/* What one exchange collects. */
struct exchange {
	const struct http_request *request;
	CURL *curl;
	struct http_answer answer;
	size_t max_answer;
	bool too_large;
	bool refused; /* by who takes the stream, with `error` */
	struct error error;
	struct mono heard; /* when the last byte came */
};

/* The parts of a URL that decide where a request goes. */
struct target {
	char *scheme, *host, *port;
};

static void target_cleanup(struct target *target)
{
	curl_free(target->scheme);
	curl_free(target->host);
	curl_free(target->port);
}

static void headers_cleanup(struct curl_slist **headers)
{
	curl_slist_free_all(*headers);
}

static void url_cleanup(CURLU **url)
{
	curl_url_cleanup(*url);
}

struct http_client *http_client_create(const struct http_options *options)
{
	struct http_client *client = mem_alloc(sizeof *client);

	client->curl = curl_easy_init();
	if (!client->curl)
		abort(); /* only out of memory */
	client->bearer = mem_strdup(options->bearer);
	client->ca_file = mem_strdup(options->ca_file);
	client->https_only = options->https_only;
	return client;
}

void http_client_destroy(struct http_client *client)
{
	if (!client)
		return;
	curl_easy_cleanup(client->curl);
	if (client->bearer)
		explicit_bzero(client->bearer, strlen(client->bearer));
	free(client->bearer);
	free(client->ca_file);
	free(client);
}

DEFINE_CLEANUP(http_client, struct http_client *, http_client_destroy)

void http_answer_deinit(struct http_answer *answer)
{
	if (!answer)
		return;
	buf_deinit(&answer->body);
	*answer = (struct http_answer){0};
}

static bool is_loopback(const char *host)
{
	return str_equal(host, "localhost") || str_equal(host, "[::1]") ||
	       (str_starts(host, "127.") && strspn(host, "0123456789.") == strlen(host));
}

static bool target_parse(const char *text, struct target *ret_target, struct error *error)
{
	CLEANUP(url) CURLU *url = curl_url();
	char *user = NULL;
	CURLUcode rc;

	if (strlen(text) >= HTTP_URL_SIZE)
		return error_set(error, ERROR_INVALID_INPUT, "URL is longer than %d bytes",
				 HTTP_URL_SIZE - 1);
	rc = curl_url_set(url, CURLUPART_URL, text, 0);
	if (rc)
		return error_set(error, ERROR_INVALID_INPUT, "URL '%s': %s", text,
				 curl_url_strerror(rc));
	if (!curl_url_get(url, CURLUPART_USER, &user, 0)) {
		curl_free(user);
		return error_set(error, ERROR_INVALID_INPUT,
				 "URL holds a user name, which has no place there");
	}
	CLEANUP(target) struct target target = {0};
	if (curl_url_get(url, CURLUPART_SCHEME, &target.scheme, 0) ||
	    curl_url_get(url, CURLUPART_HOST, &target.host, 0) ||
	    curl_url_get(url, CURLUPART_PORT, &target.port, CURLU_DEFAULT_PORT))
		return error_set(error, ERROR_INVALID_INPUT, "URL '%s' names no host", text);
	if (!str_equal(target.scheme, "http") && !str_equal(target.scheme, "https"))
		return error_set(error, ERROR_INVALID_INPUT, "URL '%s' is neither http nor https",
				 text);
	*ret_target = (struct target){TAKE(target.scheme), TAKE(target.host), TAKE(target.port)};
	return true;
}

static bool target_allowed(const struct http_client *client, const struct target *target,
			   const char *url, struct error *error)
{
	if (str_equal(target->scheme, "https"))
		return true;
	if (client->https_only)
		return error_set(error, ERROR_INVALID_INPUT, "URL '%s' is not https", url);
	if (!client->bearer || is_loopback(target->host))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "'%s' would carry the key unencrypted", url);
	return error_hint(error, "Use an https:// address; http:// is for this machine only.");
}

static bool same_target(const struct target *a, const struct target *b)
{
	return str_equal(a->scheme, b->scheme) && str_equal(a->host, b->host) &&
	       str_equal(a->port, b->port);
}

static int64_t timeout_of(const struct http_request *request)
{
	return request->timeout_ms ? request->timeout_ms : HTTP_TIMEOUT_DEFAULT_MS;
}

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct exchange *exchange = arg;
	long status = 0;

	exchange->heard = clock_mono();
	curl_easy_getinfo(exchange->curl, CURLINFO_RESPONSE_CODE, &status);
	if (exchange->request->take && status == 200) {
		exchange->refused = !exchange->request->take(exchange->request->arg, data,
							     size * count, &exchange->error);
		return exchange->refused ? 0 : size * count;
	}
	if (size * count > exchange->max_answer - exchange->answer.body.length) {
		exchange->too_large = true;
		return 0;
	}
	buf_add(&exchange->answer.body, data, size * count);
	return size * count;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
	static const char NAME[] = "x-request-id:";
	struct exchange *exchange = arg;
	size_t length = size * count, start = sizeof NAME - 1, used = 0;

	if (length < start || strncasecmp(data, NAME, start) != 0)
		return length;
	while (start < length && data[start] == ' ')
		start++;
	/* It ends in a person's terminal: visible ASCII only. */
	while (start < length && used < HTTP_REQUEST_ID_SIZE - 1 && data[start] > ' ' &&
	       data[start] < 0x7f)
		exchange->answer.request_id[used++] = data[start++];
	exchange->answer.request_id[used] = '\0';
	return length;
}

/* About once a second: a stream whose server is gone without a word says nothing any more. */
static int on_progress(void *arg, curl_off_t total UNUSED, curl_off_t now UNUSED,
		       curl_off_t upload_total UNUSED, curl_off_t upload_now UNUSED)
{
	const struct exchange *exchange = arg;

	return mono_until(exchange->heard, clock_mono()) > timeout_of(exchange->request);
}

static enum error_code code_of(CURLcode rc)
{
	switch ((int)rc) {
	case CURLE_URL_MALFORMAT:
		return ERROR_INVALID_INPUT;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
		return ERROR_FORBIDDEN;
	case CURLE_SSL_CACERT_BADFILE:
		return ERROR_INVALID_CONFIG;
	default:
		return ERROR_UNAVAILABLE;
	}
}

static bool transfer_failed(const struct http_client *client, const struct exchange *exchange,
			    CURLcode rc, const char *url, struct error *error)
{
	if (exchange->refused) {
		*error = exchange->error;
		return false;
	}
	if (rc == CURLE_ABORTED_BY_CALLBACK)
		return error_set(error, ERROR_UNAVAILABLE, "'%s' fell silent", url);
	if (exchange->too_large)
		return error_set(error, ERROR_RESOURCES_EXHAUSTED,
				 "the answer of '%s' is larger than %zu bytes", url,
				 exchange->max_answer);
	error_set(error, code_of(rc), "reach '%s': %s", url,
		  client->detail[0] ? client->detail : curl_easy_strerror(rc));
	if (error->code == ERROR_FORBIDDEN)
		error_hint(error,
			   "If the server has a certificate of a private authority, name its "
			   "file as the CA file (--ca-file).");
	return false;
}

static void set_body(CURL *curl, const struct http_request *request)
{
	if (!request->body && str_equal(request->method, "GET"))
		return;
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body ? request->body : "");
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
}

static void set_trust(const struct http_client *client, const struct target *target)
{
	CURL *curl = client->curl;

	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (client->ca_file) {
		curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca_file);
		curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
	}
	if (is_loopback(target->host))
		curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* whatever the environment says */
}

/* `value` may be a secret. */
static struct curl_slist *add_header(struct curl_slist *headers, const char *begin,
				     const char *value)
{
	CLEANUP(buf) struct buf line = {0};

	buf_printf(&line, "%s%s", begin, value);
	headers = curl_slist_append(headers, buf_text(&line));
	buf_wipe(&line);
	return headers;
}

static struct curl_slist *make_headers(const struct http_client *client,
				       const struct http_request *request)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Expect:");

	headers = add_header(headers,
			     "Accept: ", request->accept ? request->accept : "application/json");
	if (request->last_event_id)
		headers = add_header(headers, "Last-Event-ID: ", request->last_event_id);
	/* Without a body libcurl would claim a form. */
	headers = curl_slist_append(headers, request->body ? "Content-Type: application/json"
							   : "Content-Type:");
	if (client->bearer)
		headers = add_header(headers, "Authorization: Bearer ", client->bearer);
	return headers;
}

static void set_patience(CURL *curl, const struct http_request *request, struct exchange *exchange)
{
	if (!request->take) {
		curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_of(request));
		return;
	}
	exchange->heard = clock_mono();
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, exchange);
}

/* One exchange without redirects. */
static bool perform(struct http_client *client, const struct http_request *request, const char *url,
		    const struct target *target, struct exchange *exchange, struct error *error)
{
	CLEANUP(headers) struct curl_slist *headers = make_headers(client, request);
	CURL *curl = client->curl;
	long status = 0;

	curl_easy_reset(curl); /* keeps the connection */
	client->detail[0] = '\0';
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->detail);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "better-compute/" BC_VERSION);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	set_patience(curl, request, exchange);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, exchange);
	set_body(curl, request);
	set_trust(client, target);

	CURLcode rc = curl_easy_perform(curl);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL); /* the list dies with this function */
	if (rc != CURLE_OK)
		return transfer_failed(client, exchange, rc, url, error);
	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	exchange->answer.status = (int)status;
	return true;
}

/* Where the answer points to, after checking that we may go there; NULL without a redirect. */
static bool redirect_of(const struct http_client *client, const struct http_request *request,
			const char *url, const struct target *target, int status, char **ret_next,
			struct error *error)
{
	CLEANUP(target) struct target next_target = {0};
	char *next = NULL;

	if (status < 300 || status > 399) {
		*ret_next = NULL;
		return true;
	}
	curl_easy_getinfo(client->curl, CURLINFO_REDIRECT_URL, &next);
	if (!next)
		return error_set(error, ERROR_UNAVAILABLE, "'%s' answered %d without a target", url,
				 status);
	if (!str_equal(request->method, "GET"))
		return error_set(error, ERROR_UNAVAILABLE, "'%s' redirects a %s to '%s'", url,
				 request->method, next);
	if (!target_parse(next, &next_target, error))
		return error_wrap(error, "'%s' redirects", url);
	if (!same_target(target, &next_target))
		return error_set(error, ERROR_FORBIDDEN,
				 "'%s' redirects to another host, '%s', which is not followed", url,
				 next);
	*ret_next = mem_strdup(next);
	return true;
}

bool http_request(struct http_client *client, const struct http_request *request,
		  struct http_answer *ret_answer, struct error *error)
{
	CLEANUP(free) char *url = mem_strdup(request->url);

	for (int hop = 0; hop <= HTTP_MAX_REDIRECTS; hop++) {
		CLEANUP(target) struct target target = {0};
		struct exchange exchange = {
			.request = request,
			.curl = client->curl,
			.max_answer =
				request->max_answer ? request->max_answer : HTTP_MAX_ANSWER_DEFAULT,
		};
		char *next = NULL;

		if (!target_parse(url, &target, error) ||
		    !target_allowed(client, &target, url, error))
			return false;
		bool done = perform(client, request, url, &target, &exchange, error) &&
			    redirect_of(client, request, url, &target, exchange.answer.status,
					&next, error);
		if (!done || next)
			http_answer_deinit(&exchange.answer);
		if (!done)
			return false;
		if (!next) {
			http_answer_deinit(ret_answer);
			*ret_answer = exchange.answer;
			return true;
		}
		free(url);
		url = next;
	}
	return error_set(error, ERROR_UNAVAILABLE, "'%s' redirects more than %d times",
			 request->url, HTTP_MAX_REDIRECTS);
}

bool http_get(const struct http_options *options, const char *url, size_t max_answer,
	      int64_t timeout_ms, struct http_answer *ret_answer, struct error *error)
{
	CLEANUP(http_client) struct http_client *client = http_client_create(options);

	return http_request(client,
			    &(struct http_request){.method = "GET",
						   .url = url,
						   .max_answer = max_answer,
						   .timeout_ms = timeout_ms},
			    ret_answer, error);
}
