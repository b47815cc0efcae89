//! Reporting of `now`.

use crate::plan::now::NowRun;
use crate::record::Record;
use crate::report::words::{Measure, Words};

impl Words for NowRun {
    fn work(&self) -> String {
        "reads of the server's clock".to_owned()
    }

    fn measure(&self) -> Measure {
        Measure::of("now", true)
    }

    fn proof(&self, _: &Record) -> &'static str {
        "every statement returned its row"
    }
}
