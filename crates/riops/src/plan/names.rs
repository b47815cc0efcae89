//! The forms of parameters that are texts on the command line and in JSON.

/// Makes the text of `FromStr` and `Display` the form of a type in JSON.
macro_rules! text_in_json {
    ($type:ident) => {
        impl TryFrom<String> for $type {
            type Error = <Self as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> Self {
                value.to_string()
            }
        }
    };
}

/// Names the variants of an enumeration as in JSON.
macro_rules! names {
    ($type:ident { $($variant:ident: $name:literal),* }) => {
        crate::units::texts!(
            /// Returns the name on the command line.
            $type::as_str { $($variant: $name),* }
        );

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}

pub(super) use {names, text_in_json};
