#include "http/exchange.h"

#include <ctype.h>
#include <stdio.h>

static void url_cleanup(CURLU **url)
{
	curl_url_cleanup(*url);
}

void http_answer_deinit(struct http_answer *answer)
{
	if (!answer)
		return;
	buf_deinit(&answer->body);
	*answer = (struct http_answer){0};
}

void exchange_deinit(struct exchange *exchange)
{
	http_answer_deinit(&exchange->answer);
	curl_slist_free_all(TAKE(exchange->headers));
}

/* --- where to --- */

void target_cleanup(struct target *target)
{
	curl_free(target->scheme);
	curl_free(target->host);
	curl_free(target->port);
}

bool target_is_loopback(const struct target *target)
{
	const char *host = target->host;

	return str_equal(host, "localhost") || str_equal(host, "[::1]") ||
	       (str_starts(host, "127.") && strspn(host, "0123456789.") == strlen(host));
}

bool target_parse(const char *text, struct target *ret_target, struct error *error)
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

bool target_allowed(const struct target *target, const char *url, bool https_only,
		    const char *bearer, struct error *error)
{
	if (str_equal(target->scheme, "https"))
		return true;
	if (https_only)
		return error_set(error, ERROR_INVALID_INPUT, "URL '%s' is not https", url);
	if (!bearer || target_is_loopback(target))
		return true;
	error_set(error, ERROR_INVALID_INPUT, "'%s' would carry the key unencrypted", url);
	return error_hint(error, "Use an https:// address; http:// is for this machine only.");
}

/* --- what goes out --- */

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

static struct curl_slist *make_headers(const struct http_request *request, const char *bearer)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Expect:");

	headers = add_header(headers,
			     "Accept: ", request->accept ? request->accept : "application/json");
	if (request->last_event_id)
		headers = add_header(headers, "Last-Event-ID: ", request->last_event_id);
	if (request->body)
		headers = add_header(headers, "Content-Type: ",
				     request->content_type ? request->content_type
							   : "application/json");
	else /* libcurl would claim a form */
		headers = curl_slist_append(headers, "Content-Type:");
	if (bearer)
		headers = add_header(headers, "Authorization: Bearer ", bearer);
	return headers;
}

static void set_body(CURL *curl, const struct http_request *request)
{
	if (!request->body && str_equal(request->method, "GET"))
		return;
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body ? request->body : "");
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length);
	curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
}

/* --- what comes back --- */

static const char REQUEST_ID[] = "x-request-id:", RETRY_AFTER[] = "retry-after:";
#define RETRY_AFTER_DIGITS 18 /* that fit an int64_t */

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
	struct exchange *exchange = arg;
	long status = 0;

	exchange->heard = clock_mono();
	curl_easy_getinfo(exchange->curl, CURLINFO_RESPONSE_CODE, &status);
	if (exchange->take && status == 200) {
		exchange->refused =
			!exchange->take(exchange->arg, data, size * count, &exchange->error);
		return exchange->refused ? 0 : size * count;
	}
	if (size * count > exchange->max_answer - exchange->answer.body.length) {
		exchange->too_large = true;
		return 0;
	}
	buf_add(&exchange->answer.body, data, size * count);
	return size * count;
}

static bool is_header(const char *data, size_t length, const char *name)
{
	return length >= strlen(name) && strncasecmp(data, name, strlen(name)) == 0;
}

/* libcurl takes a number of seconds that it can't hold for none. */
static void note_retry_after(struct exchange *exchange, const char *data, size_t length)
{
	size_t start = strlen(RETRY_AFTER), digits = 0;

	while (start < length && data[start] == ' ')
		start++;
	while (start < length && data[start] == '0')
		start++;
	while (start + digits < length && isdigit((unsigned char)data[start + digits]))
		digits++;
	exchange->much_later = digits > RETRY_AFTER_DIGITS;
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
	struct exchange *exchange = arg;
	size_t length = size * count, start = strlen(REQUEST_ID), used = 0;

	if (is_header(data, length, RETRY_AFTER))
		note_retry_after(exchange, data, length);
	if (!is_header(data, length, REQUEST_ID))
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

	return mono_until(exchange->heard, clock_mono()) > exchange->patience_ms;
}

