//! A flame graph: functions as rectangles above their callers, as wide as their share of the samples. For two profiles,
//! the width is the share in B, and the color shows the change.
//!
//! Source: Gregg, "The Flame Graph", Communications of the ACM 59 (6), 2016.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::table::{Cell, Table, number_column, text_column};
use riops_model::record::{ProfileRecord, Stack};
use riops_model::units::format::{count, percent, truncated};

/// Width of the graph, in the units of its coordinates.
const WIDTH: f64 = 1_000.0;
/// Height of a function.
const ROW: f64 = 16.0;
/// Narrower functions are left out.
const WIDTH_MIN: f64 = 0.8;
/// Width of a character of a name.
const CHARACTER: f64 = 6.2;
/// Functions deeper than this are left out.
const DEPTH_MAX: usize = 64;
/// Number of functions in the table.
const FUNCTIONS_MAX: usize = 20;
/// Change of a share that has the strongest color, as has any larger one.
const CHANGE_MAX: f64 = 0.05;

/// A flame graph, as its template draws it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Flame {
    pub(super) title: String,
    pub(super) note: String,
    height: f64,
    frames: Vec<Frame>,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Frame {
    x: f64,
    y: f64,
    width: f64,
    /// The name, as far as it fits.
    text: String,
    /// The whole name and the share.
    title: String,
    class: String,
}

/// A function with those that it called, and its samples in A and in B.
#[derive(Debug, Default)]
struct Node {
    samples: [u64; 2],
    called: BTreeMap<String, Node>,
}

impl Node {
    fn add(&mut self, functions: &[String], side: usize, samples: u64) {
        if let Some(own) = self.samples.get_mut(side) {
            *own += samples;
        }
        if let Some((first, rest)) = functions.split_first() {
            self.called.entry(first.clone()).or_default().add(rest, side, samples);
        }
    }

    /// Adds the functions that this one called, from `x` on. `all` are the samples of A and of B.
    fn draw(&self, [all_a, all_b]: [f64; 2], mut x: f64, depth: usize, frames: &mut Vec<Frame>) {
        for (name, called) in &self.called {
            let [a, b] = called.samples.map(|samples| samples as f64);
            let share = b / all_b;
            let width = share * WIDTH;
            if width >= WIDTH_MIN && depth < DEPTH_MAX {
                let change = (all_a > 0.0).then(|| share - a / all_a);
                frames.push(frame(name, x, depth, share, change));
                called.draw([all_a, all_b], x, depth + 1, frames);
            }
            x += width;
        }
    }
}

/// Returns the graph of a profile; `None` without samples.
pub(super) fn flame(profile: &ProfileRecord) -> Option<Flame> {
    let stacks = profile.stacks();
    draw("CPU profile of the server", note(profile), [&[], &stacks])
}

/// Returns the graph of the difference of two profiles.
pub(super) fn difference(a: &[Stack], b: &[Stack]) -> Option<Flame> {
    let note = "width: share in B; red: larger than in A, blue: smaller".to_owned();
    (!a.is_empty()).then(|| draw("CPU profile of B, relative to A", note, [a, b]))?
}

/// How the profile was taken, and what it cost.
pub(super) fn note(profile: &ProfileRecord) -> String {
    let kernel = if profile.has_kernel { "with the kernel" } else { "user mode only" };
    format!(
        "{} samples at {} Hz, {kernel}, stacks by {}; perf used {} of one CPU, and slows down the server",
        count(profile.samples),
        profile.hz,
        profile.stack_method,
        percent(profile.perf_cpus)
    )
}

fn draw(title: &str, note: String, sides: [&[Stack]; 2]) -> Option<Flame> {
    let mut root = Node::default();
    for (side, stacks) in sides.iter().enumerate() {
        for (functions, samples) in *stacks {
            root.add(functions, side, *samples);
        }
    }
    let all = root.samples.map(|samples| samples as f64);
    if all[1] == 0.0 {
        return None;
    }
    let mut frames = Vec::new();
    root.draw(all, 0.0, 0, &mut frames);
    // The outermost functions are at the bottom.
    let top = frames.iter().map(|frame| frame.y).fold(0.0, f64::max);
    for frame in &mut frames {
        frame.y = top - frame.y;
    }
    Some(Flame { title: title.to_owned(), note, height: top + ROW, frames })
}

fn frame(name: &str, x: f64, depth: usize, share: f64, change: Option<f64>) -> Frame {
    let width = share * WIDTH;
    let characters = truncated((width - 4.0).max(0.0) / CHARACTER);
    let text: String =
        if characters < 3 { String::new() } else { name.chars().take(characters).collect() };
    let changed = change.map_or_else(String::new, |change| {
        format!(", {}{} points", if change < 0.0 { '-' } else { '+' }, percent(change.abs()))
    });
    let round = |value: f64| (value * 10.0).round() / 10.0;
    Frame {
        x: round(x),
        y: depth as f64 * ROW,
        width: round(width),
        text,
        title: format!("{name}: {}{changed}", percent(share)),
        class: class(name, change),
    }
}

