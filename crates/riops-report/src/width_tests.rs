//! No line of text is wider than the terminal.

use super::render::fill::columns;
use super::{example_cbc, example_load, example_oltp, example_record, run_text};
use riops_model::plan::Method;

#[test]
fn no_line_of_a_run_is_wider_than_the_terminal() {
    let load = example_load(&[Method::Insert, Method::CopyBinary]);
    for record in [example_record(), example_oltp(), load, example_cbc()] {
        for width in 40..=200 {
            for line in run_text(&record, "somewhere", width).lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }
}
