"""Asks the server what it would make of an object, where looking alone does not tell."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Event
from types import MappingProxyType

from reconciler.credential import PATH as TOKEN_PATH
from reconciler.credential import with_token
from reconciler.desired import DesiredObject
from reconciler.desired.written import KueueApi, written
from reconciler.errors import ClusterError, SpecError
from reconciler.kueue.kinds import GROUP as KUEUE_GROUP
from reconciler.kueue.kinds import NEWEST, parse_version
from reconciler.kueue.reading import as_map
from reconciler.objects import Gap, Manifest, Ref
from reconciler.ownership.dress import dress, with_record
from reconciler.ownership.fields import has_applied, is_settled, owners_at
from reconciler.ownership.stopped import is_stopped
from reconciler.ports import ClusterPort
from reconciler.predict.merge import merged
from reconciler.predict.shape import applicable
from reconciler.prediction import ClusterView, Conflict, Prediction
from reconciler.spec.model import Cluster

FIELD_MANAGER = "kfleet"
PARALLEL = 16
DEFINITION = "CustomResourceDefinition"
_CONFLICT = "FieldManagerConflict"
_PAUSES = (0.2, 0.4)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Who is asked, what was seen there, and what comes into being with the same plan."""

    port: ClusterPort
    view: ClusterView
    coming: frozenset[Ref]
    is_silent: Event = field(default_factory=Event)


def prepare(
    cluster: Cluster,
    greeted: ClusterView,
    objects: Iterable[DesiredObject],
    before: Mapping[Ref, Prediction] = MappingProxyType({}),
) -> tuple[Prediction, ...]:
    """What would be sent of each wanted object: all that can be said before anything is seen of it.

    `before` is what was found a moment ago: where the wish is the same one, so is its answer.
    """
    api = _kueue_api(cluster, greeted)

    def answer(entry: DesiredObject) -> Prediction:
        known = before.get(entry.ref)
        return known if known and _is_same_wish(known, entry, api) else _prepared(entry, api, greeted)

    return tuple(answer(entry) for entry in objects)


def compare(prepared: Prediction, live: Manifest | None) -> Prediction:
    """Compare without asking."""
    if prepared.is_settled and prepared.live is live:
        return prepared
    entry = prepared.entry
    if prepared.problem:
        return Prediction(entry, prepared.wanted, live, problem=prepared.problem)
    wanted = with_record(prepared.wanted, entry, live)
    if live is None:
        return Prediction(entry, wanted)
    if entry.token is not None and not entry.token.kept:
        others = owners_at(live, TOKEN_PATH, but=FIELD_MANAGER)
        return Prediction(entry, wanted, live, conflicts=tuple(Conflict(".".join(TOKEN_PATH), one) for one in others))
    if is_settled(live, wanted, FIELD_MANAGER) and not is_stopped(live):
        return Prediction(entry, wanted, live, is_settled=True)
    if not has_applied(live, FIELD_MANAGER, wanted["apiVersion"]):
        # What it says of its fields, it says in the words of another version.
        wanted = with_record(prepared.wanted, entry, None)
    return Prediction(entry, wanted, live)


def predict(
    port: ClusterPort, view: ClusterView, prepared: Iterable[Prediction], *, is_applying: bool = False
) -> tuple[Prediction, ...]:
    """What each wanted object is now and would become; only those that are not settled cost a request.

    Who is about to apply need not ask about objects of Kueue that are not there: what their server would refuse, lint
    has found, and the write itself is the question.
    """
    first = [compare(prediction, view.live.get(prediction.ref)) for prediction in prepared]
    asked = _Asked(port, view, frozenset(prediction.ref for prediction in first if _is_coming(prediction)))
    open_questions = [
        number
        for number, prediction in enumerate(first)
        if not (
            prediction.is_settled
            or prediction.problem
            or _is_unknown(prediction.entry)
            or (is_applying and _is_writable(prediction, view))
        )
    ]
    with ThreadPoolExecutor(PARALLEL) as pool:
        answers = pool.map(lambda number: _ask(asked, first[number]), open_questions)
        for number, answer in zip(open_questions, answers, strict=True):
            first[number] = answer
    return tuple(first)


def with_silence(view: ClusterView, predictions: Iterable[Prediction]) -> ClusterView:
    """The view with a gap where its server has stopped to answer since: what is planned may not be what comes."""
    if not any(prediction.is_unanswered for prediction in predictions):
        return view
    gap = Gap(view.name, "what its server makes of the objects", "it has stopped to answer")
    return replace(view, gaps=(*view.gaps, gap))


def _is_writable(prediction: Prediction, view: ClusterView) -> bool:
    """Whether an object of Kueue is missing whose kind is there, so that little but the write itself can go wrong."""
    versions = view.served.get((prediction.ref.group, prediction.ref.kind), ())
    is_missing = prediction.live is None and prediction.ref.group == KUEUE_GROUP
    return is_missing and any(kind.api_version == prediction.wanted["apiVersion"] for kind in versions)


def _is_unknown(entry: DesiredObject) -> bool:
    """Whether there is nothing to ask with: the content could not be told, or a token has yet to be made."""
    return bool(entry.held) or (entry.token is not None and not entry.token.kept)


def _is_coming(prediction: Prediction) -> bool:
    """What is being deleted comes again when it is gone. Until then its server refuses everything inside of it."""
    return prediction.live is None or bool(prediction.live["metadata"].get("deletionTimestamp"))


