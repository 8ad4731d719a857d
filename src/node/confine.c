#include "node/confine.h"

#include "sys/log.h"
#include "sys/sandbox.h"
#include "text/tree.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

static const char *const NAMES[CONFINE_PARTS] = {
	[CONFINE_PRIVILEGES] = "privileges", [CONFINE_CAPABILITIES] = "capabilities",
	[CONFINE_FILES] = "files",           [CONFINE_CALLS] = "calls",
	[CONFINE_DUMPS] = "dumps",
};

/* --- doing it --- */

static void note(struct confinement *confinement, enum confine_part part, bool done,
		 const struct error *error)
{
	confinement->parts[part].done = done;
	if (!done)
		str_copy(confinement->parts[part].why, ERROR_WHAT_SIZE, error->what);
}

/* Files and calls can't be had before privileges: who isn't root may not. */
static void carry_out(const struct confine_plan *plan, struct confinement *to)
{
	struct error error = {0};
	bool ok;

	note(to, CONFINE_DUMPS, sandbox_dumps(&error), &error);
	note(to, CONFINE_PRIVILEGES, sandbox_privileges(&error), &error);
	ok = sandbox_capabilities(plan->capabilities, &to->capabilities, &error);
	note(to, CONFINE_CAPABILITIES, ok, &error);
	ok = plan->no_files ? error_set(&error, ERROR_UNAVAILABLE, "%s", plan->no_files)
			    : sandbox_files(plan->folders, &error);
	note(to, CONFINE_FILES, ok, &error);
	ok = sandbox_calls(plan->allowed.items, plan->allowed.count, plan->refused.items,
			   plan->refused.count, &error);
	note(to, CONFINE_CALLS, ok, &error);
}

static void leave_all(struct confinement *confinement)
{
	struct error error;

	error_set(&error, ERROR_UNAVAILABLE, "[host] confine = false");
	for (size_t i = 0; i < CONFINE_PARTS; i++)
		note(confinement, (enum confine_part)i, false, &error);
}

/* --- telling --- */

static void add_word(struct buf *text, const char *word)
{
	buf_printf(text, "%s%s", text->length > 0 ? ", " : "", word);
}

static void tell(const struct confinement *confinement)
{
	CLEANUP(buf) struct buf done = {0}, kept = {0}, missing = {0};

	for (size_t i = 0; i < CONFINE_PARTS; i++) {
		if (confinement->parts[i].done)
			add_word(&done, NAMES[i]);
		else
			buf_printf(&missing, "%s%s: %s", missing.length > 0 ? "; " : "", NAMES[i],
				   confinement->parts[i].why);
	}
	for (int32_t i = 0; i < 64; i++)
		if (confinement->capabilities >> i & 1)
			add_word(&kept, confine_capability_name(i));
	log_info("confined", "bcd gave up what it doesn't need", "confined", buf_text(&done),
		 "capabilities", kept.length > 0 ? buf_text(&kept) : "none", "not",
		 missing.length > 0 ? buf_text(&missing) : NULL, NULL);
}

void confine_process(const struct config *config, enum confine_verb verb,
		     struct confinement *ret_confinement)
{
	const struct confine_view view = {
		.verb = verb,
		.config = config,
		.alone = sandbox_is_first(),
		.sanitized = SANITIZED,
		.last_capability = sandbox_last_capability(),
	};
	struct confine_plan plan = {0};

	*ret_confinement = (struct confinement){0};
	if (config->confine) {
		confine_decide(&view, &plan);
		carry_out(&plan, ret_confinement);
		confine_plan_deinit(&plan);
	} else {
		leave_all(ret_confinement);
	}
	tell(ret_confinement);
}

json_t *confinement_describe(const struct confinement *confinement)
{
	json_t *done = json_array(), *capabilities = json_array(), *missing = json_array();

	for (size_t i = 0; i < CONFINE_PARTS; i++) {
		if (confinement->parts[i].done) {
			tree_append(done, tree_string(NAMES[i]));
			continue;
		}
		tree_append(missing, json_object());
		tree_set(json_array_get(missing, json_array_size(missing) - 1), "what",
			 tree_string(NAMES[i]));
		tree_set(json_array_get(missing, json_array_size(missing) - 1), "why",
			 tree_string(confinement->parts[i].why));
	}
	for (int32_t i = 0; i < 64; i++)
		if (confinement->capabilities >> i & 1)
			tree_append(capabilities, tree_string(confine_capability_name(i)));
	return json_pack("{s:o, s:o, s:o}", "done", done, "capabilities", capabilities, "missing",
			 missing);
}
