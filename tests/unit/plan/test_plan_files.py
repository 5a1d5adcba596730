"""Saved plans are applied as they were read by a person, or not at all; and what `apply` takes at all."""

import json
from typing import Any

from reconciler.plan.model import Action, Reason, Refused
from reconciler.spec.schema import schema_folder
from tests.support import ROOT

SCHEMA = json.loads((schema_folder() / "plan.json").read_text())


def test_schema_lists_what_the_plan_can_say() -> None:
    cluster = SCHEMA["properties"]["clusters"]["items"]["properties"]
    change = cluster["changes"]["items"]["properties"]
    assert set(change["action"]["enum"]) == {action.value for action in Action if action is not Action.KEEP}
    assert set(change["reason"]["enum"]) == {reason.name.lower() for reason in Reason if reason is not Reason.SAME}
    assert set(SCHEMA["properties"]["summary"]["properties"]) == {action.value for action in Action}
    refusal = SCHEMA["properties"]["refusals"]["items"]["properties"]
    assert set(refusal["reason"]["enum"]) == {reason.name.lower() for reason in Refused}


def test_schema_and_its_page_name_the_same_properties() -> None:
    page = (ROOT / "docs" / "plan.md").read_text()
    missing = [name for name in property_names(SCHEMA) if f"`{name}`" not in page]
    assert missing == []


def property_names(schema: dict[str, Any]) -> list[str]:
    below = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    return [*schema.get("properties", {}), *(name for entry in below for name in property_names(entry))]
