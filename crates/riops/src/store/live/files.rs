//! Runs in progress as files: one file of JSON lines for each run, in a directory beside the store.
//!
//! The first line is a state of the run, and each further line an event. The writer holds a lock on the file while it
//! lives. A reader that gets the lock knows that the writer is dead, and removes the file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::{LiveError, LiveSink, LiveSource};
use crate::host::files::open_plain;
use crate::host::output_file::{create_private_directory, private_file};
use crate::record::{LIVE_VERSION, LiveRun, RunEvent};

/// When a file reaches this size, it is replaced by one state: many thousand points.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Longest part of a file that is read: a state and all events up to the next one.
const READ_BYTES_MAX: u64 = 4 * FILE_BYTES_MAX;
/// How often a writer creates the directory again if another process removes it at the same time.
const ATTEMPTS: usize = 5;
const EXTENSION: &str = "jsonl";
/// Extension of a file whose writer does not hold its lock yet.
const NEW_EXTENSION: &str = "new";

/// Writes one run to a file. Removes it when dropped.
#[derive(Debug)]
pub(super) struct FileSink {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl FileSink {
    /// Creates the file of a run in this directory, which is created if necessary.
    ///
    /// # Errors
    /// [`LiveError`] if the file cannot be written.
    pub(super) fn create(directory: &Path, run: &LiveRun) -> Result<Self, LiveError> {
        let path = directory.join(format!("{}.{EXTENSION}", run.id));
        let new = path.with_extension(NEW_EXTENSION);
        let failed = |source| LiveError::File { path: path.clone(), source };
        remove_dead(directory);
        let file = create(directory, &new).map_err(failed)?;
        let mut sink = Self { path: new, file, bytes: 0 };
        let locked = flock(&sink.file, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|error| sink.failed(error.into()))?;
        sink.write(run)?;
        // Only now can a reader find it: with its lock, and with its first line.
        fs::rename(&sink.path, &path).map_err(failed)?;
        sink.path = path;
        Ok(sink)
    }

    fn failed(&self, source: std::io::Error) -> LiveError {
        LiveError::File { path: self.path.clone(), source }
    }

    /// Appends a line with one write, so that a reader rarely sees half of it.
    fn write(&mut self, value: &impl serde::Serialize) -> Result<(), LiveError> {
        let mut line = serde_json::to_string(value)?;
        line.push('\n');
        self.file.write_all(line.as_bytes()).map_err(|source| self.failed(source))?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

/// Removes the files of runs that were killed.
fn remove_dead(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if let Ok(file) = open_plain(&path)
            // Before the lock is tried, which would disturb a writer that has just created its file.
            && is_file_of_a_run(&file, &path).unwrap_or(false)
        {
            remove_if_dead(&file, &path);
        }
    }
}

/// Returns whether the writer of a file is dead, and removes the file then. Other files stay: a file of riops has the id
/// of its run as its name and in its first line. The line is written under the lock, so that a file with the line and
/// without the lock has lost its writer.
fn remove_if_dead(file: &File, path: &Path) -> bool {
    let is_dead = flock(file, FlockOperation::NonBlockingLockShared).is_ok();
    if is_dead && is_file_of_a_run(file, path).unwrap_or(false) {
        let _ = fs::remove_file(path);
    }
    is_dead
}

fn is_file_of_a_run(file: &File, path: &Path) -> std::io::Result<bool> {
    /// The fields of all versions.
    #[derive(serde::Deserialize)]
    struct Start {
        id: uuid::Uuid,
    }
    let has_extension = path
        .extension()
        .is_some_and(|extension| extension == EXTENSION || extension == NEW_EXTENSION);
    let named = path.file_stem().and_then(|name| name.to_str()?.parse::<uuid::Uuid>().ok());
    let (true, Some(named)) = (has_extension, named) else {
        return Ok(false);
    };
    let mut line = String::new();
    let mut start = file.take(READ_BYTES_MAX);
    start.get_mut().seek(SeekFrom::Start(0))?;
    BufReader::new(start).read_line(&mut line)?;
    let parsed = serde_json::from_str::<Start>(&line);
    Ok(line.ends_with('\n') && parsed.is_ok_and(|start| start.id == named))
}

fn create(directory: &Path, path: &Path) -> std::io::Result<File> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        create_private_directory(directory)?;
        match private_file().append(true).open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && attempts < ATTEMPTS => {}
            result => return result,
        }
    }
}

