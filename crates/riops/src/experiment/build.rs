//! The commits that a gate or a bisection compares: their builds, each once, in `CACHE/builds/COMMIT-COMMAND/prefix`, and
//! the search through the history, which only reads the repository: which commit is measured next.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::OFlags;

use super::build_process::{wait, watched};
use crate::host::{Interrupt, await_lock};
use crate::record::Events;
use crate::server::conninfo::remove_variables;
use crate::study::BisectCommit;
use crate::units::text::hash_text;

/// Locked during a build; its existence shows that the directory is one of riops.
const LOCK: &str = "lock";
/// Exists if the build has succeeded.
const COMPLETE: &str = "complete";
/// Directory of the files of the commit.
const SOURCE: &str = "source";
/// Directory into which the command installs.
const PREFIX: &str = "prefix";
/// Characters of the hash of a command in the name of a directory.
const HASH_CHARS: usize = 12;
const NO_GIT: &str = "cannot execute git";

/// Why a commit cannot be measured.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The command that builds it has failed.
    #[error("the build of {commit} failed ({status}): see {}", log.display())]
    Failed {
        /// The commit, abbreviated.
        commit: String,
        /// How the command ended.
        status: String,
        /// What it printed.
        log: PathBuf,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// There is no such commit, or a directory is not one of riops.
    #[error("{0}")]
    Refused(String),
    /// git has failed.
    #[error("{0}")]
    Git(String),
    /// A program cannot be executed, or a file cannot be accessed.
    #[error("{what}: {source}")]
    Io {
        /// What failed.
        what: String,
        /// Reason.
        source: io::Error,
    },
}

type Result<T> = std::result::Result<T, BuildError>;

/// Returns a function that says what failed.
fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> BuildError {
    move |source| BuildError::Io { what: what.into(), source }
}

/// A git repository, and the command that builds a commit of it.
#[derive(Debug, Clone)]
pub struct Builder {
    /// The repository.
    pub repository: PathBuf,
    /// Executed by `sh` in the files of the commit. `$PREFIX` is where it installs.
    pub command: String,
    /// The directory of all builds.
    pub builds: PathBuf,
}

impl Builder {
    /// Returns the directory into which a commit was installed; builds it if it was not yet.
    ///
    /// # Errors
    /// [`BuildError`] if the command fails, or the user interrupts it.
    pub fn prefix(&self, commit: &str, events: &Events, interrupt: &Interrupt) -> Result<PathBuf> {
        let hash = hash_text(&self.command);
        let hash = hash.get(..HASH_CHARS).unwrap_or(&hash);
        let folder = self.builds.join(format!("{commit}-{hash}"));
        let prefix = folder.join(PREFIX);
        let no_directory =
            |path: &Path| failed(format!("cannot create the directory {}", path.display()));
        fs::create_dir_all(&self.builds).map_err(no_directory(&self.builds))?;
        // Another riops may build the same commit.
        let lock = lock_file(&folder)?;
        let waiting = || {
            let text = format!("waiting for another riops process to build {}", short(commit));
            events.notice(&text);
        };
        let locked = await_lock(interrupt, || lock.try_lock(), &waiting);
        if !locked.map_err(failed(format!("cannot lock {}", folder.display())))? {
            return Err(BuildError::Interrupted);
        }
        if folder.join(COMPLETE).exists() {
            return Ok(prefix);
        }
        events.notice(&format!("building {}", short(commit)));
        let source = folder.join(SOURCE);
        for left in [&source, &prefix] {
            if left.exists() {
                let cannot = failed(format!("cannot remove {}", left.display()));
                fs::remove_dir_all(left).map_err(cannot)?;
            }
            fs::create_dir(left).map_err(no_directory(left))?;
        }
        self.export(commit, &source)?;
        self.build(commit, &folder, interrupt)?;
        let cannot = || failed(format!("cannot write to {}", folder.display()));
        create(&folder.join(COMPLETE)).map_err(cannot())?;
        fs::remove_dir_all(&source).map_err(cannot())?;
        Ok(prefix)
    }

