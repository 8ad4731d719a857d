"""What `better-compute kubernetes manifest` renders, given to a real API server with Pod Security admission, and to
kubectl's own kustomize."""

import copy
import json
import os
import subprocess

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.path.abspath(os.environ.get("BUILD") or os.path.join(ROOT, "build"))
CLI = os.path.join(BUILD, "src/better-compute/better-compute")
PIN = "sha256/" + "A" * 43 + "="
REPOSITORY = "registry.example.com/bcd"
IMAGE = REPOSITORY + "@sha256:" + "0123456789abcdef" * 4
OTHER_DIGEST = "sha256:" + "f" * 64
OPTIONS = {"image": IMAGE, "gatewayUrl": "https://gw.example.com:7443", "siteId": "site_01kb7s4x5n000000000000000a",
           "pins": {"servingCaPin": PIN, "joinSigningPin": PIN, "joinEncryptionPin": PIN},
           "controlPlaneUrl": "https://compute.example.com"}
VARIANTS = (
    {},
    {"gpuApi": "dra", "kubeletCredentials": "k3s", "containerRuntime": "k3s", "nvidiaToolkit": "packages",
     "nodeSelector": {"nvidia.com/gpu.present": "true"}, "imagePullSecrets": ["pull"]},
    {"containerRuntime": "cri-o", "nvidiaRuntimeClass": None, "priorityClassName": None, "hostUnits": True, "logLevel": "debug",
     "tolerations": [{"key": "gpu", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 60}],
     "resources": {"requests": {"cpu": "0.5", "memory": "64Mi"}, "limits": {"cpu": "2", "memory": "1.5Gi"}},
     "kubeletCredentials": {"kubeconfig": "/var/lib/kubelet/kubeconfig", "certificateDirs": ["/var/lib/kubelet/pki", "/etc/kubernetes/kubelet-pki"]}},
)


def render(plane, changes, form="json"):
    """The path of the manifests of the options with `changes`."""
    stem = os.path.join(plane.folder, plane.new_name("manifest"))
    with open(stem + ".options", "w", encoding="utf-8") as file:
        json.dump(dict(OPTIONS, **changes), file)
    subprocess.run([CLI, "kubernetes", "manifest", "--options", stem + ".options", "--out", stem + "." + form, "-o", form],
                   check=True)
    return stem + "." + form


def objects(path):
    with open(path, encoding="utf-8") as file:
        return {item["kind"]: item for item in json.load(file)["items"]}


def said(plane, *words):
    """What kubectl says of each object, by its kind."""
    lines = [line.split() for line in plane.kubectl(*words).splitlines()]
    return {line[0].split("/")[0].split(".")[0]: line[1] for line in lines}


# proves: HOSTED-38 MAN-41 MAN-46 MAN-62 MAN-66
def case_manifests_are_accepted(plane):
    for changes in VARIANTS:
        name = plane.new_name("bcd")
        changes = dict(changes, namespace=name)
        path, document = render(plane, changes), render(plane, changes, "yaml")
        plane.kubectl("apply", "-f", "-", text=json.dumps(objects(path)["Namespace"]))
        tried = said(plane, "apply", "--validate=strict", "--dry-run=server", "-f", path)
        assert set(tried) == {"namespace", "configmap", "daemonset"} and tried["namespace"] == "unchanged", tried
        plane.kubectl("apply", "--validate=strict", "-f", path)
        # The same again changes nothing, in either form; a new digest changes the pods alone.
        before = plane.kubectl_json("get", "daemonset,configmap", "-n", name, "-l", "app.kubernetes.io/name=bcd")
        for again in (path, document):
            plane.kubectl("diff", "-f", again)
            plane.kubectl("apply", "--validate=strict", "-f", again)
        after = plane.kubectl_json("get", "daemonset,configmap", "-n", name, "-l", "app.kubernetes.io/name=bcd")
        assert [one.get("spec", one.get("data")) for one in after["items"]] == [
            one.get("spec", one.get("data")) for one in before["items"]] and len(after["items"]) == 2
        assert [one["metadata"].get("generation") for one in after["items"]] == [
            one["metadata"].get("generation") for one in before["items"]]
        upgrade = render(plane, dict(changes, image=REPOSITORY + "@" + OTHER_DIGEST))
        assert said(plane, "apply", "-f", upgrade) == {"namespace": "unchanged", "configmap": "unchanged",
                                                       "daemonset": "configured"}
        made = plane.kubectl_json("get", "daemonset", "bcd", "-n", name)["spec"]
        assert made["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}, made
        assert made["template"]["spec"]["automountServiceAccountToken"] is False


def pod_of(path):
    template = copy.deepcopy(objects(path)["DaemonSet"]["spec"]["template"])
    template["metadata"]["name"] = "bcd-1"
    return dict(template, apiVersion="v1", kind="Pod")


# proves: HOSTED-38 MAN-46
def case_pod_security(plane):
    path = render(plane, {"namespace": plane.new_name("bcd")})
    namespace = objects(path)["Namespace"]
    plane.kubectl("apply", "-f", "-", text=json.dumps(namespace))
    pod = json.dumps(pod_of(path))
    create = ("create", "--validate=strict", "--dry-run=server", "-f", "-", "-n")
    # Without the RuntimeClass the admin is told which one is missing.
    refused = plane.run_kubectl((*create, namespace["metadata"]["name"]), pod)
    assert refused.returncode != 0 and 'RuntimeClass "nvidia" not found' in refused.stderr, refused.stderr
    plane.kubectl("apply", "-f", "-", text=json.dumps({
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"}))
    plane.wait("the API server knows the RuntimeClass",
               lambda: plane.run_kubectl((*create, namespace["metadata"]["name"]), pod).returncode == 0)
    # Elsewhere nobody gets such a pod.
    for level in ("baseline", "restricted"):
        other = plane.new_name(level)
        plane.kubectl("create", "-f", "-", text=json.dumps({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": other, "labels": {"pod-security.kubernetes.io/enforce": level}}}))
        refused = plane.run_kubectl((*create, other), pod)
        assert refused.returncode != 0 and "violates PodSecurity" in refused.stderr, refused.stderr
        for what in ('privileged (container "bcd"', "hostNetwork=true", "hostPath"):
            assert what in refused.stderr, refused.stderr


def case_kustomize(plane):
    path = render(plane, {"namespace": "gpu"}, "yaml")
    wanted = list(yaml.safe_load_all(open(path, encoding="utf-8")))
    folder = os.path.dirname(path)
    with open(os.path.join(folder, "kustomization.yaml"), "w", encoding="utf-8") as file:
        file.write("resources: [%s]\n" % os.path.basename(path))
    built = list(yaml.safe_load_all(plane.kubectl("kustomize", folder)))
    assert sorted(built, key=str) == sorted(wanted, key=str)
    with open(os.path.join(folder, "kustomization.yaml"), "a", encoding="utf-8") as file:
        file.write("images: [{name: %s, digest: '%s'}]\n" % (REPOSITORY, OTHER_DIGEST))
    daemon = [one for one in yaml.safe_load_all(plane.kubectl("kustomize", folder)) if one["kind"] == "DaemonSet"][0]
    pod = daemon["spec"]["template"]["spec"]
    assert {one["image"] for one in pod["containers"] + pod["initContainers"]} == {REPOSITORY + "@" + OTHER_DIGEST}
    os.remove(os.path.join(folder, "kustomization.yaml"))
