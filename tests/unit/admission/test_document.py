"""The page about `kfleet check` shows what the command says of the example fleet."""

from pathlib import Path

import pytest

from reconciler import cli
from tests.support import ROOT

JOB = """apiVersion: batch/v1
kind: Job
metadata:
  name: {name}
  namespace: astro
  labels: {{kueue.x-k8s.io/queue-name: astro}}
spec:
  parallelism: {count}
  completions: {count}
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: main
        image: train
        resources: {{requests: {{cpu: 4, memory: 8Gi, nvidia.com/gpu: 4}}}}
"""


def test_transcript_is_what_the_command_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = (JOB.format(name="train", count=4), JOB.format(name="train-all", count=8))
    (tmp_path / "train.yaml").write_text("---\n".join(jobs))
    monkeypatch.chdir(tmp_path)
    assert cli.execute(["check", "train.yaml", "--path", str(ROOT / "fleet")]) == 3
    page = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")
    transcript = page.partition("$ kfleet check train.yaml\n")[2].partition("```")[0]
    assert capsys.readouterr().out == transcript
