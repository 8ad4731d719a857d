"""What the check scripts share: the rooms table, the files of the tree, and how they report."""

import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Headers a room may include when the table names the library; the first match wins.
LIBRARIES = [
    ("jansson", r"jansson\.h"),
    ("toml++", r"toml\+\+/.*"),
    ("libuv", r"uv\.h|uv/.*"),
    ("libseccomp", r"seccomp\.h"),
    ("protobuf-c", r"protobuf-c/.*"),
    ("nghttp2", r"nghttp2/.*"),
    ("openssl", r"openssl/.*"),
    ("jose", r"jose/.*"),
    ("libcurl", r"curl/.*"),
    ("sqlite3", r"sqlite3\.h"),
    ("libpq", r"libpq-fe\.h|libpq/.*"),
    ("libmicrohttpd", r"microhttpd\.h"),
    ("gnutls", r"gnutls/.*"),
    ("libyaml", r"yaml\.h"),
    ("expat", r"expat\.h"),
    ("cmocka", r"cmocka\.h"),
]


class Room:
    def __init__(self, name, rooms, libraries, pure):
        self.name, self.rooms, self.libraries, self.pure = name, rooms, libraries, pure


def rooms_table():
    """The rows of ARCHITECTURE.md's table, in order. Names in "may include" lack the src/."""
    rooms = []
    in_table = False
    with open(os.path.join(ROOT, "ARCHITECTURE.md"), encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[:3] == ["room", "job", "may include"]:
                in_table = True
            elif in_table and not line.startswith("|"):
                break
            elif in_table and not cells[0].startswith("-"):
                name, _, include, libraries, pure = cells
                above = [room.name for room in rooms]
                names = above if include == "all" else [
                    word if word == "proto" else "src/" + word
                    for word in include.split() if word != "-"]
                rooms.append(Room(name, names,
                                  [word for word in libraries.split() if word != "-"],
                                  pure == "pure"))
    if not rooms:
        sys.exit("error: ARCHITECTURE.md has no rooms table (| room | job | may include | …)")
    return rooms


def room_of(path, rooms):
    """The room a file is in: the longest name that is a folder above it; None outside."""
    inside = [room for room in rooms if path.startswith(room.name + "/")]
    return max(inside, key=lambda room: len(room.name), default=None)


def files_under(folders, endings):
    """Paths from the root, sorted; nothing hidden, built or downloaded."""
    skipped = re.compile(r"^(\..*|build.*|node_modules|__pycache__|vendor)$")
    found = []
    for folder in folders:
        for here, below, names in os.walk(os.path.join(ROOT, folder)):
            below[:] = [name for name in below if not skipped.match(name)]
            found += [os.path.relpath(os.path.join(here, name), ROOT)
                      for name in names if not endings or name.endswith(endings)]
    return sorted(found)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def finish(name, problems, checked):
    """Prints what is wrong and one summary line; the exit status of the script."""
    for problem in problems:
        print(problem)
    print("%s: %s checked, %s" % (name, checked, "%d wrong" % len(problems) if problems else "ok"))
    sys.exit(1 if problems else 0)