impl LiveSink for FileSink {
    fn publish(&mut self, event: &RunEvent, run: &LiveRun) -> Result<(), LiveError> {
        if self.bytes < FILE_BYTES_MAX {
            return self.write(event);
        }
        self.file.set_len(0).map_err(|source| self.failed(source))?;
        self.bytes = 0;
        self.write(run)
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // Fails if the directory contains other runs.
        if let Some(directory) = self.path.parent() {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// Reads the runs of a directory.
#[derive(Debug)]
pub(super) struct FileSource {
    directory: PathBuf,
    followed: HashMap<PathBuf, Followed>,
}

/// A file that is read as it grows.
#[derive(Debug)]
struct Followed {
    file: File,
    /// Bytes that were read, up to the end of the last complete line.
    offset: u64,
    run: Option<LiveRun>,
}

impl FileSource {
    /// Creates a source for a directory, which need not exist.
    pub(super) fn new(directory: PathBuf) -> Self {
        Self { directory, followed: HashMap::new() }
    }

    /// Forgets the runs whose files were removed. Returns those with events that were not read yet, such as the end of
    /// the run.
    fn ended(&mut self, paths: &[PathBuf]) -> Vec<LiveRun> {
        let ended = self.followed.extract_if(|path, _| !paths.contains(path));
        let last = ended.filter_map(|(_, mut followed)| {
            let before = followed.offset;
            followed.read().ok()?;
            followed.run.filter(|_| followed.offset > before)
        });
        last.collect()
    }

    fn paths(&self) -> Result<Vec<PathBuf>, LiveError> {
        let failed = |source| LiveError::File { path: self.directory.clone(), source };
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(failed)?;
        let has_extension =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == EXTENSION);
        Ok(paths.into_iter().filter(has_extension).collect())
    }
}

impl LiveSource for FileSource {
    fn runs(&mut self) -> Result<Vec<LiveRun>, LiveError> {
        let paths = self.paths()?;
        let mut runs = self.ended(&paths);
        for path in paths {
            // A run that ends between two calls is not an error, and neither is a file that cannot be read.
            let followed = match self.followed.remove(&path) {
                Some(followed) => Some(followed),
                None => open_plain(&path).ok().map(|file| Followed { file, offset: 0, run: None }),
            };
            if let Some(mut followed) = followed
                && !remove_if_dead(&followed.file, &path)
                && followed.read().is_ok()
            {
                self.followed.insert(path, followed);
            }
        }
        runs.extend(self.followed.values().filter_map(|followed| followed.run.clone()));
        runs.sort_by_key(|run| (run.started_at, run.id));
        Ok(runs)
    }
}

impl Followed {
    /// Reads the complete lines that were added.
    fn read(&mut self) -> std::io::Result<()> {
        let bytes = self.file.metadata()?.len();
        if bytes < self.offset {
            // The writer has replaced the contents by a state.
            self.offset = 0;
        }
        self.file.seek(SeekFrom::Start(self.offset))?;
        let mut added = Vec::new();
        (&self.file).take(READ_BYTES_MAX).read_to_end(&mut added)?;
        let complete = added.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let lines = String::from_utf8_lossy(added.get(..complete).unwrap_or_default());
        let is_start = self.offset == 0;
        for (position, line) in lines.split('\n').enumerate() {
            if is_start && position == 0 {
                let state = serde_json::from_str(line).ok();
                self.run = state.filter(|run: &LiveRun| run.version <= LIVE_VERSION);
            } else if let (Some(run), Ok(event)) = (&mut self.run, serde_json::from_str(line)) {
                // Events of a newer version are skipped.
                run.apply(&event);
            }
        }
        self.offset += complete as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::live_directory;
    use super::*;
    use crate::plan::Plan;
    use crate::record::{Point, example_live_run};

    fn directory() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = live_directory(&folder.path().join("runs.sqlite"));
        (folder, path)
    }

    fn point() -> RunEvent {
        RunEvent::Point(Box::new(Point { transactions: 1, ..Point::default() }))
    }

    #[test]
    fn a_source_follows_a_run_until_it_ends() {
        let (folder, path) = directory();
        let mut source = FileSource::new(path.clone());
        assert_eq!(source.runs().unwrap(), [], "the directory does not exist");
        let mut run = example_live_run(&Plan::default());
        let mut sink = FileSink::create(&path, &run).unwrap();
        assert_eq!(source.runs().unwrap(), std::slice::from_ref(&run));
        for event in [RunEvent::Stage { name: "a".to_owned() }, point(), point()] {
            run.apply(&event);
            sink.publish(&event, &run).unwrap();
            assert_eq!(source.runs().unwrap(), std::slice::from_ref(&run));
        }
        assert_eq!(FileSource::new(path.clone()).runs().unwrap(), std::slice::from_ref(&run));
        run.apply(&RunEvent::Draining);
        sink.publish(&RunEvent::Draining, &run).unwrap();
        drop(sink);
        assert_eq!(source.runs().unwrap(), [run], "the last events");
        assert_eq!(source.runs().unwrap(), []);
        assert!(!path.exists(), "{:?}", fs::read_dir(folder.path()));
    }

    #[test]
    fn a_file_without_a_writer_is_removed() {
        let (_folder, path) = directory();
        let run = example_live_run(&Plan::default());
        let sink = FileSink::create(&path, &run).unwrap();
        let file = path.join(format!("{}.jsonl", run.id));
        let left = fs::read(&file).unwrap();
        drop(sink);
        fs::create_dir_all(&path).unwrap();
        fs::write(&file, left).unwrap();
        assert_eq!(FileSource::new(path).runs().unwrap(), []);
        assert!(!file.exists());
    }

    #[test]
    fn the_size_of_a_file_is_bounded_and_its_readers_continue() {
        let (_folder, path) = directory();
        let mut source = FileSource::new(path.clone());
        let mut run = example_live_run(&Plan::default());
        let mut sink = FileSink::create(&path, &run).unwrap();
        let file = path.join(format!("{}.jsonl", run.id));
        let mut replaced = 0;
        while replaced < 2 {
            let before = sink.bytes;
            run.apply(&point());
            sink.publish(&point(), &run).unwrap();
            replaced += usize::from(sink.bytes < before);
            if run.points_seen.is_multiple_of(1000) {
                assert_eq!(source.runs().unwrap(), std::slice::from_ref(&run));
            }
        }
        assert_eq!(source.runs().unwrap(), std::slice::from_ref(&run));
        assert_eq!(FileSource::new(path).runs().unwrap(), [run]);
        assert!(fs::metadata(file).unwrap().len() < FILE_BYTES_MAX);
    }

    #[test]
    fn incomplete_and_unknown_lines_are_skipped() {
        let (_folder, path) = directory();
        let run = example_live_run(&Plan::default());
        let mut sink = FileSink::create(&path, &run).unwrap();
        sink.file.write_all(b"{\"event\":\"of_the_future\"}\n\n{\"event\":\"meas").unwrap();
        let mut source = FileSource::new(path);
        assert_eq!(source.runs().unwrap(), std::slice::from_ref(&run));
        sink.file.write_all(b"uring\"}\n").unwrap();
        let mut expected = run;
        expected.apply(&RunEvent::Measuring);
        assert_eq!(source.runs().unwrap(), [expected]);
    }

    #[test]
    fn runs_of_a_newer_version_are_ignored() {
        let (_folder, path) = directory();
        let run = LiveRun { version: LIVE_VERSION + 1, ..example_live_run(&Plan::default()) };
        let _sink = FileSink::create(&path, &run).unwrap();
        assert_eq!(FileSource::new(path).runs().unwrap(), []);
    }
}
