//! CPU time and I/O of all processes of this machine, to separate the server's load from the load of its neighbors.
//!
//! Source: proc(5), /proc/PID/stat and /proc/PID/io. Processes of other PID namespaces are not visible.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use super::cpu::MachineCpu;
use super::reading::since;
use crate::host::process::{self, Io, ScheduleTimes, Stat, TICKS_PER_S};

/// Maximum number of processes to read. Beyond it, nothing is reported: a part would be misleading.
const PROCESSES_MAX: usize = 20_000;
/// The parent of all kernel threads.
const KERNEL_THREADS: i32 = 2;
/// Attempts to find the processes of the server that have exited, while others exit.
const READS_MAX: usize = 5;
/// Maximum number of neighbors to name.
const NAMED_MAX: usize = 5;
/// Processes with less than this share of one CPU are not named.
const NAMED_CPUS_MIN: f64 = 0.05;

/// One process. CPU time and I/O include its children that have exited.
#[derive(Debug, Clone, PartialEq)]
struct Process {
    name: String,
    parent: i32,
    started_ticks: u64,
    cpu_s: f64,
    /// Part of `cpu_s` in user mode.
    user_s: f64,
    /// Part of `cpu_s` used by children that have exited.
    reaped_s: f64,
    /// Time in which it was runnable, but had no processor, without its children.
    run_queue_s: Option<f64>,
    io: Option<Io>,
}

/// The processes of this machine at one point in time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProcessTable {
    at: Instant,
    machine: Option<MachineCpu>,
    processes: BTreeMap<i32, Process>,
}

/// CPU use and device I/O of the server and of its neighbors: processes that are neither the server nor riops
/// nor the kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessesUse {
    /// Time between the two readings, in seconds.
    pub seconds: f64,
    /// CPU seconds of all processes of the server, if it is local.
    pub server_cpu_s: Option<f64>,
    /// Seconds in which processes of the server could run, but had no processor; without processes that have ended.
    pub server_run_queue_s: Option<f64>,
    /// CPU seconds of the neighbors.
    pub neighbors_cpu_s: f64,
    /// CPU seconds in user mode that no visible process explains, of other containers or hidden ones.
    pub unseen_cpu_s: Option<f64>,
    /// Neighbors by name with the number of CPUs that they used, the busiest first.
    pub neighbors: Vec<(String, f64)>,
    /// Bytes that server and riops read from devices, if all of them can be observed.
    pub own_read_bytes: Option<u64>,
    /// Bytes that server and riops wrote to devices, if all of them can be observed.
    pub own_written_bytes: Option<u64>,
    /// Bytes that the neighbors read from any device, if all of them can be observed.
    pub neighbors_read_bytes: Option<u64>,
    /// Bytes that the neighbors wrote to any device, if all of them can be observed.
    pub neighbors_written_bytes: Option<u64>,
}

/// A process that has exited.
struct Moved<'a> {
    from: Group,
    /// The group of the process that inherited its time.
    to: Option<Group>,
    process: &'a Process,
}

/// Where the server runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// On this machine; with its first process.
    Here(i32),
    /// On another machine.
    #[default]
    Elsewhere,
    /// Perhaps on this machine: behind a pooler, a tunnel, or the port of a container.
    Unknown,
}

impl Place {
    /// Returns the first process of a server on this machine.
    pub(crate) fn first_process(self) -> Option<i32> {
        match self {
            Self::Here(process) => Some(process),
            _ => None,
        }
    }
}

/// Names of the processes of servers. If the place of the server is unknown, they may be its own, and are not neighbors.
const SERVERS: [&str; 3] = ["postgres", "yb-master", "yb-tserver"];
/// Names of poolers, and of what connects to containers: unless the server is elsewhere, the sessions may use them.
const PROXIES: [&str; 6] =
    ["docker-proxy", "haproxy", "odyssey", "pgbouncer", "pgcat", "rootlessport"];

/// The process of riops, and the place of the server.
type Owners = (i32, Place);

/// The group of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Client,
    Server,
    Kernel,
    /// Perhaps of the server.
    Unknown,
    Neighbor,
}

