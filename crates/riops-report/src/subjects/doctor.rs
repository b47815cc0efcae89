//! The results of `riops doctor` as text.

use crate::document::{Document, Findings, Hint, Tone};
use riops_model::record::diagnosis::{Calibration, Diagnosis, Level};
use riops_model::record::{DiskLimit, LatencySummary};
use riops_model::units::format::{bytes_text, count, duration_us, number_of, percent, rate};

const GB: f64 = 1e9;
/// A device that others keep busy for this share of the time is measured as slower than it is.
const OTHERS_SHARE: f64 = 0.05;

/// The diagnosis of a server and of this client.
pub fn diagnosis_findings(diagnosis: &Diagnosis) -> Findings {
    let mut findings = Findings::new("riops doctor");
    server(&mut findings.conditions, diagnosis);
    let settings = diagnosis.settings.iter().map(|(name, value)| format!("{name} = {value}"));
    findings.results.lines("settings", settings);
    findings.results.gap();
    client(&mut findings.results, diagnosis);
    verdict(&mut findings.conclusion, diagnosis);
    warnings_and_notes(&mut findings.conclusion, diagnosis);
    let answer = &mut findings.answer;
    answer.title(&findings.title);
    verdict(answer, diagnosis);
    warnings_and_notes(answer, diagnosis);
    answer.gap();
    server_line(answer, diagnosis);
    for fact in findings.conditions.facts() {
        if EXAMINED.contains(&fact.label.as_str()) {
            answer.lines(&fact.label, fact.texts);
        }
    }
    findings
}

/// Facts about the server that an answer shows, too.
const EXAMINED: [&str; 4] = ["database", "round trip", "disk", "dataset"];

fn server_line(document: &mut Document, diagnosis: &Diagnosis) {
    let server = &diagnosis.server;
    document.line("server", format!("{} {}", server.flavor, server.version));
}

fn server(document: &mut Document, diagnosis: &Diagnosis) {
    server_line(document, diagnosis);
    document.line("", &diagnosis.server.version_text);
    document.line("database", format!("{} on {}", diagnosis.database, diagnosis.address));
    document.line("encryption", diagnosis.encryption.as_deref().unwrap_or("none"));
    document.lines("pooler", diagnosis.pooler.as_ref().map(ToString::to_string));
    let [min, median] =
        [diagnosis.round_trip_min_us, diagnosis.round_trip_median_us].map(duration_us);
    document.line("round trip", format!("min {min} · median {median}"));
    // Without the sign of a rounding error: "-0.000 s".
    let offset_s =
        if diagnosis.clock_offset_s.abs() < 0.000_5 { 0.0 } else { diagnosis.clock_offset_s };
    document.line("clock", format!("{offset_s:+.3} s relative to this client"));
    let free = |bytes| format!("{:.1} GB free for the server's data", bytes as f64 / GB);
    document.lines("disk", diagnosis.disk_free_bytes.map(free));
    document.lines("dataset", diagnosis.dataset.as_ref().map(ToString::to_string));
}

/// Whether to measure here.
fn verdict(document: &mut Document, diagnosis: &Diagnosis) {
    let warnings = diagnosis.findings.iter().filter(|finding| finding.level == Level::Warning);
    let (text, tone) = match warnings.count() {
        0 => ("ready to measure".to_owned(), Tone::Good),
        count => {
            let warnings = number_of(count as u64, "warning");
            (format!("{warnings}: results depend on what they name"), Tone::Warn)
        }
    };
    document.toned("verdict", text, tone);
}

/// The findings, warnings first.
fn warnings_and_notes(document: &mut Document, diagnosis: &Diagnosis) {
    if diagnosis.findings.is_empty() {
        document.line("findings", "none");
    }
    for (level, label, tone) in
        [(Level::Warning, "WARNING", Some(Tone::Bad)), (Level::Note, "note", None)]
    {
        for finding in diagnosis.findings.iter().filter(|finding| finding.level == level) {
            document.push_line(label, format!("{}: {}", finding.about, finding.text), tone);
        }
    }
}

