import time
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.errors import SourceLocation
from reconciler.spec.files import MAX_FILE_BYTES
from reconciler.spec.yaml_reader import MAX_DEPTH, read_documents


def read_value(text: str) -> Any:
    reading = read_documents({"a.yaml": text.encode()})
    assert not reading.errors
    return reading.documents[0].value


def read_errors(content: str | bytes) -> list[str]:
    encoded = content.encode() if isinstance(content, str) else content
    return [str(error) for error in read_documents({"a.yaml": encoded}).errors]


# What sigs.k8s.io/yaml v1.6.0 makes of plain scalars.
SCALARS = {
    "y": True,
    "No": False,
    "ON": True,
    "tRue": "tRue",
    "~": None,
    "": None,
    "0x1F": 31,
    "-0b11": -3,
    "0o17": 15,
    "017": 15,
    "018": 18.0,
    "1_000": 1000,
    "1e3": 1000.0,
    ".5": 0.5,
    ".": ".",
    "1:30": "1:30",
    "2001-01-01": "2001-01-01",
    "2001-01-01T00:00:00Z": "2001-01-01T00:00:00Z",
    "18446744073709551615": 2**64 - 1,
    "1e999": "1e999",
    "60%": "60%",
    "'y'": "y",
    '"12"': "12",
    "!!str 12": "12",
    "!!float 12": 12.0,
    "!!int 12": 12,
    "! 12": "12",
    "<<": "<<",
}


@pytest.mark.parametrize(("text", "value"), SCALARS.items())
def test_scalar_is_read_as_kubernetes_reads_it(text: str, value: object) -> None:
    found = read_value(f"v: {text}")["v"]
    assert found == value
    assert type(found) is type(value)


def test_long_digits_are_a_number_in_bounded_time() -> None:
    assert read_value("v: " + "9" * 5000)["v"] == "9" * 5000
    assert read_value("v: 0x" + "f" * 100)["v"] == "0x" + "f" * 100


def test_documents_have_lines_and_skip_what_is_empty() -> None:
    reading = read_documents({"a.yaml": b"# nothing\n---\n---\na: 1\n---\n\nb:\n- x\n- c: 2\n"})
    assert [document.value for document in reading.documents] == [{"a": 1}, {"b": ["x", {"c": 2}]}]
    assert [document.line for document in reading.documents] == [4, 7]
    second = reading.documents[1]
    assert second.place("b", 1, "c") == SourceLocation("a.yaml", 9)
    assert second.place("b", 1, "missing") == SourceLocation("a.yaml", 9)
    assert second.place() == SourceLocation("a.yaml", 7)


def test_documents_come_in_the_order_of_their_paths() -> None:
    reading = read_documents({"b.yaml": b"a: 3", "a.yaml": b"a: 1\n---\na: 2"})
    assert [document.value["a"] for document in reading.documents] == [1, 2, 3]


def test_anchors_and_merge_keys_are_filled_in() -> None:
    value = read_value("base: &b {x: 1, z: 2}\nother: {<<: *b, z: 3}\nlist: {<<: [*b, {w: 4}]}\nagain: *b\n")
    assert value["other"] == {"x": 1, "z": 3}
    assert value["list"] == {"x": 1, "z": 2, "w": 4}
    assert value["again"] == {"x": 1, "z": 2}


def test_keys_become_texts() -> None:
    assert read_value("{1: a, 1.5: b, 'on': c}") == {"1": "a", "1.5": "b", "on": "c"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2", "a.yaml:2: not valid YAML: did not find expected ',' or ']' while parsing a flow sequence"),
        ("a: 1\n b: 2", "a.yaml:2: not valid YAML: mapping values are not allowed in this context"),
        ("a: 1\na: 2", "a.yaml:2: the key 'a' is set twice"),
        ("on: 1", "a.yaml:1: YAML reads the key on as true: put it in quotes"),
        ("? [a]\n: 1", "a.yaml:1: a key must be a string, not a list or a mapping"),
        ("~: 1", "a.yaml:1: YAML reads the key ~ as nothing: put it in quotes"),
        ("a: !!python/object:os.system x", "a.yaml:1: a: the tag !!python/object:os.system is not allowed"),
        ("a: !!python/tuple [x]", "a.yaml:1: the tag !!python/tuple is not allowed"),
        ("a: !!binary aGk=", "a.yaml:1: a: the tag !!binary is not allowed"),
        ("a: !!int x", "a.yaml:1: a: 'x' is not a valid !!int"),
        ("a: .nan", "a.yaml:1: a: .nan is not a number that JSON can represent"),
        ("a: *b", "a.yaml:1: the alias *b is undefined: its anchor must be complete before it"),
        ("a: &b [*b]", "a.yaml:1: the alias *b is undefined: its anchor must be complete before it"),
        ("<<: 1", "a.yaml:1: << takes a mapping, or a list of mappings"),
        ("- 1", "a.yaml:1: a document must be a mapping with apiVersion and kind"),
        ("text", "a.yaml:1: a document must be a mapping with apiVersion and kind"),
        ("a: \tb: c\x07", "a.yaml: not valid YAML: "),
    ],
)
def test_broken_text_is_named_with_its_line(text: str, message: str) -> None:
    errors = read_errors(text)
    assert errors
    assert errors[0].startswith(message)


