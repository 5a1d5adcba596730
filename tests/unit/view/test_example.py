"""The example document of the view is valid, so that pages and scripts can be written against it."""

import json
from pathlib import Path

from jsonschema import Draft202012Validator

from reconciler.spec.schema import schema_folder

SCHEMA = json.loads((schema_folder() / "view.json").read_text())
EXAMPLE = json.loads((Path(__file__).parent / "example.json").read_text())


def test_example_is_what_the_schema_says() -> None:
    assert list(Draft202012Validator(SCHEMA).iter_errors(EXAMPLE)) == []


def test_example_has_every_state_that_a_page_has_to_show() -> None:
    assert {job["state"] for job in EXAMPLE["jobs"]} >= {"pending", "running", "evicted", "unknown", "failed"}
    assert {pool["state"] for pool in EXAMPLE["pools"]} == {"fresh", "stale", "unknown"}
