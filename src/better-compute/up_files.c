#include "better-compute/up_files.h"
#include "base/hash.h"
#include "gpu/core/scenario.h"
#include "pki/rotation.h"
#include "pki/seal.h"
#include "serve/serve.h"
#include "sys/clock.h"
#include "sys/durable.h"
#include "sys/net.h"
#include "sys/random.h"
#include "text/toml.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL_KUBELET  "/var/lib/kubelet"
#define MAX_READY     ((size_t)4 << 10)
#define MAX_LAST_READ ((size_t)8 << 20)
#define PRESET        "8xH100"

#define DRIVER_FOLDER   "/proc/driver/nvidia"
#define MAX_DRIVER_GPUS 64
#define MAX_DRIVER_TEXT ((size_t)64 << 10)

/* --- the state folder --- */

/* The folder, made if absent, as an absolute path. */
static bool prepare_state(const char *given, struct arena *arena, const char **ret_state,
			  struct error *error)
{
	char resolved[PATH_MAX];
	struct stat stat;

	if (lstat(given, &stat) != 0 && !durable_make_folder(given, 0700, error))
		return error_wrap(error, "make the state folder");
	if (!durable_check_own_folder(given, error))
		return error_hint(error, "It is to hold keys: name a folder that only you can "
					 "enter, with --state DIR.");
	if (!realpath(given, resolved))
		return error_os(error, "open '%s'", given);
	for (const char *at = resolved; *at; at++) {
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			return error_set(error, ERROR_INVALID_INPUT,
					 "the state folder's path holds control characters");
	}
	*ret_state = arena_strdup(arena, resolved);
	return true;
}

/* --- where everything is --- */

/* Beside us, or where a build tree has it. */
static bool find_program(struct arena *arena, const char *folder, const char *name,
			 const char *room, const char **ret_path, struct error *error)
{
	const char *beside = arena_printf(arena, "%s/%s", folder, name);
	const char *built = arena_printf(arena, "%s/../%s/%s", folder, room, name);

	*ret_path = access(beside, X_OK) == 0 ? beside : built;
	if (access(*ret_path, X_OK) == 0)
		return true;
	error_set(error, ERROR_NOT_FOUND, "'%s' is missing", beside);
	if (str_equal(name, "kubelet-standin")) /* it is for looking, and isn't installed */
		return error_hint(
			error, "An installed copy has no stand-in for the kubelet: start without "
			       "one, better-compute up --kubelet none, or start the build "
			       "tree's better-compute.");
	return error_hint(error, "better-compute and bcd belong in one folder.");
}

static bool find_programs(struct arena *arena, struct up_files *files, struct error *error)
{
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

	if (length < 0)
		return error_os(error, "read '/proc/self/exe'");
	self[length] = '\0';
	files->better_compute = arena_strdup(arena, self);
	*strrchr(self, '/') = '\0';
	if (!find_program(arena, self, "bcd", "bcd", &files->bcd, error))
		return false;
	return files->kubelet != UP_KUBELET_STANDIN ||
	       find_program(arena, self, "kubelet-standin", "standin", &files->standin, error);
}

static void name_files(struct arena *arena, const char *state, struct up_files *files)
{
	const struct {
		const char **path, *name;
	} names[] = {
		{&files->lock, "up.lock"},
		{&files->context, "context.json"},
		{&files->serve_home, "serve"},
		{&files->serve_ready, "serve-ready.json"},
		{&files->admin_key, "serve/admin.key"},
		{&files->secret_key, "secret.key"},
		{&files->pki, "serve/pki"},
		{&files->node, "node"},
		{&files->node_data, "node/data"},
		{&files->node_run, "node/run"},
		{&files->config, "node/config.toml"},
		{&files->token, "node/join.token"},
		{&files->identity, "node/data/identity.json"},
		{&files->gpus, "gpus.toml"},
		{&files->serve_log, "log/serve.log"},
		{&files->bcd_log, "log/bcd.log"},
		{&files->kubelet_log, "log/kubelet.log"},
	};

	files->state = state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		*names[i].path = arena_printf(arena, "%s/%s", state, names[i].name);
}

