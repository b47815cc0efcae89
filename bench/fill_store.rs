//! Fills a store with copies of a record, for the case `store` of `bench.py`: `fill_store STORE RECORD.json COUNT`.
//!
//! The copies differ in id, start, label, tags and rates. They start one minute apart, the last one now.

use std::process::ExitCode;

use riops::host::Interrupt;
use riops::record::Record;
use riops::store::{self, StoreLocation};

/// Runs with the same label.
const RUNS_PER_LABEL: u32 = 50;

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [place, file, count] = arguments.as_slice() else {
        return Err("expected STORE RECORD.json COUNT".into());
    };
    let count: u32 = count.parse()?;
    let template: Record = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let location = StoreLocation::parse(place, |name| std::env::var(name).ok())?;
    let store = store::open(&location, &Interrupt::new())?;
    let now = jiff::Timestamp::now();
    for position in 0..count {
        let mut record = template.clone();
        let minutes = i64::from(count - position);
        record.started_at = now - jiff::SignedDuration::from_mins(minutes);
        let seconds = u64::try_from(record.started_at.as_second())?;
        let time = uuid::Timestamp::from_unix(uuid::NoContext, seconds, 0);
        record.id = uuid::Uuid::new_v7(time);
        record.label = Some(format!("release-{}", position / RUNS_PER_LABEL));
        record.tags.insert("commit".to_owned(), format!("{position:07x}"));
        record
            .tags
            .insert("disk".to_owned(), if position % 2 == 0 { "nvme" } else { "hdd" }.to_owned());
        let factor = 1.0 + f64::from(position * 7919 % 100) / 1000.0;
        for stage in &mut record.stages {
            stage.throughput.rows_per_s *= factor;
            stage.throughput.transactions_per_s *= factor;
        }
        store.save(&record)?;
    }
    Ok(ExitCode::SUCCESS)
}
