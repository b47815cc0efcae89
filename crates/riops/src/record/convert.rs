//! The conversion of a measured type into the recorded type that has the same fields.

/// Implements `From` by naming every field of the measured type. A field that is added to it is a compile
/// error here until it is decided whether the record stores it.
macro_rules! from_measured {
    ($recorded:ident from $measured:path { $($field:ident),+ $(,)? }) => {
        impl From<$measured> for $recorded {
            fn from(measured: $measured) -> Self {
                let $measured { $($field),+ } = measured;
                Self { $($field),+ }
            }
        }
    };
}

pub(super) use from_measured;
