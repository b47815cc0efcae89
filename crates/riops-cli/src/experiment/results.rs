//! What is printed and written of an experiment.

use std::path::Path;

use anyhow::{Context, Result, bail};
use riops::experiment::evaluation::StudyView;
use riops::experiment::{End, Goal, Study};
use riops::report::{self, Delivery, Findings, Layout, experiment};

use crate::args::sweep::StudyOptions;
use crate::failure::{BREACHED, FAILED, INTERRUPTED, NOT_VALID};
use crate::file;
use crate::ui::{self, Ui};

/// What is printed and written.
pub(crate) struct Results<'a> {
    /// Output format.
    pub(crate) form: &'a str,
    pub(crate) options: &'a StudyOptions,
}

impl Results<'_> {
    /// Fails before the first run if the results cannot be written after the last one. Creates the directory of the
    /// images.
    pub(crate) fn require_writable(&self) -> Result<()> {
        if let Some(folder) = &self.options.png {
            create(folder)?;
        }
        let file = self.options.html.as_deref().filter(|file| *file != Path::new("-"));
        let Some(folder) = file.and_then(Path::parent) else {
            return Ok(());
        };
        // An empty parent is the current directory.
        if folder.as_os_str().is_empty() || folder.is_dir() {
            return Ok(());
        }
        bail!("cannot write the page: there is no directory {}", folder.display())
    }

    /// Prints the results, and writes the page and the images.
    pub(crate) fn show(&self, study: &Study, ui: Ui) -> Result<()> {
        if study.finished.is_empty() {
            return Ok(());
        }
        let view = experiment::view(study);
        match self.form {
            "json" => ui::print(&riops::units::text::json_text(&view)?)?,
            "csv" => ui::print(&experiment::csv(&view)?)?,
            form => print_findings(&experiment::experiment(&view), form)?,
        }
        if let Some(page) = &self.options.html {
            write_page(&view, page, ui)?;
        }
        if let Some(folder) = &self.options.png {
            write_images(&view, folder, ui)?;
        }
        Ok(())
    }
}

/// Prints findings as Markdown, or as text.
pub(crate) fn print_findings(findings: &Findings, form: &str) -> Result<()> {
    if form == "markdown" {
        return ui::print(&report::findings_markdown(findings));
    }
    ui::print_colored(&report::findings_text(findings, ui::output_lines()))
}

/// Writes the page of an experiment.
pub(crate) fn write_page(view: &StudyView, page: &Path, ui: Ui) -> Result<()> {
    let layout = Layout::new(format!("riops: {}", view.name), Delivery::Inline);
    let text = report::findings_html(&experiment::experiment(view), &layout)?;
    file::write_bytes(page, text.as_bytes(), ui)
}

/// Writes the charts of an experiment to a directory.
pub(crate) fn write_images(view: &StudyView, folder: &Path, ui: Ui) -> Result<()> {
    create(folder)?;
    for image in experiment::png(view)? {
        file::write_bytes(&folder.join(image.name + ".png"), &image.bytes, ui)?;
    }
    Ok(())
}

fn create(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the directory {}", folder.display()))
}

/// The exit code of an experiment.
pub(crate) fn exit_code(study: &Study, end: End) -> u8 {
    let records = || study.finished.iter().filter_map(|finished| finished.result.as_ref().ok());
    let is_search = matches!(study.experiment.goal, Goal::Saturation(_));
    if end == End::Interrupted {
        INTERRUPTED
    } else if is_search && records().any(|record| record.verdict.valid) {
        // A search tries loads that fail.
        0
    } else if study.finished.iter().any(|finished| finished.result.is_err()) {
        FAILED
    } else if records().any(|record| !record.verdict.valid) {
        NOT_VALID
    } else if records().any(|record| record.thresholds.iter().any(|found| !found.held)) {
        BREACHED
    } else {
        0
    }
}
