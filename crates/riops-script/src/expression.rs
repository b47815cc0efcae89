//! Expressions of `\set`, `\if` and `\elif`: their parser.

use std::ops::Range;

use crate::diagnostic::Problem;
use crate::function::Function;
use crate::token::{Kind, Token, Tokens};
use crate::value::{Type, Value};
use crate::variables::{Names, Slot};

/// Maximum depth of an expression. Each level needs a part of the stack.
const DEPTH_MAX: usize = 200;
/// Maximum number of operators and operands. `1 + 1 + …` is evaluated as deep as it is long.
const PARTS_MAX: usize = 1000;

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A constant.
    Constant(Value),
    /// A variable.
    Variable(Slot),
    /// NOT.
    Not(Box<Expression>),
    /// AND: the right side is evaluated only if the left one is true.
    And(Box<[Expression; 2]>),
    /// OR: the right side is evaluated only if the left one is false.
    Or(Box<[Expression; 2]>),
    /// Whether an expression has exactly this value and type.
    Is(Box<Expression>, Value),
    /// CASE: conditions with results, and the result without a true condition.
    Case(Vec<(Expression, Expression)>, Box<Expression>),
    /// A function or an operator.
    Call(Function, Vec<Expression>),
}

// Binding powers, from the weakest.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARISON: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const SIGN: u8 = 9;

/// Parses an expression that is the whole of `text[range]`.
///
/// # Errors
/// A [`Problem`] with the position in `text`.
pub(crate) fn parse(text: &str, range: Range<usize>, names: &mut Names) -> Result<Parsed, Problem> {
    let tokens = Tokens::new(text, range);
    let mut parser = Parser { tokens, names, depth: 0, parts: 0, mismatches: Vec::new() };
    let expression = parser.expression(0)?.0;
    let rest = parser.tokens.next()?;
    match rest.kind {
        Kind::End => Ok(Parsed { expression, mismatches: parser.mismatches }),
        _ => Err(unexpected(&rest)),
    }
}

/// An expression, and its operands that certainly have the wrong type: its evaluation fails.
pub(crate) struct Parsed {
    pub(crate) expression: Expression,
    pub(crate) mismatches: Vec<Problem>,
}

fn unexpected(token: &Token<'_>) -> Problem {
    Problem::new(token.start, "syntax error")
}

/// A binary operator: how it binds, its function, and whether its arguments are exchanged.
#[derive(Clone, Copy)]
enum Operator {
    Or,
    And,
    Call(Function, bool),
}

fn operator(kind: Kind) -> Option<(u8, Operator)> {
    let call = |power, function| (power, Operator::Call(function, false));
    Some(match kind {
        Kind::Word("or") => (OR, Operator::Or),
        Kind::Word("and") => (AND, Operator::And),
        Kind::Operator("<") => call(COMPARISON, Function::Less),
        Kind::Operator("<=") => call(COMPARISON, Function::LessOrEqual),
        // As in pgbench: the right side is evaluated first.
        Kind::Operator(">") => (COMPARISON, Operator::Call(Function::Less, true)),
        Kind::Operator(">=") => (COMPARISON, Operator::Call(Function::LessOrEqual, true)),
        Kind::Operator("=") => call(COMPARISON, Function::Equal),
        Kind::Operator("<>" | "!=") => call(COMPARISON, Function::NotEqual),
        Kind::Operator("|") => call(BITS, Function::BitOr),
        Kind::Operator("&") => call(BITS, Function::BitAnd),
        Kind::Operator("#") => call(BITS, Function::BitXor),
        Kind::Operator("<<") => call(BITS, Function::ShiftLeft),
        Kind::Operator(">>") => call(BITS, Function::ShiftRight),
        Kind::Operator("+") => call(SUM, Function::Add),
        Kind::Operator("-") => call(SUM, Function::Subtract),
        Kind::Operator("*") => call(PRODUCT, Function::Multiply),
        Kind::Operator("/") => call(PRODUCT, Function::Divide),
        Kind::Operator("%") => call(PRODUCT, Function::Modulo),
        _ => return None,
    })
}

/// An expression, and its type if its value is certainly not NULL and always has this type.
type Typed = (Expression, Option<Type>);

struct Parser<'a> {
    tokens: Tokens<'a>,
    names: &'a mut Names,
    depth: usize,
    parts: usize,
    mismatches: Vec<Problem>,
}