static bool choose_kubelet(const struct up_options *options, struct arena *arena,
			   struct up_files *files, struct error *error)
{
	const char *given = options->kubelet;
	char resolved[PATH_MAX];

	files->kubelet_root = arena_printf(arena, "%s/kubelet", files->state);
	files->cdi = arena_printf(arena, "%s/cdi", files->state);
	files->kubelet = UP_KUBELET_STANDIN;
	files->kubelet_why = "as asked";
	if (str_equal(given, "none")) {
		files->kubelet = UP_KUBELET_NONE;
	} else if (given[0] == '/' || given[0] == '.') {
		if (!realpath(given, resolved))
			return error_os(error, "--kubelet '%s'", given);
		files->kubelet = UP_KUBELET_REAL;
		files->kubelet_root = arena_strdup(arena, resolved);
	} else if (str_equal(given, "auto")) {
		bool here = net_unix_alive(REAL_KUBELET "/device-plugins/kubelet.sock");
		files->kubelet_why = "no kubelet on this machine";
		if (here) {
			files->kubelet = UP_KUBELET_REAL;
			files->kubelet_root = REAL_KUBELET;
		}
	} else if (!str_equal(given, "stand-in")) {
		return error_set(
			error, ERROR_INVALID_INPUT,
			"--kubelet: '%s' is neither auto, stand-in, none nor a folder's path",
			given);
	}
	if (files->kubelet == UP_KUBELET_REAL)
		files->cdi = "/etc/cdi";
	if (!options->cdi)
		return true;
	if (!durable_make_folder(options->cdi, 0755, error))
		return error_wrap(error, "--cdi");
	if (!realpath(options->cdi, resolved))
		return error_os(error, "--cdi '%s'", options->cdi);
	files->cdi = arena_strdup(arena, resolved);
	return true;
}

static bool make_folders(const struct up_files *files, struct error *error)
{
	const char *const private[] = {files->node, files->node_data, files->node_run};
	CLEANUP(buf) struct buf log = {0};

	for (size_t i = 0; i < ARRAY_SIZE(private); i++) {
		if (!durable_make_folder(private[i], 0700, error))
			return false;
	}
	buf_printf(&log, "%s/log", files->state);
	if (!durable_make_folder(buf_text(&log), 0700, error))
		return false;
	if (files->kubelet != UP_KUBELET_REAL &&
	    !durable_make_folder(files->kubelet_root, 0755, error))
		return false;
	return durable_make_folder(files->cdi, 0755, error);
}

/* --- simulated GPUs --- */

static bool read_scenario(const char *path, struct scenario *scenario, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;

	if (!durable_read(path, SCENARIO_MAX_FILE, &text, error) ||
	    !toml_parse(buf_text(&text), text.length, SCENARIO_MAX_FILE, path, &tree, error))
		return false;
	return scenario_read(tree, scenario, error) || error_wrap(error, "read '%s'", path);
}

/* "sim:8xH100" or "sim:FILE". */
/* "8xH100": so many of a kind, whatever their UUIDs. */
static bool is_preset(const char *what)
{
	size_t digits = strspn(what, "0123456789");

	return digits > 0 && what[digits] == 'x' && !strchr(what, '/');
}

static bool make_scenario(const char *gpus, struct scenario *scenario, struct error *error)
{
	bool sim = str_starts(gpus, "sim:") && gpus[4];
	const char *what = sim ? gpus + 4 : PRESET;
	uint64_t seed;

	if (!str_equal(gpus, "auto") && !sim) {
		error_set(error, ERROR_INVALID_INPUT, "--gpus: '%s' is neither auto nor sim:…",
			  gpus);
		return error_hint(error, "Write it as sim:8xH100, or as sim:FILE.");
	}
	random_bytes(&seed, sizeof seed);
	if (is_preset(what))
		return scenario_preset(what, seed, scenario, error) || error_wrap(error, "--gpus");
	return read_scenario(what, scenario, error) || error_wrap(error, "--gpus");
}

/* "NVIDIA H100 80GB HBM3" is a pool of "H100". */
static const char *short_model(struct arena *arena, const char *model)
{
	if (str_starts(model, "NVIDIA "))
		model += strlen("NVIDIA ");
	return arena_strndup(arena, model, strcspn(model, " "));
}

