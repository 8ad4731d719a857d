"""What the cases are made of: PostgreSQL, replicas of `serve`, real bcd nodes with simulated GPUs, all in temporary folders."""

import http.client
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from waiting import PATIENCE_S, own_port, wait_for  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
BUILD = os.environ.get("BUILD") or os.path.join(ROOT, "build")
CLI = os.path.join(BUILD, "src/better-compute/better-compute")
BCD = os.path.join(BUILD, "src/bcd/bcd")
STANDIN = os.path.join(BUILD, "src/standin/kubelet-standin")
GPUS = 8

ENVIRONMENT = {name: value for name, value in os.environ.items()
               if not name.startswith(("BETTER_COMPUTE_", "PG", "NOTIFY_"))}


def run(*words, ok=True):
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert (done.returncode == 0) == ok, "%s: %d\n%s%s" % (words, done.returncode, done.stdout,
                                                          done.stderr)
    return done.stdout + done.stderr if not ok else done.stdout


class Process:
    """A child that ends with us, and its log."""

    def __init__(self, log, *words, env=None):
        self.log_path = log
        with open(log, "ab") as out:
            self.child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                          env=dict(ENVIRONMENT, **(env or {})))

    def end(self, how=signal.SIGTERM, patience=PATIENCE_S):
        """Its exit status; killed when it takes too long, which is a failure."""
        if self.child.poll() is None:
            self.child.send_signal(how)
            try:
                self.child.wait(patience)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
                raise AssertionError("did not end: " + self.log()) from None
        return self.child.returncode

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()[-4000:]


