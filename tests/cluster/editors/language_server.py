"""The yaml-language-server of editors, as a process that is asked by the Language Server Protocol."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

VERSION = "1.18.0"


@dataclass(frozen=True, slots=True)
class LanguageServer:
    process: "subprocess.Popen[bytes]"

    def diagnose(self, path: Path) -> list[tuple[int, str]]:
        """Open a file, and return the lines and messages of what the server finds in it; lines begin with 1."""
        document = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": path.read_text()}
        self.send({"method": "textDocument/didOpen", "params": {"textDocument": document}})
        while True:
            message = self.receive()
            if message.get("method") == "workspace/configuration":
                self.send({"id": message["id"], "result": [{} for _ in message["params"]["items"]]})
            elif "id" in message and "method" in message:
                self.send({"id": message["id"], "result": None})
            elif (
                message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == path.as_uri()
            ):
                found = message["params"]["diagnostics"]
                return [(one["range"]["start"]["line"] + 1, one["message"]) for one in found]

    def send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        length = 0
        while line := self.process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        found: dict[str, Any] = json.loads(self.process.stdout.read(length))
        return found


@contextmanager
def language_server(folder: Path) -> Iterator[LanguageServer]:
    """The server that `folder` holds, with the settings that it has by itself."""
    program = folder / "node_modules" / ".bin" / "yaml-language-server"
    process = subprocess.Popen([str(program), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server = LanguageServer(process)
    try:
        capabilities = {"workspace": {"configuration": True}, "textDocument": {"publishDiagnostics": {}}}
        server.send(
            {
                "id": 1,
                "method": "initialize",
                "params": {"processId": None, "rootUri": None, "capabilities": capabilities},
            }
        )
        while server.receive().get("id") != 1:
            pass
        server.send({"method": "initialized", "params": {}})
        yield server
    finally:
        process.kill()
        process.communicate()
