"""The real bcd with what is rendered for a cluster, a real control plane and a real API server: the labels it keeps on
its Node with that Node's own credentials; and what pods ask for, as it is printed to be pasted."""

import contextlib
import json
import os
import re
import subprocess
import textwrap
import time

import yaml

import world
from manifests import IMAGE, ROOT
from started import end_all

PREFIX = "bcd.dev/"
STANDIN = os.path.join(world.BUILD, "src/standin/kubelet-standin")


@contextlib.contextmanager
def control_plane(plane):
    """A World whose tenant has a site and a pool of its own."""
    folder = os.path.join(plane.folder, plane.new_name("world"))
    os.mkdir(folder)
    place = world.World(folder, pool=False)
    try:
        place.site = place.call("POST", "/v1/sites", {"tenantId": place.tenant, "name": "dc1", "kind": "custom"})["id"]
        place.pool = place.call("POST", "/v1/pools", {
            "tenantId": place.tenant, "siteId": place.site, "name": "h100", "class": "metal-host", "gpuModel": "H100",
            "policy": {"kubernetes": {}}})["id"]
        make_manifests(place)
        yield place
    finally:
        place.end()


def make_manifests(place):
    place.manifest("--tenant", place.tenant, "--pool", place.pool, "--image", IMAGE, "--secret-out", "secret.json",
                   "--out", "bcd.json", "--serving-ca-pin", place.pins["caPins"], "--join-signing-pin",
                   place.pins["signingPins"], "--join-encryption-pin", place.pins["encryptionPins"])


class serving:
    """bcd with simulated GPUs and what was rendered, joined by the Secret's token, as the machine of that Node; its
    kubelet is a stand-in."""

    def __init__(self, place, node, kubeconfig, manifests="bcd.json", secret="secret.json"):
        self.folder = work = os.path.join(place.work, "machine")
        with open(os.path.join(place.work, manifests), encoding="utf-8") as file:
            data = {one["kind"]: one for one in json.load(file)["items"]}["ConfigMap"]["data"]
        token, = json.loads(world.read(os.path.join(place.work, secret)))["stringData"].values()
        os.makedirs(work + "/root/var/lib/kubelet")
        self.children = []
        world.write(work + "/token", token)
        world.write(work + "/join.jwk", data["join.jwk"])
        rendered = data["config.toml"].replace("/etc/bcd/join.jwk", work + "/join.jwk")
        for path in ("/etc/containerd/config.toml", "/usr/local/nvidia/toolkit/.config"):  # what would be mounted
            os.makedirs(os.path.dirname(work + path))
            world.write(work + path, "version = 3\n")
            assert '["%s"]' % path in rendered, rendered
            rendered = rendered.replace(path, work + path)
        assert rendered.rstrip().split("\n[")[-1].startswith("kubernetes]"), rendered  # what follows is of that section
        world.write(work + "/config.toml", '[paths]\nroot = "%s/root"\nproc = "/proc"\n[gpu]\nsource = "sim"\nsim_file = "%s/gpus.toml"\n%s'
                    'node_name = "%s"\nkubeconfig = "%s"\n' % (work, work, rendered, node, kubeconfig))
        bcd = [world.BCD, "--config", work + "/config.toml"]
        for words in ([world.BCD, "sim", "init", "8xH100", "--out", work + "/gpus.toml"],
                      [*bcd, "join", "--token-file", work + "/token"]):
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
        self.programs = {"kubelet": [STANDIN, "--root", work + "/root/var/lib/kubelet", "--cdi", work + "/root/etc/cdi"],
                         "bcd": [*bcd, "node"]}
        self.start_all()

    def start_all(self):
        for name, words in self.programs.items():
            self.start(name, words)

    def log(self):
        return world.read(self.folder + "/bcd.log")

    def start(self, name, words):
        with open("%s/%s.log" % (self.folder, name), "wb") as log:
            self.children.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=world.CLEAN))

    def alive(self):
        for child in self.children:
            assert child.poll() is None, world.read(self.folder + "/bcd.log") + world.read(self.folder + "/kubelet.log")
        return True

    def end(self):
        end_all(self.children)
        self.children.clear()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def of_bcd(labels):
    return {name[len(PREFIX):]: value for name, value in labels.items() if name.startswith(PREFIX)}


def documented():
    with open(os.path.join(ROOT, "docs/formats/labels.md"), encoding="utf-8") as file:
        return set(re.findall(r"^\| `bcd\.dev/([a-z.-]+)`", file.read(), re.M))


