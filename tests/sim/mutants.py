#!/usr/bin/env python3
"""mutants: does the simulation notice when the product is wrong?

Each mutant is one change of one source file, named by the text that it replaces, which must stand there exactly
once. The changed copy is compiled and linked into a copy of the simulation; the product itself has no switch for it.
A mutant that survives all its runs fails this test, and so does one whose text is not there any more.

usage: mutants.py BUILD [NAME...]
"""
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]

MUTANTS = [
    ("no-fsync", "src/sys/durable.c",
     " && fsync(fd) == 0;", ";"),
    ("no-folder-sync", "src/sys/durable.c",
     "\tif (fsync(fd) < 0)\n\t\treturn error_os(error, \"sync folder '%s'\", folder);\n", ""),
    ("report-before-withdrawal", "src/node/core/release.c",
     "\tif (view->bound)\n\t\treturn (struct release_plan){.step = RELEASE_WITHDRAW,",
     "\tif (view->bound && !view->reported)\n"
     "\t\treturn (struct release_plan){.step = RELEASE_REPORT, .why = \"mutant\"};\n"
     "\tif (view->bound)\n\t\treturn (struct release_plan){.step = RELEASE_WITHDRAW,"),
    ("unreadable-pod-resources-taken-as-empty", "src/node/release.c",
     "\tnode->answered_how = RELEASE_ANSWER_FAILED;\n",
     "\tholders_listing_deinit(&node->listing);\n\tnode->listing = (struct holders_listing){0};\n"
     "\tnode->answered_how = RELEASE_ANSWER_FREE;\n"),
    ("stale-generation-accepted", "src/node/core/spec.c",
     "next->generation > stored->generation;", "next->generation != stored->generation;"),
    ("acknowledged-before-the-commit", "src/serve/gateway.c",
     "\tstream->working = true;\n\treturn true;\n",
     "\tstream->working = true;\n"
     "\tif (kind == STREAM_JOB_REPORT) {\n"
     "\t\tCLEANUP(buf) struct buf ack = {0};\n\t\tstruct error error;\n"
     "\t\tif (wire_pack_ack(up->report->sequence, &ack, &error))\n"
     "\t\t\trpc_send(stream->call, ack.data, ack.length);\n"
     "\t}\n\treturn true;\n"),
    ("withdrawn-before-the-record", "src/node/converge.c",
     "\tplan_releases(pass, &plan);\n\tplan_withdrawals(pass, &plan);\n",
     "\tplan_withdrawals(pass, &plan);\n\tplan_releases(pass, &plan);\n"),
    ("answers-from-before-the-withdrawal-count", "src/node/core/release.c",
     "\tif (view->answer != RELEASE_ANSWER_NONE &&\n\t    mono_until(evidence_from(view), view->answered) < 0)\n",
     "\tif (view->answer != RELEASE_ANSWER_NONE && view->answered.ms < 0)\n"),
    ("bound-while-a-release-is-pending", "src/node/core/converge.c",
     "!entry->reported && i < entry->devices.count", "entry->reported && i < entry->devices.count"),
    ("processes-that-outlive-their-pods-not-counted", "src/node/release.c",
     "\tif (podprocesses_find(answer, uuid))\n\t\treturn RELEASE_ANSWER_OPEN;\n", ""),
    ("processes-that-could-not-be-looked-at-taken-as-none", "src/node/release.c",
     "\tif (answer->error.code != ERROR_NONE)\n\t\treturn RELEASE_ANSWER_UNSEEN;\n", ""),
    ("marker-removed-without-asking", "src/node/converge.c",
     "\tif (!node->marker || !node->outside.over)\n", "\tif (!node->marker)\n"),
    ("a-socket-name-twice", "src/node/deviceplugin.c",
     "\trandom_bytes(&random, sizeof random);\n", "\trandom = 7;\n"),
    ("acted-on-before-it-is-stored", "src/node/converge.c",
     "\tnode->write.spec = spec;\n\tstep_spec(&steps, node, spec);\n",
     "\tnode->write.spec = spec;\n"),
    ("deleted-whoever-has-the-name", "src/node/reaper.c",
     "\t\t.uid = what->uid,\n\t\t.grace_period_s", "\t\t.grace_period_s"),
    ("deleted-for-what-is-bound", "src/node/core/reap.c",
     "(!view->bound_known || is_bound(view, holder->allocation))", "!view->bound_known"),
    ("forced-at-once", "src/node/core/reap.c",
     "due = mono_after(claimant->asked, REAP_FORCE_MS);", "due = claimant->asked;"),
    ("billed-past-the-end", "src/control/core/metering.c",
     "int64_t stopped_ms = now_ms < end_ms ? now_ms : end_ms;", "int64_t stopped_ms = now_ms;"),
]

# Until it is caught: some seeds, a worse world, every crash point of the story, more seeds.
RUNS = [["--seeds", "60", "--steps", "100"], ["--seeds", "100", "--steps", "100", "--restores", "--sockets"],
        ["--story"], ["--seeds", "600", "--start", "61", "--steps", "100"]]


def compile_command(build, source):
    """The command that compiles `source` for the simulation, and the object it makes."""
    entries = json.loads(subprocess.check_output(["ninja", "-C", build, "-t", "compdb"]).decode())
    found = [e for e in entries if (build / e["file"]).resolve() == (ROOT / source) and e["output"].endswith(".o")]
    found.sort(key=lambda e: "tests/sim" not in e["output"])
    if not found:
        sys.exit(f"mutants: nothing compiles {source}")
    return found[0]["command"], found[0]["file"], found[0]["output"]


def build_mutant(build, folder, source, old, new):
    text = (ROOT / source).read_text()
    if text.count(old) != 1:
        sys.exit(f"mutants: {source} has the text to replace {text.count(old)} times, not once:\n{old}")
    changed = folder / pathlib.Path(source).name
    changed.write_text(text.replace(old, new))
    command, file, output = compile_command(build, source)
    changed_object = folder / "mutant.o"
    words = [str(changed) if w == file else str(changed_object) if w == output else w for w in shlex.split(command)]
    words += ["-Wno-error", "-w"]
    subprocess.run(words, cwd=build, check=True)
    link = subprocess.check_output(["ninja", "-C", build, "-t", "commands", "tests/sim/sim"]).decode().splitlines()[-1]
    words = shlex.split(link)
    program = folder / "sim"
    at = words.index("-o")
    # In place of its object; or before the archives, whose own copy is then not needed.
    words = [str(changed_object) if w == output else w for w in words]
    if str(changed_object) not in words:
        words.insert(at + 2, str(changed_object))
    words[at + 1] = str(program)
    subprocess.run(words, cwd=build, check=True)
    return program


def caught(program):
    for run in RUNS:
        result = subprocess.run([str(program), "--stop", *run], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        lines = result.stdout.decode(errors="replace").splitlines()
        broken = next((line for line in lines if line.startswith("seed ")), None)
        if (result.returncode, broken is None) not in ((0, True), (1, False)):
            sys.exit(f"mutants: the simulation itself failed ({result.returncode}): {lines[-1:]}")
        if broken:
            return broken
    return None


def main():
    build, wanted = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    survivors = []
    for name, source, old, new in MUTANTS:
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            how = caught(build_mutant(build, pathlib.Path(folder), source, old, new))
        print(f"{'caught  ' if how else 'SURVIVED'} {name}" + (f": {how}" if how else ""), flush=True)
        if not how:
            survivors.append(name)
    print(f"{len(wanted or MUTANTS)} mutants, {len(survivors)} survived")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
