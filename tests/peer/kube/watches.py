"""A node's watch of its pods, of a real API server: each pod's last word, also over what interrupts a watch."""

import contextlib
import json
import os
import select
import socket
import subprocess
import threading
import time

import world

PROBE = os.path.join(world.BUILD, "tests/peer/kube/kube_probe")


class Watch:
    """One kube_probe that watches pods; what it tells, in order."""

    def __init__(self, config, selector):
        self.child = subprocess.Popen([PROBE, "--watch", config, "pod", selector], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.come, self.told = b"", []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        status = self.child.wait(20)
        self.child.stdout.close()
        assert status == 0, "kube_probe ended with %s" % status

    def next(self, patience=40):
        out, end = self.child.stdout, time.monotonic() + patience
        while b"\n" not in self.come:
            left = end - time.monotonic()
            assert left > 0 and select.select([out], [], [], left)[0], "nothing was told after %s" % self.told
            data = os.read(out.fileno(), 65536)
            assert data, "kube_probe ended"
            self.come += data
        line, self.come = self.come.split(b"\n", 1)
        self.told.append(json.loads(line))
        return self.told[-1]

    def expect(self, event, **more):
        told = self.next()
        while told["event"] in ("OPEN", "FAILED") and told["event"] != event:  # as an interruption lasts
            told = self.next()
        assert dict(more, event=event).items() <= told.items(), (event, more, self.told)
        assert told["live"] is (event != "FAILED"), told
        return told


class Between:
    """Stands between a client and the API server, and cuts what goes through it."""

    def __init__(self, port):
        self.port, self.both, self.open = port, [], True
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            if not self.open:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self.port))
            self.both += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    @staticmethod
    def carry(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        self.open = False
        for end in self.both:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self):
        self.open = True

    def end(self):
        self.cut()
        self.listener.close()


def say_the_last_word(plane, pod):
    """As a kubelet whose pod was deleted: its phase is final, and then it is gone."""
    plane.kubectl("patch", "pod", pod, "--subresource=status", "--type=merge", "-p", json.dumps({"status": {"phase": "Succeeded"}}))
    plane.kubectl("delete", "pod", pod, "--grace-period=0", "--force")


def hear_the_last_word(watch, pod):
    watch.expect("MODIFIED", name=pod, deleting=True, phase="Succeeded")
    watch.expect("MODIFIED", name=pod, deleting=True, phase="Succeeded")  # its grace is none now
    watch.expect("DELETED", name=pod, deleting=True, phase="Succeeded")


def case_a_watch(plane):
    name, _ = plane.node()
    other, _ = plane.node()
    config = os.path.join(plane.folder, name, "kubelet.conf")
    there, _ = plane.pod(name)
    with Watch(config, "spec.nodeName=" + name) as watch:
        watch.expect("ADDED", name=there, phase="Running")  # as it starts without a version
        plane.pod(other)  # of which nothing is told
        pod, _ = plane.pod(name)
        watch.expect("ADDED", name=pod, phase="Pending", deleting=False)
        watch.expect("MODIFIED", name=pod, phase="Running")
        plane.kubectl("delete", "pod", pod, "--wait=false")
        watch.expect("MODIFIED", name=pod, phase="Running", deleting=True)
        say_the_last_word(plane, pod)
        hear_the_last_word(watch, pod)
    with Watch(config, "") as watch:  # the pods of all nodes are no node's
        told = watch.expect("FAILED")
        assert "watch pods: the API server says 403 (forbidden): pods is forbidden" in told["message"], told


def case_a_watch_that_is_cut(plane):
    """What happens meanwhile is told afterwards, once, and what is known isn't told again."""
    name, _ = plane.node()
    between, path = Between(plane.port), os.path.join(plane.folder, name, "between.conf")
    with open(os.path.join(plane.folder, name, "kubelet.conf"), encoding="utf-8") as file:
        config = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(config.replace(plane.server, "https://127.0.0.1:%d" % between.listener.getsockname()[1]))
    there, _ = plane.pod(name)
    with Watch(path, "spec.nodeName=" + name) as watch:
        watch.expect("ADDED", name=there)
        pod, _ = plane.pod(name)
        watch.expect("ADDED", name=pod)
        watch.expect("MODIFIED", name=pod)
        between.cut()
        plane.kubectl("delete", "pod", pod, "--wait=false")
        say_the_last_word(plane, pod)
        between.mend()
        watch.expect("MODIFIED", name=pod, phase="Running", deleting=True)
        hear_the_last_word(watch, pod)
    between.end()


@contextlib.contextmanager
def watching_over_a_restart(plane, name):
    """The API server goes and comes inside. Its memory of what was is gone then: the watch's version has run out, it starts
    anew, and all that is there is told again."""
    there, _ = plane.pod(name)
    with Watch(os.path.join(plane.folder, name, "kubelet.conf"), "spec.nodeName=" + name) as watch:
        watch.expect("ADDED", name=there)
        plane.kubectl("label", "pod", there, "seen=yes")
        watch.expect("MODIFIED", name=there)  # from here it goes on: what is there at first is no place in time
        plane.kubectl("create", "configmap", plane.new_name("newer"))
        yield
        watch.expect("ADDED", name=there)
        plane.kubectl("delete", "pod", there, "--wait=false")
        watch.expect("MODIFIED", name=there, deleting=True)
        say_the_last_word(plane, there)
        hear_the_last_word(watch, there)
