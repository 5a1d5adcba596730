"""Every rule with manifests that break it and manifests that keep it, for values here and for real API servers."""

from tests.unit.kueue import cases_flavors, cases_metadata, cases_queues, cases_structure
from tests.unit.kueue.rule_case import Case

BAD: tuple[Case, ...] = (*cases_structure.BAD, *cases_metadata.BAD, *cases_queues.BAD, *cases_flavors.BAD)
GOOD: tuple[Case, ...] = (*cases_structure.GOOD, *cases_metadata.GOOD, *cases_queues.GOOD, *cases_flavors.GOOD)
