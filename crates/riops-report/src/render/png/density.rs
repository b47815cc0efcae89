//! Dots of single transactions. Overlapping dots are drawn darker, and a dot without neighbors is drawn larger, so that both a
//! million short transactions and a single long one stay visible.

use std::collections::BTreeMap;

use plotters::prelude::*;

use super::canvas::{Area, COLORS, Context, Drawn};

/// Size of a dot, and of a dot in a sparse plot, in pixels.
const DOT: i32 = 3;
const SPARSE_DOT: i32 = 5;
/// Maximum number of dots of a sparse plot.
const SPARSE_MAX: usize = 4_000;
/// Opacity of a cell with a single dot, 0 to 1.
const MIN_OPACITY: f64 = 0.55;

/// A dot: its place, and the number of its session, which determines its color.
type Point = (f64, f64, u32);

/// Draws the dots that are within the axes.
pub(super) fn density(root: &Area<'_>, chart: &Context<'_, '_>, points: &[Point]) -> Drawn<()> {
    let (columns, rows) = chart.plotting_area().get_pixel_range();
    let pixel = |(x, y, _): Point| {
        let (x, y) = chart.backend_coord(&(x, y));
        let is_inside =
            (columns.start..=columns.end).contains(&x) && (rows.start..=rows.end).contains(&y);
        is_inside.then_some((x, y))
    };
    let size = if points.len() <= SPARSE_MAX { SPARSE_DOT } else { DOT };
    for Dot { x, y, margin, color } in dots(points, size, pixel) {
        let from = (x - margin, y - margin);
        let to = (from.0 + size + 2 * margin, from.1 + size + 2 * margin);
        root.draw(&Rectangle::new([from, to], color.filled()))?;
    }
    Ok(())
}

/// The dot of one cell of the image.
struct Dot {
    /// Upper left corner of the cell, in pixels.
    x: i32,
    y: i32,
    /// Pixels by which the dot exceeds its cell on each side.
    margin: i32,
    color: RGBAColor,
}

/// Returns the dots in drawing order, from back to front.
fn dots(points: &[Point], size: i32, pixel: impl Fn(Point) -> Option<(i32, i32)>) -> Vec<Dot> {
    // Dots per cell and session. Each cell is centered on the pixels of its dots.
    let mut cells: BTreeMap<(i32, i32), BTreeMap<u32, u32>> = BTreeMap::new();
    for &point in points {
        let Some((x, y)) = pixel(point) else { continue };
        let cell = ((x - size / 2).div_euclid(size), (y - size / 2).div_euclid(size));
        *cells.entry(cell).or_default().entry(point.2).or_default() += 1;
    }
    let most = cells.values().map(|sessions| sessions.values().sum::<u32>()).max().unwrap_or(1);
    let is_isolated = |(x, y): (i32, i32)| {
        let neighborhood = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (x + dx, y + dy)));
        neighborhood.filter(|cell| cells.contains_key(cell)).count() == 1
    };
    let dots = cells.iter().filter_map(|(&(x, y), sessions)| {
        let total: u32 = sessions.values().sum();
        let (&session, _) = sessions.iter().max_by_key(|(_, count)| **count)?;
        // Logarithmic, because perceived brightness depends on ratios.
        let share = f64::from(total).ln() / f64::from(most.max(2)).ln();
        let shaded = (0, MIN_OPACITY + (1.0 - MIN_OPACITY) * share);
        let (margin, opacity) = if is_isolated((x, y)) { (1, 1.0) } else { shaded };
        let color = COLORS.get(session as usize % COLORS.len())?.mix(opacity);
        Some(Dot { x: x * size, y: y * size, margin, color })
    });
    let mut dots: Vec<Dot> = dots.collect();
    // Isolated dots are drawn last, so that no other dot hides them.
    dots.sort_by_key(|dot| dot.margin);
    dots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_dots_are_darker() {
        let mut points = vec![(0.0, 1.0, 0)];
        points.extend([(10.0, 1.0, 0); 100]);
        let pixel = |(x, ..): Point| Some((if x > 5.0 { DOT } else { 0 }, 0));
        let drawn = dots(&points, DOT, pixel);
        assert_eq!(drawn.len(), 2);
        assert!(drawn[0].color.3 < drawn[1].color.3);
    }

    #[test]
    fn an_isolated_dot_is_larger_and_in_front() {
        let points = [(0.0, 1.0, 0), (9.0, 1.0, 0), (9.1, 1.0, 0)];
        #[expect(clippy::cast_possible_truncation, reason = "pixels")]
        let drawn = dots(&points, 1, |(x, ..)| Some(((x * 10.0) as i32, 0)));
        let margins: Vec<_> = drawn.iter().map(|dot| (dot.x, dot.margin)).collect();
        assert_eq!(margins, [(90, 0), (91, 0), (0, 1)]);
    }
}
