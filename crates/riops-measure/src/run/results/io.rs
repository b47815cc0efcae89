//! Logical and physical I/O of a stage, from the counters of the database and of the device.

use crate::engine::AccessFinding;
use crate::probe::MachineUse;
use crate::probe::sampler::AUTOVACUUM;
use riops_model::record::{
    DatabaseUse, IoRecord, ReadBytes, Sources, StorageRequests, TableBlocks,
};
use riops_model::units::BLOCK_BYTES;
use riops_model::units::format::number_of;

/// The counters of the measurement are used only if they include at least this share of the accesses that
/// the rows require. The counters of a loop in the server are published only after it ends.
const MEASURED_SHARE_MIN: f64 = 0.5;

/// The bytes that sessions and I/O workers read may differ from the blocks that the tables requested by at most this
/// share of the accesses. Otherwise, they also read other files, or read for other sessions, and their split between
/// page cache and device does not describe the rows.
const FOREIGN_SHARE_MAX: f64 = 0.1;

/// Nodes of a plan whose blocks PostgreSQL 18 reads asynchronously, or a plan that is not known.
const NOT_INDEX_SCANS: [&str; 4] = ["Seq Scan", "Bitmap Heap Scan", "Tid ", "not valid JSON"];

/// The work of a stage, which its I/O is compared with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Work {
    /// Rows per second of the measurement.
    pub(super) rows_per_s: f64,
    /// Rows that were acknowledged in all phases.
    pub(super) rows_acknowledged: u64,
    /// Attempts of transactions that did not succeed, in all phases.
    pub(super) failed: u64,
    /// Length of the measurement, in seconds.
    pub(super) seconds: f64,
    /// Whether the rows are read by an index-only scan.
    pub(super) index_only: bool,
    /// Whether all plans of the stage were checked and read their tables only with index scans.
    pub(super) only_index_scans: bool,
}

/// Returns whether the checked plans read their tables only with index scans.
pub(super) fn has_only_index_scans(findings: &[AccessFinding]) -> bool {
    let other = |check: &AccessFinding| {
        NOT_INDEX_SCANS.iter().any(|node| check.finding.outline.contains(node))
    };
    !findings.is_empty() && !findings.iter().any(other)
}

/// Returns the logical and physical I/O; `None` if nothing was counted.
pub(super) fn io(
    usage: &MachineUse,
    work: Work,
    storage: Option<StorageRequests>,
) -> Option<IoRecord> {
    let device = usage.device.clone();
    let database = usage.database.as_ref();
    let blocks = database.and_then(|database| logical(database, work));
    let storage_requests_per_row =
        storage.map(|requests| requests.reads as f64 / requests.rows.max(1) as f64);
    let wal_bytes_per_s = database.and_then(|database| database.wal_bytes_per_s);
    if device.is_none()
        && blocks.is_none()
        && storage_requests_per_row.is_none()
        && wal_bytes_per_s.is_none()
    {
        return None;
    }
    Some(IoRecord {
        liops: blocks.map(|blocks| blocks.liops),
        piops: device.as_ref().map(|device| device.reads_per_s),
        hit_ratio: blocks.map(|blocks| blocks.hit_ratio),
        blocks_per_row: blocks.map(|blocks| blocks.per_row),
        blocks_include: blocks.map_or_else(Vec::new, |_| others(usage, work.failed)),
        sources: blocks.map(|blocks| sources(blocks, usage, work)),
        async_read_share: async_read_share(usage, work),
        wal_mb_s: wal_bytes_per_s.map(|bytes| bytes / 1e6),
        storage_requests_per_row,
        device,
        devices: usage.disks.clone(),
    })
}

/// Returns the share of the bytes that I/O workers read.
fn async_read_share(usage: &MachineUse, work: Work) -> Option<f64> {
    let method = usage.async_io?;
    if work.only_index_scans && !method.in_index_scans {
        return Some(0.0);
    }
    let (sessions, workers) = usage.session_reads.zip(usage.io_worker_reads)?;
    let all = sessions.all + workers.all;
    (method.by_workers && all > 0).then(|| workers.all as f64 / all as f64)
}

