//! Diagnosis of a target and this client before a measurement: finds conditions that would make the
//! results misleading.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, getrlimit};

use super::capabilities::{Lack, lacks, optional};
use super::connection::{Connection, ConnectionError};
use super::facts::server_facts;
use crate::host::files::trimmed;
use crate::host::machine;
use riops_model::record::MachineFacts;
use riops_model::record::diagnosis::{ClientLimits, Diagnosis, Finding, Level, Pooler};

const SETTINGS_SQL: &str = include_str!("../../sql/target/doctor.sql");
/// Number of statements that measure the round-trip time.
const ROUND_TRIPS: usize = 50;
/// With a larger clock offset, the logs of client and server are hard to compare.
const CLOCK_OFFSET_MAX_S: f64 = 1.0;
/// Free space below which a load is likely to fail.
const FREE_BYTES_MIN: u64 = 2 << 30;

/// Reads the limits of this client from the operating system.
fn client_limits(client: &MachineFacts) -> ClientLimits {
    ClientLimits {
        files: getrlimit(Resource::Nofile).current,
        ports: trimmed("/proc/sys/net/ipv4/ip_local_port_range").and_then(|range| ports(&range)),
        clock_source: client.clock_source.clone(),
    }
}

/// Returns the number of ports in a range such as `32768 60999`.
fn ports(range: &str) -> Option<u64> {
    let mut ends = range.split_whitespace().map(|end| end.parse::<u64>().ok());
    let (first, last) = (ends.next()??, ends.next()??);
    (last >= first).then(|| last - first + 1)
}

/// A setting from `pg_settings`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    value: String,
    unit: String,
    by_default: bool,
}

impl Setting {
    /// Returns the value in bytes if its unit is a memory unit.
    fn bytes(&self) -> Option<u64> {
        let factor = match self.unit.as_str() {
            "B" => 1,
            "kB" => 1 << 10,
            "8kB" => 8 << 10,
            "MB" => 1 << 20,
            _ => return None,
        };
        self.value.parse::<u64>().ok()?.checked_mul(factor)
    }

    fn is(&self, value: &str) -> bool {
        self.value == value
    }
}

/// Diagnoses the server and this client.
///
/// # Errors
/// [`ConnectionError`] if a query fails.
pub fn examine(
    connection: &mut Connection,
    database: &str,
    pooler: Option<Pooler>,
    is_local: bool,
) -> Result<Diagnosis, ConnectionError> {
    let server = server_facts(connection)?;
    let settings = settings(connection)?;
    let standby = optional(connection.query_value("select pg_is_in_recovery()"))?.flatten();
    let standby = standby.as_deref() == Some("t");
    let mut times: Vec<Duration> = Vec::with_capacity(ROUND_TRIPS);
    for _ in 0..ROUND_TRIPS {
        let start = Instant::now();
        connection.query("select 1")?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    let micros = |at: usize| times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e6);
    let clock_offset_s = clock_offset_s(connection)?;
    let disk_free_bytes =
        server.data_directory.as_deref().filter(|_| is_local).and_then(machine::free_bytes);
    let client = crate::host::machine::facts();
    let limits = client_limits(&client);
    let mut findings = check_settings(&settings, standby);
    findings.extend(check_environment(&client, &limits, clock_offset_s, disk_free_bytes, is_local));
    if let Some(pooler) = pooler {
        findings.push(finding(Level::Note, "pooler", pooler.to_string()));
    }
    let lacks = lacks(connection)?;
    let missing = |lack: &Lack| finding(Level::Note, lack.name, format!("missing: {}", lack.cost));
    findings.extend(lacks.iter().map(missing));
    findings.sort_by_key(|finding| finding.level);
    let shown = |setting: &Setting| match setting.bytes() {
        Some(bytes) => format!("{} MB", bytes >> 20),
        None => format!("{} {}", setting.value, setting.unit).trim().to_owned(),
    };
    Ok(Diagnosis {
        server,
        address: connection.address().to_owned(),
        database: database.to_owned(),
        encryption: connection.encryption(),
        pooler,
        settings: settings.iter().map(|(name, setting)| (name.clone(), shown(setting))).collect(),
        round_trip_min_us: micros(0),
        round_trip_median_us: micros(ROUND_TRIPS / 2),
        clock_offset_s,
        disk_free_bytes,
        dataset: None,
        client,
        limits,
        findings,
    })
}

fn settings(connection: &mut Connection) -> Result<BTreeMap<String, Setting>, ConnectionError> {
    let rows = optional(connection.query(SETTINGS_SQL))?.unwrap_or_default();
    let read = |row: Vec<Option<String>>| match <[Option<String>; 4]>::try_from(row) {
        Ok([Some(name), Some(value), Some(unit), Some(source)]) => {
            Some((name, Setting { value, unit, by_default: source == "default" }))
        }
        _ => None,
    };
    Ok(rows.into_iter().filter_map(read).collect())
}

