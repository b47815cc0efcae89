//! The executions of a client whose plans are checked.

use riops_script::{Content, Slot, Value, Variables};

use super::program::Encoded;
use crate::plan::Protocol;
use crate::units::sql::literal;
use crate::workload::access::Executed;

/// Number of executions of each statement that are noted: the first ones.
const EXECUTIONS_MAX: u8 = 3;

/// The first executions of each statement.
#[derive(Debug)]
pub(super) struct Noted {
    /// Number of executions of each statement, up to the maximum.
    executions: Vec<u8>,
    /// Those with different values.
    all: Vec<Executed>,
    /// Number of those that were taken.
    taken: usize,
}

impl Noted {
    pub(super) fn new(statements: usize) -> Self {
        Self { executions: vec![0; statements], all: Vec::new(), taken: 0 }
    }

    /// Notes one of the first executions of a statement, unless it has the same values as another one.
    pub(super) fn note(&mut self, protocol: Protocol, encoded: &Encoded, variables: &Variables) {
        match self.executions.get_mut(encoded.number) {
            Some(count) if *count < EXECUTIONS_MAX && encoded.has_plan => *count += 1,
            _ => return,
        }
        let executed = if protocol == Protocol::Simple {
            let text = text_of(|out| encoded.statement.append_simple(variables, out));
            Executed::as_text(&encoded.name, text)
        } else {
            let value = |slot: &Slot| match variables.get(*slot) {
                Content::Value(Value::Null) => "null".to_owned(),
                _ => literal(&text_of(|out| {
                    variables.append_to(*slot, out);
                })),
            };
            let values: Vec<_> = encoded.parameters.iter().map(value).collect();
            let has_name = protocol == Protocol::Prepared;
            Executed::with_values(&encoded.name, &encoded.sql, &values, has_name)
        };
        if !self.all.contains(&executed) {
            self.all.push(executed);
        }
    }

    /// Returns the executions that were noted since the last call.
    pub(super) fn take(&mut self) -> Vec<Executed> {
        let before = std::mem::replace(&mut self.taken, self.all.len());
        self.all.get(before..).unwrap_or_default().to_vec()
    }
}

/// Returns the text that `append` writes.
pub(super) fn text_of(append: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut text = Vec::new();
    append(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}