    /// Writes the files of a commit to a directory. Nothing in the repository changes.
    fn export(&self, commit: &str, source: &Path) -> Result<()> {
        let mut archive = git(&self.repository)
            .args(["archive", "--format=tar", commit])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed(NO_GIT))?;
        let none = || BuildError::Git("git has no output".to_owned());
        let piped = archive.stdout.take().ok_or_else(none)?;
        let tar = Command::new("tar").arg("-x").arg("-C").arg(source).stdin(piped).status();
        let tar = tar.map_err(failed("cannot execute tar"))?;
        if !archive.wait().map_err(failed(NO_GIT))?.success() || !tar.success() {
            return Err(BuildError::Git(format!("cannot export the files of {}", short(commit))));
        }
        Ok(())
    }

    /// Executes the command in the directory of a build.
    fn build(&self, commit: &str, folder: &Path, interrupt: &Interrupt) -> Result<()> {
        let log = folder.join("log");
        let cannot = || failed(format!("cannot create {}", log.display()));
        let output = create(&log).map_err(cannot())?;
        let mut command = watched(&self.command);
        remove_variables(&mut command)
            .current_dir(folder.join(SOURCE))
            .env("PREFIX", folder.join(PREFIX))
            .stdout(output.try_clone().map_err(cannot())?)
            .stderr(output);
        let status = wait(&mut command, interrupt).map_err(failed("cannot execute sh"))?;
        match (status.success(), interrupt.is_requested()) {
            (_, true) => Err(BuildError::Interrupted),
            (true, false) => Ok(()),
            (false, false) => Err(BuildError::Failed {
                commit: short(commit).to_owned(),
                status: status.to_string(),
                log,
            }),
        }
    }
}

/// Opens the file that locks the directory of a build, which riops creates and empties. A directory that existed before is one of riops if it has
/// the file that is locked, or nothing; a symbolic link is none.
fn lock_file(folder: &Path) -> Result<File> {
    let path = folder.join(LOCK);
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let is_directory = fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir());
            // In this order: another riops may create the file meanwhile.
            let is_empty = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none());
            let is_lock = |metadata: fs::Metadata| metadata.is_file() && metadata.len() == 0;
            let is_own = is_empty || fs::symlink_metadata(&path).is_ok_and(is_lock);
            if !is_directory || !is_own {
                return Err(BuildError::Refused(format!(
                    "{} is not the directory of a build of riops: move it, or specify another directory with --builds",
                    folder.display()
                )));
            }
        }
        created => {
            let cannot = failed(format!("cannot create the directory {}", folder.display()));
            created.map_err(cannot)?;
        }
    }
    create(&path).map_err(failed(format!("cannot create {}", path.display())))
}

/// Creates or empties a file in the directory of a build. A symbolic link is not followed.
fn create(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    options.write(true).create(true).truncate(true).custom_flags(no_link).open(path)
}

/// The first characters of the name of a commit.
pub(super) fn short(commit: &str) -> &str {
    commit.get(..HASH_CHARS).unwrap_or(commit)
}

/// A command of git in a repository.
fn git(repository: &Path) -> Command {
    let mut command = Command::new("git");
    // A filter of the repository is a program, too.
    remove_variables(&mut command).arg("-C").arg(repository).stdin(Stdio::null());
    command
}

