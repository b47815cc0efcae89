#![no_main]
//! Plans as JSON: everything that a plan builds without a server. The input is a plan ([`document`]), a zero byte, and
//! the replies of the server as text.

#[path = "support/document.rs"]
mod document;
#[path = "support/workload.rs"]
mod workload;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use riops::plan::{Plan, WorkPlan};
use riops::server::Dialect;
use serde_json::Value;

/// A plan of each workload.
static PLANS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let names = WorkPlan::names();
    let plans = names.iter().filter_map(|name| {
        let work = WorkPlan::default_of(name)?;
        serde_json::to_value(Plan { work, ..Plan::default() }).ok()
    });
    plans.collect()
});

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let text = document::document(parts.next().unwrap_or_default(), &PLANS);
    let Some(Ok(plan)) = text.map(|text| Plan::from_json(&text)) else {
        return;
    };
    let json = serde_json::to_string(&plan).expect("a plan can be written");
    let valid = plan.validate();
    if let Err(error) = &valid {
        assert!(!error.to_string().is_empty());
        return;
    }
    let read = Plan::from_json(&json).expect("a valid plan can be read again");
    assert_eq!(read, plan);
    let reply = String::from_utf8_lossy(parts.next().unwrap_or_default());
    for version in ["18.6", "15.2-YB-2025.1.0.0-b168"] {
        let _ = workload::build_all(&plan, Dialect::from_version(version), &reply);
    }
});
