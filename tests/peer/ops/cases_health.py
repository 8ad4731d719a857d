"""Health, readiness, metrics, and the units of systemd."""

import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from world import CLI, ROOT, World, run, wait_for


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
        lock.wait(10)
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
        replica.process.child.send_signal(signal.SIGTERM)
        wait_for("readyz says no", lambda: replica.status("/readyz") == 503, 5)
        status, _ = replica.request("GET", "/v1/pools")
        assert status == 200, status
        assert replica.metrics()["better_compute_ready"] == 0
        began = time.monotonic()
        replica.process.child.wait(15)
        assert replica.process.child.returncode == 0
        assert 0.5 < time.monotonic() - began < 5
    finally:
        world.close()


def find_promtool(folder):
    given = os.environ.get("PROMTOOL") or shutil.which("promtool")
    if given:
        return given
    subprocess.run(["apt-get", "-q", "download", "prometheus"], cwd=folder, check=True,
                   capture_output=True)
    subprocess.run(["dpkg", "-x", glob.glob(folder + "/prometheus*.deb")[0], folder], check=True)
    return folder + "/usr/bin/promtool"


def metrics_are_clean(_postgres):
    """promtool has nothing to say about the metrics, and they count what happens"""
    world = World().init()
    tools = tempfile.mkdtemp(prefix="bc-promtool-", dir="/tmp")
    try:
        promtool = find_promtool(tools)
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
        shutil.rmtree(tools, ignore_errors=True)


def notifies_systemd(_postgres):
    """the service manager hears READY=1 once it serves, and STOPPING=1"""
    world = World().init()
    path = os.path.join(world.folder, "notify")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(20)
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


def units_are_clean(_postgres):
    """systemd-analyze finds nothing wrong with the units, and little exposed"""
    folder = tempfile.mkdtemp(prefix="bc-units-", dir="/tmp")
    units = os.path.join(ROOT, "packaging/systemd")
    try:
        for name in ("better-compute.service", "bcd.service"):
            with open(os.path.join(units, name), encoding="utf-8") as file:
                text = file.read()
            # The programs are where this build has them.
            for program in ("better-compute", "bcd"):
                text = text.replace("/usr/bin/%s " % program, "/bin/true ")
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            said = subprocess.run(["systemd-analyze", "verify", "--man=no", os.path.join(folder, name)],
                                  capture_output=True, text=True, check=False)
            assert said.returncode == 0 and not said.stderr.strip(), said.stderr
        for name, most in (("better-compute.service", 15), ("bcd.service", 30)):
            said = subprocess.run(
                ["systemd-analyze", "security", "--offline=true", "--threshold=%d" % most,
                 os.path.join(folder, name)], capture_output=True, text=True, check=False)
            last = said.stdout.strip().splitlines()[-1]
            assert said.returncode == 0, last
            print("     " + last.replace(folder + "/", ""))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


CASES = [readiness_over_a_start, drain_says_so_first, metrics_are_clean, notifies_systemd,
         units_are_clean]
