//! The state of an A/B test: the comparison at its last look, and why it ended.

use super::judge::of_effect;
use super::model::{AbView, Against, StudyView};
use crate::comparison::stages_of;
use crate::record::Record;
use crate::stats::{Decision, Look, Outcome};
use crate::study::{AbSettings, Finished, Study, blocks, figures_of, last_look};
use crate::units::format::{number_of, percent};

/// Adds the comparison at the last look to the second variant, the state of the test, and the stages of both variants.
pub(super) fn add(view: &mut StudyView, study: &Study, settings: &AbSettings) {
    let look = last_look(study, settings);
    let stage = view.main_stage;
    if let (Some(look), Some(cell)) = (&look, view.cells.get_mut(1)) {
        for (figure, effect) in figures_of(study, settings).into_iter().zip(&look.effects) {
            let row = cell
                .group
                .stages
                .get_mut(stage)
                .and_then(|stage| stage.figures.iter_mut().find(|row| row.figure == figure));
            if let (Some(row), Ok(effect)) = (row, effect) {
                // The test, not a single comparison, determines the number of blocks.
                row.against_baseline = Some(Against { runs_needed: None, ..of_effect(effect) });
            }
        }
    }
    let failed = study.finished.iter().any(|finished: &Finished| finished.result.is_err());
    view.ab = Some(state(look.as_ref(), blocks(study, settings), settings, failed, view.effect));
    let runs = |cell: usize| -> Vec<&Record> {
        let finished = study.finished.iter().filter(|finished| finished.task.cell == cell);
        finished.filter_map(Finished::usable).collect()
    };
    let (a, b) = (runs(0), runs(1));
    if !a.is_empty() && !b.is_empty() {
        view.variants = stages_of(&a, &b);
    }
}

fn state(
    look: Option<&Look>,
    blocks: u32,
    settings: &AbSettings,
    failed: bool,
    effect: f64,
) -> AbView {
    let verdict = look.and_then(|look| match look.decision {
        Decision::Stop(outcome) => Some(outcome),
        Decision::NotSlower => Some(Outcome::Inconclusive),
        Decision::Continue { .. } => None,
    });
    let not_slower = look.is_some_and(|look| look.decision == Decision::NotSlower);
    let blocks_next = look.and_then(|look| match look.decision {
        Decision::Continue { blocks } if !failed => Some(blocks),
        _ => None,
    });
    let count = number_of(blocks.into(), "round");
    let reason = match (verdict, failed, blocks_next) {
        (Some(Outcome::Faster | Outcome::Slower), ..) => {
            format!("ended after {count}: the difference is significant")
        }
        (Some(Outcome::Equivalent), ..) => {
            format!("ended after {count}: the difference is below {}", percent(effect))
        }
        (Some(Outcome::Inconclusive), ..) if not_slower => {
            format!("ended after {count}: B is at most {} worse, or better", percent(effect))
        }
        (Some(Outcome::Inconclusive), ..) => {
            format!("ended after {count}, the maximum: inconclusive")
        }
        (None, true, _) => format!("ended after {count}: a run failed"),
        (None, false, Some(next)) => format!("{count} so far; the next look is after {next}"),
        (None, false, None) => format!("{count} so far; no look yet"),
    };
    AbView {
        blocks,
        blocks_max: settings.blocks_max,
        look: look.map(|look| look.ordinal),
        looks_max: look.map(|look| look.looks_max),
        level: look.map(|look| look.level),
        blocks_next,
        verdict,
        reason,
    }
}
