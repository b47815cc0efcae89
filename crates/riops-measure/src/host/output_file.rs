//! Files that riops writes: results appear under their names when they are complete, and private files have no
//! permissions for other users.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

/// Rights of a new file before the umask, as of the other files of the user.
const NEW_FILE_MODE: u32 = 0o666;
const PRIVATE_FILE_MODE: u32 = 0o600;
const PRIVATE_DIRECTORY_MODE: u32 = 0o700;
/// Write permission for others in the mode of a directory.
const WORLD_WRITABLE: u32 = 0o002;
/// Maximum number of links of a path, as in Linux (`path_resolution(7)`).
const LINKS_MAX: u32 = 40;

/// A file that gets its name when it is complete. Dropped before, it leaves nothing behind. A device or a pipe is
/// written directly.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// Path of the file until it is complete, and its name; `None` for a device or a pipe.
    unfinished: Option<(TempPath, PathBuf)>,
}

impl OutputFile {
    /// Creates the file beside `path`, with a random name. A symbolic link stays a link: the file that it names is
    /// replaced. The rights of a file that is replaced are kept.
    ///
    /// # Errors
    /// If the file cannot be created, or if another user could have chosen it: by a link in a directory that
    /// everybody can write to, such as `/tmp`.
    pub fn create(path: &Path) -> io::Result<Self> {
        require_own_links(path, LINKS_MAX)?;
        let (target, rights) = match fs::metadata(path) {
            // A device, a pipe or a file that is open already (`/dev/stdout`) must not be replaced. The latter keeps
            // what others have written to it.
            Ok(metadata) if !metadata.is_file() || is_descriptor(path) => {
                let file = OpenOptions::new().append(true).open(path)?;
                return Ok(Self { file, unfinished: None });
            }
            Ok(metadata) => (fs::canonicalize(path)?, Some(metadata.permissions())),
            Err(_) => (path.to_owned(), None),
        };
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let new = |path: &Path| {
            OpenOptions::new().write(true).create_new(true).mode(NEW_FILE_MODE).open(path)
        };
        let (file, unfinished) = tempfile::Builder::new()
            .prefix(".riops-")
            .suffix(".tmp")
            .make_in(folder.unwrap_or(Path::new(".")), new)?
            .into_parts();
        if let Some(rights) = rights {
            file.set_permissions(rights)?;
        }
        Ok(Self { file, unfinished: Some((unfinished, target)) })
    }

    /// Gives the file its name when it is on its device.
    ///
    /// # Errors
    /// If it cannot be written or renamed. The file is then removed.
    pub fn complete(self) -> io::Result<()> {
        let Some((unfinished, target)) = self.unfinished else {
            return Ok(());
        };
        self.file.sync_all()?;
        unfinished.persist(target).map_err(|error| error.error)
    }

    /// Writes a complete file.
    ///
    /// # Errors
    /// If it cannot be written. A file that existed before is then unchanged.
    pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut output = Self::create(path)?;
        output.write_all(bytes)?;
        output.complete()
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Returns whether a path names an open file of a process.
fn is_descriptor(path: &Path) -> bool {
    let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    folder.is_some_and(|folder| folder == Path::new("/dev") || folder.starts_with("/proc"))
}

/// Fails if a part of the path is a link of another user in a directory that everybody can write to: that user
/// would choose which file of this user is replaced. Linux does the same (`fs.protected_symlinks`), but not in every
/// installation.
fn require_own_links(path: &Path, links_max: u32) -> io::Result<()> {
    let user = rustix::process::geteuid().as_raw();
    for part in path.ancestors() {
        let Ok(link) = fs::symlink_metadata(part) else {
            continue;
        };
        if !link.is_symlink() {
            continue;
        }
        let folder = part.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let metadata = fs::metadata(folder)?;
        let is_foreign = link.uid() != user && link.uid() != metadata.uid();
        if is_foreign && metadata.mode() & WORLD_WRITABLE != 0 {
            let text = format!(
                "{} is a symbolic link of another user in a directory that everybody can write to; remove it, or write to another directory",
                part.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        if let (Some(links_left), Ok(next)) = (links_max.checked_sub(1), fs::read_link(part)) {
            require_own_links(&folder.join(next), links_left)?;
        }
    }
    Ok(())
}

/// Creates or empties a file under its name, for readers that follow it while it grows.
///
/// # Errors
/// As [`OutputFile::create`].
pub fn create_visible(path: &Path) -> io::Result<File> {
    require_own_links(path, LINKS_MAX)?;
    File::create(path)
}

/// Creates a directory for the user alone, and its parents in the same way.
///
/// # Errors
/// If it cannot be created.
pub fn create_private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE_DIRECTORY_MODE).create(path)
}

/// Returns options that create a file for the user alone.
pub fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(PRIVATE_FILE_MODE);
    options
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn replaces_a_file_with_its_rights_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("a.csv"), folder.path().join("link.csv"));
        OutputFile::write(&file, b"old").unwrap();
        let plain = folder.path().join("plain");
        fs::write(&plain, b"").unwrap();
        assert_eq!(mode(&file), mode(&plain), "as the umask says");
        fs::remove_file(plain).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        OutputFile::write(&link, b"new").unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"new".to_vec(), 0o640));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(folder.path()).len(), 2);
        let error = OutputFile::write(&folder.path().join("none/a.csv"), b"x").unwrap_err();
        assert_eq!(error.to_string(), "No such file or directory (os error 2)");
        OutputFile::write(Path::new("/dev/null"), b"x").unwrap();
    }

    #[test]
    fn a_file_that_is_not_completed_leaves_nothing_and_keeps_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.csv");
        fs::write(&file, b"old").unwrap();
        let mut output = OutputFile::create(&file).unwrap();
        output.write_all(b"half").unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        drop(output);
        assert_eq!(names(folder.path()), ["a.csv"]);
        assert_eq!(fs::read(&file).unwrap(), b"old");
    }

    #[test]
    fn links_of_other_users_in_shared_directories_are_refused() {
        const OTHER: Option<u32> = Some(65_533);
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let (shared, victim) = (folder.path().join("shared"), folder.path().join("victim"));
        fs::create_dir(&shared).unwrap();
        fs::write(&victim, b"precious").unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
        let link = shared.join("out.csv");
        symlink(&victim, &link).unwrap();
        OutputFile::write(&link, b"own link").unwrap();
        lchown(&link, OTHER, OTHER).unwrap();
        // The link itself, a link to it, and a directory that such a link names.
        let indirect = folder.path().join("indirect");
        symlink(&link, &indirect).unwrap();
        let directory = shared.join("directory");
        symlink(folder.path(), &directory).unwrap();
        lchown(&directory, OTHER, OTHER).unwrap();
        for path in [link, indirect, directory.join("victim")] {
            let error = OutputFile::write(&path, b"x").unwrap_err().to_string();
            assert!(error.contains("is a symbolic link of another user"), "{error}");
        }
        assert_eq!(fs::read(&victim).unwrap(), b"own link");
        chown(&shared, OTHER, OTHER).unwrap();
        fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
        OutputFile::write(&shared.join("out.csv"), b"not shared").unwrap();
    }

    #[test]
    fn private_files_and_directories_have_no_rights_for_others() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("a/b");
        create_private_directory(&directory).unwrap();
        let file = directory.join("f");
        private_file().write(true).truncate(false).open(&file).unwrap();
        let modes = [folder.path().join("a"), directory, file].map(|path| mode(&path));
        assert_eq!(modes, [0o700, 0o700, 0o600]);
    }
}
