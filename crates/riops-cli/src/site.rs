//! A folder with a static site: riops replaces and removes only the files that it wrote.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use riops::gallery::SiteFile;
use riops::host::OutputFile;
use riops::host::files::{TEXT_BYTES_MAX, text_limited};
use serde::{Deserialize, Serialize};

use crate::failure::refuse;

/// The file that makes a folder a gallery: the files that riops wrote.
const MANIFEST: &str = "riops-gallery.json";

/// What the manifest has.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    files: BTreeSet<String>,
}

/// A folder with a site.
pub(crate) struct Site<'a> {
    folder: &'a Path,
    /// The files that are riops's: those of the manifest in the folder.
    owned: BTreeSet<String>,
    /// Those of the new site.
    files: BTreeSet<String>,
    bytes: u64,
}

impl<'a> Site<'a> {
    /// Creates the folder, or continues one that is a gallery already.
    ///
    /// # Errors
    /// If the folder has other files.
    pub(crate) fn open(folder: &'a Path) -> Result<Self> {
        let failed = || format!("cannot write the site {}", folder.display());
        fs::create_dir_all(folder).with_context(failed)?;
        let manifest = folder.join(MANIFEST);
        let known: Manifest = if manifest.is_file() {
            let text = text_limited(&manifest, TEXT_BYTES_MAX).with_context(failed)?;
            serde_json::from_str(&text).with_context(|| manifest.display().to_string())?
        } else if fs::read_dir(folder).with_context(failed)?.next().is_some() {
            return refuse(format!(
                "{} is not empty, and no gallery: specify another folder",
                folder.display()
            ));
        } else {
            Manifest::default()
        };
        let site = Self { folder, owned: known.files, files: BTreeSet::new(), bytes: 0 };
        site.save(&site.owned)?;
        Ok(site)
    }

    fn save(&self, files: &BTreeSet<String>) -> Result<()> {
        let text = serde_json::to_string(&Manifest { files: files.clone() })? + "\n";
        let path = self.folder.join(MANIFEST);
        OutputFile::write(&path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Adds files to the manifest before they are written: whatever happens then, the next site in this folder replaces them.
    ///
    /// # Errors
    /// If one exists, or would be outside of the folder.
    pub(crate) fn own(&mut self, paths: impl Iterator<Item = String>) -> Result<()> {
        let before = self.owned.len();
        for path in paths.filter(|path| !self.owned.contains(path)).collect::<Vec<_>>() {
            let file = self.folder.join(&path);
            let parent = file.parent().unwrap_or(self.folder);
            if parent != self.folder && parent.is_symlink() {
                return refuse(format!("{} is a symbolic link", parent.display()));
            }
            if file.symlink_metadata().is_ok() {
                return refuse(format!("{} exists, and riops did not write it", file.display()));
            }
            self.owned.insert(path);
        }
        if self.owned.len() > before { self.save(&self.owned) } else { Ok(()) }
    }

    /// Writes a file of the site.
    ///
    /// # Errors
    /// As [`Self::own`], or if the file cannot be written.
    pub(crate) fn write(&mut self, file: &SiteFile) -> Result<()> {
        self.own(std::iter::once(file.path.clone()))?;
        let path = self.folder.join(&file.path);
        let failed = || format!("cannot write {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(failed)?;
        }
        OutputFile::write(&path, file.text.as_bytes()).with_context(failed)?;
        self.bytes += file.text.len() as u64;
        self.files.insert(file.path.clone());
        Ok(())
    }

    /// Removes the pages of a former site that are no longer part of it, and returns the size of the site.
    pub(crate) fn end(self) -> Result<u64> {
        for old in self.owned.difference(&self.files).filter(|old| is_inside(old)) {
            let path: PathBuf = self.folder.join(old);
            if path.is_file() && !path.parent().is_some_and(Path::is_symlink) {
                fs::remove_file(&path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        self.save(&self.files)?;
        Ok(self.bytes)
    }
}

/// Whether the path of a manifest is that of a page or a record in the folder of the site.
fn is_inside(path: &str) -> bool {
    let is_kind = [".html", ".json", ".js", ".css"].iter().any(|end| path.ends_with(end));
    is_kind && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_in_the_folder_are_removed() {
        assert!(is_inside("runs/a.html") && is_inside("index.html"));
        for path in ["../a.html", "/etc/a.json", "runs/../../a.html", "runs/a.txt", ""] {
            assert!(!is_inside(path), "{path}");
        }
    }
}
