//! Options of `cbc`.

use anyhow::Result;
use clap::Args;
use riops::plan::{Caches, CbcPlace, CbcRun, CbcSize, Plan, Stop};
use riops::units::{Count, Span};

use super::parsers::{OrDefault, choice, name_of};
use super::run::{
    CommandOptions, NO_GRAPH, RecordOptions, ResultOptions, RunWorkload, cores, seconds,
};
use super::shared::{TargetOptions, parse_cold};

/// Measure whole-table block I/O with bulk commands (Complete Block Check)
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, next_help_heading = "Workload")]
pub(crate) struct RunCbc {
    /// Nominal size of the table: 20GB, 0.5, 500MB, or auto (three times the memory of the server's machine)
    #[arg(long, value_name = "SIZE", or_default = CbcRun::default().size_gb.to_string() + "GB")]
    size: Option<CbcSize>,
    /// Then measure the three SELECTs with N concurrent sessions, one stage each
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    query_sessions: Vec<Count>,
    /// Duration of each of these stages
    #[arg(long, value_name = "TIME", requires = "query_sessions", or_default = CbcRun::default().query_duration_s.to_string() + "s")]
    query_duration: Option<Span>,
    /// Pause between two stages, not measured
    #[arg(long, value_name = "TIME")]
    cooldown: Option<Span>,
    #[arg(
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "on",
        value_parser = parse_cold,
        help = "Empty shared buffers (PostgreSQL 17 or later) and the page cache before SELECT_u1 and SELECT_u2, or with =try as far as permitted"
    )]
    cold: Option<Caches>,
    #[arg(long, help = "Where to create the table; database: in a new database riops_cbc; schema: in the schema riops of --database", value_name = "WHERE", help_heading = "Dataset", default_value = name_of(CbcPlace::default()), value_parser = choice::<CbcPlace>(&["database", "schema"]))]
    place: CbcPlace,
    /// Keep the table (riops cleanup cbc drops it)
    #[arg(long, help_heading = "Dataset")]
    keep: bool,
    /// Start even if free disk space seems insufficient
    #[arg(long, help_heading = "Dataset")]
    skip_space_check: bool,
    #[command(flatten)]
    record: RecordOptions,
    #[command(flatten)]
    keep_options: ResultOptions,
    #[command(flatten)]
    target: TargetOptions,
}

impl RunWorkload for RunCbc {
    fn plan(&self) -> Result<Plan> {
        let defaults = CbcRun::default();
        let size_gb = match self.size {
            Some(CbcSize::Gigabytes(size_gb)) => size_gb,
            Some(CbcSize::Auto) | None => defaults.size_gb,
        };
        let as_u32 = |count: &Count| u32::try_from(count.0).unwrap_or(u32::MAX);
        let work = CbcRun {
            size_gb,
            auto_size: self.size == Some(CbcSize::Auto),
            place: self.place,
            cold: self.cold.is_some_and(|cold| cold != Caches::AsFound),
            cold_try: self.cold == Some(Caches::ColdTry),
            query_sessions: self.query_sessions.iter().map(as_u32).collect(),
            query_duration_s: self.query_duration.map_or(defaults.query_duration_s, seconds),
            keep: self.keep,
            skip_space_check: self.skip_space_check,
            cooldown_s: self.cooldown.map_or(defaults.cooldown_s, seconds),
        };
        let sessions = work.query_sessions.iter().copied().max().unwrap_or(1).max(1);
        Ok(Plan {
            sessions,
            workers: cores().min(sessions),
            stop: Stop::DurationS(work.query_duration_s),
            warmup_s: 0.0,
            ..self.record.named(work.into())
        })
    }

    fn options(&self) -> CommandOptions<'_> {
        CommandOptions::new(&self.keep_options, &NO_GRAPH, &self.target)
    }
}
