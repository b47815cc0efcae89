#!/usr/bin/env python3
"""riops against its peers: same server, same statement, in turns, medians and ratios.

Usage: bench/bench.py CASE… [--rounds 5] [--seconds 10]

Cases:
  socket      --batch 1, 32 sessions on 2 workers, unix socket, against pgbench
  tcp         the same over TCP
  batch1000   --batch 1000, one session and two, against pgbench
  load        1,000,000 rows with 2 connections, against INSERT … SELECT on one connection
  all         all of them

Needs the release binary (cargo build --release), pgbench and psql. Starts the embedded server and
stops it again. CPU is user + system of the whole client process, from wait4(2): the steadiest
figure here; rates depend on what else the machine does. Exits with 1 where a target is missed.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RIOPS = os.environ.get("RIOPS_BINARY", os.path.join(ROOT, "target", "release", "riops"))
ROWS = 1_000_000
# The settings that riops gives its sessions, so that both run the same plan.
PGOPTIONS = " ".join(
    f"-c {setting}"
    for setting in [
        "enable_seqscan=off",
        "enable_bitmapscan=off",
        "enable_indexonlyscan=off",
        "max_parallel_workers_per_gather=0",
        "jit=off",
        "plan_cache_mode=force_generic_plan",
    ]
)


def timed(command, env=None):
    """Runs a command; its standard output, CPU seconds (user + system) and wall seconds."""
    with tempfile.TemporaryFile() as out:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}: {text}")
    return text, usage.ru_utime + usage.ru_stime, wall


def call(*command, **arguments):
    return subprocess.run(command, check=True, capture_output=True, text=True, **arguments).stdout


class Server:
    """The embedded server, from start to stop."""

    def __enter__(self):
        call(RIOPS, "server", "start")
        self.socket = call(RIOPS, "server", "url").strip()
        self.tcp = call(RIOPS, "server", "url", "--tcp").strip()
        call(RIOPS, "prepare", "rows", "--recreate", "-d", self.socket)
        return self

    def __exit__(self, *_):
        call(RIOPS, "server", "stop")


def riops(url, batch, sessions, workers, seconds):
    """Transactions per second, rows per second, CPU µs per transaction."""
    command = [RIOPS, "run", "rows", "-d", url, "--batch", str(batch), "-c", str(sessions)]
    command += ["-j", str(workers), "-t", str(seconds), "--warmup", "0"]
    command += ["--output", "json", "--no-store", "--quiet"]
    text, cpu, _ = timed(command)
    record = json.loads(text)
    assert record["verdict"]["valid"], record["verdict"]
    stage = record["stages"][0]
    done = stage["operations"][0]["acknowledged_transactions"]
    rates = stage["throughput"]
    return rates["transactions_per_s"], rates["rows_per_s"], cpu * 1e6 / done


def pgbench(url, batch, sessions, workers, seconds):
    """The same with pgbench."""
    script = (
        f"\\set first random(1, {ROWS - batch + 1})\n"
        f"\\set last :first + {batch - 1}\n"
        "select count(*), max(scratch) from riops.rows_0001 where mykey between :first and :last;\n"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        command = ["pgbench", "-n", "-M", "prepared", "-c", str(sessions), "-j", str(workers)]
        command += ["-T", str(seconds), "-f", file.name, url]
        text, cpu, _ = timed(command, env={**os.environ, "PGOPTIONS": PGOPTIONS})
    done = int(re.search(r"actually processed: (\d+)", text).group(1))
    rate = float(re.search(r"tps = ([0-9.]+) \(without", text).group(1))
    return rate, rate * batch, cpu * 1e6 / done


class Report:
    """Lines of a table, and whether all targets were met."""

    def __init__(self):
        self.met = True

    def line(self, name, ours, theirs, target, smaller_is_better):
        ours, theirs = list(ours), list(theirs)
        ratios = [mine / other for mine, other in zip(ours, theirs)]
        ratio = statistics.median(ours) / statistics.median(theirs)
        met = target is None or (ratio <= target if smaller_is_better else ratio >= target)
        self.met &= met
        aim = "no target" if target is None else (
            f"target {'≤' if smaller_is_better else '≥'} {target:.2f}  {'met' if met else 'MISSED'}"
        )
        print(
            f"{name:<34} riops {statistics.median(ours):>12,.1f}  peer {statistics.median(theirs):>12,.1f}  "
            f"ratio {ratio:.3f} (rounds {min(ratios):.3f} to {max(ratios):.3f})  "
            f"{aim}",
            flush=True,
        )


def in_turns(rounds, first, second):
    """Alternates, and swaps who goes first, so that drift hits both alike."""
    results = ([], [])
    for number in range(rounds):
        order = [(0, first), (1, second)]
        for position, run in order if number % 2 == 0 else reversed(order):
            results[position].append(run())
    return results


def many_sessions(server, report, arguments, name, url, cpu_target):
    ours, theirs = in_turns(
        arguments.rounds,
        lambda: riops(url, 1, 32, 2, arguments.seconds),
        lambda: pgbench(url, 1, 32, 2, arguments.seconds),
    )
    cpu = [(run[2] for run in runs) for runs in (ours, theirs)]
    rate = [(run[0] for run in runs) for runs in (ours, theirs)]
    report.line(f"{name}: CPU µs/transaction", *cpu, cpu_target, True)
    report.line(f"{name}: transactions/s", *rate, 1.05, False)


def batch1000(server, report, arguments):
    for sessions in (1, 2):
        ours, theirs = in_turns(
            arguments.rounds,
            lambda: riops(server.socket, 1000, sessions, sessions, arguments.seconds),
            lambda: pgbench(server.socket, 1000, sessions, sessions, arguments.seconds),
        )
        rates = [(run[1] for run in runs) for runs in (ours, theirs)]
        report.line(f"batch 1000, {sessions} session(s): rows/s", *rates, 0.97, False)


CREATE = """
drop table if exists public.bench_load;
create table public.bench_load (mykey bigint not null, scratch bigint not null, filler char(1) not null)
"""
INSERT = """
do $$
begin
  for batch in 0..99 loop
    insert into public.bench_load
    select mykey, floor(random() * 1000001)::bigint, ''
      from generate_series(batch + 1, 1000000, 100) as mykey order by random();
    commit;
  end loop;
