//! Tokens of expressions.

use std::ops::Range;

use crate::diagnostic::Problem;
use crate::value::decimal;
use crate::variables::is_name_byte;

/// Kind of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind<'a> {
    Int(i64),
    /// 9223372036854775808, which is an integer only after a minus.
    IntAboveMax,
    Double(f64),
    Variable(&'a str),
    /// A keyword, in lower case.
    Word(&'static str),
    /// Another name: a function.
    Name,
    Operator(&'static str),
    End,
}

/// A token with its text and position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

const KEYWORDS: [&str; 14] = [
    "and", "or", "not", "is", "isnull", "notnull", "null", "true", "false", "case", "when", "then",
    "else", "end",
];
/// Longer ones first.
const OPERATORS: [&str; 20] = [
    "<=", ">=", "<>", "!=", "<<", ">>", "+", "-", "*", "/", "%", "=", "<", ">", "|", "&", "#", "~",
    "(", ")",
];

/// The tokens of a part of a text.
pub(crate) struct Tokens<'a> {
    text: &'a str,
    at: usize,
    end: usize,
    next: Option<Token<'a>>,
}

impl<'a> Tokens<'a> {
    pub(crate) fn new(text: &'a str, range: Range<usize>) -> Self {
        Self { text, at: range.start, end: range.end.min(text.len()), next: None }
    }

    pub(crate) fn peek(&mut self) -> Result<Token<'a>, Problem> {
        if let Some(token) = self.next {
            return Ok(token);
        }
        let token = self.read()?;
        self.next = Some(token);
        Ok(token)
    }

    pub(crate) fn next(&mut self) -> Result<Token<'a>, Problem> {
        let token = self.peek()?;
        self.next = None;
        Ok(token)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..self.end).unwrap_or_default()
    }

    fn read(&mut self) -> Result<Token<'a>, Problem> {
        self.skip_blanks();
        let (rest, start) = (self.rest(), self.at);
        let bytes = rest.as_bytes();
        let (kind, length) = match bytes {
            [] => (Kind::End, 0),
            [b'0'..=b'9', ..] | [b'.', b'0'..=b'9', ..] => read_number(rest, start)?,
            [b':', ..] => {
                let length = 1 + count(bytes.get(1..), |byte| is_name_byte(byte, false));
                if length == 1 {
                    return Err(Problem::new(start, "\":\" without the name of a variable"));
                }
                (Kind::Variable(rest.get(1..length).unwrap_or_default()), length)
            }
            [b'a'..=b'z' | b'A'..=b'Z' | b'_', ..] => {
                let length =
                    count(Some(bytes), |byte| byte.is_ascii_alphanumeric() || byte == b'_');
                let word = rest.get(..length).unwrap_or_default();
                let keyword = KEYWORDS.iter().find(|keyword| keyword.eq_ignore_ascii_case(word));
                (keyword.map_or(Kind::Name, |keyword| Kind::Word(keyword)), length)
            }
            [b',', ..] => (Kind::Operator(","), 1),
            _ => {
                let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
                let Some(operator) = operator else {
                    let character = rest.chars().next().unwrap_or_default();
                    let text = format!("unexpected character ({character})");
                    return Err(Problem::new(start, text));
                };
                (Kind::Operator(operator), operator.len())
            }
        };
        self.at += length;
        Ok(Token { kind, text: rest.get(..length).unwrap_or_default(), start })
    }

    /// Skips blanks, and line ends that a backslash continues.
    fn skip_blanks(&mut self) {
        loop {
            self.at += match self.rest().as_bytes() {
                [b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c, ..] => 1,
                [b'\\', b'\n', ..] => 2,
                [b'\\', b'\r', b'\n', ..] => 3,
                _ => return,
            };
        }
    }
}

/// Returns the variables of an expression without errors, with their positions.
pub(crate) fn variables(text: &str, range: Range<usize>) -> impl Iterator<Item = (usize, &str)> {
    let mut tokens = Tokens::new(text, range);
    let all =
        std::iter::from_fn(move || tokens.next().ok().filter(|token| token.kind != Kind::End));
    all.filter_map(|token| match token.kind {
        Kind::Variable(name) => Some((token.start, name)),
        _ => None,
    })
}

fn count(bytes: Option<&[u8]>, belongs: impl Fn(u8) -> bool) -> usize {
    bytes.unwrap_or_default().iter().take_while(|byte| belongs(**byte)).count()
}

/// Reads a number at the beginning of `rest`.
fn read_number(rest: &str, start: usize) -> Result<(Kind<'static>, usize), Problem> {
    let bytes = rest.as_bytes();
    let digits = |from: usize| count(bytes.get(from..), |byte| byte.is_ascii_digit());
    let mut length = digits(0);
    let mut is_int = true;
    if bytes.get(length) == Some(&b'.') {
        is_int = false;
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            is_int = false;
            length += 1 + sign + exponent;
        }
    }
    let text = rest.get(..length).unwrap_or_default();
    if is_int {
        let kind = match text.parse::<u64>() {
            Ok(_) if text == "9223372036854775808" => Kind::IntAboveMax,
            Ok(value) => match i64::try_from(value) {
                Ok(value) => Kind::Int(value),
                Err(_) => return Err(Problem::new(start, "bigint constant overflow")),
            },
            Err(_) => return Err(Problem::new(start, "bigint constant overflow")),
        };
        return Ok((kind, length));
    }
    match decimal(text) {
        Some(value) => Ok((Kind::Double(value), length)),
        None => Err(Problem::new(start, "double constant overflow")),
    }
}