/* The model of one of the driver's GPUs: "Model: <spaces> NVIDIA H100 80GB HBM3", a line of its own. */
static const char *driver_model(struct arena *arena)
{
	CLEANUP(buf) struct buf path = {0}, text = {0};
	struct durable_names names = {0};
	const char *model = NULL;
	struct error ignored; /* then its pool has no model's name */

	if (!durable_list(DRIVER_FOLDER "/gpus", MAX_DRIVER_GPUS, &names, &ignored))
		return NULL;
	if (names.count > 0) {
		buf_printf(&path, DRIVER_FOLDER "/gpus/%s/information", names.names[0]);
		if (durable_read(buf_text(&path), MAX_DRIVER_TEXT, &text, &ignored))
			model = strstr(buf_text(&text), "Model:");
	}
	durable_names_deinit(&names);
	if (!model)
		return NULL;
	model += strlen("Model:");
	model += strspn(model, " \t");
	return short_model(arena, arena_strndup(arena, model, strcspn(model, "\n")));
}

/* The machine's own GPUs, where there is a driver for them. */
static bool take_real_gpus(struct arena *arena, struct up_files *files)
{
	const char *model;

	if (!durable_stamp(DRIVER_FOLDER "/version").exists)
		return false;
	model = driver_model(arena);
	files->gpus_real = true;
	files->pool_model = model && *model ? model : "GPU";
	return true;
}

/* The first line of what is written here tells it from what a person, or `bcd sim`, made of it since. */
#define MARK_SIZE 128

static void format_mark(const char *rest, char ret_mark[MARK_SIZE])
{
	snprintf(ret_mark, MARK_SIZE,
		 "# Written by better-compute up (%016llx); --gpus keeps it once it is edited.\n",
		 (unsigned long long)hash_text(rest));
}

static bool is_unedited(const char *text)
{
	const char *end = strchr(text, '\n');
	char mark[MARK_SIZE];

	if (!end)
		return false;
	format_mark(end + 1, mark);
	return str_starts(text, mark);
}

static bool write_gpus(struct up_files *files, const struct scenario *scenario, struct error *error)
{
	CLEANUP(buf) struct buf rest = {0}, text = {0};
	char mark[MARK_SIZE];

	scenario_format(scenario, &rest);
	format_mark(buf_text(&rest), mark);
	buf_printf(&text, "%s%s", mark, buf_text(&rest));
	if (!durable_replace(files->gpus, text.data, text.length, 0600, error))
		return false;
	files->gpus_made = true;
	return true;
}

/* May --gpus have its place? */
static bool check_unedited(const char *path, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};

	if (!durable_read(path, SCENARIO_MAX_FILE, &text, error))
		return false;
	if (is_unedited(buf_text(&text)))
		return true;
	error_set(error, ERROR_CONFLICT, "--gpus: '%s' is there, and isn't as up wrote it", path);
	return error_hint(error, "To take the GPUs as it says: --gpus 'sim:%s'. Else move it away.",
			  path);
}

