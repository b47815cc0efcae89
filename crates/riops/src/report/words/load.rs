//! The words of `load`.

use super::super::block::Block;
use super::super::format::count;
use super::super::model::Summary;
use super::super::sections::next::{Commands, Hint, stored_runs};
use super::common::{Counted, rows_text, ysql_bench};
use super::{DatasetWords, Words};
use crate::plan::{Contents, LoadDataset, LoadRun, Method};
use crate::record::{Record, StageRecord};

impl Words for LoadRun {
    fn work(&self) -> String {
        let stages = self.stages();
        let methods: Vec<_> = stages.iter().map(|stage| stage.method.as_str()).collect();
        let transactions = if self.non_transactional { ", without transactions" } else { "" };
        let files = stages.iter().filter(|stage| stage.method == Method::CopyFile).count();
        let batches = match (files, methods.len() - files) {
            (_, 0) => "a file a session, each a commit".to_owned(),
            (0, _) => format!("{} a batch, each batch a commit", rows_text(self.batch_size)),
            _ => format!(
                "{} a batch (copy-file: a file a session), each batch a commit",
                rows_text(self.batch_size)
            ),
        };
        format!("load by {}, {batches}{transactions}", methods.join(", then "))
    }

    fn setup(&self, summary: &Summary<'_>) -> Option<String> {
        Some(summary.setup())
    }

    fn headline(&self) -> &'static str {
        "load"
    }

    fn totals(&self, block: &mut Block, summary: &Summary<'_>) -> bool {
        let counted = Counted {
            unit: "row",
            number: summary.stage.rows,
            of_session: |operation| operation.rows,
            // A file is one statement, however many rows it has.
            batch: Some(summary.stage.session_loop.batch.map_or_else(|| "-".to_owned(), count)),
            non_transactional: self.non_transactional,
        };
        ysql_bench(block, summary, &counted);
        true
    }

    fn latency_of(&self, stage: &StageRecord) -> String {
        match stage.session_loop.batch {
            Some(batch) => format!("batch ({})", rows_text(batch)),
            None => "file".to_owned(),
        }
    }

    fn proof(&self, record: &Record) -> &'static str {
        let from_seed = |stage: &Self| stage.method.contents() == Contents::Seed;
        if record.checks.is_empty() {
            "every reply had all its rows"
        } else if self.stages().iter().all(from_seed) {
            "the table holds every row once, with the texts that were sent"
        } else {
            "the table holds every row once"
        }
    }

    fn after_failure(&self, commands: &Commands<'_>) -> Vec<Hint> {
        vec![commands.other("riops verify load", "what is in the table")]
    }

    // Another load would need its options and --drop once more.
    fn next_steps(&self, _: &Summary<'_>, commands: &Commands<'_>) -> Vec<Hint> {
        vec![
            commands.other("riops run point", "select rows of it by their key"),
            commands.other("riops verify load", "check that it is still complete"),
            stored_runs(),
        ]
    }
}

impl DatasetWords for LoadDataset {
    fn text(&self) -> String {
        let texts = match self.contents {
            Contents::Seed => "made by riops",
            Contents::Unknown => "made by the server or in files",
        };
        format!(
            "riops.{}: {} rows with four texts of {} characters, {texts}",
            self.table_name,
            count(self.rows),
            self.field_length
        )
    }
}
