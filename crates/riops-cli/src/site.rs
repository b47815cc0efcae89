//! A folder with a static site: riops replaces and removes only the files that it wrote.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use riops::gallery::SiteFile;
use riops::host::OutputFile;
use riops::host::files::{TEXT_BYTES_MAX, text_limited};
use serde::{Deserialize, Serialize};

use crate::failure::{UsageError, refuse};

/// The file that makes a folder a gallery: the files that riops wrote.
const MANIFEST: &str = "riops-gallery.json";

/// The folders of a gallery.
const FOLDERS: [&str; 5] = ["assets", "comparisons", "experiments", "histories", "runs"];

/// Contents of the manifest.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    files: BTreeSet<SitePath>,
}

/// The path of a file that riops writes into a gallery: it is in the folder itself, or in one of its folders. The manifest of
/// a folder may come from anyone, so that its paths are parsed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct SitePath(String);

impl TryFrom<String> for SitePath {
    type Error = String;

    fn try_from(path: String) -> Result<Self, String> {
        let (folder, name) = path.split_once('/').unwrap_or(("", &path));
        let is_page = [".html", ".json", ".js", ".css"].iter().any(|end| name.ends_with(end));
        let is_own = folder.is_empty() && path == name || FOLDERS.contains(&folder);
        if is_page && is_own && !name.contains(['/', '\0']) && name != MANIFEST {
            Ok(Self(path))
        } else {
            Err(format!("{path:?} is not a file of a gallery"))
        }
    }
}

impl From<SitePath> for String {
    fn from(path: SitePath) -> Self {
        path.0
    }
}

impl SitePath {
    /// Returns the path in the folder of a site. Fails if it leads outside by a symbolic link.
    fn within(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join(&self.0);
        let parent = path.parent().filter(|parent| *parent != folder);
        for part in parent.into_iter().chain([&*path]) {
            if part.is_symlink() {
                return refuse(format!("{} is a symbolic link", part.display()));
            }
        }
        Ok(path)
    }
}

/// A folder with a site.
pub(crate) struct Site<'a> {
    folder: &'a Path,
    /// Files that riops may replace or remove: the manifest in the folder lists them.
    owned: BTreeSet<SitePath>,
    /// Files of the new site.
    files: BTreeSet<SitePath>,
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
        let known: Manifest = if manifest.is_symlink() {
            return refuse(format!("{} is a symbolic link", manifest.display()));
        } else if manifest.is_file() {
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

    fn save(&self, files: &BTreeSet<SitePath>) -> Result<()> {
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
        for path in paths {
            let path = SitePath::try_from(path).map_err(UsageError)?;
            let file = path.within(self.folder)?;
            if !self.owned.contains(&path) {
                if file.symlink_metadata().is_ok() {
                    return refuse(format!(
                        "{} exists, and riops did not write it",
                        file.display()
                    ));
                }
                self.owned.insert(path);
            }
        }
        if self.owned.len() > before { self.save(&self.owned) } else { Ok(()) }
    }

    /// Writes a file of the site.
    ///
    /// # Errors
    /// As [`Self::own`], or if the file cannot be written.
    pub(crate) fn write(&mut self, file: &SiteFile) -> Result<()> {
        self.own(std::iter::once(file.path.clone()))?;
        let name = SitePath::try_from(file.path.clone()).map_err(UsageError)?;
        let path = name.within(self.folder)?;
        let failed = || format!("cannot write {}", path.display());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(failed)?;
        }
        OutputFile::write(&path, file.text.as_bytes()).with_context(failed)?;
        self.bytes += file.text.len() as u64;
        self.files.insert(name);
        Ok(())
    }

    /// Removes the pages of a former site that are no longer part of it, and returns the size of the site.
    pub(crate) fn end(self) -> Result<u64> {
        for old in self.owned.difference(&self.files) {
            let path = old.within(self.folder)?;
            if path.is_file() {
                fs::remove_file(&path)
                    .with_context(|| format!("cannot remove {}", path.display()))?;
            }
        }
        self.save(&self.files)?;
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn accepts_only_paths_of_files_that_riops_writes() {
        let parsed = |path: &str| SitePath::try_from(path.to_owned());
        for path in ["runs/a.html", "index.html", "assets/page.css", "experiments/a.json"] {
            assert!(parsed(path).is_ok(), "{path}");
        }
        for path in [
            "../a.html",
            "/etc/a.json",
            "runs/../../a.html",
            "runs/../a.html",
            "runs/a.txt",
            "",
            "/a.html",
            "other/a.html",
            "runs/a/b.html",
            "runs//a.html",
            "./index.html",
            MANIFEST,
        ] {
            assert!(parsed(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_planted_manifest_removes_and_replaces_nothing_outside() {
        let both = tempfile::tempdir().unwrap();
        let (site, other) = (both.path().join("site"), both.path().join("other"));
        let page = other.join("a.html");
        let plant = |file: &str| {
            let _ = fs::remove_dir_all(&site);
            fs::create_dir_all(site.join("runs")).unwrap();
            fs::create_dir_all(&other).unwrap();
            fs::write(&page, "mine").unwrap();
            fs::write(site.join(MANIFEST), format!("{{\"files\": [\"{file}\"]}}")).unwrap();
        };
        let file = SiteFile { path: "runs/a.html".to_owned(), text: "new".to_owned() };
        let ended = || Site::open(&site).and_then(Site::end).map(drop);
        let written = || Site::open(&site).and_then(|mut site| site.write(&file));
        let kept = || assert_eq!(fs::read_to_string(&page).unwrap(), "mine");
        for path in ["../other/a.html", "runs/../../other/a.html", &page.display().to_string()] {
            plant(path);
            assert!(ended().is_err() && written().is_err(), "{path}");
            kept();
        }
        plant("runs/a.html");
        fs::remove_dir(site.join("runs")).unwrap();
        symlink(&other, site.join("runs")).unwrap();
        assert!(ended().is_err() && written().is_err());
        kept();
        plant("runs/a.html");
        symlink(&page, site.join("runs/a.html")).unwrap();
        assert!(ended().is_err() && written().is_err());
        kept();
        plant("runs/a.html");
        fs::remove_file(site.join(MANIFEST)).unwrap();
        symlink(&page, site.join(MANIFEST)).unwrap();
        assert!(ended().is_err());
        kept();
        plant("runs/a.html");
        fs::write(site.join("runs/a.html"), "old").unwrap();
        written().unwrap();
        ended().unwrap();
        assert!(site.join("runs").read_dir().unwrap().next().is_none());
    }
}