/* `--gpus sim:FILE` of the very file that it would write. */
static bool names_itself(const struct up_options *options, const struct up_files *files)
{
	const char *asked = options->gpus;
	struct stat a, b;

	return str_starts(asked, "sim:") && stat(asked + strlen("sim:"), &a) == 0 &&
	       stat(files->gpus, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* Does the file say what is asked for? Then that comes not too late. */
static bool says_the_same(const struct up_options *options, struct scenario *asked,
			  const struct scenario *there)
{
	CLEANUP(buf) struct buf one = {0}, other = {0};

	if (asked->gpus.count != there->gpus.count)
		return false;
	for (size_t i = 0; is_preset(options->gpus + strlen("sim:")) && i < asked->gpus.count; i++)
		asked->gpus.items[i].uuid = there->gpus.items[i].uuid;
	scenario_format(asked, &one);
	scenario_format(there, &other);
	return str_equal(buf_text(&one), buf_text(&other));
}

/* What the first start was to have is settled by its pool. */
static bool place_gpus(const struct up_options *options, struct up_files *files,
		       const struct scenario *asked, struct error *error)
{
	bool exists = durable_stamp(files->gpus).exists;
	bool settled = durable_stamp(files->context).exists;

	files->gpus_kept = exists && settled && !files->gpus_auto;
	if (exists && (settled || files->gpus_auto || names_itself(options, files)))
		return true;
	return (!exists || check_unedited(files->gpus, error)) && write_gpus(files, asked, error);
}

static bool prepare_gpus(const struct up_options *options, struct arena *arena,
			 struct up_files *files, struct error *error)
{
	CLEANUP(scenario) struct scenario asked = {0}, scenario = {0};

	/* What was asked for must make sense also where it comes too late. */
	files->gpus_auto = str_equal(options->gpus, "auto");
	if (files->gpus_auto && take_real_gpus(arena, files))
		return true;
	if (!make_scenario(options->gpus, &asked, error) ||
	    !place_gpus(options, files, &asked, error))
		return false;
	if (!read_scenario(files->gpus, &scenario, error))
		return false;
	files->gpus_kept = files->gpus_kept && !says_the_same(options, &asked, &scenario);
	files->pool_model =
		scenario.gpus.count > 0 ? short_model(arena, scenario.gpus.items[0].model) : "GPU";
	return true;
}

bool up_files_open(const char *state, struct arena *arena, struct up_files *ret_files,
		   struct error *error)
{
	struct up_files files = {0};
	const char *path;

	if (!prepare_state(state, arena, &path, error))
		return false;
	name_files(arena, path, &files);
	*ret_files = files;
	return true;
}

bool up_files_prepare(const struct up_options *options, struct arena *arena, struct up_files *files,
		      struct error *error)
{
	return choose_kubelet(options, arena, files, error) && find_programs(arena, files, error) &&
	       prepare_gpus(options, arena, files, error) && make_folders(files, error);
}

void up_files_forget_gpus(const struct up_files *files)
{
	struct error ignored; /* the next start with --gpus writes them anew, or says why not */

	if (files->gpus_made && !durable_stamp(files->context).exists &&
	    check_unedited(files->gpus, &ignored))
		(void)!durable_remove(files->gpus, &ignored);
}

/* --- the control plane's home --- */

static int remove_entry(const char *path, const struct stat *stat UNUSED, int type UNUSED,
			struct FTW *ftw UNUSED)
{
	return remove(path);
}

/* What a first start that was cut off left behind. */
static bool remove_tree(const char *path, struct error *error)
{
	if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
		return error_os(error, "remove '%s'", path);
	return true;
}

static bool init_home(const char *home, struct error *error)
{
	const struct serve_options options = {.home = home};
	CLEANUP(buf) struct buf path = {0}, line = {0};
	char key[SERVE_KEY_SIZE] = "";
	bool ok;

	if (!durable_make_folder(home, 0700, error) || !serve_init(&options, key, error))
		return false;
	buf_printf(&path, "%s/admin.key", home);
	buf_printf(&line, "%s\n", key);
	ok = durable_replace(buf_text(&path), line.data, line.length, 0600, error);
	buf_wipe(&line);
	explicit_bzero(key, sizeof key);
	return ok;
}

bool up_files_init_serve(const struct up_files *files, struct error *error)
{
	CLEANUP(buf) struct buf fresh = {0};

	if (durable_absent(files->secret_key) &&
	    !seal_file_init(files->secret_key, clock_wall(), error))
		return false;
	if (durable_stamp(files->serve_home).exists)
		return true;
	buf_printf(&fresh, "%s.new", files->serve_home);
	return remove_tree(buf_text(&fresh), error) && init_home(buf_text(&fresh), error) &&
	       durable_rename(buf_text(&fresh), files->serve_home, error);
}

bool up_files_read_ready(const struct up_files *files, struct arena *arena, const char **ret_api,
			 const char **ret_gateway, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	CLEANUP(tree) json_t *tree = NULL;
	const char *api, *gateway;

	if (!durable_read(files->serve_ready, MAX_READY, &text, error) ||
	    !tree_parse(text.data, text.length, MAX_READY, files->serve_ready, &tree, error) ||
	    !tree_get_string(tree, "api", "", 256, &api, error) ||
	    !tree_get_string(tree, "gateway", "", 256, &gateway, error))
		return false;
	*ret_api = arena_strdup(arena, api);
	*ret_gateway = arena_strdup(arena, gateway);
	return true;
}

/* --- bcd's configuration --- */

/* A TOML basic string. Control characters were refused with the state folder. */
static void add_toml_text(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, "%s = \"", name);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, *text);
	}
	buf_add_text(out, "\"\n");
}

