#!/usr/bin/env python3
"""Compares riops with other tools: same server, same statement, alternating runs, medians and ratios.

Usage: bench/bench.py CASE… [--rounds 5] [--seconds 10]

Cases:
  socket      --batch 1, 8 and 32 sessions on 2 workers, unix socket, each driver, against pgbench
  tcp         the same over TCP
  batch1000   --batch 1000, one session and two sessions, against pgbench
  load        1,000,000 rows with 2 connections, against INSERT … SELECT on one connection
  floor       --batch 1, 8 and 32 sessions, unix socket and TCP, each driver, against a loop that does nothing else
  few         1 and 2 sessions, each on its own worker, in a loop that does nothing else: a receive that waits,
              against epoll
  drivers     --batch 1, 1 to 128 sessions, unix socket and TCP: io_uring against epoll, and each against its loop that
              does nothing else
  workers     64 sessions on 64 workers, against pgbench with 64 threads, and against 2 workers
  overhead    all measurements (open loop, histograms, series, probes), against the closed loop of riops
  instructions
              instructions of a transaction outside of the kernel, counted by callgrind
  parse       the time to parse a script of 10,000 lines
  stall       open loop at half of the rate of the closed loop, with the server stopped for one second
  many        1,000 sessions on 2 workers with a rate, through PgBouncer
  loops       the loop in the server against the loop in the client, by batch size
  ybio        sql/ybio.sql against a plain loop in PL/pgSQL, by batch size
  bulk        1,000,000 rows with 2 sessions: copy-binary against the server's own COPY of files,
              insert against the same bytes encoded in advance, unnest against insert
  point       point selects with 8 and 32 sessions, unix socket, against pgbench
  pipeline    transactions of ten point selects whose statements are sent at once, against pgbench's pipeline
  script      pgbench's built-in scripts on tables of --scale, 32 sessions, unix socket, against pgbench; and creating
              these tables, against pgbench -i with rows from the client and from the server
  oltp        the transactions of sysbench over TCP, against sysbench: the mix of the scaling study and the
              defaults of sysbench with 8 and 32 sessions, point selects; preparing 4 × 100,000 rows;
              and one run of both with skewed keys
  cbc         Complete Block Check of --size GB: the time of each step against the same statements in psql
              with \\timing, alternating; the device rates against iostat -x; the cost of the probes
  store       riops runs list on a store of --runs runs: a SQLite file, and a PostgreSQL database
  peers       the cases against pgbench and sysbench, and those of the client's own CPU: socket, tcp, batch1000,
              point, pipeline, script, oltp, bulk, floor, few, workers, overhead, instructions
  all         all cases

Requires the release binaries (cargo build --release --bins --examples) and the programs of the cases, and says
which are missing. Prints a table in Markdown at the end. Starts the embedded server and stops it at the end. CPU is the user and system time of the
whole client process, from wait4(2). It is the most stable figure; rates depend on other load on the
machine. Exits with 1 if a target is missed.
"""

import argparse
import datetime
import json
import math
import os
import pwd
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RIOPS = os.environ.get("RIOPS_BINARY", os.path.join(ROOT, "target", "release", "riops"))
FILL_STORE = os.path.join(os.path.dirname(RIOPS), "examples", "fill_store")
ROWS = 1_000_000
# The session settings of riops, so that both tools run the same plan.
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
    """Runs a command. Returns its standard output, CPU seconds (user + system) and elapsed seconds."""
    with tempfile.TemporaryFile() as out:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read().decode()
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with exit code {process.returncode}: {text}")
    return text, usage.ru_utime + usage.ru_stime, wall


def call(*command, **arguments):
    done = subprocess.run(command, capture_output=True, text=True, **arguments)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with exit code {done.returncode}: {done.stderr}")
    return done.stdout


