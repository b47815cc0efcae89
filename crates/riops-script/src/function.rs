//! Functions and operators of expressions.

use crate::value::Type;

/// A function or an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names are from the script language")]
pub enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Abs,
    Least,
    Greatest,
    Int,
    Double,
    Sqrt,
    Ln,
    Exp,
    Pi,
    Power,
    Debug,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    HashMurmur2,
    HashFnv1a,
    Permute,
}

/// Maximum number of arguments.
pub(crate) const ARGUMENTS_MAX: usize = 16;

const NAMES: [(&str, Function); 21] = [
    ("abs", Function::Abs),
    ("debug", Function::Debug),
    ("double", Function::Double),
    ("exp", Function::Exp),
    ("greatest", Function::Greatest),
    ("hash", Function::HashMurmur2),
    ("hash_fnv1a", Function::HashFnv1a),
    ("hash_murmur2", Function::HashMurmur2),
    ("int", Function::Int),
    ("least", Function::Least),
    ("ln", Function::Ln),
    ("mod", Function::Modulo),
    ("permute", Function::Permute),
    ("pi", Function::Pi),
    ("pow", Function::Power),
    ("power", Function::Power),
    ("random", Function::Random),
    ("random_exponential", Function::RandomExponential),
    ("random_gaussian", Function::RandomGaussian),
    ("random_zipfian", Function::RandomZipfian),
    ("sqrt", Function::Sqrt),
];

impl Function {
    /// Returns the function with this name, in any case.
    pub fn find(name: &str) -> Option<Self> {
        let entry = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        entry.map(|(_, function)| *function)
    }

    /// Checks the number of arguments; returns what is wrong with it.
    pub(crate) fn accepts(self, count: usize) -> Result<(), String> {
        let (least, most) = match self {
            Self::Pi => (0, 0),
            Self::Abs
            | Self::Int
            | Self::Double
            | Self::Sqrt
            | Self::Ln
            | Self::Exp
            | Self::Debug => (1, 1),
            Self::Least | Self::Greatest => (1, ARGUMENTS_MAX),
            Self::HashMurmur2 | Self::HashFnv1a => (1, 2),
            Self::Permute => (2, 3),
            Self::RandomExponential | Self::RandomGaussian | Self::RandomZipfian => (3, 3),
            _ => (2, 2),
        };
        if (least..=most).contains(&count) {
            return Ok(());
        }
        Err(match most {
            ARGUMENTS_MAX if count == 0 => "at least one argument expected".to_owned(),
            ARGUMENTS_MAX => format!("too many function arguments, maximum is {most}"),
            _ => "unexpected number of arguments".to_owned(),
        })
    }

    /// Whether this number of arguments leaves out the seed.
    pub(crate) fn has_default_seed(self, count: usize) -> bool {
        matches!((self, count), (Self::HashMurmur2 | Self::HashFnv1a, 1) | (Self::Permute, 2))
    }

    pub(crate) fn takes_numbers(self) -> bool {
        self != Self::Debug
    }

    /// Returns the type of the result for arguments of these types; `None` if one may be NULL or of several types.
    pub(crate) fn kind(self, arguments: &[Option<Type>]) -> Option<Type> {
        if arguments.contains(&None) {
            return None;
        }
        let is_double = arguments.contains(&Some(Type::Double));
        match self {
            Self::Equal | Self::NotEqual | Self::Less | Self::LessOrEqual => Some(Type::Boolean),
            Self::Double | Self::Sqrt | Self::Ln | Self::Exp | Self::Pi | Self::Power => {
                Some(Type::Double)
            }
            Self::Debug => arguments.first().copied().flatten(),
            Self::Add
            | Self::Subtract
            | Self::Multiply
            | Self::Divide
            | Self::Abs
            | Self::Least
            | Self::Greatest
                if is_double =>
            {
                Some(Type::Double)
            }
            _ => Some(Type::Int),
        }
    }
}
