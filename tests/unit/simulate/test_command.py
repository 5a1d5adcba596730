"""What `kfleet simulate` refuses before it observes or starts anything."""

from pathlib import Path

import pytest

from tests import fast_yaml
from tests.builders import (
    SMALL_FLEET,
    Document,
    asking,
    cluster_document,
    fleet_document,
    job,
    namespace_object,
    pod_spec,
    yaml_of,
)
from tests.support import Kfleet

JOB = job("train", pod_spec(asking(cpu="1")), namespace="team", queue="main")
ALONE = (fleet_document(), cluster_document("one", "standalone"), cluster_document("two", "standalone"))


def fleet_in(folder: Path, *documents: Document) -> tuple[str, str]:
    (folder / "fleet").mkdir()
    (folder / "fleet" / "all.yaml").write_text(yaml_of(*documents))
    return "--repo", str(folder)


@pytest.mark.parametrize(
    ("options", "documents", "message"),
    [
        (("--pool", "cineca"), SMALL_FLEET, "write the name of a pool and =0"),
        (("--for", "soon"), SMALL_FLEET, "'soon' is not a duration"),
        (("--until-admitted",), SMALL_FLEET, "--until-admitted is about the jobs of --submit"),
        (("--submit", "JOB", "--cluster", "easst"), SMALL_FLEET, "no cluster 'easst'; did you mean east?"),
        (("--worker-down", "wst"), SMALL_FLEET, "no cluster 'wst'; did you mean west?"),
        (("--submit", "JOB"), ALONE, "the fleet has no manager, so say where: --cluster one"),
        (("--submit", "NAMESPACE"), SMALL_FLEET, "Namespace is not a kind of job that Kueue queues"),
    ],
)
def test_what_cannot_be_played_is_refused_at_once(
    options: tuple[str, ...], documents: tuple[Document, ...], message: str, tmp_path: Path, kfleet_in_process: Kfleet
) -> None:
    files = {"JOB": JOB, "NAMESPACE": namespace_object("team")}
    for name, document in files.items():
        (tmp_path / name).write_text(fast_yaml.safe_dump(document))
    typed = [str(tmp_path / one) if one in files else one for one in options]
    answer = kfleet_in_process("simulate", *fleet_in(tmp_path, *documents), *typed)
    assert answer.returncode == 1
    assert message in answer.stderr and "Traceback" not in answer.stderr
