"""The schemas teach, the messages say what is wrong, and no wrong value gets through at any position."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reconciler.spec.files import Document, field_text
from reconciler.spec.schema import FILES, check_schema, compile_schema, load_schema, schema_folder
from reconciler.spec.schema_errors import find_violations
from tests import fast_yaml
from tests.support import ROOT
from tests.unit.spec.fleet_texts import problems_of
from tests.unit.spec.whole_documents import WHOLE

Path = tuple[str | int, ...]
# Fields that the whole document cannot have beside those that it has.
ALTERNATIVES = {
    ("spec", "clusters", "names"),
    ("spec", "access"),
    ("spec", "capacity", "nats"),
    ("spec", "capacity", "subtractOther"),
}
WRONG: list[Any] = [None, True, 1.5, "?!", [], {}, [[]], {"?": 1}, 10**30, ""]


def positions(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in entries:
        yield from positions(each, (*path, key))


def planted(value: Any, path: Path, wrong: Any) -> Any:
    if not path:
        return wrong
    changed = copy.copy(value)
    changed[path[0]] = planted(value[path[0]], path[1:], wrong)
    return changed


def whole_document(value: Any) -> Document:
    text = fast_yaml.safe_dump(value, sort_keys=False)
    return Document("a.yaml", 1, value, text)


def subschema(schema: Any, path: Path) -> Any:
    for step in path:
        if isinstance(step, int):
            schema = schema["items"]
        else:
            known = schema.get("properties", {})
            schema = known[step] if step in known else schema.get("additionalProperties", True)
        if not isinstance(schema, dict):
            return {}
    return schema


def described(schema: Any, name: str) -> Iterator[str]:
    """Every property of a schema that has no description."""
    for key, each in schema.get("properties", {}).items():
        if not each.get("description", "").endswith("."):
            yield f"{name}.{key}"
        yield from described(each, f"{name}.{key}")
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from described(schema[keyword], name)
    for key, each in schema.get("$defs", {}).items():
        yield from described(each, f"{name}.$defs.{key}")


@pytest.mark.parametrize("path", sorted(schema_folder().glob("*.json")), ids=lambda path: path.name)
def test_schema_is_valid_and_every_property_is_described(path: Any) -> None:
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    assert list(described(schema, path.stem)) == []


def bundle_errors(value: Any) -> list[str]:
    schema = json.loads((schema_folder() / "kfleet.json").read_text())
    found = Draft202012Validator(schema).iter_errors(value)
    return sorted(f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in found)


@pytest.mark.parametrize("kind", FILES)
def test_schema_for_editors_takes_every_kind_and_native_objects(kind: str) -> None:
    assert bundle_errors(WHOLE[kind]) == []
    assert bundle_errors({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "anything": 1}) == []


def test_schema_for_editors_reports_an_unknown_field_at_its_place() -> None:
    queue = copy.deepcopy(WHOLE["Queue"])
    queue["spec"]["dispatsh"] = "multikueue"
    (found,) = bundle_errors(queue)
    assert found.startswith("spec: ") and "'dispatsh' was unexpected" in found
    (found,) = bundle_errors({**WHOLE["Queue"], "kind": "Qeue"})
    assert found.startswith("kind: 'Qeue' is not one of")


def test_fleet_of_the_repository_is_right_for_editors() -> None:
    for path in (*(ROOT / "fleet").glob("*.yaml"), *(ROOT / "overlays").rglob("*.yaml")):
        for document in fast_yaml.safe_load_all(path.read_text()):
            assert bundle_errors(document) == [], path


@pytest.mark.parametrize("kind", FILES)
def test_whole_document_uses_every_field_and_is_accepted(kind: str) -> None:
    assert [str(error) for error in check_schema(whole_document(WHOLE[kind]))] == []
    assert compile_schema(load_schema(kind))(WHOLE[kind])
    used = {tuple(step for step in path if isinstance(step, str)) for path in positions(WHOLE[kind])}
    missing = [path for path in fields(load_schema(kind)) if path not in used]
    assert missing == []


def fields(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, each in schema.get("properties", {}).items():
        if (*path, key) not in ALTERNATIVES:
            yield (*path, key)
            if key not in ("clusters", "access", "credentials"):
                yield from fields(each, (*path, key))
    if isinstance(schema.get("items"), dict):
        yield from fields(schema["items"], path)


@pytest.mark.parametrize("kind", FILES)
def test_wrong_type_at_any_position_is_reported_there(kind: str) -> None:
    schema = load_schema(kind)
    for path in positions(WHOLE[kind]):
        if not path or path == ("kind",):
            continue
        types = subschema(schema, path).get("type")
        allowed = [types] if isinstance(types, str) else types or []
        wrong = next((each for each, name in ((["x"], "array"), ({"x": 1}, "object")) if name not in allowed), None)
        if wrong is None or not (allowed or {"enum", "const"} & subschema(schema, path).keys()):
            continue
        errors = check_schema(whole_document(planted(WHOLE[kind], path, wrong)))
        assert field_text(path) in [error.field for error in errors], path
        assert all(error.place.line for error in errors)


@pytest.mark.parametrize("kind", FILES)
def test_quick_answer_never_accepts_what_the_schema_refuses(kind: str) -> None:
    accepts, context = compile_schema(load_schema(kind)), load_schema(kind)
    for path in positions(WHOLE[kind]):
        for wrong in WRONG:
            value = planted(WHOLE[kind], path, wrong)
            if accepts(value):
                assert find_violations(context, whole_document(value)) == [], (path, wrong)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_quick_answer_agrees_with_the_schema_on_any_value(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(FILES)))
    value = WHOLE[kind]
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(sorted(positions(value), key=str)))
        wrong = st.sampled_from([*WRONG, *(value_at(value, each) for each in positions(value))])
        value = planted(value, path, data.draw(wrong))
    if compile_schema(load_schema(kind))(value):
        assert find_violations(load_schema(kind), whole_document(value)) == []


def value_at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


@pytest.mark.parametrize("kind", FILES)
def test_any_wrong_value_ends_in_messages(kind: str) -> None:
    fields_only = {tuple(step for step in path if isinstance(step, str)): path for path in positions(WHOLE[kind])}
    for path in fields_only.values():
        for wrong in WRONG:
            text = json.dumps(planted(WHOLE[kind], path, wrong))
            assert all(problem.startswith("fleet") for problem in problems_of(text))
