//! The file of a performance gate: workloads and two variants.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;

use anyhow::Result;
use riops::experiment::{BuildError, GateRules, Variant};
use riops::figure::CostKind;
use riops::host::files::{TEXT_BYTES_MAX, text_limited};
use riops::study::{ALPHA, BLOCKS_MAX, EFFECT, Experiment, machines_needed};
use serde::Deserialize;
use toml::{Table, Value};

use super::draft::{Draft, TestRules};
use super::file::{Time, require_trusted_option, run_words, variants};
use super::words::{Databases, TypedValue, command_of, replaced, typed};
use crate::args::{TrustOption, parse_share};
use crate::failure::{
    BREACHED, CodedError, FAILED, INTERRUPTED, NOT_VALID, UsageError, code_of, refuse,
};

/// Stands for the directory of a build in the options of a variant.
const PREFIX: &str = "{prefix}";
/// Maximum number of repeated runs, unless the file says it.
const REPEATS_MAX: u32 = 8;

/// `git bisect run` skips a commit with this code.
pub(crate) const SKIPPED: u8 = 125;
/// It ends with this code.
const ENDED: u8 = 128;

/// How an undecided gate ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Undecided {
    /// It passes.
    #[default]
    Pass,
    /// It fails.
    Fail,
    /// Neither: a separate exit code, which CI services can permit.
    Neutral,
}

impl Undecided {
    /// Returns the exit code, and the spelling in the file.
    pub(crate) fn code(self) -> (u8, &'static str) {
        match self {
            Self::Pass => (0, "pass"),
            Self::Fail => (BREACHED, "fail"),
            Self::Neutral => (NOT_VALID, "neutral"),
        }
    }
}

/// Returns the error of a gate with its exit code.
pub(crate) fn recoded(error: anyhow::Error, in_bisect: bool) -> anyhow::Error {
    let code = match (code_of(&error), in_bisect) {
        (INTERRUPTED, true) => INTERRUPTED,
        (_, true) if matches!(error.downcast_ref(), Some(BuildError::Failed { .. })) => SKIPPED,
        (_, true) => ENDED,
        // An undecided gate may have this code.
        (NOT_VALID, false) => FAILED,
        (_, false) => return error,
    };
    CodedError { code, text: format!("{error:#}") }.into()
}

/// A gate file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct GateFile {
    effect: Option<String>,
    error: Option<String>,
    #[serde(alias = "blocks-max")]
    rounds_max: Option<u32>,
    repeat_disturbed: Option<u32>,
    /// Pause between two runs.
    cool_down: Option<Time>,
    pub(crate) time_limit: Option<Time>,
    #[serde(default)]
    pub(crate) inconclusive: Undecided,
    /// The costs of a transaction that are judged, too.
    #[serde(default)]
    costs: Vec<CostKind>,
    /// Command that builds a commit.
    pub(crate) build: Option<String>,
    /// Options of the variants.
    #[serde(default)]
    base: Table,
    #[serde(default)]
    head: Table,
    /// Options of both, for all workloads.
    #[serde(default)]
    options: Table,
    workload: Vec<Workload>,
}

/// A workload, and its options.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Workload {
    run: String,
    name: Option<String>,
    #[serde(default)]
    options: Table,
}

impl GateFile {
    /// Reads a file. Without the permission of a person, it may not name programs, files and servers.
    ///
    /// # Errors
    /// If the file cannot be read, has unknown keys or options, or needs `--trust`.
    pub(crate) fn read(path: &Path, trust: TrustOption) -> Result<Self> {
        let failed = |error: String| UsageError(format!("gate file {}: {error}", path.display()));
        let text = text_limited(path, TEXT_BYTES_MAX).map_err(|error| failed(error.to_string()))?;
        let file: Self = toml::from_str(&text).map_err(|error| failed(error.to_string()))?;
        file.require_valid(trust).map_err(|error| failed(format!("{error:#}")))?;
        Ok(file)
    }

    fn require_valid(&self, trust: TrustOption) -> Result<()> {
        if self.workload.is_empty() {
            return refuse("there is no [[workload]]");
        }
        if let Some(command) = self.build.as_ref().filter(|_| !trust.trust) {
            return refuse(format!("build = \"{command}\" is executed: permit it with --trust"));
        }
        for workload in &self.workload {
            let command = command_of(&workload.run)?;
            let all = [&self.options, &workload.options, &self.base, &self.head];
            for (name, value) in all.into_iter().flatten().filter(|_| !trust.trust) {
                require_trusted_option(&command, name, value)?;
            }
        }
        self.rules(None).map(|_| ())
    }