static bool add_join_section(struct buf *out, const char *pki_path, const char *gateway,
			     struct error *error)
{
	CLEANUP(buf) struct buf jwk = {0};
	struct pki_folder folder = {0};
	struct pki_pin_texts pins;

	if (!pki_folder_load(pki_path, &folder, error))
		return false;
	bool ok =
		pki_key_to_jwk(folder.join_encryption_key, PKI_USE_ENCRYPTION, false, &jwk, error);
	pki_folder_pin_texts(&folder, &pins);
	pki_folder_deinit(&folder);
	if (!ok)
		return false;
	buf_printf(out, "\n[gateway]\naddresses = [\"%s\"]\n", gateway);
	add_toml_text(out, "server_name", UP_GATEWAY_NAME);
	add_toml_text(out, "ca_pins", pins.gateway_ca);
	buf_add_text(out, "\n[join]\n");
	add_toml_text(out, "encryption_jwk", buf_text(&jwk));
	add_toml_text(out, "encryption_pins", pins.join_encryption);
	add_toml_text(out, "signing_pins", pins.join_signing);
	return true;
}

bool up_files_write_config(const struct up_files *files, const char *gateway, struct error *error)
{
	CLEANUP(buf) struct buf text = {0};
	char host[HOST_NAME_MAX + 1] = "localhost";

	(void)gethostname(host, sizeof host - 1);
	buf_add_text(&text, "# Written by better-compute up at each start.\n[paths]\n");
	add_toml_text(&text, "data", files->node_data);
	add_toml_text(&text, "run", files->node_run);
	add_toml_text(&text, "kubelet", files->kubelet_root);
	add_toml_text(&text, "cdi", files->cdi);
	if (!add_join_section(&text, files->pki, gateway, error))
		return false;
	buf_add_text(&text, "\n[host]\nunits = false\n\n[gpu]\n");
	add_toml_text(&text, "source", files->gpus_real ? "auto" : "sim");
	if (!files->gpus_real) {
		add_toml_text(&text, "sim_file", files->gpus);
		if (files->gpus_auto)
			add_toml_text(&text, "sim_reason", "no NVIDIA driver on this machine");
	}
	buf_add_text(&text, "\n[kubernetes]\n");
	add_toml_text(&text, "node_name", host);
	if (files->kubelet != UP_KUBELET_REAL) /* no cluster either */
		add_toml_text(&text, "kubeconfig", "");
	return durable_replace(files->config, text.data, text.length, 0600, error);
}

/* --- the error of a program that ended --- */

/* A log line's message if it is one of ours, else the line. */
static void take_line(const char *line, size_t length, char *out, size_t out_size)
{
	CLEANUP(tree) json_t *tree = NULL;
	struct error ignored; /* plain text then */
	CLEANUP(buf) struct buf text = {0};

	if (tree_parse(line, length, MAX_READY, "log", &tree, &ignored))
		buf_add_text(&text, json_string_value(json_object_get(tree, "message"))
					    ? json_string_value(json_object_get(tree, "message"))
					    : "");
	else
		buf_add(&text, line, length);
	const char *said = buf_text(&text);
	str_copy(out, out_size, str_starts(said, "error: ") ? said + strlen("error: ") : said);
}

void up_files_last_words(const char *log_path, char *out, size_t out_size)
{
	CLEANUP(buf) struct buf log = {0};
	struct error ignored; /* then it said nothing that we can tell */

	out[0] = '\0';
	if (!durable_read(log_path, MAX_LAST_READ, &log, &ignored))
		return;
	/* The last line that isn't the indented hint of the line before. */
	for (size_t end = log.length; end > 0;) {
		size_t start = end - 1;
		while (start > 0 && log.data[start - 1] != '\n')
			start--;
		if (start < end - 1 && log.data[start] != ' ') {
			take_line((const char *)log.data + start, end - 1 - start, out, out_size);
			return;
		}
		end = start;
	}
}
