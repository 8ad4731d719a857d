"""docs/guide/in-a-cluster.md, its commands run as they stand: a real control plane, a real API server, and the real bcd
as the machine of one of its Nodes. What needs a registry, Helm's client or NVIDIA's tools is ```text there."""

import os
import re
import subprocess

import world
from manifests import CLI, IMAGE, OTHER_DIGEST, REPOSITORY, ROOT
from nodes import documented, of_bcd, serving

# What the page for the cluster's admin must tell.
TOLD = ("Whoever can read the live token can join a machine to the pool: `--max-uses` is the number of your nodes, `--ttl` as short",
        "namespaces of workloads enforce Pod Security `baseline` or `restricted`", "bcd never reboots one",
        "No virtual machines on these nodes", "bcd sees its own filesystem and the paths above", "CPU and memory of a node are the kubelet's",
        "Anything else is said in the options file: containerd's `conf.d`", "another `toolkit.installDir`", "The project publishes none",
        "Render", "The namespace, then the Secret, then the rest")


def guide():
    """The commands of that page, as it has them; lines with "…" are for each to fill in, and the tenant is there."""
    with open(os.path.join(ROOT, "docs/guide/in-a-cluster.md"), encoding="utf-8") as file:
        text = file.read()
    for told in TOLD:
        assert told in " ".join(text.split()), told
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) > 8, blocks
    return ["\n".join(line for line in block.split("\n") if "…" not in line and "https://compute" not in line and "tenants create" not in line)
            for block in blocks]


def programs(plane, folder):
    """better-compute and kubectl, as a person's PATH has them."""
    os.mkdir(folder)
    os.symlink(CLI, os.path.join(folder, "better-compute"))
    with open(os.path.join(folder, "kubectl"), "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nexec "%s" kubectl "$@"\n' % plane.binary)
    os.chmod(os.path.join(folder, "kubectl"), 0o755)
    return folder


class Reader:
    """Who goes through the page."""

    def __init__(self, plane, place):
        self.said, self.work = "", place.work
        self.environment = dict(
            place.environment(), PATH=programs(plane, os.path.join(place.folder, "bin")) + ":" + os.environ["PATH"], image=IMAGE,
            KUBECONFIG=os.path.join(plane.pki, "admin.kubeconfig"), KUBECACHEDIR=os.path.join(place.folder, "cache"),
            BCD_SERVING_CA_PIN=place.pins["caPins"], BCD_JOIN_SIGNING_PIN=place.pins["signingPins"],
            BCD_JOIN_ENCRYPTION_PIN=place.pins["encryptionPins"])

    def run(self, block):
        """As in one shell: a later block knows the booking of an earlier one."""
        known = os.path.join(self.work, ".booking")
        script = '[ ! -e "%s" ] || . "%s"\n%s\n[ -z "${booking:-}" ] || declare -p booking > "%s"\n' % (known, known, block, known)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=self.work, env=self.environment, text=True,
                              check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
        assert done.returncode == 0, "%s\n%s%s" % (block, done.stdout, done.stderr)
        self.said += done.stdout
        return done.stdout


# proves: MAN-28 MAN-59 MAN-62 HOSTED-15 HOSTED-29 HOSTED-34 HOSTED-37 HOST-6 JOIN-15
def case_the_admins_page(plane):
    name, _ = plane.node()
    folder = os.path.join(plane.folder, "guide")
    os.mkdir(folder)
    place = world.World(folder, pool=False)
    bcd = None
    try:
        reader = Reader(plane, place)
        for block in guide():
            if "bcd-2.json" in block:
                reader.environment["image"] = REPOSITORY + "@" + OTHER_DIGEST
            if "retire" in block:
                bcd.end()
            reader.run(block)
            if "acme.key" in block:  # from here on the reader is no operator
                reader.environment["BETTER_COMPUTE_KEY_FILE"] = os.path.join(place.work, "acme.key")
            if "bcd-join-secret.json" in block and "kubectl apply" in block:
                bcd = serving(place, name, os.path.join(plane.folder, name, "kubelet.conf"), "bcd.json", "bcd-join-secret.json")
                plane.wait("the node is ready", lambda: "ready" in reader.run("better-compute nodes"))
                plane.wait("its Node is labelled", lambda: of_bcd(plane.kubectl_json("get", "node", name)["metadata"].get("labels", {})))
        for line in ("secret/bcd-join created", "daemonset.apps/bcd created", 'secret "bcd-join" deleted', "pod/train created",
                     "daemonset.apps/bcd configured", 'pod "train" deleted', 'daemonset.apps "bcd" deleted', "released", "retired"):
            assert line in reader.said, (line, reader.said)
        assert sorted(token["state"] for token in place.tokens()) == ["live", "revoked"], place.tokens()
        assert [node["state"] for node in place.call("GET", "/v1/nodes")["items"]] in ([], ["retired"])
        for node in plane.kubectl_json("get", "nodes")["items"]:
            assert not of_bcd(node["metadata"].get("labels", {})), node["metadata"]["labels"]
        taken = re.findall(r"bcd\.dev/([a-z.-]+[a-z])- ?", "\n".join(guide()))
        assert set(taken) == documented(), set(taken) ^ documented()
    finally:
        if bcd:
            bcd.end()
        place.end()