/// Returns what a command of git prints.
fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(failed(NO_GIT))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let error = error.trim().trim_start_matches("fatal: ");
        return Err(BuildError::Git(format!("git: {error}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the full name of a commit.
pub(super) fn commit_of(repository: &Path, revision: &str) -> Result<String> {
    let commit = format!("{revision}^{{commit}}");
    let mut parse = git(repository);
    parse.args(["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]);
    match output_of(&mut parse) {
        Ok(name) => Ok(name),
        Err(_) => Err(BuildError::Refused(format!(
            "\"{revision}\" is not a commit of the repository {}",
            repository.display()
        ))),
    }
}

/// The commits between a good and a bad one, as far as they are known.
#[derive(Debug, Clone)]
pub(super) struct Bisection {
    repository: PathBuf,
    /// The commit that is slow, and those that are not.
    bad: String,
    goods: Vec<String>,
    /// Commits without a verdict.
    skipped: BTreeSet<String>,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    Measure(String),
    /// The first slow commit, or those among which it is, oldest first.
    Found(Vec<String>),
}

/// Result of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Good,
    Bad,
    Unknown,
}

impl Bisection {
    pub(super) fn new(repository: PathBuf, good: String, bad: String) -> Self {
        Self { repository, bad, goods: vec![good], skipped: BTreeSet::new() }
    }

    /// Returns the commit that divides the others best, unless no more may be measured.
    pub(super) fn next(&self, is_last: bool) -> Result<Next> {
        // git lists the commit with the best division first.
        let left = self.left(&["--bisect-all"])?;
        let mut known = left.into_iter().filter(|commit| *commit != self.bad);
        match known.find(|commit| !is_last && !self.skipped.contains(commit)) {
            Some(commit) => Ok(Next::Measure(commit)),
            None => Ok(Next::Found(self.left(&["--topo-order", "--reverse"])?)),
        }
    }

    /// Returns the commits that may be the first slow one, in this order of git.
    fn left(&self, order: &[&str]) -> Result<Vec<String>> {
        let mut command = git(&self.repository);
        command.arg("rev-list").args(order).args([&self.bad, "--not"]).args(&self.goods);
        let commit = |line: &str| Some(line.split_whitespace().next()?.to_owned());
        Ok(output_of(&mut command)?.lines().filter_map(commit).collect())
    }

    pub(super) fn mark(&mut self, commit: String, judgment: Found) {
        match judgment {
            Found::Good => self.goods.push(commit),
            Found::Bad => self.bad = commit,
            Found::Unknown => {
                self.skipped.insert(commit);
            }
        }
    }

    /// Returns the number of commits after another one.
    pub(super) fn distance(&self, from: &str, to: &str) -> Result<usize> {
        let mut command = git(&self.repository);
        let range = format!("{from}..{to}");
        let count = output_of(command.args(["rev-list", "--count", &range]))?;
        count.parse().map_err(|_| BuildError::Git(format!("git: unexpected count {count}")))
    }

    /// Returns a commit with the first line of its message.
    pub(super) fn commit(&self, name: &str) -> Result<BisectCommit> {
        let mut command = git(&self.repository);
        let subject = output_of(command.args(["show", "--no-patch", "--format=%s", name]))?;
        Ok(BisectCommit { commit: name.to_owned(), subject })
    }
}

/// A variant of a gate: its name, and the directory of its build.
#[derive(Debug, Clone, Default)]
pub struct Variant {
    /// Name.
    pub name: String,
    /// The directory into which it was installed; `None` if it was not built.
    pub prefix: Option<PathBuf>,
}

impl Builder {
    /// Builds a revision.
    ///
    /// # Errors
    /// As [`Self::prefix`].
    pub fn variant(
        &self,
        revision: &str,
        events: &Events,
        interrupt: &Interrupt,
    ) -> Result<Variant> {
        let commit = commit_of(&self.repository, revision)?;
        let prefix = self.prefix(&commit, events, interrupt)?;
        Ok(Variant { name: short(&commit).to_owned(), prefix: Some(prefix) })
    }

    /// Returns the commit from which HEAD branched off.
    ///
    /// # Errors
    /// [`BuildError::Refused`] if it is not known.
    pub fn merge_base(&self) -> Result<String> {
        let mut command = git(&self.repository);
        output_of(command.args(["merge-base", "HEAD", "origin/HEAD"])).map_err(|_| {
            let text = "specify the commit of the base: --base REV (there is no origin/HEAD)";
            BuildError::Refused(text.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Block, Decision, Direction, SequentialSettings, look};
    use crate::study::GateVerdict;
    use crate::study::example::Noise;

    const COMMITS: usize = 64;

    /// A repository with this number of commits. Returns their names, oldest first.
    fn repository(folder: &std::path::Path) -> Vec<String> {
        let run = |arguments: &[&str]| {
            let mut command = git(folder);
            for (name, value) in [("NAME", "n"), ("EMAIL", "n@example.com")] {
                command.env(format!("GIT_AUTHOR_{name}"), value);
                command.env(format!("GIT_COMMITTER_{name}"), value);
            }
            // The same names in each test.
            command.env("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z");
            command.env("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z");
            output_of(command.args(arguments)).unwrap()
        };
        std::fs::create_dir_all(folder).unwrap();
        run(&["init", "-q"]);
        let tree = run(&["write-tree"]);
        let mut commits: Vec<String> = Vec::new();
        for position in 0..COMMITS {
            let message = format!("change {position}");
            let parent = commits.last().map(|parent| ["-p", parent]);
            let arguments = ["commit-tree", &tree, "-m", &message];
            let arguments: Vec<&str> =
                arguments.into_iter().chain(parent.into_iter().flatten()).collect();
            let commit = run(&arguments);
            commits.push(commit);
        }
        commits
    }

    /// The verdict of an A/B test of a throughput with this ratio and noise of 2%.
    fn judged(ratio: f64, alpha: f64, noise: &mut Noise) -> Found {
        let settings = SequentialSettings {
            effect: 0.05,
            alpha,
            blocks_max: 10,
            one_sided: true,
            ..SequentialSettings::default()
        };
        let mut run = |ratio: f64| 1_000.0 * ratio * (1.0 + 0.02 * noise.next());
        let blocks: Vec<Block> = (0..10)
            .map(|_| Block { a: vec![run(1.0), run(1.0)], b: vec![run(ratio), run(ratio)] })
            .collect();
        for position in 1..=settings.looks_max() {
            let measured = settings.blocks_at(position) as usize;
            let figures = [(Direction::HigherIsBetter, blocks[..measured].to_vec())];
            let evaluation = look(&figures, position, &settings);
            if evaluation.decision
                != (Decision::Continue { blocks: settings.blocks_at(position + 1) })
            {
                return match GateVerdict::of_look(&evaluation) {
                    GateVerdict::Slower => Found::Bad,
                    GateVerdict::NotSlower => Found::Good,
                    _ => Found::Unknown,
                };
            }
        }
        Found::Unknown
    }

    #[test]
    fn a_commit_that_costs_a_tenth_is_found_among_64_with_noise_of_2_percent() {
        let folder = tempfile::tempdir().unwrap();
        let commits = repository(folder.path());
        let mut noise = Noise(7);
        for trial in 0..10 {
            let slow = 1 + trial * 6 + trial % 4;
            let (good, bad) = (commits[0].clone(), commits[COMMITS - 1].clone());
            let mut search = Bisection::new(folder.path().to_owned(), good, bad);
            let suspects = loop {
                match search.next(false).unwrap() {
                    Next::Found(suspects) => break suspects,
                    Next::Measure(commit) => {
                        let at = commits.iter().position(|other| *other == commit).unwrap();
                        let ratio = if at >= slow { 0.9 } else { 1.0 };
                        search.mark(commit, judged(ratio, 0.05 / 8.0, &mut noise));
                    }
                }
            };
            assert!(suspects.contains(&commits[slow]), "{trial}");
            assert_eq!(suspects.len(), 1, "{trial}");
        }
    }

    #[test]
    fn a_directory_that_riops_did_not_create_is_not_emptied() {
        let both = tempfile::tempdir().unwrap();
        let (builds, other) = (both.path().join("builds"), both.path().join("other"));
        let commits = repository(&both.path().join("repository"));
        let builder = Builder {
            repository: both.path().join("repository"),
            command: "touch \"$PREFIX/built\"".to_owned(),
            builds: builds.clone(),
        };
        let built = || builder.prefix(&commits[0], &Events::ignored(), &Interrupt::new());
        let prefix = built().unwrap();
        assert!(prefix.join("built").exists());
        let folder = prefix.parent().unwrap();
        // An incomplete build is built again.
        fs::remove_file(folder.join(COMPLETE)).unwrap();
        fs::remove_file(prefix.join("built")).unwrap();
        built().unwrap();
        assert!(prefix.join("built").exists());
        // Without the lock file, and behind a link, the directory may be anyone's.
        let text = || built().unwrap_err().to_string();
        fs::remove_file(folder.join(COMPLETE)).unwrap();
        fs::remove_file(folder.join(LOCK)).unwrap();
        assert!(text().contains("is not the directory of a build"));
        assert!(prefix.join("built").exists());
        fs::write(folder.join(LOCK), "").unwrap();
        fs::rename(folder, &other).unwrap();
        std::os::unix::fs::symlink(&other, folder).unwrap();
        assert!(text().contains("is not the directory of a build"));
        assert!(other.join("prefix/built").exists());
        fs::remove_file(folder).unwrap();
        fs::create_dir(folder).unwrap();
        std::os::unix::fs::symlink(other.join("prefix/built"), folder.join(LOCK)).unwrap();
        assert!(built().is_err());
        assert!(!folder.join("source").exists());
    }

    #[test]
    fn the_range_remains_if_no_commit_can_be_judged() {
        let folder = tempfile::tempdir().unwrap();
        let commits = repository(folder.path());
        let mut search =
            Bisection::new(folder.path().to_owned(), commits[10].clone(), commits[14].clone());
        assert_eq!(search.distance(&commits[10], &commits[14]).unwrap(), 4);
        assert_eq!(search.commit(&commits[12]).unwrap().subject, "change 12");
        while let Next::Measure(commit) = search.next(false).unwrap() {
            let judgment = if commit == commits[12] { Found::Good } else { Found::Unknown };
            search.mark(commit, judgment);
        }
        assert_eq!(search.next(false).unwrap(), Next::Found(commits[13..=14].to_vec()));
        // Without a further verdict, the whole rest is the result.
        let (good, bad) = (commits[0].clone(), commits[9].clone());
        let search = Bisection::new(folder.path().to_owned(), good, bad);
        assert_eq!(search.next(true).unwrap(), Next::Found(commits[1..=9].to_vec()));
    }
}
