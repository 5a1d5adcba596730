"""KF200 to KF209: files and documents that cannot be read. Their examples are whole documents."""

from reconciler.lint.model import Rule, Severity

_FLEET = "apiVersion: kfleet.dev/v1alpha1\nkind: Fleet\nmetadata: {name: example}\n"
_QUEUE = """\
apiVersion: kfleet.dev/v1alpha1
kind: Queue
metadata: {name: night}
spec:
  %s: [{flavor: cpu, resources: {cpu: 10%%}}]
  namespaceSelector: {}
"""
_NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: night}\n"
_ANNOTATED = "apiVersion: v1\nkind: Namespace\nmetadata: {name: night, annotations: {%s: workers}}\n"
_OVERLAY = """\
apiVersion: kfleet.dev/v1alpha1
kind: Overlay
metadata: {name: prod}
spec:
  patches:
  - target: {kind: Queue, name: %s}
    merge: {spec: {cohort: science}}
"""
_LOCAL_QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %s, namespace: astro, annotations: {kfleet.dev/clusters: east}}
spec: {clusterQueue: research}
"""


def _rule(number: int, title: str, why: str, bad: str, good: str) -> Rule:
    return Rule(f"KF{number}", Severity.ERROR, title, why, bad=bad, good=good, can_be_silenced=False)


RULES = (
    _rule(200, "file is YAML or JSON", "nothing of the file can be read", "a: [1\n", _NAMESPACE),
    _rule(
        201,
        "document has an apiVersion, a kind and a name",
        "without them a document is not an object",
        "kind: Namespace\nmetadata: {name: night}\n",
        _NAMESPACE,
    ),
    _rule(
        202,
        "document matches the schema of its kind",
        "a field that does not exist, or a value of the wrong form, would have no effect",
        _QUEUE % "qouta",
        _QUEUE % "quota",
    ),
    _rule(
        203,
        "annotations and labels of kfleet.dev exist",
        "kfleet ignores others, and the object goes elsewhere",
        _ANNOTATED % "kfleet.dev/cluster",
        _ANNOTATED % "kfleet.dev/clusters",
    ),
    _rule(
        204,
        "name is used once per kind",
        "one of two documents would win",
        f"{_NAMESPACE}---\n{_NAMESPACE}",
        _NAMESPACE,
    ),
    _rule(
        205,
        "fleet has one Fleet and at most one manager",
        "the fleet's settings and the place of its jobs must be clear",
        _FLEET,
        _NAMESPACE,
    ),
    _rule(
        206,
        "native document has a cluster",
        "in a fleet without a manager nothing says where it goes",
        "# in a fleet of two standalone clusters\n" + _NAMESPACE,
        "# in a fleet of two standalone clusters\n" + _ANNOTATED % "kfleet.dev/clusters",
    ),
    _rule(
        207,
        "overlay can be applied",
        "a patch that hits nothing changes nothing",
        _OVERLAY % "reserch",
        _OVERLAY % "research",
    ),
    _rule(
        208,
        "object is declared once",
        "two documents cannot both decide the content of one object",
        _LOCAL_QUEUE % "research",
        _LOCAL_QUEUE % "other",
    ),
    _rule(
        209,
        "revision can be read",
        "there is no such revision, or it has no such folder",
        "# kfleet validate --revision nowhere\n",
        "# kfleet validate --revision main\n",
    ),
)
