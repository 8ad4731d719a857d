"""Three replicas on PostgreSQL under load: the leader killed, the database restarted, a rolling restart."""

import signal
import threading
import time

from world import Load, World, wait_for

KILLS = 4            # of the leader; run says 20 with --full
MAX_GAP_S = 5        # without a leader (ADM-7)
NODES, CLIENTS = 3, 4


class Watch:
    """Looks at what the machines give to their pods, all the time: no card is ever in two hands."""

    def __init__(self, world):
        self.world, self.stopping, self.failure, self.looks = world, threading.Event(), None, 0
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        while not self.stopping.is_set():
            try:
                self.world.held()
                self.looks += 1
            except AssertionError as error:
                self.failure = error
                return
            except (OSError, ValueError):
                pass  # a file that went away meanwhile
            time.sleep(0.02)

    def stop(self):
        self.stopping.set()
        self.thread.join()
        assert self.failure is None, self.failure
        assert self.looks > 10


class Fleet:
    """A world with three replicas, nodes that know all of them, and load."""

    def __init__(self, postgres, *options):
        self.postgres = postgres
        self.world = world = World(postgres).init()
        try:
            for name in "abc":
                world.replica(name, *options).start()
            world.make_pool(world.replicas[0])
            gateways = ["127.0.0.1:%d" % replica.gateway_port for replica in world.replicas]
            world.add_nodes(NODES, world.replicas[0], gateways)
            self.watch = Watch(world)
            self.load = Load(world, CLIENTS)
        except BaseException:
            world.close()
            raise

    def sql(self, statement):
        return self.postgres.sql(self.world.database, statement)

    def lease(self):
        """(fence, is it held)."""
        fence, held = self.sql("SELECT fence, until_ms > (extract(epoch FROM clock_timestamp()) * 1000)::bigint "
                               "FROM leases WHERE name = 'pass'").split("|")
        return int(fence), held == "t"

    def leader(self):
        """The replica that leads, once one does."""
        def find():
            for replica in self.world.replicas:
                try:
                    if replica.metrics()["better_compute_leader"] == 1:
                        return replica
                except (OSError, AssertionError, KeyError):
                    pass
            return None
        return wait_for("somebody leads", find)

    def progress(self, count=10):
        """Bookings go on being made."""
        before = len(self.load.made)
        wait_for("bookings are made", lambda: self.load.broken or len(self.load.made) >= before + count)
        assert not self.load.broken, self.load.broken

    def check(self):
        """Nothing that was answered is lost, nothing was made twice, and all comes to rest."""
        world, load = self.world, self.load
        load.stop()
        assert not load.broken, load.broken
        replica = world.replicas[0]
        found = {one["id"]: one for one in replica.list("/v1/reservations")}
        assert set(load.made) <= set(found), "lost: %s" % (set(load.made) - set(found))
        keys = int(self.sql("SELECT count(*) FROM idempotency WHERE idempotency_key LIKE 'load-%'"))
        assert len(found) == keys <= load.keys, (len(found), keys, load.keys)
        for one, answered in load.made.items():
            assert answered != "released" or found[one]["state"] in ("released", "failed"), found[one]
        for one in found.values():
            if one["state"] in ("pending", "placed", "active"):
                replica.call("POST", "/v1/reservations/%s/release" % one["id"], {})
        wait_for("all is given back", lambda: not world.held())
        wait_for("no booking is left", lambda: self.sql("SELECT count(*) FROM bookings") == "0")
        wait_for("all nodes are connected", lambda: world.ready_nodes(replica) == NODES)
        assert self.lease()[1], "nobody leads"
        self.watch.stop()

    def close(self):
        self.watch.stopping.set()
        self.world.close()


def killed_leaders(postgres):
    """failover: the leader is killed under load, again and again: nothing lost, nothing doubled, a new one within 5 s"""
    # proves: ADM-7
    fleet = Fleet(postgres, "--drain-delay", "0s")
    gaps = []
    try:
        for _ in range(KILLS):
            fleet.progress()
            leader = fleet.leader()
            fence, _held = fleet.lease()
            killed = time.monotonic()
            leader.end(signal.SIGKILL)
            wait_for("another one leads", lambda fence=fence: fleet.lease()[0] > fence, pause=0.02)
            gaps.append(time.monotonic() - killed)
            fleet.progress()
            leader.start()
        fleet.check()
        broken_off = len(fleet.load.failures)
        print("     %d kills, %d bookings, %d calls, %d of them broken off and asked again; longest gap %.1f s"
              % (KILLS, len(fleet.load.made), fleet.load.calls, broken_off, max(gaps)))
        assert max(gaps) <= MAX_GAP_S, gaps
    finally:
        fleet.close()


def restarted_database(postgres):
    """failover: PostgreSQL is restarted under load: errors are retryable, and nothing is lost"""
    fleet = Fleet(postgres, "--drain-delay", "0s")
    try:
        for how in (signal.SIGINT, signal.SIGQUIT):  # a fast shutdown, and an immediate one: a crash
            fleet.progress()
            postgres.stop(how)
            time.sleep(1)
            postgres.start()
            fleet.progress()
        fleet.check()
        print("     %d bookings, %d calls, %d of them refused as retryable or broken off"
              % (len(fleet.load.made), fleet.load.calls, len(fleet.load.failures)))
    finally:
        if not postgres.server:
            postgres.start()
        fleet.close()


def rolling_restart(postgres):
    """failover: a rolling restart under load: no call fails"""
    # proves: ADM-7
    fleet = Fleet(postgres, "--drain-delay", "1s")
    try:
        for replica in fleet.world.replicas:
            fleet.progress()
            assert replica.end() == 0, replica.process.log()
            fleet.progress()
            replica.start()
        fleet.progress()
        fleet.check()
        assert not fleet.load.failures, fleet.load.failures
        print("     %d bookings, %d calls, none failed" % (len(fleet.load.made), fleet.load.calls))
    finally:
        fleet.close()


CASES = [killed_leaders, restarted_database, rolling_restart]
