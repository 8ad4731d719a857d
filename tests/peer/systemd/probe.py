"""What a service may do here: one JSON object of things and how each ended, "yes" or the error's name. Nothing of it changes the machine."""

import ctypes
import errno
import json
import os
import resource
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)
CLOCK_REALTIME, CLONE_NEWUTS, PER_LINUX32 = 0, 0x04000000, 8
PROT_READ, PROT_WRITE, PROT_EXEC, MAP_PRIVATE, MAP_ANONYMOUS = 1, 2, 4, 2, 0x20
SYSCALLS = {"unshare": 272, "mount": 165, "clock_settime": 227, "reboot": 169, "init_module": 175,
            "bpf": 321, "personality": 135, "mmap": 9}  # x86_64
if os.uname().machine == "aarch64":
    SYSCALLS = {"unshare": 97, "mount": 40, "clock_settime": 112, "reboot": 142, "init_module": 105,
                "bpf": 280, "personality": 92, "mmap": 222}


def name_of(number):
    return errno.errorcode.get(number, str(number))


def attempt(action):
    try:
        action()
    except OSError as error:
        return name_of(error.errno)
    return "yes"


def call(name, *arguments):
    """As the kernel answers: arguments are wrong where a right call would change something."""
    ctypes.set_errno(0)
    done = libc.syscall(SYSCALLS[name], *[ctypes.c_long(one) if isinstance(one, int) else one for one in arguments])
    return "yes" if done != -1 else name_of(ctypes.get_errno())


def make(path):
    def action():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        made.append(oct(os.stat(path).st_mode & 0o777))
        os.remove(path)
    return action


def make_folder(path):
    def action():
        os.mkdir(path)
        os.rmdir(path)
    return action


def opening(path, how=os.O_RDONLY):
    return lambda: os.close(os.open(path, how | os.O_NONBLOCK | os.O_NOCTTY))


def setuid_file():
    path = "/tmp/probe-suid"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    try:
        os.chmod(path, 0o4755)
    finally:
        os.remove(path)


def status():
    with open("/proc/self/status", encoding="ascii") as file:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return {key: lines[key].split()[0] for key in ("CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Uid")}


def first_line(path):
    with open(path, encoding="ascii") as file:
        return file.readline().split()


made = []
state = os.environ.get("STATE_DIRECTORY", "/var/lib")
answers = {
    "state": attempt(make(state + "/probe")),
    "etc": attempt(make("/etc/probe")),
    "var": attempt(make("/var/probe")),
    "cdi": attempt(make("/etc/cdi/probe")),
    "kubelet": attempt(make("/var/lib/kubelet/probe")),
    "cgroup": attempt(make_folder("/sys/fs/cgroup/probe")),
    "tunables": attempt(opening("/proc/irq/default_smp_affinity", os.O_WRONLY)),
    "home": attempt(lambda: os.listdir("/home/someone")),
    "tmp": attempt(lambda: os.stat("/tmp/of-others")),
    "init": attempt(lambda: os.stat("/proc/1")),
    "others": attempt(lambda: os.readlink("/proc/%s/exe" % sys.argv[1])),
    "kmsg": attempt(opening("/dev/kmsg")),
    "gpu": attempt(opening("/dev/gpu1", os.O_RDWR)),
    "chown": attempt(lambda: os.chown(state, 65534, 65534) or os.chown(state, os.getuid(), os.getgid())),
    "packets": attempt(lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()),
    "netlink": attempt(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()),
    "tcp": attempt(lambda: socket.socket(socket.AF_INET).close()),
    "suid": attempt(setuid_file),
    "chroot": attempt(lambda: os.chroot("/")),
    "unshare": call("unshare", CLONE_NEWUTS),
    "mount": call("mount", b"none", b"/nowhere", b"tmpfs", 0, None),
    "clock": call("clock_settime", CLOCK_REALTIME, (ctypes.c_long * 2)(0, -1)),
    "reboot": call("reboot", 0, 0, 0, None),
    "module": call("init_module", None, 0, None),
    "bpf": call("bpf", -1, None, 0),
    "personality": call("personality", PER_LINUX32),
    "write-execute": call("mmap", None, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
    "mode": made and made[0],
    "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    "users": first_line("/proc/self/uid_map"),
    "status": status(),
}
print(json.dumps(answers, indent=1))
