"""`kfleet run` as a process of its own."""

import json
import os
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError

from tests.support import eventually, kfleet_program


@dataclass
class Controller:
    repo: Path
    options: tuple[str, ...] = ()
    lines: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        command = [kfleet_program(), "run", "--repo", str(self.repo), "--listen", "127.0.0.1:0", "--log", "json"]
        command += ["--git-interval", "1", "--cluster-timeout", "15", *self.options]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            env={**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1", **self.settings},
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        eventually(lambda: self.said("listening"))
        self.port = self.said("listening")[0]["port"]

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            self._read_lines(stream)

    def _read_lines(self, stream: IO[str]) -> None:
        for line in stream:
            if line.startswith("{"):
                self.lines.append(json.loads(line))
            else:
                self.lines.append({"message": line.rstrip()})

    def said(self, message: str) -> list[dict[str, Any]]:
        return [line for line in list(self.lines) if line["message"] == message]

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, start: str) -> float:
        """The first sample whose line starts like this."""
        _, text = self.get("/metrics")
        found = next((line for line in text.splitlines() if line.startswith(start)), None)
        assert found is not None, text
        return float(found.rpartition(" ")[2])

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            code = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait(120)
            raise AssertionError("\n".join(str(line["message"]) for line in self.lines)) from None
        self.reader.join(10)
        return code

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)
        self.reader.join(10)
