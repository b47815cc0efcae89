//! Measures the runs of an experiment on their servers, and stores them.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use riops::experiment::{Bench, End, Remaining, ServerChoice, Study, Task};
use riops::host::Interrupt;
use riops::plan::Plan;
use riops::record::Record;
use riops::store::live::sink_of;
use riops::store::{ExperimentState, Store, StoreLocation};
use riops::{report, run};

use crate::args::{EmbeddedOptions, TargetOptions};
use crate::live::{Live, OpenFeed};
use crate::screen::Screen;
use crate::target::Target;
use crate::tee::Tee;
use crate::ui::Ui;
use crate::unstored;

/// Where an experiment is measured.
pub(crate) struct Servers<'a> {
    pub(crate) store: Box<dyn Store>,
    location: StoreLocation,
    /// Connection strings with passwords, by those without.
    databases: BTreeMap<String, String>,
    pub(crate) state: ExperimentState,
    pub(crate) allow_changed: bool,
    current: Option<(ServerChoice, Target)>,
    interrupt: &'a Interrupt,
    ui: Ui,
}

impl<'a> Servers<'a> {
    pub(crate) fn new(
        (store, location): (Box<dyn Store>, StoreLocation),
        (databases, state): (BTreeMap<String, String>, ExperimentState),
        (interrupt, ui): (&'a Interrupt, Ui),
    ) -> Self {
        let (allow_changed, current) = (false, None);
        Self { store, location, databases, state, allow_changed, current, interrupt, ui }
    }

    /// Releases the server. Returns the result of the experiment, or the failure to release it.
    pub(crate) fn close(&mut self, result: Result<End>) -> Result<End> {
        let closed = self.current.take().map_or(Ok(()), |(_, target)| target.close());
        let end = result?;
        closed.map(|()| end)
    }
}

impl Bench for Servers<'_> {
    type Error = anyhow::Error;

    fn starting(&mut self, study: &Study, task: &Task, remaining: &Remaining) {
        let number = study.finished.len() + 1;
        let total = study.finished.len() + remaining.runs;
        let total =
            if remaining.is_maximum { format!("at most {total}") } else { total.to_string() };
        let left =
            remaining.seconds.map(|seconds| format!(", {} left", report::time_left(seconds)));
        self.ui.notice(&format!(
            "run {number} of {total}{}: {}, block {}",
            left.unwrap_or_default(),
            study.experiment.task_name(task),
            task.block
        ));
    }

    fn measure(
        &mut self,
        study: &Study,
        task: &Task,
        plan: &Plan,
        is_first: bool,
    ) -> Result<Result<Box<Record>, String>> {
        let _ = is_first;
        let Some(cell) = study.experiment.cells.get(task.cell) else {
            return Err(anyhow!("the experiment has no cell {}", task.cell));
        };
        if let Err(error) = self.select(&cell.server) {
            return Ok(Err(format!("{error:#}")));
        }
        self.run(plan)
    }

    fn ended(&mut self, study: &Study) -> Result<()> {
        let Some(last) = study.finished.last() else {
            return Ok(());
        };
        if let Err(error) = &last.result {
            let name = study.experiment.task_name(&last.task);
            self.ui.error(&format!("{name} failed: {error}"));
            self.state.failures = serde_json::to_string(&study.failures())?;
            self.store.update_experiment(&study.experiment.id, &self.state)?;
        }
        Ok(())
    }
}

impl Servers<'_> {
    /// Starts or selects the server of a cell.
    fn select(&mut self, choice: &ServerChoice) -> Result<()> {
        if self.current.as_ref().is_some_and(|(current, _)| current == choice) {
            return Ok(());
        }
        if let Some((_, target)) = self.current.take() {
            target.close()?;
        }
        let target = Target::open(&self.options_of(choice)?, self.interrupt, self.ui)?;
        target.announce(self.ui);
        self.current = Some((choice.clone(), target));
        Ok(())
    }

    fn options_of(&self, choice: &ServerChoice) -> Result<TargetOptions> {
        let database = match &choice.database {
            Some(masked) if self.databases.contains_key(masked) => {
                self.databases.get(masked).cloned()
            }
            Some(masked) if masked.contains("***") => {
                return Err(anyhow!(
                    "the password for {masked} is not stored: specify the database again with -d"
                ));
            }
            other => other.clone(),
        };
        Ok(TargetOptions {
            database,
            embedded: EmbeddedOptions {
                server_dir: choice.server_dir.clone(),
                server_data: choice.server_data.clone(),
                server_user: choice.server_user.clone(),
                server_port: choice.server_port,
                server_set: choice.settings.clone(),
                cache_dir: choice.cache_dir.clone(),
            },
        })
    }

    /// Runs the plan on the current server and stores the record.
    fn run(&mut self, plan: &Plan) -> Result<Result<Box<Record>, String>> {
        let Some((_, target)) = &self.current else {
            return Err(anyhow!("no server is selected"));
        };
        let location = self.location.clone();
        let feed: OpenFeed = Box::new(move || sink_of(&location));
        let mut live = Live::feed(feed, self.ui);
        let mut stored = Ok(());
        let mut publish = |record: &Record| {
            stored = self.store.save(record).map_err(|error| unstored::keep(record, &error));
        };
        let mut screen = Screen::new(self.ui, &self.store, &mut publish);
        let result =
            run::run(plan, &target.server(), self.interrupt, &mut Tee(&mut screen, &mut live));
        if let Err(error) = &result {
            live.failed(error);
        }
        stored?;
        Ok(result.map(Box::new).map_err(|error| error.to_string()))
    }
}
