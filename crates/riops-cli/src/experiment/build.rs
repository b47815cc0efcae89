//! Builds of the commits that a gate or a bisection compares, each once: `CACHE/builds/COMMIT-COMMAND/prefix`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow};
use riops::host::Interrupt;
use riops::units::text::hash_text;

use crate::failure::{BuildFailed, CodedError, INTERRUPTED, refuse};
use crate::ui::Ui;

/// Exists if the build has succeeded.
const COMPLETE: &str = "complete";
/// Characters of the hash of a command in the name of a directory.
const HASH_CHARS: usize = 12;

/// A git repository, and the command that builds a commit of it.
#[derive(Debug, Clone)]
pub(crate) struct Builder {
    pub(crate) repository: PathBuf,
    /// Executed by `sh` in the files of the commit. `$PREFIX` is where it installs.
    pub(crate) command: String,
    /// The directory of all builds.
    pub(crate) builds: PathBuf,
}

impl Builder {
    /// Returns the directory into which a commit was installed; builds it if it was not yet.
    ///
    /// # Errors
    /// [`BuildFailed`] if the command fails.
    pub(crate) fn prefix(&self, commit: &str, ui: Ui) -> Result<PathBuf> {
        let hash = hash_text(&self.command);
        let hash = hash.get(..HASH_CHARS).unwrap_or(&hash);
        let folder = self.builds.join(format!("{commit}-{hash}"));
        let prefix = folder.join("prefix");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create the directory {}", folder.display()))?;
        // Another riops may build the same commit.
        let lock = File::create(folder.join("lock"))?;
        lock.lock().with_context(|| format!("cannot lock {}", folder.display()))?;
        if folder.join(COMPLETE).exists() {
            return Ok(prefix);
        }
        ui.notice(&format!("building {}", short(commit)));
        let source = folder.join("source");
        for left in [&source, &prefix] {
            if left.exists() {
                fs::remove_dir_all(left)
                    .with_context(|| format!("cannot remove {}", left.display()))?;
            }
            fs::create_dir(left)
                .with_context(|| format!("cannot create the directory {}", left.display()))?;
        }
        self.export(commit, &source)?;
        self.build(commit, (&source, &prefix), &folder.join("log"), ui.interrupt)?;
        File::create(folder.join(COMPLETE))?;
        fs::remove_dir_all(&source)?;
        Ok(prefix)
    }

    /// Writes the files of a commit to a directory. Nothing in the repository changes.
    fn export(&self, commit: &str, source: &Path) -> Result<()> {
        let mut archive = git(&self.repository)
            .args(["archive", "--format=tar", commit])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot execute git")?;
        let piped = archive.stdout.take().ok_or_else(|| anyhow!("git has no output"))?;
        let tar = Command::new("tar").arg("-x").arg("-C").arg(source).stdin(piped).status();
        let tar = tar.context("cannot execute tar")?;
        if !archive.wait()?.success() || !tar.success() {
            return Err(anyhow!("cannot export the files of {}", short(commit)));
        }
        Ok(())
    }

    fn build(
        &self,
        commit: &str,
        (source, prefix): (&Path, &Path),
        log: &Path,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let output = File::create(log)?;
        let status = Command::new("sh")
            .args(["-c", &self.command])
            .current_dir(source)
            .env("PREFIX", prefix)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .status()
            .context("cannot execute sh")?;
        match (status.success(), interrupt.requested()) {
            (_, true) => {
                Err(CodedError { code: INTERRUPTED, text: "interrupted".to_owned() }.into())
            }
            (true, false) => Ok(()),
            (false, false) => Err(BuildFailed {
                commit: short(commit).to_owned(),
                status: status.to_string(),
                log: log.to_owned(),
            }
            .into()),
        }
    }
}

/// The first characters of the name of a commit.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..HASH_CHARS).unwrap_or(commit)
}

/// A command of git in a repository.
pub(crate) fn git(repository: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).stdin(Stdio::null());
    command
}

/// Returns what a command of git prints.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let output = command.output().context("cannot execute git")?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(anyhow!("git: {}", error.trim().trim_start_matches("fatal: ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the full name of a commit.
pub(crate) fn commit_of(repository: &Path, revision: &str) -> Result<String> {
    let commit = format!("{revision}^{{commit}}");
    let mut parse = git(repository);
    parse.args(["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]);
    match output_of(&mut parse) {
        Ok(name) => Ok(name),
        Err(_) => refuse(format!(
            "\"{revision}\" is no commit of the repository {}",
            repository.display()
        )),
    }
}
