#!/bin/sh
# Runs every workload for a short time on a real YugabyteDB cluster, which the tests of riops do not have.
# Requires RIOPS_DATABASE. Creates small datasets in the schema riops, verifies them, and drops them.
set -eu
: "${RIOPS_DATABASE:?set it to the cluster: RIOPS_DATABASE='host=… port=5433 user=yugabyte dbname=yugabyte'}"
riops=${RIOPS:-riops}
step() { printf '\n== %s\n' "$*"; "$@"; }

step "$riops" doctor
step "$riops" prepare rows --rows 10000
step "$riops" run rows --batch 10 -t 5 --update-percent 20
step "$riops" run rows --batch 10 -t 5 --loop server
step "$riops" verify rows
step "$riops" run load --rows 10000 --method insert,copy,copy-binary,unnest --drop
step "$riops" run point -t 5 --op mixed:90/10
step "$riops" verify load
step "$riops" prepare oltp --tables 2 --table-size 10000
for test in read-write point-select update-index insert multi-insert random-points; do
  step "$riops" run oltp "$test" -c 6 -t 5 --max-retries 100
done
step "$riops" verify oltp
for workload in rows load oltp; do
  step "$riops" cleanup "$workload"
done
