from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.quantity import (
    NANO,
    Notation,
    Percent,
    Quantity,
    parse,
    parse_amount,
    parse_percent,
    scale,
    split,
    total,
    unit_of,
)

# What Go's apimachinery v0.36.3 prints after parsing.
PRINTED = {
    "0": "0",
    "9": "9",
    "9000m": "9",
    "1500m": "1500m",
    "1.5": "1500m",
    "0.5": "500m",
    ".5": "500m",
    "1.": "1.",
    "1.500": "1.500",
    "+5": "+5",
    "00012": "00012",
    "100n": "100n",
    "0.1n": "1n",
    "-0.1n": "-1n",
    "-1.5": "-1500m",
    "1e3": "1e3",
    "1E3": "1E3",
    "12e4": "120e3",
    "1e-12": "1e-9",
    "1E": "1E",
    "1000000": "1M",
    "1000k": "1M",
    "1500k": "1500k",
    "1024": "1024",
    "1024Mi": "1Gi",
    "1025Mi": "1025Mi",
    "2048Ki": "2Mi",
    "1.5Gi": "1536Mi",
    "0.5Ki": "512",
    "0.1Ki": "102400m",
    "1.1Ki": "1126400m",
    "-1Gi": "-1Gi",
    "1Ei": "1Ei",
    "100Ei": "9223372036854775807",
    "123456789012345678901234567890": "123456789012345678901234567890",
}
SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+5"]

texts = st.builds(
    lambda sign, whole, part, suffix: f"{sign}{whole}{part}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.from_regex(r"[0-9]{1,22}", fullmatch=True),
    st.from_regex(r"(\.[0-9]{0,12})?", fullmatch=True),
    st.sampled_from(SUFFIXES),
)
quantities = st.builds(Quantity, st.integers(-(10**30), 10**30), st.sampled_from([Notation.DECIMAL, Notation.EXPONENT]))
units = st.sampled_from([unit_of("cpu"), unit_of("memory")])
shares = st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.integers(0, 1000), min_size=1, max_size=8).map(
    lambda weights: {name: Fraction(weight, max(1000, sum(weights.values()))) for name, weight in weights.items()}
)


@pytest.mark.parametrize(("text", "printed"), PRINTED.items())
def test_quantity_prints_as_go_does(text: str, printed: str) -> None:
    assert str(parse(text)) == printed


@pytest.mark.parametrize(
    ("one", "other"),
    [("9", 9), ("9", "9000m"), ("1Gi", "1024Mi"), (0.5, "500m"), ("1e3", "1k"), ("0", "0.0"), (" 4 ", "4")],
)
def test_quantity_is_equal_by_value(one: str | float, other: str | float) -> None:
    assert parse(one) == parse(other)
    assert hash(parse(one)) == hash(parse(other))


@pytest.mark.parametrize(
    "wrong",
    ["", " ", ".", "+", "M", "-Gi", "1x", "1KI", "1K", "1 Gi", "1e", "1mi", "1e999", "1e12345678901", "٣", "0x1"],
)
def test_quantity_refuses_what_is_none(wrong: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse(wrong)


@pytest.mark.parametrize("wrong", [True, None, [1]])
def test_quantity_refuses_other_types(wrong: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse(wrong)


def test_quantity_beyond_go_suffixes_keeps_its_value() -> None:
    assert parse(str(parse("4000E"))) == parse("4000E")


@given(texts)
def test_quantity_survives_printing(text: str) -> None:
    quantity = parse(text)
    assert parse(str(quantity)) == quantity
    assert str(parse(str(quantity))) == str(quantity)


@given(quantities)
def test_quantity_from_arithmetic_survives_printing(quantity: Quantity) -> None:
    assert parse(str(quantity)) == quantity


@given(quantities, quantities)
def test_quantity_arithmetic_is_exact(one: Quantity, other: Quantity) -> None:
    assert one + other - other == one
    assert total([one, other]) == one + other
    assert (one < other) is (one.nanos < other.nanos)


def test_quantity_sum_keeps_the_notation_of_its_parts() -> None:
    assert str(total([parse("512Mi"), parse("512Mi")])) == "1Gi"
    assert str(parse("1Gi") - parse("512Mi")) == "512Mi"


def test_scale_rounds_down_to_units() -> None:
    assert str(scale(parse("10"), Fraction(1, 3), unit_of("cpu"))) == "3333m"
    assert str(scale(parse("10"), Fraction(1, 3), unit_of("nvidia.com/gpu"))) == "3"
    assert str(scale(parse("1Gi"), Fraction(1, 2), unit_of("memory"))) == "512Mi"


@pytest.mark.parametrize(("text", "fraction"), [("60%", "3/5"), ("12.5%", "1/8"), ("0%", "0"), ("100%", "1")])
def test_percent_is_exact_and_prints_as_written(text: str, fraction: str) -> None:
    assert parse_percent(text) == Percent(Fraction(fraction))
    assert str(parse_percent(text)) == text


@pytest.mark.parametrize("wrong", ["60", "%", "-1%", "101%", "1e1%", "100.1%", "6 0%", "½%"])
def test_percent_refuses_what_is_none(wrong: str) -> None:
    with pytest.raises(ValueError, match="is not a percentage"):
        parse_percent(wrong)


def test_amount_is_a_share_or_a_quantity() -> None:
    assert parse_amount("60%") == Percent(Fraction(3, 5))
    assert parse_amount("60") == parse_amount(60) == parse("60")


def test_split_gives_the_rest_to_the_largest_remainder() -> None:
    thirds = {"a": Fraction(1, 2), "b": Fraction(3, 10), "c": Fraction(1, 5)}
    parts = split(parse("7"), thirds, unit_of("nvidia.com/gpu"))
    assert {name: str(part) for name, part in parts.items()} == {"a": "4", "b": "2", "c": "1"}


def test_split_gives_ties_to_the_first_name() -> None:
    parts = split(parse("1"), {"b": Fraction(1, 2), "a": Fraction(1, 2)}, unit_of("pods"))
    assert parts == {"a": parse("1"), "b": parse("0")}


@pytest.mark.parametrize("shares", [{"a": Fraction(2, 3), "b": Fraction(1, 2)}, {"a": Fraction(-1, 3)}])
def test_split_refuses_shares_of_more_than_the_whole(shares: dict[str, Fraction]) -> None:
    with pytest.raises(ValueError, match="more than 100%"):
        split(parse("7"), shares, unit_of("cpu"))


@given(st.integers(0, 10**20), shares, units)
def test_split_is_exact_and_never_above_the_whole(nanos: int, shares: dict[str, Fraction], unit: Quantity) -> None:
    parts = split(Quantity(nanos), shares, unit)
    whole_units = nanos // unit.nanos
    assert sum(part.nanos for part in parts.values()) == int(whole_units * sum(shares.values())) * unit.nanos
    assert all(part.nanos % unit.nanos == 0 for part in parts.values())
    assert all(abs(parts[name].nanos - whole_units * share * unit.nanos) < unit.nanos for name, share in shares.items())


@given(st.integers(0, 10**12), shares, st.randoms())
def test_split_does_not_depend_on_order(count: int, shares: dict[str, Fraction], random: Random) -> None:
    shuffled = list(shares.items())
    random.shuffle(shuffled)
    whole = Quantity(count * NANO)
    assert split(whole, dict(shuffled), unit_of("pods")) == split(whole, shares, unit_of("pods"))
