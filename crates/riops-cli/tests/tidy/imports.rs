//! Imports between files. Each path is resolved to the file that defines the item.
//!
//! A declaration (`mod child;`) or a re-export (`pub use child::Item`) is not an import. A file that uses
//! an item through a re-export imports it from the defining file.

use std::collections::BTreeMap;

use crate::modules::Tree;

/// Maximum length of a chain of re-exports and glob imports. A longer chain is a loop.
const DEPTH_MAX: usize = 32;

/// The first importing line and its path, by importing and defining file.
pub(crate) type Imports = BTreeMap<(String, String), (usize, String)>;

/// What a path refers to, as the index of a module in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item that this module defines.
    Item(usize),
}

/// Returns the imports between the files of a crate.
pub(crate) fn imports(tree: &Tree) -> Imports {
    let mut imports = Imports::new();
    for (position, module) in tree.modules.iter().enumerate() {
        let uses = module.contents.uses.iter().filter(|import| !import.exported);
        let uses = uses.map(|import| (&import.path, import.line));
        let paths = module.contents.references.iter().map(|path| (&path.path, path.line));
        for (path, line) in uses.chain(paths) {
            let Some(Target::Item(definer)) = resolve(tree, position, path, 0) else { continue };
            let defining = &tree.modules[definer].file;
            if *defining != module.file {
                let first = imports
                    .entry((module.file.clone(), defining.clone()))
                    .or_insert_with(|| (line, path.join("::")));
                if line < first.0 {
                    *first = (line, path.join("::"));
                }
            }
        }
    }
    imports
}

/// Resolves a path from a module. Returns `None` if the path leaves the crate or is a local name.
fn resolve(tree: &Tree, from: usize, path: &[String], depth: usize) -> Option<Target> {
    if depth > DEPTH_MAX {
        return None;
    }
    let (mut at, mut rest) = (from, path);
    while let [first, tail @ ..] = rest {
        match first.as_str() {
            "crate" => at = 0,
            "self" => {}
            "super" => at = tree.modules[at].parent?,
            name => {
                let has_more = !tail.is_empty();
                match look_up(tree, at, name, has_more, depth)? {
                    Target::Module(module) => at = module,
                    item @ Target::Item(_) => return Some(item),
                }
            }
        }
        rest = tail;
    }
    Some(Target::Module(at))
}

/// Resolves a name in a module. If a module and an item have the same name, the name means the module if
/// more segments follow, and otherwise the item.
fn look_up(tree: &Tree, at: usize, name: &str, has_more: bool, depth: usize) -> Option<Target> {
    let module = &tree.modules[at];
    let child = module
        .children
        .iter()
        .find(|child| tree.modules[**child].path.last().is_some_and(|own| own == name));
    let child = child.map(|child| Target::Module(*child));
    if has_more && child.is_some() {
        return child;
    }
    if module.contents.items.contains(name) {
        return Some(Target::Item(at));
    }
    let named = module
        .contents
        .uses
        .iter()
        .filter(|import| import.name.as_deref() == Some(name))
        .find_map(|import| resolve(tree, at, &import.path, depth + 1));
    let everything = || {
        let globs = module.contents.uses.iter().filter(|import| import.name.is_none());
        let mut sources = globs.filter_map(|glob| resolve(tree, at, &glob.path, depth + 1));
        sources.find_map(|source| match source {
            Target::Module(source) if source != at && depth < DEPTH_MAX => {
                look_up(tree, source, name, has_more, depth + 1)
            }
            _ => None,
        })
    };
    named.or(child).or_else(everything)
}
