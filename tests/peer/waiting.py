"""How long a test waits for what must come, and where what it starts listens."""

import random
import socket
import time

# For what no requirement bounds: longer than the longest pause that the product takes between two tries (bcd's way to the control
# plane: 60 s, and 15 s for the try), on a machine that is busy. What comes sooner is not waited for.
PATIENCE_S = 120


def wait_for(what, check, patience=PATIENCE_S, pause=0.05):
    end = time.monotonic() + patience
    while True:
        found = check()
        if found:
            return found
        assert time.monotonic() < end, "never happened: " + what
        time.sleep(pause)


def own_port():
    """A port of 127.0.0.1 that stays the test's own while nobody listens on it: below those that the kernel gives to whoever asks
    for any, as each connection does."""
    while True:
        port = random.randrange(10000, 30000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
