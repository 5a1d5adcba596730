"""What `kfleet render` prints: the objects that were tried on real servers, in words that kubectl reads alike."""

import json
import subprocess
from pathlib import Path

from reconciler.sandbox.certificates import kubectl_command
from reconciler.sandbox.fleet import Sandbox
from tests.support import Kfleet
from tests.unit.render.rendered_fleets import ONE_CLUSTER

# Texts that some reader of YAML takes for a number, a boolean, a date or nothing.
ODD_TEXTS = (
    *("", "~", "null", "true", "yes", "no", "on", "y", "n", "Y", "N"),
    *("08", "0o17", "0x1F", "0b1", "1e3", "1E5", "1e+3", "+.5e3", ".5", "1.", "0.10", "1_000", "-.inf", ".nan"),
    *("2026-01-31", "12:30", "=", "<<", "a: b", "# a", "- a", "a\nb", "a\r\nb", "\t", " a ", "\u2028", "\u00e9"),
)


def test_kubectl_reads_every_text_as_render_was_given_it(fleet: Sandbox, kfleet: Kfleet, tmp_path: Path) -> None:
    texts = {f"text-{number}": text for number, text in enumerate(ODD_TEXTS)}
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd"}, "data": texts}
    folder = tmp_path / "fleet"
    folder.mkdir()
    (folder / "a.yaml").write_bytes(ONE_CLUSTER)
    (folder / "b.yaml").write_text(json.dumps(given))
    printed = kfleet("render", "--path", str(folder)).stdout
    command = kubectl_command(fleet.state, "worker1", "create", "--dry-run=client", "--output=json", "--filename=-")
    read = subprocess.run(command, input=printed, capture_output=True, text=True, check=True)
    assert json.loads(read.stdout)["data"] == texts