/// Returns what accessed the tables besides the acknowledged transactions.
fn others(usage: &MachineUse, failed: u64) -> Vec<String> {
    let versions = usage.database.as_ref().and_then(|database| database.row_versions);
    let versions = versions.unwrap_or_default();
    let counted = [
        (versions.vacuums, "vacuum"),
        (versions.analyzes, "ANALYZE"),
        (failed, "failed transaction"),
    ];
    let counted = counted.into_iter().filter(|&(count, _)| count > 0);
    let counted = counted.map(|(count, noun)| number_of(count, noun));
    // The counters of a vacuum in progress are not final.
    let active = usage.sampled.as_ref().map_or(&[][..], |sampled| &sampled.others);
    let vacuuming = versions.vacuums + versions.analyzes == 0
        && active.iter().any(|session| session.name == AUTOVACUUM);
    counted.chain(vacuuming.then(|| "autovacuum in progress".to_owned())).collect()
}

#[derive(Debug, Clone, Copy)]
struct Logical {
    liops: f64,
    per_row: f64,
    hit_ratio: f64,
    /// The block accesses from which the ratios are computed.
    counted: TableBlocks,
}

/// LIOPS are the block accesses per row, which are exact over the whole stage, times the rows per second of
/// the measurement. Only the ratio of hits and reads comes from the counters of the measurement.
fn logical(database: &DatabaseUse, work: Work) -> Option<Logical> {
    let stage = database.blocks.filter(|blocks| blocks.accesses() > 0)?;
    if work.rows_acknowledged == 0 {
        return None;
    }
    let per_row = stage.accesses() as f64 / work.rows_acknowledged as f64;
    let liops = work.rows_per_s * per_row;
    let enough = |blocks: &TableBlocks| {
        blocks.accesses() as f64 >= MEASURED_SHARE_MIN * liops * work.seconds
    };
    let counted = database.blocks_measured.filter(enough).unwrap_or(stage);
    let hit_ratio = 1.0 - counted.reads() as f64 / counted.accesses().max(1) as f64;
    Some(Logical { liops, per_row, hit_ratio, counted })
}

