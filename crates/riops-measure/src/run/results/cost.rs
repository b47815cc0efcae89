//! The costs of the transactions of a stage, from the counters around it.

use riops_model::record::{
    CostRecord, DatabaseCounters, DeviceUse, DiskCost, Neighbors, StageRecord, counters_cover,
};
use riops_model::units::BLOCK_BYTES;

/// Returns the costs from the counters of a stage; `None` without a transaction. `acknowledged` is the number of all
/// transactions, including warm-up and drain; 0 if it is not known.
pub(in crate::run) fn cost(stage: &StageRecord, acknowledged: u64) -> Option<CostRecord> {
    if stage.transactions == 0 || stage.seconds <= 0.0 {
        return None;
    }
    let transactions_per_s = stage.transactions as f64 / stage.seconds;
    let counters_s = stage.counters_s.filter(|&seconds| counters_cover(seconds, stage.seconds));
    let per_s = |rate: f64| counters_s.map(|_| rate / transactions_per_s);
    let measured = |total: Option<f64>| per_s(total? / counters_s?);
    let disks = disks(stage, &per_s);
    let of_disks = |pick: fn(&DiskCost) -> f64| {
        (!disks.is_empty()).then(|| disks.iter().map(pick).sum::<f64>())
    };
    let network = stage.network;
    Some(CostRecord {
        rows: stage.rows as f64 / stage.transactions as f64,
        server_cpu_us: measured(stage.server_cpu_s).map(|cpu_s| cpu_s * 1e6),
        server_run_queue_us: measured(stage.server_run_queue_s).map(|wait_s| wait_s * 1e6),
        server_instructions: stage.server_instructions_per_s.and_then(per_s),
        client_cpu_us: stage.client_cpu.as_ref().and_then(|cpu| cpu.us_per_transaction),
        context_switches: measured(stage.context_switches.map(|switches| switches as f64)),
        device_reads: of_disks(|disk| disk.reads),
        device_read_bytes: of_disks(|disk| disk.read_bytes),
        device_writes: of_disks(|disk| disk.writes),
        device_written_bytes: of_disks(|disk| disk.written_bytes),
        received_bytes: network.and_then(|network| per_s(network.received_mb_s * 1e6)),
        sent_bytes: network.and_then(|network| per_s(network.sent_mb_s * 1e6)),
        disks,
        ..database_costs(stage, acknowledged as f64)
    })
}

/// The disks of the server, or the device of its data, without the requests of other processes as far as these are known.
fn disks(stage: &StageRecord, per_s: &dyn Fn(f64) -> Option<f64>) -> Vec<DiskCost> {
    let Some(io) = &stage.io else {
        return Vec::new();
    };
    let data = io.device.as_ref().map(|device| device.name.as_str());
    let others = stage.neighbors.as_ref();
    let cost = |usage: &DeviceUse, roles: &[String]| {
        let others = others.filter(|_| data == Some(usage.name.as_str()));
        let usage = &others.map_or_else(|| usage.clone(), |others| without(usage, others));
        Some(DiskCost {
            name: usage.name.clone(),
            roles: roles.to_vec(),
            reads: per_s(usage.reads_per_s)?,
            read_bytes: per_s(usage.read_mb_s * 1e6)?,
            writes: per_s(usage.writes_per_s)?,
            written_bytes: per_s(usage.write_mb_s * 1e6)?,
        })
    };
    match io.devices.as_slice() {
        [] => io.device.iter().filter_map(|device| cost(device, &[])).collect(),
        disks => disks.iter().filter_map(|disk| cost(&disk.usage, &disk.roles)).collect(),
    }
}

/// The use of a device without the requests of other processes. Only the bytes of their writes are known, so their share of
/// the writes is their share of these bytes.
fn without(usage: &DeviceUse, others: &Neighbors) -> DeviceUse {
    let rest = |all: f64, others: Option<f64>| (all - others.unwrap_or(0.0)).max(0.0);
    let write_mb_s = rest(usage.write_mb_s, others.device_write_mb_s);
    let own_share = if usage.write_mb_s > 0.0 { write_mb_s / usage.write_mb_s } else { 1.0 };
    DeviceUse {
        reads_per_s: rest(usage.reads_per_s, others.device_reads_per_s),
        read_mb_s: rest(usage.read_mb_s, others.device_read_mb_s),
        writes_per_s: usage.writes_per_s * own_share,
        write_mb_s,
        ..usage.clone()
    }
}