fn client(document: &mut Document, diagnosis: &Diagnosis) {
    let machine = &diagnosis.client;
    document.line("client", format!("{}, {}", machine.host, machine.kernel));
    let model = machine.cpu_model.as_deref().unwrap_or("unknown model");
    let governor = machine.cpu_governor.as_ref();
    let governor = governor.map_or_else(String::new, |governor| format!(", governor {governor}"));
    document.line("", format!("{} CPUs ({model}{governor})", machine.cpus));
    document.line("", format!("{:.1} GB of memory", machine.memory_bytes as f64 / GB));
    let virtualization = machine.virtualization.as_ref();
    document.lines("", virtualization.map(|name| format!("virtualization: {name}")));
    let limit = |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), count);
    let [files, ports] = [diagnosis.limits.files, diagnosis.limits.ports].map(limit);
    let clock = diagnosis.limits.clock_source.as_deref().unwrap_or("unknown");
    document.line("limits", format!("{files} open files, {ports} local ports, clock {clock}"));
}

/// The maximum throughput of the client.
pub fn calibration_document(calibration: &Calibration) -> Document {
    let mut document = Document::default();
    let Calibration { sessions, workers, .. } = calibration;
    let [per_s, per_cpu] =
        [calibration.transactions_per_s, calibration.transactions_per_s_and_cpu].map(rate);
    let text = format!(
        "{per_s} transactions/s with {sessions} sessions on {workers} workers, against a null server"
    );
    document.line("client", text);
    let cpu_time = duration_us(calibration.cpu_us_per_transaction);
    let text =
        format!("{cpu_time} per transaction: at most {per_cpu} transactions/s per processor");
    document.line("CPU", text);
    let ends = |latency: &LatencySummary| {
        format!("p50 {} · p99 {}", duration_us(latency.p50), duration_us(latency.p99))
    };
    let service = calibration.service_us.as_ref().map(ends);
    let minimum =
        |ends| format!("{ends}: the lowest latency that riops can measure on this machine");
    document.lines("latency", service.map(minimum));
    let stalls = calibration.away_us.as_ref().map(ends);
    document.lines("stalls", stalls.map(|ends| format!("poll-loop {ends}")));
    let used = percent(calibration.cpu_us_per_transaction * calibration.transactions_per_s / 1e6);
    let text =
        format!("client and null server shared this machine; the workers used {used} of one CPU");
    document.line("note", text);
    document
}

