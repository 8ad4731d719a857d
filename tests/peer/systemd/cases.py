"""The units' life, in the order in which an admin meets it."""

import json
import os
import re
import time

from machine import ROOT, wait_for

API = "https://127.0.0.1:7480"
SERVE, BCD = "better-compute.service", "bcd.service"
CONFINED = {"CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2"}
# What both units refuse, and how the kernel says so. Without a unit's settings each of it is allowed, or fails otherwise.
REFUSED = {"etc": "EROFS", "var": "EROFS", "cgroup": "EROFS", "tunables": "EROFS|ENOENT", "home": "EACCES|ENOENT", "tmp": "ENOENT",
           "chown": "EPERM", "packets": "EAFNOSUPPORT", "suid": "EPERM", "chroot": "EPERM", "unshare": "EPERM", "mount": "EPERM",
           "clock": "EPERM", "reboot": "EPERM", "module": "EPERM", "bpf": "EPERM",
           "personality": "EPERM", "write-execute": "EPERM"}
KILLS = 6
POD = "0b6ed7a0_52a5_4c3b_9e5c_3a8a6b2f0c11"
HOLD = "import os, sys, time; os.open(sys.argv[1], os.O_RDWR | os.O_NOCTTY); print('open', flush=True); time.sleep(600)"


def blocks(document, heading):
    """The shell blocks of a document below a heading."""
    with open(os.path.join(ROOT, "docs/guide", document), encoding="utf-8") as file:
        text = file.read().split("\n## %s\n" % heading)[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)


def settings(document, heading):
    with open(os.path.join(ROOT, "docs/guide", document), encoding="utf-8") as file:
        text = file.read().split("\n## %s\n" % heading)[1].split("\n## ")[0]
    return re.search(r"^```toml\n(.*?)^```", text, re.M | re.S).group(1)


def replaced(text, **words):
    """Each must be there: what the guide leaves to its reader."""
    for old, new in words["each"]:
        assert old in text, "%s is not in: %s" % (old, text)
        text = text.replace(old, new)
    return text


def new_certificate(machine, name):
    """For the API, with its own key; two renames, as a tool for certificates does."""
    machine.shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=%s"
                  " -addext subjectAltName=IP:127.0.0.1 -keyout api.key -out api.pem 2>openssl.log\n"
                  "chown better-compute api.key && mv api.key api.pem /etc/better-compute/" % name)


def served_certificate(machine):
    return machine.run("sh", "-c", "openssl s_client -connect 127.0.0.1:7480 </dev/null 2>/dev/null | openssl x509 -noout -subject").strip()


def cli(machine, *words):
    return json.loads(machine.run("env", "BETTER_COMPUTE_API=" + API, "BETTER_COMPUTE_CA_FILE=/etc/better-compute/api.pem",
                                  "BETTER_COMPUTE_KEY_FILE=/root/admin.key", "better-compute", *words, "-o", "json"))


def main_pid(machine, unit):
    return int(machine.of_unit(unit, "MainPID"))


def bcd_status(machine):
    said = machine.ask("bcd", "status", "-o", "json")
    return json.loads(said.stdout) if said.stdout.startswith("{") else {}


def probe(machine, unit, confined=True):
    """What a program may do with the unit's settings; without them: as the system's other services."""
    machine.shell("[ -e /dev/kmsg ] || mknod -m 600 /dev/kmsg c 1 11")
    text = machine.run("systemctl", "cat", unit)
    kept = [line for line in text.splitlines() if not re.match(
        r"(#|Type|NotifyAccess|Exec|Restart|RuntimeDirectory|EnvironmentFile|Before|After|Wants|WantedBy|\[Install)", line)] \
        if confined else ["[Service]"]
    kept.insert(kept.index("[Service]") + 1, "Type=oneshot\nExecStart=/usr/bin/python3 /var/lib/probe.py %d\n"
                "StandardOutput=truncate:/run/probe.json" % main_pid(machine, "systemd-journald.service"))
    machine.write("/etc/systemd/system/probe.service", "\n".join(kept) + "\n")
    machine.shell("systemctl daemon-reload; systemctl start probe || { journalctl -q -o cat -u probe; exit 1; }")
    return json.loads(machine.read("/run/probe.json"))