class Server:
    """An embedded server with new data, from start to stop. The user's own one may hold tables of anybody."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="riops-bench-", dir="/var/tmp")
        # If root runs riops, another user runs the server.
        os.chmod(self.folder, 0o755)
        self.data = ["--server-data", os.path.join(self.folder, "server")]
        call(RIOPS, "server", "start", *self.data)
        self.socket = call(RIOPS, "server", "url", *self.data).strip()
        self.tcp = call(RIOPS, "server", "url", "--tcp", *self.data).strip()
        call(RIOPS, "prepare", "rows", "--recreate", "-d", self.socket)
        return self

    def __exit__(self, *_):
        call(RIOPS, "server", "stop", *self.data)
        shutil.rmtree(self.folder)


def riops(url, batch, sessions, workers, seconds, driver="auto"):
    """Returns transactions per second, rows per second and CPU µs per transaction."""
    command = [RIOPS, "run", "rows", "-d", url, "--batch", str(batch), "-c", str(sessions)]
    command += ["-j", str(workers), "-t", str(seconds), "--warmup", "0", "--driver", driver]
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


BARE = os.path.join(os.path.dirname(RIOPS), "examples", "bare_loop")


def bare(driver, url, sessions, workers, seconds):
    """The same transactions in a loop that does nothing else: returns the CPU µs of the workers per transaction."""
    text, _, _ = timed([BARE, driver, url, str(sessions), str(workers), str(seconds), "rows"])
    return float(text.split()[1])


def record_of(url, *options):
    """Returns the record of a run, which must be valid."""
    command = [RIOPS, "run", "rows", "-d", url, *options]
    text, _, _ = timed(command + ["--output", "json", "--no-store", "--quiet"])
    record = json.loads(text)
    assert record["verdict"]["valid"], record["verdict"]
    return record


def cpu_of(url, *options):
    """Returns the CPU µs per transaction within the measurement of a run. CPU time before and after the
    measurement would distort short runs."""
    return record_of(url, *options)["stages"][0]["client_cpu"]["us_per_transaction"]


def floor(server, report, arguments):
    """Only the CPU of the workers within the measurement, on both sides."""
    common = ["--batch", "1", "-j", "2", "-t", str(arguments.seconds), "--warmup", "0"]
    for name, url in [("socket", server.socket), ("tcp", server.tcp)]:
        for sessions in (8, 32):
            for driver in ("epoll", "io-uring"):
                options = [*common, "-c", str(sessions), "--driver", driver]
                ours, theirs = in_turns(
                    arguments.rounds,
                    lambda: cpu_of(url, *options),
                    lambda: bare(driver, url, sessions, 2, arguments.seconds),
                )
                report.line(f"floor, {name}, {sessions} sessions, {driver}: CPU µs/transaction", ours, theirs, 1.25, True)


def few(server, report, arguments):
    """Whether a session that has a worker to itself should wait in its receive. No code of riops runs."""
    for name, url in [("socket", server.socket), ("tcp", server.tcp)]:
        for sessions in (1, 2):

            def loop(driver):
                text = timed([BARE, driver, url, str(sessions), str(sessions), str(arguments.seconds), "rows"])[0]
                done, cpu = text.split()
                return float(cpu), int(done) / arguments.seconds

            mine, plain = in_turns(arguments.rounds, lambda: loop("blocking"), lambda: loop("epoll"))
            for position, what in enumerate(["CPU µs/transaction", "transactions/s"]):
                values = [(run[position] for run in runs) for runs in (mine, plain)]
                report.line(f"waiting receive, {name}, {sessions} session(s): {what}", *values, None, True)


def drivers(server, report, arguments):
    """What `--driver auto` is chosen by. All four loops of a case are in each round, in another order each time."""
    for name, url in [("socket", server.socket), ("tcp", server.tcp)]:
        for sessions in (1, 2, 4, 8, 16, 32, 128):
            common = ["--batch", "1", "-c", str(sessions), "-j", "2", "-t", str(arguments.seconds), "--warmup", "0"]

            def ours(driver):
                stage = record_of(url, *common, "--driver", driver)["stages"][0]
                # riops does not state it where its readings come late, as with 128 sessions on a busy machine.
                done = stage["operations"][0]["acknowledged_transactions"]
                return stage["client_cpu"]["seconds"] * 1e6 / done, stage["throughput"]["transactions_per_s"]

            def loop(driver):
                # As riops, which has at most one worker for each session.
                words = [url, str(sessions), str(min(sessions, 2)), str(arguments.seconds), "rows"]
                done, cpu = timed([BARE, driver, *words])[0].split()
                return float(cpu), int(done) / arguments.seconds

            runs = [(ours, "epoll"), (ours, "io-uring"), (loop, "epoll"), (loop, "io-uring")]
            results = {run: [] for run in runs}
            for number in range(arguments.rounds):
                turn = number % len(runs)
                for kind, driver in runs[turn:] + runs[:turn]:
                    results[kind, driver].append(kind(driver))
            case = f"drivers, {name}, {sessions} session(s)"
            for position, what in enumerate(["CPU µs/transaction", "transactions/s"]):
                of = lambda run: (result[position] for result in results[run])
                is_cpu = position == 0
                pair = of((ours, "io-uring")), of((ours, "epoll"))
                report.line(f"{case}: {what}, io-uring against epoll", *pair, None, is_cpu)
                for driver in ("epoll", "io-uring"):
                    pair = of((ours, driver)), of((loop, driver))
                    report.line(f"{case}: {what}, {driver} against its loop", *pair, None, is_cpu)


def workers(server, report, arguments):
    """With 64 workers, each transaction switches threads, as in pgbench. The workers share no memory that they write."""

    def loop(count):
        command = [RIOPS, "run", "rows", "-d", server.socket, "--batch", "1", "-c", "64", "-j", str(count)]
        command += ["-t", str(arguments.seconds), "--warmup", "0", "--output", "json", "--no-store", "--quiet"]
        stage = json.loads(timed(command)[0])["stages"][0]
        done = stage["operations"][0]["acknowledged_transactions"]
        return stage["throughput"]["transactions_per_s"], stage["client_cpu"]["seconds"] * 1e6 / done

    def peer():
        rate, _, cpu = pgbench(server.socket, 1, 64, 64, arguments.seconds)
        return rate, cpu

    for name, other in [("pgbench with 64 threads", peer), ("2 workers", lambda: loop(2))]:
        results = in_turns(arguments.rounds, lambda: loop(64), other)
        for position, what in enumerate(["transactions/s", "CPU µs/transaction"]):
            values = [(run[position] for run in runs) for runs in results]
            report.line(f"64 workers and sessions against {name}: {what}", *values, None, False)


def overhead(server, report, arguments):
    """Uses a rate above the capacity of the server, so that both loops poll for the same work."""
    sessions, workers, seconds = "32", "2", str(arguments.seconds)
    common = ["--batch", "1", "-c", sessions, "-j", workers, "-t", seconds, "--warmup", "0"]
    everything = ["--rate", "200000", "--interval", "100ms", "--latency-limit", "10ms"]
    ours, theirs = in_turns(
        arguments.rounds,
        lambda: cpu_of(server.socket, *common, *everything),
        lambda: cpu_of(server.socket, *common),
    )
    report.line("open loop, everything enabled: CPU µs/transaction", ours, theirs, 1.05, True)


def instructions(server, report, arguments):
    """Instructions of the worker outside of the kernel, as callgrind counts them: the difference of two runs."""

    def executed(driver, transactions, *words):
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "out")
            command = ["valgrind", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}", RIOPS, "run"]
            command += [*words, "-d", server.socket, "-c", "16", "-j", "1", "--driver", driver, "--no-verify"]
            command += ["--transactions", str(transactions), "--warmup", "0", "--output", "json", "--no-store", "--quiet"]
            subprocess.run(command, capture_output=True, text=True, check=True)
            threads = []
            for name in os.listdir(folder):
                with open(os.path.join(folder, name)) as file:
                    found = re.search(r"^(?:summary|totals): (\d+)", file.read(), re.MULTILINE)
                # The first thread only starts and ends the run. Among the other threads, the worker executes the most.
                if found and name != "out-01":
                    threads.append(int(found.group(1)))
            return max(threads)

    def each(driver, few, many, *words):
        return (executed(driver, many, *words) - executed(driver, few, *words)) / (many - few)

    call(RIOPS, "prepare", "script", "-d", server.socket, "--recreate", "--quiet")
    available = record_of(server.socket, "-c", "8", "-j", "1", "--transactions", "100", "--warmup", "0", "--driver", "auto")["client"]["driver"]
    for driver, (read_max, script_max) in INSTRUCTIONS_MAX.items():
        if driver == "io-uring" and available != "io-uring":
            print("io-uring is not available here: its instructions are not counted")
            continue
        found = each(driver, 10_000, 30_000, "rows", "--batch", "1")
        report.below(f"instructions of a read, {driver}", found, read_max)
        found = each(driver, 1_000, 6_000, "script", "-b", "simple-update")
        report.below(f"instructions of a transaction of simple-update, {driver}", found, script_max)
    call(RIOPS, "cleanup", "script", "-d", server.socket)


def parse(_, report, arguments):
    """The time to parse and check a script of 10,000 lines, without that of starting the program."""

    def script(lines):
        some = ["\\set a random(1, 100000 * 3) + :b", "select abalance from pgbench_accounts where aid = :a;", "\\if :a > 5", "\\endif"]
        return "\\set b 1\n" + "".join(some[number % 4] + "\n" for number in range(lines))

    with tempfile.TemporaryDirectory() as folder:
        walls = {}
        for lines in (0, 10_000):
            path = os.path.join(folder, f"{lines}.sql")
            with open(path, "w") as file:
                file.write(script(lines))
            command = [RIOPS, "script", "check", "--offline", path]
            walls[lines] = statistics.median(timed(command)[2] for _ in range(max(arguments.rounds, 7)))
    report.below("a script of 10,000 lines: seconds", walls[10_000] - walls[0], 0.05)


def stall(server, report, arguments):
    """Stops all processes of the server for one second during an open loop."""
    common = ["--batch", "1", "-c", "8", "-j", "2", "--warmup", "1", "--interval", "100ms"]
    closed = record_of(server.socket, *common, "-t", "5")
    rate = int(closed["stages"][0]["throughput"]["transactions_per_s"] / 2)
    pid = call("psql", "-qXAtc", "select pg_read_file('postmaster.pid', 0, 20)", server.socket)
    postmaster = int(pid.split()[0])
    command = [RIOPS, "run", "rows", "-d", server.socket, *common, "-t", "10", "--rate", str(rate)]
    command += ["--output", "json", "--no-store"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if line.strip().startswith("5.0 s"):
            break
    family = [postmaster] + [
        int(child) for child in call("pgrep", "-P", str(postmaster)).split()
    ]
    for one in family:
        os.kill(one, signal.SIGSTOP)
    time.sleep(1)
    for one in reversed(family):
        os.kill(one, signal.SIGCONT)
    stage = json.loads(process.communicate()[0])["stages"][0]
    intended = stage["schedule"]["intended"]
    slow = sum(point["max_us"] > 900_000 for point in stage["series"] if "max_us" in point)
    print(
        f"stall: rate {rate}/s, {intended} intended starts in 10 s, {stage['schedule']['waiting']} waiting at the end\n"
        f"  service  p50 {stage['service_us']['p50']:,.0f} µs, p99 {stage['service_us']['p99']:,.0f} µs, "
        f"p99.9 {stage['service_us']['p999']:,.0f} µs, max {stage['service_us']['max']:,.0f} µs ({slow} intervals with a stopped transaction)\n"
        f"  response p50 {stage['response_us']['p50']:,.0f} µs, p99 {stage['response_us']['p99']:,.0f} µs, "
        f"p99.9 {stage['response_us']['p999']:,.0f} µs, max {stage['response_us']['max']:,.0f} µs"
    )
    met = intended == rate * 10 and stage["response_us"]["p999"] > 900_000 > stage["service_us"]["p99"]
    print(f"  intended = rate × time, response p99.9 above 0.9 s, service p99 below 0.9 s: {'met' if met else 'MISSED'}")
    report.met &= met


def many(server, report, arguments):
    """1,000 sessions on 2 workers through PgBouncer: time to connect, schedule, memory."""
    folder = tempfile.mkdtemp(dir="/var/tmp")
    os.chmod(folder, 0o755)
    address = dict(part.split("=", 1) for part in server.socket.split("?", 1)[1].split("&"))
    name = server.socket.split("/")[-1].split("?")[0]
    user = call("psql", "-qXAtc", "select current_user", server.socket).strip()
    port = 6599
    socket = urllib.parse.unquote(address["host"])
    with open(f"{folder}/users", "w") as file:
        file.write('"bench" ""\n')
    with open(f"{folder}/pgbouncer.ini", "w") as file:
        file.write(
            f"[databases]\n{name} = host={socket} port={address['port']} user={user}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
            f"auth_file = {folder}/users\npool_mode = transaction\ndefault_pool_size = 20\nmax_client_conn = 2000\n"
        )
    # PgBouncer refuses to run as root. The owner of the socket may connect to it.
    owner = pwd.getpwuid(os.stat(socket).st_uid).pw_name
    command = ["pgbouncer", "-q", f"{folder}/pgbouncer.ini"] + (["-u", owner] if os.geteuid() == 0 else [])
    pooler = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(1)
        url = f"postgresql://bench@127.0.0.1:{port}/{name}"
        options = ["-c", "1000", "-j", "2", "--rate", "2000", "--protocol", "extended", "--batch", "1"]
        command = [RIOPS, "run", "rows", "-d", url, *options, "-t", str(arguments.seconds), "--warmup", "1"]
        start = time.monotonic()
        process = subprocess.Popen(
            command + ["--output", "json", "--no-store"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        lines = []
        connected = None
        for line in process.stderr:
            lines.append(line)
            if "sessions connected" in line:
                connected = time.monotonic() - start
                break
        if connected is None:
            sys.exit("".join(lines))
        for line in process.stderr:
            if line.strip().startswith("2.0 s"):
                break
        with open(f"/proc/{process.pid}/status") as file:
            peak = int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1)) / 1024
        stage = json.loads(process.communicate()[0])["stages"][0]
    finally:
        pooler.terminate()
        pooler.wait()
        shutil.rmtree(folder)
    schedule = stage["schedule"]
    print(
        f"many: 1,000 sessions connected in {connected:.1f} s, {peak:.0f} MiB at most; "
        f"{schedule['sent']} of {schedule['intended']} starts sent, {schedule['waiting']} waiting at the end; "
        f"started p99 {schedule['start_lag_us']['p99']:,.0f} µs late; response p99 {stage['response_us']['p99']:,.0f} µs"
    )
    met = connected < 10 and peak < 200 and schedule["intended"] == 2000 * arguments.seconds
    met &= schedule["waiting"] <= 0.001 * schedule["intended"]
    print(f"  connected within 10 s, below 200 MiB, schedule kept: {'met' if met else 'MISSED'}")
    report.met &= met


BATCHES = (1, 10, 100, 1000, 10000)


def loops(server, report, arguments):
    """Both loops in one run, as consecutive stages: with one session, then with enough to keep the cores busy."""
    for sessions, target in [(1, 1.5), (32, None)]:
        ours, theirs = {}, {}
        for number in range(arguments.rounds):
            sides = "server,client" if number % 2 else "client,server"
            command = ["--loop", sides, "--batch", ",".join(map(str, BATCHES)), "-c", str(sessions)]
            command += ["-t", str(arguments.seconds), "--warmup", "1"]
            record = record_of(server.socket, *command)
            for stage in record["stages"]:
                rates = ours if stage["kind"] == "server_loop" else theirs
                rates.setdefault(stage["batch"], []).append(stage["throughput"]["rows_per_s"])
        for batch in BATCHES:
            aim = target if batch == 1 else None
            name = f"server loop, {sessions} session(s), batch {batch}"
            report.line(name, ours[batch], theirs[batch], aim, False)


def ybio(server, report, arguments):
    """Runs both with psql in a separate schema, with the same settings and the same table."""
    options = f"{PGOPTIONS} -c search_path=bench_ybio -c client_min_messages=notice"
    environment = {**os.environ, "PGOPTIONS": options}

    def psql(*statements):
        command = ["psql", "-qXAt", *(f"-c{statement}" for statement in statements), server.socket]
        return timed(command, environment)[0]

    names = ["sql/ybio.sql", "bench/plain_loop.sql", "bench/plain_setup.sql"]
    files = [os.path.join(ROOT, name) for name in names]
    psql("drop schema if exists bench_ybio cascade", "create schema bench_ybio")
    for file in files:
        timed(["psql", "-qX", "-f", file, server.socket], environment)
    for filler in [1, 1000]:

        def loaded(call):
            psql("checkpoint")
            return ROWS / timed(["psql", "-qXAt", f"-c{call}", server.socket], environment)[2]

        mine, plain = in_turns(
            arguments.rounds,
            lambda: loaded(f"call setup(batch_size=>10000, filler=>{filler})"),
            lambda: loaded(f"call plain_setup({ROWS}, 100, {filler})"),
        )
        report.line(f"ybio, setup with its index, filler {filler}", mine, plain, 1.2, False)
    psql("drop table plain0001")
    psql("call setup(batch_size=>10000)", "vacuum (freeze, analyze) bench0001", "checkpoint")
    for prepared, pct in [(True, 0), (False, 0), (True, 42)]:
        for batch in BATCHES:
            flag, seconds = str(prepared).lower(), arguments.seconds

            def ours():
                psql(
                    f"call runit(run_duration=>interval '{seconds} s', batch_size=>{batch}, pct_update=>{pct}, prepared=>{flag})"
                )
                rate = "num_rows / date_part('epoch', end_time - start_time)"
                return float(psql(f"select {rate} from benchruns order by job_id desc limit 1"))

            def theirs():
                call = f"call plain_loop('bench0001', 1000000, {batch}, {seconds}, {pct}, {flag}, null)"
                return float(psql(call))

            mine, plain = in_turns(arguments.rounds, ours, theirs)
            name = f"ybio, {'' if prepared else 'not '}prepared, update {pct} %, batch {batch}"
            # With larger batches, the rows dominate the time, and the difference is noise.
            report.line(name, mine, plain, 1.3 if batch == 1 else 0.95, False)
    psql("drop schema bench_ybio cascade")


BARE_LOAD = os.path.join(os.path.dirname(RIOPS), "examples", "bare_load")


def bulk(server, report, arguments):
    """Alternates on one server. The files were just written, so they are in the page cache."""
    rows, sessions = str(ROWS), "2"
    folder = tempfile.mkdtemp(dir="/var/tmp")
    os.chmod(folder, 0o755)

    def loaded(*methods_and_options):
        """Returns rows per second and client CPU µs per row, by method."""
        command = [RIOPS, "run", "load", "-d", server.socket, "--rows", rows, "-c", sessions, "--drop"]
        command += [*methods_and_options, "--no-store", "--no-verify", "--quiet", "--output", "json"]
        stages = json.loads(timed(command)[0])["stages"]
        return {
            stage["method"]: (stage["throughput"]["rows_per_s"], stage["client_cpu"]["seconds"] * 1e6 / stage["rows"])
            for stage in stages
        }

    def bare_insert():
        return float(timed([BARE_LOAD, server.socket, rows, "200", sessions])[0].split()[0])

    try:
        call(RIOPS, "generate", "csv", "--rows", rows, "-c", sessions, "--dir", folder, "--quiet")
        binary, files = in_turns(
            arguments.rounds,
            lambda: loaded("--method", "copy-binary", "--batch-size", "50000")["copy-binary"],
            lambda: loaded("--method", "copy-file", "--dir", folder)["copy-file"],
        )
        rates = [(run[0] for run in runs) for runs in (binary, files)]
        report.line("copy-binary (50,000) against copy-file: rows/s", *rates, 1.10, False)
        report.line("copy-binary: client CPU µs/row, against 0.2", (run[1] for run in binary), [0.2] * len(binary), 1.0, True)
        insert, bare = in_turns(
            arguments.rounds, lambda: loaded("--method", "insert")["insert"][0], bare_insert
        )
        report.line("insert (200) against its bytes encoded in advance: rows/s", insert, bare, 0.9, False)
        unnest, insert = in_turns(
            arguments.rounds,
            lambda: loaded("--method", "unnest")["unnest"],
            lambda: loaded("--method", "insert")["insert"],
        )
        rates = [(run[0] for run in runs) for runs in (unnest, insert)]
        report.line("unnest (200) against insert (200): rows/s", *rates, 1.2, False)
        cpu = [(run[1] for run in runs) for runs in (unnest, insert)]
        report.line("unnest against insert: client CPU µs/row", *cpu, None, True)
    finally:
        shutil.rmtree(folder)


def point(server, report, arguments):
    """The same prepared statement. riops checks every row; pgbench does not."""
    call(RIOPS, "prepare", "load", "--rows", str(ROWS), "--recreate", "-d", server.socket)

    def ours(sessions):
        command = [RIOPS, "run", "point", "-d", server.socket, "-c", str(sessions), "-j", "2"]
        command += ["-t", str(arguments.seconds), "--warmup", "0", "--output", "json", "--no-store", "--quiet"]
        text, cpu, _ = timed(command)
        record = json.loads(text)
        assert record["verdict"]["valid"], record["verdict"]
        stage = record["stages"][0]
        done = stage["operations"][0]["acknowledged_transactions"]
        return stage["throughput"]["transactions_per_s"], cpu * 1e6 / done

    def theirs(sessions):
        script = f"\\set id random(0, {ROWS - 1})\nselect f1, f2, f3, f4 from riops.test_table where id = :id;\n"
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(script)
            file.flush()
            command = ["pgbench", "-n", "-M", "prepared", "-c", str(sessions), "-j", "2"]
            command += ["-T", str(arguments.seconds), "-f", file.name, server.socket]
            text, cpu, _ = timed(command, env={**os.environ, "PGOPTIONS": PGOPTIONS})
        done = int(re.search(r"actually processed: (\d+)", text).group(1))
        return float(re.search(r"tps = ([0-9.]+) \(without", text).group(1)), cpu * 1e6 / done

    for sessions, target in [(8, 0.77), (32, 0.65)]:
        mine, peer = in_turns(arguments.rounds, lambda: ours(sessions), lambda: theirs(sessions))
        cpu = [(run[1] for run in runs) for runs in (mine, peer)]
        rate = [(run[0] for run in runs) for runs in (mine, peer)]
        report.line(f"point select, {sessions} sessions: CPU µs/statement", *cpu, target, True)
        report.line(f"point select, {sessions} sessions: statements/s", *rate, 1.05, False)


SELECTS = 10


def pipeline(server, report, arguments):
    """The same statements between BEGIN and COMMIT, with one Sync. riops checks every row; pgbench does not."""
    size = 100_000
    call(RIOPS, "prepare", "oltp", "-d", server.socket, "--schema", "public", "--tables", "1", "--table-size", str(size), "--recreate")
    script = "".join(f"\\set id{n} random(1, {size})\n" for n in range(SELECTS)) + "\\startpipeline\nbegin;\n"
    script += "".join(f"select c from public.sbtest1 where id = :id{n};\n" for n in range(SELECTS)) + "commit;\n\\endpipeline\n"

    def ours():
        command = [RIOPS, "run", "oltp", "oltp_read_only", "-d", server.socket, "--schema", "public", "-c", "32", "-j", "2"]
        command += ["--range-selects=off", "--rand-type", "uniform", "--pipeline", "-t", str(arguments.seconds), "--warmup", "0"]
        text, cpu, _ = timed([*command, "--no-verify", "--no-store", "--quiet", "--output", "json"])
        record = json.loads(text)
        assert record["verdict"]["valid"], record["verdict"]
        stage = record["stages"][0]
        return cpu * 1e6 / stage["operations"][0]["acknowledged_transactions"], stage["throughput"]["transactions_per_s"]

    def theirs():
        with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
            file.write(script)
            file.flush()
            command = ["pgbench", "-n", "-M", "prepared", "-c", "32", "-j", "2", "-T", str(arguments.seconds)]
            text, cpu, _ = timed([*command, "-f", file.name, server.socket])
        done = int(re.search(r"actually processed: (\d+)", text).group(1))
        return cpu * 1e6 / done, float(re.search(r"tps = ([0-9.]+) \(without", text).group(1))

    results = in_turns(arguments.rounds, ours, theirs)
    for position, what, target in [(0, "CPU µs/transaction", 0.5), (1, "transactions/s", 1.0)]:
        values = [(run[position] for run in runs) for runs in results]
        report.line(f"pipeline of ten selects, 32 sessions: {what}", *values, target, position == 0)
    call(RIOPS, "cleanup", "oltp", "-d", server.socket)


def script(server, report, arguments):
    """The same scripts on the same tables. riops also checks rows, plans and the latency of each command."""
    scale = str(arguments.scale)

    def ours(name, workers):
        command = [RIOPS, "run", "script", "-d", server.socket, "-b", name, "-c", "32", "-j", workers]
        command += ["-t", f"{arguments.seconds}s", "--warmup", "0s", "--no-verify", "--no-store", "--quiet", "--output", "json"]
        text, cpu, _ = timed(command)
        record = json.loads(text)
        assert record["verdict"]["valid"], record["verdict"]
        stage = record["stages"][0]
        return cpu * 1e6 / stage["operations"][0]["acknowledged_transactions"], stage["throughput"]["transactions_per_s"]

    def theirs(name, workers):
        command = ["pgbench", "-n", "-M", "prepared", "-b", name, "-c", "32", "-j", workers, "-T", str(arguments.seconds)]
        text, cpu, _ = timed([*command, server.socket])
        done = int(re.search(r"actually processed: (\d+)", text).group(1))
        return cpu * 1e6 / done, float(re.search(r"tps = ([0-9.]+) \(without", text).group(1))

    def bare_script(name, workers):
        command = [BARE, "io-uring", server.socket, "32", workers, str(arguments.seconds), name]
        text, cpu, _ = timed(command)
        return cpu * 1e6 / int(text.split()[0])

    def prepare():
        return timed([RIOPS, "prepare", "script", "-d", server.socket, "--scale", scale, "--recreate", "--quiet"])[2]

    def initialize(steps):
        wall = timed(["pgbench", "-i", "-q", "-I", steps, "-s", scale, server.socket])[2]
        call("pgbench", "-i", "-I", "d", server.socket)
        return wall

    call("pgbench", "-i", "-I", "d", server.socket)
    for steps, name in [("dtgvp", "client"), ("dtGvp", "server")]:
        def drop_and_prepare():
            wall = prepare()
            call(RIOPS, "cleanup", "script", "-d", server.socket)
            return wall

        walls = in_turns(arguments.rounds, drop_and_prepare, lambda: initialize(steps))
        report.line(f"tables of scale {scale}, rows from the {name}: s", *walls, 0.5, True)
    prepare()
    for name, cpu_target in [("select-only", 0.65), ("tpcb-like", 0.75)]:
        for workers in ("2", "1"):
            results = in_turns(arguments.rounds, lambda: ours(name, workers), lambda: theirs(name, workers))
            for position, what, target in [(0, "CPU µs/transaction", cpu_target), (1, "transactions/s", 1.0)]:
                values = [(run[position] for run in runs) for runs in results]
                report.line(f"{name}, 32 sessions, {workers} worker(s): {what}", *values, target, position == 0)
    # The bare loop knows the numbers of rows of this scale.
    if arguments.scale == 50:
        for name in ("select-only", "tpcb-like"):
            for workers in ("2", "1"):
                bare = in_turns(arguments.rounds, lambda: bare_script(name, workers), lambda: theirs(name, workers)[0])
                report.line(f"{name} in a bare loop, {workers} worker(s): CPU µs/transaction", *bare, None, True)
    call(RIOPS, "cleanup", "script", "-d", server.socket)


def interval(ratios):
    """The two ratios between which the median lies with at least 95 %, from the binomial distribution of their ranks;
    the smallest and the largest if there are fewer than six."""
    count = len(ratios)
    outside, rank = 0.5**count, 0
    while 2 * (outside + math.comb(count, rank + 1) * 0.5**count) <= 0.05:
        rank += 1
        outside += math.comb(count, rank) * 0.5**count
    ordered = sorted(ratios)
    return ordered[rank], ordered[count - 1 - rank]


class Report:
    """Prints the lines of the result, and records whether all targets were met."""

    def __init__(self):
        self.met = True
        self.rows = []

    def table(self):
        """Prints the compared medians in Markdown."""
        if self.rows:
            print("\n| | riops | peer | ratio | interval | target |\n| --- | --- | --- | --- | --- | --- |")
            print("\n".join(f"| {' | '.join(row)} |" for row in self.rows))

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
            f"{name:<52} riops {statistics.median(ours):>12,.1f}  peer {statistics.median(theirs):>12,.1f}  "
            f"ratio {ratio:.3f} (rounds {min(ratios):.3f} to {max(ratios):.3f})  "
            f"{aim}",
            flush=True,
        )
        low, high = interval(ratios)
        both = [f"{statistics.median(values):,.{1 if statistics.median(values) < 1000 else 0}f}" for values in (ours, theirs)]
        goal = "" if target is None else f"{'≤' if smaller_is_better else '≥'} {target:.2f}{'' if met else ', missed'}"
        self.rows.append([name, *both, f"{ratio:.2f}", f"{low:.2f} to {high:.2f}", goal])

    def within(self, name, ours, theirs, tolerance):
        """Requires the medians to differ by at most this share, in either direction."""
        ratios = [mine / other for mine, other in zip(ours, theirs)]
        ratio = statistics.median(ours) / statistics.median(theirs)
        met = abs(ratio - 1) <= tolerance
        self.met &= met
        print(
            f"{name:<52} riops {statistics.median(ours):>12,.1f}  peer {statistics.median(theirs):>12,.1f}  "
            f"ratio {ratio:.3f} (rounds {min(ratios):.3f} to {max(ratios):.3f})  "
            f"target {1 - tolerance:.2f} to {1 + tolerance:.2f}  {'met' if met else 'MISSED'}",
            flush=True,
        )

    def below(self, name, found, most):
        self.met &= found <= most
        print(f"{name:<52} {found:.3f}  target ≤ {most:g}  {'met' if found <= most else 'MISSED'}", flush=True)


def sysbench(server, words, *options):
    """Runs sysbench on the tables in the schema public. Returns its output, CPU seconds and elapsed seconds."""
    url = urllib.parse.urlparse(server.tcp)
    command = ["sysbench", words[0], "--db-driver=pgsql", f"--pgsql-host={url.hostname}"]
    command += [f"--pgsql-port={url.port}", f"--pgsql-user={url.username}"]
    command += [f"--pgsql-password={url.password}", f"--pgsql-db={url.path[1:]}"]
    return timed([*command, *options, words[1]])


OLTP_TABLES = ["--tables=10", "--table-size=100000"]
OLTP_MIXES = {
    "study": ("read_write", ["--range-selects=off", "--index-updates=10", "--non-index-updates=10"]),
    "defaults": ("read_write", []),
    "point": ("point_select", []),
}


def oltp(server, report, arguments):
    """Alternates on the same tables. CPU is that of the whole process, per transaction of its result."""

    def ours(mix, sessions, keys="uniform"):
        test, options = OLTP_MIXES[mix]
        command = [RIOPS, "run", "oltp", f"oltp_{test}", "-d", server.tcp, "--schema", "public", *options]
        command += ["-c", str(sessions), "-j", "2", "-t", str(arguments.seconds), "--warmup", "0"]
        command += ["--rand-type", keys, "--max-retries", "1000", "--no-verify", "--no-store"]
        text, cpu, _ = timed([*command, "--output", "json", "--quiet"])
        record = json.loads(text)
        assert record["verdict"]["valid"], record["verdict"]
        stage = record["stages"][0]
        return stage["throughput"]["transactions_per_s"], cpu * 1e6 / stage["transactions"], record

    def theirs(mix, sessions, keys="uniform"):
        test, options = OLTP_MIXES[mix]
        options = [*OLTP_TABLES, *options, f"--threads={sessions}", f"--time={arguments.seconds}", f"--rand-type={keys}"]
        text, cpu, _ = sysbench(server, (f"oltp_{test}", "run"), *options)
        done, rate = re.search(r"transactions: +(\d+) +\(([0-9.]+) per", text).groups()
        return float(rate), cpu * 1e6 / int(done), text

    targets = {
        ("study", 8): (1.0, 0.70), ("study", 32): (1.0, 0.70),
        ("defaults", 8): (1.0, 0.70), ("defaults", 32): (1.0, 0.70),
        ("point", 8): (1.05, 0.85), ("point", 32): (1.15, 0.50),
    }
    call(RIOPS, "prepare", "oltp", "-d", server.tcp, "--schema", "public", *OLTP_TABLES, "--recreate")
    for (mix, sessions), (rate, cpu) in targets.items():
        results = in_turns(arguments.rounds, lambda: ours(mix, sessions), lambda: theirs(mix, sessions))
        name = f"oltp {mix}, {sessions} sessions"
        report.line(f"{name}: transactions/s", *((run[0] for run in runs) for runs in results), rate, False)
        report.line(f"{name}: CPU µs/transaction", *((run[1] for run in runs) for runs in results), cpu, True)
    skewed, peer = ours("study", 32, "special"), theirs("study", 32, "special")
    stage = skewed[2]["stages"][0]
    waits = stage.get("lock_waits", {"samples": 1, "waiting": 0})
    errors = re.search(r"ignored errors: +(\d+)", peer[2]).group(1)
    print(f"oltp study, 32 sessions, skewed keys of sysbench: riops {skewed[0]:.1f} tx/s, sysbench {peer[0]:.1f} tx/s ({errors} ignored errors)")
    print("  riops: " + ", ".join(f"{error['count']} × {error['sqlstate']}, {error['attempts_s']:.0f} s in such attempts" for error in stage["errors"])
          + f"; {waits['waiting'] / waits['samples'] / 32:.0%} of the sessions waited for locks", flush=True)
    call(RIOPS, "cleanup", "oltp", "-d", server.tcp)

    def prepare():
        options = ["--tables", "4", "--table-size", "100000", "--schema", "public", "--recreate"]
        return timed([RIOPS, "prepare", "oltp", "-d", server.tcp, *options])[2]

    def prepare_by_sysbench(threads):
        options = ["--tables=4", "--table-size=100000", f"--threads={threads}"]
        wall = sysbench(server, ("oltp_read_write", "prepare"), *options)[2]
        sysbench(server, ("oltp_read_write", "cleanup"), *options)
        return wall

    def and_cleanup():
        wall = prepare()
        call(RIOPS, "cleanup", "oltp", "-d", server.tcp)
        return wall

    for threads, target in [(1, 0.2), (4, None)]:
        results = in_turns(arguments.rounds, and_cleanup, lambda: prepare_by_sysbench(threads))
        name = f"oltp prepare 4 × 100,000, sysbench with {threads} thread(s)"
        report.line(f"{name}: seconds", *results, target, True)


CBC_STEPS = ["CREATE_TABLE", "VACUUM", "CREATE_INDEX", "SELECT_u1", "SELECT_c1", "SELECT_r", "CLUSTER"]
CBC_STEPS += ["SELECT_u2", "SELECT_c2"]


class Iostat:
    """Cumulative bytes read and written by a device over wall clock time, from iostat -x."""

    def __init__(self, device):
        self.process = subprocess.Popen(
            ["iostat", "-d", "-x", "-k", "-y", device, "1"], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "LC_ALL": "C"},
        )
        self.curve = [(time.time(), 0.0, 0.0)]
        self.device = device
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        names = []
        for line in self.process.stdout:
            fields = line.split()
            if fields and fields[0] == "Device":
                names = fields
            elif fields and fields[0] == self.device:
                values = dict(zip(names, fields))
                now, (last, read, written) = time.time(), self.curve[-1]
                span = now - last
                read += float(values["rkB/s"]) * 1024 * span
                written += float(values["wkB/s"]) * 1024 * span
                self.curve.append((now, read, written))

    def close(self):
        time.sleep(1.5)
        self.process.terminate()
        self.process.wait()

    def between(self, start, end, column):
        """Returns the bytes read (column 1) or written (column 2)."""
        def at(moment):
            for before, after in zip(self.curve, self.curve[1:]):
                if before[0] <= moment <= after[0]:
                    share = (moment - before[0]) / (after[0] - before[0])
                    return before[column] + share * (after[column] - before[column])
            return self.curve[-1][column] if moment > self.curve[-1][0] else 0.0
        return at(end) - at(start)


def cbc(server, report, arguments):
    """The steps of riops and of psql, each in a new database; and the cost and accuracy of the probes."""
    size = str(arguments.size)
    script = os.path.join(ROOT, "sql", "cbc", "cbc-psql.sql")
    records, agreements = [], []

    def settle():
        call("psql", "-qc", "checkpoint", server.socket)
        os.sync()

    def ours():
        settle()
        # The name of the device is known after the first run.
        device = records[0]["stages"][0].get("io", {}).get("name") if records else None
        watched = Iostat(device) if device else None
        text = call(RIOPS, "run", "cbc", "--size", size, "-d", server.socket, "--output", "json", "--no-store", "--quiet")
        if watched:
            watched.close()
        record = json.loads(text)
        assert record["verdict"]["valid"], record["verdict"]
        records.append(record)
        for stage in record["stages"] if watched else []:
            start = datetime.datetime.fromisoformat(stage["started_at"].replace("Z", "+00:00")).timestamp()
            for name, column in [("read_mb_s", 1), ("write_mb_s", 2)]:
                mine = stage["io"][name] * 1e6 * stage["seconds"]
                other = watched.between(start, start + stage["seconds"], column)
                # iostat samples once per second, so shorter stages have too few samples.
                if stage["seconds"] >= 3 and mine > 50e6:
                    agreements.append((stage["name"], name, mine, other))
        return {stage["name"]: stage["seconds"] * 1e3 for stage in record["stages"]}

    def theirs():
        settle()
        call("psql", "-qc", "create database cbc_by_psql", server.socket)
        url = server.socket.replace("/postgres?", "/cbc_by_psql?")
        try:
            out = call("psql", "-X", "-v", "ON_ERROR_STOP=1", "-v", f"scale={size}", "-f", script, url)
        finally:
            call("psql", "-qc", "drop database cbc_by_psql", server.socket)
        found, key = {}, None
        for line in out.splitlines():
            if line.strip() in CBC_STEPS:
                key = line.strip()
            elif line.startswith("Time: ") and key:
                found[key], key = float(line.split()[1]), None
        return found

    results = in_turns(arguments.rounds, ours, theirs)
    for step in CBC_STEPS:
        mine, others = ([each[step] for each in side] for side in results)
        report.within(f"cbc {size} GB, {step}: ms", mine, others, 0.05)
    seconds = sum(stage["seconds"] for record in records for stage in record["stages"])
    cpu = sum(stage["probes"]["cpu_s"] for record in records for stage in record["stages"])
    report.below(f"cbc {size} GB, probes: percent of one CPU", 100 * cpu / seconds, 1.0)
    for step, name in sorted({(step, name) for step, name, _, _ in agreements}):
        pairs = [(mine, other) for s, n, mine, other in agreements if (s, n) == (step, name)]
        report.within(f"cbc {size} GB, {step}: {name[:-5]} bytes, by iostat",
                      [mine for mine, _ in pairs], [other for _, other in pairs], 0.05)


def in_turns(rounds, first, second):
    """Alternates, and swaps the order in each round, so that drift affects both equally."""
    results = ([], [])
    for number in range(rounds):
        order = [(0, first), (1, second)]
        for position, run in order if number % 2 == 0 else reversed(order):
            results[position].append(run())
    return results


def many_sessions(server, report, arguments, name, url, cpu_targets):
    """The whole process's CPU on both sides."""
    for (driver, sessions), target in cpu_targets.items():
        ours, theirs = in_turns(
            arguments.rounds,
            lambda: riops(url, 1, sessions, 2, arguments.seconds, driver),
            lambda: pgbench(url, 1, sessions, 2, arguments.seconds),
        )
        cpu = [(run[2] for run in runs) for runs in (ours, theirs)]
        rate = [(run[0] for run in runs) for runs in (ours, theirs)]
        each = f"{name}, {sessions} sessions, {driver}"
        report.line(f"{each}: CPU µs/transaction", *cpu, target, True)
        report.line(f"{each}: transactions/s", *rate, 1.05, False)


