//! Facts about a server that riops cannot look into: what it is, what it has, what it costs.

use std::collections::BTreeMap;

use super::error::{PlanError, pairs, require_public};

/// Facts with a meaning: others are only shown and compared.
const PRICE: &str = "price";
const VCPU: &str = "vcpu";

/// Facts by name.
pub type Facts = BTreeMap<String, String>;

/// Returns the price of an hour of `price=0.796/h` or `price=12.5 EUR/d`. The currency is only text.
pub fn price_per_hour(facts: &Facts) -> Option<f64> {
    let (amount, unit) = facts.get(PRICE)?.rsplit_once('/')?;
    let value = amount.split_whitespace().next()?.parse::<f64>().ok()?;
    let hours = match unit.trim() {
        "h" => 1.0,
        "d" => 24.0,
        "min" => 1.0 / 60.0,
        "s" => 1.0 / 3_600.0,
        _ => return None,
    };
    Some(value / hours).filter(|price| price.is_finite() && *price > 0.0)
}

/// Returns the currency of a valid price, as typed; empty without one.
pub fn currency(facts: &Facts) -> Option<&str> {
    price_per_hour(facts)?;
    let (amount, _) = facts.get(PRICE)?.rsplit_once('/')?;
    Some(amount.trim().split_once(char::is_whitespace).map_or("", |(_, currency)| currency.trim()))
}

/// Returns the number of virtual processors of `vcpu=8`.
pub fn vcpus(facts: &Facts) -> Option<f64> {
    let count = facts.get(VCPU)?.trim().parse::<f64>().ok()?;
    Some(count).filter(|count| count.is_finite() && *count > 0.0)
}

/// Fails for a fact with a meaning whose value has none.
pub(super) fn validate(facts: &Facts) -> Result<(), PlanError> {
    require_public(pairs(facts))?;
    require!(
        !facts.contains_key(PRICE) || price_per_hour(facts).is_some(),
        "--fact price: expected a number, optionally a currency, and a time, such as 0.796/h, 12.5 EUR/d, 0.01 USD/min"
    );
    require!(
        !facts.contains_key(VCPU) || vcpus(facts).is_some(),
        "--fact vcpu: expected the number of virtual processors"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str, value: &str) -> Facts {
        Facts::from([(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn reads_the_price_of_an_hour_and_its_currency_as_text() {
        for (text, price) in [("0.796/h", 0.796), ("24 EUR/d", 1.0), ("0.5 $/min", 30.0)] {
            let per_hour = price_per_hour(&facts("price", text)).unwrap();
            assert!((per_hour - price).abs() < 1e-9, "{text}: {per_hour}");
        }
        for text in ["0.796", "free", "-1/h", "1/month", "0/h"] {
            assert!(validate(&facts("price", text)).is_err(), "{text}");
        }
        assert_eq!(vcpus(&facts("vcpu", "8")), Some(8.0));
        assert!(validate(&facts("vcpu", "many")).is_err());
        assert!(validate(&facts("instance", "m6i.2xlarge")).is_ok());
    }
}
