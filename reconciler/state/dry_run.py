"""Predicts the state of desired objects after an apply: by managedFields, by a dry run, or by a local merge."""

import time
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Event
from types import MappingProxyType
from typing import Any

from reconciler.clients.protocols import ClusterClient
from reconciler.errors import ClusterError, SpecError
from reconciler.kueue.kinds import GROUP as KUEUE_GROUP
from reconciler.kueue.kinds import newest_release, parse_version
from reconciler.kueue.reading import as_map
from reconciler.multikueue.model import PATH as TOKEN_PATH
from reconciler.multikueue.model import with_token
from reconciler.objects import FIELD_MANAGER, Gap, Manifest, Ref
from reconciler.render.model import DesiredObject, KueueApi, written
from reconciler.snapshot.masking import masked_object
from reconciler.spec.model import Cluster
from reconciler.state.managed_fields import FieldTree, applied_by, has_applied, is_settled, owners_at
from reconciler.state.manual_edits import unnamed_fields
from reconciler.state.model import ClusterView, Conflict, Prediction
from reconciler.state.queues import is_stopped
from reconciler.state.tracking import add_tracking_metadata, with_record
from reconciler.state.values import SECRET_KINDS, is_equal

PARALLEL = 16
DEFINITION = "CustomResourceDefinition"
_CONFLICT = "FieldManagerConflict"
_PAUSES = (0.2, 0.4)


def applicable(manifest: Manifest) -> Manifest:
    return _without_empty_spec(_with_encoded_texts(manifest))


def _without_empty_spec(manifest: Manifest) -> Manifest:
    """Omit an empty spec: if the API server removes its last field, it sets the spec to null and then rejects that."""
    if manifest.get("spec") != {}:
        return manifest
    return {name: value for name, value in manifest.items() if name != "spec"}


def _with_encoded_texts(manifest: Manifest) -> Manifest:
    """Move `stringData` of a Secret into `data`.

    The API server copies it there without a field owner, so a key would never be removed again.
    """
    texts = manifest.get("stringData")
    is_secret = (manifest["apiVersion"], manifest["kind"]) == ("v1", "Secret")
    if not is_secret or not isinstance(texts, Mapping) or not all(isinstance(text, str) for text in texts.values()):
        return manifest
    encoded = {key: b64encode(text.encode()).decode() for key, text in texts.items()}
    rest = {name: value for name, value in manifest.items() if name != "stringData"}
    return {**rest, "data": {**(manifest.get("data") or {}), **encoded}}


@dataclass(frozen=True, slots=True)
class _Asked:
    """The cluster for dry runs, its observed state, and the objects that the same plan creates."""

    client: ClusterClient
    view: ClusterView
    coming: frozenset[Ref]
    is_silent: Event = field(default_factory=Event)


def prepare(
    cluster: Cluster,
    probed: ClusterView,
    objects: Iterable[DesiredObject],
    before: Mapping[Ref, Prediction] = MappingProxyType({}),
) -> tuple[Prediction, ...]:
    """The manifests that kfleet would send, as far as they are known before the live objects are observed.

    `before` are predictions of the last cycle. If the desired object is the same, its prediction is reused.
    """
    api = _kueue_api(cluster, probed)

    def answer(entry: DesiredObject) -> Prediction:
        known = before.get(entry.ref)
        return known if known and _is_same_desired(known, entry, api) else _prepared(entry, api, probed)

    return tuple(answer(entry) for entry in objects)