/// The costs from the counters of the database over the whole stage, and its transactions.
fn database_costs(stage: &StageRecord, acknowledged: f64) -> CostRecord {
    let Some(database) = stage.database.as_ref().filter(|_| acknowledged > 0.0) else {
        return CostRecord::default();
    };
    let per_transaction = |total: u64| total as f64 / acknowledged;
    let since = |pick: fn(&DatabaseCounters) -> u64| {
        let (before, after) = (database.before.as_ref()?, database.after.as_ref()?);
        Some(per_transaction(pick(after).checked_sub(pick(before))?))
    };
    let of_tables = database.blocks.filter(|blocks| blocks.accesses() > 0);
    let of_tables = of_tables.map(|blocks| {
        (per_transaction(blocks.accesses() - blocks.reads()), per_transaction(blocks.reads()))
    });
    // YugabyteDB does not count blocks of tables. PostgreSQL counts at least the blocks of its catalogs.
    let counts_blocks = database.after.is_some_and(|counted| counted.blks_hit > 0);
    let of_database =
        || Some((since(|counted| counted.blks_hit)?, since(|counted| counted.blks_read)?));
    let blocks = of_tables.or_else(|| of_database().filter(|_| counts_blocks));
    let dirtied = || {
        let own = database.statements.iter().filter(|statement| statement.is_own);
        let blocks = own.map(|statement| statement.blocks_dirtied);
        blocks.reduce(|sum, blocks| sum + blocks).map(per_transaction)
    };
    let written = || {
        let (io, checkpoints) = (database.client_io?, database.checkpoints?);
        let blocks = (io.write_bytes + io.extend_bytes) / BLOCK_BYTES;
        Some(per_transaction(blocks + checkpoints.buffers_written))
    };
    let sizes = database.sizes_before.zip(database.sizes_after);
    let growth = |before: u64, after: u64| (after as f64 - before as f64) / acknowledged;
    CostRecord {
        blocks_hit: blocks.map(|(hit, _)| hit),
        blocks_read: blocks.map(|(_, read)| read),
        blocks_dirtied: dirtied(),
        blocks_written: written(),
        wal_bytes: database.wal.map(|wal| per_transaction(wal.bytes)),
        wal_records: database.wal.map(|wal| per_transaction(wal.records)),
        wal_full_page_images: database.wal.map(|wal| per_transaction(wal.full_page_images)),
        wal_full_page_bytes: database.wal.and_then(|wal| wal.full_page_bytes).map(per_transaction),
        locks_beyond_fast_path: database.locks.map(|locks| per_transaction(locks.beyond_fast_path)),
        temporary_bytes: since(|counted| counted.temp_bytes),
        table_bytes: sizes.map(|(before, after)| growth(before.table_bytes, after.table_bytes)),
        index_bytes: sizes.map(|(before, after)| growth(before.index_bytes, after.index_bytes)),
        ..CostRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::record::{
        Checkpoints, ClientCpu, ClientIo, DatabaseUse, DiskUse, IoRecord, LockUse, Sizes,
        TableBlocks, Wal,
    };

    /// 1,000 transactions of 10 rows in 10 s, 1,250 with the warm-up.
    fn stage() -> StageRecord {
        let disk = DeviceUse {
            name: "vda".to_owned(),
            reads_per_s: 50.0,
            read_mb_s: 0.4,
            ..DeviceUse::default()
        };
        let counted = |blks_hit, temp_bytes| {
            Some(DatabaseCounters { blks_hit, temp_bytes, ..DatabaseCounters::default() })
        };
        StageRecord {
            seconds: 10.0,
            counters_s: Some(10.5),
            transactions: 1_000,
            rows: 10_000,
            server_cpu_s: Some(2.1),
            server_run_queue_s: Some(1.05),
            context_switches: Some(4_200),
            server_instructions_per_s: Some(3e7),
            client_cpu: Some(ClientCpu {
                seconds: 0.5,
                us_per_transaction: Some(500.0),
                share_of_client: 0.05,
                worker_shares: Vec::new(),
                run_queue_share: None,
                connector_share: None,
                throttled_share: None,
                away_us: None,
                limits: Vec::new(),
                limited: false,
            }),
            io: Some(IoRecord {
                devices: vec![DiskUse { roles: vec!["wal".to_owned()], usage: disk }],
                ..IoRecord::default()
            }),
            database: Some(DatabaseUse {
                before: counted(100, 0),
                after: counted(12_600, 2_500),
                wal: Some(Wal {
                    records: 5_000,
                    full_page_images: 125,
                    bytes: 1_250_000,
                    full_page_bytes: Some(1_000_000),
                }),
                locks: Some(LockUse { beyond_fast_path: 2_500, ..LockUse::default() }),
                client_io: Some(ClientIo { write_bytes: 8_192 * 1_000, ..ClientIo::default() }),
                checkpoints: Some(Checkpoints { buffers_written: 250, ..Checkpoints::default() }),
                sizes_before: Some(Sizes { table_bytes: 50_000, index_bytes: 10_000 }),
                sizes_after: Some(Sizes { table_bytes: 37_500, index_bytes: 35_000 }),
                ..DatabaseUse::default()
            }),
            ..StageRecord::default()
        }
    }

    #[test]
    fn counters_are_divided_by_the_transactions_of_their_time() {
        let costs = cost(&stage(), 1_250).unwrap();
        let expected = CostRecord {
            rows: 10.0,
            // The counters cover 10.5 s, in which 1,050 transactions ended.
            server_cpu_us: Some(2_000.0),
            server_run_queue_us: Some(1_000.0),
            server_instructions: Some(300_000.0),
            client_cpu_us: Some(500.0),
            context_switches: Some(4.0),
            blocks_hit: Some(10.0),
            blocks_read: Some(0.0),
            blocks_dirtied: None,
            blocks_written: Some(1.0),
            wal_bytes: Some(1_000.0),
            wal_records: Some(4.0),
            wal_full_page_images: Some(0.1),
            wal_full_page_bytes: Some(800.0),
            locks_beyond_fast_path: Some(2.0),
            temporary_bytes: Some(2.0),
            device_reads: Some(0.5),
            device_read_bytes: Some(4_000.0),
            device_writes: Some(0.0),
            device_written_bytes: Some(0.0),
            received_bytes: None,
            sent_bytes: None,
            table_bytes: Some(-10.0),
            index_bytes: Some(20.0),
            disks: vec![DiskCost {
                name: "vda".to_owned(),
                roles: vec!["wal".to_owned()],
                reads: 0.5,
                read_bytes: 4_000.0,
                ..DiskCost::default()
            }],
            includes: None,
        };
        assert_eq!(costs, expected);
    }

    #[test]
    fn requests_of_other_processes_to_the_device_of_the_data_are_no_costs() {
        let mut stage = stage();
        stage.neighbors = Some(Neighbors {
            device_read_mb_s: Some(0.3),
            device_reads_per_s: Some(60.0),
            device_write_mb_s: Some(6.0),
            ..Neighbors::default()
        });
        let io = stage.io.as_mut().unwrap();
        let usage = &mut io.devices[0].usage;
        (usage.writes_per_s, usage.write_mb_s) = (40.0, 8.0);
        let on_other_disk = cost(&stage, 0).unwrap();
        assert_eq!(on_other_disk.device_written_bytes, Some(80_000.0));
        let io = stage.io.as_mut().unwrap();
        io.device = Some(io.devices[0].usage.clone());
        let costs = cost(&stage, 0).unwrap();
        let read = (costs.device_reads.unwrap(), costs.device_read_bytes.unwrap().round());
        assert_eq!(read, (0.0, 1_000.0));
        let written = (costs.device_writes.unwrap(), costs.device_written_bytes.unwrap());
        assert_eq!(written, (0.1, 20_000.0));
    }

    #[test]
    fn prefers_the_blocks_of_the_tables() {
        let mut stage = stage();
        let blocks =
            TableBlocks { heap_blks_hit: 900, idx_blks_read: 350, ..TableBlocks::default() };
        stage.database.as_mut().unwrap().blocks = Some(blocks);
        let costs = cost(&stage, 1_250).unwrap();
        assert_eq!((costs.blocks_hit, costs.blocks_read), (Some(0.72), Some(0.28)));
    }

    #[test]
    fn omits_costs_that_were_not_counted() {
        let counted = cost(&stage(), 0).unwrap();
        assert_eq!((counted.wal_bytes, counted.server_cpu_us), (None, Some(2_000.0)));
        // The counters of another time.
        let late = StageRecord { counters_s: Some(15.0), ..stage() };
        let late = cost(&late, 1_250).unwrap();
        assert_eq!((late.server_cpu_us, late.device_reads, late.disks.len()), (None, None, 0));
        assert_eq!(late.wal_bytes, Some(1_000.0));
        // A server that counts no blocks.
        let mut blind = stage();
        let database = blind.database.as_mut().unwrap();
        let zero = Some(DatabaseCounters::default());
        (database.before, database.after) = (zero, zero);
        let blind = cost(&blind, 1_250).unwrap();
        assert_eq!((blind.blocks_hit, blind.temporary_bytes), (None, Some(0.0)));
        let nothing = StageRecord { transactions: 1, seconds: 1.0, ..StageRecord::default() };
        assert_eq!(cost(&nothing, 1), Some(CostRecord::default()));
        assert_eq!(cost(&StageRecord::default(), 0), None);
    }
}