def check_refused(machine, unit, also):
    free, held = probe(machine, unit, False), probe(machine, unit)
    wanted = dict(REFUSED, **also)
    for what, how in wanted.items():
        assert re.fullmatch(how, held[what]), "%s: %s ends with %s, not %s" % (unit, what, held[what], how)
        assert not re.fullmatch(how, free[what]), "%s is %s without the unit's settings, too" % (what, free[what])
    for what in ("state", "tcp"):
        assert held[what] == "yes", (what, held[what])
    assert held["mode"] == "0o600", held["mode"]
    assert CONFINED.items() <= held["status"].items(), held["status"]
    return held


def status_of(machine, unit):
    text = machine.read("/proc/%d/status" % main_pid(machine, unit))
    return dict(re.findall(r"^(\w+):\t(\w+)", text, re.M))


def mode_of(machine, path):
    return machine.run("stat", "-c", "%a %U", path).strip()


# --- the control plane

def units_are_clean(machine):
    """systemd-analyze finds nothing wrong with the units where they are installed, and little exposed"""
    machine.run("systemd-sysusers")
    with open(os.path.join(ROOT, "docs/guide/run.md"), encoding="utf-8") as file:
        guide = re.sub(r"\s+", " ", file.read())
    for unit, most, manual in ((SERVE, 15, "man1/better-compute.1"), (BCD, 31, "man8/bcd.8")):
        path = "/usr/local/lib/systemd/system/" + unit
        machine.run("test", "-s", "/usr/local/share/man/" + manual)
        program = manual[5:-2]
        for completion in ("bash-completion/completions/%s.bash", "zsh/site-functions/_%s", "fish/vendor_completions.d/%s.fish"):
            machine.run("test", "-s", "/usr/local/share/" + completion % program)
        said = machine.ask("systemd-analyze", "verify", "--man=no", path)
        assert said.returncode == 0 and not (said.stdout + said.stderr).strip(), said
        said = machine.ask("systemd-analyze", "security", "--offline=true", "--threshold=%d" % most, path)
        assert said.returncode == 0, said.stdout.strip().splitlines()[-1]
        rating = re.search(r"exposure level for \S+: ([0-9.]+)", said.stdout).group(1)
        assert "%s %s" % (unit, rating) in guide, "docs/guide/run.md rates %s otherwise than %s" % (unit, rating)


def serve_is_installed(machine):
    """the control plane is installed and started by the guide's own commands, and serves when systemctl start returns"""
    build, install = blocks("run.md", "Under systemd")
    assert "meson install" in build, build
    *before, start, take_key = install.strip().splitlines()
    machine.shell("\n".join(before))
    new_certificate(machine, "first")
    machine.shell("sed -i 's|^SERVE_OPTIONS=.*|SERVE_OPTIONS=\"--gateway-address 127.0.0.1:7443 --tls-cert /etc/better-compute/api.pem"
                  " --tls-key /etc/better-compute/api.key\"|' /etc/better-compute/serve.env")
    assert start == "systemctl enable --now better-compute", start
    machine.shell(start)
    machine.run("python3", "-c", "import ssl, sys, urllib.request as web\n"
                "web.urlopen(sys.argv[1], context=ssl.create_default_context(cafile=sys.argv[2]))", API + "/readyz",
                "/etc/better-compute/api.pem")  # anything but 200 raises
    assert machine.of_unit(SERVE, "ActiveState") == "active"
    assert machine.of_unit(SERVE, "StatusText") == "serving"
    assert machine.run("systemctl", "is-enabled", SERVE).strip() == "enabled"
    assert mode_of(machine, "/var/lib/better-compute") == "700 better-compute"
    assert mode_of(machine, "/var/lib/better-compute/admin.key") == "600 better-compute"
    machine.shell(take_key)
    assert mode_of(machine, "/root/admin.key") == "600 root"
    assert cli(machine, "nodes")["items"] == []


