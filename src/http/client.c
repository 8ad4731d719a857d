#include "http/exchange.h"

struct http_client {
	CURL *curl;
	char *bearer, *ca_file;
	bool https_only;
};

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

static bool same_target(const struct target *a, const struct target *b)
{
	return str_equal(a->scheme, b->scheme) && str_equal(a->host, b->host) &&
	       str_equal(a->port, b->port);
}

static void set_trust(const struct http_client *client, const struct target *target)
{
	CURL *curl = client->curl;

	if (client->ca_file) {
		curl_easy_setopt(curl, CURLOPT_CAINFO, client->ca_file);
		curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
	}
	if (target_is_loopback(target))
		curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* whatever the environment says */
}

/* One exchange without redirects. */
static bool perform(struct http_client *client, const struct http_request *request, const char *url,
		    const struct target *target, struct exchange *exchange, struct error *error)
{
	CURL *curl = client->curl;

	curl_easy_reset(curl); /* keeps the connection */
	exchange_prepare(exchange, curl, request, url, client->bearer);
	set_trust(client, target);

	CURLcode rc = curl_easy_perform(curl);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL); /* the list dies with the exchange */
	if (rc != CURLE_OK)
		return exchange_failed(exchange, rc, url, error);
	exchange_finish(exchange, curl);
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
		CLEANUP(exchange) struct exchange exchange = {0};
		char *next = NULL;

		if (!target_parse(url, &target, error) ||
		    !target_allowed(&target, url, client->https_only, client->bearer, error))
			return false;
		if (!perform(client, request, url, &target, &exchange, error) ||
		    !redirect_of(client, request, url, &target, exchange.answer.status, &next,
				 error))
			return false;
		if (!next) {
			http_answer_deinit(ret_answer);
			*ret_answer = exchange.answer;
			exchange.answer = (struct http_answer){0};
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