/// The maximum rates of a device.
pub fn disk_document(limit: &DiskLimit, server_options: &str) -> Document {
    let mut document = Document::default();
    let DiskLimit { device, tool, .. } = limit;
    let (file, time) = (bytes_text(limit.file_bytes), duration_us(limit.seconds * 1e6));
    let text =
        format!("{device}, measured by {tool} with direct I/O: a file of {file}, {time} per test");
    document.line("device", text);
    let lines = [
        ("sequential", "read", &limit.sequential_read, "1 MiB, queue depth 16"),
        ("", "write", &limit.sequential_write, "1 MiB, queue depth 16"),
        ("random", "read", &limit.random_read, "8 kB, queue depth 64"),
        ("", "write", &limit.random_write, "8 kB, queue depth 64"),
    ];
    let synchronized = limit.synchronized_write.as_ref();
    let synchronized =
        synchronized.map(|rate| ("sync", "write", rate, "8 kB, fdatasync after each, p99 of it"));
    for (label, side, rate_of, how) in lines.into_iter().chain(synchronized) {
        let p99 =
            rate_of.p99_us.map_or_else(String::new, |us| format!(", p99 {}", duration_us(us)));
        let jobs = rate_of.jobs.filter(|&jobs| jobs > 1);
        let jobs = jobs.map_or_else(String::new, |jobs| format!(", {jobs} jobs"));
        let (mb_s, iops) = (rate_of.mb_s, rate(rate_of.requests_per_s));
        let text = format!("{side:<5}  {mb_s:>8.1} MB/s  {iops:>9} IOPS{p99} ({how}{jobs})");
        document.line(label, text);
    }
    if let Some(share) = limit.others_busy_share.filter(|share| *share >= OTHERS_SHARE) {
        let text = format!(
            "others kept the device busy {} of the second before the tests: its maximum is higher; measure again when it is idle",
            percent(share)
        );
        document.toned("DISTURBED", text, Tone::Warn);
    }
    let command = format!("riops run cbc{server_options}");
    let hint = Hint::new(command, "compare its steps with these figures");
    document.commands("try next", vec![hint]);
    document
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::document::{Detail, Lines};
    use crate::{document_text, findings_text};
    use riops_model::record::diagnosis::{ClientLimits, Finding, ServerFacts};
    use riops_model::record::{Flavor, MachineFacts};

    #[test]
    fn a_diagnosis_begins_with_its_findings_and_ends_with_them_in_detail() {
        let diagnosis = Diagnosis {
            server: ServerFacts {
                flavor: Flavor::default(),
                version: "18.6".to_owned(),
                version_text: "PostgreSQL 18.6 on x86_64-pc-linux-gnu".to_owned(),
                compiler_flags: None,
                setting_defaults: std::collections::BTreeMap::new(),
                settings: BTreeMap::new(),
                data_directory: None,
            },
            address: "db.example:5432".to_owned(),
            database: "bench".to_owned(),
            encryption: Some("TLS 1.3, TLS13_AES_256_GCM_SHA384".to_owned()),
            pooler: None,
            settings: BTreeMap::from([("fsync".to_owned(), "off".to_owned())]),
            round_trip_min_us: 31.0,
            round_trip_median_us: 42.5,
            clock_offset_s: -0.0021,
            dataset: None,
            disk_free_bytes: Some(250_000_000_000),
            client: MachineFacts {
                host: "bench".to_owned(),
                kernel: "Linux 6.1 x86_64".to_owned(),
                cpus: 2,
                memory_bytes: 25_769_803_776,
                ..MachineFacts::default()
            },
            limits: ClientLimits {
                files: Some(1024),
                ports: Some(28_232),
                clock_source: Some("tsc".to_owned()),
            },
            findings: vec![
                Finding {
                    level: Level::Warning,
                    about: "fsync".to_owned(),
                    text: "off: a crash loses the database".to_owned(),
                },
                Finding {
                    level: Level::Note,
                    about: "machine".to_owned(),
                    text: "client and server share this machine".to_owned(),
                },
            ],
        };
        let findings = diagnosis_findings(&diagnosis);
        crate::answer::answers(&findings);
        let text = |detail| findings_text(&findings, Lines { detail, ..Lines::from(80) });
        insta::assert_snapshot!([Detail::Answer, Detail::Everything].map(text).join("\n"));
    }

    #[test]
    fn a_device_that_others_use_is_measured_too_low() {
        let text = |others_busy_share| {
            let limit = DiskLimit { others_busy_share, ..DiskLimit::default() };
            document_text(&disk_document(&limit, ""), usize::MAX)
        };
        assert!(text(Some(0.3)).contains("DISTURBED    others kept the device busy 30% of"));
        assert!(!text(Some(0.01)).contains("DISTURBED") && !text(None).contains("DISTURBED"));
    }

    #[test]
    fn calibration_with_the_cpu_time_of_a_transaction() {
        let calibration = Calibration {
            sessions: 2,
            workers: 2,
            seconds: 3.0,
            transactions_per_s: 60_000.0,
            cpu_us_per_transaction: 12.5,
            transactions_per_s_and_cpu: 80_000.0,
            service_us: None,
            away_us: None,
        };
        insta::assert_snapshot!(document_text(&calibration_document(&calibration), 80));
    }
}
