"""The page about the fields says what the schemas say."""

from reconciler.cli.explain_text import reference_markdown


def test_page_marks_what_must_be_there_and_names_choices_and_defaults() -> None:
    rows = {line.split(" | ")[0]: line for line in reference_markdown().splitlines() if line.startswith("| ")}
    assert "Name of a Flavor" in rows["| **`quota.flavor`**"]
    assert "`multikueue`" in rows["| `dispatch`"]
