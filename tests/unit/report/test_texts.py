"""Comments that fit, and in which nobody can write but kfleet."""

from reconciler.text import LONGEST_NAME, Block, code, comment, fenced_part, format_value, table_part


def test_code_is_nothing_but_text() -> None:
    assert code("a|b `c`\n@d") == "`a\\|b 'c' @d`"
    assert code("") == ""


def test_title_of_a_part_holds_no_markup() -> None:
    part = fenced_part("<b>a</b>", [Block("x", ("x",))])
    assert part.lines(part.blocks)[0] == "<details><summary>&lt;b&gt;a&lt;/b&gt;</summary>"


def test_comment_leaves_out_parts_that_hold_nothing() -> None:
    assert comment(["head"], [table_part("Empty", ("a", "b"), [])]) == "head"


def test_comment_keeps_short_blocks_after_one_that_is_too_long() -> None:
    blocks = [Block("long", ("x" * 2000,)), Block("short", ("here",))]
    lines = comment(["head"], [fenced_part("part", blocks)], 1000).splitlines()
    assert "here" in lines and "long" in lines and "short" not in lines


def test_comment_cuts_a_name_that_is_too_long() -> None:
    text = comment(["head"], [fenced_part("part", [Block("n" * 5000, ("x" * 2000,))])], 1500)
    assert len(text) <= 1500
    assert "n" * LONGEST_NAME + "\n" in text
    assert "n" * (LONGEST_NAME + 1) not in text


def test_whole_file_is_distinguished_from_another_one_and_not_shown() -> None:
    one, other = format_value("x\n" * 15_000), format_value("y\n" * 15_000)
    assert one.startswith("(30000 characters, sha256:")
    assert one != other
    assert format_value("x" * 2000) == "x" * 2000
    assert format_value("x\n") == '"x\\n"'
