//! The access paths of a run: what the checks of their plans found, and which checks had no verdict.

use indexmap::IndexMap;

use riops_model::record::{AccessRecord, moment_text};
use riops_model::units::format::number_of;

/// The moments of a check, as in the record.
const MOMENTS: [&str; 4] = ["before", "first", "middle", "after"];

/// One expected access path, with all checks of the statements that should use it.
#[derive(Debug)]
pub(super) struct CheckedPath<'a> {
    /// The path, as it is shown.
    pub path: String,
    accesses: Vec<&'a AccessRecord>,
}

impl<'a> CheckedPath<'a> {
    /// Groups the checks by their expected access path, as `name` shows it.
    pub(super) fn group_accesses(
        accesses: &'a [AccessRecord],
        name: impl Fn(&str) -> String,
    ) -> Vec<Self> {
        let mut paths: IndexMap<String, Vec<&AccessRecord>> = IndexMap::new();
        for access in accesses {
            // No plan of the statement was found.
            let is_named = !access.expected.is_empty();
            let path = if is_named { name(&access.expected) } else { access.statement.clone() };
            paths.entry(path).or_default().push(access);
        }
        paths.into_iter().map(|(path, accesses)| Self { path, accesses }).collect()
    }

    /// Returns whether the plan of every check was as expected or, if nothing was expected, stayed the same.
    pub(super) fn verdict(&self) -> &'static str {
        let mut checked = self.accesses.iter().filter(|access| access.error.is_none()).peekable();
        let observed = checked.peek().map(|access| access.observed);
        match (observed, checked.all(|access| access.held)) {
            (None, _) => "NOT CHECKED",
            (Some(true), true) => "unchanged",
            (Some(false), true) => "as expected",
            (Some(_), false) => "CHANGED",
        }
    }

    /// Returns whether no plan was another one.
    pub(super) fn is_held(&self) -> bool {
        ["as expected", "unchanged"].contains(&self.verdict())
    }

    /// Returns when all its statements were checked: `checked before, during and after the run`.
    pub(super) fn checked(&self) -> String {
        let moments: Vec<_> =
            MOMENTS.into_iter().filter(|moment| self.is_checked(moment)).map(moment_text).collect();
        match moments.as_slice() {
            [] => "no plan was checked".to_owned(),
            [others @ .., last] if !others.is_empty() => {
                format!("checked {} and {last} the run", others.join(", "))
            }
            moments => format!("checked {} the run", moments.concat()),
        }
    }

    /// Returns whether the path was checked at a moment, and no statement was left out.
    fn is_checked(&self, moment: &str) -> bool {
        let has_verdict = |statement: &str| {
            self.at(moment).any(|access| access.error.is_none() && access.statement == statement)
        };
        self.at(moment).next().is_some()
            && self.at(moment).all(|access| has_verdict(&access.statement))
    }

    fn at(&self, moment: &str) -> impl Iterator<Item = &&'a AccessRecord> {
        self.accesses.iter().filter(move |access| access.moment == moment)
    }

    /// Returns the first check without a verdict, as a text.
    pub(super) fn unchecked(&self) -> Option<String> {
        MOMENTS.into_iter().find_map(|moment| {
            let first = self.at(moment).find_map(|access| access.error.as_ref())?;
            let failed = self.at(moment).filter(|access| access.error.is_some());
            let sessions = failed.map(|access| access.sessions).max()?;
            let observed = self.accesses.iter().any(|access| access.observed);
            let noun = if observed { "execution" } else { "session" };
            let sessions = number_of(sessions.into(), noun);
            let text = moment_text(moment);
            Some(format!("NOT CHECKED {text} the run by {sessions}: {first}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;

    fn with(change: impl Fn(&mut Vec<AccessRecord>)) -> (&'static str, String, Option<String>) {
        let mut accesses = example_record().accesses;
        change(&mut accesses);
        let paths = CheckedPath::group_accesses(&accesses, str::to_owned);
        assert_eq!(paths.len(), 1);
        (paths[0].verdict(), paths[0].checked(), paths[0].unchecked())
    }

    fn failed(access: &AccessRecord) -> AccessRecord {
        let error = Some("EXPLAIN failed: canceled".to_owned());
        AccessRecord { held: false, found: String::new(), sessions: 2, error, ..access.clone() }
    }

    #[test]
    fn a_check_that_failed_in_all_sessions_is_not_listed() {
        let shown = with(|accesses| {
            let last = accesses.len() - 1;
            accesses[last] = failed(&accesses[last]);
        });
        let unchecked = "NOT CHECKED after the run by 2 sessions: EXPLAIN failed: canceled";
        let checked = "checked before and during the run".to_owned();
        assert_eq!(shown, ("as expected", checked, Some(unchecked.to_owned())));
    }

    #[test]
    fn a_check_that_failed_in_some_sessions_is_named() {
        let (verdict, checked, unchecked) = with(|accesses| {
            let more = failed(&accesses[1]);
            accesses.push(more);
        });
        assert_eq!(
            (verdict, checked.as_str()),
            ("as expected", "checked before, during and after the run")
        );
        assert!(unchecked.unwrap().starts_with("NOT CHECKED during the run by 2 sessions: "));
    }

    #[test]
    fn a_path_without_any_verdict_is_not_as_expected() {
        let (verdict, checked, _) = with(|accesses| {
            *accesses = accesses.iter().map(failed).collect();
        });
        assert_eq!((verdict, checked.as_str()), ("NOT CHECKED", "no plan was checked"));
    }

    #[test]
    fn an_access_path_that_changed_once_is_not_as_expected() {
        let mut record = example_record();
        record.accesses[1].held = false;
        let paths = CheckedPath::group_accesses(&record.accesses, str::to_owned);
        assert_eq!((paths.len(), paths[0].verdict()), (1, "CHANGED"));
        assert_eq!(paths[0].checked(), "checked before, during and after the run");
    }
}
