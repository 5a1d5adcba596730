"""KF110 to KF112: metadata."""

from tests.unit.kueue.rule_case import Case, case_object

LONG = "a" * 254

BAD = (
    Case("KF110", case_object("ResourceFlavor", {}, name="A100"), "upper case", "request"),
    Case("KF110", case_object("ResourceFlavor", {}, name="a_b"), "underscore", "request"),
    Case("KF110", case_object("ResourceFlavor", {}, name=LONG), "name too long", "request"),
    Case("KF110", case_object("ResourceFlavor", {}, name=""), "no name", "request"),
    Case("KF111", case_object("ResourceFlavor", {}, labels={"a b": "c"}), "label key with a space", "request"),
    Case("KF111", case_object("ResourceFlavor", {}, labels={"a": "b c"}), "label value with a space", "request"),
    Case(
        "KF111", case_object("ResourceFlavor", {}, annotations={"a b": "c"}), "annotation key with a space", "request"
    ),
    Case(
        "KF111", case_object("ResourceFlavor", {}, annotations={"a": "b" * 262145}), "annotations too large", "request"
    ),
    Case("KF112", case_object("LocalQueue", {"clusterQueue": "q"}, namespace=""), "no namespace", "request"),
    Case(
        "KF112", case_object("LocalQueue", {"clusterQueue": "q"}, namespace="Team.A"), "namespace with a dot", "request"
    ),
)

GOOD = (
    Case("KF110", case_object("ResourceFlavor", {}, name="a100.example-1.com"), "name with dots"),
    Case("KF111", case_object("ResourceFlavor", {}, labels={"example.com/a": "", "b": "C_d.e"}), "labels"),
    Case(
        "KF111", case_object("ResourceFlavor", {}, annotations={"Example.com/A": "anything at all, ok?"}), "annotations"
    ),
    Case("KF111", case_object("ResourceFlavor", {}, annotations={"a": "b" * 262143}), "largest annotations"),
    Case("KF110", case_object("ResourceFlavor", {}, name="a" * 253), "longest name"),
    Case("KF112", case_object("LocalQueue", {"clusterQueue": "q"}), "namespace"),
    Case("KF112", case_object("ResourceFlavor", {}, namespace="default"), "namespace where none is needed"),
)
