//! Import cycles between files, and between the files and folders of one folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::imports::Imports;

/// Returns the cycles of files, each with its imports.
pub(crate) fn violations(imports: &Imports) -> Vec<String> {
    let edges = imports.keys().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    let cycles = components(&edges);
    cycles.iter().map(|cycle| describe(imports, cycle, "files", |from, to| (from, to))).collect()
}

/// Returns the cycles between modules of one folder of which at least one is a folder, with their imports, unless
/// `known` lists all their modules; and the entries of `known` that no cycle needs.
pub(crate) fn between_folders(imports: &Imports, known: &[&[&str]]) -> Vec<String> {
    let modules = |from, to| modules(from, to).unwrap_or_default();
    let edges = imports.keys().filter_map(|(from, to)| self::modules(from, to)).collect();
    let is_folder = |module: &&str| {
        let inside = format!("{module}/");
        imports.keys().any(|(from, to)| from.starts_with(&inside) || to.starts_with(&inside))
    };
    let cycles = components(&edges);
    let cycles: Vec<_> = cycles.iter().filter(|cycle| cycle.iter().any(is_folder)).collect();
    let is_known =
        |cycle: &BTreeSet<&str>, known: &[&str]| cycle.iter().all(|module| known.contains(module));
    let unknown = cycles.iter().filter(|cycle| !known.iter().any(|known| is_known(cycle, known)));
    let gone = known.iter().filter(|known| !cycles.iter().any(|cycle| is_known(cycle, known)));
    unknown
        .map(|cycle| describe(imports, cycle, "modules", modules))
        .chain(gone.map(|known| format!("no cycle between {}", known.join(", "))))
        .collect()
}

/// Returns the two modules of the innermost folder that contains both files; `None` if one of them is its head, or if
/// both files belong to one module.
fn modules<'a>(from: &'a str, to: &'a str) -> Option<(&'a str, &'a str)> {
    let shared = from.split('/').zip(to.split('/')).take_while(|(from, to)| from == to);
    let start: usize = shared.map(|(name, _)| name.len() + 1).sum();
    let module = |file: &'a str| {
        let name = file[start..].split('/').next()?;
        let name = name.strip_suffix(".rs").unwrap_or(name);
        (!["mod", "lib", "main"].contains(&name)).then(|| &file[..start + name.len()])
    };
    let (from, to) = (module(from)?, module(to)?);
    (from != to).then_some((from, to))
}

/// Returns the strongly connected components of more than one node.
fn components<'a>(edges: &BTreeSet<(&'a str, &'a str)>) -> Vec<BTreeSet<&'a str>> {
    let mut left: BTreeSet<&str> = edges.iter().map(|(from, _)| *from).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        left.iter().map(|node| (*node, reachable(edges, node))).collect();
    let mut components = Vec::new();
    while let Some(node) = left.pop_first() {
        let component: BTreeSet<&str> = reached[node]
            .iter()
            .copied()
            .filter(|other| reached.get(other).is_some_and(|back| back.contains(node)))
            .collect();
        left.retain(|other| !component.contains(other));
        if !component.is_empty() {
            components.push(component);
        }
    }
    components
}

/// Returns the nodes that a node imports directly or indirectly. Contains the node itself only if it is
/// part of a cycle.
fn reachable<'a>(edges: &BTreeSet<(&'a str, &'a str)>, node: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        for (_, imported) in edges.iter().filter(|(importing, _)| *importing == node) {
            if reached.insert(*imported) {
                open.push(imported);
            }
        }
    }
    reached
}

