"""Texts that a cluster holds: whatever they say, they end no process and fill no memory."""

import gzip
import json
import re
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

import reconciler
from reconciler.capacity.codec import PACKED, read_ledger
from reconciler.clients.kubeconfig import parse_kubeconfig
from reconciler.decoding import MAX_DEPTH, MAX_UNPACKED, load_json, load_yaml, unpacked
from reconciler.errors import ClusterError
from reconciler.kueue.configuration import ConfigurationError, read_configuration
from reconciler.multikueue.model import KEY, read_credential
from reconciler.objects import ClusterName
from reconciler.snapshot.masking import MASKED, masked_token
from reconciler.spec.files import read_source
from reconciler.state.applyset import read_address, read_uid

DEEP = "[" * 100_000 + "]" * 100_000
# Seven lists, each of them ten times the one before.
LAUGHS = "\n".join(("a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7))))
NO_VALUES = (DEEP, LAUGHS, "&a [*a]", "a: *b", "2026-13-01", "!!int ''", "!!timestamp x", "9" * 5000, "[", "a: b: c")


@pytest.mark.parametrize("text", NO_VALUES, ids=range(len(NO_VALUES)))
def test_yaml_that_cannot_be_read_is_a_yaml_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml(text)
    with pytest.raises(yaml.YAMLError):
        load_yaml(text.encode())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("a: {b: [1, true, x]}", {"a": {"b": [1, True, "x"]}}),
        ("a: &a {b: 1}\nc: *a\nd: {<<: *a, e: 2}", {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)),
    ],
)
def test_yaml_is_read_as_before(text: str, value: Any) -> None:
    assert load_yaml(text) == value == yaml.safe_load(text)


def test_json_that_is_nested_too_deep_is_a_value_error() -> None:
    assert load_json('{"a": [1]}') == {"a": [1]}
    for text in (DEEP, "[", b"\xff"):
        with pytest.raises(ValueError, match=r"."):
            load_json(text)


def test_gzip_is_unpacked_up_to_a_size() -> None:
    assert unpacked(gzip.compress(b"x" * 1000)) == b"x" * 1000
    packed = zlib.compressobj(wbits=31)
    bomb = b"".join(packed.compress(bytes(2**20)) for _ in range(MAX_UNPACKED // 2**20 + 1)) + packed.flush()
    assert len(bomb) < 2**17
    for content, problem in (
        (bomb, "more than"),
        (gzip.compress(b"x" * 1000)[:-4], "ends early"),
        (b"not packed", "gzip"),
    ):
        with pytest.raises(ValueError, match=problem):
            unpacked(content)


def test_whatever_a_secret_or_a_config_map_holds_is_one_problem() -> None:
    with pytest.raises(ClusterError, match="is not valid YAML"):
        parse_kubeconfig(ClusterName("east"), "secret a/b on the manager", DEEP)
    with pytest.raises(ConfigurationError, match="is not valid YAML"):
        read_configuration(DEEP)
    assert read_credential({"data": {KEY: b64encode(DEEP.encode()).decode()}}).problem
    claims = b64encode(DEEP.encode()).decode()
    assert masked_token(f"a.{claims}.c") == MASKED
    assert (read_uid(DEEP), read_address(DEEP), read_source(DEEP)) == ("", None, None)
    with pytest.raises(ValueError, match="has more than"):
        read_ledger({"binaryData": {PACKED: b64encode(gzip.compress(b" " * (MAX_UNPACKED + 1))).decode()}})


def test_texts_are_read_by_readers_with_bounds() -> None:
    """But for what kfleet carries itself, files that a user names, and what programs on this machine print."""
    root = Path(reconciler.__file__).parent
    own = {
        "decoding.py",
        "lint/docs.py",
        "kueue_install/records.py",
        "clients/helm.py",
        "cli/init_contexts.py",
        "snapshot/recording.py",
    }
    unbounded = re.compile(r"yaml\.(safe_)?load(_all)?\(|gzip\.decompress\(")
    found = {path.relative_to(root).as_posix() for path in root.rglob("*.py") if unbounded.search(path.read_text())}
    assert {place for place in found if not place.startswith("sandbox/")} == own