impl Parser<'_> {
    /// Parses operators that bind at least as strongly as `power`.
    fn expression(&mut self, power: u8) -> Result<Typed, Problem> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            let start = self.tokens.peek()?.start;
            return Err(Problem::new(start, format!("more than {DEPTH_MAX} nested expressions")));
        }
        self.count_part()?;
        let parsed = self.operators(power);
        self.depth -= 1;
        parsed
    }

    fn count_part(&mut self) -> Result<(), Problem> {
        self.parts += 1;
        if self.parts > PARTS_MAX {
            let start = self.tokens.peek()?.start;
            return Err(Problem::new(
                start,
                format!("more than {PARTS_MAX} operators and operands"),
            ));
        }
        Ok(())
    }

    fn operators(&mut self, power: u8) -> Result<Typed, Problem> {
        let mut left = self.prefix()?;
        let mut is_comparison = false;
        loop {
            let token = self.tokens.peek()?;
            if IS >= power
                && let Kind::Word("is" | "isnull" | "notnull") = token.kind
            {
                self.tokens.next()?;
                self.count_part()?;
                left = (self.is(left.0, token.kind)?, Some(Type::Boolean));
                is_comparison = false;
                continue;
            }
            let Some((strength, operator)) = operator(token.kind) else {
                return Ok(left);
            };
            if strength < power {
                return Ok(left);
            }
            if strength == COMPARISON && is_comparison {
                return Err(Problem::new(token.start, "comparisons cannot be chained"));
            }
            self.tokens.next()?;
            let right = self.expression(strength + 1)?;
            left = self.combined(token.start, operator, left, right);
            is_comparison = strength == COMPARISON;
        }
    }

    fn prefix(&mut self) -> Result<Typed, Problem> {
        let token = self.tokens.next()?;
        match token.kind {
            Kind::Int(value) => Ok(constant(Value::Int(value))),
            Kind::Double(value) => Ok(constant(Value::Double(value))),
            Kind::IntAboveMax => Err(Problem::new(token.start, "bigint constant overflow")),
            Kind::Variable(name) => Ok((Expression::Variable(self.names.slot(name)), None)),
            Kind::Operator("(") => {
                let inner = self.expression(0)?;
                self.require(Kind::Operator(")"))?;
                Ok(inner)
            }
            Kind::Operator("-") => {
                // The smallest integer has no positive counterpart.
                if matches!(self.tokens.peek()?.kind, Kind::IntAboveMax) {
                    self.tokens.next()?;
                    return Ok(constant(Value::Int(i64::MIN)));
                }
                let operand = self.expression(SIGN)?;
                let operator = Operator::Call(Function::Subtract, false);
                Ok(self.combined(token.start, operator, constant(Value::Int(0)), operand))
            }
            Kind::Operator("+") => self.expression(SIGN),
            Kind::Operator("~") => {
                let operand = self.expression(BITS + 1)?;
                let operator = Operator::Call(Function::BitXor, false);
                Ok(self.combined(token.start, operator, constant(Value::Int(-1)), operand))
            }
            Kind::Word("not") => {
                let (operand, kind) = self.expression(NOT)?;
                self.require_boolean(token.start, kind);
                Ok((Expression::Not(Box::new(operand)), kind))
            }
            Kind::Word("null") => Ok(constant(Value::Null)),
            Kind::Word("true") => Ok(constant(Value::Boolean(true))),
            Kind::Word("false") => Ok(constant(Value::Boolean(false))),
            Kind::Word("case") => self.case().map(|case| (case, None)),
            Kind::Name => self.call(&token),
            _ => Err(unexpected(&token)),
        }
    }

    fn require(&mut self, kind: Kind<'_>) -> Result<(), Problem> {
        let token = self.tokens.next()?;
        if token.kind == kind { Ok(()) } else { Err(unexpected(&token)) }
    }

    /// Parses what follows `value IS`, `value ISNULL` or `value NOTNULL`.
    fn is(&mut self, value: Expression, kind: Kind<'_>) -> Result<Expression, Problem> {
        let (expected, is_negated) = match kind {
            Kind::Word("isnull") => (Value::Null, false),
            Kind::Word("notnull") => (Value::Null, true),
            _ => {
                let mut token = self.tokens.next()?;
                let is_negated = token.kind == Kind::Word("not");
                if is_negated {
                    token = self.tokens.next()?;
                }
                let expected = match token.kind {
                    Kind::Word("null") => Value::Null,
                    Kind::Word("true") => Value::Boolean(true),
                    Kind::Word("false") => Value::Boolean(false),
                    _ => return Err(unexpected(&token)),
                };
                (expected, is_negated)
            }
        };
        let is = Expression::Is(Box::new(value), expected);
        Ok(if is_negated { Expression::Not(Box::new(is)) } else { is })
    }

    /// Parses what follows CASE.
    fn case(&mut self) -> Result<Expression, Problem> {
        let mut branches = Vec::new();
        loop {
            let token = self.tokens.next()?;
            match token.kind {
                Kind::Word("when") => {
                    let condition = self.expression(0)?.0;
                    self.require(Kind::Word("then"))?;
                    branches.push((condition, self.expression(0)?.0));
                }
                Kind::Word("else") if !branches.is_empty() => {
                    let otherwise = self.expression(0)?.0;
                    self.require(Kind::Word("end"))?;
                    return Ok(Expression::Case(branches, Box::new(otherwise)));
                }
                Kind::Word("end") if !branches.is_empty() => {
                    return Ok(Expression::Case(
                        branches,
                        Box::new(Expression::Constant(Value::Null)),
                    ));
                }
                _ => return Err(unexpected(&token)),
            }
        }
    }

    fn call(&mut self, name: &Token<'_>) -> Result<Typed, Problem> {
        self.require(Kind::Operator("("))?;
        let Some(function) = Function::find(name.text) else {
            return Err(Problem::new(
                name.start,
                format!("unexpected function name ({})", name.text),
            ));
        };
        let (mut arguments, mut kinds) = (Vec::new(), Vec::new());
        if self.tokens.peek()?.kind == Kind::Operator(")") {
            self.tokens.next()?;
        } else {
            loop {
                let start = self.tokens.peek()?.start;
                let (argument, kind) = self.expression(0)?;
                if function.takes_numbers() {
                    self.require_number(start, kind);
                }
                arguments.push(argument);
                kinds.push(kind);
                let token = self.tokens.next()?;
                match token.kind {
                    Kind::Operator(",") => {}
                    Kind::Operator(")") => break,
                    _ => return Err(unexpected(&token)),
                }
            }
        }
        if let Err(what) = function.accepts(arguments.len()) {
            let text = format!("{what} ({})", name.text.to_ascii_lowercase());
            return Err(Problem::new(name.start, text));
        }
        if function.has_default_seed(arguments.len()) {
            arguments.push(Expression::Variable(self.names.slot("default_seed")));
        }
        Ok((Expression::Call(function, arguments), function.kind(&kinds)))
    }
}