fn describe<'a>(
    imports: &'a Imports,
    component: &BTreeSet<&str>,
    kind: &str,
    nodes: impl Fn(&'a str, &'a str) -> (&'a str, &'a str),
) -> String {
    let mut text = format!("cycle of {} {kind}:", component.len());
    for ((importing, defining), (line, path)) in imports {
        let (from, to) = nodes(importing, defining);
        if component.contains(from) && component.contains(to) {
            let _ = write!(text, "\n  {importing}:{line}: imports `{path}`, defined in {defining}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{between_folders, violations};
    use crate::imports::{Imports, imports};
    use crate::modules::Tree;

    /// Returns the imports of a crate with these files.
    fn imports_of(files: &[(&str, &str)]) -> Imports {
        let read = |name: &str| {
            files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned())
        };
        imports(&Tree::load("src/lib.rs", &read))
    }

    /// Returns the import cycles of a crate with these files.
    fn cycles(files: &[(&str, &str)]) -> Vec<String> {
        violations(&imports_of(files))
    }

    /// Two folders that use each other through different files: no file is part of a cycle.
    const FOLDERS: [(&str, &str); 7] = [
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a/mod.rs", "mod first; mod second; pub use first::First;"),
        ("src/a/first.rs", "pub struct First;"),
        ("src/a/second.rs", "use crate::b::Third; pub struct Second(Third);"),
        ("src/b/mod.rs", "mod third; mod fourth; pub use self::third::*;"),
        ("src/b/third.rs", "pub struct Third;"),
        ("src/b/fourth.rs", "use crate::a::First; pub struct Fourth(First);"),
    ];

    #[test]
    fn finds_a_cycle_between_folders_through_re_exports() {
        let imports = imports_of(&FOLDERS);
        assert_eq!(violations(&imports), [""; 0]);
        assert_eq!(
            between_folders(&imports, &[]),
            ["cycle of 2 modules:\
              \n  src/a/second.rs:1: imports `crate::b::Third`, defined in src/b/third.rs\
              \n  src/b/fourth.rs:1: imports `crate::a::First`, defined in src/a/first.rs"]
        );
    }

    #[test]
    fn finds_a_cycle_between_a_folder_and_a_file_beside_it() {
        let violations = between_folders(
            &imports_of(&[
                ("src/lib.rs", "mod a; mod b;"),
                ("src/a.rs", "mod inner; pub fn f() { crate::b::f() }"),
                ("src/a/inner.rs", "pub fn g() {}"),
                ("src/b.rs", "use crate::a::inner::g; pub fn f() { g() }"),
            ]),
            &[],
        );
        assert_eq!(violations.len(), 1, "{violations:?}");
    }

    #[test]
    fn a_known_cycle_between_folders_is_accepted_as_long_as_it_exists() {
        let imports = imports_of(&FOLDERS);
        let cycle = ["src/a", "src/b"];
        assert_eq!(between_folders(&imports, &[&cycle]), [""; 0]);
        assert_eq!(between_folders(&imports, &[&["src/a", "src/b", "src/c"]]), [""; 0]);
        let known: [&[&str]; 2] = [&cycle, &["src/c", "src/d"]];
        assert_eq!(between_folders(&imports, &known), ["no cycle between src/c, src/d"]);
        assert_eq!(between_folders(&imports, &[&["src/a"]]).len(), 2);
        let is_left = |(_, text): &(&str, &str)| !text.contains("Fourth");
        let mut without: Vec<_> = FOLDERS.into_iter().filter(is_left).collect();
        without[4].1 = "mod third; pub use self::third::*;";
        let left = between_folders(&imports_of(&without), &[&cycle]);
        assert_eq!(left, ["no cycle between src/a, src/b"]);
    }

    #[test]
    fn a_folder_and_its_head_are_one_module() {
        let violations = between_folders(
            &imports_of(&[
                ("src/lib.rs", "mod a;"),
                ("src/a/mod.rs", "mod x; mod y; use x::X; pub struct A(X);"),
                ("src/a/x.rs", "pub struct X;"),
                ("src/a/y.rs", "use super::A; pub struct Y(A);"),
            ]),
            &[],
        );
        assert_eq!(violations, [""; 0]);
    }

    #[test]
    fn finds_a_cycle_between_child_and_parent() {
        let violations = cycles(&[
            ("src/lib.rs", "mod a;"),
            ("src/a/mod.rs", "mod child;\nuse child::Child;\npub struct Parent(Child);"),
            ("src/a/child.rs", "pub struct Child;\nfn f(_: super::Parent) {}"),
        ]);
        assert_eq!(
            violations,
            ["cycle of 2 files:\
              \n  src/a/child.rs:2: imports `super::Parent`, defined in src/a/mod.rs\
              \n  src/a/mod.rs:2: imports `child::Child`, defined in src/a/child.rs"]
        );
    }

    #[test]
    fn finds_a_cycle_through_a_re_export() {
        let violations = cycles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a/mod.rs", "mod inner; pub use inner::Inner;"),
            ("src/a/inner.rs", "use crate::b::B; pub struct Inner(B);"),
            ("src/b.rs", "use crate::a::Inner; pub struct B; fn f(_: Inner) {}"),
        ]);
        assert_eq!(
            violations,
            ["cycle of 2 files:\
              \n  src/a/inner.rs:1: imports `crate::b::B`, defined in src/b.rs\
              \n  src/b.rs:1: imports `crate::a::Inner`, defined in src/a/inner.rs"]
        );
    }

    #[test]
    fn finds_a_cycle_through_a_glob_and_a_macro() {
        let violations = cycles(&[
            ("src/lib.rs", "mod a; mod b;"),
            ("src/a.rs", "use crate::b::*; pub fn a() { b() }"),
            ("src/b.rs", "pub fn b() { print!(\"{}\", crate::a::a()); }"),
        ]);
        assert_eq!(violations.len(), 1, "{violations:?}");
    }

    #[test]
    fn finds_one_cycle_of_three_files() {
        let violations = cycles(&[
            ("src/lib.rs", "mod a; mod b; mod c; mod d;"),
            ("src/a.rs", "pub fn f() { crate::b::f() }"),
            ("src/b.rs", "pub fn f() { super::c::f() }"),
            ("src/c.rs", "use crate::a; pub fn f() { a::f() }"),
            ("src/d.rs", "use crate::a; pub fn f() { a::f() }"),
        ]);
        assert_eq!(violations.len(), 1, "{violations:?}");
        assert!(violations[0].starts_with("cycle of 3 files:"), "{violations:?}");
    }

    #[test]
    fn ignores_module_declarations() {
        let violations = cycles(&[
            ("src/lib.rs", "mod a;"),
            ("src/a/mod.rs", "mod child; pub struct Parent;"),
            ("src/a/child.rs", "use super::Parent; pub struct Child(Parent);"),
        ]);
        assert!(violations.is_empty(), "{violations:?}");
    }

    #[test]
    fn ignores_re_exports_unless_the_name_is_used() {
        let child = ("src/a/child.rs", "use super::Parent; pub struct Child(Parent);");
        let re_export = "mod child; pub use child::Child; pub struct Parent;";
        let violations = cycles(&[("src/lib.rs", "mod a;"), ("src/a/mod.rs", re_export), child]);
        assert!(violations.is_empty(), "{violations:?}");
        let used = format!("{re_export} fn f(_: Child) {{}}");
        let violations = cycles(&[("src/lib.rs", "mod a;"), ("src/a/mod.rs", &used), child]);
        assert_eq!(violations.len(), 1, "{violations:?}");
    }

    #[test]
    fn ignores_test_code() {
        let violations = cycles(&[
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
        assert!(violations.is_empty(), "{violations:?}");
    }

    #[test]
    fn ignores_local_names() {
        let violations = cycles(&[
            ("src/lib.rs", "mod a;"),
            ("src/a/mod.rs", "mod run; pub use run::run; pub fn f(run: u8) -> u8 { run }"),
            ("src/a/run.rs", "pub fn run() -> u8 { super::f(1) }"),
        ]);
        assert!(violations.is_empty(), "{violations:?}");
    }
}
