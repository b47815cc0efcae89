//! The commands of a user before and after each run of an experiment: an index that only one variant has, a fill factor, a
//! cache that is emptied on another machine.

use std::process::{Command, Stdio};

use super::place::ConductError;
use crate::record::Note;
use crate::server::Server;
use crate::server::conninfo::Host;
use crate::store::Store;
use crate::study::{Experiment, Task};
use crate::units::text::shortened;

/// Characters of the output that are kept.
const OUTPUT_MAX: usize = 4_000;
/// The author of the notes with the output.
const AUTHOR: &str = "riops";

/// A command of the shell before or after a run. It finds the cell in `RIOPS_CELL`, the round in `RIOPS_ROUND`, and the
/// server in the variables of libpq.
pub(super) struct Hook<'a> {
    /// `before` or `after`.
    pub(super) moment: &'static str,
    pub(super) command: &'a str,
}

impl Hook<'_> {
    /// Runs the command, and returns its output.
    ///
    /// # Errors
    /// [`ConductError::Failed`] with its output if it cannot be started, or its exit code is not 0.
    pub(super) fn run(
        &self,
        experiment: &Experiment,
        task: &Task,
        server: &Server,
    ) -> Result<String, ConductError> {
        let Self { moment, command } = self;
        let failed = |text: String| ConductError::Failed(format!("{moment} = '{command}': {text}"));
        let cell = experiment.cells.get(task.cell);
        let conninfo = &server.conninfo;
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).stdin(Stdio::null());
        shell.env("RIOPS_CELL", cell.map_or_else(String::new, |cell| experiment.cell_name(cell)));
        shell.env("RIOPS_ROUND", task.block.to_string());
        shell.env("PGUSER", &conninfo.user).env("PGDATABASE", &conninfo.database);
        if let Some(first) = conninfo.servers.first() {
            match &first.host {
                Host::Unix(folder) => shell.env("PGHOST", folder),
                Host::Tcp(host) => shell.env("PGHOST", host),
            };
            shell.env("PGPORT", first.port.to_string());
        }
        let ended = shell.output().map_err(|error| failed(error.to_string()))?;
        let text =
            [ended.stdout, ended.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let text = shortened(text.concat().trim(), OUTPUT_MAX);
        if ended.status.success() {
            Ok(text)
        } else {
            Err(failed(format!("{}: {text}", ended.status)))
        }
    }

    /// Keeps the output as a note on a stored run.
    pub(super) fn keep(&self, output: &str, run: &str, store: &Store) -> Result<(), ConductError> {
        // Nothing to keep is not an error.
        if let Ok(note) = Note::new(&format!("{}: {output}", self.moment), AUTHOR.to_owned())
            && !output.is_empty()
        {
            store.edit_notes(run, &|notes| notes.push(note.clone()))?;
        }
        Ok(())
    }
}