def test_every_broken_file_is_reported() -> None:
    reading = read_documents({"a.yaml": b"a: 1\n  b: 2", "b.yaml": b"a: 1", "c.yaml": b"a: 1\na: 2\nb: 3\nb: 4\n"})
    assert [str(error.place) for error in reading.errors] == ["a.yaml:2", "c.yaml:2", "c.yaml:4"]
    assert [document.path for document in reading.documents] == ["b.yaml"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: \xff\n", "a.yaml: the file is not UTF-8: byte 0xff on line 1"),
        ("a: ü".encode("latin-1"), "a.yaml: the file is not UTF-8: byte 0xfc on line 1"),
        (b"\x7fELF\0\0", "a.yaml: the file is binary: it contains a NUL byte, but YAML is text"),
        ("a: 1".encode("utf-16"), "a.yaml: the file is binary: it contains a NUL byte, but YAML is text"),
        (b"x" * (MAX_FILE_BYTES + 1), f"a.yaml: the file has 10485761 bytes: at most {MAX_FILE_BYTES} are read"),
    ],
)
def test_what_is_not_text_is_named(content: bytes, message: str) -> None:
    assert read_errors(content) == [message]


def test_byte_order_mark_is_skipped() -> None:
    assert read_documents({"a.yaml": b"\xef\xbb\xbfa: 1"}).documents[0].value == {"a": 1}


@pytest.mark.parametrize("step", ["[", "- ", "{a: "])
def test_deep_nesting_ends_in_a_message(step: str) -> None:
    errors = read_errors("a:\n  " + step * 500_000)
    assert errors == [f"a.yaml:2: nested too deep: at most {MAX_DEPTH} levels are read"]


def test_nesting_up_to_the_limit_is_read() -> None:
    depth = MAX_DEPTH - 1
    assert read_value("a: " + "[" * depth + "]" * depth)


def test_exploding_anchors_end_in_a_message() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    started = time.process_time()
    assert read_errors("\n".join(lines))[0].endswith("expand to more than 100000 values")
    assert time.process_time() - started < 2


def test_exploding_merge_keys_end_in_a_message() -> None:
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{i}: &a{i} {{p{i}: *a{i - 1}, q{i}: *a{i - 1}, <<: [*a{i - 1}, *a{i - 1}]}}" for i in range(1, 40)]
    assert read_errors("\n".join(lines))[0].endswith("expand to more than 100000 values")


def test_too_many_documents_end_in_a_message() -> None:
    assert read_errors("a: 1\n---\n" * 30_000) == ["a.yaml:40000: more than 20000 documents in one file"]


def test_too_many_problems_end_in_a_message() -> None:
    errors = read_errors("a: 1\n" * 50_000)
    assert len(errors) == 101
    assert errors[-1].endswith("and more: the first 100 problems of this file are shown")


@pytest.mark.parametrize("entry", [b"- {a: b, c: d}\n", b"- x\n", b"- 'some longer text that fills the file'\n"])
def test_large_file_is_read_in_bounded_time(entry: bytes) -> None:
    content = b"a:\n" + entry * (MAX_FILE_BYTES // len(entry) // 4)
    started = time.process_time()
    assert len(read_documents({"a.yaml": content}).documents) == 1
    assert time.process_time() - started < 30


def test_large_file_is_read_in_bounded_memory() -> None:
    content = b"a:\n" + b"- {a: b, c: d}\n" * 20_000
    tracemalloc.start()
    read_documents({"a.yaml": content})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40 * len(content)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.text("{}[]:-&*!|>'\"#,? \n\tab1<~%@`", max_size=60).map(str.encode))
def test_any_bytes_give_documents_or_messages(content: bytes) -> None:
    reading = read_documents({"a.yaml": content})
    assert all(str(error).startswith("a.yaml") for error in reading.errors)
    for document in reading.documents:
        document.place("a", "b", 0)
