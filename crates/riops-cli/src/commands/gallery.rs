//! `riops gallery`: a static site of stored runs.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::Result;
use riops::experiment::{Study, tag};
use riops::gallery::Gallery;
use riops::store::{RunFilter, RunSummary, Sort, Store};
use riops::units::format::number_of;

use super::report::filter;
use crate::args::runs::GalleryOptions;
use crate::failure::{CodedError, INTERRUPTED, refuse};
use crate::site::Site;
use crate::stored;
use crate::ui::Ui;

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
    fill(&mut site, options, &store, &runs, ui)?;
    let bytes = site.end()?;
    crate::ui::print_done(&format!(
        "{}: {}, {:.1} MB\n",
        options.folder.join("index.html").display(),
        number_of(runs.len() as u64, "run"),
        bytes as f64 / 1e6
    ))
}

fn fill(
    site: &mut Site<'_>,
    options: &GalleryOptions,
    store: &Store,
    runs: &[RunSummary],
    ui: Ui,
) -> Result<()> {
    let mut gallery = Gallery::new(options.title.clone(), options.with_hosts);
    let studies = studies(store, runs)?;
    let mut compared = Vec::new();
    for pair in options.compare.chunks_exact(2) {
        if let [a, b] = pair {
            compared.push([(a, store.select(a)?), (b, store.select(b)?)]);
        }
    }
    for run in runs {
        gallery.learn(&store.find(&run.id)?)?;
    }
    studies.iter().try_for_each(|study| gallery.learn_study(study))?;
    let of_compared = compared.iter().flatten().flat_map(|(_, records)| records);
    of_compared.into_iter().try_for_each(|record| gallery.learn(record))?;
    let known: BTreeSet<String> =
        studies.iter().map(|study| study.experiment.id.to_string()).collect();
    for study in studies {
        site.write(&gallery.experiment(study)?)?;
    }
    for [(a, of_a), (b, of_b)] in compared {
        let Some(page) = gallery.comparison([(a, of_a), (b, of_b)])? else {
            return refuse(format!("{a} and {b} cannot be compared: see riops compare"));
        };
        site.write(&page)?;
    }
    // The runs of an experiment have its page.
    let is_of_study =
        |run: &RunSummary| run.tags.get(tag::EXPERIMENT).is_some_and(|id| known.contains(id));
    let others = || runs.iter().filter(|run| !is_of_study(run));
    let labels: BTreeSet<&String> = others().filter_map(|run| run.label.as_ref()).collect();
    for label in labels {
        let labeled = others().filter(|run| run.label.as_ref() == Some(label));
        let labeled: Vec<RunSummary> = labeled.cloned().collect();
        if labeled.len() > 1 {
            let ids: Vec<String> = labeled.iter().map(|run| run.id.clone()).collect();
            site.write(&gallery.history(label, &labeled, &store.stages(&ids)?)?)?;
        }
    }
    for run in runs {
        if ui.interrupt.requested() {
            let text = "interrupted: the site is incomplete".to_owned();
            return Err(CodedError { code: INTERRUPTED, text }.into());
        }
        gallery.run(store.find(&run.id)?)?.iter().try_for_each(|file| site.write(file))?;
    }
    gallery.end()?.iter().try_for_each(|file| site.write(file))
}

/// Returns the experiments of these runs, newest first, with all their runs.
fn studies(store: &Store, runs: &[RunSummary]) -> Result<Vec<Study>> {
    let ids = runs.iter().filter_map(|run| run.tags.get(tag::EXPERIMENT));
    let ids: BTreeSet<&str> = ids.map(String::as_str).collect();
    let known = store.experiments()?.into_iter().filter(|known| ids.contains(&*known.id));
    known.map(|known| Ok(Study::stored(store, &known.id)?)).collect()
}
