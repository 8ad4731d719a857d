#!/usr/bin/env python3
"""mutants: does the simulation notice when the product is wrong?

Each mutant is a change of source files, named by the text that it replaces, which must stand there exactly once; of
more than one where a second guard covers for the first. The changed copies are compiled and linked into a copy of the
simulation; the product itself has no switch for it. As many are tried side by side as there are cores.
A mutant that survives all its runs fails this test, and so does one whose text is not there any more, or whose run
takes more time or memory than any sound one does.

usage: mutants.py BUILD [NAME...]      their names are in guards.py
"""
import concurrent.futures
import json
import os
import pathlib
import resource
import shlex
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # beside the sources
from guards import BIND, CLOCKS, FLEET, IN_POD, KUBELETS, LONG, LOST, MUTANTS, RELEASE, RESTORES, SEEDS, SOCKETS, STORY, VANISH

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What each is put to until one catches it, after the run that its line names.
LAST = [BIND, RELEASE, STORY, "--seeds 2000 --start 901"]
LONGEST_S, LARGEST = 600, 8 << 30  # no sound run takes more


def compile_commands(build):
    """The command that compiles each source for the simulation, and the object it makes."""
    found = {}
    for entry in json.loads(subprocess.check_output(["ninja", "-C", build, "-t", "compdb"]).decode()):
        source = (build / entry["file"]).resolve()
        if entry["output"].endswith(".o") and (source not in found or "tests/sim" in entry["output"]):
            found[source] = entry
    return found


def run(words, folder):
    result = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if result.returncode:
        raise ValueError(f"{words[0]} fails: {result.stdout.decode(errors='replace')[-2000:]}")


def bound():
    resource.setrlimit(resource.RLIMIT_AS, (LARGEST, LARGEST))


def link_command(build):
    commands = subprocess.check_output(["ninja", "-C", build, "-t", "commands", "tests/sim/sim"])
    return shlex.split(commands.decode().splitlines()[-1])


class Mutants:
    def __init__(self, build):
        self.build = build
        self.compile = compile_commands(build)
        self.link = link_command(build)

    def compiled(self, folder, source, text):
        """The object that the source as changed makes, and the one that it stands in for."""
        if ROOT / source not in self.compile:
            raise ValueError(f"nothing compiles {source}")
        entry = self.compile[ROOT / source]
        changed = folder / source.replace("/", "-")
        changed.write_text(text)
        names = {entry["file"]: str(changed), entry["output"]: f"{changed}.o"}
        words = [names.get(word, word) for word in shlex.split(entry["command"])]
        run([*words, "-Wno-error", "-w"], self.build)
        return f"{changed}.o", entry["output"]

    def make(self, folder, changes):
        texts, words, program = {}, list(self.link), folder / "sim"
        for source, old, new in changes:
            text = texts.get(source) or (ROOT / source).read_text()
            if text.count(old) != 1:
                raise ValueError(f"{source} has the text to replace {text.count(old)} times, not once:\n{old}")
            texts[source] = text.replace(old, new)
        at = words.index("-o")
        words[at + 1] = str(program)
        for source, text in texts.items():
            mutant, sound = self.compiled(folder, source, text)
            # In place of its object; or before the archives, whose own copy is then not needed.
            if sound in words:
                words[words.index(sound)] = mutant
            else:
                words.insert(at + 2, mutant)
        run(words, self.build)
        return program

    def caught(self, program, runs):
        """How, or None. One at a time: as many mutants are tried side by side as there are cores."""
        for run in runs:
            one = [] if "--fleet" in run else ["--stop", "--jobs", "1"]  # the fleet is one run
            command = [str(program), *one, *run.split()]
            result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=bound,
                                    timeout=LONGEST_S)
            lines = result.stdout.decode(errors="replace").splitlines()
            broken = [line for line in lines if line.startswith(("seed ", "effect ", "undisturbed"))]
            if result.returncode and "--fleet" in run:
                broken = lines[:1]
            if (result.returncode, bool(broken)) not in ((0, False), (1, True)):
                raise ValueError(f"the simulation itself failed ({result.returncode}): {lines[-1:]}")
            if broken:
                return f"{run}: {broken[0]}"
        return None

    def try_one(self, name, changes, *first):
        began = time.monotonic()
        usual = [*([FLEET] if changes[0][0].startswith("src/control") else []), SEEDS, LONG, SOCKETS, RESTORES,
                 IN_POD, VANISH, KUBELETS, LOST, CLOCKS, *LAST]
        runs = [*first, *(run for run in usual if run not in first)]
        try:
            with tempfile.TemporaryDirectory() as folder:
                how = self.caught(self.make(pathlib.Path(folder), changes), runs)
        except (ValueError, subprocess.TimeoutExpired) as error:
            print(f"FAILED   {name}: {error}", flush=True)
            return False
        took = time.monotonic() - began
        print(f"{'caught  ' if how else 'SURVIVED'} {name} ({took:.0f} s)" + (f": {how}" if how else ""), flush=True)
        return bool(how)


def main():
    build, wanted = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    began = time.monotonic()
    mutants = Mutants(build)
    chosen = [mutant for mutant in MUTANTS if not wanted or mutant[0] in wanted]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as cores:
        caught = list(cores.map(lambda mutant: mutants.try_one(*mutant), chosen))
    print(f"{len(caught)} mutants, {caught.count(False)} survived or failed, {time.monotonic() - began:.0f} s")
    return 0 if caught and all(caught) else 1


if __name__ == "__main__":
    sys.exit(main())