impl ProcessTable {
    /// Reads /proc; `None` if it is not available. When a process of the server exits, its time moves to the server's
    /// first process. Processes that exit during the reading are removed afterwards, so that they do not count twice.
    pub(super) fn read(server: Place) -> Option<Self> {
        let mut table = Self::read_once()?;
        if let Some(first) = server.first_process() {
            for _ in 0..READS_MAX {
                let own: Vec<i32> =
                    table.processes_of(&[Group::Server], (0, server)).map(|(id, _)| id).collect();
                let reaped_s = table.processes.get(&first).map(|process| process.reaped_s);
                let exists = |id: i32| {
                    let started = Stat::read(id).map(|stat| stat.started);
                    started == table.processes.get(&id).map(|process| process.started_ticks)
                };
                let gone: Vec<i32> = own.into_iter().filter(|id| !exists(*id)).collect();
                table.processes.retain(|id, _| !gone.contains(id));
                let Some(process) = read_process(first) else {
                    break;
                };
                let is_final = Some(process.reaped_s) == reaped_s && gone.is_empty();
                table.processes.insert(first, process);
                if is_final {
                    break;
                }
            }
        }
        Some(table.with_run_queue(server))
    }

    fn read_once() -> Option<Self> {
        let mut ids: Vec<i32> = process::ids(Path::new("/proc")).collect();
        // The sessions of a run are the newest processes, and at its end they are about to exit. The I/O of a
        // process that exits can be read only by root.
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let mut table = BTreeMap::new();
        for id in ids {
            // A process may exit at any time.
            if let Some(process) = read_process(id) {
                table.insert(id, process);
            }
            if table.len() > PROCESSES_MAX {
                return None;
            }
        }
        let (at, machine) = (Instant::now(), MachineCpu::read());
        (!table.is_empty()).then_some(Self { at, machine, processes: table })
    }

    /// Adds the time in which the processes of the server waited for a processor.
    fn with_run_queue(mut self, server: Place) -> Self {
        let own: Vec<i32> =
            self.processes_of(&[Group::Server], (0, server)).map(|(id, _)| id).collect();
        for id in own {
            if let Some(text) = process::read(id, "schedstat")
                && let Some(times) = ScheduleTimes::parse(&text)
                && let Some(process) = self.processes.get_mut(&id)
            {
                process.run_queue_s = Some(times.waited_ns as f64 / 1e9);
            }
        }
        self
    }

    /// Returns the processes of these groups.
    fn processes_of(
        &self,
        groups: &[Group],
        owners: Owners,
    ) -> impl Iterator<Item = (i32, &Process)> {
        let processes = self.processes.iter().map(|(&id, process)| (id, process));
        processes.filter(move |(id, _)| groups.contains(&self.group(*id, owners)))
    }

    fn group(&self, id: i32, (client, server): Owners) -> Group {
        let name = self.processes.get(&id).map_or("", |process| &process.name);
        let is_of_server = match server {
            Place::Here(_) => PROXIES.contains(&name),
            Place::Elsewhere => false,
            Place::Unknown => PROXIES.contains(&name) || SERVERS.contains(&name),
        };
        if is_of_server {
            return Group::Unknown;
        }
        let mut current = id;
        // Bounded: a table that changes while it is read might contain a cycle.
        for _ in 0..64 {
            if Some(current) == server.first_process() {
                return Group::Server;
            }
            if current == client {
                return Group::Client;
            }
            if current == KERNEL_THREADS || current == 0 {
                return Group::Kernel;
            }
            match self.processes.get(&current) {
                Some(process) if process.parent > 1 => current = process.parent,
                // Kernel threads of a PID namespace are not visible; init has parent 0.
                _ => return Group::Neighbor,
            }
        }
        Group::Neighbor
    }

