"""Every rule with manifests that break it and manifests that keep it, for values here and for real API servers."""

from tests.unit.kueue import cases_flavors, cases_queues, cases_structure
from tests.unit.kueue.kueue_objects import Case

BAD: tuple[Case, ...] = (*cases_structure.BAD, *cases_queues.BAD, *cases_flavors.BAD)
GOOD: tuple[Case, ...] = (*cases_structure.GOOD, *cases_queues.GOOD, *cases_flavors.GOOD)
