//! The list of the calls that remove, overwrite, drop, execute or end something: per file, with the proof that the object
//! belongs to riops.

use crate::destructive::Place;

pub(crate) const LIST: &[Place] = &[
    (
        "crates/riops-cli/src/commands/server.rs",
        &[(".exec()", 1)],
        "executes psql, as the user asked for",
    ),
    (
        "crates/riops/src/experiment/build.rs",
        &[(".truncate(true)", 1), ("remove_dir_all", 2)],
        "in a directory that is not a link, was created by riops or empty, or has the empty lock file of riops, and is locked; files are opened without following links",
    ),
    (
        "crates/riops-cli/src/site.rs",
        &[("remove_file", 1)],
        "pages that the manifest of the gallery names: parsed names in the folder or in a folder of galleries, no link",
    ),
    (
        "crates/riops-cli/src/title.rs",
        &[(".exec()", 1)],
        "executes riops itself, to hide a password",
    ),
    (
        "crates/riops-measure/src/dataset/adopted.rs",
        &[("delete from", 1)],
        "rows of the registry, whose table has the comment of riops and a trusted owner",
    ),
    (
        "crates/riops-measure/src/dataset/catalog.rs",
        &[("drop routine", 1), ("drop view", 1)],
        "routines with the comment of riops; temporary views of its name and columns on a table of the dataset",
    ),
    (
        "crates/riops-measure/src/dataset/database.rs",
        &[("drop database", 4)],
        "databases with the comment of riops; the last one was created by this process just before",
    ),
    (
        "crates/riops-measure/src/dataset/error.rs",
        &[("drop database", 1), ("drop table", 1)],
        "texts of errors",
    ),
    (
        "crates/riops-measure/src/dataset/ledger.rs",
        &[("delete from", 1)],
        "the row of this run in the registry",
    ),
    (
        "crates/riops-measure/src/dataset/prepare.rs",
        &[("truncate ", 1)],
        "a table that this preparation created, under its lock",
    ),
    (
        "crates/riops-measure/src/dataset/registry.rs",
        &[("delete from", 2), ("drop schema", 1), ("drop table", 4)],
        "tables with the comment of riops to which nothing of others is attached; the schema if it has the comment and is empty",
    ),
    (
        "crates/riops-measure/src/engine/tally.rs",
        &[("pg_terminate_backend", 1)],
        "a session that this run opened, by process id and start time",
    ),
    (
        "crates/riops/src/experiment/reset.rs",
        &[("drop database", 2)],
        "databases with the comment of the experiment, or its whole parsed id in the name; and the text of an error",
    ),
    (
        "crates/riops-measure/src/host/output_file.rs",
        &[("File::create(", 1), ("persist(", 1)],
        "the file that the user named; no link of another user is followed",
    ),
    (
        "crates/riops-measure/src/probe/disk.rs",
        &[("fs::remove_dir(", 1), ("remove_file", 1)],
        "a scratch directory with a free lock and no other file, or of this process",
    ),
    ("crates/riops-measure/src/probe/fio.rs", &[(".kill()", 1)], "a child process"),
    (
        "crates/riops-measure/src/probe/perf.rs",
        &[(".kill()", 1)],
        "the perf that this process started",
    ),
    (
        "crates/riops-measure/src/probe/topology.rs",
        &[("fs::write(", 1), ("remove_file", 1)],
        "only in tests",
    ),
    (
        "crates/riops-measure/src/run/observe.rs",
        &[("kill_process(", 1)],
        "passes a signal that riops got on to the command that it started",
    ),
    (
        "crates/riops-measure/src/server/embedded/download.rs",
        &[("fs::rename(", 1), ("remove_dir_all", 1)],
        "the partial download in the cache of riops, under its lock",
    ),
    (
        "crates/riops-measure/src/server/embedded/files.rs",
        &[("fs::remove_dir(", 1), ("fs::rename(", 1), ("remove_dir_all", 2), ("remove_file", 2)],
        "state and marker files in a home directory that has the mark of riops",
    ),
    (
        "crates/riops-measure/src/server/embedded/postmaster.rs",
        &[("kill_process(", 2), ("pidfd_send_signal(", 1), ("remove_file", 1)],
        "postgres processes whose working directory is that data directory; its stale pid file",
    ),
    (
        "crates/riops-measure/src/server/embedded/state.rs",
        &[("drop role", 2)],
        "the helper role in a data directory that riops initialized",
    ),
    (
        "crates/riops-measure/src/server/embedded/work.rs",
        &[("remove_dir_all", 2)],
        "the directory in which this process initializes or removes, or one with the marker of a killed riops; the data directory moved into it has the inode and the system identifier of the mark",
    ),
    (
        "crates/riops/src/store/experiment_lock.rs",
        &[("fs::remove_dir(", 1), ("remove_file", 1)],
        "the lock file that this process holds, named by a parsed id, empty and no link; and its empty directory",
    ),
    (
        "crates/riops/src/store/live/files.rs",
        &[("fs::remove_dir(", 1), ("fs::rename(", 1), ("remove_file", 2)],
        "files with the id of a run as name and in the first line whose lock is free, or of this process",
    ),
    (
        "crates/riops-measure/src/workload/cbc/step.rs",
        &[("drop table", 1)],
        "part of the generated drop-in script; removed before riops executes it",
    ),
    (
        "crates/riops-measure/src/workload/script/initialize.rs",
        &[("drop table", 2), ("truncate ", 1)],
        "the tables of pgbench, as pgbench -i does",
    ),
    (
        "crates/riops-measure/src/workload/script/mod.rs",
        &[("truncate ", 1)],
        "pgbench_history, as pgbench does, with --vacuum-first or in the drop-in",
    ),
    ("sql/cbc/cbc-psql.sql", &[("drop table", 1)], "a drop-in script that users execute"),
    (
        "sql/cbc/cbc-t00-ctas.sql",
        &[("drop table", 1)],
        "a drop-in script that users execute; riops removes this statement",
    ),
    (
        "sql/fleet/abandon.sql",
        &[("delete from", 1)],
        "the row in the store of the fleet of this agent, all of whose agents have failed",
    ),
    (
        "sql/fleet/leave.sql",
        &[("delete from", 1)],
        "the row of this agent in the store, and the rows of the lost agents of its fleet, which has ended",
    ),
    (
        "sql/fleet/purge.sql",
        &[("delete from", 1)],
        "rows of the store of fleets none of whose agents has had a heartbeat for minutes",
    ),
    (
        "sql/store/experiment_delete.sql",
        &[("delete from", 1)],
        "the experiment that the user named, after a confirmation",
    ),
    (
        "sql/fleet/remove.sql",
        &[("delete from", 1)],
        "the row in the store of the fleet of this agent, which has no agents any more",
    ),
    ("sql/live/end.sql", &[("delete from", 1)], "the row of this run in the store"),
    (
        "sql/live/forget.sql",
        &[("delete from", 1)],
        "rows of the store of runs without a heartbeat for an hour",
    ),
    ("sql/live/state.sql", &[("delete from", 1)], "the events of this run in the store"),
    ("sql/oltp/delete.sql", &[("delete from", 1)], "the workload: tables of the dataset"),
    ("sql/store/device_limit_delete.sql", &[("delete from", 1)], "rows of the store"),
    ("sql/store/run_delete.sql", &[("delete from", 1)], "a run that the user removes"),
    ("sql/store/tags_delete.sql", &[("delete from", 1)], "tags of a run in the store"),
    (
        "sql/ybio.sql",
        &[("drop procedure", 1), ("drop table", 1), ("drop view", 2)],
        "a drop-in script that users execute; the loop that riops installs drops its own temporary view",
    ),
];
