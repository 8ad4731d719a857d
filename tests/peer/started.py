"""The end of the programs that a test started."""

import signal
import subprocess


def end_all(children, patience=20):
    """The last one first; one that was stopped goes on, and who doesn't obey SIGTERM is killed."""
    for child in reversed(list(children)):
        if child.poll() is None:
            child.terminate()
            child.send_signal(signal.SIGCONT)
            try:
                child.wait(patience)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
