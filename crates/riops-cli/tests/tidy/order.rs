//! Dependencies between top-level modules, in the order of lib.rs, and matches on the workload.

use std::collections::BTreeSet;

use crate::modules::{Module, Tree};

/// Enums with a variant for each workload.
const ENUMS: [&str; 2] = ["WorkPlan", "DatasetPlan"];

/// Returns the paths to a top-level module that is declared below the module that uses it.
pub(crate) fn violations(tree: &Tree) -> Vec<String> {
    let top: Vec<&String> = tree.modules[0]
        .children
        .iter()
        .filter_map(|child| tree.modules[*child].path.first())
        .collect();
    let position = |name: &String| top.iter().position(|own| *own == name);
    let mut violations = BTreeSet::new();
    for module in &tree.modules {
        let Some(own) = module.path.first() else { continue };
        for (path, line) in paths(module) {
            let Some(used) = top_level(module, path) else { continue };
            if position(used) > position(own) {
                let path = path.join("::");
                let violation = format!("{own} uses {used}, declared below it: `{path}`");
                violations.insert((&module.file, line, violation));
            }
        }
    }
    violations.iter().map(|(file, line, violation)| format!("{file}:{line}: {violation}")).collect()
}

/// Returns each file that names a variant of a workload enum, with the line and the path.
pub(crate) fn dispatches(tree: &Tree) -> Vec<(String, String)> {
    let mut dispatches = BTreeSet::new();
    for module in &tree.modules {
        for (path, line) in paths(module) {
            if path.windows(2).any(|pair| is_variant(&pair[0], &pair[1])) {
                dispatches.insert((module.file.clone(), line, path.join("::")));
            }
        }
    }
    dispatches.into_iter().map(|(file, line, path)| (file, format!("{line}: `{path}`"))).collect()
}

/// Whether a path names a variant of one of the enums, and not an associated function.
fn is_variant(parent: &str, name: &str) -> bool {
    ENUMS.contains(&parent) && name.starts_with(|first: char| first.is_uppercase())
}

/// Returns all paths of a module, including re-exports.
fn paths(module: &Module) -> impl Iterator<Item = (&[String], usize)> {
    let uses = module.contents.uses.iter().map(|import| (import.path.as_slice(), import.line));
    let references = &module.contents.references;
    uses.chain(references.iter().map(|path| (path.path.as_slice(), path.line)))
}

/// Returns the first segment of a path after the crate root, or `None` if the path does not pass the root.
fn top_level<'a>(module: &Module, path: &'a [String]) -> Option<&'a String> {
    let mut depth = module.path.len();
    for segment in path {
        match segment.as_str() {
            "crate" => depth = 0,
            "super" => depth = depth.checked_sub(1)?,
            "self" => {}
            _ => return (depth == 0).then_some(segment),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{dispatches, violations};
    use crate::modules::Tree;

    fn tree(below: &str) -> Tree {
        let read = |name: &str| match name {
            "src/lib.rs" => Some("mod first; mod second;".to_owned()),
            "src/first/mod.rs" => Some("mod inner;".to_owned()),
            "src/first/inner.rs" => Some(below.to_owned()),
            "src/second.rs" => Some("use crate::first; pub enum WorkPlan { Rows }".to_owned()),
            _ => None,
        };
        Tree::load("src/lib.rs", &read)
    }

    #[test]
    fn finds_a_use_of_a_module_declared_below() {
        for used in ["crate::second::WorkPlan", "super::super::second::WorkPlan"] {
            let listed = violations(&tree(&format!("\npub fn f(_: {used}) {{}}")));
            let expected =
                format!("src/first/inner.rs:2: first uses second, declared below it: `{used}`");
            assert_eq!(listed, [expected]);
        }
    }

    #[test]
    fn allows_uses_of_modules_above_and_in_test_code() {
        let listed = violations(&tree("#[cfg(test)] mod tests { use crate::second::WorkPlan; }"));
        assert!(listed.is_empty(), "{listed:?}");
    }

    #[test]
    fn finds_variants_of_the_plan_enums() {
        let listed = dispatches(&tree("use crate::second::WorkPlan;\nfn f() { WorkPlan::Rows; }"));
        assert_eq!(listed, [("src/first/inner.rs".to_owned(), "2: `WorkPlan::Rows`".to_owned())]);
    }
}