# By driver, for a read and a transaction of simple-update: about 10% more than at the last change.
INSTRUCTIONS_MAX = {"epoll": (2_360, 13_100), "io-uring": (2_730, 15_000)}
# Client CPU against pgbench, by driver and number of sessions.
SOCKET = {("epoll", 8): 0.74, ("io-uring", 8): 0.72, ("epoll", 32): 0.65, ("io-uring", 32): 0.60}
TCP = {("epoll", 8): 0.85, ("io-uring", 8): 0.75, ("epoll", 32): 0.58, ("io-uring", 32): 0.54}


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


def store(server, report, arguments):
    """The time of lists of a large store. Their output goes to a pipe."""
    record = os.path.join(ROOT, "crates", "riops", "tests", "records", "rows.json")
    database = "riops_bench_store"
    url = urllib.parse.urlsplit(server.socket)._replace(path=f"/{database}").geturl()
    admin = ["psql", "-X", "-q", "-d", server.socket, "-c"]
    call(*admin, f"drop database if exists {database}")
    call(*admin, f"create database {database}")
    with tempfile.TemporaryDirectory() as folder:
        for name, place in [("SQLite", os.path.join(folder, "runs.sqlite")), ("PostgreSQL", url)]:
            _, _, wall = timed([FILL_STORE, place, record, str(arguments.runs)])
            print(f"{name}: storing a run took {1e3 * wall / arguments.runs:.1f} ms", flush=True)
            for words in ["", "--sort rows_per_s", "--tag disk=nvme --label release-7", "--stages", f"--limit {arguments.runs}"]:
                command = [RIOPS, "runs", "list", "--store", place, *words.split()]
                walls = [timed(command)[2] for _ in range(arguments.rounds)]
                report.below(f"{name}, {arguments.runs} runs: runs list {words}", statistics.median(walls), 0.3)
    call(*admin, f"drop database {database}")


