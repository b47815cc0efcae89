//! Conversion of a measured type into the recorded type with the same fields.

/// Implements `From` and names every field of the measured type. A new field in the measured type fails to
/// compile here until someone decides whether the record stores it.
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
