//! Evaluation of expressions, with the results and the errors of pgbench.

use std::cmp::Ordering;

use crate::expression::Expression;
use crate::function::Function;
use crate::random::{self, Random};
use crate::value::{TextError, Type, Value};
use crate::variables::{Content, Names, Slot, Variables};

/// Minimum parameter of a normal distribution.
const GAUSSIAN_MIN: f64 = 2.0;
/// Bounds of the parameter of a Zipfian distribution.
const ZIPFIAN: std::ops::RangeInclusive<f64> = 1.001..=1000.0;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluateError {
    /// A variable has not been set.
    #[error("undefined variable")]
    Undefined(Slot),
    /// The text of a variable is not a value.
    #[error("malformed variable")]
    Malformed(Slot),
    /// The text of a variable is a longer integer.
    #[error("the variable is out of range for a bigint")]
    VariableOutOfRange(Slot),
    /// A value of another type is required.
    #[error("cannot coerce {0} to {1}")]
    Coerce(Type, Type),
    /// A double is not an integer of 64 bits.
    #[error("double to int overflow for {0}")]
    DoubleOutOfRange(f64),
    /// The result of an operation is not an integer of 64 bits.
    #[error("{0} out of range")]
    OutOfRange(&'static str),
    /// Division by the integer 0.
    #[error("division by zero")]
    DivisionByZero,
    /// The lower bound is above the upper one.
    #[error("empty range given to random")]
    EmptyRange,
    /// The range has more than 2^63 integers.
    #[error("random range is too large")]
    RangeTooLarge,
    /// A parameter of a random function is out of its range.
    #[error("{function} parameter must be {expected} (not {value})")]
    Parameter {
        /// Name of the function.
        function: &'static str,
        /// Its range.
        expected: &'static str,
        /// The value.
        value: f64,
    },
    /// A permutation of no numbers.
    #[error("permute size parameter must be greater than zero")]
    PermuteSize,
}

impl EvaluateError {
    /// Returns the message with the name and the text of the variable, if it is about one.
    pub fn describe(&self, names: &Names, variables: &Variables) -> String {
        match self {
            Self::Undefined(slot) => format!("undefined variable \"{}\"", names.name(*slot)),
            Self::Malformed(slot) => {
                let mut text = Vec::new();
                variables.append_to(*slot, &mut text);
                let text = String::from_utf8_lossy(&text);
                format!("malformed variable \"{}\" value: \"{text}\"", names.name(*slot))
            }
            Self::VariableOutOfRange(slot) => {
                format!("the variable \"{}\" is out of range for a bigint", names.name(*slot))
            }
            _ => self.to_string(),
        }
    }
}

/// Context that an evaluation uses besides the expression.
pub struct Context<'a> {
    /// The variables of the client.
    pub variables: &'a mut Variables,
    /// The random numbers of the client.
    pub random: &'a mut Random,
    /// Receives the arguments of `debug()`.
    pub debug: &'a mut dyn FnMut(Value),
}