/// Returns server clock minus client clock. The server's clock is compared with the midpoint of two
/// readings of the client's clock, before and after the query.
fn clock_offset_s(connection: &mut Connection) -> Result<f64, ConnectionError> {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let before = now();
    let sql = "select extract(epoch from clock_timestamp())";
    let text = optional(connection.query_value(sql))?.flatten();
    let middle = f64::midpoint(before, now());
    Ok(text.and_then(|text| text.parse::<f64>().ok()).map_or(0.0, |server| server - middle))
}

fn finding(level: Level, about: &str, text: impl Into<String>) -> Finding {
    Finding { level, about: about.to_owned(), text: text.into() }
}

/// Settings that distort a benchmark, with severity and a text that starts with their value.
const UNUSUAL_VALUES: [(&str, Level, &str); 9] = [
    (
        "fsync",
        Level::Warning,
        "off: a crash can corrupt the database, and writes are faster than on a durable server",
    ),
    (
        "full_page_writes",
        Level::Warning,
        "off: a crash can leave torn pages, and writes are faster than with the default",
    ),
    (
        "synchronous_commit",
        Level::Warning,
        "off: a commit is acknowledged before it is durable: write rates are not comparable",
    ),
    (
        "autovacuum",
        Level::Warning,
        "off: updates bloat the tables, and plans use outdated statistics",
    ),
    (
        "debug_assertions",
        Level::Warning,
        "on: a build with assertions is several times slower than a production build",
    ),
    ("default_transaction_read_only", Level::Warning, "on: transactions are read-only"),
    (
        "log_statement",
        Level::Warning,
        "all: every statement is logged: the results include the cost of logging",
    ),
    ("archive_mode", Level::Note, "on: WAL archiving uses part of the disk bandwidth"),
    ("track_io_timing", Level::Note, "off: the server does not measure I/O times"),
];

/// Returns the findings about the settings.
fn check_settings(settings: &BTreeMap<String, Setting>, standby: bool) -> Vec<Finding> {
    use Level::{Note, Warning};
    let mut findings: Vec<Finding> = UNUSUAL_VALUES
        .iter()
        .filter(|(name, _, text)| {
            let value = text.split(": ").next().unwrap_or_default();
            settings.get(*name).is_some_and(|setting| setting.is(value))
        })
        .map(|(name, level, text)| finding(*level, name, *text))
        .collect();
    let get = |name: &str| settings.get(name);
    if let Some(buffers) = get("shared_buffers").filter(|buffers| buffers.by_default)
        && let Some(bytes) = buffers.bytes()
    {
        let text =
            format!("{} MB: the built-in default, too small for current hardware", bytes >> 20);
        findings.push(finding(Warning, "shared_buffers", text));
    }
    if let Some(bytes) = get("max_wal_size").and_then(Setting::bytes)
        && bytes <= 1 << 30
    {
        let cause = "under write load, checkpoints are triggered by WAL size, not by time";
        findings.push(finding(Note, "max_wal_size", format!("{} MB: {cause}", bytes >> 20)));
    }
    let timeout_s = get("checkpoint_timeout").and_then(|setting| setting.value.parse::<f64>().ok());
    if timeout_s.is_some_and(|seconds| seconds < 300.0) {
        let text = "below 5 minutes: full-page images are written to the WAL more often";
        findings.push(finding(Note, "checkpoint_timeout", text));
    }
    if get("log_min_duration_statement").is_some_and(|setting| setting.is("0")) {
        let text = "0: every statement is logged: the results include the cost of logging";
        findings.push(finding(Warning, "log_min_duration_statement", text));
    }
    findings.extend(check_statement_settings(settings));
    if standby {
        findings.push(finding(Warning, "recovery", "the server is a standby: it is read-only"));
    }
    findings
}

/// Returns the findings about settings that slow down statements or cause errors.
fn check_statement_settings(settings: &BTreeMap<String, Setting>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let get = |name: &str| settings.get(name);
    for name in ["statement_timeout", "idle_in_transaction_session_timeout", "lock_timeout"] {
        if let Some(setting) = get(name).filter(|setting| !setting.is("0")) {
            let text = format!("{} {}: exceeding it causes an error", setting.value, setting.unit);
            findings.push(finding(Level::Note, name, text));
        }
    }
    if let Some(libraries) = get("shared_preload_libraries").filter(|setting| !setting.is("")) {
        let text = format!("{}: may add overhead to every statement", libraries.value);
        findings.push(finding(Level::Note, "shared_preload_libraries", text));
    }
    if get("synchronous_standby_names").is_some_and(|setting| !setting.is("")) {
        let text = "set: commits wait for a synchronous standby";
        findings.push(finding(Level::Note, "synchronous_standby_names", text));
    }
    findings
}

