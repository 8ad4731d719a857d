"""Health, readiness, metrics, and what a service manager is told."""

import atexit
import functools
import glob
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time

from world import PATIENCE_S, World, wait_for


def readiness_over_a_start(postgres):
    """readyz says no while the database is waited for and migrated, and healthz always says yes"""
    # proves: ADM-10
    world = World(postgres).init()
    try:
        postgres.stop()
        replica = world.replica("a").start(wait=False)
        wait_for("it listens", lambda: replica.status("/healthz") == 200)
        assert replica.status("/readyz") == 503
        assert replica.request("GET", "/v1/pools")[0] == 503
        time.sleep(1.5)
        assert replica.status("/readyz") == 503 and not os.path.exists(replica.ready_file)
        postgres.start()
        wait_for("it is ready", replica.is_ready)
        assert replica.call("GET", "/v1/whoami")["role"] == "operator"
        # The database goes and comes back.
        postgres.stop()
        wait_for("it isn't ready any more", lambda: replica.status("/readyz") == 503)
        assert replica.status("/healthz") == 200
        assert replica.metrics()["better_compute_database_up"] == 0
        postgres.start()
        wait_for("it is ready again", replica.is_ready)
        assert replica.metrics()["better_compute_database_up"] == 1
        assert replica.end() == 0
        # Another replica migrates: the schema's lock is taken.
        lock = subprocess.Popen([postgres.programs + "/psql", "-Xq", postgres.conninfo(
            world.database)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        lock.stdin.write(b"SELECT pg_advisory_lock(7093482204071930);\n")
        lock.stdin.flush()
        wait_for("the lock is held", lambda: postgres.sql(
            world.database, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "1")
        replica.start(wait=False)
        wait_for("it listens", lambda: replica.status("/healthz") == 200)
        time.sleep(1)
        assert replica.status("/readyz") == 503
        lock.stdin.close()
        lock.wait(PATIENCE_S)
        wait_for("it is ready", replica.is_ready)
    finally:
        if not postgres.server:
            postgres.start()
        world.close()


def drain_says_so_first(_postgres):
    """SIGTERM: readyz says no, calls are still answered, then it ends"""
    # proves: ADM-10
    world = World().init()
    try:
        replica = world.replica("a", "--drain-delay", "2s").start()
        world.make_pool(replica)
        began = time.monotonic()
        replica.process.child.send_signal(signal.SIGTERM)
        wait_for("readyz says no", lambda: replica.status("/readyz") == 503)
        status, _ = replica.request("GET", "/v1/pools")
        assert status == 200, status
        assert replica.metrics()["better_compute_ready"] == 0
        replica.process.child.wait(PATIENCE_S)
        assert replica.process.child.returncode == 0
        assert 1.9 < time.monotonic() - began < 10  # its delay; what drains may take is 10 s more
    finally:
        world.close()


STRAY = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE)


def send_strays(process):
    """One that ends it does so within the time in which it is looked at again."""
    for number in STRAY:
        process.child.send_signal(number)
    try:
        process.child.wait(0.3)
    except subprocess.TimeoutExpired:
        return
    raise AssertionError("it ended with %d: %s" % (process.child.returncode, process.log()))


def stray_signals_end_nothing(postgres):
    """SIGHUP, SIGUSR1, SIGUSR2 and SIGPIPE end neither a control plane, whatever it does, nor a node's daemon"""
    # proves: ADM-7
    world = World(postgres).init()
    try:
        postgres.stop()
        replica = world.replica("a", "--drain-delay", "2s").start(wait=False)
        wait_for("it listens", lambda: replica.status("/healthz") == 200)
        send_strays(replica.process)
        postgres.start()
        wait_for("it is ready", replica.is_ready)
        world.make_pool(replica)
        world.add_nodes(1, replica)
        send_strays(replica.process)
        send_strays(world.nodes[0].bcd)
        assert replica.is_ready() and world.ready_nodes(replica) == 1
        made = replica.call("POST", "/v1/reservations", world.reservation(1))["id"]
        wait_for("the node still does what it is told", lambda: replica.call(
            "GET", "/v1/reservations/" + made)["state"] == "active")
        replica.process.child.send_signal(signal.SIGTERM)
        wait_for("it drains", lambda: replica.status("/readyz") == 503)
        send_strays(replica.process)
        assert replica.process.child.wait(PATIENCE_S) == 0, replica.process.log()
        assert world.nodes[0].bcd.end() == 0
    finally:
        if not postgres.server:
            postgres.start()
        world.close()


class Intruder:
    """Somebody who writes something by hand, and goes to lunch."""

    def __init__(self, world):
        if world.postgres:
            self.session = subprocess.Popen(
                [world.postgres.programs + "/psql", "-Xq", world.postgres.conninfo(world.database)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=dict(os.environ, PGAPPNAME="by-hand"))
            self.session.stdin.write(b"BEGIN; UPDATE counters SET value = value;\n")
            self.session.stdin.flush()
            wait_for("it is locked", lambda: world.postgres.sql(
                world.database, "SELECT count(*) FROM pg_locks WHERE relation = 'counters'::regclass AND granted") != "0")
        else:
            self.session = sqlite3.connect(world.folder + "/control.db", isolation_level=None)
            self.session.execute("BEGIN IMMEDIATE")

    def leave(self):
        if isinstance(self.session, subprocess.Popen):
            self.session.stdin.close()
            self.session.wait(PATIENCE_S)
        else:
            self.session.close()


def write_all_at_once(replica, count):
    """What so many clients are answered: (status, text) of each."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        replica.request("POST", "/v1/tenants", {"name": "late"}))) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(answers) == count
    return answers


def locked_by_hand(postgres, names):
    world = World(postgres).init()
    intruder = None
    try:
        replica = world.replica("a", "--workers", "4").start()
        intruder = Intruder(world)
        # The first ones wait for as long as a client does.
        for status, text in write_all_at_once(replica, 4):
            assert status == 503, (status, text)
        wait_for("it says so", lambda: "keeps" in replica.request("GET", "/readyz")[1])
        assert replica.status("/readyz") == 503 and replica.status("/healthz") == 200
        # From then on nobody waits long, so that there is somebody to read for others.
        began = time.monotonic()
        for status, text in write_all_at_once(replica, 8):
            assert status == 503 and "kept locked" in text and "Nothing was changed" in text, (status, text)
        assert time.monotonic() - began < 8, time.monotonic() - began
        assert replica.status("/v1/tenants") == 200
        with open(replica.process.log_path, encoding="utf-8") as file:
            assert names in file.read(), replica.process.log()
        intruder.leave()
        intruder = None
        wait_for("it is ready again", lambda: replica.status("/readyz") == 200)
        replica.call("POST", "/v1/tenants", {"name": "after"})
        assert [item["name"] for item in replica.list("/v1/tenants")].count("late") == 0
    finally:
        if intruder:
            intruder.leave()
        world.close()


def lock_of_another_session(postgres):
    """PostgreSQL: a session that was left open keeps writers out: readyz and the log say so, and readers go on"""
    # proves: ADM-10
    locked_by_hand(postgres, "(by-hand, idle in transaction)")


def lock_of_another_program(_postgres):
    """SQLite: a program that has the file locked keeps writers out: readyz and the log say so, and readers go on"""
    # proves: ADM-10
    locked_by_hand(None, "another program keeps")


@functools.cache
def find_promtool():
    """Unpacked once for all cases, in a folder that goes with this program."""
    given = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if given:
        return given
    folder = tempfile.mkdtemp(prefix="bc-promtool-", dir="/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    got = subprocess.run(["apt-get", "-q", "download", "prometheus"], cwd=folder, check=False,
                         capture_output=True, text=True)
    assert got.returncode == 0, got.stdout + got.stderr
    subprocess.run(["dpkg", "-x", glob.glob(folder + "/prometheus*.deb")[0], folder], check=True)
    return folder + "/usr/bin/promtool"


def metrics_are_clean(_postgres):
    """promtool has nothing to say about the metrics, and they count what happens"""
    world = World().init()
    try:
        promtool = find_promtool()
        replica = world.replica("a").start()
        world.make_pool(replica)
        world.add_nodes(2, replica)
        booked = replica.call("POST", "/v1/reservations", world.reservation(3))
        assert booked["state"] in ("placed", "active"), booked
        for path in ("/v1/reservations/" + booked["id"], "/v1/nothing", "/healthz"):
            replica.request("GET", path)
        replica.request("GET", "/v1/pools", key="bck_wrong")
        wait_for("the pass has run", lambda: replica.metrics()["better_compute_leader"] == 1)
        status, text = replica.request("GET", "/metrics")
        assert status == 200
        done = subprocess.run([promtool, "check", "metrics"], input=text, text=True,
                              capture_output=True, check=False)
        assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr
        found = replica.metrics()
        http = 'better_compute_http_requests_total{method="%s",route="%s",code="%s"}'
        assert found[http % ("POST", "/v1/reservations", 200)] == 1
        assert found[http % ("GET", "/v1/reservations/{id}", 200)] == 1
        assert found[http % ("GET", "/v1/pools", 401)] == 1
        assert found[http % ("other", "other", 404)] == 1
        assert found['better_compute_nodes{state="ready",connected="true"}'] == 2
        assert found["better_compute_gpus"] == 16 and found["better_compute_gpus_taken"] == 3
        assert found["better_compute_gateway_streams"] == 2
        assert found['better_compute_certificate_expiry_timestamp_seconds{'
                     'certificate="gateway"}'] > time.time() + 300 * 86400
        # A thousand more things make no more lines.
        for i in range(30):
            replica.call("POST", "/v1/tenants", {"name": "t%d" % i})
            replica.request("GET", "/v1/tenants/ten_%d" % i)
        assert len(replica.metrics()) < len(found) + 60
        # Who isn't on this machine shows an operator's key.
        status, _ = replica.request("GET", "/metrics", key="bck_no",
                                    headers={"X-Forwarded-For": "192.0.2.1"})
        assert status == 401, status
    finally:
        world.close()


def notifies_systemd(_postgres):
    """the service manager hears READY=1 once it serves, and STOPPING=1"""
    world = World().init()
    path = os.path.join(world.folder, "notify")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(PATIENCE_S)
            replica = world.replica("a")
            os.environ["NOTIFY_SOCKET"] = path
            import world as worlds
            worlds.ENVIRONMENT["NOTIFY_SOCKET"] = path
            try:
                replica.start()
                heard = b""
                while b"READY=1" not in heard:
                    heard += manager.recv(4096)
                assert replica.status("/readyz") == 200
                assert replica.end() == 0
                while b"STOPPING=1" not in heard:
                    heard += manager.recv(4096)
            finally:
                del os.environ["NOTIFY_SOCKET"], worlds.ENVIRONMENT["NOTIFY_SOCKET"]
    finally:
        world.close()


CASES = [readiness_over_a_start, drain_says_so_first, stray_signals_end_nothing,
         lock_of_another_session, lock_of_another_program, metrics_are_clean, notifies_systemd]
