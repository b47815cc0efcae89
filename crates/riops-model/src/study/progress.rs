//! The remaining part of an experiment, in words.

use std::time::Duration;

use super::definition::{Goal, Search};
use super::next::{Remaining, remaining};
use super::task::Study;
use crate::units::format::{count, joined, number_of};

/// Returns what is measured and how long it takes, for example `sweep rows: 4 cells, 5 runs each, about 4min`.
pub fn start_line(study: &Study) -> String {
    let experiment = &study.experiment;
    let left = remaining(study, 0, Duration::ZERO);
    let cells = number_of(experiment.cells.len() as u64, "cell");
    let runs = match &experiment.goal {
        Goal::Sweep { .. } => format!("{cells}, {} runs each", experiment.repeats),
        Goal::Ab(settings) => {
            let most = if settings.machine.is_some() { "" } else { "at most " };
            format!("2 variants, {most}{} rounds of 4 runs", settings.blocks_max)
        }
        Goal::Saturation(settings) => {
            let what = match settings.search {
                Search::Sessions => "number of sessions",
                Search::Rate => "rate",
            };
            format!("search for the {what}, {cells}")
        }
    };
    let done = match study.finished.len() {
        0 => String::new(),
        done => format!(", {} runs are finished", count(done as u64)),
    };
    format!("{}: {runs}{done}{}", experiment.name, time_text(&left))
}

/// Returns the estimated time, for example `, about 4min`.
fn time_text(left: &Remaining) -> String {
    let Some(seconds) = left.seconds else {
        return String::new();
    };
    let relation = if left.is_maximum { "at most about" } else { "about" };
    format!(", {relation} {}", time_left(seconds))
}

/// Returns a duration without false precision: `45s`, `2min 30s`, `1h 5min`.
pub fn time_left(seconds: f64) -> String {
    let step = match seconds {
        ..60.0 => 1.0,
        60.0..600.0 => 10.0,
        _ => 60.0,
    };
    let rounded = Duration::try_from_secs_f64((seconds / step).ceil() * step);
    let seconds = rounded.unwrap_or(Duration::MAX).as_secs();
    let parts = [(seconds / 3600, "h"), (seconds % 3600 / 60, "min"), (seconds % 60, "s")];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let text = joined(parts.map(|(count, unit)| format!("{count}{unit}")), " ");
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        for (seconds, text) in
            [(0.0, "0s"), (0.2, "1s"), (59.5, "1min"), (61.0, "1min 10s"), (3601.0, "1h 1min")]
        {
            assert_eq!(time_left(seconds), text);
        }
    }
}
