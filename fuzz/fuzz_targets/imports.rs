#![no_main]
//! Results of other tools. The first byte chooses the format and the reports of the result; a zero byte ends a file.

#[path = "support/reports.rs"]
mod reports;

use std::io::Cursor;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use riops::import::{self, Column7, Format, Input, Settings};

/// A line can give a series of 100,000 points, whose reports take seconds.
const POINTS_MAX: usize = 300;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, files)) = bytes.split_first() else {
        return;
    };
    let format = Format::ALL.get(usize::from(choice) % (Format::ALL.len() + 1)).copied();
    let column_7 = match choice / 8 % 3 {
        0 => None,
        1 => Some(Column7::Lag),
        _ => Some(Column7::Retries),
    };
    let now = Timestamp::UNIX_EPOCH;
    let files = files.split(|byte| *byte == 0).enumerate();
    let inputs = files.map(|(position, file)| {
        let name = if position == 0 { "log.1".to_owned() } else { format!("log.1.{position}") };
        Input::new(name, Some(now), Box::new(Cursor::new(file.to_vec())))
    });
    let settings = Settings { format, column_7, ..Settings::default() };
    match import::read(inputs.collect(), &settings, now) {
        Ok(mut imports) => {
            for record in &mut imports.records {
                for stage in &mut record.stages {
                    stage.session_loop.series.truncate(POINTS_MAX);
                }
                let json = serde_json::to_string(&*record).expect("a record can be written");
                let read: riops::record::Record =
                    serde_json::from_str(&json).expect("an imported record can be read again");
                reports::render(&read, choice / 24);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
