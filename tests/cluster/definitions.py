"""Kinds that a real API server serves for the time of a test."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from reconciler.clients.kubernetes import ApiServer
from reconciler.objects import Manifest
from tests.support import eventually


@contextmanager
def held_definitions(api: ApiServer, definitions: Iterable[Manifest]) -> Iterator[None]:
    """Serve these kinds; what is ready is their lists and discovery, and both are gone afterwards."""
    made = list(definitions)
    try:
        for manifest in made:
            api.create(manifest)
        for manifest in made:
            eventually(partial(_is_served, api, manifest["spec"]))
        yield
    finally:
        for path in map(api.path_of, made):
            if api.find(path):
                api.delete(path)
        for manifest in made:
            eventually(partial(_is_gone, api, manifest))


def _is_served(api: ApiServer, spec: Manifest) -> bool:
    """A kind is established, answers its LIST and stands in the two documents of discovery at different moments."""
    lists = [f"/apis/{api_version}/{spec['names']['plural']}" for api_version in _versions(spec)]
    return all(_listings(api, spec)) and all(api.find(path) for path in lists)


def _is_gone(api: ApiServer, manifest: Manifest) -> bool:
    return api.find(api.path_of(manifest)) is None and not any(_listings(api, manifest["spec"]))


def _listings(api: ApiServer, spec: Manifest) -> list[bool]:
    """Whether discovery lists the kind: for each served version the document of everything, then that version's own."""
    api.forget_kinds()
    everything, kind = api.discover(), spec["names"]["kind"]
    return [
        (api_version, kind) in {(entry.api_version, entry.kind) for entry in listed}
        for api_version in _versions(spec)
        for listed in (everything, api.kinds(api_version))
    ]


def _versions(spec: Manifest) -> list[str]:
    return [f"{spec['group']}/{version['name']}" for version in spec["versions"] if version["served"]]
