"""Whether a process is still there, as the kernel tells it."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sandbox.processes import birth

# The first thread ends and becomes a zombie, while the second one waits for the end of its input.
HALF_ENDED = """
import ctypes, os, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0))).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture
def half_ended() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HALF_ENDED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        while "State:\tZ" not in Path(f"/proc/{process.pid}/status").read_text():
            time.sleep(0.01)
        yield process


@pytest.mark.skipif(sys.platform != "linux", reason="other kernels do not show threads of a zombie")
def test_process_whose_first_thread_ended_is_alive_until_the_last_one_has(half_ended: subprocess.Popen[str]) -> None:
    assert birth(half_ended.pid)
    half_ended.communicate()
    assert birth(half_ended.pid) == ""
