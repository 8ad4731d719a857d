"""Backup under load, restore, and the previous version's databases."""

import json
import os
import re
import sqlite3
import stat
import time

from world import CLI, GPUS, HERE, PATIENCE_S, ROOT, Load, Process, World, run, wait_for

FIXTURES = os.path.join(HERE, "fixtures")


def read_backup(path):
    """Table to its rows, each a dict."""
    tables, rows, columns = {}, None, None
    with open(path, encoding="utf-8") as file:
        for line in list(file)[1:-1]:
            value = json.loads(line)
            if isinstance(value, dict):
                columns = value["columns"]
                rows = tables[value["table"]] = []
            else:
                rows.append(dict(zip(columns, value)))
    return tables


def check_consistent(tables):
    """Every reference is met, and no card is in two hands at once."""
    ids = {name: {row["id"] for row in tables[name]} for name in
           ("tenants", "sites", "pools", "nodes", "reservations", "allocations", "join_tokens")}
    for table, column, target in (
            ("sites", "tenant", "tenants"), ("pools", "site", "sites"), ("nodes", "pool", "pools"),
            ("reservations", "pool", "pools"), ("allocations", "reservation", "reservations"),
            ("allocations", "node", "nodes"), ("bookings", "allocation", "allocations"),
            ("allocation_devices", "allocation", "allocations")):
        for row in tables[table]:
            assert row[column] in ids[target], (table, row)
    bookings = tables["bookings"]
    for i, one in enumerate(bookings):
        for other in bookings[:i]:
            assert not (one["gpu"] == other["gpu"] and one["leaf_lo"] < other["leaf_hi"] and
                        other["leaf_lo"] < one["leaf_hi"] and
                        (one["held"] or other["from_ms"] < one["to_ms"]) and
                        (other["held"] or one["from_ms"] < other["to_ms"])), (one, other)


def restore(world, path):
    """Once the lease of whoever served it has run out."""
    def attempt():
        try:
            run(CLI, "restore", *world.database_words, path, "--force")
        except AssertionError as error:
            assert "being served" in str(error), error
            return False
        return True
    wait_for("nobody serves it", attempt)


def lineage_of(path):
    with open(path, encoding="utf-8") as file:
        return json.loads(file.readline())["lineage"]


def restore_with_real_nodes(postgres):
    """a backup under load is restored, and real nodes give back what it doesn't know: nothing is given twice"""
    world = World(postgres).init()
    backup = world.folder + "/the.backup"
    try:
        replica = world.replica("a").start()
        world.make_pool(replica)
        world.add_nodes(2, replica)
        # Known to the backup: one booking that goes on, and one that is released after it.
        kept = replica.call("POST", "/v1/reservations", world.reservation(3))["id"]
        freed = replica.call("POST", "/v1/reservations", world.reservation(2))["id"]
        state = lambda one: replica.call("GET", "/v1/reservations/" + one)["state"]
        wait_for("both are bound", lambda: state(kept) == state(freed) == "active")
        load = Load(world, 3)
        wait_for("the load is under way", lambda: len(load.made) > 10)
        run(CLI, "backup", *world.database_words, backup)
        assert stat.S_IMODE(os.stat(backup).st_mode) == 0o600
        wait_for("the load went on", lambda: len(load.made) > 30)
        load.stop()
        check_consistent(read_backup(backup))
        # After it: `freed` ends, and its cards and others go to a booking that the backup doesn't know, with a pod on it.
        replica.call("POST", "/v1/reservations/%s/release" % freed, {})
        wait_for("all else is given back", lambda: len(world.held()) == 3)
        unknown = replica.call("POST", "/v1/reservations", world.reservation(8))["id"]
        wait_for("it is bound", lambda: state(unknown) == "active")
        unknown = replica.call("GET", "/v1/reservations/" + unknown)
        holder = [node for node in world.nodes if unknown["allocations"][0]["id"] in node.held()][0]
        wait_for("its pod runs", lambda: try_pod(holder, "worker"))
        assert len(world.held()) == 11, (len(world.held()), [node.held() for node in world.nodes])
        before = set(world.held())
        assert replica.end() == 0

        # Nothing is restored over what is there without being asked to.
        wait_for("nobody serves it", lambda: "isn't empty" in run(
            CLI, "restore", *world.database_words, backup, ok=False))
        restore(world, backup)
        run(CLI, "backup", *world.database_words, backup + ".2")
        assert lineage_of(backup) != lineage_of(backup + ".2")
        check_consistent(read_backup(backup + ".2"))

        # The nodes come back to it. Every card is booked anew while they do.
        replica.start()
        wait_for("the nodes are back", lambda: world.ready_nodes(replica) == 2)
        for _ in range(2 * GPUS):
            try:
                replica.call("POST", "/v1/reservations", world.reservation(1))
            except Exception:  # no room is what we want in the end
                break
        end = time.monotonic() + 12
        while time.monotonic() < end:
            held = world.held()  # fails when a card is in two hands
            for card in before:
                if held.get(card) and held[card] not in ids_of(replica):
                    assert held[card] == unknown["allocations"][0]["id"], (card, held[card])
            time.sleep(0.1)
        wait_for("kept is as it was", lambda: state(kept) == "active")
        # The pod of the booking that nobody knows holds its cards until it goes: then they are given on.
        holder.delete_pod("worker")
        wait_for("what is held is what is booked", lambda: reconciled(world, replica))
    finally:
        world.close()


