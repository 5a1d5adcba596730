"""`kfleet schema`, as an editor or another tool uses it: by a validator that knows nothing of kfleet."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.cli import execute
from reconciler.spec.schema import FILES
from tests import fast_yaml
from tests.support import ROOT


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert execute(["schema", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def documents() -> list[Any]:
    return [entry for path in (ROOT / "fleet").glob("*.yaml") for entry in fast_yaml.safe_load_all(path.read_text())]


def test_schema_of_a_kind_accepts_its_documents_and_names_wrong_fields(capsys: pytest.CaptureFixture[str]) -> None:
    seen = set()
    for document in documents():
        if document["kind"] not in FILES:
            continue
        seen.add(document["kind"])
        validator = Draft202012Validator(printed(capsys, document["kind"].lower()))
        assert list(validator.iter_errors(document)) == []
        wrong = {**document, "spec": {**document["spec"], "quotta": 1}}
        assert any("quotta" in error.message for error in validator.iter_errors(wrong))
    assert {"Fleet", "Cluster", "Flavor", "Queue", "Tenant"} <= seen


@pytest.mark.parametrize("kind", FILES)
def test_schema_of_a_kind_refers_to_nothing_outside(capsys: pytest.CaptureFixture[str], kind: str) -> None:
    schema = printed(capsys, kind)
    Draft202012Validator.check_schema(schema)
    names = {entry.split('"')[0] for entry in json.dumps(schema).split('"$ref": "')[1:]}
    assert all(name.startswith("#/") for name in names)
    for name in names:
        found: Any = schema
        for part in name.removeprefix("#/").split("/"):
            found = found[part]


def test_schema_is_written_in_place_of_an_older_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / ".kfleet.schema.json"
    path.write_text("old")
    assert execute(["schema", "--out", str(path)]) == 0
    assert json.loads(path.read_text()) == json.loads((ROOT / "schemas" / "kfleet.json").read_text())
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]
    assert execute(["schema", "--out", str(tmp_path / "none" / "x.json")]) == 1
    assert "cannot write: No such file or directory" in capsys.readouterr().err
