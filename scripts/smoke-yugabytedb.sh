#!/bin/sh
# Runs every command and workload for a short time on a real YugabyteDB cluster, which the tests of riops do not have,
# and prints a table of the results to send back. Continues after errors.
# Requires RIOPS_DATABASE: a database without datasets of riops and without tables sbtest1, sbtest2. Creates small
# datasets, verifies them, and drops them.
set -u
: "${RIOPS_DATABASE:?set it to the cluster: RIOPS_DATABASE='host=… port=5433 user=yugabyte dbname=yugabyte'}"
riops=${RIOPS:-riops}
folder=$(mktemp -d "${TMPDIR:-/tmp}/riops-smoke.XXXXXX") || exit 1
export RIOPS_STORE="$folder/runs.sqlite"
number=0
failed=0

# At the end, the datasets are dropped: refuse a database that has some.
for workload in rows load oltp; do
  if "$riops" verify "$workload" >"$folder/before.log" 2>&1 ||
    ! grep -q "no dataset for the workload" "$folder/before.log"; then
    tail -3 "$folder/before.log" >&2
    echo "error: the database must be reachable and have no dataset of the workload $workload" >&2
    exit 1
  fi
done

# Runs a command. Its output goes to a file, its result to the table.
step() {
  number=$((number + 1))
  log="$folder/$(printf '%02d' "$number").log"
  printf '%s\n' "riops $*" >&2
  "$riops" "$@" >"$log" 2>&1
  code=$?
  if [ "$code" != 0 ]; then
    failed=$((failed + 1))
    printf '%s\n' "$log" >>"$folder/failed.txt"
  fi
  # For a run, its main figure and whether it is valid; for other commands, the last line.
  result=$(grep -E '^  (RIOPS|TPS|rows|valid|INVALID)' "$log" | head -2 | tr -s ' ' | paste -sd ';' -)
  [ -n "$result" ] || result=$(tail -1 "$log")
  printf '%-3s %-4s %-72s %s\n' "$number" "$code" "$*" "$result" >>"$folder/table.txt"
}

step doctor
step prepare rows --rows 10000
step run rows --batch 10 -t 5 --update-percent 20
step run rows --batch 10 -t 5 --loop server
step run rows --batch 10 -t 5 --follower-reads 30s
step run rows --batch 10 -t 5 --spread least-connections
step verify rows
step warm rows
step run load --rows 10000 --method insert,copy,copy-binary,unnest,procedure --drop
step run point -t 5 --op mixed:90/10
step verify load
step prepare oltp --tables 2 --table-size 10000
# delete is the last one, because the transactions of join need all rows.
for test in point-select read-only read-write write-only update-index update-non-index insert multi-insert \
  multi-value-insert random-points random-ranges sequential-scan primarykey-scan index-scan sum-scan join delete; do
  step run oltp "$test" -c 6 -t 5 --max-retries 100 --batch-insert-count 100
done
step verify oltp
step cleanup oltp
step prepare oltp --tables 2 --table-size 10000 --range-key-partitioning --num-table-splits 4
step run oltp read-only -c 6 -t 5
step verify oltp
step cleanup oltp
step prepare oltp --tables 2 --bulk-insert
step run oltp bulk-insert -c 2 -t 5 --batch-insert-count 1000
step verify oltp
step run ping -t 2
for workload in rows load oltp; do
  step cleanup "$workload"
done

echo
echo "== please send back everything that follows"
"$riops" --version
uname -srm
grep -hoE 'YugabyteDB [^ ]+' "$folder"/*.log | sort | uniq -c | sort -rn | head -1
printf '%-3s %-4s %-72s %s\n' step exit command result
cat "$folder/table.txt"
echo
touch "$folder/failed.txt"
while read -r log; do
  echo "== step $(basename "$log" .log)"
  tail -40 "$log"
done <"$folder/failed.txt"
echo "== $failed of $number steps failed; all output is in $folder"
[ "$failed" = 0 ]
