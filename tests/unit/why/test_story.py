"""Which job a name means, and its whole story: text, JSON, place, remedies, events."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from reconciler.cli.why import exit_code
from reconciler.objects import ClusterName
from reconciler.spec.schema import schema_folder
from reconciler.why.index import Stories, build_stories
from reconciler.why.model import State, Story
from reconciler.why.reason import first_line
from reconciler.why.story import find_subjects, similar_names, tell
from reconciler.why.text import stories_record, story_lines
from tests.builders import (
    Document,
    asking,
    cluster_queue,
    cohort,
    cpu_group,
    deployment,
    local_queue,
    namespace_object,
    pod,
    pod_spec,
    resource_flavor,
)
from tests.unit.why.situations import (
    ADMITTED,
    EAST,
    HUB,
    ONLY,
    ORIGIN,
    QUEUES,
    RESERVED,
    TAKEN,
    TEAM,
    WEST,
    admission,
    alone,
    check_state,
    cluster,
    fleet,
    job_of,
    lost,
    more_needed,
    queued,
    refused,
    sent,
    time_of,
    with_status,
)

SCHEMA = json.loads((schema_folder() / "why.json").read_text())


def stories_of(stories: Stories, name: str, where: ClusterName | None = None) -> list[Story]:
    return [tell(stories, one) for one in find_subjects(stories, (TEAM, name), where)]


def story_of(stories: Stories, name: str) -> Story:
    (story,) = stories_of(stories, name)
    return story


def reasons(stories: Stories, name: str) -> list[str]:
    return [str(story.reason) for story in stories_of(stories, name)]


def used_queue(used: str = "6", **spec: Any) -> Document:
    total = [{"name": "default", "resources": [{"name": "cpu", "total": used}]}]
    return with_status(
        cluster_queue("batch", cpu_group("8", **spec.pop("limits", {})), **spec), flavorsReservation=total
    )


def with_queue(queue: Document) -> tuple[Document, ...]:
    return (*(one for one in QUEUES if one["kind"] != "ClusterQueue"), queue)


def running(name: str, cpu: str = "6", **more: Any) -> Document:
    return queued(name, RESERVED, ADMITTED, cpu=cpu, admission=admission(cpu, **more))


def test_name_of_job_workload_and_pod_mean_the_same() -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "mine", "uid": "j-mine", "controller": True}
    own_pod = pod("mine-x", pod_spec())
    own_pod["metadata"] |= {"namespace": TEAM, "uid": "p", "ownerReferences": [owner]}
    objects = fleet(cluster(ONLY, *QUEUES, queued("mine", more_needed()), job_of("mine")))
    stories = build_stories(objects, extra={ONLY: (own_pod,)})
    assert {story_of(stories, name).workload for name in ("mine", "job-mine", "mine-x")} == {f"{TEAM}/job-mine"}


def test_copy_on_a_worker_belongs_to_the_story_of_the_manager() -> None:
    mine = queued("mine", RESERVED, admission=admission(), admissionChecks=[check_state()])
    there = queued("mine", more_needed(), labels=ORIGIN)
    stories = sent(mine, job_of("mine"), east=(there,), west=(there,))
    (story,) = stories_of(stories, "job-mine")
    assert (story.cluster, [one.cluster for one in story.workers]) == (HUB, [EAST, WEST])
    (there_only,) = stories_of(stories, "job-mine", EAST)
    assert str(there_only.reason).startswith("waits: place 1 of queue batch on east")


@pytest.mark.parametrize("where", ["labels", "annotations"])
def test_job_that_multikueue_created_belongs_to_the_copy(where: str) -> None:
    """Also if an old Kueue there does not know the annotation, and has created a second Workload for the job."""
    ready = [check_state("Ready")]
    mine = queued("mine", RESERVED, ADMITTED, admission=admission(), admissionChecks=ready, clusterName="east")
    there = queued("mine", RESERVED, ADMITTED, labels=ORIGIN, owner=False, admission=admission())
    job = job_of("mine", status={"ready": 0})
    job["metadata"] |= {"uid": "j-there", where: {"kueue.x-k8s.io/prebuilt-workload-name": "job-mine"}}
    second = queued("second", RESERVED, ADMITTED, admission=admission())
    second["metadata"]["labels"] = {"kueue.x-k8s.io/job-uid": "j-there"}
    stories = sent(mine, job_of("mine"), east=(there, job, second))
    (story,) = stories_of(stories, "mine")
    assert (story.cluster, story.workload) == (HUB, f"{TEAM}/job-mine")
    assert str(story.reason).endswith("its pods are not all running yet")


def test_job_of_the_same_name_on_two_clusters_has_two_stories() -> None:
    both = build_stories(fleet(*(cluster(one, *QUEUES, queued("mine")) for one in (EAST, WEST))))
    assert [story.cluster for story in stories_of(both, "job-mine")] == [EAST, WEST]


def test_name_that_is_not_found_has_a_suggestion() -> None:
    assert similar_names(alone(queued("mine"), job_of("mine")), (TEAM, "minne")) == "; did you mean team/mine?"


@pytest.mark.parametrize(
    ("manifest", "want"),
    [
        (job_of("mine", queue=""), "not queued: on only, it names no queue: Kueue lets it run at once"),
        (
            {**deployment("mine", pod_spec(), 1), "metadata": {"name": "mine", "namespace": TEAM, "uid": "d"}},
            "not queued: on only, it names no queue",
        ),
        (
            {
                "apiVersion": "example.org/v1",
                "kind": "Train",
                "metadata": {"name": "mine", "namespace": TEAM, "uid": "t"},
            },
            "not queued: Kueue does not manage the kind Train",
        ),
        (
            job_of("mine", queue="", status={"conditions": [{"type": "Complete", "status": "True"}]}),
            "finished: on only, without a Workload of Kueue",
        ),
        (job_of("mine", queue="none"), "never: on only, there is no LocalQueue team/none"),
        (job_of("mine"), "waits: on only, Kueue has created no Workload of it for LocalQueue main"),
    ],
)
def test_job_without_a_workload_says_why(manifest: Document, want: str) -> None:
    (found,) = reasons(build_stories(fleet(cluster(ONLY, *QUEUES)), extra={ONLY: (manifest,)}), "mine")
    assert found.startswith(want)


def test_kind_that_kueue_is_not_configured_for_is_not_queued() -> None:
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nintegrations: {frameworks: [pod]}\n"
    objects = fleet(cluster(ONLY, *QUEUES, job_of("mine"), configuration=text))
    (found,) = reasons(build_stories(objects), "mine")
    assert found.startswith("not queued: on only, Kueue does not manage this kind there: batch/job is not enabled")


def test_smallest_remedies_are_a_job_that_ends_and_an_amount_of_quota() -> None:
    mine, others = queued("mine", more_needed("2"), cpu="4"), [running("big", "4"), running("small", "2")]
    story = story_of(alone(mine, *others, queues=with_queue(used_queue("6"))), "job-mine")
    assert [one.text for one in story.remedies] == [
        "Job/team/small of queue batch on only ends (so would 1 others)",
        "2 more cpu of nominal quota in flavor default of queue batch on only",
    ]
    assert all(one.is_verified for one in story.remedies)
    assert story.flavors == ("default: cpu 4 requested, 2 free of 8",)


def remedies_behind(*ahead: Document, used: str, strategy: str = "BestEffortFIFO") -> list[str]:
    """What would let a job of 2 cpus in, behind these others."""
    queues = with_queue(used_queue(used, queueingStrategy=strategy))
    others = [running("one", "1"), running("rest", str(int(used) - 1))]
    mine = queued("mine", more_needed("2"), cpu="2", created=9)
    return [one.text for one in story_of(alone(mine, *others, *ahead, queues=queues), "job-mine").remedies]


@pytest.mark.parametrize("strategy", ["BestEffortFIFO", "StrictFIFO"])
def test_remedy_is_also_enough_for_those_that_the_queue_tries_first(strategy: str) -> None:
    more = "{} more cpu of nominal quota in flavor default of queue batch on only"
    assert remedies_behind(used="7", strategy=strategy)[1:] == [more.format(1)]
    first = queued("first", more_needed("3"), cpu="3", created=1)
    # With one more, the other one does not fit, so only a strict queue keeps it from this job.
    wanted = {"BestEffortFIFO": 1, "StrictFIFO": 4}[strategy]
    assert remedies_behind(first, used="7", strategy=strategy)[-1] == more.format(wanted)
    first = queued("first", more_needed("2"), cpu="2", created=1)
    assert remedies_behind(first, used="7", strategy=strategy) == [
        "Job/team/rest of queue batch on only ends",
        more.format(3),
    ]


def test_job_that_a_strict_queue_keeps_back_has_remedies_although_it_would_fit() -> None:
    first = queued("first", more_needed("2"), cpu="4", created=1)
    assert remedies_behind(first, used="6", strategy="StrictFIFO") == [
        "Job/team/rest of queue batch on only ends",
        "4 more cpu of nominal quota in flavor default of queue batch on only",
    ]
    assert remedies_behind(first, used="6") == []


def test_nothing_is_said_of_a_job_behind_very_many() -> None:
    ahead = [queued(f"n{number}", more_needed("2"), cpu="2", created=1) for number in range(21)]
    assert remedies_behind(*ahead[:20], used="7")
    assert remedies_behind(*ahead, used="7") == []


def test_remedy_names_the_jobs_that_have_to_end_together() -> None:
    mine, others = queued("mine", more_needed("8"), cpu="8"), [running("a", "4"), running("b", "4")]
    story = story_of(alone(mine, *others, queues=with_queue(used_queue("8"))), "job-mine")
    assert story.remedies[0].text == "2 jobs on only end: Job/team/b, Job/team/a"


def test_remedy_is_a_borrowing_limit_if_the_cohort_has_room() -> None:
    queue = used_queue("8", cohortName="shared", limits={"borrowingLimit": "1"})
    queues = (*with_queue(queue), cohort("shared", cpu_group("8")))
    story = story_of(alone(queued("mine", more_needed("3"), cpu="4"), queues=queues), "job-mine")
    limit = "a borrowingLimit for cpu of 4 in flavor default of queue batch on only"
    assert limit in [one.text for one in story.remedies]
    assert "16 with everything it may borrow" not in story.flavors[0]
    assert "9 with everything it may borrow" in story.flavors[0]


def test_remedy_is_another_flavor_if_only_a_taint_excludes_it() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    queues = (
        namespace_object(TEAM),
        resource_flavor("default", nodeTaints=[taint]),
        cluster_queue("batch", cpu_group("8")),
        local_queue("main", TEAM, "batch"),
    )
    mine = queued("mine", refused("couldn't assign flavors to pod set main: untolerated taint {gpu} in flavor default"))
    story = story_of(alone(mine, queues=queues), "job-mine")
    want = "flavor default has room, but the pods do not tolerate its taint gpu:NoSchedule"
    assert [one.text for one in story.remedies] == [want]
    assert story.flavors == ("default: the pods do not tolerate its taint gpu:NoSchedule",)


def test_remedy_of_a_stopped_queue_is_to_start_it() -> None:
    story = story_of(alone(queued("mine"), queues=with_queue(used_queue("0", stopPolicy="Hold"))), "job-mine")
    assert [one.text for one in story.remedies] == ["set spec.stopPolicy of ClusterQueue batch on only to None"]


def test_text_has_the_reason_first_and_the_events_in_order() -> None:
    ahead = [queued(name, more_needed(), created=1, cpu="8", priority=3) for name in "abcdefg"]
    mine = queued("mine", more_needed("2"), created=9)
    lines = [*story_lines(story_of(alone(mine, job_of("mine"), *ahead), "mine"))]
    assert lines[0] == "waits: place 8 of queue batch on only; cpu: 2 more needed in flavor default"
    assert "  place       8 of 8 in queue batch" in lines
    assert "  ahead       1. Job/team/a (priority 3; cpu 8)" in lines and "              and 2 more" in lines
    assert lines[-2:] == [
        f"  story       {time_of(0)}  only: Job/team/mine was submitted",
        f"              {time_of(9)}  only: queued in LocalQueue team/main, ClusterQueue batch",
    ]


def test_events_of_the_worker_are_part_of_the_story() -> None:
    ready = [check_state("Ready", 'The workload was admitted on "east"')]
    mine = queued("mine", RESERVED, ADMITTED, admission=admission(), admissionChecks=ready, clusterName="east")
    there = queued("mine", RESERVED, ADMITTED, labels=ORIGIN, admission=admission(), created=2)
    story = story_of(sent(mine, east=(there, job_of("mine", status={"ready": 1}))), "job-mine")
    told = [(one.cluster, one.what) for one in story.steps]
    assert (HUB, 'check multikueue-batch is Ready: The workload was admitted on "east"') in told
    assert told.index((EAST, "queued in LocalQueue team/main, ClusterQueue batch")) < told.index((EAST, "admitted"))
    assert story.runs_on == EAST


def test_worker_that_was_not_observed_may_run_the_job() -> None:
    mine = queued("mine", RESERVED, ADMITTED, admission=admission(), admissionChecks=[check_state("Ready")])
    mine["status"]["clusterName"] = "west"
    story = story_of(sent(mine, west=lost(WEST)), "job-mine")
    assert (story.reason.state, story.runs_on) == (State.UNKNOWN, WEST)
    assert exit_code([story]) == 4


def test_json_matches_its_schema() -> None:
    mine = queued("mine", RESERVED, admission=admission(), admissionChecks=[check_state()])
    there = queued("mine", more_needed(), labels=ORIGIN)
    waiting = [queued(name, more_needed(), created=number) for number, name in enumerate("ab")]
    stories = [
        *stories_of(sent(mine, *waiting, east=(there,), west=lost(WEST)), "job-mine"),
        *stories_of(alone(*waiting, running("c"), queues=with_queue(used_queue("8"))), "job-b"),
        *stories_of(alone(job_of("mine", queue="")), "mine"),
    ]
    record = json.loads(json.dumps(stories_record(stories, TAKEN)))
    assert [one.message for one in Draft202012Validator(SCHEMA).iter_errors(record)] == []
    assert [one["state"] for one in record["jobs"]] == ["waits", "waits", "not queued"]
    assert record["jobs"][0]["gaps"] == [{"cluster": "west", "what": "the cluster", "why": "connection refused"}]
    assert record["jobs"][1]["place"] == {"position": 2, "of": 2}
    assert [one["job"] for one in record["jobs"][1]["ahead"]] == ["Job/team/a"]


def test_many_jobs_are_explained_in_time_that_grows_with_their_number() -> None:
    """2,000 jobs of one queue: each is looked at a fixed number of times, whatever the length of the line."""
    jobs = [queued(f"j{number:04}", more_needed(), created=number % 60) for number in range(2000)]
    stories = alone(*jobs)
    lines = {first_line(stories, ONLY, one) for one in jobs}
    assert len(lines) == 2000 and all("of queue batch on only; cpu: 4 more needed" in line for line in lines)


def test_pod_that_cannot_be_scheduled_is_the_reason_of_an_admitted_job() -> None:
    condition = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available: 2 Insufficient cpu."}
    stuck = pod("mine-x", pod_spec(asking(cpu="40")))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "mine", "uid": "j-mine", "controller": True}
    stuck["metadata"] |= {"namespace": TEAM, "uid": "p", "ownerReferences": [owner]}
    stuck["status"] = {"phase": "Pending", "conditions": [condition]}
    objects = fleet(cluster(ONLY, *QUEUES, running("mine"), job_of("mine", status={"active": 1, "ready": 0})))
    (found,) = reasons(build_stories(objects, extra={ONLY: (stuck,)}), "mine")
    want = "but pod mine-x is unschedulable: 0/2 nodes are available: 2 Insufficient cpu."
    assert found == f"admitted: on only, admitted at {time_of(3)}, {want}"
