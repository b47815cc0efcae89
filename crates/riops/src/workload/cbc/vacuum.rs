//! Parses the rates printed by VACUUM VERBOSE. Pure.

use crate::record::VacuumRates;

impl VacuumRates {
    /// Parses a notice. Returns `None` if it contains no rates, as before PostgreSQL 15.
    #[must_use]
    pub fn parse(notice: &str) -> Option<Self> {
        let number = |label: &str| {
            let rest = notice.split_once(label)?.1.trim_start();
            rest.split_once(" MB/s")?.0.parse().ok()
        };
        Some(Self {
            read_mib_s: number("avg read rate:")?,
            write_mib_s: number("avg write rate:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_the_rates_of_a_notice() {
        let notice = "finished vacuuming \"riops_cbc.riops.settings_loop\": index scans: 0\n\
                      pages: 0 removed, 125 remain\n\
                      avg read rate: 812.500 MB/s, avg write rate: 40.125 MB/s\nbuffer usage: 5 hits";
        let rates = VacuumRates::parse(notice).unwrap();
        assert_eq!((rates.read_mib_s, rates.write_mib_s), (812.5, 40.125));
        assert_eq!(VacuumRates::parse("vacuuming \"x\""), None);
    }
}