/// The color: of a change by its size, otherwise by the kind of the function.
fn class(name: &str, change: Option<f64>) -> String {
    match change {
        Some(change) => {
            #[expect(clippy::cast_possible_truncation, reason = "at most 3")]
            let strength = ((change / CHANGE_MAX).clamp(-1.0, 1.0) * 3.0).round() as i32;
            match strength {
                0 => "same".to_owned(),
                1.. => format!("more{strength}"),
                _ => format!("less{}", -strength),
            }
        }
        None => format!("warm{}", name.bytes().map(u32::from).sum::<u32>() % 4),
    }
}

/// Samples of a function: alone, and with those that it called.
type Counts = BTreeMap<String, (u64, u64)>;

fn counts(stacks: &[Stack]) -> (Counts, f64) {
    let mut counts = Counts::new();
    for (functions, samples) in stacks {
        let mut seen: Vec<&String> = Vec::new();
        for function in functions {
            // A recursive function counts once.
            if !seen.contains(&function) {
                seen.push(function);
                counts.entry(function.clone()).or_default().1 += samples;
            }
        }
        if let Some(last) = functions.last() {
            counts.entry(last.clone()).or_default().0 += samples;
        }
    }
    let all: u64 = stacks.iter().map(|(_, samples)| samples).sum();
    (counts, (all as f64).max(1.0))
}

/// The functions with the most samples of their own.
pub(super) fn functions(stacks: &[Stack]) -> Vec<(String, f64, f64)> {
    let (counts, all) = counts(stacks);
    let share = |(name, (own, total))| (name, own as f64 / all, total as f64 / all);
    let mut shares: Vec<(String, f64, f64)> = counts.into_iter().map(share).collect();
    shares.sort_by(|one, other| other.1.total_cmp(&one.1));
    shares.truncate(FUNCTIONS_MAX);
    shares
}

/// The functions of a profile.
pub(super) fn table(profile: &ProfileRecord) -> Option<Table> {
    let rows = functions(&profile.stacks()).into_iter().map(|(name, own, total)| {
        vec![name.into(), Cell::from(percent(own)).with_bar(own), percent(total).into()]
    });
    let columns =
        [text_column("function"), number_column("share"), number_column("with called functions")];
    Table::new("functions", columns, rows).filled()
}

/// The functions whose share changed most, by all of their samples.
pub(super) fn changed(title: String, a: &[Stack], b: &[Stack]) -> Option<Table> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let ((of_a, all_a), (of_b, all_b)) = (counts(a), counts(b));
    let names = of_a.keys().chain(of_b.keys().filter(|name| !of_a.contains_key(*name)));
    let share = |counts: &Counts, all: f64, name: &String| {
        counts.get(name).map_or(0.0, |(_, total)| *total as f64 / all)
    };
    let mut changes: Vec<_> =
        names.map(|name| (name, share(&of_a, all_a, name), share(&of_b, all_b, name))).collect();
    changes.sort_by(|one, other| (other.2 - other.1).abs().total_cmp(&(one.2 - one.1).abs()));
    let rows = changes.into_iter().take(FUNCTIONS_MAX).map(|(name, a, b)| {
        let sign = if b < a { '-' } else { '+' };
        let change = format!("{sign}{}", percent((b - a).abs()));
        vec![name.as_str().into(), percent(a).into(), percent(b).into(), change.into()]
    });
    let columns =
        [text_column("function"), number_column("A"), number_column("B"), number_column("change")];
    Table::new(title, columns, rows).filled()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(counts: &[(&str, u64)]) -> Vec<Stack> {
        counts
            .iter()
            .map(|(stack, samples)| (stack.split(';').map(str::to_owned).collect(), *samples))
            .collect()
    }

    #[test]
    fn functions_are_as_wide_as_their_share_and_above_their_callers() {
        let stacks = stacks(&[("main;scan;read", 60), ("main;sort", 40)]);
        let graph = draw("t", String::new(), [&[], &stacks]).unwrap();
        let frame = |name: &str| graph.frames.iter().find(|frame| frame.text == name).unwrap();
        assert_eq!((frame("main").x, frame("main").width, frame("main").y), (0.0, 1_000.0, 32.0));
        assert_eq!((frame("scan").width, frame("scan").y), (600.0, 16.0));
        assert_eq!((frame("sort").x, frame("sort").width), (600.0, 400.0));
        assert_eq!(frame("read").title, "read: 60%");
        assert_eq!(graph.height, 48.0);
        assert_eq!(functions(&stacks)[0], ("read".to_owned(), 0.6, 0.6));
        assert_eq!(draw("t", String::new(), [&stacks, &[]]), None);
    }

    #[test]
    fn a_difference_shows_the_functions_with_more_samples() {
        let (a, b) =
            (stacks(&[("main;scan", 100)]), stacks(&[("main;scan", 50), ("main;jit", 50)]));
        let graph = difference(&a, &b).unwrap();
        let class = |name: &str| {
            graph.frames.iter().find(|frame| frame.text == name).unwrap().class.clone()
        };
        assert_eq!(
            (class("jit"), class("scan"), class("main")),
            ("more3".to_owned(), "less3".to_owned(), "same".to_owned())
        );
        let table = changed("t".to_owned(), &a, &b).unwrap();
        let row: Vec<_> = table.rows[1].iter().map(Cell::text).collect();
        assert_eq!(row, ["jit", "0.0%", "50%", "+50%"]);
        assert_eq!(difference(&[], &b), None);
    }
}