PEERS = {"socket", "tcp", "batch1000", "point", "pipeline", "script", "oltp", "bulk", "floor", "few", "workers", "overhead", "instructions", "parse"}
# Programs that are not built by cargo, with their Debian packages, and the cases that run them.
PROGRAMS = {
    ("pgbench", "postgresql-contrib"): {"socket", "tcp", "batch1000", "point", "pipeline", "script"},
    ("psql", "postgresql-client"): {"load", "stall", "many", "ybio", "cbc", "store"},
    ("sysbench", "sysbench"): {"oltp"},
    ("valgrind", "valgrind"): {"instructions"},
    ("iostat", "sysstat"): {"cbc"},
    ("pgbouncer", "pgbouncer"): {"many"},
}


def require_programs(wanted):
    """Ends the script with a list of what is missing. Nothing is installed."""
    missing = [
        f"{program} (Debian: apt install {package})"
        for (program, package), cases in PROGRAMS.items()
        if wanted & (cases | {"all"}) and shutil.which(program) is None
    ]
    examples = [(BARE, {"floor", "few", "drivers", "script"}), (BARE_LOAD, {"bulk"}), (FILL_STORE, {"store"}), (RIOPS, wanted)]
    examples = [path for path, cases in examples if wanted & (cases | {"all"}) and not os.path.exists(path)]
    missing += [f"{path} (cargo build --release --bins --examples)" for path in examples]
    if missing:
        sys.exit("missing:\n  " + "\n  ".join(missing))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="+", choices=["socket", "tcp", "batch1000", "load", "floor", "few", "drivers", "workers", "overhead", "instructions", "parse", "stall", "many", "loops", "ybio", "bulk", "point", "pipeline", "script", "oltp", "cbc", "store", "peers", "all"])
    parser.add_argument("--size", default="1", help="size for cbc, in GB")
    parser.add_argument("--scale", type=int, default=50, help="scale of the tables for script")
    parser.add_argument("--runs", type=int, default=10_000, help="stored runs for store")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=10)
    arguments = parser.parse_args()
    wanted = set(arguments.case)
    if "peers" in wanted:
        wanted |= PEERS
    require_programs(wanted)
    report = Report()
    with Server() as server:
        if wanted & {"socket", "all"}:
            many_sessions(server, report, arguments, "socket", server.socket, SOCKET)
        if wanted & {"tcp", "all"}:
            many_sessions(server, report, arguments, "tcp", server.tcp, TCP)
        if wanted & {"batch1000", "all"}:
            batch1000(server, report, arguments)
        if wanted & {"load", "all"}:
            load(server, report, arguments)
        for name, case in [("floor", floor), ("few", few), ("drivers", drivers), ("workers", workers), ("overhead", overhead), ("instructions", instructions), ("parse", parse), ("stall", stall), ("many", many), ("loops", loops), ("ybio", ybio), ("bulk", bulk), ("point", point), ("pipeline", pipeline), ("script", script), ("oltp", oltp), ("cbc", cbc), ("store", store)]:
            if wanted & {name, "all"}:
                case(server, report, arguments)
    report.table()
    sys.exit(0 if report.met else 1)


if __name__ == "__main__":
    main()