def _is_same_wish(known: Prediction, entry: DesiredObject, api: KueueApi) -> bool:
    """By identity, which is enough for wishes that do not depend on anything seen, and costs nothing."""
    is_same = known.entry.manifest is entry.manifest and known.entry.origin == entry.origin
    version = known.wanted["apiVersion"].rpartition("/")[2]
    is_served = entry.ref.group != KUEUE_GROUP or api.served.get(entry.ref.kind) == version
    return is_same and is_served and known.is_settled and entry.token is None and not entry.held


def _prepared(entry: DesiredObject, api: KueueApi, greeted: ClusterView) -> Prediction:
    try:
        wanted = dress(applicable(written(entry, api)), entry, greeted.set_name)
    except SpecError as error:
        return Prediction(entry, entry.manifest, problem=error.problem)
    if entry.token is not None and entry.token.kept:
        wanted = with_token(wanted, entry.token, entry.token.kept)
    return Prediction(entry, wanted)


def _ask(asked: _Asked, prediction: Prediction) -> Prediction:
    if _must_wait(prediction, asked):
        return _changed(prediction, is_static=True)
    versions = asked.view.served.get((prediction.ref.group, prediction.ref.kind), ())
    kind = next((kind for kind in versions if kind.api_version == prediction.wanted["apiVersion"]), None)
    if kind is None:
        return _changed(prediction, problem=_not_served(prediction))
    path = kind.path(prediction.ref.namespace, prediction.ref.name)
    return _answered(asked, path, prediction)


def _not_served(prediction: Prediction) -> str:
    kind = f"{prediction.wanted['apiVersion']} {prediction.ref.kind}"
    return f"{kind} is not served; install what defines it there, or take the object out of the fleet for this cluster"


def _answered(asked: _Asked, path: str, prediction: Prediction) -> Prediction:
    """First politely; where other managers hold fields, once more with force, to see what taking them would give."""
    try:
        return _changed(prediction, result=_dry_run(asked, path, prediction.wanted, is_forced=False))
    except ClusterError as error:
        conflicts = tuple(Conflict(cause.field, cause.manager) for cause in error.causes if cause.reason == _CONFLICT)
        if not conflicts:
            return _unasked(prediction, error)
    try:
        result = _dry_run(asked, path, prediction.wanted, is_forced=True)
    except ClusterError as error:
        return _unasked(prediction, error)
    return _changed(prediction, result=result, conflicts=conflicts)


def _unasked(prediction: Prediction, error: ClusterError) -> Prediction:
    """A server that says no is believed; one that cannot say anything now (a webhook is down) is asked by apply."""
    if not error.may_pass:
        return _changed(prediction, problem=error.problem)._replace(status=error.status)
    result = merged(prediction.live, prediction.wanted, FIELD_MANAGER) if prediction.live else None
    return _changed(prediction, result=result, is_static=True)._replace(is_unanswered=not error.status)


def _dry_run(asked: _Asked, path: str, wanted: Manifest, *, is_forced: bool) -> Manifest:
    """Ask a busy server a few times; a silent one is not asked about the other objects, which would all wait for it."""
    for pause in _PAUSES:
        try:
            return _dry_run_once(asked, path, wanted, is_forced=is_forced)
        except ClusterError as error:
            if not error.may_pass or asked.is_silent.is_set():
                raise
        time.sleep(pause)
    try:
        return _dry_run_once(asked, path, wanted, is_forced=is_forced)
    except ClusterError as error:
        if not error.status:
            asked.is_silent.set()
        raise


def _dry_run_once(asked: _Asked, path: str, wanted: Manifest, *, is_forced: bool) -> Manifest:
    if asked.is_silent.is_set():
        raise ClusterError(asked.port.cluster, "the server has stopped to answer")
    return asked.port.apply_at(path, wanted, manager=FIELD_MANAGER, is_forced=is_forced, is_dry_run=True)


def _must_wait(prediction: Prediction, asked: _Asked) -> bool:
    """Whether the object's namespace, kind or role comes into being with the same plan: nobody can be asked yet.

    Of a role that is bound, the server wants to know whether whoever binds it has all of its rights.
    """
    ref, role = prediction.ref, as_map(prediction.wanted.get("roleRef"))
    if ref.namespace and Ref(ref.cluster, "", "Namespace", "", ref.namespace) in asked.coming:
        return True
    namespace = ref.namespace if role.get("kind") == "Role" else ""
    if role and Ref(ref.cluster, ref.group, str(role.get("kind")), namespace, str(role.get("name"))) in asked.coming:
        return True
    if (ref.group, ref.kind) in asked.view.served:
        return False
    return any(other.kind == DEFINITION for other in asked.coming) or _is_defined(ref, asked.view)


def _is_defined(ref: Ref, view: ClusterView) -> bool:
    """Whether the fleet has defined the kind already: its server says so a moment later."""
    definitions = (live["spec"] for other, live in view.live.items() if other.kind == DEFINITION)
    return any((spec["group"], spec["names"]["kind"]) == (ref.group, ref.kind) for spec in definitions)


def _kueue_api(cluster: Cluster, view: ClusterView) -> KueueApi:
    """The API versions that the cluster serves; its release is what the spec says, as far as that is known."""
    served: Mapping[str, str] = {
        kind: versions[0].version for (group, kind), versions in view.served.items() if group == KUEUE_GROUP
    }
    return KueueApi(parse_version(cluster.kueue.version) if cluster.kueue.version else NEWEST, served)


def _changed(
    prediction: Prediction,
    *,
    result: Manifest | None = None,
    conflicts: tuple[Conflict, ...] = (),
    problem: str = "",
    is_static: bool = False,
) -> Prediction:
    return Prediction(
        prediction.entry, prediction.wanted, prediction.live, result, conflicts, problem, is_static=is_static
    )