def serve_is_confined(machine):
    """better-compute.service has no capability, no device, no sight of others, and writes to its own folder alone"""
    held = check_refused(machine, SERVE, {
        "init": "ENOENT", "others": "ENOENT", "kmsg": "ENOENT|EPERM|EACCES", "gpu": "ENOENT",
        "netlink": "EAFNOSUPPORT"})
    assert held["status"]["CapEff"] == held["status"]["CapBnd"] == "0000000000000000", held["status"]
    assert held["users"][2] != "4294967295", held["users"]
    running = status_of(machine, SERVE)
    assert CONFINED.items() <= running.items() and running["CapBnd"] == "0000000000000000", running
    limits = machine.read("/proc/%d/limits" % main_pid(machine, SERVE))
    core = re.search(r"^Max core file size +(\d+) +(\d+)", limits, re.M).groups()
    assert core == ("1", "1"), core  # 0 would keep no dump from a program that kernel.core_pattern names
    files = re.search(r"^Max open files +(\d+) +(\d+)", limits, re.M).groups()
    assert files[0] == files[1], files


def serve_reloads(machine):
    """systemctl reload better-compute shows the API's new certificate, without a restart"""
    before = main_pid(machine, SERVE)
    assert served_certificate(machine) == "subject=CN = first"
    new_certificate(machine, "second")
    machine.run("systemctl", "reload", SERVE)
    wait_for("the new certificate is served", lambda: served_certificate(machine) == "subject=CN = second")
    assert main_pid(machine, SERVE) == before


# --- a GPU machine

def bcd_is_installed(machine):
    """a machine joins and starts bcd by the guide's own commands, and its GPUs are there to be booked"""
    control, = blocks("machines.md", "The control plane's side")
    machine.shell("export BETTER_COMPUTE_CA_FILE=/etc/better-compute/api.pem\n" + replaced(control, each=(
        ("https://compute.example.com", API), ("~/admin.key", "/root/admin.key"))))
    pins = json.loads(machine.run("better-compute", "pki", "show", "-o", "json"))
    config = replaced(settings("machines.md", "The machine's side"), each=(
        ("compute.example.com:7443", "127.0.0.1:7443"), ("https://compute.example.com", API),
        ('ca_pins = "sha256/…"', 'ca_pins = "%s"' % pins["caPins"]),
        ('encryption_pins = "sha256/…"', 'ca_file = "/etc/better-compute/api.pem"\nencryption_pins = "%s"' % pins["encryptionPins"]),
        ('signing_pins = "sha256/…"', 'signing_pins = "%s"' % pins["signingPins"]),
        ("[kubernetes]\n", '[kubernetes]\nkubeconfig = ""\n'),
        ('source = "auto"', 'source = "sim"')))
    machine.shell("mkdir /etc/bcd")
    machine.write("/etc/bcd/config.toml", config)
    join, simulated = blocks("machines.md", "The machine's side")
    first, start, look = join.strip().splitlines()
    machine.shell(first)
    assert mode_of(machine, "/var/lib/bcd") == "700 root"
    machine.shell(replaced(simulated, each=(("8xH100", "2xH100"),)))
    machine.shell(r"sed -i 's|^prefix = .*|prefix = \"/dev/gpu\"|; s|^base = .*|base = 0|' /var/lib/bcd/gpus.toml")
    assert start == "systemctl enable --now bcd", start
    machine.shell(start)
    machine.run("systemctl", "start", "kubelet")
    assert machine.of_unit(BCD, "ActiveState") == "active"
    assert machine.of_unit(BCD, "StatusText") == "serving"
    assert look.split("#")[0].strip() == "bcd status", look
    said = machine.run("bcd", "status")
    assert len(re.findall(r"^ +[01]  gpu/", said, re.M)) == 2, said
    wait_for("the node is ready", lambda: [(one["state"], one["connected"]) for one in cli(machine, "nodes")["items"]] ==
             [("ready", True)])


