"""KF200 to KF209: files and documents that cannot be read. The checks are in `spec`, which reads them."""

from reconciler.lint.model import Rule, Severity

RULES = (
    Rule(
        "KF200",
        Severity.ERROR,
        "file is YAML or JSON",
        "nothing of the file can be read",
        can_be_silenced=False,
    ),
    Rule(
        "KF201",
        Severity.ERROR,
        "document has an apiVersion, a kind and a name",
        "without them a document is not an object",
        can_be_silenced=False,
    ),
    Rule(
        "KF202",
        Severity.ERROR,
        "document matches the schema of its kind",
        "a field that does not exist, or a value of the wrong form, would have no effect",
        can_be_silenced=False,
    ),
    Rule(
        "KF203",
        Severity.ERROR,
        "annotations and labels of kfleet.dev exist",
        "kfleet ignores others, and the object goes elsewhere",
        can_be_silenced=False,
    ),
    Rule(
        "KF204",
        Severity.ERROR,
        "name is used once per kind",
        "one of two documents would win",
        can_be_silenced=False,
    ),
    Rule(
        "KF205",
        Severity.ERROR,
        "fleet has one Fleet and at most one manager",
        "the fleet's settings and the place of its jobs must be clear",
        can_be_silenced=False,
    ),
    Rule(
        "KF206",
        Severity.ERROR,
        "native document has a cluster",
        "in a fleet without a manager nothing says where it goes",
        can_be_silenced=False,
    ),
    Rule(
        "KF207",
        Severity.ERROR,
        "overlay can be applied",
        "a patch that hits nothing changes nothing",
        can_be_silenced=False,
    ),
    Rule(
        "KF208",
        Severity.ERROR,
        "object is declared once",
        "two documents cannot both decide the content of one object",
        can_be_silenced=False,
    ),
    Rule(
        "KF209",
        Severity.ERROR,
        "revision can be read",
        "there is no such revision, or it has no such folder",
        can_be_silenced=False,
    ),
)