def try_pod(node, name):
    try:
        node.pod(name, 4)
        return True
    except AssertionError:
        return False


def ids_of(replica):
    return {allocation["id"] for reservation in replica.list("/v1/reservations")
            for allocation in reservation["allocations"]}


def reconciled(world, replica):
    """Machine by machine: exactly the allocations that are bound there."""
    bound = {allocation["id"] for reservation in replica.list("/v1/reservations")
             for allocation in reservation["allocations"] if allocation["state"] == "bound"}
    placed = [allocation for reservation in replica.list("/v1/reservations")
              for allocation in reservation["allocations"]
              if allocation["state"] in ("placed", "releasing")]
    return not placed and set(world.held().values()) == bound


def restore_on_sqlite(_postgres):
    """SQLite: a backup under load is restored, and real nodes give back what it doesn't know: nothing is given twice"""
    # proves: ADM-6
    restore_with_real_nodes(None)


def restore_on_postgres(postgres):
    """PostgreSQL: a backup under load is restored, and real nodes give back what it doesn't know: nothing is given twice"""
    # proves: ADM-6
    restore_with_real_nodes(postgres)


# --- the previous version's databases

def old_world(postgres, version):
    """A world on that version's database, and what is known about it."""
    kind = "postgres" if postgres else "sqlite"
    source = os.path.join(FIXTURES, "version-%d.%s.sql" % (version, kind))
    world = World(postgres)
    other = World()  # its PKI: the database knows nothing of it
    other.init()
    os.rename(other.pki_home, world.pki_home)
    other.close()
    if postgres:
        postgres.load(world.database, source)
    else:
        path = world.folder + "/control.db"
        with open(source, encoding="utf-8") as file, sqlite3.connect(path) as database:
            database.executescript(file.read())
        database.close()
        os.chmod(path, 0o600)
    with open(os.path.join(FIXTURES, "version-%d.json" % version), encoding="utf-8") as file:
        known = json.load(file)[kind]
    for name, text in (("key", known["key"] + "\n"), ("secret.key", known.get("secretKey"))):
        if text:
            with open(os.path.join(world.folder, name), "w", encoding="ascii",
                      opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(text)
    world.read_keys()
    return world, known


def check_rows_kept(old, new):
    """Every row of before is there, with every column of before."""
    for table, rows in old.items():
        if table == "schema_versions":
            continue
        after = [{column: row[column] for column in rows[0]} for row in new[table]] if rows else []
        for row in rows:
            assert row in after, (table, row)


def check_same_rows(one, other):
    """Two databases that came from one, each in its own steps."""
    assert one.keys() == other.keys()
    for table in one:
        assert one[table] == other[table], (table, one[table], other[table])


def migrate(postgres, version, *start_words):
    """The rows that there are in the end."""
    world, known = old_world(postgres, version)
    try:
        run(CLI, "backup", *world.database_words, world.folder + "/old")
        if postgres:
            # Nobody asked for it yet.
            refused = Process(world.folder + "/refused.log", CLI, "serve", "--home", world.pki_home,
                              *world.database_words, "--listen", "127.0.0.1:0", "--gateway-listen", "127.0.0.1:0")
            assert refused.child.wait(PATIENCE_S) != 0
            assert "--migrate" in refused.log(), refused.log()
            assert postgres.sql(world.database, "SELECT max(version) FROM schema_versions") == str(version)
        run(CLI, "serve", "--init", "--home", world.pki_home, *world.database_words, *start_words)
        run(CLI, "backup", *world.database_words, world.folder + "/new")
        old, new = read_backup(world.folder + "/old"), read_backup(world.folder + "/new")
        check_rows_kept(old, new)
        assert len(old["reservations"]) == 4 and len(old["bookings"]) == 11, old["bookings"]
        assert lineage_of(world.folder + "/old") == lineage_of(world.folder + "/new")
        if not postgres:
            # The copy of before is a database of the version of before, whole.
            with sqlite3.connect(world.folder + "/control.db.schema-%d" % version) as copy:
                assert copy.execute("SELECT max(version) FROM schema_versions").fetchone() == (version,)
                assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                assert copy.execute("SELECT count(*) FROM reservations").fetchone() == (4,)
            copy.close()
            mode = os.stat(world.folder + "/control.db.schema-%d" % version).st_mode
            assert stat.S_IMODE(mode) == 0o600
        check_served(world, known)
        restore_old(world, postgres, known)
        return new
    finally:
        world.close()


# What things come to with time, whichever version looks, and what is counted of them.
PASSES = {"state", "conditions", "reasons", "connected", "endedAt", "used", "reservationId", "allocationId", "releasedAt"}


def check_answered(before, now, where):
    """All that was answered before is answered still; newer fields may have come beside it."""
    if isinstance(before, dict):
        for field in before.keys() - PASSES:
            assert field in now, (where, field, now)
            check_answered(before[field], now[field], where + (field,))
    elif isinstance(before, list):
        assert len(before) == len(now), (where, before, now)
        for one, other in zip(before, now):
            check_answered(one, other, where)
    else:
        assert before == now, (where, before, now)


def check_served(world, known):
    """The new version answers with all of it, and goes on."""
    words = ["--secret-key-file", world.folder + "/secret.key"] if "secretKey" in known else []
    replica = world.replicas[0] if world.replicas else world.replica("a", *words)
    replica.start()
    answers = {name: replica.list("/v1/" + name) for name in known["ids"]}
    for name, ids in known["ids"].items():
        found = {item["id"] for item in answers[name]}
        assert set(ids) <= found, (name, ids, found)
    for name, items in known.get("answers", {}).items():
        check_answered({item["id"]: item for item in items}, {item["id"]: item for item in answers[name]}, (name,))
    one = known["ids"]["reservations"][0]
    assert replica.call("GET", "/v1/reservations/" + one)["devices"] == [{"class": "gpu", "count": 2}]
    replica.call("POST", "/v1/tenants", {"name": "after"})
    assert replica.end() == 0


def restore_old(world, postgres, known):
    """A backup of the older version is brought up to date on the way."""
    restore(world, world.folder + "/old")
    run(CLI, "backup", *world.database_words, world.folder + "/again")
    old, again = read_backup(world.folder + "/old"), read_backup(world.folder + "/again")
    for table in ("meta", "leases", "node_streams"):
        old.pop(table)
    events, leapt = (next(row for row in backup["counters"] if row["name"] == "events") for backup in (old, again))
    assert leapt["value"] > events["value"] + 10**6, leapt  # whoever followed has seen none of the numbers to come
    old["counters"].remove(events)
    check_rows_kept(old, again)
    check_served(world, known)


def schema_of_the_program():
    """A schema before it without a database here fails: fixtures/make keeps one before the next comes."""
    with open(os.path.join(ROOT, "src/store/store.h"), encoding="utf-8") as file:
        return int(re.search(r"^#define STORE_MIGRATIONS (\d+)", file.read(), re.M)[1])


def migrate_all(postgres, *start_words):
    """From 3 to 6 it is 2's database, whose migration was broken off: it ends where 2's does."""
    whole = {version: migrate(postgres, version, *start_words) for version in range(1, schema_of_the_program())}
    for version in (3, 4, 5, 6):
        check_same_rows(whole[2], whole[version])


def migrate_sqlite(_postgres):
    """SQLite: databases of every schema before are copied, migrated at start, and all is kept"""
    # proves: ADM-8
    migrate_all(None)


def migrate_postgres(postgres):
    """PostgreSQL: databases of every schema before are migrated when asked for, and all is kept"""
    # proves: ADM-8
    migrate_all(postgres, "--migrate")


CASES = [restore_on_sqlite, restore_on_postgres, migrate_sqlite, migrate_postgres]