impl Context<'_> {
    /// Evaluates an expression.
    ///
    /// # Errors
    /// [`EvaluateError`] if it has no value.
    pub fn evaluate(&mut self, expression: &Expression) -> Result<Value, EvaluateError> {
        let before = self.random.clone();
        if let Some(value) = self.integer(expression) {
            return Ok(Value::Int(value));
        }
        *self.random = before;
        self.value(expression)
    }

    /// Returns the value of an expression of integers, as most are in benchmarks, without the general case: other types,
    /// other functions, and errors. Returns `None` for these, after it may have used random numbers.
    fn integer(&mut self, expression: &Expression) -> Option<i64> {
        match expression {
            Expression::Constant(Value::Int(value)) => Some(*value),
            Expression::Variable(slot) => match self.variables.get(*slot) {
                Content::Value(Value::Int(value)) => Some(*value),
                _ => None,
            },
            Expression::Call(function, arguments) => {
                let [first, second] = arguments.as_slice() else {
                    return None;
                };
                let (first, second) = (self.integer(first)?, self.integer(second)?);
                match function {
                    Function::Add => first.checked_add(second),
                    Function::Subtract => first.checked_sub(second),
                    Function::Multiply => first.checked_mul(second),
                    Function::Random => {
                        second.checked_sub(first)?.checked_add(1)?;
                        (first <= second).then(|| self.random.uniform(first, second))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the value in the general case.
    pub(crate) fn value(&mut self, expression: &Expression) -> Result<Value, EvaluateError> {
        match expression {
            Expression::Constant(value) => Ok(*value),
            Expression::Variable(slot) => self.variable(*slot),
            Expression::Not(inner) => match self.value(inner)? {
                Value::Null => Ok(Value::Null),
                value => boolean(value).map(|value| Value::Boolean(!value)),
            },
            Expression::And(sides) => self.logical(sides, false),
            Expression::Or(sides) => self.logical(sides, true),
            Expression::Is(inner, expected) => {
                let value = self.value(inner)?;
                Ok(Value::Boolean(value == *expected))
            }
            Expression::Case(branches, otherwise) => {
                for (condition, result) in branches {
                    if self.value(condition)?.is_true() {
                        return self.value(result);
                    }
                }
                self.value(otherwise)
            }
            Expression::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    fn variable(&mut self, slot: Slot) -> Result<Value, EvaluateError> {
        let value = match self.variables.get(slot) {
            Content::Undefined => return Err(EvaluateError::Undefined(slot)),
            Content::Value(value) => return Ok(*value),
            Content::Text(text) => {
                let text = std::str::from_utf8(text).map_err(|_| EvaluateError::Malformed(slot))?;
                Value::from_text(text).map_err(|error| match error {
                    TextError::Malformed => EvaluateError::Malformed(slot),
                    TextError::OutOfRange => EvaluateError::VariableOutOfRange(slot),
                })?
            }
        };
        Ok(value)
    }

    /// AND and OR: `decisive` is the left side that decides. A NULL on the left decides too, unlike in SQL.
    fn logical(&mut self, sides: &[Expression; 2], decisive: bool) -> Result<Value, EvaluateError> {
        let [left, right] = sides;
        match self.value(left)? {
            Value::Null => return Ok(Value::Null),
            value if boolean(value)? == decisive => return Ok(Value::Boolean(decisive)),
            _ => {}
        }
        match self.value(right)? {
            Value::Null => Ok(Value::Null),
            value => boolean(value).map(Value::Boolean),
        }
    }

    fn call(
        &mut self,
        function: Function,
        arguments: &[Expression],
    ) -> Result<Value, EvaluateError> {
        // Nearly all functions have at most three.
        if arguments.len() <= 3 {
            return self.apply(function, arguments, [Value::Null; 3]);
        }
        self.apply(function, arguments, [Value::Null; crate::function::ARGUMENTS_MAX])
    }

    /// Evaluates the arguments into `values`, which has room for them, and applies the function.
    fn apply<const COUNT: usize>(
        &mut self,
        function: Function,
        arguments: &[Expression],
        mut values: [Value; COUNT],
    ) -> Result<Value, EvaluateError> {
        let (mut has_null, mut any_double) = (false, false);
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.value(argument)?;
            has_null |= *value == Value::Null;
            any_double |= matches!(value, Value::Double(_));
        }
        if has_null && function != Function::Debug {
            return Ok(Value::Null);
        }
        let values = values.get(..arguments.len()).unwrap_or_default();
        let argument = |position: usize| values.get(position).copied().unwrap_or(Value::Null);
        self.value_of(function, values, [argument(0), argument(1), argument(2)], any_double)
    }

    fn value_of(
        &mut self,
        function: Function,
        values: &[Value],
        [first, second, third]: [Value; 3],
        any_double: bool,
    ) -> Result<Value, EvaluateError> {
        match function {
            Function::Add | Function::Subtract | Function::Multiply | Function::Divide
                if any_double =>
            {
                double_arithmetic(function, double(first)?, double(second)?)
            }
            Function::Add | Function::Subtract | Function::Multiply | Function::Divide => {
                int_arithmetic(function, int(first)?, int(second)?)
            }
            Function::Equal | Function::NotEqual | Function::Less | Function::LessOrEqual => {
                let ordering = if any_double {
                    double(first)?.partial_cmp(&double(second)?)
                } else {
                    Some(int(first)?.cmp(&int(second)?))
                };
                Ok(Value::Boolean(is_satisfied(function, ordering)))
            }
            Function::Modulo => match (int(first)?, int(second)?) {
                (_, 0) => Err(EvaluateError::DivisionByZero),
                (value, divisor) => Ok(Value::Int(value.wrapping_rem(divisor))),
            },
            Function::BitAnd
            | Function::BitOr
            | Function::BitXor
            | Function::ShiftLeft
            | Function::ShiftRight => Ok(Value::Int(bits(function, int(first)?, int(second)?))),
            Function::Abs if any_double => Ok(Value::Double(double(first)?.abs())),
            Function::Abs => Ok(Value::Int(int(first)?.wrapping_abs())),
            Function::Least | Function::Greatest => extreme(function, values, any_double),
            Function::Int => int(first).map(Value::Int),
            Function::Double => double(first).map(Value::Double),
            Function::Sqrt => Ok(Value::Double(double(first)?.sqrt())),
            Function::Ln => Ok(Value::Double(double(first)?.ln())),
            Function::Exp => Ok(Value::Double(double(first)?.exp())),
            Function::Pi => Ok(Value::Double(std::f64::consts::PI)),
            Function::Power => Ok(Value::Double(double(first)?.powf(double(second)?))),
            Function::HashMurmur2 => Ok(Value::Int(random::murmur2(int(first)?, int(second)?))),
            Function::HashFnv1a => Ok(Value::Int(random::fnv1a(int(first)?, int(second)?))),
            Function::Permute => permute(int(first)?, int(second)?, int(third)?),
            Function::Random
            | Function::RandomExponential
            | Function::RandomGaussian
            | Function::RandomZipfian => self.random(function, [first, second, third]),
            Function::Debug => {
                (self.debug)(first);
                Ok(first)
            }
        }
    }

    fn random(
        &mut self,
        function: Function,
        [low, high, parameter]: [Value; 3],
    ) -> Result<Value, EvaluateError> {
        let (low, high) = (int(low)?, int(high)?);
        if low > high {
            return Err(EvaluateError::EmptyRange);
        }
        if high.checked_sub(low).and_then(|range| range.checked_add(1)).is_none() {
            return Err(EvaluateError::RangeTooLarge);
        }
        // Also refuses NaN.
        let require = |is_valid: fn(f64) -> bool, function, expected| {
            let value = double(parameter)?;
            if is_valid(value) {
                return Ok(value);
            }
            Err(EvaluateError::Parameter { function, expected, value })
        };
        Ok(Value::Int(match function {
            Function::RandomExponential => {
                let parameter = require(|value| value > 0.0, "exponential", "greater than zero")?;
                self.random.exponential(low, high, parameter)
            }
            Function::RandomGaussian => {
                let valid = |value| value >= GAUSSIAN_MIN;
                let parameter = require(valid, "gaussian", "at least 2")?;
                self.random.gaussian(low, high, parameter)
            }
            Function::RandomZipfian => {
                let valid = |value| ZIPFIAN.contains(&value);
                let parameter = require(valid, "zipfian", "in range [1.001, 1000]")?;
                self.random.zipfian(low, high, parameter)
            }
            _ => self.random.uniform(low, high),
        }))
    }
}

fn boolean(value: Value) -> Result<bool, EvaluateError> {
    match value {
        Value::Boolean(value) => Ok(value),
        _ => Err(EvaluateError::Coerce(value.kind(), Type::Boolean)),
    }
}

/// Converts to an integer; doubles are rounded, halves to even.
fn int(value: Value) -> Result<i64, EvaluateError> {
    match value {
        Value::Int(value) => Ok(value),
        Value::Double(value) => {
            let rounded = value.round_ties_even();
            // The next double above the largest integer is 2^63.
            #[expect(clippy::cast_precision_loss, reason = "-2^63 is exact")]
            let least = i64::MIN as f64;
            if (least..-least).contains(&rounded) {
                #[expect(clippy::cast_possible_truncation, reason = "within the range")]
                return Ok(rounded as i64);
            }
            Err(EvaluateError::DoubleOutOfRange(value))
        }
        _ => Err(EvaluateError::Coerce(value.kind(), Type::Int)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "as in pgbench")]
fn double(value: Value) -> Result<f64, EvaluateError> {
    match value {
        Value::Double(value) => Ok(value),
        Value::Int(value) => Ok(value as f64),
        _ => Err(EvaluateError::Coerce(value.kind(), Type::Double)),
    }
}

fn int_arithmetic(function: Function, left: i64, right: i64) -> Result<Value, EvaluateError> {
    let (result, name) = match function {
        Function::Add => (left.checked_add(right), "int add"),
        Function::Subtract => (left.checked_sub(right), "int sub"),
        Function::Multiply => (left.checked_mul(right), "int mul"),
        _ if right == 0 => return Err(EvaluateError::DivisionByZero),
        _ => (left.checked_div(right), "bigint div"),
    };
    result.map(Value::Int).ok_or(EvaluateError::OutOfRange(name))
}

#[expect(clippy::unnecessary_wraps, reason = "as for integers")]
fn double_arithmetic(function: Function, left: f64, right: f64) -> Result<Value, EvaluateError> {
    Ok(Value::Double(match function {
        Function::Add => left + right,
        Function::Subtract => left - right,
        Function::Multiply => left * right,
        _ => left / right,
    }))
}

/// Nothing is equal to NaN, or less.
fn is_satisfied(function: Function, ordering: Option<Ordering>) -> bool {
    match function {
        Function::Equal => ordering.is_some_and(Ordering::is_eq),
        Function::NotEqual => !ordering.is_some_and(Ordering::is_eq),
        Function::Less => ordering.is_some_and(Ordering::is_lt),
        _ => ordering.is_some_and(Ordering::is_le),
    }
}

fn permute(value: i64, size: i64, seed: i64) -> Result<Value, EvaluateError> {
    match u64::try_from(size) {
        Ok(size) if size > 0 => Ok(Value::Int(random::permute(value, size, seed))),
        _ => Err(EvaluateError::PermuteSize),
    }
}

/// The number of places is taken modulo 64, as processors do.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "modulo 64")]
fn bits(function: Function, left: i64, right: i64) -> i64 {
    match function {
        Function::BitAnd => left & right,
        Function::BitOr => left | right,
        Function::BitXor => left ^ right,
        Function::ShiftLeft => left.wrapping_shl(right as u32),
        _ => left.wrapping_shr(right as u32),
    }
}

fn extreme(function: Function, values: &[Value], any_double: bool) -> Result<Value, EvaluateError> {
    let is_least = function == Function::Least;
    if any_double {
        let mut all = values.iter().map(|value| double(*value));
        let first = all.next().unwrap_or(Ok(0.0))?;
        let result = all.try_fold(first, |best, value| {
            let value = value?;
            let is_better = if is_least { value < best } else { value > best };
            Ok(if is_better { value } else { best })
        });
        return result.map(Value::Double);
    }
    let mut all = values.iter().map(|value| int(*value));
    let first = all.next().unwrap_or(Ok(0))?;
    let result = all.try_fold(first, |best, value| {
        let value = value?;
        Ok(if is_least { best.min(value) } else { best.max(value) })
    });
    result.map(Value::Int)
}
