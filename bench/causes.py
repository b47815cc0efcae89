#!/usr/bin/env python3
"""Planted causes: whether `riops ab` names the reason why a variant is slower or faster.

Usage: bench/causes.py [CAUSE…] [--rounds 8] [--seconds 3]

Each cause is planted into the second one of two databases, servers or plans. The first reason that riops names must be
the planted one. Starts the embedded server and stops it at the end. Requires psql and the release binary
(cargo build --release), and a machine without other load. Exits with 1 if a reason is missing or wrong.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RIOPS = os.environ.get("RIOPS_BINARY", os.path.join(ROOT, "target", "release", "riops"))

UPDATE = "\\set id random(1, 20000)\nupdate t set n = n + 1 where id = :id;\n"
SELECT = "\\set id random(1, 20000)\nselect c from t where id = :id;\n"
BY_K = "\\set k random(0, 999)\nselect count(c) from t where k = :k;\n"
SORT = "select count(*) from (select c, n, id from t order by c, id desc offset 10) s;\n"
AGGREGATE = "select sum(n), max(c) from t;\n"
JOINS = (
    "\\set id random(1, 20000)\nselect a.c from t a join t b on a.id = b.id"
    " join t c on c.id = b.id join t d on d.id = c.id where a.id = :id;\n"
)
TABLE = [
    "create table t (id int primary key, n int not null default 0, k int not null, c text)"
    " with (fillfactor = 90)",
    "insert into t select g, 0, g % 1000, repeat('x', 100) from generate_series(1, 20000) g",
    "create index t_k on t (k)",
    "vacuum analyze t",
]


@dataclasses.dataclass
class Cause:
    """What is planted, and how it is called."""

    # A regular expression that the first reason must match.
    named: str
    script: str = SELECT
    # Statements in both databases, in the second one, and in both after these.
    both: list = dataclasses.field(default_factory=list)
    planted: list = dataclasses.field(default_factory=list)
    after: list = dataclasses.field(default_factory=list)
    # Options of both variants, and of each.
    options: tuple = ()
    of_each: tuple = ((), ())
    # Another script of the second variant.
    other_script: str = ""
    # Values of --server-set, with a workload instead of a script.
    server_set: tuple = ()
    workload: tuple = ()
    # Seconds by which a relay delays each piece of the second variant.
    delay_s: float = 0.0
    # A command that runs beside the second variant.
    beside: tuple = ()


TRIGGER = """create function f() returns trigger language plpgsql as
$$ begin for i in 1..300 loop new.n := new.n + 1; end loop; return new; end $$"""
# Without the interval, the session goes on after the end of psql.
LOCK_OPTIONS = ("-c", "set client_connection_check_interval = 100")
LOCK = """do $$ begin for i in 1..100000 loop lock table t in share mode; perform pg_sleep(0.03);
commit; perform pg_sleep(0.03); end loop; end $$"""
LOAD = ("tables = 1", "table-size = 50000", "prepare = true")


def setting(name, value):
    """Sets a parameter of the second database."""
    return f"alter database cb set {name} = {value}"


CAUSES = {
    "index": Cause("index t_n", UPDATE, planted=["create index t_n on t (n, c)"]),
    "trigger": Cause(
        "trigger",
        UPDATE,
        planted=[TRIGGER, "create trigger r before update on t for each row execute function f()"],
    ),
    "foreign key": Cause(
        "constraint|foreign",
        "\\set id random(1, 20000)\n\\set k random(0, 999)\nupdate t set k = :k where id = :id;\n",
        both=["create table p (k int primary key)", "insert into p select generate_series(0, 999)"],
        planted=["alter table t add constraint t_p foreign key (k) references p (k)"],
    ),
    "missing index": Cause("t_k|plan|Scan", BY_K, planted=["drop index t_k"]),
    "fillfactor": Cause(
        "fillfactor",
        "select sum(n), max(c) from u;\n",
        both=["create table u (id int primary key, n int, c text)"],
        planted=["alter table u set (fillfactor = 10)"],
        after=[
            "insert into u select g, 0, repeat('x', 100) from generate_series(1, 20000) g",
            "vacuum analyze u",
        ],
    ),
    "column": Cause(
        "column",
        "\\set id random(1, 20000)\nselect * from t where id = :id;\n",
        planted=[
            "alter table t add column big text",
            "alter table t alter big set storage external",
            "update t set big = repeat('y', 6000)",
            "vacuum full t",
            "analyze t",
        ],
    ),
    "unlogged": Cause("logged|persistence", UPDATE, planted=["alter table t set unlogged"]),
    "dead rows": Cause(
        "dead rows|autovacuum|size",
        AGGREGATE,
        planted=["alter table t set (autovacuum_enabled = off)"] + ["update t set n = 0"] * 12,
    ),
    "statistics": Cause(
        "plan|Scan|Loop|Join",
        "\\set k random(0, 990)\nselect count(a.c) from t a join t b on a.k = b.k"
        " where a.k between :k and :k + 9 and b.id < 200;\n",
        planted=[
            "delete from pg_statistic where starelid = 't'::regclass",
            "update pg_class set reltuples = 1, relpages = 1 where relname = 't'",
        ],
    ),
    "synchronous_commit": Cause(
        "synchronous_commit", UPDATE, planted=[setting("synchronous_commit", "off")]
    ),
    "work_mem": Cause("work_mem", SORT, planted=[setting("work_mem", "'64kB'")]),
    "jit": Cause(
        "jit",
        AGGREGATE,
        planted=[
            setting("jit", "on"),
            setting("jit_above_cost", "0"),
            setting("jit_optimize_above_cost", "0"),
            setting("jit_inline_above_cost", "0"),
        ],
    ),
    "random_page_cost": Cause(
        "random_page_cost|plan|Scan",
        BY_K,
        planted=[setting("random_page_cost", "100000")],
    ),
    "plan_cache_mode": Cause(
        "plan_cache_mode",
        JOINS,
        planted=[setting("plan_cache_mode", "force_custom_plan")],
        options=('protocol = "prepared"',),
    ),
    "commit_delay": Cause(
        "commit_delay|commit_siblings",
        UPDATE,
        planted=[setting("commit_delay", "20000"), setting("commit_siblings", "0")],
    ),
    "parallel": Cause(
        "[pP]arallel",
        AGGREGATE,
        both=[
            "insert into t select g, 0, g % 1000, repeat('x', 100)"
            " from generate_series(20001, 400000) g",
            "vacuum analyze t",
        ],
        planted=[setting("max_parallel_workers_per_gather", "0")],
        options=("sessions = 1",),
    ),
    "logging": Cause("log_", planted=[setting("log_min_duration_statement", "0")]),
    "delay": Cause("address|network", delay_s=0.002),
    "protocol": Cause(
        "protocol", JOINS, of_each=(('protocol = "prepared"',), ('protocol = "simple"',))
    ),
    "neighbors": Cause(
        "CPU used by other",
        beside=("sh", "-c", "sha256sum /dev/zero & sha256sum /dev/zero"),
    ),
    "lock": Cause("locks of other sessions", UPDATE, beside=("psql", "{url}", "-Xq", *LOCK_OPTIONS, "-c", LOCK)),
    "sessions": Cause(
        "sessions",
        "update t set n = n + 1 where id = 1;\n",
        of_each=(("sessions = 2",), ("sessions = 16",)),
    ),
    "script": Cause(
        "script", other_script=SELECT + "select count(c) from t where k = :id % 1000;\n"
    ),
    "shared_buffers": Cause(
        "shared_buffers",
        workload=("rows", "rows = 200000", "prepare = true"),
        server_set=("shared_buffers=256MB", "shared_buffers=1MB"),
    ),
    "fsync": Cause(
        "fsync", workload=("oltp update-index", *LOAD), server_set=("fsync=on", "fsync=off")
    ),
    "checkpoints": Cause(
        "max_wal_size|checkpoint",
        workload=("oltp update-index", *LOAD),
        server_set=("max_wal_size=2GB", "max_wal_size=32MB"),
    ),
}


class Place:
    """The embedded server, and a new store."""

    def __init__(self, folder):
        self.folder = folder
        foreign = ("PG", "RIOPS_")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(foreign)}
        self.env["RIOPS_STORE"] = os.path.join(folder, "runs.sqlite")
        self.url = ""

    def call(self, *command):
        found = subprocess.run(command, env=self.env, text=True, capture_output=True)
        if found.returncode != 0:
            sys.exit(f"{' '.join(command)}: {found.stderr}")
        return found.stdout

    def database(self, name):
        return re.sub(r"(@[^/]*)/postgres", rf"\1/{name}", self.url)

    def sql(self, database, statements):
        for statement in statements:
            options = ("-XqAt", "-v", "ON_ERROR_STOP=1", "-c", statement)
            self.call("psql", self.database(database), *options)

    def plant(self, cause):
        if cause.server_set:
            # riops starts it with the settings of each variant.
            self.call(RIOPS, "server", "stop")
            return
        self.call(RIOPS, "server", "start")
        self.url = self.call(RIOPS, "server", "url").strip()
        for name in ("ca", "cb"):
            self.sql("postgres", [f"drop database if exists {name} with (force)"])
            self.sql("postgres", [f"create database {name}"])
            self.sql(name, ["create extension if not exists pg_stat_statements", *TABLE])
            self.sql(name, cause.both)
        self.sql("cb", cause.planted)
        for name in ("ca", "cb"):
            self.sql(name, cause.after)

    def relay(self, delay_s):
        """Returns the port of a relay to the server that holds each piece this long."""
        text = self.call("psql", self.url, "-XqAtc", "show unix_socket_directories; show port")
        server = "{}/.s.PGSQL.{}".format(*text.split())
        listener = socket.create_server(("127.0.0.1", 0))

        def copy(one, other):
            with contextlib.suppress(OSError):
                while piece := one.recv(65536):
                    time.sleep(delay_s)
                    other.sendall(piece)
            for end in (one, other):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

        def serve():
            while True:
                client, _ = listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(server)
                for ends in ((client, upstream), (upstream, client)):
                    threading.Thread(target=copy, args=ends, daemon=True).start()

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]

    @contextlib.contextmanager
    def beside(self, command):
        """Executes a command while sessions of riops are in the second database."""
        ended = threading.Event()

        def watch():
            own = "select count(*) from pg_stat_activity where datname = 'cb' and application_name <> 'psql'"
            words = [word.replace("{url}", self.database("cb")) for word in command]
            running = None
            while not ended.wait(0.2):
                is_measured = int(self.call("psql", self.url, "-XqAtc", own)) >= 2
                if is_measured and running is None:
                    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                    running = subprocess.Popen(words, start_new_session=True, **quiet)
                elif not is_measured and running is not None:
                    os.killpg(running.pid, 15)
                    running.wait()
                    running = None
            if running is not None:
                os.killpg(running.pid, 15)
                running.wait()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def variant(self, cause, side, seconds):
        """Writes the file of a variant, and returns its path."""
        lines = [f'warmup = "500ms"\nduration = "{seconds}s"', *cause.options, *cause.of_each[side]]
        if not any(line.startswith("sessions") for line in lines):
            lines.append("sessions = 2")
        if cause.workload:
            workload, *options = cause.workload
            server_set = f"server-set = {json.dumps(cause.server_set[side])}"
            lines += [f"workload = {json.dumps(workload)}", *options, server_set]
        else:
            name = ("ca", "cb")[side]
            url = self.database(name)
            if cause.delay_s:
                port = self.relay(cause.delay_s * side)
                url = f"postgresql://postgres@127.0.0.1:{port}/{name}?sslmode=disable"
            if side and cause.other_script:
                file = self.write("other.sql", cause.other_script)
            else:
                file = self.write("script.sql", cause.script)
            lines += [
                'workload = "script"',
                f"file = {json.dumps(file)}",
                f"database = {json.dumps(url)}",
            ]
        return self.write(f"{'ab'[side]}.toml", "\n".join(lines) + "\n")

    def reasons(self, cause, rounds, seconds):
        """Returns what changed, the largest first, each with the reasons that riops names."""
        self.plant(cause)
        files = [self.variant(cause, side, seconds) for side in (0, 1)]
        command = [RIOPS, "-q", "ab", *files, "--trust", "--rounds-max", str(rounds)]
        with self.beside(cause.beside) if cause.beside else contextlib.nullcontext():
            found = json.loads(self.call(*command, "--output", "json"))
        change = found.get("time") or {}
        parts = [part for part in change.get("parts", []) if part["is_cause"]]
        named = [(part["part"], part["change_us"], part.get("beside", [])) for part in parts]
        # Without a part that changed, riops names what may be the reason.
        return named or [("unknown", 0, change.get("candidates", []))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("causes", nargs="*", metavar="CAUSE", help=", ".join(CAUSES))
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        place = Place(folder)
        try:
            for name in arguments.causes or CAUSES:
                cause = CAUSES[name]
                reasons = place.reasons(cause, arguments.rounds, arguments.seconds)
                first = next((text for _, _, texts in reasons for text in texts[:1]), None)
                is_right = first is not None and re.search(cause.named, first) is not None
                print(f"{'right' if is_right else 'WRONG'}  {name}: {first}", flush=True)
                for part, change_us, texts in reasons[:3]:
                    print(f"         {part} {change_us:+.0f} µs: {' | '.join(texts)}", flush=True)
                if not is_right:
                    wrong.append(name)
        finally:
            place.call(RIOPS, "server", "stop")
    print(f"{len(arguments.causes or CAUSES) - len(wrong)} right, {len(wrong)} missing or wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
