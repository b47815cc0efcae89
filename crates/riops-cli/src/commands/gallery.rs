//! `riops gallery`: a static site of stored runs.

use std::process::ExitCode;

use anyhow::Result;
use riops::gallery::{GalleryChoice, GalleryStep, gallery_of_store};
use riops::store::RunFilter;
use riops::summary::{RunSummary, Sort};
use riops::units::format::number_of;

use super::report::filter;
use crate::args::runs::GalleryOptions;
use crate::failure::refuse;
use crate::site::Site;
use crate::stored;
use crate::ui::{CountProgress, Ui};

/// Writes the site of the selected runs.
pub(super) fn run(options: &GalleryOptions, ui: Ui) -> Result<ExitCode> {
    let store = stored::open_existing(&options.store, ui)?;
    let sort = Sort::parse("started_at:desc")?;
    let runs = store.list(&RunFilter { sort, ..filter(&options.filter)? })?;
    if runs.is_empty() {
        return refuse("no run matches; list the runs with `riops runs list`");
    }
    let mut site = Site::open(&options.folder)?;
    let of_run = |run: &RunSummary| ["html", "json"].map(|end| format!("runs/{}.{end}", run.id));
    site.own(runs.iter().flat_map(of_run))?;
    let pairs = options.compare.chunks_exact(2).filter_map(|pair| pair.to_vec().try_into().ok());
    let choice = GalleryChoice {
        title: &options.title,
        with_hosts: options.with_hosts,
        compared: &pairs.collect::<Vec<[String; 2]>>(),
    };
    let progress = CountProgress::new(ui, runs.len());
    let mut written = 0;
    gallery_of_store(&store, &runs, &choice, ui.interrupt, &mut |step| match step {
        GalleryStep::Read(read) => {
            progress.show("read", read);
            Ok(())
        }
        GalleryStep::File(file) => {
            // Each run has two files.
            written += usize::from(file.path.starts_with("runs/"));
            progress.show("wrote", written / 2);
            site.write(file)
        }
    })?;
    drop(progress);
    let bytes = site.end()?;
    crate::ui::print_done(&format!(
        "{}: {}, {:.1} MB\n",
        options.folder.join("index.html").display(),
        number_of(runs.len() as u64, "run"),
        bytes as f64 / 1e6
    ))
}
