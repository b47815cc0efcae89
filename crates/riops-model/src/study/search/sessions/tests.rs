use super::*;

/// Returns the throughput of a server with four cores, whose throughput falls slowly beyond eight sessions.
fn four_cores(level: u32) -> f64 {
    1000.0 * f64::from(level.min(4)) * (1.0 - 0.01 * f64::from(level.saturating_sub(8)))
}

fn search(
    settings: &Settings,
    throughput_per_s: impl Fn(u32) -> f64,
    meets_threshold: impl Fn(u32) -> Option<bool>,
) -> Vec<MeasuredLevel> {
    let mut points = Vec::new();
    while let Some(level) = next(settings, &points) {
        let throughput_per_s = throughput_per_s(level);
        points.push(MeasuredLevel {
            level,
            throughput_per_s,
            meets_threshold: meets_threshold(level),
        });
    }
    points
}

fn levels(points: &[MeasuredLevel]) -> Vec<u32> {
    points.iter().map(|point| point.level).collect()
}

#[test]
fn doubles_until_throughput_no_longer_grows_and_repeats_the_levels_around_the_answer() {
    let settings = Settings::default();
    let points = search(&settings, four_cores, |_| None);
    assert_eq!(levels(&points)[..6], [1, 2, 4, 8, 16, 3]);
    let conclusion = conclude(&settings, &points).unwrap();
    assert_eq!(
        (conclusion.saturation, conclusion.is_incomplete, conclusion.ends_at_last),
        (4, false, false)
    );
    assert_eq!(conclusion.most_sessions_within_threshold, None);
    let at = saturation(&settings, &points).unwrap();
    assert!(at.level == 4 && (at.throughput_per_s - 4000.0).abs() < 1e-6, "{at:?}");
    for result in &conclusion.levels {
        let expected = if (3..=6).contains(&result.level) { 3 } else { result.runs };
        assert_eq!((result.runs, result.failed), (expected, 0), "{conclusion:?}");
    }
    assert!(conclusion.law.is_some() && points.len() <= 20, "{}", points.len());
}

#[test]
fn the_next_run_depends_only_on_the_finished_runs() {
    let settings = Settings::default();
    let points = search(&settings, four_cores, |level| Some(level < 30));
    for (killed_after, point) in points.iter().enumerate() {
        assert_eq!(next(&settings, &points[..killed_after]), Some(point.level));
    }
}

#[test]
fn climbs_beyond_the_saturation_to_find_the_most_sessions_that_meet_the_threshold() {
    let settings = Settings::default();
    for most in [1, 5, 12, 30, 200] {
        let points = search(&settings, four_cores_flat, |level| Some(level <= most));
        let conclusion = conclude(&settings, &points).unwrap();
        let expected = [1, 4, 12, 24, 192].into_iter().rfind(|level| *level <= most);
        assert_eq!(conclusion.most_sessions_within_threshold, expected, "{most}");
        assert_eq!(conclusion.saturation, 4);
        let edge = conclusion.levels.iter().find(|result| Some(result.level) == expected).unwrap();
        assert!(edge.within_threshold >= Some(2), "{conclusion:?}");
    }
    let points = search(&settings, four_cores_flat, |_| Some(false));
    assert_eq!(conclude(&settings, &points).unwrap().most_sessions_within_threshold, None);
}

fn four_cores_flat(level: u32) -> f64 {
    1000.0 * f64::from(level.min(4))
}

#[test]
fn a_level_that_fails_twice_ends_the_climb() {
    let settings = Settings::default();
    let points = search(
        &settings,
        |level| if level > 30 { 0.0 } else { f64::from(level) },
        |level| Some(level <= 30),
    );
    assert!(levels(&points).iter().all(|level| *level <= 32), "{points:?}");
    // Once more, because a single failure may be a disturbance.
    assert_eq!(levels(&points).iter().filter(|level| **level == 32).count(), 2);
    let conclusion = conclude(&settings, &points).unwrap();
    assert_eq!((conclusion.best, conclusion.most_sessions_within_threshold), (24, Some(24)));
    let failed = conclusion.levels.last().unwrap();
    assert_eq!((failed.level, failed.runs, failed.failed), (32, 0, 2));
    assert_eq!(conclusion.failing, Some(32));
    assert_eq!((failed.throughput_per_s, failed.interval), (0.0, None));
}

#[test]
fn a_run_that_fails_by_chance_does_not_end_the_climb() {
    let settings = Settings::default();
    for failed in 0..6 {
        let mut points: Vec<MeasuredLevel> = Vec::new();
        while let Some(level) = next(&settings, &points) {
            let throughput_per_s = if points.len() == failed { 0.0 } else { four_cores(level) };
            points.push(MeasuredLevel { level, throughput_per_s, meets_threshold: None });
        }
        let conclusion = conclude(&settings, &points).unwrap();
        assert_eq!((conclusion.saturation, conclusion.failing), (4, None), "{failed}");
    }
}

#[test]
fn a_search_without_any_throughput_ends() {
    let settings = Settings::default();
    let points = search(&settings, |_| 0.0, |_| None);
    assert_eq!((levels(&points), conclude(&settings, &points)), (vec![1, 1], None));
}

#[test]
fn one_slow_run_during_the_climb_does_not_change_the_answer() {
    let settings = Settings::default();
    for slow in 0..6 {
        let mut points: Vec<MeasuredLevel> = Vec::new();
        while let Some(level) = next(&settings, &points) {
            let factor = if points.len() == slow { 0.8 } else { 1.0 };
            let throughput_per_s = four_cores(level) * factor;
            points.push(MeasuredLevel { level, throughput_per_s, meets_threshold: None });
        }
        let saturation = conclude(&settings, &points).unwrap().saturation;
        assert!([3, 4, 6].contains(&saturation), "{slow}: {saturation}");
    }
}

#[test]
fn stays_within_the_bounds_of_the_settings() {
    let settings = Settings { first: 4, last: 32, ..Settings::default() };
    let points = search(&settings, f64::from, |_| Some(true));
    assert!(levels(&points).iter().all(|level| (4..=32).contains(level)), "{points:?}");
    let conclusion = conclude(&settings, &points).unwrap();
    assert!(conclusion.ends_at_last && !conclusion.is_incomplete);
    assert_eq!((conclusion.best, conclusion.most_sessions_within_threshold), (32, Some(32)));
    let few = Settings { runs_max: 7, ..Settings::default() };
    let points = search(&few, four_cores, |_| None);
    assert_eq!(points.len(), 7);
    assert!(conclude(&few, &points).unwrap().is_incomplete);
}