def bcd_keeps_its_files(machine):
    """bcd's state, sockets and CDI specs are where the documents say, for root alone"""
    for path in ("/var/lib/bcd", "/run/bcd"):
        assert mode_of(machine, path) == "700 root", path
    for path in ("/var/lib/bcd/identity.json", "/var/lib/bcd/node.key", "/var/lib/bcd/node.pem", "/run/bcd/bcd.sock"):
        assert mode_of(machine, path) == "600 root", path
    machine.booking = cli(machine, "reserve", "--pool", "h100", "--gpus", "2", "--for", "1h", "--kubernetes", "--wait")["id"]
    wait_for("both GPUs are offered", lambda: bcd_status(machine)["resources"][0]["healthy"] == 2)
    assert re.fullmatch(r"bcd\.dev-alc_\w+\.json\n", machine.run("ls", "/etc/cdi"))


# proves: HOSTED-40
def bcd_is_confined(machine):
    """bcd.service keeps what it needs of root, and bcd says that it gave up the rest"""
    held = check_refused(machine, BCD, {})
    for what in ("cdi", "kubelet", "init", "others", "kmsg", "gpu", "netlink"):
        assert held[what] == "yes", (what, held[what])
    bits = int(held["status"]["CapBnd"], 16)
    assert [bit for bit in range(64) if bits >> bit & 1] == [1, 2, 19, 34, 40], held["status"]
    running = status_of(machine, BCD)
    assert CONFINED.items() <= running.items() and running["CapBnd"] == held["status"]["CapBnd"], running
    told = bcd_status(machine)["confinement"]
    assert set(told["done"]) == {"privileges", "capabilities", "calls", "dumps"}, told
    assert [one["what"] for one in told["missing"]] == ["files"], told


def allocation_state(machine):
    one, = cli(machine, "reservations", "show", machine.booking)["allocations"]
    return one["state"]


# proves: REL-10 REL-12
def holders_are_seen(machine):
    """a release waits for another user's process in a pod that has a GPU open, and not for one that has none"""
    for unit, device in (("holder", "/dev/gpu1"), ("bystander", "/dev/null")):
        machine.run("systemd-run", "-q", "--unit", unit, "--slice", "kubepods-besteffort-pod%s.slice" % POD, "--uid", "nobody",
                    "python3", "-c", HOLD, device)
        wait_for(unit + " runs", lambda unit=unit: "open" in machine.journal(unit))
    cli(machine, "release", machine.booking)
    wanted = "process %d (python3) of pod %s" % (main_pid(machine, "holder"), POD.replace("_", "-"))
    wait_for("the holder is seen", lambda: [
        one["name"] for release in bcd_status(machine)["releases"] for one in release["holders"]] == [wanted])
    assert allocation_state(machine) == "releasing"
    machine.run("systemctl", "stop", "holder")
    wait_for("it is released", lambda: allocation_state(machine) == "released")
    machine.run("systemctl", "stop", "bystander")


# --- both

def killed_ones_come_back(machine):
    """kill -9, again and again: systemd starts both anew, and what is bound stays bound"""
    booking = cli(machine, "reserve", "--pool", "h100", "--gpus", "1", "--for", "1h", "--kubernetes", "--wait")["id"]
    for unit in (BCD, SERVE):
        for _ in range(KILLS):  # more often than systemd lets a service start in 10 s by default
            before = main_pid(machine, unit)
            machine.run("systemctl", "kill", "--kill-who=main", "--signal=KILL", unit)
            wait_for(unit + " is there again", lambda unit=unit, before=before: machine.of_unit(unit, "ActiveState") == "active"
                     and main_pid(machine, unit) not in (0, before))
        assert machine.of_unit(unit, "NRestarts") == str(KILLS)
    wait_for("the node is connected", lambda: cli(machine, "nodes")["items"][0]["connected"])
    wait_for("the GPU is offered again", lambda: [one["offered"] for one in bcd_status(machine).get("resources", [])] == [1])
    assert cli(machine, "reservations", "show", booking)["state"] == "active"


def journal_is_json(machine):
    """what both write to the journal is one JSON object a line, with nothing else in it"""
    for unit, ready in ((SERVE, "serve.ready"), (BCD, "ready")):
        found = [json.loads(line) for line in machine.run("journalctl", "-q", "-o", "cat", "_SYSTEMD_UNIT=" + unit).splitlines()]
        assert all(one["time"] and one["level"] and one["message"] for one in found)
        # One that was killed may not have got to say so.
        assert 1 < sum(one["event"] == ready for one in found) <= KILLS + 1, [one["event"] for one in found]


