"""The page about lint says what the rules say."""

from reconciler.lint.docs import rules_markdown
from reconciler.lint.run import RULES


def test_page_has_a_section_with_both_examples_for_every_rule() -> None:
    sections = rules_markdown().split("\n### ")[1:]
    assert [section[:5] for section in sections] == [rule.id for rule in RULES]
    assert all("```yaml\n# bad\n" in section and "```yaml\n# good\n" in section for section in sections)


def test_page_tells_which_rules_cannot_be_silenced() -> None:
    rows = [line for line in rules_markdown().splitlines() if line.startswith("| [KF")]
    always_on = [row[3:8] for row in rows if row.endswith("| always on |")]
    assert always_on == [rule.id for rule in RULES if not rule.can_be_silenced]
    assert {"KF001", "KF030", "KF127"} <= set(always_on) and "KF055" not in always_on
