"""One word per thing: docs/glossary.md defines it, and words that were replaced do not come back."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support import ROOT

# A word or a regular expression, and what to write instead. One with a capital letter is a name, searched as written;
# all others are whole words, in any case.
REPLACED: Mapping[str, str] = {
    "hands": "manual edits, is_manual_manager",
    "is hand": "is_manual_manager",
    "dress(ed)?": "tracking metadata, add_tracking_metadata",
    "wish(es)?": "desired, TokenRequestSpec, desired_field_hashes, SandboxOptions",
    "greet(ed)?": "probe",
    "leavers?": "worker removal, RemovedCluster",
    "departed": "removed",
    "departures": "removal",
    "seats?": "member of a MultiKueueConfig, ConfigMembership",
    "seated": "member",
    "sitting": "members",
    "guests?(?! queue)": "candidate flavor",
    "invited": "declared",
    "keeper": "home cluster",
    "ways in": "kinds to list",
    "dead ends?": "missing LocalQueue on a worker",
    "ailments?": "health issue, unhealthy",
    "not ?well": "unhealthy",
    "obstacles?": "preflight issue",
    "telling": "status reporter",
    "(is|are|was|were) told": "is reported",
    "lasting": "debounce, grace period",
    "judge[ds]?": "plan context, verify",
    "strangers?": "foreign owner",
    "leftovers?": "objects to prune",
    r"\bComputed\b": "Revision before the snapshot, Desired after it",
    r"[A-Z][a-z]+Look\b": "Snapshot, or the plain noun: Capacity, Placements",
    r"\bLooks\b": "Snapshot",
    r"\bLooking\b": "ObserveOptions",
    "ClusterPort": "ClusterClient",
    "may pass": "is_retryable",
    "patience": "RetryPolicy, timeout",
    r"[A-Z][a-z]+Place\b": "a name that ends in Key; SourceLocation for file and line",
    "doors": "submission clusters",
    "objections?": "admission issue",
    "sightings?": "sample",
    "lower since": "shrink_pending_since",
    "comebacks": "MAX_429_RETRIES",
    "blind spots?": "incomplete",
    "stays behind": "not downsynced",
    "carried": "downsynced; for a plan: applied",
    "put off": "blocked",
    "somebody": "name the actor: a user, another field manager, an operator",
    "nobody": "name what is missing",
    "whoever": "name the actor",
    "everybody": "all replicas, all clients",
    "anybody": "name the actor",
    "as they lie there": "working tree (uncommitted)",
    "stopped to answer": "stopped responding",
    "told from git": "is not in git",
    "(?<!there )is no (?!longer|more than|less than|need)": "is not a",
    "no more(?! than)": "no longer",
    "not any more": "no longer",
}

SEARCHED = (
    "reconciler", "schemas", "docs", "deploy", "fleet", "overlays", "benchmarks",
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "action.yml",
)  # fmt: skip
SUFFIXES = {".py", ".md", ".json", ".yaml", ".yml", ".lua", ".sh"}
BUILT_FROM_MODULES = "reconciler/sandbox/go"  # patches of other projects, in their words

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
DEFINED = {
    "fleet", "cluster", "manager", "worker", "standalone", "flavor", "queue", "tenant", "cohort", "pool", "overlay",
    "spec", "revision", "snapshot", "ledger", "gap", "ref", "manifest", "desired", "plan", "change", "action", "reason",
    "cause", "refusal", "guard", "inventory", "ApplySet", "field manager", "wave", "drain", "adopt", "prune",
    "take over", "dry run", "outcome", "report", "lease", "leader", "cycle", "trigger", "capacity", "usage", "headroom",
    "stale", "rollout", "placement", "downsync", "diagnostic", "severity", "remedy", "health", "preflight", "sandbox",
    "view",
}  # fmt: skip


def test_glossary_defines_every_word_exactly_once() -> None:
    words = Counter(re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY, re.MULTILINE))
    assert words == Counter(DEFINED)


def test_definition_is_one_sentence() -> None:
    definitions = re.findall(r"^\| \*\*.+?\*\* \| (.+) \|$", GLOSSARY, re.MULTILINE)
    assert len(definitions) == len(DEFINED)
    assert [text for text in definitions if text.count(". ") or not text.endswith(".")] == []


def test_readme_links_to_the_glossary() -> None:
    assert "](docs/glossary.md)" in (ROOT / "README.md").read_text()


def test_no_file_holds_a_word_that_was_replaced() -> None:
    assert [problem for path in searched_files() for problem in problems_in(path)] == []


def test_no_name_of_a_test_holds_a_word_that_was_replaced() -> None:
    names = [(path, one) for path in sorted((ROOT / "tests").rglob("*.py")) for one in names_in(path)]
    assert len(names) > 4000
    assert [f"{name(path)}: {one}" for path, one in names if words_in(one)] == []


@pytest.mark.parametrize("place", SEARCHED)
def test_each_searched_place_has_files(place: str) -> None:
    assert any(name(path).startswith(place) for path in searched_files())


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("def is_not_well(view): ...", ["not ?well"]),
        ("class CapacityLook:", [r"[A-Z][a-z]+Look\b"]),
        ("mayPass = True", ["may pass"]),
        ("may_pass = True", ["may pass"]),
        ("# Nobody reads it.", ["nobody"]),
        ("it is no failure", ["(?<!there )is no (?!longer|more than|less than|need)"]),
        ("there is no failure, and it is no longer seen", []),
        ("no more than ten", []),
        ("the addressed object, a handshake", []),
    ],
)
def test_words_are_found_in_prose_and_in_names(line: str, found: list[str]) -> None:
    assert words_in(f"first\n{line}\nlast") == [(2, word) for word in found]


def problems_in(path: Path) -> Iterator[str]:
    for line, word in words_in(path.read_text(errors="replace")):
        yield f"{name(path)}:{line}: {word!r}, instead: {REPLACED[word]}"


def names_in(path: Path) -> list[str]:
    """The name of a file, and those of its functions and classes."""
    return [path.stem, *re.findall(r"^ *(?:def|class) (\w+)", path.read_text(), re.MULTILINE)]


def words_in(text: str) -> list[tuple[int, str]]:
    """Line and word, also of words inside names in camel case and snake case."""
    parts = re.sub("([a-z])([A-Z])", r"\1 \2", text).replace("_", " ")
    return sorted({(line, word) for word in REPLACED for line in (*lines_with(word, text), *lines_with(word, parts))})


def lines_with(word: str, text: str) -> Iterator[int]:
    """In lower case, and with the start of the word checked here: a pattern that begins with a letter is found fast."""
    is_name = bool(re.search("[A-Z]", word))
    searched = text if is_name else text.lower()
    end = "" if is_name or word.endswith(")") else "(?![a-z])"  # a lookahead is an end already
    for found in re.finditer(f"{word}{end}", searched):
        if is_name or not searched[max(found.start() - 1, 0) : found.start()].isalpha():
            yield searched.count("\n", 0, found.start()) + 1


def searched_files() -> Iterator[Path]:
    for place in SEARCHED:
        base = ROOT / place
        for path in [base] if base.is_file() else sorted(base.rglob("*")):
            if path.is_file() and path.suffix in SUFFIXES and not name(path).startswith(BUILT_FROM_MODULES):
                yield path


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
