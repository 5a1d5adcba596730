#!/bin/sh
# Observes the capacity of a fleet and commits it beside the fleet's files.
set -eu

# What is worth a commit: the observed amounts without timestamps, and the day, because an observation that is two days
# old counts as stale.
facts() {
  python3 -c '
import json, sys
with open(sys.argv[1]) as file:
    observed = json.load(file)
sources = [{name: value for name, value in one.items() if not name.endswith("At")} for one in observed["sources"]]
print(observed["at"][:10], sources)
' "$1"
}

git clone --quiet --depth 1 --branch "$KFLEET_REVISION" "$KFLEET_REPO" "$XDG_CACHE_HOME/fleet"
cd "$XDG_CACHE_HOME/fleet"
seen="$XDG_CACHE_HOME/seen.json"
# Only this file records which amounts counted before, and since when an amount is smaller.
set --
if [ -f "$KFLEET_OBSERVATIONS" ]; then set -- --before "$KFLEET_OBSERVATIONS"; fi
# If something cannot be observed, this ends with 4: the last commit is better than an incomplete observation.
kfleet observe --path "$KFLEET_PATH" --overlay "$KFLEET_OVERLAY" "$@" -o json > "$seen"
if [ -f "$KFLEET_OBSERVATIONS" ] && [ "$(facts "$KFLEET_OBSERVATIONS")" = "$(facts "$seen")" ]; then
  echo "nothing new since the last commit"
  exit
fi
mkdir -p "$(dirname "$KFLEET_OBSERVATIONS")"
mv "$seen" "$KFLEET_OBSERVATIONS"
git add -- "$KFLEET_OBSERVATIONS"
git commit --quiet --message "Observe the capacity of the fleet"
# Refused if another commit was pushed first; the Job retries on top of that commit.
git push --quiet origin "HEAD:refs/heads/$KFLEET_REVISION"
