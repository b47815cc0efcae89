//! The site of stored runs: which pages it has, and the order in which they are made.

use std::collections::BTreeSet;

use super::{Gallery, GalleryError, SiteFile};
use crate::experiment::stored_study;
use crate::host::Interrupt;
use crate::store::{Store, StoreError};
use crate::study::{Study, tag};
use crate::summary::RunSummary;

/// The contents of a site of stored runs.
#[derive(Debug, Clone, Copy)]
pub struct GalleryChoice<'a> {
    /// Title of the index.
    pub title: &'a str,
    /// Whether the names and addresses of hosts are published.
    pub with_hosts: bool,
    /// Pairs of labels, tags or runs that are compared.
    pub compared: &'a [[String; 2]],
}

/// A step of making a site.
#[derive(Debug)]
pub enum GalleryStep<'a> {
    /// So many runs were read, of which the hosts are renamed on all pages.
    Read(usize),
    /// A file is complete.
    File(&'a SiteFile),
}

/// Makes the site of these runs. `follow` gets each step.
///
/// # Errors
/// [`GalleryError`], or the error of `follow`.
pub fn gallery_of_store<E: From<GalleryError>>(
    store: &Store,
    runs: &[RunSummary],
    choice: &GalleryChoice<'_>,
    interrupt: &Interrupt,
    follow: &mut dyn FnMut(GalleryStep<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |error: StoreError| GalleryError::from(error);
    let mut gallery = Gallery::new(choice.title.to_owned(), choice.with_hosts);
    let studies = studies(store, runs)?;
    let mut compared = Vec::new();
    for [a, b] in choice.compared {
        compared
            .push([(a, store.select(a).map_err(failed)?), (b, store.select(b).map_err(failed)?)]);
    }
    for (position, run) in runs.iter().enumerate() {
        stop_if_interrupted(interrupt)?;
        gallery.learn(&store.find(&run.id).map_err(failed)?)?;
        follow(GalleryStep::Read(position + 1))?;
    }
    let mut write = |file: &SiteFile| follow(GalleryStep::File(file));
    studies.iter().try_for_each(|study| gallery.learn_study(study))?;
    let of_compared = compared.iter().flatten().flat_map(|(_, records)| records);
    of_compared.into_iter().try_for_each(|record| gallery.learn(record))?;
    let known: BTreeSet<String> =
        studies.iter().map(|study| study.experiment.id.to_string()).collect();
    for study in studies {
        write(&gallery.experiment(study)?)?;
    }
    for [(a, of_a), (b, of_b)] in compared {
        let Some(page) = gallery.comparison([(a, of_a), (b, of_b)])? else {
            return Err(GalleryError::Incomparable([a.clone(), b.clone()]).into());
        };
        write(&page)?;
    }
    // The page of an experiment has its runs.
    let is_of_study =
        |run: &RunSummary| run.tags.get(tag::EXPERIMENT).is_some_and(|id| known.contains(id));
    let others = || runs.iter().filter(|run| !is_of_study(run));
    let labels: BTreeSet<&String> = others().filter_map(|run| run.label.as_ref()).collect();
    for label in labels {
        let labeled = others().filter(|run| run.label.as_ref() == Some(label));
        let labeled: Vec<RunSummary> = labeled.cloned().collect();
        if labeled.len() > 1 {
            let ids: Vec<String> = labeled.iter().map(|run| run.id.clone()).collect();
            let stages = store.stages(&ids).map_err(failed)?;
            write(&gallery.history(label, &labeled, &stages)?)?;
        }
    }
    for run in runs {
        stop_if_interrupted(interrupt)?;
        let record = store.find(&run.id).map_err(failed)?;
        gallery.run(record)?.iter().try_for_each(&mut write)?;
    }
    gallery.end()?.iter().try_for_each(write)
}

fn stop_if_interrupted(interrupt: &Interrupt) -> Result<(), GalleryError> {
    if interrupt.is_requested() { Err(GalleryError::Interrupted) } else { Ok(()) }
}

/// Returns the experiments of these runs, newest first, with all their runs.
fn studies(store: &Store, runs: &[RunSummary]) -> Result<Vec<Study>, GalleryError> {
    let ids = runs.iter().filter_map(|run| run.tags.get(tag::EXPERIMENT));
    let ids: BTreeSet<&str> = ids.map(String::as_str).collect();
    let known = store.experiments()?.into_iter().filter(|known| ids.contains(&*known.id));
    known.map(|known| Ok(stored_study(store, &known.id)?)).collect()
}
