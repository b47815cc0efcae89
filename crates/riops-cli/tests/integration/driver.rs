//! `--driver`, also where `io_uring` is forbidden.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::fixture::{CommandOutput, Database, database};

/// `io_uring_setup`, the same on every architecture.
const SETUP: i64 = 425;
/// The error of the default seccomp profile of Docker.
const EPERM: u32 = 1;

/// Runs riops from a thread whose filter forbids `io_uring`. The process inherits the filter.
fn run_without_rings(database: &Database, line: &str) -> CommandOutput {
    let run = || {
        let rules = BTreeMap::from([(SETUP, Vec::new())]);
        let forbidden = SeccompAction::Errno(EPERM);
        let architecture = std::env::consts::ARCH.try_into().unwrap();
        let filter =
            SeccompFilter::new(rules, SeccompAction::Allow, forbidden, architecture).unwrap();
        let filter = BpfProgram::try_from(filter).unwrap();
        seccompiler::apply_filter(&filter).unwrap();
        database.riops(line)
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
fn falls_back_to_epoll_and_says_so() {
    let database = database("driver_forbidden");
    let line = "run ping -c 8 -j 2 --warmup 0 --transactions 100 --output json";
    let ran = run_without_rings(&database, line).expect(0);
    let ran = ran.stderr_contains("epoll is used, because io_uring is not available");
    let record = ran.json();
    assert_eq!(record["client"]["driver"], "epoll");
    assert_eq!(record["stages"][0]["transactions"], 100);
    run_without_rings(&database, &format!("{line} --driver epoll")).expect(0);
    let refused = run_without_rings(&database, &format!("{line} --driver io-uring")).expect(1);
    refused.stderr_contains("cannot use io_uring");
}