    /// # Errors
    /// If a share is invalid.
    pub(crate) fn rules(&self, limit_s: Option<f64>) -> Result<GateRules> {
        let share = |name: &str, given: Option<&String>, default: f64| {
            let share = given.map_or(Ok(default), |text| parse_share(text).map(|share| share.0));
            share.map_err(|error| UsageError(format!("{name}: {error}")))
        };
        Ok(GateRules {
            effect: share("effect", self.effect.as_ref(), EFFECT)?,
            error: share("error", self.error.as_ref(), ALPHA)?,
            limit_s: limit_s.or(self.time_limit.map(|limit| limit.0)),
            continues: false,
        })
    }

    /// Returns how many machines are needed to show a difference.
    ///
    /// # Errors
    /// If a share is invalid.
    pub(crate) fn machines_needed(&self) -> Result<u32> {
        Ok(machines_needed(self.rules(None)?.error, self.workload.len()))
    }

    /// Returns the A/B tests of the workloads, whose false verdicts together have the probability `error`. Adds the connection
    /// strings with passwords to `databases`.
    ///
    /// # Errors
    /// If an option is invalid, or needs a build that there is not.
    pub(crate) fn tests(
        &self,
        [base, head]: &[Variant; 2],
        error: f64,
        target: &[OsString],
        databases: &RefCell<Databases>,
    ) -> Result<Vec<Experiment>> {
        let of_each = error / self.workload.len() as f64;
        let draft = |workload: &Workload| -> Result<Draft> {
            let command = command_of(&workload.run)?;
            let name = workload.name.clone().unwrap_or_else(|| workload.run.clone());
            let mut draft = Draft::new(name, workload.run.clone());
            draft.words = [run_words(&workload.run), target.to_vec()].concat();
            if self.costs.contains(&CostKind::Instructions) {
                draft.words.push("--instructions".into());
            }
            let of_variant = |text, options: &Table, variant: &Variant| -> Result<TypedValue> {
                let mut words = Vec::new();
                for options in [&self.options, &workload.options, options] {
                    let set = options.iter().map(|(name, value)| {
                        typed(&command, name, &with_prefix(value, variant.prefix.as_deref())?)
                    });
                    words = replaced(words, &set.collect::<Result<Vec<_>>>()?.concat());
                }
                Ok(TypedValue { text, words })
            };
            let a = of_variant(base.name.clone(), &self.base, base)?;
            let b = of_variant(named_apart(base, head), &self.head, head)?;
            draft.axes = vec![variants([a, b])?];
            draft.effect = Some(self.rules(None)?.effect);
            draft.blocks_max = Some(self.rounds_max.unwrap_or(BLOCKS_MAX));
            draft.between.cool_down_s = self.cool_down.map_or(0.0, |time| time.0);
            draft.gate = Some(TestRules {
                error: of_each,
                repeats_max: self.repeat_disturbed.unwrap_or(REPEATS_MAX),
                costs: self.costs.clone(),
            });
            Ok(draft)
        };
        let defined = |workload| {
            let (experiment, of_test) = draft(workload)?.define()?;
            databases.borrow_mut().extend(of_test);
            Ok(experiment)
        };
        self.workload.iter().map(defined).collect()
    }
}

/// Returns a name of the head that differs from the name of the base, also if both are the same commit.
pub(crate) fn named_apart(base: &Variant, head: &Variant) -> String {
    if head.name == base.name { format!("{} (again)", head.name) } else { head.name.clone() }
}

/// Returns a value with the directory of the build.
fn with_prefix(value: &Value, prefix: Option<&Path>) -> Result<Value> {
    Ok(match value {
        Value::String(text) if text.contains(PREFIX) => match prefix {
            Some(prefix) => Value::String(text.replace(PREFIX, &prefix.to_string_lossy())),
            None => {
                return refuse(format!(
                    "\"{text}\" needs a build: specify build = \"…\" or --build"
                ));
            }
        },
        Value::Array(values) => {
            let values = values.iter().map(|value| with_prefix(value, prefix));
            Value::Array(values.collect::<Result<_>>()?)
        }
        other => other.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_has_the_code_of_an_undecided_gate() {
        let coded = |code, in_bisect| {
            code_of(&recoded(CodedError { code, text: String::new() }.into(), in_bisect))
        };
        assert_eq!([NOT_VALID, BREACHED].map(|code| coded(code, false)), [FAILED, BREACHED]);
        assert_eq!([NOT_VALID, INTERRUPTED].map(|code| coded(code, true)), [ENDED, INTERRUPTED]);
    }
}
