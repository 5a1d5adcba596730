"""The documents of the walkthroughs that people start from, as if they were on a cluster: all of them are imported."""

from pathlib import Path

import pytest

from reconciler.importer.collect import IMPORTED
from reconciler.objects import Manifest, group_of
from tests import fast_yaml
from tests.support import SEEDS
from tests.unit.importer.live_clusters import documents, imported, namespace

FOLDERS = sorted(path.name for path in SEEDS.iterdir() if path.is_dir())


def seed_files(folder: str) -> dict[str, tuple[Manifest, ...]]:
    """The objects of a walkthrough that an import reads, by file: files of one walkthrough may be alternatives."""
    found: dict[str, tuple[Manifest, ...]] = {}
    for path in sorted(Path(SEEDS / folder).glob("*.yaml")):
        objects = [entry for entry in fast_yaml.safe_load_all(path.read_text()) if entry]
        read = tuple(entry for entry in objects if (group_of(entry), entry["kind"]) in IMPORTED)
        if read:
            found[path.name] = read
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_objects_of_a_walkthrough_are_imported(folder: str) -> None:
    files = seed_files(folder)
    assert files
    for name, objects in files.items():
        spaces = {entry["metadata"].get("namespace") for entry in objects} - {None}
        made = imported(*objects, *(namespace(space) for space in spaces))
        left = [one for one in made.left if "login" not in one.why]
        assert left == [], name
        assert len(made.taken) + len(made.left) == len(objects), name


def test_binding_policy_of_kueue_ks_is_imported_as_it_is() -> None:
    (objects,) = [found for name, found in seed_files("kueue-ks").items() if "placement" in name]
    found = documents(imported(*objects, east=()))
    policy = next(entry for entry in objects if entry["kind"] == "BindingPolicy")
    written = found[f"BindingPolicy/{policy['metadata']['name']}"]
    assert written["spec"] == policy["spec"]
    assert written["metadata"]["annotations"] == {"kfleet.dev/clusters": "home"}