# proves: HOSTED-20 HOSTED-22 HOSTED-43 OBS-1 OBS-19
def case_labels_of_a_node(plane):
    name, _ = plane.node()
    foreign = {"example.com/kept": "yes", "nvidia.com/gpu.product": "theirs", "not-bcd.dev/x": "1", "bcd.dev.example.com/x": "1"}
    plane.kubectl("label", "node", name, *["%s=%s" % one for one in foreign.items()], "bcd.dev/old=1", "bcd.dev/gpu.count=99")
    plane.kubectl("annotate", "node", name, "example.com/note=kept", "bcd.dev/note=kept")
    plane.kubectl("taint", "node", name, "example.com/theirs=1:NoSchedule")

    def get():
        return plane.kubectl_json("get", "node", name)

    def changes():
        calls = plane.calls_about_nodes("system:node:" + name)
        assert {verb for _, verb in calls} <= {"get", "patch"}, calls
        return [when for when, verb in calls if verb == "patch"]
    before = get()
    with control_plane(plane) as place, serving(place, name, os.path.join(plane.folder, name, "kubelet.conf")) as bcd:
        wanted = {"gpu.count": "8", "gpu.product": "NVIDIA-H100-80GB-HBM3", "site": place.site}

        plane.wait("the first labels", lambda: bcd.alive() and of_bcd(get()["metadata"]["labels"]).get("gpu.count") == "8")
        labels = of_bcd(get()["metadata"]["labels"])
        assert wanted.items() <= labels.items() and "old" not in labels and len(changes()) == 1, (labels, changes())
        # What is spoiled, and what is learnt, within a minute waits for its end, and comes in one change.
        plane.kubectl("label", "node", name, "--overwrite", "bcd.dev/gpu.count=1", "bcd.dev/site-", "bcd.dev/hers=1")
        plane.wait("bcd changes it again", lambda: bcd.alive() and len(changes()) > 1, 120)
        node, (first, second) = get(), changes()
        assert (second - first).total_seconds() >= 59.9, (first, second)
        labels = of_bcd(node["metadata"]["labels"])
        joined, = place.call("GET", "/v1/nodes")["items"]
        wanted.update({"node-id": joined["id"], "pool": "h100"})
        assert wanted.items() <= labels.items(), labels
        assert set(labels) == documented(), set(labels) ^ documented()
        # Who is retired is nobody's node any more, and doesn't say otherwise when it is started again.
        place.call("POST", "/v1/nodes/%s/retire" % joined["id"])
        plane.wait("the labels are removed", lambda: bcd.alive() and not of_bcd(get()["metadata"]["labels"]), 120)
        bcd.end()
        made, calls = len(changes()), len(plane.calls_about_nodes("system:node:" + name))
        bcd.start_all()
        plane.wait("bcd is refused", lambda: bcd.alive() and "was retired" in bcd.log())
        plane.wait("bcd has read the Node", lambda: bcd.alive() and len(plane.calls_about_nodes("system:node:" + name)) > calls)
        time.sleep(2)  # a patch would follow at once
        assert len(changes()) == made and not of_bcd(get()["metadata"]["labels"]), get()["metadata"]["labels"]
    # Nothing of anybody else's was touched, and no taint is set.
    metadata, was = node["metadata"], before["metadata"]
    def others(labels):
        return {key: value for key, value in labels.items() if not key.startswith(PREFIX)}
    assert others(metadata["labels"]) == others(was["labels"]) and foreign.items() <= metadata["labels"].items()
    assert metadata["annotations"] == was["annotations"] and node["spec"] == before["spec"]
    assert node["status"] == before["status"]


# proves: HOST-6 HOST-13
def case_what_pods_ask_for(plane):
    name, _ = plane.node()
    namespace = plane.new_name("asking")
    plane.kubectl("create", "namespace", namespace)
    with control_plane(plane) as place, serving(place, name, os.path.join(plane.folder, name, "kubelet.conf")) as bcd:
        def cli(*words):
            return subprocess.run([world.CLI, *words], env=place.environment(), text=True, check=False, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=60)

        def booked():
            bcd.alive()
            done = cli("reserve", "--tenant", place.tenant, "--pool", place.pool, "--gpus", "4", "--for", "1h", "--kubernetes",
                       "--memory", "1", "--cpus", "1", "--idempotency-key", "one", "-o", "name")
            assert done.returncode in (0, 3, 4), done.stderr  # no place yet
            return done.stdout.strip()
        plane.wait("the node takes a booking", booked)
        plane.wait("it is placed", lambda: cli("reservations", "pod-requests", booked()).returncode == 0)
        for words, devices in (((), "4"), (("--devices", "1"), "1"), (("--devices", "3"), "3")):
            block = cli("reservations", "pod-requests", booked(), *words).stdout
            manifest = ("apiVersion: v1\nkind: Pod\nmetadata: {name: train}\nspec:\n  containers:\n  - name: main\n"
                        "    image: example.com/train\n" + textwrap.indent(block, "    "))
            done = plane.run_kubectl(("create", "--validate=strict", "--dry-run=server", "-o", "json", "-n", namespace, "-f", "-"),
                                     manifest)
            assert done.returncode == 0, (manifest, done.stderr)
            taken = json.loads(done.stdout)["spec"]["containers"][0]["resources"]
            assert taken["limits"]["bcd.dev/gpu"] == taken["requests"]["bcd.dev/gpu"] == devices, taken
            # The API server understands the quantities as they were meant: nothing is rounded or renamed.
            assert taken == yaml.safe_load(block)["resources"], (taken, block)
            assert "cpu" in taken["requests"] and "memory" in taken["limits"], taken