/// The database counts hits and reads; the same reading of the processes' counters splits the reads between page cache
/// and device. So the shares add up to 1, whenever the counters of database and processes were read. If the processes
/// cannot be observed, all reads of the device count as reads of the tables.
fn sources(blocks: Logical, usage: &MachineUse, work: Work) -> Sources {
    let TableBlocks { heap_blks_hit, heap_blks_read, idx_blks_hit, idx_blks_read } = blocks.counted;
    let (hit, read) = if work.index_only {
        (idx_blks_hit, idx_blks_read)
    } else {
        (heap_blks_hit, heap_blks_read)
    };
    let read_share = read as f64 / (hit + read).max(1) as f64;
    let requested_per_s = blocks.liops * (1.0 - blocks.hit_ratio);
    let share_of_reads = |bytes: f64, requested: f64| {
        if requested > 0.0 { read_share * bytes / BLOCK_BYTES as f64 / requested } else { 0.0 }
    };
    let split = |read: ReadBytes| {
        // The processes were watched for a little longer than the measurement, with or without load.
        let differs = |seconds: f64| {
            let share = share_of_reads(read.all as f64, requested_per_s * seconds);
            (share - read_share).abs() > FOREIGN_SHARE_MAX
        };
        let is_foreign = differs(usage.seconds) && differs(work.seconds);
        // Read-ahead: the device also reads blocks that no session requests.
        let of_device = read.device.min(read.all) as f64 / read.all.max(1) as f64;
        (!is_foreign).then_some(read_share * of_device)
    };
    let asynchronous =
        usage.async_io.filter(|method| !work.only_index_scans || method.in_index_scans);
    let device_share = match (asynchronous, usage.session_reads, usage.io_worker_reads) {
        (None, Some(sessions), _) => split(sessions),
        (None, None, _) => usage
            .device
            .as_ref()
            .map(|device| share_of_reads(device.read_mb_s * 1e6, requested_per_s).min(read_share)),
        (Some(method), Some(sessions), Some(workers)) if method.by_workers => split(ReadBytes {
            all: sessions.all + workers.all,
            device: sessions.device + workers.device,
            written: sessions.written + workers.written,
        }),
        // The server reads without a counter.
        (Some(_), ..) => None,
    };
    Sources {
        buffers_share: 1.0 - read_share,
        page_cache_share: device_share.map(|device| read_share - device),
        device_share,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Moment;
    use crate::probe::async_io::AsyncIo;
    use crate::workload::access::Finding;
    use riops_model::record::{DeviceUse, OtherSessions, RowVersions, Sampled};

    fn work() -> Work {
        Work {
            rows_per_s: 1_000.0,
            rows_acknowledged: 12_000,
            failed: 0,
            seconds: 10.0,
            index_only: false,
            only_index_scans: true,
        }
    }

    fn blocks(scale: u64) -> TableBlocks {
        // 12,000 rows, each with one table block and 1/20 of an index block.
        TableBlocks {
            heap_blks_hit: 3_000 * scale / 12,
            heap_blks_read: 9_000 * scale / 12,
            idx_blks_hit: 600 * scale / 12,
            idx_blks_read: 0,
        }
    }

    fn usage(read_mb_s: f64) -> MachineUse {
        MachineUse {
            seconds: 10.0,
            device: Some(DeviceUse {
                name: "vda".to_owned(),
                reads_per_s: 300.0,
                writes_per_s: 0.0,
                read_mb_s,
                write_mb_s: 0.0,
                busy_share: 0.5,
                queue_depth: Some(2.0),
            }),
            database: Some(DatabaseUse {
                blocks: Some(blocks(12)),
                blocks_measured: Some(blocks(9)),
                wal_bytes_per_s: Some(2e6),
                ..DatabaseUse::default()
            }),
            ..MachineUse::default()
        }
    }

    #[test]
    fn attributes_device_reads_to_the_tables_without_counters_of_the_processes() {
        // 750 blocks of 8 kB are read per second, 300 of them from the device.
        let record = io(&usage(300.0 * 8192.0 / 1e6), work(), None).unwrap();
        assert!((record.liops.unwrap() - 1_050.0).abs() < 1e-9);
        assert!((record.blocks_per_row.unwrap() - 1.05).abs() < 1e-9);
        let sources = record.sources.unwrap();
        assert!((sources.buffers_share - 0.25).abs() < 1e-9);
        // The counters of the measurement lag, but their ratio is right: 750 reads of 1,050 accesses.
        assert!((record.hit_ratio.unwrap() - (1.0 - 750.0 / 1050.0)).abs() < 1e-3);
        assert!((sources.device_share.unwrap() - 0.30).abs() < 1e-3);
        assert!((sources.page_cache_share.unwrap() - 0.45).abs() < 1e-3);
        assert_eq!((record.wal_mb_s, record.piops), (Some(2.0), Some(300.0)));
    }

    #[test]
    fn the_reads_of_the_processes_are_split_between_page_cache_and_device() {
        let shares = |all: u64, device: u64, seconds: f64| {
            let counted = MachineUse {
                session_reads: Some(read_blocks(all, device)),
                seconds,
                ..usage(300.0 * 8192.0 / 1e6)
            };
            io(&counted, work(), None).unwrap().sources.unwrap()
        };
        // 750 blocks per second over 10 s. Reads of other processes from the device do not matter.
        let sources = shares(7_500, 2_500, 10.0);
        assert!((sources.device_share.unwrap() - 0.25).abs() < 1e-9);
        assert!((sources.page_cache_share.unwrap() - 0.5).abs() < 1e-9);
        let sum = |sources: &Sources| {
            sources.buffers_share
                + sources.page_cache_share.unwrap()
                + sources.device_share.unwrap()
        };
        assert!((sum(&sources) - 1.0).abs() < 1e-9);
        // On a loaded machine, the counters are read late, with or without load in between.
        for late in [shares(9_000, 2_500, 12.0), shares(7_500, 2_500, 12.0)] {
            assert!((sum(&late) - 1.0).abs() < 1e-9);
        }
        // The processes read other files as well, or blocks that are not counted.
        for other in [shares(9_000, 2_500, 10.0), shares(5_000, 2_500, 10.0)] {
            assert_eq!((other.page_cache_share, other.device_share), (None, None));
        }
        // Read-ahead.
        assert_eq!(shares(7_500, 9_000, 10.0).page_cache_share, Some(0.0));
    }

    fn read_blocks(all: u64, device: u64) -> ReadBytes {
        let (all, device) = (all * BLOCK_BYTES, device * BLOCK_BYTES);
        ReadBytes { all, device, ..ReadBytes::default() }
    }

    fn page_cache_share(usage: &MachineUse, only_index_scans: bool) -> Option<f64> {
        let work = Work { only_index_scans, ..work() };
        io(usage, work, None).unwrap().sources.unwrap().page_cache_share
    }

    #[test]
    fn reads_of_io_workers_belong_to_the_sessions_if_nothing_else_uses_them() {
        // 7,500 blocks are requested: 500 are read by the sessions, 7,000 by the workers.
        let usage = |workers: Option<ReadBytes>| MachineUse {
            session_reads: Some(read_blocks(500, 100)),
            io_worker_reads: workers,
            async_io: Some(AsyncIo { by_workers: true, in_index_scans: false }),
            ..usage(300.0 * 8192.0 / 1e6)
        };
        let share = page_cache_share(&usage(Some(read_blocks(7_000, 3_000))), false).unwrap();
        assert!((share - 0.44).abs() < 1e-3, "{share}");
        let async_share = |workers, only_index_scans| {
            let work = Work { only_index_scans, ..Work::default() };
            async_read_share(&usage(workers), work)
        };
        assert_eq!(async_share(Some(read_blocks(1_500, 0)), false), Some(0.75));
        assert_eq!(async_share(None, false), None);
        assert_eq!(async_share(None, true), Some(0.0));
        // A vacuum reads 2,000 more blocks.
        assert_eq!(page_cache_share(&usage(Some(read_blocks(9_000, 3_000))), false), None);
        assert_eq!(page_cache_share(&usage(None), false), None);
        // Index scans are read by the sessions alone, and these read only a part of the blocks.
        assert_eq!(page_cache_share(&usage(Some(read_blocks(8_000, 3_000))), true), None);
    }

    #[test]
    fn the_page_cache_share_is_absent_if_io_uring_reads_the_blocks() {
        let usage = |in_index_scans| MachineUse {
            session_reads: Some(read_blocks(7_500, 3_000)),
            async_io: Some(AsyncIo { by_workers: false, in_index_scans }),
            ..usage(300.0 * 8192.0 / 1e6)
        };
        assert_eq!(page_cache_share(&usage(false), false), None);
        assert_eq!(page_cache_share(&usage(true), true), None);
        assert_eq!(async_read_share(&usage(true), Work::default()), None);
        assert!(page_cache_share(&usage(false), true).is_some());
    }

    #[test]
    fn only_checked_plans_can_consist_of_index_scans() {
        let finding = |outline: &str| AccessFinding {
            statement: "read".to_owned(),
            moment: Moment::Before,
            finding: Finding {
                is_expected: true,
                outline: outline.to_owned(),
                storage: None,
                first: None,
            },
            sessions: 1,
        };
        let index = || finding("Index Scan using i on t");
        assert!(has_only_index_scans(&[
            index(),
            finding("Update on t\n  Index Scan using i on t")
        ]));
        assert!(!has_only_index_scans(&[index(), finding("Limit\n  Seq Scan on t")]));
        assert!(!has_only_index_scans(&[finding(
            "Bitmap Heap Scan on t\n  Bitmap Index Scan on i"
        )]));
        assert!(!has_only_index_scans(&[]));
    }

    #[test]
    fn blocks_of_vacuums_and_failed_transactions_are_named() {
        let mut usage = usage(0.0);
        assert_eq!(io(&usage, work(), None).unwrap().blocks_include, [""; 0]);
        let versions = RowVersions { vacuums: 2, analyzes: 1, ..RowVersions::default() };
        usage.database.as_mut().unwrap().row_versions = Some(versions);
        let failed = Work { failed: 1_300, ..work() };
        let included = io(&usage, failed, None).unwrap().blocks_include;
        assert_eq!(included, ["2 vacuums", "1 ANALYZE", "1,300 failed transactions"]);
        // An autovacuum that has not ended is visible only as a process.
        usage.database.as_mut().unwrap().row_versions = Some(RowVersions::default());
        let active = OtherSessions { name: AUTOVACUUM.to_owned(), active: 0.4 };
        usage.sampled = Some(Sampled { others: vec![active], ..Sampled::default() });
        let included = io(&usage, work(), None).unwrap().blocks_include;
        assert_eq!(included, ["autovacuum in progress"]);
    }

    #[test]
    fn falls_back_to_the_counters_of_the_stage_if_the_measured_counters_are_late() {
        let mut late = usage(0.0);
        late.database.as_mut().unwrap().blocks_measured = Some(TableBlocks::default());
        let record = io(&late, work(), None).unwrap();
        assert!((record.sources.unwrap().buffers_share - 0.25).abs() < 1e-9);
    }

    #[test]
    fn values_that_were_not_counted_are_absent() {
        assert_eq!(io(&MachineUse::default(), work(), None), None);
        let remote = MachineUse { device: None, ..usage(0.0) };
        let sources = io(&remote, work(), None).unwrap().sources.unwrap();
        assert_eq!((sources.device_share, sources.page_cache_share), (None, None));
        let storage = StorageRequests { reads: 2, rows_scanned: None, rows: 1000 };
        let record = io(&MachineUse::default(), work(), Some(storage)).unwrap();
        assert_eq!((record.storage_requests_per_row, record.liops), (Some(0.002), None));
    }
}