def both_stop(machine):
    """systemctl stop and restart end both at once and in good order, and take along what belongs in /run only"""
    for unit in (BCD, SERVE):
        began = time.monotonic()
        machine.run("systemctl", "stop", unit)
        took = time.monotonic() - began
        assert took < 15, "%s took %.1f s" % (unit, took)
        for name, value in (("ActiveState", "inactive"), ("Result", "success"), ("ExecMainStatus", "0"), ("ExecMainCode", "1")):
            assert machine.of_unit(unit, name) == value, (unit, name, machine.of_unit(unit, name))
    assert machine.ask("test", "-e", "/run/bcd").returncode == 1
    assert machine.ask("test", "-e", "/var/lib/bcd/identity.json").returncode == 0
    machine.run("systemctl", "start", SERVE, BCD)
    wait_for("the GPU is offered again", lambda: [one["offered"] for one in bcd_status(machine).get("resources", [])] == [1])


# --- what the guide has the operator do later

def one_block(machine, heading, number=0, each=()):
    """Runs a block of the guide but for what it says of PostgreSQL, which isn't here."""
    lines = [line for line in blocks("run.md", heading)[number].splitlines() if "--database-file" not in line]
    return machine.shell("export BETTER_COMPUTE_CA_FILE=/etc/better-compute/api.pem\n" + replaced("\n".join(lines), each=each))


def restores(machine):
    """the guide's backup and restore: the control plane serves what it had, and the node comes back"""
    before = cli(machine, "reservations")["items"]
    today = machine.run("date", "+%F").strip()
    one_block(machine, "Backup and restore")
    one_block(machine, "Backup and restore", 1, each=(("2026-11-29", today),))
    assert machine.of_unit(SERVE, "ActiveState") == "active"
    assert [one["id"] for one in cli(machine, "reservations")["items"]] == [one["id"] for one in before]
    wait_for("the node is connected", lambda: cli(machine, "nodes")["items"][0]["connected"])


def keeps_secrets(machine):
    """the guide's key file for secrets, also when its key has changed"""
    option = "--secret-key-file /var/lib/better-compute/secret.key"
    machine.shell("sed -i 's|^SERVE_OPTIONS=\"|&%s |' /etc/better-compute/serve.env" % option)
    one_block(machine, "Secrets")
    assert option in machine.read("/proc/%d/cmdline" % main_pid(machine, SERVE)).replace("\0", " ")
    machine.shell("echo hidden > secret; chmod 0600 secret")
    tenant = cli(machine, "tenants", "list")["items"][0]["id"]
    made = cli(machine, "secrets", "create", "one", "--from", "/root/secret", "--tenant", tenant)["sealedBy"]
    machine.run("runuser", "-u", "better-compute", "--", "better-compute", "secret-key", "rotate")
    wait_for("it is sealed by the new key", lambda: cli(machine, "secrets")["items"][0]["sealedBy"] != made)


def keys_change(machine):
    """the guide's new keys for the control plane: node and control plane go on over a restart of both"""
    begin, middle, finish = blocks("run.md", "New keys for the control plane")[0].strip().splitlines()
    assert middle.startswith("#"), middle
    for words in (("pki", "rotate", "begin"), ("secret-key", "rotate")):  # as root
        refused = machine.ask("better-compute", *words)
        assert refused.returncode != 0 and "Run it as that user" in refused.stderr, refused
    machine.shell(begin)
    pins = json.loads(machine.run("better-compute", "pki", "show", "-o", "json"))
    for key, name in (("ca_pins", "caPins"), ("encryption_pins", "encryptionPins"), ("signing_pins", "signingPins")):
        assert "," in pins[name], pins
        machine.shell("sed -i 's|^%s = .*|%s = \"%s\"|' /etc/bcd/config.toml" % (key, key, pins[name]))
    machine.run("systemctl", "restart", BCD)
    machine.shell(finish)
    machine.run("systemctl", "restart", SERVE)
    wait_for("the node is connected", lambda: cli(machine, "nodes")["items"][0]["connected"])
    assert machine.run("find", "/var/lib/better-compute", "!", "-user", "better-compute") == ""


