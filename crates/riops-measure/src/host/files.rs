//! Reads files that users or other programs provide, never more than a limit: a device has no end, and a file may
//! be larger than the memory.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::OFlags;

/// Maximum size of a text that people write, such as a configuration file, a plan or a script: far above any of them.
pub const TEXT_BYTES_MAX: u64 = 16 << 20;

/// Threads in [`read_limited`].
static READERS: AtomicUsize = AtomicUsize::new(0);

/// Whether the process reads a file, which may be a terminal or a FIFO without a writer: no signal ends such a wait.
pub fn is_reading() -> bool {
    READERS.load(Ordering::Acquire) > 0
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// [`ErrorKind::FileTooLarge`] with the limit, or the reason why the file cannot be read.
pub fn read_limited(path: &Path, limit: u64) -> Result<Vec<u8>> {
    READERS.fetch_add(1, Ordering::AcqRel);
    let read = File::open(path).and_then(|mut file| rest_limited(&mut file, limit));
    READERS.fetch_sub(1, Ordering::AcqRel);
    read
}

/// Reads a UTF-8 file of at most `limit` bytes.
///
/// # Errors
/// As [`read_limited`], and [`ErrorKind::InvalidData`].
pub fn text_limited(path: &Path, limit: u64) -> Result<String> {
    utf8(read_limited(path, limit)?)
}

/// Returns the text of a small file of the kernel without white space around it; `None` if nothing is left.
pub(crate) fn trimmed(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Reads the rest of an input, at most `limit` bytes.
///
/// # Errors
/// As [`read_limited`].
pub fn rest_limited(input: &mut impl Read, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit { Err(too_large(limit)) } else { Ok(bytes) }
}

/// Reads the next line of at most `limit` bytes with its line break; empty at the end of the input.
///
/// # Errors
/// As [`text_limited`].
pub fn line_limited(input: &mut impl BufRead, limit: u64) -> Result<String> {
    let mut line = Vec::new();
    input.take(limit.saturating_add(1)).read_until(b'\n', &mut line)?;
    if line.len() as u64 > limit { Err(too_large(limit)) } else { utf8(line) }
}

/// Reads the last `limit` bytes of a file, or all if there are fewer.
///
/// # Errors
/// The reason why the file cannot be read.
pub fn last_bytes(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(limit);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens a plain file for reading. A FIFO, which would wait for a writer, and a device are refused.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] if it is not a plain file, or the reason why it cannot be opened.
pub fn open_plain(path: &Path) -> Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(Error::new(ErrorKind::InvalidInput, "not a plain file"))
}

/// The error of an input above its limit.
pub fn too_large(limit: u64) -> Error {
    const UNITS: [(u32, &str); 3] = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = UNITS.into_iter().find(|(bits, _)| limit.trailing_zeros() >= *bits && limit > 0);
    let shown = unit.map_or_else(
        || format!("{limit} bytes"),
        |(bits, name)| format!("{} {name}", limit >> bits),
    );
    Error::new(ErrorKind::FileTooLarge, format!("longer than the limit of {shown}"))
}

fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn reads_at_most_the_limit() {
        let exact = rest_limited(&mut &b"abcd"[..], 4).unwrap();
        assert_eq!(exact, b"abcd");
        let error = read_limited(Path::new("/dev/zero"), TEXT_BYTES_MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "longer than the limit of 16 MiB");
        assert_eq!(too_large(1000).to_string(), "longer than the limit of 1000 bytes");
        let sparse = tempfile::NamedTempFile::new().unwrap();
        sparse.as_file().set_len(1 << 40).unwrap();
        assert_eq!(last_bytes(sparse.path(), 3).unwrap(), [0; 3]);
        assert!(text_limited(sparse.path(), 1 << 10).unwrap_err().to_string().contains("1 KiB"));
    }

    #[test]
    fn lines_are_read_up_to_their_end_or_the_limit() {
        let mut input = &b"ab\ncd\nlonger\n"[..];
        let mut line = || line_limited(&mut input, 3).map_err(|error| error.kind());
        assert_eq!((line().as_deref(), line().as_deref()), (Ok("ab\n"), Ok("cd\n")));
        assert_eq!(line(), Err(ErrorKind::FileTooLarge));
        assert_eq!(line_limited(&mut &b""[..], 3).unwrap(), "");
        assert_eq!(
            line_limited(&mut &b"\xff\n"[..], 3).unwrap_err().kind(),
            ErrorKind::InvalidData
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_fifo_or_a_device_is_not_opened_as_a_plain_file() {
        let folder = tempfile::tempdir().unwrap();
        let (fifo, link) = (folder.path().join("fifo"), folder.path().join("link"));
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
        std::os::unix::fs::symlink(&fifo, &link).unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for path in [&fifo, &link, Path::new("/dev/zero"), Path::new("/")] {
                sender.send(open_plain(path).map_err(|error| error.kind())).unwrap();
            }
        });
        for _ in 0..4 {
            let opened =
                receiver.recv_timeout(Duration::from_mins(1)).expect("an open that blocks");
            assert_eq!(opened.unwrap_err(), ErrorKind::InvalidInput);
        }
    }
}