    /// Returns the use since `earlier`. `client` is riops's own process, `server` the first process of a local
    /// server. `None` if the server has exited: its processes and their CPU time then belong to others.
    pub(super) fn since(&self, earlier: &Self, owners: Owners) -> Option<ProcessesUse> {
        let first = owners.1.first_process();
        if first.is_some_and(|server| !self.processes.contains_key(&server)) {
            return None;
        }
        let seconds = self.at.duration_since(earlier.at).as_secs_f64().max(f64::MIN_POSITIVE);
        let sums = |table: &Self, groups: &[Group]| {
            table.processes_of(groups, owners).fold(
                (0.0, Some([0; 2])),
                |(cpu_s, io), (_, process)| {
                    let add = |([read, written], own): ([u64; 2], Io)| {
                        [read + own.read_bytes, written + own.write_bytes]
                    };
                    (cpu_s + process.cpu_s, io.zip(process.io).map(add))
                },
            )
        };
        let moved = self.moved(earlier, owners);
        // The sum of a group stays exact if a child exits: its parent has the same time from then on. If the parent belongs to
        // another group, what the child had before is none of the parent's use.
        let change = |groups: &[Group]| {
            let ((before_s, before), (after_s, after)) =
                (sums(earlier, groups), sums(self, groups));
            let (mut moved_s, mut moved_io) = (0.0, [0_i64; 2]);
            for Moved { from, to, process } in &moved {
                let has = |group: Option<Group>| group.is_some_and(|group| groups.contains(&group));
                let sign = i8::from(has(*to)) - i8::from(has(Some(*from)));
                moved_s += f64::from(sign) * process.cpu_s;
                let io = process.io.unwrap_or_default();
                for (sum, bytes) in moved_io.iter_mut().zip([io.read_bytes, io.write_bytes]) {
                    *sum += i64::from(sign) * i64::try_from(bytes).unwrap_or(i64::MAX);
                }
            }
            let io = before.zip(after).map(|(mut before, after)| {
                for (sum, moved) in before.iter_mut().zip(moved_io) {
                    *sum = sum.saturating_add_signed(moved);
                }
                since(after, before)
            });
            ((after_s - before_s - moved_s).max(0.0), io.map(<(u64, u64)>::from))
        };
        let server_cpu_s = first.map(|_| change(&[Group::Server]).0);
        let (_, own) = change(&[Group::Client, Group::Server]);
        let (own_read_bytes, own_written_bytes) = own.filter(|_| first.is_some()).unzip();
        let (neighbors_cpu_s, others) = change(&[Group::Neighbor]);
        let (neighbors_read_bytes, neighbors_written_bytes) = others.unzip();
        let busy_s = self
            .machine
            .zip(earlier.machine)
            .map(|(after, before)| after.time_since(before, seconds).busy_s);
        let neighbors_cpu_s = neighbors_cpu_s.min(busy_s.unwrap_or(f64::INFINITY));
        Some(ProcessesUse {
            seconds,
            server_cpu_s,
            server_run_queue_s: self.run_queue_s(earlier, owners),
            neighbors_cpu_s,
            unseen_cpu_s: self.unseen_cpu_s(earlier, seconds),
            neighbors: self.busiest(earlier, owners, seconds),
            own_read_bytes,
            own_written_bytes,
            neighbors_read_bytes,
            neighbors_written_bytes,
        })
    }

    /// Returns the time in which processes of the server waited for a processor.
    fn run_queue_s(&self, earlier: &Self, owners: Owners) -> Option<f64> {
        let since = |(id, process): (i32, &Process)| {
            let before = earlier.same(id, process).and_then(|before| before.run_queue_s);
            Some(process.run_queue_s? - before.unwrap_or(0.0))
        };
        self.processes_of(&[Group::Server], owners).filter_map(since).reduce(|sum, own| sum + own)
    }

    /// Returns the CPU time in user mode that no visible process explains.
    fn unseen_cpu_s(&self, earlier: &Self, seconds: f64) -> Option<f64> {
        let machine = self.machine?.time_since(earlier.machine?, seconds);
        let sum = |table: &Self, time: fn(&Process) -> f64| {
            table.processes.values().map(time).sum::<f64>()
        };
        let seen = |time: fn(&Process) -> f64| sum(self, time) - sum(earlier, time);
        let user_s = machine.user_s - seen(|process| process.user_s);
        Some(user_s.min(machine.busy_s - seen(|process| process.cpu_s)).max(0.0))
    }

    /// Returns the process with this id if it is the same one; process ids are reused.
    fn same(&self, id: i32, process: &Process) -> Option<&Process> {
        self.processes.get(&id).filter(|candidate| candidate.started_ticks == process.started_ticks)
    }