class Postgres:
    """A server of our own: a folder, a unix socket, no port."""

    def __init__(self):
        versions = "/usr/lib/postgresql"
        self.programs = os.path.join(versions, max(os.listdir(versions), key=float), "bin")
        self.folder = tempfile.mkdtemp(prefix="bc-ops-pg-", dir="/tmp")
        self.user = {}
        if os.getuid() == 0:
            who = pwd.getpwnam("postgres")
            os.chown(self.folder, who.pw_uid, who.pw_gid)
            self.user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        subprocess.run([self.programs + "/initdb", "-D", self.folder + "/data", "-U", "postgres",
                        "-A", "trust", "-N", "--locale=C", "--encoding=UTF8"], check=True,
                       stdout=subprocess.DEVNULL, cwd="/", **self.user)
        self.server = None
        self.databases = 0
        self.start()

    def start(self):
        with open(self.folder + "/log", "ab") as log:
            self.server = subprocess.Popen(
                [self.programs + "/postgres", "-D", self.folder + "/data", "-k", self.folder,
                 "-c", "listen_addresses=", "-c", "max_connections=200"],
                stdout=log, stderr=log, cwd="/", start_new_session=True, **self.user)
        wait_for("PostgreSQL is there", self.is_up)

    def is_up(self):
        return subprocess.run([self.programs + "/pg_isready", "-q", "-h", self.folder],
                              check=False).returncode == 0

    def stop(self, how=signal.SIGINT):
        if self.server:
            self.server.send_signal(how)
            self.server.wait(PATIENCE_S)
            self.server = None

    def destroy(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def conninfo(self, database):
        return "host=%s user=postgres dbname=%s" % (self.folder, database)

    def make_database(self):
        self.databases += 1
        name = "ops_%d" % self.databases
        self.sql("postgres", "CREATE DATABASE " + name)
        return name

    def sql(self, database, statement):
        return run(self.programs + "/psql", "-XAtq", "-v", "ON_ERROR_STOP=1",
                   self.conninfo(database), "-c", statement).strip()

    def load(self, database, path):
        run(self.programs + "/psql", "-Xq", "-v", "ON_ERROR_STOP=1", self.conninfo(database),
            "-f", path)


class Refused(Exception):
    """An answer that isn't 200."""

    def __init__(self, status, body):
        super().__init__("%d %s" % (status, body[:500]))
        self.status, self.body = status, body

    @property
    def code(self):
        return json.loads(self.body)["error"]["code"]


class Replica:
    """One `better-compute serve`, on ports that it keeps over restarts."""

    def __init__(self, world, name, *options):
        self.world, self.name, self.options = world, name, options
        self.home = os.path.join(world.folder, name)
        if not os.path.exists(self.home):
            shutil.copytree(world.pki_home, self.home)
        self.ready_file = os.path.join(world.folder, name + ".ready")
        self.port, self.gateway_port = own_port(), own_port()
        self.process = None

    def start(self, *options, wait=True):
        self.process = Process(
            os.path.join(self.world.folder, self.name + ".log"), CLI, "serve", "--home", self.home,
            *self.world.database_words, "--listen", "127.0.0.1:%d" % self.port,
            "--gateway-listen", "127.0.0.1:%d" % self.gateway_port, "--ready-file",
            self.ready_file, *self.options, *options)
        if wait:
            wait_for(self.name + " is ready", self.is_ready)
        return self

    def is_ready(self):
        assert self.process.child.poll() is None, self.process.log()
        return self.status("/readyz") == 200

    def request(self, method, path, body=None, key=None, timeout=30, headers=()):
        """(status, text); status 0 when nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        all_headers = {"Authorization": "Bearer " + (key or self.world.key), **dict(headers)}
        if body is not None:
            all_headers["Content-Type"] = "application/json"
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None,
                               all_headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def status(self, path):
        try:
            return self.request("GET", path)[0]
        except OSError:
            return 0

    def call(self, method, path, body=None):
        status, text = self.request(method, path, body)
        if status != 200:
            raise Refused(status, text)
        return json.loads(text)

    def list(self, path):
        items, cursor = [], None
        while True:
            page = self.call("GET", "%s?limit=1000%s" % (path, "&cursor=" + urllib.parse.quote(
                cursor) if cursor else ""))
            items += page["items"]
            cursor = page.get("nextCursor")
            if not cursor:
                return items

    def metrics(self):
        """Every sample by its name and labels."""
        status, text = self.request("GET", "/metrics")
        assert status == 200, text
        return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                for line in text.splitlines() if not line.startswith("#")}

    def end(self, how=signal.SIGTERM):
        return self.process.end(how)


class Node:
    """A machine: kubelet-standin and bcd with simulated GPUs."""

    def __init__(self, world, name, gateways):
        self.folder = os.path.join(world.folder, name)
        self.name, self.world = name, world
        os.makedirs(self.folder + "/kubelet")
        os.makedirs(self.folder + "/cdi")
        self.config = self.path("config.toml")
        run(BCD, "sim", "init", "8xH100", "--out", self.path("gpus.toml"))
        self.configure(gateways)
        self.standin = self.bcd = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def configure(self, gateways):
        pins = self.world.pins
        with open(self.path("join.jwk"), "w", encoding="utf-8") as file:
            json.dump(pins["encryptionJwk"], file)
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("""[paths]
data = "{0}/data"
run = "{0}/run"
kubelet = "{0}/kubelet"
cdi = "{0}/cdi"
[gateway]
addresses = {1}
server_name = "gateway.better-compute.internal"
ca_pins = "{caPins}"
[join]
encryption_jwk = "{0}/join.jwk"
encryption_pins = "{encryptionPins}"
signing_pins = "{signingPins}"
[host]
units = false
[gpu]
source = "sim"
sim_file = "{0}/gpus.toml"
[kubernetes]
node_name = "{2}"
""".format(self.folder, json.dumps(gateways), self.name, **pins))

    def join(self, token):
        with open(self.path("token"), "w", encoding="ascii") as file:
            file.write(token)
        os.chmod(self.path("token"), 0o600)
        run(BCD, "--config", self.config, "join", "--token-file", self.path("token"))

    def start(self):
        self.standin = Process(self.path("kubelet.log"), STANDIN, "--root", self.path("kubelet"),
                               "--cdi", self.path("cdi"))
        self.start_bcd()

    def start_bcd(self):
        self.bcd = Process(self.path("bcd.log"), BCD, "--config", self.config, "node")

    def end(self):
        for process in (self.bcd, self.standin):
            if process:
                process.end(signal.SIGKILL)

    def pod(self, name, count):
        run(STANDIN, "ctl", "--root", self.path("kubelet"), "run-pod", name, "--resource",
            "bcd.dev/gpu", "--count", str(count))

    def delete_pod(self, name):
        run(STANDIN, "ctl", "--root", self.path("kubelet"), "delete-pod", name)

    def held(self):
        """Allocation to the devices of its CDI spec: what this machine's pods may use."""
        found = {}
        for name in os.listdir(self.path("cdi")):
            if name.startswith("bcd.dev-") and name.endswith(".json"):
                try:
                    with open(self.path("cdi/" + name), encoding="utf-8") as file:
                        spec = json.load(file)
                except FileNotFoundError:  # it was given back since the folder was read
                    continue
                found[name[len("bcd.dev-"):-len(".json")]] = sorted(
                    device["name"] for device in spec["devices"])
        return found


class World:
    """A control plane on a database of its own, and what belongs to it."""

    def __init__(self, postgres=None):
        self.folder = tempfile.mkdtemp(prefix="bc-ops-", dir="/tmp")
        self.postgres, self.database = postgres, None
        self.replicas, self.nodes, self.loads = [], [], []
        self.pki_home = os.path.join(self.folder, "first")
        if postgres:
            self.database = postgres.make_database()
            with open(self.folder + "/database", "w", encoding="ascii") as file:
                file.write(postgres.conninfo(self.database) + "\n")
            os.chmod(self.folder + "/database", 0o600)
            self.database_words = ["--database-file", self.folder + "/database"]
        else:
            self.database_words = ["--database", "sqlite:%s/control.db" % self.folder]

    def init(self):
        run(CLI, "serve", "--init", "--home", self.pki_home, *self.database_words, "--key-out",
            self.folder + "/key")
        self.read_keys()
        return self

    def read_keys(self):
        with open(self.folder + "/key", encoding="ascii") as file:
            self.key = file.read().strip()
        self.pins = json.loads(run(CLI, "pki", "show", "--home", self.pki_home, "-o", "json"))

    def replica(self, name, *options):
        self.replicas.append(Replica(self, name, *options))
        return self.replicas[-1]

    def make_pool(self, replica):
        me = replica.call("GET", "/v1/whoami")
        self.tenant = me["tenantId"]
        site = replica.call("POST", "/v1/sites", {"tenantId": self.tenant, "name": "home",
                                                  "kind": "platform"})
        self.pool = replica.call("POST", "/v1/pools", {
            "tenantId": self.tenant, "siteId": site["id"], "name": "h100", "class": "metal-host",
            "gpuModel": "H100", "policy": {"kubernetes": {"platformOperated": True}}})["id"]

    def add_nodes(self, count, replica, gateways=None):
        token = replica.call("POST", "/v1/join-tokens", {
            "poolId": self.pool, "ttl": "1h", "maxUses": count, "hosted": "kubernetes"})["token"]
        for i in range(count):
            node = Node(self, "gpu-%d" % len(self.nodes),
                        gateways or ["127.0.0.1:%d" % replica.gateway_port])
            node.join(token)
            node.start()
            self.nodes.append(node)
        wait_for("the nodes are ready", lambda: self.ready_nodes(replica) == len(self.nodes))

    @staticmethod
    def ready_nodes(replica):
        return sum(node["state"] == "ready" and node["connected"]
                   for node in replica.list("/v1/nodes"))

    def reservation(self, gpus, duration="1h"):
        return {"tenantId": self.tenant, "poolId": self.pool, "duration": duration,
                "devices": [{"class": "gpu", "count": gpus}], "binding": "kubernetes"}

    def held(self):
        """Of all machines: every device of every allocation, and that none is in two."""
        every = {}
        for node in self.nodes:
            for allocation, devices in node.held().items():
                for device in devices:
                    card = (node.name, device.split("@")[0])
                    assert card not in every, "%s is given to %s and %s" % (card, every[card],
                                                                           allocation)
                    every[card] = allocation
        return every

    def close(self):
        for load in self.loads:
            load.stop()
        for node in self.nodes:
            node.end()
        for replica in self.replicas:
            if replica.process:
                replica.process.end(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


class Load:
    """Clients that reserve and release without a pause, each at whichever replica is ready."""

    def __init__(self, world, clients, gpus=1, pause=0.02):
        self.world, self.gpus, self.pause = world, gpus, pause
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.calls = 0
        self.failures = []          # (seconds, what): calls that nobody answered with 200
        self.made = {}              # id to "reserved" or "released", as it was answered
        self.keys = 0
        self.broken = []            # why a client gave up: an answer that may not be
        world.loads.append(self)
        self.threads = [threading.Thread(target=self.run_client, args=(i,), daemon=True)
                        for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)

    def ready_replica(self, turn):
        """As a balancer does: one that says that it is ready, the next one each time."""
        replicas = self.world.replicas
        end = time.monotonic() + PATIENCE_S
        while True:
            for i in range(len(replicas)):
                one = replicas[(turn + i) % len(replicas)]
                if one.status("/readyz") == 200:
                    return one
            assert time.monotonic() < end, "no replica is ready"
            time.sleep(0.05)

    def call(self, turn, method, path, body=None):
        """One call; asked again elsewhere when nobody answered, as its idempotency key allows."""
        began = time.monotonic()
        while True:
            replica = self.ready_replica(turn)
            with self.lock:
                self.calls += 1
            try:
                return replica.call(method, path, body)
            except Refused as refused:
                if refused.status == 409 or refused.code in ("RESOURCES_EXHAUSTED",
                                                             "INVALID_STATE"):
                    return None
                what = str(refused)
                retryable = refused.status in (429, 503)
            except (OSError, http.client.HTTPException) as error:
                what, retryable = repr(error), True
            with self.lock:
                self.failures.append((time.monotonic(), replica.name, method, path, what))
            assert retryable, what
            assert time.monotonic() - began < PATIENCE_S, "no answer: " + what
            turn += 1
            time.sleep(0.05)

    def run_client(self, number):
        try:
            self.client(number)
        except Exception as error:
            self.broken.append(repr(error))

    def client(self, number):
        turn = number
        while not self.stopping.is_set():
            turn += 1
            with self.lock:
                self.keys += 1
                key = "load-%d" % self.keys
            made = self.call(turn, "POST", "/v1/reservations",
                             dict(self.world.reservation(self.gpus), idempotencyKey=key))
            if made:
                with self.lock:
                    self.made[made["id"]] = "reserved"
                time.sleep(self.pause)
                if self.call(turn, "POST", "/v1/reservations/%s/release" % made["id"], {}):
                    with self.lock:
                        self.made[made["id"]] = "released"
            time.sleep(self.pause)
