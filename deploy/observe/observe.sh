#!/bin/sh
# Looks at the capacity of a fleet, and commits what there is to see beside the fleet's files.
set -eu

# What is worth a commit: what was seen, without times, and the day: a look that is two days old counts as stale.
facts() {
  python3 -c '
import json, sys
with open(sys.argv[1]) as file:
    look = json.load(file)
sources = [{name: value for name, value in one.items() if not name.endswith("At")} for one in look["sources"]]
print(look["at"][:10], sources)
' "$1"
}

git clone --quiet --depth 1 --branch "$KFLEET_REVISION" "$KFLEET_REPO" "$XDG_CACHE_HOME/fleet"
cd "$XDG_CACHE_HOME/fleet"
seen="$XDG_CACHE_HOME/seen.json"
# Nothing else remembers since when a pool is silent, or something is smaller.
set --
if [ -f "$KFLEET_OBSERVATIONS" ]; then set -- --before "$KFLEET_OBSERVATIONS"; fi
# Where something cannot be seen, this ends with 4: what was committed before is better than half a look.
kfleet observe --path "$KFLEET_PATH" --overlay "$KFLEET_OVERLAY" "$@" -o json > "$seen"
if [ -f "$KFLEET_OBSERVATIONS" ] && [ "$(facts "$KFLEET_OBSERVATIONS")" = "$(facts "$seen")" ]; then
  echo "nothing new since the last commit"
  exit
fi
mkdir -p "$(dirname "$KFLEET_OBSERVATIONS")"
mv "$seen" "$KFLEET_OBSERVATIONS"
git add -- "$KFLEET_OBSERVATIONS"
git commit --quiet --message "Observe the capacity of the fleet"
# Refused where somebody else was faster; the Job tries again, with their commit.
git push --quiet origin "HEAD:refs/heads/$KFLEET_REVISION"
