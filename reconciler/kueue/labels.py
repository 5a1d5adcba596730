"""Labels on jobs that Kueue reads."""

from reconciler.kueue.kinds import GROUP

QUEUE_LABEL = f"{GROUP}/queue-name"
PRIORITY_LABEL = f"{GROUP}/priority-class"
