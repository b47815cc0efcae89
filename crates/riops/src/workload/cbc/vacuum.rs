//! What VACUUM VERBOSE says of its own rates. Pure.

/// The rates of one VACUUM, as the server prints them: its MB are 2^20 bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VacuumRates {
    /// Blocks that were not in shared buffers.
    pub read_mib_s: f64,
    /// Blocks that it has made dirty.
    pub write_mib_s: f64,
}

impl VacuumRates {
    /// Reads a notice; `None` where it says nothing of rates (before PostgreSQL 15 none does).
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
    fn the_rates_stand_in_the_last_lines_of_the_notice() {
        let notice = "finished vacuuming \"riops_cbc.riops.settings_loop\": index scans: 0\n\
                      pages: 0 removed, 125 remain\n\
                      avg read rate: 812.500 MB/s, avg write rate: 40.125 MB/s\nbuffer usage: 5 hits";
        let rates = VacuumRates::parse(notice).unwrap();
        assert_eq!((rates.read_mib_s, rates.write_mib_s), (812.5, 40.125));
        assert_eq!(VacuumRates::parse("vacuuming \"x\""), None);
    }
}
