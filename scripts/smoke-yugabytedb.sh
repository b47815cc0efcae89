#!/bin/sh
# A short run of every workload on a real YugabyteDB, which the tests of riops have not got. Off by default: it
# wants RIOPS_DATABASE. Makes small datasets in the schema riops, proves them, and drops them again.
set -eu
: "${RIOPS_DATABASE:?name the cluster: RIOPS_DATABASE='host=… port=5433 user=yugabyte dbname=yugabyte'}"
riops=${RIOPS:-riops}
say() { printf '\n== %s\n' "$*"; "$@"; }

say "$riops" doctor
say "$riops" prepare rows --rows 10000
say "$riops" run rows --batch 10 -t 5 --update-percent 20
say "$riops" run rows --batch 10 -t 5 --loop server
say "$riops" verify rows
say "$riops" run load --rows 10000 --method insert,copy,copy-binary,unnest --drop
say "$riops" run point -t 5 --op mixed:90/10
say "$riops" verify load
say "$riops" prepare oltp --tables 2 --table-size 10000
for test in read-write point-select update-index insert multi-insert random-points; do
  say "$riops" run oltp "$test" -c 6 -t 5 --max-retries 100
done
say "$riops" verify oltp
for workload in rows load oltp; do
  say "$riops" cleanup "$workload"
done
