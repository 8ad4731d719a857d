"""A serve of its own and nodes, all real programs, for ./run and ../identity/run."""

import http.client
import json
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from started import end_all  # noqa: E402
from waiting import PATIENCE_S, own_port, wait_for  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
CLI = os.path.join(BUILD, "src/better-compute/better-compute")
BCD = os.path.join(BUILD, "src/bcd/bcd")
NAME = "gateway.better-compute.internal"
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith("BETTER_COMPUTE_")}


def write(path, text, mode=0o600):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w",
              encoding="utf-8") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class World:
    """A serve of its own, and as many nodes as a case wants."""

    def __init__(self, folder):
        self.folder, self.children = folder, []
        self.gateway = "127.0.0.1:%d" % own_port()  # over restarts: nodes are configured with it
        self.home = os.path.join(folder, "home")
        self.key_file = os.path.join(folder, "admin.key")
        self.secret_key = os.path.join(folder, "secret.key")
        self.log = os.path.join(folder, "serve.log")
        self.cli("serve", "--init", "--home", self.home, "--key-out", self.key_file)
        self.cli("secret-key", "init", "--file", self.secret_key)
        self.start_serve()

    def start_serve(self):
        ready = os.path.join(self.folder, "ready.json")
        if os.path.exists(ready):
            os.remove(ready)
        with open(self.log, "ab") as log:
            self.serve = subprocess.Popen(
                [CLI, "serve", "--home", self.home, "--listen", "127.0.0.1:0", "--gateway-listen",
                 self.gateway, "--secret-key-file", self.secret_key, "--ready-file", ready],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)
        self.children.append(self.serve)
        wait_for("serve is ready", lambda: os.path.exists(ready) or self.serve.poll() is not None)
        assert self.serve.poll() is None, read(self.log)
        told = json.loads(read(ready))
        self.api, self.gateway = told["api"].split("//")[1], told["gateway"]
        self.key = read(self.key_file).strip()

    def end(self):
        end_all(self.children)

    def stop_serve(self):
        self.serve.send_signal(signal.SIGTERM)
        assert self.serve.wait(PATIENCE_S) == 0, read(self.log)

    def cli(self, *words):
        done = subprocess.run([CLI, *words], capture_output=True, text=True, env=ENVIRONMENT,
                              check=False, timeout=60)
        assert done.returncode == 0, "%s\n%s%s" % (" ".join(words), done.stdout, done.stderr)
        return done.stdout

    def pki(self, *words):
        return json.loads(self.cli("pki", *words, "--home", self.home, "-o", "json"))

    def call(self, method, path, body=None):
        connection = http.client.HTTPConnection(self.api, timeout=30)
        headers = {"Authorization": "Bearer " + self.key}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        assert answer.status == 200, "%s %s: %d %s" % (method, path, answer.status, text)
        return json.loads(text)

    def make_pool(self):
        tenant = self.call("POST", "/v1/tenants", {"name": "acme"})["id"]
        site = self.call("POST", "/v1/sites", {"tenantId": tenant, "name": "home",
                                               "kind": "custom"})["id"]
        self.tenant = tenant
        self.pool = self.call("POST", "/v1/pools", {
            "tenantId": tenant, "siteId": site, "name": "h100", "class": "metal-host",
            "gpuModel": "H100", "policy": {}})["id"]

    def token(self):
        return self.call("POST", "/v1/join-tokens", {"poolId": self.pool, "maxUses": 10})["token"]

    def node(self, name, pins, jwk):
        return Node(self, name, pins, jwk)

    def connected(self, node):
        return self.call("GET", "/v1/nodes/" + node)["connected"]


class Node:
    def __init__(self, world, name, pins, jwk):
        self.world, self.folder = world, os.path.join(world.folder, name)
        os.makedirs(os.path.join(self.folder, "root"))
        self.log = os.path.join(self.folder, "bcd.log")
        self.config = os.path.join(self.folder, "config.toml")
        self.token_file = os.path.join(self.folder, "token")
        write(self.token_file, world.token() + "\n")
        write(os.path.join(self.folder, "gpus.toml"), GPUS % name)
        self.configure(pins, jwk)

    def configure(self, pins, jwk):
        write(self.config, CONFIG % {
            "folder": self.folder, "gateway": self.world.gateway, "name": NAME,
            "ca": pins["caPins"], "encryption": pins["encryptionPins"],
            "signing": pins["signingPins"], "jwk": json.dumps(json.dumps(jwk))})

    def join(self):
        return subprocess.run([BCD, "--config", self.config, "join", "--token-file",
                               self.token_file], capture_output=True, text=True, env=ENVIRONMENT,
                              check=False, timeout=60)

    def id(self):
        return json.loads(read(os.path.join(self.folder, "data/identity.json")))["nodeId"]

    def start(self):
        with open(self.log, "ab") as log:
            child = subprocess.Popen([BCD, "--config", self.config, "node"],
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env=ENVIRONMENT)
        self.world.children.append(child)
        return child


CONFIG = """
[paths]
root = "%(folder)s/root"
data = "%(folder)s/data"
run = "%(folder)s/run"
[gateway]
addresses = ["%(gateway)s"]
server_name = "%(name)s"
ca_pins = "%(ca)s"
[join]
encryption_jwk = %(jwk)s
encryption_pins = "%(encryption)s"
signing_pins = "%(signing)s"
[host]
units = false
[gpu]
source = "sim"
sim_file = "%(folder)s/gpus.toml"
[kubernetes]
node_name = "node"
"""

GPUS = """
version = 1
# %s
"""