end $$
"""
FINISH = [
    "create index bench_load_mykey on public.bench_load (mykey asc)",
    "vacuum (freeze, analyze) public.bench_load",
    "checkpoint",
]


def load(server, report, arguments):
    def psql(*statements):
        return ["psql", "-qX", *(f"-c{statement}" for statement in statements), server.socket]

    def ours():
        command = [RIOPS, "prepare", "rows", "--recreate", "--connections", "2", "-d", server.socket]
        text, _, wall = timed(command)
        loaded = re.search(r"loaded at ([0-9,]+) rows/s", text).group(1)
        return int(loaded.replace(",", "")), ROWS / wall

    def theirs():
        call(*psql(CREATE))
        inserting = timed(psql(INSERT))[2]
        finishing = timed(psql(*FINISH))[2]
        return ROWS / inserting, ROWS / (inserting + finishing)

    ours, theirs = in_turns(arguments.rounds, ours, theirs)
    call(*psql("drop table public.bench_load"))
    for position, name, target in [(0, "load: rows/s", 2.0), (1, "with index, vacuum, checkpoint", None)]:
        rates = [(run[position] for run in runs) for runs in (ours, theirs)]
        report.line(name, *rates, target, False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="+", choices=["socket", "tcp", "batch1000", "load", "all"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    arguments = parser.parse_args()
    wanted = set(arguments.case)
    report = Report()
    with Server() as server:
        if wanted & {"socket", "all"}:
            many_sessions(server, report, arguments, "socket", server.socket, 0.80)
        if wanted & {"tcp", "all"}:
            many_sessions(server, report, arguments, "tcp", server.tcp, 0.92)
        if wanted & {"batch1000", "all"}:
            batch1000(server, report, arguments)
        if wanted & {"load", "all"}:
            load(server, report, arguments)
    sys.exit(0 if report.met else 1)


if __name__ == "__main__":
    main()
