//! The axes of an experiment: options with several values, and variants, which are several options at once.

use std::collections::BTreeSet;
use std::ffi::OsString;

use anyhow::Result;
use clap::Command;
use riops::experiment::Axis;
use riops::units::text::is_unprintable;
use toml::{Table, Value};

use super::words::{all_typed, long_name, text_of, typed, without_password};
use crate::failure::refuse;

/// The axis of the variants.
pub(crate) const VARIANT: &str = "variant";
/// More cells are a mistake.
const CELLS_MAX: usize = 10_000;

/// An axis whose values are options of `riops run`.
#[derive(Debug, Clone)]
pub(crate) struct TypedAxis {
    pub(crate) name: String,
    /// The text of each value, and the options that it stands for.
    pub(crate) values: Vec<(String, Vec<OsString>)>,
}

impl TypedAxis {
    /// An axis of an option.
    ///
    /// # Errors
    /// If the workload has no such option.
    pub(crate) fn of_option(command: &Command, name: &str, values: &[Value]) -> Result<Self> {
        let name = long_name(command, name);
        if name == "seed" {
            return refuse("\"seed\" cannot be an axis: all cells of a block use the same keys");
        }
        let value = |value: &Value| {
            let text = text_of(value)?;
            let shown = if name == "database" { without_password(&text) } else { text };
            Ok((shown, typed(command, &name, value)?))
        };
        let values = values.iter().map(value).collect::<Result<_>>()?;
        Self { name, values }.checked()
    }

    /// The axis of the variants.
    ///
    /// # Errors
    /// If the workload has no such options.
    pub(crate) fn of_variants(command: &Command, variants: &Table) -> Result<Self> {
        let variant = |(name, options): (&String, &Value)| {
            let Value::Table(options) = options else {
                return refuse(format!("variant \"{name}\": expected a table of options"));
            };
            Ok((name.clone(), all_typed(command, options)?))
        };
        let values = variants.iter().map(variant).collect::<Result<_>>()?;
        Self { name: VARIANT.to_owned(), values }.checked()
    }

    /// Parses `NAME=VALUE,…`.
    ///
    /// # Errors
    /// As [`Self::of_option`].
    pub(crate) fn of_text(command: &Command, (name, values): &(String, String)) -> Result<Self> {
        let values: Vec<Value> =
            values.split(',').map(|value| Value::String(value.trim().to_owned())).collect();
        Self::of_option(command, name, &values)
    }

    /// Fails if a value is missing, repeated or cannot be shown.
    pub(super) fn checked(self) -> Result<Self> {
        let mut seen = BTreeSet::new();
        if self.values.is_empty() {
            return refuse(format!("axis \"{}\" has no values", self.name));
        }
        for (text, _) in &self.values {
            if text.chars().any(is_unprintable) || text.is_empty() {
                return refuse(format!("axis \"{}\": invalid value {text:?}", self.name));
            }
            if !seen.insert(text) {
                return refuse(format!("axis \"{}\" has the value \"{text}\" twice", self.name));
            }
        }
        Ok(self)
    }

    /// The axis as stored.
    pub(crate) fn plain(&self) -> Axis {
        let values = self.values.iter().map(|(text, _)| text.clone()).collect();
        Axis { name: self.name.clone(), values }
    }
}

/// Returns all combinations of the values with their options, the last axis varying fastest.
///
/// # Errors
/// If there are too many.
pub(crate) fn combinations(axes: &[TypedAxis]) -> Result<Vec<(Vec<String>, Vec<OsString>)>> {
    let count = axes.iter().map(|axis| axis.values.len()).try_fold(1_usize, usize::checked_mul);
    if count.is_none_or(|count| count > CELLS_MAX) {
        return refuse(format!("the axes have more than {CELLS_MAX} combinations"));
    }
    let mut cells = vec![(Vec::new(), Vec::new())];
    for axis in axes {
        let with_each = |(values, words): (Vec<String>, Vec<OsString>)| {
            axis.values.iter().map(move |(text, more)| {
                let values = values.iter().chain([text]).cloned().collect();
                (values, [&words[..], more].concat())
            })
        };
        cells = cells.into_iter().flat_map(with_each).collect();
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::super::words::command_of;
    use super::*;

    fn axis(text: (&str, &str)) -> Result<TypedAxis> {
        let command = command_of("rows").unwrap();
        TypedAxis::of_text(&command, &(text.0.to_owned(), text.1.to_owned()))
    }

    #[test]
    fn combinations_vary_the_last_axis_fastest() {
        let axes =
            [axis(("sessions", "1,2")).unwrap(), axis(("index_only", "false,true")).unwrap()];
        let cells = combinations(&axes).unwrap();
        let expected = [
            (["1", "false"], vec!["--sessions=1"]),
            (["1", "true"], vec!["--sessions=1", "--index-only"]),
            (["2", "false"], vec!["--sessions=2"]),
            (["2", "true"], vec!["--sessions=2", "--index-only"]),
        ];
        let expected = expected.map(|(values, words)| {
            let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            (values.map(str::to_owned).to_vec(), words)
        });
        assert_eq!(cells, expected);
        assert_eq!(combinations(&[]).unwrap(), [(Vec::new(), Vec::new())]);
    }

    #[test]
    fn rejects_unknown_options_repeated_values_and_too_many_cells() {
        let error = |text| axis(text).unwrap_err().to_string();
        assert!(error(("sesions", "1")).contains("did you mean sessions?"));
        assert!(error(("batch", "1,2,1")).contains("\"1\" twice"));
        assert!(error(("batch", "1,,2")).contains("invalid value"));
        let many: Vec<_> = (1..=101).map(|value| value.to_string()).collect();
        let many = axis(("batch", &many.join(","))).unwrap();
        assert!(combinations(&[many.clone(), many]).is_err());
    }

    #[test]
    fn the_password_of_a_database_is_not_part_of_its_value() {
        let url = "postgresql://me:secret@h/db";
        let axis = axis(("database", url)).unwrap();
        assert_eq!(axis.plain().values, ["postgresql://me:***@h/db"]);
        assert_eq!(axis.values[0].1, [OsString::from(format!("--database={url}"))]);
    }

    #[test]
    fn a_variant_is_several_options_at_once() {
        let variants =
            "small = { server-set = [\"shared_buffers=16MB\", \"work_mem=1MB\"], sessions = 2 }";
        let command = command_of("rows").unwrap();
        let axis = TypedAxis::of_variants(&command, &variants.parse().unwrap()).unwrap();
        let words =
            ["--server-set=shared_buffers=16MB", "--server-set=work_mem=1MB", "--sessions=2"];
        assert_eq!(axis.values, [("small".to_owned(), words.map(OsString::from).to_vec())]);
    }
}
