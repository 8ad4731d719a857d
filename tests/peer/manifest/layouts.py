"""Hosts laid out as distributions lay them out, and what a pod sees of them through its mounts."""

import os

KUBEADM = """\
apiVersion: v1
kind: Config
clusters:
- cluster: {certificate-authority-data: Y2E=, server: "https://10.0.0.1:6443"}
  name: default
contexts:
- context: {cluster: default, user: default}
  name: default
current-context: default
users:
- name: default
  user:
    client-certificate: /var/lib/kubelet/pki/kubelet-client-current.pem
    client-key: /var/lib/kubelet/pki/kubelet-client-current.pem
"""
RANCHER = """\
apiVersion: v1
kind: Config
clusters:
- cluster: {certificate-authority: /var/lib/rancher/NAME/agent/server-ca.crt, server: "https://127.0.0.1:6444"}
  name: local
contexts:
- context: {cluster: local, user: user}
  name: Default
current-context: Default
users:
- name: user
  user:
    client-certificate: /var/lib/rancher/NAME/agent/client-kubelet.crt
    client-key: /var/lib/rancher/NAME/agent/client-kubelet.key
"""
EVERYWHERE = {
    "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint": "", "/var/lib/kubelet/pods/1/volumes/secret": "s",
    "/var/lib/kubelet/pod-resources/": None, "/dev/nvidia0": "", "/sys/class/": None,
    "/usr/local/nvidia/toolkit/.config/nvidia-container-runtime/config.toml": "",
    "/etc/nvidia-container-runtime/config.toml": "", "/etc/kubernetes/admin.conf": "s",
    "/etc/kubernetes/pki/ca.key": "s",
}
KUBELET = {
    "/etc/kubernetes/kubelet.conf": KUBEADM, "/var/lib/kubelet/pki/kubelet-client-2026-11-30-00-00-00.pem": "pem",
    "/var/lib/kubelet/pki/kubelet-client-current.pem": "-> /var/lib/kubelet/pki/kubelet-client-2026-11-30-00-00-00.pem",
}


def rancher(name):
    agent = "/var/lib/rancher/%s/agent/" % name
    return {agent + "kubelet.kubeconfig": RANCHER.replace("NAME", name), agent + "server-ca.crt": "ca",
            agent + "client-kubelet.crt": "crt", agent + "client-kubelet.key": "key",
            agent + "etc/containerd/config.toml": "version = 3\n",
            "/var/lib/rancher/%s/server/tls/server-ca.key" % name: "s"}


# Name: files of the host, options, files of the runtime's configuration that bcd must see.
LAYOUTS = {
    "kubeadm with containerd": (dict(KUBELET, **{"/etc/containerd/config.toml": "version = 3\n"}), {},
                                ["/etc/containerd/config.toml"]),
    "k3s": (rancher("k3s"), {"containerRuntime": "k3s", "kubeletCredentials": "k3s", "nvidiaToolkit": "packages"},
            ["/var/lib/rancher/k3s/agent/etc/containerd/config.toml"]),
    "rke2": (rancher("rke2"), {"containerRuntime": "rke2", "kubeletCredentials": "rke2"},
             ["/var/lib/rancher/rke2/agent/etc/containerd/config.toml"]),
    "cri-o": (dict(KUBELET, **{"/etc/crio/crio.conf": "", "/etc/crio/crio.conf.d/00-default": "", "/etc/crio/crio.conf.d/99-nvidia": ""}),
              {"containerRuntime": "cri-o"},
              ["/etc/crio/crio.conf", "/etc/crio/crio.conf.d/00-default", "/etc/crio/crio.conf.d/99-nvidia"]),
    "cri-o with drop-ins alone": (dict(KUBELET, **{"/etc/crio/crio.conf.d/00-default": ""}),
                                  {"containerRuntime": {"files": [], "dirs": ["/etc/crio/crio.conf.d"]}},
                                  ["/etc/crio/crio.conf.d/00-default"]),
}
# What no pod of ours may see of any of them.
SECRETS = ("/etc/kubernetes/admin.conf", "/etc/kubernetes/pki/ca.key", "/var/lib/kubelet/pods/1/volumes/secret",
           "/var/lib/rancher/k3s/server/tls/server-ca.key", "/var/lib/rancher/rke2/server/tls/server-ca.key")


def lay_out(root, files):
    for path, text in dict(EVERYWHERE, **files).items():
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        if text is None:
            continue
        if text.startswith("-> "):
            os.symlink(text[3:], root + path)
        else:
            with open(root + path, "w", encoding="utf-8") as file:
                file.write(text)


class View:
    """The host `root` as a container with these mounts sees it."""

    def __init__(self, root, pod):
        self.root = root
        paths = {volume["name"]: volume["hostPath"] for volume in pod["volumes"] if "hostPath" in volume}
        self.mounts = {mount["mountPath"]: paths[mount["name"]] for mount in pod["containers"][0]["volumeMounts"]
                       if mount["name"] in paths}

    def missing(self):
        """Of the paths, those that would keep the pod from starting."""
        kinds = {"File": os.path.isfile, "Directory": os.path.isdir}
        return [host["path"] for host in self.mounts.values()
                if not kinds.get(host["type"], lambda _: True)(self.root + host["path"])]

    def at(self, path):
        """Where that is on this machine; None outside of all mounts. Links lead to paths of the container."""
        walked = "/"
        for part in path.strip("/").split("/"):
            walked = os.path.join(walked, part)
            here = self.mapped(walked)
            if here and os.path.islink(here):
                return self.at(os.path.join(os.path.dirname(walked), os.readlink(here)) +
                               path[len(walked):])
        return self.mapped(path)

    def mapped(self, path):
        inside = [mount for mount in self.mounts if path == mount or path.startswith(mount + "/")]
        if not inside:
            return None
        mount = max(inside, key=len)
        return self.root + self.mounts[mount]["path"] + path[len(mount):]