    /// Returns the closest ancestor of a process in `earlier` that still exists.
    fn heir(&self, earlier: &Self, process: &Process) -> Option<(i32, &Process)> {
        let mut parent = process.parent;
        // Bounded: a table that changes while it is read might contain a cycle.
        for _ in 0..64 {
            let ancestor = earlier.processes.get(&parent)?;
            if let Some(heir) = self.same(parent, ancestor) {
                return Some((parent, heir));
            }
            parent = ancestor.parent;
        }
        None
    }

    /// Returns the processes of `earlier` that have exited. Their time is lost if the parent ignored its children.
    fn moved<'a>(&self, earlier: &'a Self, owners: Owners) -> Vec<Moved<'a>> {
        let exited =
            earlier.processes.iter().filter(|(id, process)| self.same(**id, process).is_none());
        exited
            .map(|(id, process)| {
                let heir = self.heir(earlier, process).filter(|(id, heir)| {
                    let before = earlier.processes.get(id).map_or(0.0, |before| before.reaped_s);
                    // Equal except for rounding.
                    heir.reaped_s - before > process.cpu_s - 1.0 / TICKS_PER_S
                });
                let to = heir.map(|(heir, _)| self.group(heir, owners));
                Moved { from: earlier.group(*id, owners), to, process }
            })
            .collect()
    }

    fn busiest(&self, earlier: &Self, owners: Owners, seconds: f64) -> Vec<(String, f64)> {
        let mut by_name: BTreeMap<&str, f64> = BTreeMap::new();
        for (id, process) in self.processes_of(&[Group::Neighbor], owners) {
            let before = earlier.same(id, process).map_or(0.0, |before| before.cpu_s);
            *by_name.entry(&process.name).or_default() += (process.cpu_s - before) / seconds;
        }
        // The time of a process that has exited now belongs to its parent, including the part used before.
        let exited =
            earlier.processes.iter().filter(|(id, process)| self.same(**id, process).is_none());
        for (_, process) in exited {
            let heir = self.heir(earlier, process);
            let name = heir.and_then(|(_, heir)| by_name.get_mut(heir.name.as_str()));
            if let Some(cpus) = name {
                *cpus -= process.cpu_s / seconds;
            }
        }
        let mut names: Vec<(String, f64)> = by_name
            .into_iter()
            .filter(|&(_, cpus)| cpus >= NAMED_CPUS_MIN)
            .map(|(name, cpus)| (name.to_owned(), cpus))
            .collect();
        names.sort_by(|a, b| b.1.total_cmp(&a.1));
        names.truncate(NAMED_MAX);
        names
    }
}

/// Returns the process and all processes that descend from it.
pub(super) fn descendants(first: i32) -> BTreeSet<i32> {
    let parents: BTreeMap<i32, i32> = process::ids(Path::new("/proc"))
        .filter_map(|id| Some((id, Stat::read(id)?.parent)))
        .collect();
    let mut family = BTreeSet::from([first]);
    loop {
        let is_new =
            |(id, parent): &(&i32, &i32)| family.contains(*parent) && !family.contains(*id);
        let more: Vec<i32> = parents.iter().filter(is_new).map(|(id, _)| *id).collect();
        if more.is_empty() {
            return family;
        }
        family.extend(more);
    }
}