def compare(prepared: Prediction, live: Manifest | None, *, is_read_only: bool = False) -> Prediction:
    """Compare a desired object with the live one, without a request.

    A snapshot has no values of Secrets, so these are not compared.
    """
    if prepared.is_settled and prepared.live is live:
        return prepared
    if is_read_only and prepared.ref.kind in SECRET_KINDS and not prepared.problem:
        prepared = prepared._replace(wanted=masked_object(prepared.ref.kind, prepared.wanted))
    entry = prepared.entry
    if prepared.problem:
        return Prediction(entry, prepared.wanted, live, problem=prepared.problem)
    wanted = with_record(prepared.wanted, entry, live)
    if live is None:
        return Prediction(entry, wanted)
    if entry.token is not None and not entry.token.kept:
        others = owners_at(live, TOKEN_PATH, but=FIELD_MANAGER)
        return Prediction(entry, wanted, live, conflicts=tuple(Conflict(".".join(TOKEN_PATH), one) for one in others))
    unnamed = unnamed_fields(live, wanted, FIELD_MANAGER, entry.unmanaged)
    if is_settled(live, wanted, FIELD_MANAGER) and not is_stopped(live) and not unnamed:
        return Prediction(entry, wanted, live, is_settled=True)
    if not has_applied(live, FIELD_MANAGER, wanted["apiVersion"]):
        # The recorded field hashes are those of another API version.
        wanted = with_record(prepared.wanted, entry, None)
    return Prediction(entry, wanted, live, unnamed=unnamed)


