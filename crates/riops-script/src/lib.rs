//! The language of pgbench scripts: parser, expressions and random functions. Pure: it does not execute anything.
//!
//! [`parse()`] splits a script into commands and finds all errors at once. [`evaluate::Context`] evaluates expressions
//! with the results of pgbench, and [`random`] has its random numbers, bit for bit.

mod diagnostic;
pub mod evaluate;
pub mod expression;
mod function;
mod parse;
mod pipeline;
pub mod random;
mod script;
mod sql;
mod token;
mod value;
mod variables;

pub use diagnostic::Diagnostic;
pub use function::Function;
pub use parse::parse;
pub use script::{Action, Command, Operand, Reference, Rows, Scope, Script, Statement, Unit, Word};
pub use value::{TextError, Type, Value};
pub use variables::{Content, Names, Slot, Variables, is_name};

#[cfg(test)]
mod tests;