static void set_patience(struct exchange *exchange, CURL *curl, const struct http_request *request)
{
	exchange->patience_ms = request->timeout_ms ? request->timeout_ms : HTTP_TIMEOUT_DEFAULT_MS;
	if (!request->take) {
		curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)exchange->patience_ms);
		return;
	}
	exchange->take = request->take;
	exchange->arg = request->arg;
	exchange->heard = clock_mono();
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, exchange);
}

void exchange_prepare(struct exchange *exchange, CURL *curl, const struct http_request *request,
		      const char *url, const char *bearer)
{
	exchange->curl = curl;
	exchange->max_answer = request->max_answer ? request->max_answer : HTTP_MAX_ANSWER_DEFAULT;
	exchange->headers = make_headers(request, bearer);
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, exchange->detail);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "better-compute/" BC_VERSION);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, exchange->headers);
	set_patience(exchange, curl, request);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)HTTP_CONNECT_TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, exchange);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	set_body(curl, request);
}

void exchange_finish(struct exchange *exchange, CURL *curl)
{
	curl_off_t wait = 0;
	long status = 0;

	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait);
	exchange->answer.status = (int)status;
	exchange->answer.retry_after_s = exchange->much_later || wait > HTTP_RETRY_AFTER_MAX_S
						 ? HTTP_RETRY_AFTER_MAX_S
						 : wait;
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
	case CURLE_SSL_CERTPROBLEM:
		return ERROR_INVALID_CONFIG;
	default:
		return ERROR_UNAVAILABLE;
	}
}

/* libcurl quotes a proxy's URL that it can't read, and by its marks nobody can tell what of it is a password. */
static bool may_hold_a_secret(const char *detail)
{
	return strchr(detail, '@') || strstr(detail, "://") || strstr(detail, "nsupported proxy");
}

static bool proxy_failed(const struct exchange *exchange, const char *url, struct error *error)
{
	static const char UNKNOWN[] = "Could not resolve proxy: ";
	bool unknown =
		str_starts(exchange->detail, UNKNOWN) && !may_hold_a_secret(exchange->detail);

	if (unknown)
		error_set(error, ERROR_UNAVAILABLE, "reach '%s': %s", url, exchange->detail);
	else
		error_set(error, ERROR_UNAVAILABLE, "reach '%s': the proxy's URL can't be read",
			  url);
	return error_hint(error,
			  "Check the proxy that is set for it, in https_proxy or a kubeconfig's "
			  "proxy-url: "
			  "http://[USER:PASSWORD@]HOST[:PORT], with special characters of USER "
			  "and PASSWORD written as %%XX ('#' is %%23).");
}

static bool certificates_failed(const struct exchange *exchange, CURLcode rc, const char *url,
				struct error *error)
{
	if (rc == CURLE_SSL_CERTPROBLEM) {
		error_set(error, ERROR_INVALID_CONFIG, "reach '%s': %s can't be used", url,
			  exchange->certificate_source);
		return error_hint(error,
				  "One of them is damaged, or swapped for the other, or encrypted, "
				  "or they are no pair: take both anew from who gave them.");
	}
	error_set(error, ERROR_INVALID_CONFIG, "reach '%s': %s can't be read as certificates", url,
		  exchange->ca_source);
	return error_hint(error,
			  "It has to be the cluster's authority in PEM, from BEGIN CERTIFICATE to "
			  "END CERTIFICATE.");
}

static const char TRUST_HINT[] =
	"If the server has a certificate of a private authority, name its file "
	"as the CA file (--ca-file).";

bool exchange_failed(const struct exchange *exchange, CURLcode rc, const char *url,
		     struct error *error)
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
	if (rc == CURLE_COULDNT_RESOLVE_PROXY || strstr(exchange->detail, "nsupported proxy"))
		return proxy_failed(exchange, url, error);
	if ((rc == CURLE_SSL_CERTPROBLEM && exchange->certificate_source) ||
	    ((int)rc == CURLE_SSL_CACERT_BADFILE && exchange->ca_source))
		return certificates_failed(exchange, rc, url, error);
	error_set(error, code_of(rc), "reach '%s': %s", url,
		  exchange->detail[0] && !may_hold_a_secret(exchange->detail)
			  ? exchange->detail
			  : curl_easy_strerror(rc));
	if (error->code == ERROR_FORBIDDEN)
		error_hint(error, "%s", exchange->trust_hint ? exchange->trust_hint : TRUST_HINT);
	return false;
}