/// Returns the findings about the client, the clocks and the disk.
fn check_environment(
    client: &MachineFacts,
    limits: &ClientLimits,
    clock_offset_s: f64,
    disk_free_bytes: Option<u64>,
    is_local: bool,
) -> Vec<Finding> {
    use Level::{Note, Warning};
    let mut findings = Vec::new();
    if clock_offset_s.abs() > CLOCK_OFFSET_MAX_S {
        let text =
            format!("the server's clock differs from the client's by {clock_offset_s:+.1} s");
        findings.push(finding(Warning, "clock", text));
    }
    let slow = ["hpet", "acpi_pm", "jiffies"];
    if let Some(source) = limits.clock_source.as_deref().filter(|source| slow.contains(source)) {
        let text = format!("{source}: each reading of the clock takes microseconds");
        findings.push(finding(Warning, "clock source", text));
    }
    if let Some(bytes) = disk_free_bytes.filter(|&bytes| bytes < FREE_BYTES_MIN) {
        let text =
            format!("only {} MB are free on the file system of the data directory", bytes >> 20);
        findings.push(finding(Warning, "disk", text));
    }
    let governor = client.cpu_governor.as_deref();
    if let Some(governor) = governor.filter(|governor| *governor != "performance") {
        let text = format!("{governor}: the CPU frequency changes during the run");
        findings.push(finding(Note, "cpu governor", text));
    }
    if let Some(cpus) = client.cgroup_cpus.filter(|cpus| *cpus < client.cpus as f64) {
        let text = format!("the cgroup limits riops to {cpus} of {} CPUs", client.cpus);
        findings.push(finding(Warning, "cgroup", text));
    }
    if let Some(files) = limits.files.filter(|&files| files < 1_100) {
        let sessions = files.saturating_sub(50);
        let text = format!("limit of {files} open files: at most about {sessions} sessions");
        findings.push(finding(Note, "files", text));
    }
    if is_local {
        let text = "client and server run on the same machine and compete for its resources";
        findings.push(finding(Note, "machine", text));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_of(changes: &[(&str, &str, &str, bool)]) -> Vec<(Level, String)> {
        let settings = changes
            .iter()
            .map(|(name, value, unit, by_default)| {
                let setting = Setting {
                    value: (*value).to_owned(),
                    unit: (*unit).to_owned(),
                    by_default: *by_default,
                };
                ((*name).to_owned(), setting)
            })
            .collect();
        check_settings(&settings, false)
            .into_iter()
            .map(|finding| (finding.level, finding.about))
            .collect()
    }

    #[test]
    fn reports_unusual_settings_only() {
        let usual = [
            ("fsync", "on", "", true),
            ("shared_buffers", "1048576", "8kB", false),
            ("max_wal_size", "16384", "MB", false),
            ("checkpoint_timeout", "900", "s", false),
            ("log_min_duration_statement", "-1", "ms", true),
            ("statement_timeout", "0", "ms", true),
            ("shared_preload_libraries", "", "", true),
        ];
        assert_eq!(findings_of(&usual), []);
        for (name, value, unit, by_default, level) in [
            ("fsync", "off", "", false, Level::Warning),
            ("shared_buffers", "16384", "8kB", true, Level::Warning),
            ("max_wal_size", "1024", "MB", true, Level::Note),
            ("checkpoint_timeout", "60", "s", false, Level::Note),
            ("log_min_duration_statement", "0", "ms", false, Level::Warning),
            ("statement_timeout", "1000", "ms", false, Level::Note),
            ("shared_preload_libraries", "auto_explain", "", false, Level::Note),
        ] {
            assert_eq!(findings_of(&[(name, value, unit, by_default)]), [(level, name.to_owned())]);
        }
    }

    #[test]
    fn reports_unusual_clocks_disks_and_limits() {
        let client = MachineFacts { cpus: 4, ..MachineFacts::default() };
        let limits = ClientLimits {
            files: Some(1_048_576),
            ports: Some(28_232),
            clock_source: Some("tsc".to_owned()),
        };
        assert_eq!(check_environment(&client, &limits, 0.01, Some(1 << 40), false), []);
        let client = MachineFacts {
            cgroup_cpus: Some(1.5),
            cpu_governor: Some("powersave".to_owned()),
            ..client
        };
        let limits =
            ClientLimits { files: Some(1024), clock_source: Some("hpet".to_owned()), ..limits };
        let about: Vec<_> = check_environment(&client, &limits, -5.0, Some(1 << 20), true)
            .into_iter()
            .map(|finding| finding.about)
            .collect();
        assert_eq!(
            about,
            ["clock", "clock source", "disk", "cpu governor", "cgroup", "files", "machine"]
        );
    }

    #[test]
    fn counts_the_ports_of_a_range() {
        assert_eq!(ports("32768\t60999"), Some(28_232));
        assert_eq!(ports("9 1"), None);
    }
}