def predict(
    client: ClusterClient, view: ClusterView, prepared: Iterable[Prediction], *, is_applying: bool = False
) -> tuple[Prediction, ...]:
    """Predict each desired object. Only objects that are not settled need a dry run.

    `is_applying` omits the dry run for missing Kueue objects: lint has already found what the API server would reject,
    and the write itself gives the answer.
    """
    first = [
        compare(prediction, view.live.get(prediction.ref), is_read_only=client.is_read_only) for prediction in prepared
    ]
    asked = _Asked(client, view, frozenset(prediction.ref for prediction in first if _is_coming(prediction)))
    unsettled = [
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
        answers = pool.map(lambda number: _ask(asked, first[number]), unsettled)
        for number, answer in zip(unsettled, answers, strict=True):
            first[number] = answer
    return tuple(first)


def mark_unanswered(view: ClusterView, predictions: Iterable[Prediction]) -> ClusterView:
    """Add a gap if the API server stopped responding during the dry runs: the plan may then be inaccurate."""
    if not any(prediction.is_unanswered for prediction in predictions):
        return view
    gap = Gap(view.name, "dry run", "the API server stopped responding")
    return replace(view, gaps=(*view.gaps, gap))


def _is_writable(prediction: Prediction, view: ClusterView) -> bool:
    """Whether a Kueue object is missing while its kind is served: then only the write itself can fail."""
    versions = view.served.get((prediction.ref.group, prediction.ref.kind), ())
    is_missing = prediction.live is None and prediction.ref.group == KUEUE_GROUP
    return is_missing and any(kind.api_version == prediction.wanted["apiVersion"] for kind in versions)


def _is_unknown(entry: DesiredObject) -> bool:
    """Whether a dry run has no content: it could not be observed, or its token is not issued yet."""
    return bool(entry.held) or (entry.token is not None and not entry.token.kept)


def _is_coming(prediction: Prediction) -> bool:
    """Whether the plan creates the object. This includes an object that is being deleted and then created again.

    Until it is gone, the API server rejects everything inside of it.
    """
    return prediction.live is None or bool(prediction.live["metadata"].get("deletionTimestamp"))


def _is_same_desired(known: Prediction, entry: DesiredObject, api: KueueApi) -> bool:
    """Compare by identity: it is cheap, and enough for objects that do not depend on an observation."""
    is_same = known.entry.manifest is entry.manifest and known.entry.origin == entry.origin
    version = known.wanted["apiVersion"].rpartition("/")[2]
    is_served = entry.ref.group != KUEUE_GROUP or api.served.get(entry.ref.kind) == version
    return is_same and is_served and known.is_settled and entry.token is None and not entry.held


def _prepared(entry: DesiredObject, api: KueueApi, probed: ClusterView) -> Prediction:
    try:
        wanted = add_tracking_metadata(applicable(written(entry, api)), entry, probed.set_name)
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
    if asked.client.is_read_only:
        return _predicted(prediction)
    path = kind.path(prediction.ref.namespace, prediction.ref.name)
    return _answered(asked, path, prediction)


def _predicted(prediction: Prediction) -> Prediction:
    """The prediction without an API server, for clusters of a snapshot."""
    live, wanted = prediction.live, prediction.wanted
    if live is None:
        return _changed(prediction, is_static=True)
    conflicts = tuple(find_conflicts(live, wanted, FIELD_MANAGER))
    return _changed(prediction, result=merged(live, wanted, FIELD_MANAGER), conflicts=conflicts, is_static=True)


def _not_served(prediction: Prediction) -> str:
    kind = f"{prediction.wanted['apiVersion']} {prediction.ref.kind}"
    return f"{kind} is not served; install its definition there, or remove the object from the fleet for this cluster"


def _answered(asked: _Asked, path: str, prediction: Prediction) -> Prediction:
    """Dry-run without force. On conflicts with other managers dry-run again with force, to see the result of that."""
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
    """The prediction after a failed dry run.

    A rejection is final. After a retryable error (a webhook is down) apply asks the server again.
    """
    if not error.is_retryable:
        return _changed(prediction, problem=error.problem)._replace(status=error.status)
    result = merged(prediction.live, prediction.wanted, FIELD_MANAGER) if prediction.live else None
    return _changed(prediction, result=result, is_static=True)._replace(is_unanswered=not error.status)


def _dry_run(asked: _Asked, path: str, wanted: Manifest, *, is_forced: bool) -> Manifest:
    """Retry a busy API server a few times. After one without a response, skip all other objects: each would block."""
    for pause in _PAUSES:
        try:
            return _dry_run_once(asked, path, wanted, is_forced=is_forced)
        except ClusterError as error:
            if not error.is_retryable or asked.is_silent.is_set():
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
        raise ClusterError(asked.client.cluster, "the API server stopped responding")
    return asked.client.apply_at(path, wanted, manager=FIELD_MANAGER, is_forced=is_forced, is_dry_run=True)


def _must_wait(prediction: Prediction, asked: _Asked) -> bool:
    """Whether the same plan creates the object's namespace, kind or role: then a dry run is not possible yet.

    For a role binding the API server reads the role, to check that kfleet holds all of its permissions.
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
    """Whether the CustomResourceDefinition of the kind exists: the API server will serve the kind soon."""
    definitions = (live["spec"] for other, live in view.live.items() if other.kind == DEFINITION)
    return any((spec["group"], spec["names"]["kind"]) == (ref.group, ref.kind) for spec in definitions)


def _kueue_api(cluster: Cluster, view: ClusterView) -> KueueApi:
    """The served API versions of Kueue. Its release is that of the spec, or the newest one that serves them."""
    served: Mapping[str, str] = {
        kind: versions[0].version for (group, kind), versions in view.served.items() if group == KUEUE_GROUP
    }
    return KueueApi(parse_version(cluster.kueue.version) if cluster.kueue.version else newest_release(served), served)


def _changed(
    prediction: Prediction,
    *,
    result: Manifest | None = None,
    conflicts: tuple[Conflict, ...] = (),
    problem: str = "",
    is_static: bool = False,
) -> Prediction:
    return prediction._replace(result=result, conflicts=conflicts, problem=problem, is_static=is_static)


def merged(live: Manifest, wanted: Manifest, manager: str) -> Manifest:
    """The live object with the desired fields, without fields that the manager applied before and no longer desires."""
    owner = applied_by(live, manager)
    result: Manifest = _merged(live, wanted, owner.tree if owner else {})
    return result


def _merged(live: Any, wanted: Any, tree: FieldTree) -> Any:
    if not isinstance(live, Mapping) or not isinstance(wanted, Mapping):
        return wanted
    kept = {name: value for name, value in live.items() if name in wanted or f"f:{name}" not in tree}
    changed = {name: _merged(live.get(name), value, tree.get(f"f:{name}", {})) for name, value in wanted.items()}
    return {**kept, **changed}


def find_conflicts(live: Manifest, wanted: Manifest, manager: str) -> Iterator[Conflict]:
    """Fields that would get another value although another manager owns them: server-side apply refuses these."""
    for path in _differing(live, wanted, ()):
        yield from (Conflict("." + ".".join(path), owner) for owner in owners_at(live, path, but=manager))


def _differing(live: Any, wanted: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(live, Mapping) and isinstance(wanted, Mapping):
        for name, value in wanted.items():
            if name in live:
                yield from _differing(live[name], value, (*path, str(name)))
    elif not is_equal(live, wanted, path):
        yield path
