#!/bin/sh
# Records the sessions beside this file anew, with the program that is given: `record.sh PATH/TO/helve`. Only for sessions of a
# new version of the format, beside the old ones: what was recorded once stays as it is.
set -eu
helve=$1
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d /tmp/recorded.XXXXXX)
export HELVE_HOME="$place/home" TZ=UTC
mkdir -p "$HELVE_HOME" "$place/project/.git"
cd "$place/project"
cp "$here"/scripts/*.toml .
printf 'print("Helo")\n' > greet.py

id() { "$helve" sessions list --json | tail -n 1 | sed 's/.*"session":"\([^"]*\)".*/\1/'; }

# Calls, an edit, a command, a failure that passed, and what somebody else changed between two turns.
"$helve" run --yes --model script:fix.toml "fix the greeting"
fixed=$(id)
echo "# changed by somebody else" >> greet.py
"$helve" run --yes --model script:fix.toml --continue "thanks"

# Forked after the first turn, with another title and another model, and rewound.
first=$(grep -n '"kind":"turn_ended"' "$HELVE_HOME/sessions/$fixed/log.jsonl" | head -n 1 | sed 's/.*"seq":\([0-9]*\).*/\1/')
cp fix.toml other.toml
{
  echo '{"command":"rename","title":"A shorter greeting"}'
  echo '{"command":"set_model","model":"script:other.toml"}'
  echo '{"command":"submit","parts":[{"type":"text","text":"make it shorter"}]}'
  sleep 3
  echo "{\"command\":\"rewind\",\"to\":$first,\"scope\":\"messages\"}"
  sleep 1
} | "$helve" run --yes --model script:fix.toml --fork "$fixed@1" --input stream-json --output stream-json > "$place/forked.jsonl"

# Interrupted while a command ran, and continued.
"$helve" run --yes --model script:slow.toml "wait for it" &
running=$!
until grep -qs '"kind":"tool_started"' "$HELVE_HOME"/sessions/*/log.jsonl && pgrep -f 'sleep 600' > /dev/null; do sleep 0.2; done
sleep 1
kill -INT "$running"
wait "$running" || true
last=$(ls -t "$HELVE_HOME/sessions" | head -n 1)
"$helve" run --yes --model script:slow.toml --resume "$last" "look instead"

"$helve" sessions list
"$helve" replay --all
rm -rf "$HELVE_HOME"/sessions/.open "$HELVE_HOME"/sessions/.lock
mkdir -p "$here/sessions"
cp -r "$HELVE_HOME"/sessions/* "$here/sessions/"
rm -rf "$place"
