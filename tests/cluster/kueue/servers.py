"""What a real API server says to an object, and objects that are gone again after a test."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from reconciler.clients.kubernetes import ApiServer
from reconciler.errors import ClusterError
from reconciler.objects import Manifest
from tests.builders import namespace_object
from tests.support import eventually

CLUSTER_BY_KUEUE = {"0.19.0": "worker1", "0.16.2": "worker2"}
REFUSALS = (400, 403, 404, 405, 422)
# For a field that a custom kind does not have, and for a value of another type, an apply is answered with 500.
NO_TYPED_OBJECT = "failed to create typed patch object"


def refusal(api: ApiServer, manifest: Manifest) -> str:
    """Why the server does not take the object; empty where it does.

    Tried as an apply and as a create, without a trace: both must agree, so that no way of writing gets around a rule.
    What is returned is the answer to the create, which says better who refused.
    """
    applied, created = refusal_of_apply(api, manifest), _refusal_of_create(api, manifest)
    assert bool(applied) == bool(created), f"apply: {applied or 'accepted'}; create: {created or 'accepted'}"
    return created


def refusal_of_apply(api: ApiServer, manifest: Manifest) -> str:
    try:
        api.apply(manifest, is_dry_run=True)
    except ClusterError as error:
        return _checked(error)
    return ""


def _refusal_of_create(api: ApiServer, manifest: Manifest) -> str:
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        api._request("POST", api._collection(manifest), query, body=manifest)
    except ClusterError as error:
        return _checked(error)
    return ""


def _checked(error: ClusterError) -> str:
    is_refusal = error.status in REFUSALS or (error.status == 500 and NO_TYPED_OBJECT in error.problem)
    assert is_refusal, f"no refusal but a failure: {error}"
    return error.problem


@contextmanager
def held_namespaces(api: ApiServer, names: Iterable[str]) -> Iterator[None]:
    """Namespaces that exist for the time of a test; those that are there already stay."""
    made = []
    for name in names:
        manifest = namespace_object(name)
        if api.find(api.path_of(manifest)) is None:
            api.create(manifest)
            made.append(manifest)
    yield
    remove_all(api, made)


def remove_all(api: ApiServer, manifests: Iterable[Manifest]) -> None:
    """Delete in the opposite order, and wait for the finalizers."""
    paths = [api.path_of(manifest) for manifest in manifests][::-1]
    for path in paths:
        if api.find(path) is not None:
            api.delete(path)
    for path in paths:
        eventually(partial(_is_gone, api, path))


def _is_gone(api: ApiServer, path: str) -> bool:
    return api.find(path) is None
