"""The overlays that one name stands for: its bases first, each once."""

from dataclasses import dataclass

from reconciler.errors import Place, SpecError
from reconciler.objects import Manifest
from reconciler.spec.document import Document, field_text
from reconciler.spec.documents import read_documents
from reconciler.spec.files import FleetFiles
from reconciler.spec.schema import KFLEET_VERSION, check_schema
from reconciler.spec.wording import suggest

KIND = "Overlay"


@dataclass(frozen=True, slots=True)
class Overlay:
    name: str
    document: Document
    added: tuple[Document, ...]

    @property
    def spec(self) -> Manifest:
        spec: Manifest = self.document.value.get("spec", {})
        return spec

    @property
    def bases(self) -> tuple[str, ...]:
        base = self.spec.get("base", ())
        return (base,) if isinstance(base, str) else tuple(base)


@dataclass(frozen=True, slots=True)
class Chain:
    overlays: tuple[Overlay, ...]
    errors: tuple[SpecError, ...]


def load_chain(files: FleetFiles, name: str) -> Chain:
    """Load an overlay and everything it builds on, in the order in which they are applied."""
    loader = _Loader(files)
    loader.load(name, Place(files.overlays_path), "", ())
    return Chain(tuple(loader.done.values()), tuple(loader.errors))


class _Loader:
    def __init__(self, files: FleetFiles) -> None:
        self.files = files
        self.names = files.overlay_names()
        self.done: dict[str, Overlay] = {}
        self.errors: list[SpecError] = []

    def load(self, name: str, asked: Place, field: str, above: tuple[str, ...]) -> None:
        if name in self.done:
            return
        if name in above:
            circle = " -> ".join((*above[above.index(name) :], name))
            self.errors.append(SpecError(asked, field, f"overlays build on each other in a circle: {circle}"))
        elif name not in self.names:
            known = ", ".join(self.names) or "none"
            problem = f"there is no overlay {name!r}{suggest(name, self.names)}; there are: {known}"
            self.errors.append(SpecError(asked, field, problem))
        elif overlay := self.read(name):
            for index, base in enumerate(overlay.bases):
                path = ("spec", "base") if isinstance(overlay.spec["base"], str) else ("spec", "base", index)
                self.load(base, overlay.document.place(*path), field_text(path), (*above, name))
            self.done[name] = overlay

    def read(self, name: str) -> Overlay | None:
        reading = read_documents(self.files.overlay(name))
        self.errors.extend(reading.errors)
        own = [each for each in reading.documents if each.kind == KIND and each.api_version == KFLEET_VERSION]
        if len(own) != 1:
            if not reading.errors:
                folder = Place(f"{self.files.overlays_path}/{name}")
                problem = f"has {len(own)} {KIND} documents: exactly one ({KFLEET_VERSION}) says what it changes"
                self.errors.append(SpecError(folder, "", problem))
            return None
        problems = check_schema(own[0])
        if not problems and own[0].name != name:
            problem = f"{own[0].name!r} is not the name of its folder: write {name}"
            problems = [own[0].error(("metadata", "name"), problem)]
        self.errors.extend(problems)
        added = tuple(document for document in reading.documents if document is not own[0])
        return None if problems else Overlay(name, own[0], added)
