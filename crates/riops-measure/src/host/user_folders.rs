//! Where files of the user belong.

use std::path::{Path, PathBuf};

use rustix::fs::Access;

/// Returns the folders of riops for files of one kind, in order of preference: in the folder that `variable` names, and in
/// `below_home`. Services run with `HOME=/`, which is no home directory.
pub fn user_folders(variable: &str, below_home: &str) -> Vec<PathBuf> {
    folders_with(|name| std::env::var_os(name).map(PathBuf::from), variable, below_home)
}

fn folders_with(
    environment: impl Fn(&str) -> Option<PathBuf>,
    variable: &str,
    below_home: &str,
) -> Vec<PathBuf> {
    let absolute = |name| environment(name).filter(|path| path.is_absolute());
    let is_home = |path: &PathBuf| path.is_dir() && path.file_name().is_some();
    let home = absolute("HOME").filter(is_home).map(|home| home.join(below_home));
    absolute(variable).into_iter().chain(home).map(|folder| folder.join("riops")).collect()
}

/// Returns the folder of riops below `/var/tmp`, for users without a home directory.
pub fn temporary_folder() -> PathBuf {
    format!("/var/tmp/riops-{}", rustix::process::geteuid().as_raw()).into()
}

/// Returns whether files can be created in a folder, which is created first if it does not exist.
pub fn can_hold_files(folder: &Path) -> bool {
    let existing = folder.ancestors().find(|ancestor| ancestor.exists());
    existing.is_some_and(|existing| {
        existing.is_dir()
            && rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK).is_ok()
    })
}

/// Whether a default directory may be used: it and a link to it belong to root or the current user, and only they can
/// write to it. Another user may have created it first, and riops executes programs from it.
pub fn is_trusted(folder: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    let is_own = |metadata: &std::fs::Metadata| [0, user].contains(&metadata.uid());
    std::fs::symlink_metadata(folder).is_ok_and(|link| is_own(&link))
        && std::fs::metadata(folder).is_ok_and(|metadata| {
            metadata.is_dir() && is_own(&metadata) && metadata.mode() & 0o002 == 0
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_directory_and_a_file_are_no_home_directory() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("file");
        std::fs::write(&file, "").unwrap();
        let folders = |home: &Path, xdg: Option<&Path>| {
            folders_with(
                |name| Some(if name == "HOME" { home } else { xdg? }.to_owned()),
                "XDG_DATA_HOME",
                ".local/share",
            )
        };
        let own = top.path().join(".local/share/riops");
        assert_eq!(folders(top.path(), None), std::slice::from_ref(&own));
        assert_eq!(
            folders(top.path(), Some(Path::new("/data"))),
            [PathBuf::from("/data/riops"), own]
        );
        for home in
            [Path::new("/"), Path::new("//"), Path::new("here"), &file, &top.path().join("x")]
        {
            assert_eq!(folders(home, None), Vec::<PathBuf>::new(), "{home:?}");
        }
    }

    #[test]
    fn a_folder_below_a_file_can_hold_no_files() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(can_hold_files(&top.path().join("new/riops")));
        assert!(!can_hold_files(&file.join("riops")) && !can_hold_files(&file));
    }
}
