//! The result of a search for the saturation point: levels, the fitted law, the open loop.

use super::model::{SaturationView, SessionsView, StudyView};
use crate::experiment::search::sessions::Conclusion;
use crate::experiment::{SaturationSettings, Search, Study, results};

/// Adds what the search found to each cell.
pub(super) fn add(view: &mut StudyView, study: &Study, settings: &SaturationSettings) {
    for found in results(study, settings) {
        let plan = study.experiment.cells.get(found.cell).map(|cell| &cell.plan);
        let thresholds = plan.map_or_else(Vec::new, |plan| {
            plan.thresholds.iter().map(ToString::to_string).collect()
        });
        if let Some(cell) = view.cells.get_mut(found.cell) {
            cell.saturation = Some(SaturationView {
                nodes: found.nodes,
                thresholds,
                sessions: found.sessions.map(of_sessions),
                ladder: found.ladder,
                rate: found.rate,
                rate_sessions: plan
                    .filter(|_| settings.search == Search::Rate)
                    .map(|plan| plan.sessions),
                ended_early: found.ended_early,
            });
        }
    }
}

fn of_sessions(found: Conclusion) -> SessionsView {
    let (law, law_error) = match found.law {
        Ok(law) => (Some(law), None),
        Err(error) => (None, Some(error.to_string())),
    };
    SessionsView {
        saturation: found.saturation,
        best: found.best,
        most_sessions_within_threshold: found.most_sessions_within_threshold,
        ends_at_last: found.ends_at_last,
        is_incomplete: found.is_incomplete,
        failing: found.failing,
        law,
        law_error,
    }
}
