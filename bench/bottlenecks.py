#!/usr/bin/env python3
"""Planted bottlenecks: whether `riops run` names what limits a run.

Usage: bench/bottlenecks.py [BOTTLENECK…] [--seconds 5] [--busy 0,2]

Each bottleneck is tried on the quiet machine and beside two busy processes (--busy). The bottleneck in the record must be the planted
one. Starts the embedded server and stops it at the end. Requires psql, pgbouncer, nftables, root (for quotas of the first version of
control groups, and to drop segments) and the release binary (cargo build --release). Exits with 1 if a bottleneck is missing or wrong.
"""

import argparse
import contextlib
import csv
import dataclasses
import io
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from causes import RIOPS, SELECT, TABLE, UPDATE, Place

AGGREGATE = "select sum(n), max(c) from t;\n"
# More rows than the memory that the server may use while its reads are throttled.
READ = "\\set id random(1, 8000000)\nselect c from big where id = :id;\n"
BIG = [
    "create table if not exists big (id int primary key, c text)",
    "insert into big select g, repeat('x', 100) from generate_series(1, 8000000) g"
    " where not exists (select from big)",
    "vacuum analyze big",
]
# The table is locked for nine tenths of the time.
LOCK = """do $$ begin for i in 1..100000 loop lock table t in share mode; perform pg_sleep(0.09);
commit; perform pg_sleep(0.01); end loop; end $$"""
# Expressions that cost the client more than a read costs the server.
HEAVY = "".join("\\set z random_zipfian(1, 1000000, 1.5)\n" for _ in range(400)) + SELECT


@dataclasses.dataclass
class Bottleneck:
    """What is planted, and what riops may call it."""

    # The words for it in records; beside busy processes, and on the quiet machine.
    quiet: tuple
    busy: tuple = ()
    script: str = SELECT
    options: tuple = ()
    # Before the program of riops.
    prefix: tuple = ()
    # Planted while riops runs: a method of `Planter` that yields the address of the server.
    planted: str = "nothing"


BOTTLENECKS = {
    "server CPU": Bottleneck(("cpu",), ("cpu_used_by_others",), AGGREGATE, ("-c", "4")),
    "quota": Bottleneck(("server_cpu",), (), AGGREGATE, ("-c", "4"), planted="quota"),
    "read throttle": Bottleneck(("waits",), (), READ, ("-c", "8"), planted="throttle"),
    "WAL flush": Bottleneck(("waits",), (), UPDATE, ("-c", "16"), planted="slow_flush"),
    "lock of another session": Bottleneck(("locks",), (), UPDATE, ("-c", "8"), planted="lock"),
    "row contention": Bottleneck(
        ("locks",), (), "update t set n = n + 1 where id = 1;\n", ("-c", "16")
    ),
    "network delay": Bottleneck(("network",), (), SELECT, ("-c", "4"), planted="delay"),
    "loss": Bottleneck(("network",), (), SELECT, ("-c", "8"), planted="loss"),
    "client": Bottleneck(
        ("client",), ("client",), HEAVY, ("-c", "8", "-j", "1"), ("taskset", "-c", "0")
    ),
    "pool of 2": Bottleneck(
        ("pool",),
        (),
        "select pg_sleep(0.005);\n",
        ("-c", "16", "--protocol", "extended"),
        planted="pool",
    ),
    "think time": Bottleneck(
        ("think_time",), (), SELECT + "\\sleep 20 ms\n", ("-c", "8")
    ),
    "rate": Bottleneck(("requested_rate",), (), SELECT, ("-c", "8", "--rate", "300")),
}


