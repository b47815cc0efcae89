//! Why a transaction takes longer or shorter than in another group of runs.

use crate::document::Document;
use crate::table::{Table, number_column, text_column};
use riops_model::comparison::{PartChange, TimeChange};
use riops_model::units::format::duration_us;

/// Maximum number of parts that are named.
const PARTS_MAX: usize = 3;

/// The parts that explain a difference, those that changed most first. Only for groups of which one is faster.
pub(crate) fn why(document: &mut Document, time: &TimeChange) {
    let [a, b] = [time.a_us, time.b_us].map(duration_us);
    let total = format!("{} per transaction ({a} → {b})", signed(time.b_us - time.a_us));
    let causes: Vec<&PartChange> = time.parts.iter().filter(|part| part.is_cause).collect();
    let candidates =
        time.candidates.iter().map(|candidate| format!("may be the reason: {candidate}"));
    if time.parts.is_empty() {
        document.lines("why", candidates);
    } else if causes.is_empty() {
        let largest = time.parts.first().map_or_else(String::new, |part| {
            format!("; most of all {} {}", part.part.name(), signed(part.change_us))
        });
        document.line("why", format!("{total}: no single part of it is certain{largest}"));
        document.lines("", candidates);
    } else {
        document.line("why", total);
        document.lines("", causes.into_iter().take(PARTS_MAX).map(text));
    }
}

/// `WAL +1.10 ms (+0.9 ms to +1.3 ms): setting synchronous_commit: off → on`.
fn text(part: &PartChange) -> String {
    let interval = interval(part).map_or_else(String::new, |interval| format!(" ({interval})"));
    let beside = match part.beside.as_slice() {
        [] => "nothing that is recorded explains it".to_owned(),
        beside => beside.join("; "),
    };
    format!("{} {}{interval}: {beside}", part.part.name(), signed(part.change_us))
}

fn interval(part: &PartChange) -> Option<String> {
    part.interval.map(|interval| format!("{} to {}", signed(interval.low), signed(interval.high)))
}

/// A duration with its sign.
pub(crate) fn signed(us: f64) -> String {
    format!("{}{}", if us < 0.0 { '-' } else { '+' }, duration_us(us.abs()))
}

/// All parts of the time of a transaction in both groups.
pub(crate) fn table(title: String, [a, b]: [&str; 2], time: &TimeChange) -> Table {
    let part = |part: &PartChange| {
        (part.part.name(), [part.a_us, part.b_us], part.change_us, interval(part))
    };
    let sum = ("sum", [time.a_us, time.b_us], time.b_us - time.a_us, None);
    Table::from_items(
        title,
        time.parts.iter().map(part).chain([sum]),
        |(name, of_both, change, interval)| {
            let [of_a, of_b] = of_both.map(|us| duration_us(us.max(0.0)));
            [
                (text_column("part"), name.into()),
                (number_column(a), of_a.into()),
                (number_column(b), of_b.into()),
                (number_column("change"), signed(change).into()),
                (number_column("95% interval"), interval.into()),
            ]
        },
    )
}