fn constant(value: Value) -> Typed {
    let kind = (value != Value::Null).then(|| value.kind());
    (Expression::Constant(value), kind)
}

impl Parser<'_> {
    /// Applies an operator to its operands.
    fn combined(
        &mut self,
        start: usize,
        operator: Operator,
        (left, left_kind): Typed,
        (right, right_kind): Typed,
    ) -> Typed {
        match operator {
            // The right side may never be evaluated.
            Operator::Or | Operator::And => {
                self.require_boolean(start, left_kind);
                let kind = left_kind.and(right_kind).map(|_| Type::Boolean);
                let sides = Box::new([left, right]);
                let is_or = matches!(operator, Operator::Or);
                (if is_or { Expression::Or(sides) } else { Expression::And(sides) }, kind)
            }
            Operator::Call(function, is_exchanged) => {
                self.require_number(start, left_kind);
                self.require_number(start, right_kind);
                let kind = function.kind(&[left_kind, right_kind]);
                let arguments = if is_exchanged { vec![right, left] } else { vec![left, right] };
                (Expression::Call(function, arguments), kind)
            }
        }
    }

    fn require_boolean(&mut self, start: usize, kind: Option<Type>) {
        if let Some(kind @ (Type::Int | Type::Double)) = kind {
            self.mismatches.push(Problem::new(start, format!("cannot coerce {kind} to boolean")));
        }
    }

    fn require_number(&mut self, start: usize, kind: Option<Type>) {
        if kind == Some(Type::Boolean) {
            self.mismatches.push(Problem::new(start, "cannot coerce boolean to a number"));
        }
    }
}
