"""An OCI registry on loopback with one chart, for the real helm to pull."""

import hashlib
import json
import ssl
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

from reconciler.sandbox.certificates import Pair, make_authority, make_server_pair
from reconciler.sandbox.programs import PROGRAMS

_CONFIG = "application/vnd.cncf.helm.config.v1+json"
_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
_BLOB = "application/octet-stream"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass
class ServedChart:
    """`authority` is the file with the certificate that clients have to trust; `asked` are the paths of requests."""

    address: str
    authority: str
    asked: list[str] = field(default_factory=list)


@contextmanager
def registry(chart: str, version: str, folder: Path) -> Iterator[ServedChart]:
    asked: list[str] = []
    authority = make_authority("registry-ca")
    with ThreadingHTTPServer(("127.0.0.1", 0), _handler(_answers(chart, version, folder), asked)) as server:
        server.socket = _tls(authority, folder).wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"oci://localhost:{server.server_address[1]}/charts/kueue"
            yield ServedChart(address, str(folder / "ca.crt"), asked)
        finally:
            server.shutdown()
            thread.join()


def _answers(chart: str, version: str, folder: Path) -> dict[str, tuple[bytes, str]]:
    helm = [str(PROGRAMS["helm"].binary), "package", chart, f"--destination={folder}"]
    subprocess.run(helm, check=True, capture_output=True, env={"HOME": str(folder)})
    archive = (folder / f"kueue-{version}.tgz").read_bytes()
    config = json.dumps(yaml.safe_load((Path(chart) / "Chart.yaml").read_text())).encode()
    content = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _descriptor(_CONFIG, config),
        "layers": [_descriptor(_LAYER, archive)],
    }
    manifest = json.dumps(content).encode()
    blobs = {f"/v2/charts/kueue/blobs/{_digest(blob)}": (blob, _BLOB) for blob in (config, archive)}
    names = (version, _digest(manifest))
    return blobs | {f"/v2/charts/kueue/manifests/{name}": (manifest, _MANIFEST) for name in names}


def _handler(answers: Mapping[str, tuple[bytes, str]], asked: list[str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body, kind = answers.get(self.path, (b"{}", "application/json"))
            self.send_response(200 if self.path in {*answers, "/v2/"} else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Docker-Content-Digest", _digest(body))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815  (the name that the server looks for)

        def log_message(self, *_arguments: object) -> None:
            """Nothing: the paths are in `asked`."""

    return Handler


def _tls(authority: Pair, folder: Path) -> ssl.SSLContext:
    pair = make_server_pair(authority, "localhost")
    for name, text in (("ca.crt", authority.certificate), ("tls.crt", pair.certificate), ("tls.key", pair.key)):
        (folder / name).write_text(text)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _descriptor(kind: str, content: bytes) -> dict[str, object]:
    return {"mediaType": kind, "digest": _digest(content), "size": len(content)}
