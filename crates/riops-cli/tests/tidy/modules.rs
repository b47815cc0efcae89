//! The module tree of a crate, without its tests.

use std::collections::BTreeSet;

use crate::collect::collect;

/// A module in a separate file or inline in its parent's file.
#[derive(Debug)]
pub(crate) struct Module {
    /// Path from the crate root; empty for the root.
    pub(crate) path: Vec<String>,
    pub(crate) file: String,
    pub(crate) parent: Option<usize>,
    /// Indexes of the child modules, in the order of declaration.
    pub(crate) children: Vec<usize>,
    pub(crate) contents: Contents,
}

/// Items that a module defines, and names that it uses.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) items: BTreeSet<String>,
    pub(crate) uses: Vec<Use>,
    pub(crate) references: Vec<Reference>,
    /// Declared modules, with their contents if they are inline.
    pub(crate) modules: Vec<(String, Option<Contents>)>,
}

/// One imported name of a `use` declaration.
#[derive(Debug)]
pub(crate) struct Use {
    /// Name in this module; `None` for `*`.
    pub(crate) name: Option<String>,
    pub(crate) path: Vec<String>,
    /// Whether it is a re-export, that is, has a visibility.
    pub(crate) exported: bool,
    pub(crate) line: usize,
}

/// A path in the code.
#[derive(Debug)]
pub(crate) struct Reference {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

/// All modules of a crate, the root first.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) modules: Vec<Module>,
}

impl Tree {
    /// Parses the crate with this root file. `read` returns the text of a file if it exists.
    pub(crate) fn load(root: &str, read: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut tree = Self { modules: Vec::new() };
        let contents = parse(root, read).unwrap_or_else(|| panic!("{root} does not exist"));
        let place = Place { file: root.to_owned(), folder: folder_of(root) };
        tree.add(&[], None, &place, contents, read);
        tree
    }

    /// Adds a module and its descendants.
    fn add(
        &mut self,
        path: &[String],
        parent: Option<usize>,
        place: &Place,
        mut contents: Contents,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> usize {
        let declared = std::mem::take(&mut contents.modules);
        let own = self.modules.len();
        self.modules.push(Module {
            path: path.to_vec(),
            file: place.file.clone(),
            parent,
            children: Vec::new(),
            contents,
        });
        for (name, inside) in declared {
            let (place, contents) = match inside {
                Some(contents) => (place.inline_module(&name), contents),
                None => place.file(&name, read),
            };
            let path: Vec<String> = path.iter().cloned().chain([name]).collect();
            let child = self.add(&path, Some(own), &place, contents, read);
            self.modules[own].children.push(child);
        }
        own
    }
}

/// The file of a module and the folder of its children.
struct Place {
    file: String,
    folder: String,
}

impl Place {
    fn inline_module(&self, name: &str) -> Self {
        let folder = format!("{}/{name}", self.folder);
        Self { file: self.file.clone(), folder }
    }

    fn file(&self, name: &str, read: &dyn Fn(&str) -> Option<String>) -> (Self, Contents) {
        let folder = format!("{}/{name}", self.folder);
        let candidates = [format!("{folder}.rs"), format!("{folder}/mod.rs")];
        candidates
            .into_iter()
            .find_map(|file| {
                let contents = parse(&file, read)?;
                Some((Self { file, folder: folder.clone() }, contents))
            })
            .unwrap_or_else(|| panic!("{}: module {name} has no file", self.file))
    }
}

/// Returns the folder of the modules that a root file declares.
fn folder_of(root: &str) -> String {
    root.rsplit_once('/').map_or_else(|| ".".to_owned(), |(folder, _)| folder.to_owned())
}

fn parse(file: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<Contents> {
    let text = read(file)?;
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    Some(collect(&syntax))
}
