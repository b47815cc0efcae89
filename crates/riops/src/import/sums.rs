//! Refuses results whose numbers are so large that sums of them would overflow.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::record::Record;

/// Maximum sum of all whole numbers of the stages of a run. Reports add numbers of one run, and of many. Bytes are the
/// largest numbers, and this is 64 PiB.
const SUM_MAX: u64 = 1 << 56;

/// Fails if the sums that reports compute could overflow.
pub(super) fn require_sums(record: &Record) -> Result<(), String> {
    let json = serde_json::to_vec(&record.stages).map_err(|error| error.to_string())?;
    let Sum(sum) = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    if sum > SUM_MAX {
        return Err("the numbers are too large: their sum is out of range".to_owned());
    }
    Ok(())
}

/// The sum of all whole numbers in a value.
struct Sum(u64);

impl<'de> Deserialize<'de> for Sum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SumVisitor).map(Self)
    }
}

struct SumVisitor;

impl<'de> Visitor<'de> for SumVisitor {
    type Value = u64;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_u64<E>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_i64<E>(self, number: i64) -> Result<u64, E> {
        Ok(number.unsigned_abs())
    }

    fn visit_f64<E>(self, _: f64) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_str<E>(self, _: &str) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<u64, A::Error> {
        let mut sum = 0u64;
        while let Some(Sum(value)) = values.next_element()? {
            sum = sum.saturating_add(value);
        }
        Ok(sum)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<u64, A::Error> {
        let mut sum = 0u64;
        while let Some((IgnoredAny, Sum(value))) = values.next_entry()? {
            sum = sum.saturating_add(value);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_whole_numbers_are_added() {
        let sum = |json: &str| serde_json::from_str::<Sum>(json).unwrap().0;
        assert_eq!(sum(r#"[{"a": 1, "b": [2, -3, 0.5, null, "4", true]}, [[10]]]"#), 16);
        assert_eq!(sum("[18446744073709551615, 1]"), u64::MAX);
    }
}