class Planter(Place):
    """Plants a bottleneck into the embedded server, or on the way to it."""

    def prepare(self):
        self.call(RIOPS, "server", "stop")
        self.call(RIOPS, "server", "start", "--server-set", "shared_buffers=64MB")
        self.url = self.call(RIOPS, "server", "url").strip()
        self.sql("postgres", ["drop database if exists ca with (force)", "create database ca"])
        self.sql("ca", ["create extension if not exists pg_stat_statements", *TABLE, *BIG])

    @contextlib.contextmanager
    def nothing(self):
        yield self.database("ca")

    def server_processes(self):
        """Returns the server's processes, the first one before its children."""
        folder = self.call("psql", self.url, "-XqAtc", "show data_directory").strip()
        with open(os.path.join(folder, "postmaster.pid"), encoding="ascii") as file:
            first = file.readline().strip()
        children = subprocess.run(["pgrep", "-P", first], text=True, capture_output=True).stdout
        return [first, *children.split()]

    @contextlib.contextmanager
    def group(self, limits):
        """Puts the server into control groups with these limits."""
        folders = []
        try:
            for controller, files in limits.items():
                folder = f"/sys/fs/cgroup/{controller}/riops-bottleneck"
                os.makedirs(folder, exist_ok=True)
                folders.append(folder)
                for name, value in files.items():
                    write(os.path.join(folder, name), value)
                for process in self.server_processes():
                    write(os.path.join(folder, "cgroup.procs"), process)
            yield self.database("ca")
        finally:
            for folder in folders:
                with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
                    inside = file.read().split()
                for process in inside:
                    with contextlib.suppress(OSError):
                        write(os.path.join(os.path.dirname(folder), "cgroup.procs"), process)
                os.rmdir(folder)

    def quota(self):
        return self.group({"cpu": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "40000"}})

    def throttle(self):
        folder = self.call("psql", self.url, "-XqAtc", "show data_directory").strip()
        device = os.stat(folder).st_dev
        name = f"{os.major(device)}:{os.minor(device)}"
        limits = {
            "blkio": {"blkio.throttle.read_iops_device": f"{name} 400"},
            "memory": {"memory.limit_in_bytes": str(300 << 20)},
        }
        # Cached pages belong to the groups that read them.
        os.sync()
        write("/proc/sys/vm/drop_caches", "1")
        return self.group(limits)

    @contextlib.contextmanager
    def slow_flush(self):
        """Limits the writes of the server: a flush of the WAL waits for the device."""
        folder = self.call("psql", self.url, "-XqAtc", "show data_directory").strip()
        device = os.stat(folder).st_dev
        name = f"{os.major(device)}:{os.minor(device)}"
        with self.group({"blkio": {"blkio.throttle.write_iops_device": f"{name} 200"}}) as url:
            yield url

    @contextlib.contextmanager
    def lock(self):
        url = self.database("ca")
        options = ("-Xq", "-c", "set client_connection_check_interval = 100")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(("psql", url, *options, "-c", LOCK), **quiet) as holder:
            try:
                yield url
            finally:
                holder.terminate()

    @contextlib.contextmanager
    def delay(self):
        yield f"postgresql://postgres@127.0.0.1:{self.relay(0.005)}/ca?sslmode=disable"

    @contextlib.contextmanager
    def loss(self):
        """Drops 8% of the segments of a relay."""
        port = self.relay(0.0)
        rule = "add rule inet riops_bottleneck input tcp {} " + str(port)
        rule += " numgen random mod 100 < 8 drop"
        rules = [
            "add table inet riops_bottleneck",
            "add chain inet riops_bottleneck input { type filter hook input priority 0 ; }",
            rule.format("dport"),
            rule.format("sport"),
        ]
        subprocess.run(["nft", "-f", "-"], input="\n".join(rules) + "\n", text=True, check=True)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/ca?sslmode=disable"
        finally:
            self.call("nft", "delete", "table", "inet", "riops_bottleneck")

    @contextlib.contextmanager
    def pool(self):
        """Starts a pooler with two connections to the server."""
        text = self.call("psql", self.url, "-XqAtc", "show unix_socket_directories; show port")
        folder, port = text.split()
        with socket.create_server(("127.0.0.1", 0)) as free:
            own = free.getsockname()[1]
        password = re.search(r"//postgres:([^@]*)@", self.url)
        password = f" password={password[1]}" if password else ""
        path = self.write(
            "pgbouncer.ini",
            f"[databases]\nca = host={folder} port={port} user=postgres{password}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {own}\nauth_type = any\n"
            "pool_mode = transaction\nmax_client_conn = 200\ndefault_pool_size = 2\nunix_socket_dir =\n"
            "ignore_startup_parameters = extra_float_digits,options\n",
        )
        os.chmod(self.folder, 0o755)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(("pgbouncer", "-u", "postgres", path), **quiet) as pooler:
            try:
                time.sleep(1)
                yield f"postgresql://postgres@127.0.0.1:{own}/ca?sslmode=disable"
            finally:
                pooler.send_signal(signal.SIGINT)

    def named(self, bottleneck, seconds, busy):
        """Returns the word of the record, and the sentence about it."""
        script = self.write("script.sql", bottleneck.script)
        with contextlib.ExitStack() as stack:
            url = stack.enter_context(getattr(self, bottleneck.planted)())
            for _ in range(busy):
                load = ("sha256sum", "/dev/zero")
                process = stack.enter_context(subprocess.Popen(load, stdout=subprocess.DEVNULL))
                stack.callback(process.kill)
            run = ("run", "script", "-f", script, "-d", url, "--duration", f"{seconds}s", "--warmup", "1s")
            command = (*bottleneck.prefix, RIOPS, "-q", *run, *bottleneck.options, "-o", "csv")
            rows = list(csv.DictReader(io.StringIO(self.call(*command))))
        details = self.call(RIOPS, "runs", "show", "last")
        line = re.search(r"^\s*bottleneck\s+(.*(?:\n {14,}.*)*)", details, re.MULTILINE)
        return rows[-1]["bottleneck"], " ".join(line[1].split()) if line else ""


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bottlenecks", nargs="*", metavar="BOTTLENECK", help=", ".join(BOTTLENECKS))
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--busy", default="0,2", help="numbers of busy processes beside it")
    arguments = parser.parse_args()
    counts = [int(text) for text in arguments.busy.split(",")]
    right, wrong = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        planter = Planter(folder)
        try:
            planter.prepare()
            for name in arguments.bottlenecks or BOTTLENECKS:
                bottleneck = BOTTLENECKS[name]
                for busy in counts:
                    word, text = planter.named(bottleneck, arguments.seconds, busy)
                    expected = busy and bottleneck.busy or bottleneck.quiet
                    is_right = word in expected
                    right, wrong = right + is_right, wrong + (not is_right)
                    print(f"{'right' if is_right else 'WRONG'}  {name}, beside {busy}: {word}", flush=True)
                    print(f"         {text}", flush=True)
        finally:
            planter.call(RIOPS, "server", "stop")
    print(f"{right} right, {wrong} missing or wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