def lost_key_is_replaced(machine):
    """the guide's other operator key: the old one is refused"""
    one_block(machine, "When the operator key is lost", each=(("http://127.0.0.1:7480", API), ("revoke first", "revoke first --yes")))
    refused = machine.ask("env", "BETTER_COMPUTE_CA_FILE=/etc/better-compute/api.pem", "better-compute", "nodes", "--api", API,
                          "--key-file", "/root/admin.key")
    assert refused.returncode != 0, refused
    machine.shell("mv admin2.key admin.key")
    wait_for("the node is connected", lambda: cli(machine, "nodes")["items"][0]["connected"])


# --- a driver

DRIVER = {"driver": "570.124.06", "cuda": "12.8", "gpus": [
    {"uuid": "GPU-5a1c0de0-0000-4000-8000-000000000000", "pci": "00000000:1A:00.0", "minor": 3, "name": "NVIDIA H100 80GB HBM3",
     "memory_total_bytes": 80 << 30, "mig_mode": 0, "temperature_c": 71}]}


def driver_is_read(machine):
    """under the unit's confinement bcd reads a driver, by NVML and by nvidia-smi, and follows the kernel's log"""
    machine.write("/var/lib/bcd/driver.json", json.dumps(DRIVER))
    machine.write("/etc/bcd/bcd.env", "FAKE_DRIVER=/var/lib/bcd/driver.json\n")
    machine.shell(r"""sed -i 's|^source = .*|source = "sim"\nnvml_library = "/usr/local/bin/libnvidia-ml.so.1"\n"""
                  r"""nvidia_smi = "/usr/local/bin/nvidia-smi"|' /etc/bcd/config.toml""")
    for source in ("nvml", "nvidia-smi"):
        machine.shell("sed -i 's|^source = .*|source = \"%s\"|' /etc/bcd/config.toml; systemctl restart bcd" % source)
        wait_for("the GPU is read by " + source, lambda: [
            (one["atom"], one["healthy"]) for one in bcd_status(machine).get("devices", []) if one["state"] == "free"] ==
            [("gpu/5a1c0de0-0000-4000-8000-000000000000", True)])
        told = bcd_status(machine)
        assert told["gpuSource"] == source and told["driver"] == DRIVER["driver"], told
        assert "KernelLogUnreadable" not in [one["type"] for one in told["conditions"]], told["conditions"]
        assert set(told["confinement"]["done"]) == {"privileges", "capabilities", "calls", "dumps"}, told["confinement"]
    with open(os.path.join(ROOT, "docs/internals/confinement.md"), encoding="utf-8") as file:
        more = re.search(r"^```ini\n(.*?)^```", file.read(), re.M | re.S).group(1)
    machine.run("mkdir", "/etc/systemd/system/bcd.service.d")
    machine.write("/etc/systemd/system/bcd.service.d/override.conf", more)
    machine.shell("systemctl daemon-reload; systemctl restart bcd")
    wait_for("bcd keeps what a driver may need, and drops what it doesn't", lambda: bcd_status(machine).get("confinement", {}).get(
        "capabilities") == ["dac_override", "dac_read_search", "sys_chroot", "sys_ptrace", "sys_admin", "mknod", "syslog", "checkpoint_restore"])
    held = probe(machine, BCD)
    assert held["chroot"] == "yes" and held["mount"] == held["unshare"] == "EPERM", held
    machine.run("rm", "/dev/kmsg")
    machine.run("systemctl", "restart", BCD)
    wait_for("it says so", lambda: "KernelLogUnreadable" in [one["type"] for one in bcd_status(machine).get("conditions", [])])


CASES = [units_are_clean, serve_is_installed, serve_is_confined, serve_reloads, bcd_is_installed, bcd_keeps_its_files,
         bcd_is_confined, holders_are_seen, killed_ones_come_back, journal_is_json, both_stop,
         restores, keeps_secrets, keys_change, lost_key_is_replaced,
         driver_is_read]
