"""A machine with a systemd of its own as its first process, in namespaces: its processes, mounts, network, cgroups and
files are its own and go with it."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from waiting import PATIENCE_S, wait_for  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))
STANDIN = os.path.join(BUILD, "src/standin/kubelet-standin")
FAKE_DRIVER = os.path.join(BUILD, "tests/fakedriver")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"


class Machine:
    """Call it in a mount namespace of your own: what it mounts is not taken down, it goes with that."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="bc-systemd-", dir="/tmp")
        self.holder, self.first, self.cgroup = None, None, None
        self.console = os.path.join(self.folder, "console")

    def install(self):
        """As an admin does, to below a folder; the kubelet's stand-in and the made up driver aren't installed by themselves."""
        done = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir",
                               self.folder + "/installed"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        for program in (STANDIN, FAKE_DRIVER + "/nvidia-smi", FAKE_DRIVER + "/libnvidia-ml.so.1"):
            shutil.copy(program, self.folder + "/installed/usr/local/bin/")

    def start(self):
        self.make_cgroup()
        program = 'echo $$ > "$1" && shift && exec "$@"'
        namespaces = ["unshare", "--pid", "--mount", "--uts", "--ipc", "--net", "--cgroup", "--propagation", "private",
                      "--fork", "--kill-child"]
        with open(self.console, "wb") as console:
            self.holder = subprocess.Popen(
                ["sh", "-c", program, "sh", self.cgroup + "/cgroup.procs", *namespaces, HERE + "/boot", self.folder,
                 self.folder + "/installed"], stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        wait_for("the machine has a first process", self.find_first)
        wait_for("systemd is up", self.is_up)

    def make_cgroup(self):
        """In the hierarchy of version 2, which each kernel has, beside those of version 1 if there are any."""
        hierarchy = self.folder + "/cgroups"
        os.mkdir(hierarchy)
        subprocess.run(["mount", "-t", "cgroup2", "cgroup2", hierarchy], check=True)
        with open("/proc/self/cgroup", encoding="ascii") as file:
            own, = [line[len("0::"):].strip() for line in file if line.startswith("0::")]
        cgroup = os.path.join(hierarchy, own.lstrip("/"), "bc-systemd-%d" % os.getpid())
        os.mkdir(cgroup)
        self.cgroup = cgroup

    def said(self):
        with open(self.console, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]

    def find_first(self):
        assert self.holder.poll() is None, "no machine: " + self.said()
        found = subprocess.run(["pgrep", "-P", str(self.holder.pid)], capture_output=True, text=True, check=False).stdout.split()
        self.first = found[0] if found else None
        return self.first

    def is_up(self):
        assert self.holder.poll() is None, "systemd ended: " + self.said()
        with open("/proc/%s/comm" % self.first, encoding="ascii") as file:
            if file.read().strip() != "systemd":
                return False
        return self.ask("systemctl", "is-active", "multi-user.target").stdout.strip() == "active"

    def ask(self, *words, given=None):
        """Runs a command there, as its root; returns what came of it."""
        return subprocess.run(
            ["nsenter", "-t", self.first, "--mount", "--uts", "--ipc", "--net", "--cgroup", "--pid", "--", "env", "-i",
             "PATH=" + PATH, "LANG=C.UTF-8", "HOME=/root", *words], input=given, capture_output=True, text=True,
            check=False, timeout=PATIENCE_S, cwd="/")

    def run(self, *words, given=None):
        done = self.ask(*words, given=given)
        assert done.returncode == 0, "%s: exit status %d\n%s%s" % (
            shlex.join(words), done.returncode, done.stdout, done.stderr)
        return done.stdout

    def shell(self, text):
        return self.run("bash", "-eu", "-c", "cd /root\n" + text)

    def write(self, path, text, mode="0644", owner="root"):
        self.run("sh", "-c", 'cat > "$0.new" && chmod "$1" "$0.new" && chown "$2:$2" "$0.new" && mv "$0.new" "$0"',
                 path, mode, owner, given=text)

    def read(self, path):
        return self.run("cat", path)

    def of_unit(self, unit, name):
        return self.run("systemctl", "show", "-P", name, unit).strip()

    def journal(self, unit):
        return self.run("journalctl", "-q", "-o", "cat", "-u", unit).splitlines()

    def end(self):
        """Killing its first process ends all of it."""
        if self.holder:
            if self.first and self.holder.poll() is None:
                os.kill(int(self.first), signal.SIGKILL)
            self.holder.kill()
            self.holder.wait()
        if self.cgroup:
            wait_for("the machine's cgroups are empty", self.remove_cgroups)
        if os.path.ismount(self.folder + "/cgroups"):
            subprocess.run(["umount", self.folder + "/cgroups"], check=True)
        shutil.rmtree(self.folder)

    def remove_cgroups(self):
        for folder, _, _ in os.walk(self.cgroup, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:  # a process is on its way out
                return False
        return True
