"""A forge that takes commit statuses: the other party, for tests of what is sent to it."""

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Told:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def commit(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass
class ForgeServer:
    """`answers` are the codes of the next answers; after them everything is taken."""

    answers: list[int] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    def __post_init__(self) -> None:
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                forge.told.append(Told(self.path, dict(self.headers.items()), body))
                self.send_response(forge.answers.pop(0) if forge.answers else 201)
                self.send_header("Location", f"{forge.url}/elsewhere")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def states(self, commit: str) -> list[str]:
        return [one.body["state"] for one in list(self.told) if one.commit == commit]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