fn read_process(id: i32) -> Option<Process> {
    let (io, stat) = (Io::read(id), Stat::read(id)?);
    Some(Process {
        cpu_s: (stat.user + stat.system + stat.reaped()) as f64 / TICKS_PER_S,
        user_s: (stat.user + stat.reaped_user) as f64 / TICKS_PER_S,
        reaped_s: stat.reaped() as f64 / TICKS_PER_S,
        name: stat.name,
        parent: stat.parent,
        started_ticks: stat.started,
        run_queue_s: None,
        io,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: i32 = 50;
    const SERVER: i32 = 100;

    fn later(table: &ProcessTable, seconds: u64) -> ProcessTable {
        let at = table.at + std::time::Duration::from_secs(seconds);
        ProcessTable { at, ..table.clone() }
    }

    fn table(rows: &[(i32, i32, &str, f64)]) -> ProcessTable {
        let process = |&(id, parent, name, cpu_s): &(i32, i32, &str, f64)| {
            let io = Some(Io::default());
            (
                id,
                Process {
                    name: name.to_owned(),
                    parent,
                    started_ticks: 7,
                    cpu_s,
                    user_s: cpu_s,
                    reaped_s: 0.0,
                    run_queue_s: Some(cpu_s / 2.0),
                    io,
                },
            )
        };
        let processes = rows.iter().map(process).collect();
        ProcessTable { at: Instant::now(), machine: None, processes }
    }

    #[test]
    fn server_client_and_kernel_are_not_neighbors() {
        let before = table(&[
            (1, 0, "init", 5.0),
            (2, 0, "kthreadd", 1.0),
            (30, 2, "kworker", 9.0),
            (CLIENT, 1, "riops", 3.0),
            (SERVER, 1, "postgres", 1.0),
            (101, SERVER, "postgres", 4.0),
            (200, 1, "stress", 100.0),
        ]);
        let mut after = later(&before, 10);
        for (id, cpu_s) in [(30, 12.0), (CLIENT, 5.0), (101, 10.0), (200, 109.5)] {
            after.processes.get_mut(&id).unwrap().cpu_s = cpu_s;
        }
        after.processes.get_mut(&101).unwrap().run_queue_s = Some(4.5);
        let new = Process { cpu_s: 0.0, run_queue_s: Some(0.25), ..after.processes[&101].clone() };
        after.processes.insert(102, new);
        let usage = after.since(&before, (CLIENT, Place::Here(SERVER))).unwrap();
        assert_eq!((usage.server_cpu_s, usage.neighbors_cpu_s), (Some(6.0), 9.5));
        assert_eq!(usage.server_run_queue_s, Some(2.75));
        assert_eq!(usage.neighbors, [("stress".to_owned(), 0.95)]);
        // The server is on another machine: a PostgreSQL server here is a neighbor.
        let usage = after.since(&before, (CLIENT, Place::Elsewhere)).unwrap();
        assert_eq!((usage.server_cpu_s, usage.neighbors_cpu_s), (None, 15.5));
        assert_eq!(usage.server_run_queue_s, None);
        assert_eq!(usage.neighbors[0].0, "stress");
        // It may be the server, behind a pooler.
        let usage = after.since(&before, (CLIENT, Place::Unknown)).unwrap();
        assert_eq!((usage.server_cpu_s, usage.neighbors_cpu_s), (None, 9.5));
    }

    #[test]
    fn attributes_unexplained_user_time_to_invisible_processes() {
        let machine = |ticks: &str| MachineCpu::parse(&format!("cpu  {ticks}\ncpu0 1\ncpu1 1\n"));
        let mut before = table(&[(1, 0, "init", 5.0), (200, 1, "make", 1.0)]);
        before.machine = machine("0 0 0 0 0 0 0 0");
        let mut after = later(&before, 10);
        (
            after.processes.get_mut(&200).unwrap().cpu_s,
            after.processes.get_mut(&200).unwrap().user_s,
        ) = (5.0, 4.0);
        // 8 s in user mode; `make` used 3 s of them.
        after.machine = machine("800 0 200 1000 0 0 0 0");
        let usage = after.since(&before, (CLIENT, Place::Elsewhere)).unwrap();
        assert_eq!(usage.unseen_cpu_s, Some(5.0));
        // Only 5 s were not idle: the others were counted too often.
        after.machine = machine("800 0 200 1500 0 0 0 0");
        let usage = after.since(&before, (CLIENT, Place::Elsewhere)).unwrap();
        assert_eq!(usage.unseen_cpu_s, Some(1.0));
    }

    #[test]
    fn the_time_of_a_process_that_exits_is_counted_once() {
        let before = table(&[(1, 0, "init", 5.0), (200, 1, "make", 1.0), (201, 200, "cc", 7.0)]);
        // `cc` used another 2 s and exited; its 9 s now count as the time of a child of `make`.
        let mut after = table(&[(1, 0, "init", 5.0), (200, 1, "make", 10.0)]);
        after.processes.get_mut(&200).unwrap().reaped_s = 9.0;
        let usage = after.since(&before, (CLIENT, Place::Elsewhere)).unwrap();
        assert!((usage.neighbors_cpu_s - 2.0).abs() < 1e-9, "{usage:?}");
        let [(name, cpus)] = usage.neighbors.as_slice() else { panic!("{usage:?}") };
        assert_eq!(name, "make");
        assert!((cpus * usage.seconds - 2.0).abs() < 1e-9, "{usage:?}");
    }

    #[test]
    fn excludes_the_earlier_use_of_an_exited_process_of_another_group() {
        let machine = |ticks: &str| MachineCpu::parse(&format!("cpu  {ticks}\ncpu0 1\ncpu1 1\n"));
        let shell = (200, 1, "bash", 1.0);
        let mut before = table(&[(1, 0, "init", 5.0), shell, (201, 200, "pgbouncer", 130.0)]);
        before.machine = machine("0 0 0 0 0 0 0 0");
        // The pooler used another 2 s and exited; the shell inherited its 132 s.
        let mut after = later(&before, 10);
        after.processes.remove(&201);
        let shell = after.processes.get_mut(&200).unwrap();
        (shell.cpu_s, shell.reaped_s) = (133.0, 132.0);
        after.machine = machine("500 0 0 1500 0 0 0 0");
        let usage = after.since(&before, (CLIENT, Place::Unknown)).unwrap();
        assert!((usage.neighbors_cpu_s - 2.0).abs() < 1e-9, "{usage:?}");
        // A parent that ignores its children inherits nothing.
        let shell = after.processes.get_mut(&200).unwrap();
        (shell.cpu_s, shell.reaped_s) = (1.5, 0.0);
        let usage = after.since(&before, (CLIENT, Place::Unknown)).unwrap();
        assert!((usage.neighbors_cpu_s - 0.5).abs() < 1e-9, "{usage:?}");
        // Nor have others used more than the machine was busy.
        after.processes.get_mut(&200).unwrap().reaped_s = 132.0;
        after.processes.get_mut(&200).unwrap().cpu_s = 140.0;
        let usage = after.since(&before, (CLIENT, Place::Unknown)).unwrap();
        assert!((usage.neighbors_cpu_s - 5.0).abs() < 1e-9, "{usage:?}");
    }

    #[test]
    fn nothing_is_known_if_the_server_has_exited() {
        let before = table(&[(1, 0, "init", 5.0), (SERVER, 1, "postgres", 100.0)]);
        // The time of the server now counts as the time of a child of init.
        let after = table(&[(1, 0, "init", 105.0)]);
        assert_eq!(after.since(&before, (CLIENT, Place::Here(SERVER))), None);
    }

    #[test]
    fn io_is_absent_if_a_process_of_the_group_cannot_be_observed() {
        let mut before =
            table(&[(CLIENT, 1, "riops", 0.0), (SERVER, 1, "postgres", 0.0), (9, 1, "fio", 0.0)]);
        let mut after = later(&before, 1);
        let io = |read_bytes, write_bytes| Io { read_bytes, write_bytes, ..Io::default() };
        after.processes.get_mut(&9).unwrap().io = Some(io(800, 30));
        after.processes.get_mut(&SERVER).unwrap().io = Some(io(100, 5));
        let usage = after.since(&before, (CLIENT, Place::Here(SERVER))).unwrap();
        assert_eq!((usage.own_read_bytes, usage.neighbors_read_bytes), (Some(100), Some(800)));
        assert_eq!((usage.own_written_bytes, usage.neighbors_written_bytes), (Some(5), Some(30)));
        before.processes.get_mut(&9).unwrap().io = None;
        let usage = after.since(&before, (CLIENT, Place::Here(SERVER))).unwrap();
        assert_eq!((usage.own_read_bytes, usage.neighbors_read_bytes), (Some(100), None));
    }

    #[test]
    fn reads_the_processes_of_this_machine() {
        let id = i32::try_from(std::process::id()).unwrap();
        let own = ProcessTable::read(Place::Here(id)).unwrap();
        assert_eq!(own.group(id, (id, Place::Elsewhere)), Group::Client);
    }
}
