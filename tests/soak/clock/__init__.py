"""A folder for PYTHONPATH: a program that finds it there has another time of day."""

# The environment variable that names the file with how many seconds the clock is ahead.
FILE = "KFLEET_WALK_CLOCK"
