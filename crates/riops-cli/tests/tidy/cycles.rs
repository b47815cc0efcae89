//! Import cycles between files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::imports::Imports;

/// Returns the strongly connected components of more than one file, each with its internal imports.
pub(crate) fn violations(imports: &Imports) -> Vec<String> {
    let mut left: BTreeSet<&str> =
        imports.keys().map(|(importing, _)| importing.as_str()).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        left.iter().map(|file| (*file, reachable(imports, file))).collect();
    let mut found = Vec::new();
    while let Some(file) = left.pop_first() {
        let component: BTreeSet<&str> = reached[file]
            .iter()
            .copied()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(file)))
            .collect();
        left.retain(|other| !component.contains(other));
        if !component.is_empty() {
            found.push(describe(imports, &component));
        }
    }
    found
}

/// Returns the files that a file imports directly or indirectly. Contains the file itself only if it is
/// part of a cycle.
fn reachable<'a>(imports: &'a Imports, file: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![file];
    while let Some(file) = open.pop() {
        let from = imports.keys().filter(|(importing, _)| importing == file);
        for (_, defining) in from {
            if reached.insert(defining.as_str()) {
                open.push(defining);
            }
        }
    }
    reached
}

fn describe(imports: &Imports, component: &BTreeSet<&str>) -> String {
    let mut text = format!("cycle of {} files:", component.len());
    for ((importing, defining), (line, path)) in imports {
        if component.contains(importing.as_str()) && component.contains(defining.as_str()) {
            let _ = write!(text, "\n  {importing}:{line}: imports `{path}`, defined in {defining}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::violations;
    use crate::imports::imports;
    use crate::modules::Tree;

    /// Returns the import cycles of a crate with these files.
    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        let read = |name: &str| {
            files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned())
        };
        violations(&imports(&Tree::load("src/lib.rs", &read)))
    }

    #[test]
    fn finds_a_cycle_between_child_and_parent() {
        let found = cycles(&[
            ("src/lib.rs", "mod a;"),
            ("src/a/mod.rs", "mod child;\nuse child::Child;\npub struct Parent(Child);"),
            ("src/a/child.rs", "pub struct Child;\nfn f(_: super::Parent) {}"),
        ]);
        assert_eq!(
            found,
            ["cycle of 2 files:\
              \n  src/a/child.rs:2: imports `super::Parent`, defined in src/a/mod.rs\
              \n  src/a/mod.rs:2: imports `child::Child`, defined in src/a/child.rs"]
        );
    }

    #[test]
    fn finds_a_cycle_through_a_re_export() {
        let found = cycles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a/mod.rs", "mod inner; pub use inner::Inner;"),
            ("src/a/inner.rs", "use crate::b::B; pub struct Inner(B);"),
            ("src/b.rs", "use crate::a::Inner; pub struct B; fn f(_: Inner) {}"),
        ]);
        assert_eq!(
            found,
            ["cycle of 2 files:\
              \n  src/a/inner.rs:1: imports `crate::b::B`, defined in src/b.rs\
              \n  src/b.rs:1: imports `crate::a::Inner`, defined in src/a/inner.rs"]
        );
    }

    #[test]
    fn finds_a_cycle_through_a_glob_and_a_macro() {
        let found = cycles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "use crate::b::*; pub fn a() { b() }"),
            ("src/b.rs", "pub fn b() { print!(\"{}\", crate::a::a()); }"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn finds_one_cycle_of_three_files() {
        let found = cycles(&[
            ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
            ("src/a.rs", "pub fn f() { crate::b::f() }"),
            ("src/b.rs", "pub fn f() { super::c::f() }"),
            ("src/c.rs", "use crate::a; pub fn f() { a::f() }"),
            ("src/d.rs", "use crate::a; pub fn f() { a::f() }"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("cycle of 3 files:"), "{found:?}");
    }

    #[test]
    fn ignores_module_declarations() {
        let found = cycles(&[
            ("src/lib.rs", "mod a;"),
            ("src/a/mod.rs", "mod child; pub struct Parent;"),
            ("src/a/child.rs", "use super::Parent; pub struct Child(Parent);"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn ignores_re_exports_unless_the_name_is_used() {
        let child = ("src/a/child.rs", "use super::Parent; pub struct Child(Parent);");
        let re_export = "mod child; pub use child::Child; pub struct Parent;";
        let found = cycles(&[("src/lib.rs", "mod a;"), ("src/a/mod.rs", re_export), child]);
        assert!(found.is_empty(), "{found:?}");
        let used = format!("{re_export} fn f(_: Child) {{}}");
        let found = cycles(&[("src/lib.rs", "mod a;"), ("src/a/mod.rs", &used), child]);
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn ignores_test_code() {
        let found = cycles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "pub struct A(crate::b::B);"),
            (
                "src/b.rs",
                "pub struct B;
                 #[cfg(test)] use crate::a::A;
                 #[cfg(test)] fn fake() -> crate::a::A { todo!() }
                 #[cfg(test)] mod tests { use crate::a::A; }
                 #[cfg(all(test, unix))] mod missing;",
            ),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn ignores_local_names() {
        let found = cycles(&[
            ("src/lib.rs", "mod a;"),
            ("src/a/mod.rs", "mod run; pub use run::run; pub fn f(run: u8) -> u8 { run }"),
            ("src/a/run.rs", "pub fn run() -> u8 { super::f(1) }"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
