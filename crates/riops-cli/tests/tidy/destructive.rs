//! The places of the product that remove, overwrite, drop or end something, each with the proof that it belongs to riops.

use std::collections::BTreeMap;

use crate::workspace::{files, read, rust_files};

/// Calls in Rust, as they are written.
const CALLS: [&str; 12] = [
    "remove_dir_all",
    "remove_file",
    "fs::remove_dir(",
    "File::create(",
    "fs::write(",
    "fs::rename(",
    ".truncate(true)",
    ".kill()",
    "kill_process(",
    "pidfd_send_signal(",
    "persist(",
    ".exec()",
];
/// First words of SQL, in lowercase.
const STATEMENTS: [&str; 14] = [
    "drop table",
    "drop view",
    "drop schema",
    "drop database",
    "drop routine",
    "drop procedure",
    "drop role",
    "drop index",
    "drop sequence",
    "drop extension",
    "delete from",
    "truncate ",
    "pg_terminate_backend",
    "pg_cancel_backend",
];

/// A place, its calls with their number, and the proof.
pub(crate) type Place = (&'static str, &'static [(&'static str, usize)], &'static str);

/// Returns the calls of the product by file, with their number.
fn calls_by_file() -> BTreeMap<String, BTreeMap<&'static str, usize>> {
    let mut all: BTreeMap<String, BTreeMap<&'static str, usize>> = BTreeMap::new();
    let crates = [
        "riops",
        "riops-cli",
        "riops-measure",
        "riops-model",
        "riops-report",
        "riops-ring",
        "riops-script",
        "riops-wire",
    ];
    let sources = crates.iter().flat_map(|name| rust_files(&format!("crates/{name}/src")));
    let is_test = |file: &String| {
        file.contains("/tests/") || file.ends_with("tests.rs") || file.contains("/example")
    };
    let sql = files("sql", "sql").into_iter().chain(files("sql", "pgbench"));
    for file in sources.filter(|file| !is_test(file)).chain(sql) {
        let text = read(&file).unwrap();
        // Tests are at the end of a file.
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap();
        for line in product.lines().map(str::trim) {
            if line.starts_with("//") || line.starts_with("--") {
                continue;
            }
            let lower = line.to_lowercase();
            let statements = STATEMENTS.iter().filter(|statement| {
                lower.contains(**statement)
                    && (file.starts_with("sql/")
                        || lower.contains('"')
                        || lower.starts_with(**statement))
            });
            let line = line.replace("OutputFile::create(", "");
            for call in CALLS.iter().filter(|call| line.contains(**call)).chain(statements) {
                *all.entry(file.clone()).or_default().entry(call).or_default() += 1;
            }
        }
    }
    all
}

/// Returns the places that the list does not have, or has differently.
pub(crate) fn violations(list: &[Place]) -> Vec<String> {
    let mut expected: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    for (file, calls, proof) in list {
        assert!(!proof.is_empty(), "{file} has no proof");
        expected.insert((*file).to_owned(), calls.iter().copied().collect());
    }
    let actual = calls_by_file();
    assert!(actual.len() > 10, "the sources were not found");
    let all: std::collections::BTreeSet<_> = actual.keys().chain(expected.keys()).collect();
    let differs = all.into_iter().filter(|file| actual.get(*file) != expected.get(*file));
    differs
        .map(|file| {
            let (now, listed) = (actual.get(file), expected.get(file));
            format!("{file}:1: has {now:?}, but {listed:?} is listed in tidy/destructive_list.rs")
        })
        .collect()
}

/// Returns the places that double the quotes of names or texts: SQL is built with `units::sql`. CSV doubles quotes, too.
pub(crate) fn own_quotes() -> Vec<String> {
    let crates = ["riops", "riops-cli"];
    let sources = crates.iter().flat_map(|name| rust_files(&format!("crates/{name}/src")));
    let doubles = [r#"replace('"', "\"\"")"#, r#"replace('\'', "''")"#];
    let mut violations = Vec::new();
    for file in sources.filter(|file| !file.ends_with("subjects/runs.rs")) {
        for (line_number, line) in (1..).zip(read(&file).unwrap().lines()) {
            if doubles.iter().any(|double| line.contains(double)) {
                violations.push(format!("{file}:{line_number}: {}", line.trim()));
            }
        }
    }
    violations
}
