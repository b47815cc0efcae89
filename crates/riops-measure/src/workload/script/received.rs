//! The rows that `\gset` and `\aset` turn into variables.

use riops_script::{Names, Rows, Slot, Value, Variables, is_name};

use super::program::{Result, ScriptError};
use crate::workload::transaction::Reply;

/// The last row of the current statement of a command, and what its columns set.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// The variable of each column, if a script uses it.
    columns: Vec<Option<Slot>>,
    /// Values of the last row: where each ends in `bytes`, or NULL.
    values: Vec<(Slot, Option<usize>)>,
    bytes: Vec<u8>,
    /// Memory for a name.
    name: String,
    /// Number of rows of the current statement.
    rows: u64,
    /// The first column of the current statement whose name cannot be the name of a variable.
    unnamed: Option<String>,
    /// The result of the last statement that has completed, or the first error of one.
    result: Option<Result<u64>>,
}

impl Received {
    /// Prepares for the reply to a command.
    pub(super) fn begin(&mut self) {
        self.columns.clear();
        self.begin_statement();
        self.result = None;
    }

    fn begin_statement(&mut self) {
        self.values.clear();
        self.bytes.clear();
        self.rows = 0;
        self.unnamed = None;
    }

    /// Takes the columns of the rows that follow.
    pub(super) fn columns<'a>(
        &mut self,
        prefix: &str,
        columns: impl Iterator<Item = &'a str>,
        names: &Names,
    ) {
        self.columns.clear();
        self.unnamed = None;
        for column in columns {
            self.name.clear();
            self.name.push_str(prefix);
            self.name.push_str(column);
            self.columns.push(names.find(&self.name));
            if self.unnamed.is_none() && !is_name(&self.name) {
                self.unnamed = Some(self.name.clone());
            }
        }
    }

    /// Takes a row.
    pub(super) fn row(&mut self, reply: &Reply<'_>) {
        self.rows += 1;
        self.values.clear();
        self.bytes.clear();
        for (slot, value) in self.columns.iter().zip(reply.texts()) {
            if let Some(slot) = slot {
                self.bytes.extend_from_slice(value.unwrap_or_default());
                self.values.push((*slot, value.map(|_| self.bytes.len())));
            }
        }
    }

    /// Ends a statement. Every statement of `\aset` with a row sets variables, the last one of `\gset` when the command
    /// has ended.
    pub(super) fn complete(&mut self, rows: &Rows, variables: &mut Variables) {
        let unnamed = self.unnamed.take();
        match rows {
            Rows::Discard => {}
            Rows::Each(_) => {
                let is_set = self.rows > 0;
                if let (true, Some(column)) = (is_set, unnamed) {
                    self.result.get_or_insert(Err(ScriptError::Column(column)));
                } else if is_set {
                    self.set(variables);
                }
                self.begin_statement();
            }
            Rows::Last(_) => {
                let rows = std::mem::take(&mut self.rows);
                self.result = Some(match unnamed {
                    Some(column) if rows == 1 => Err(ScriptError::Column(column)),
                    _ => Ok(rows),
                });
            }
        }
    }

    /// Ends the command.
    pub(super) fn end(&mut self, rows: &Rows, variables: &mut Variables) -> Result<()> {
        let result = self.result.take().transpose()?;
        if matches!(rows, Rows::Last(_)) {
            match result.unwrap_or(0) {
                1 => self.set(variables),
                count => return Err(ScriptError::Rows(count)),
            }
        }
        Ok(())
    }

    fn set(&mut self, variables: &mut Variables) {
        let mut start = 0;
        for (slot, end) in self.values.drain(..) {
            match end {
                Some(end) => {
                    variables.set_text(slot, self.bytes.get(start..end).unwrap_or_default());
                    start = end;
                }
                None => variables.set(slot, Value::Null),
            }
        }
    }
}
