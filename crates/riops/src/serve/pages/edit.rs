//! Changes of stored runs and experiments by forms: label, tags, notes, removal. Only with `--allow-edit`.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::{Path, State};
use serde::Serialize;

use super::super::app::{App, Shared, layout, see_other};
use super::super::failure::{Answer, Failure};
use super::super::query::Query;
use super::super::token::are_equal;
use crate::plan::{pairs, require_public};
use crate::record::{Note, NoteError};
use crate::store::Store;

const READ_ONLY: &str = "the dashboard is read-only: start it with --allow-edit";
const OTHER_FORM: &str =
    "the form is not one of this dashboard, or it was restarted: load the form again";
/// Tags of a run.
const TAGS_MAX: usize = 100;

/// A form that was sent for a run or an experiment.
type Sent = (Shared, Path<String>, Bytes);

/// The values of `edit.html`.
#[derive(Default, Serialize)]
struct Form {
    /// `runs` or `experiments`, as in addresses.
    kind: &'static str,
    id: String,
    title: String,
    label: String,
    /// A tag in each line.
    tags: String,
    notes: Vec<NoteField>,
    secret: String,
}

/// A note in a form.
#[derive(Serialize)]
struct NoteField {
    /// Name of its field.
    name: String,
    label: String,
    text: String,
}

impl NoteField {
    fn from_note(note: &Note) -> Self {
        let label = format!("{} {}", note.at.strftime("%F %H:%M"), note.author);
        Self { name: Self::name(note), label, text: note.text.clone() }
    }

    fn name(note: &Note) -> String {
        format!("note-{}", note.at)
    }
}

/// The forms for a run.
pub(in crate::serve) async fn run(State(app): Shared, Path(id): Path<String>) -> Answer {
    let read = move |store: &Store| {
        let record = store.find(&id)?;
        let tags: Vec<String> =
            record.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Ok(Form {
            kind: "runs",
            notes: record.notes.iter().map(NoteField::from_note).collect(),
            id: record.id.to_string(),
            title: record.workload,
            label: record.label.unwrap_or_default(),
            tags: tags.join("\n"),
            ..Form::default()
        })
    };
    page(&app, "riops: edit a run", read).await
}

/// The form for an experiment.
pub(in crate::serve) async fn experiment(State(app): Shared, Path(id): Path<String>) -> Answer {
    let read = move |store: &Store| {
        let experiment = store.experiment(&id)?;
        Ok(Form {
            kind: "experiments",
            notes: experiment.notes.iter().map(NoteField::from_note).collect(),
            id: experiment.id.to_string(),
            title: experiment.name,
            ..Form::default()
        })
    };
    page(&app, "riops: edit an experiment", read).await
}

async fn page(
    app: &App,
    title: &str,
    read: impl FnOnce(&Store) -> Result<Form, Failure> + Send + 'static,
) -> Answer {
    let secret = secret(app)?.to_owned();
    let form = Form { secret, ..app.stored.with(read).await? };
    app.page("edit.html", layout(title, ""), form)
}

/// Returns what forms must contain. Fails if the dashboard is read-only.
fn secret(app: &App) -> Result<&str, Failure> {
    app.form_secret.as_deref().ok_or(Failure::Forbidden(READ_ONLY))
}

/// Returns the fields of a form that this dashboard has sent.
fn fields(app: &App, body: &Bytes) -> Result<Query, Failure> {
    let secret = secret(app)?;
    let fields = Query::parse(&String::from_utf8_lossy(body));
    match fields.get("secret") {
        Some(given) if are_equal(given, secret) => Ok(fields),
        _ => Err(Failure::Forbidden(OTHER_FORM)),
    }
}

/// Sets or removes the label.
pub(in crate::serve) async fn label((State(app), Path(id), body): Sent) -> Answer {
    let label = fields(&app, &body)?.given("label").map(str::to_owned);
    require_public(&label).map_err(Failure::request)?;
    let changed = app.stored.with(move |store| {
        let id = store.id(&id)?;
        store.set_label(&id, label.as_deref())?;
        Ok(format!("/runs/{id}"))
    });
    Ok(see_other(changed.await?))
}

/// Replaces the tags.
pub(in crate::serve) async fn tags((State(app), Path(id), body): Sent) -> Answer {
    let tags = parse_tags(fields(&app, &body)?.get("tags").unwrap_or_default())?;
    let changed = app.stored.with(move |store| {
        let record = store.find(&id)?;
        let id = record.id.to_string();
        let gone: Vec<String> =
            record.tags.into_keys().filter(|key| !tags.contains_key(key)).collect();
        store.tag(&id, &tags, &gone)?;
        Ok(format!("/runs/{id}"))
    });
    Ok(see_other(changed.await?))
}

/// Changes the notes of a run, and adds one.
pub(in crate::serve) async fn notes((State(app), Path(id), body): Sent) -> Answer {
    let edit = notes_of(&fields(&app, &body)?)?;
    let changed = app.stored.with(move |store| {
        let id = store.id(&id)?;
        store.edit_notes(&id, &edit)?;
        Ok(format!("/runs/{id}"))
    });
    Ok(see_other(changed.await?))
}

/// Changes the notes of an experiment, and adds one.
pub(in crate::serve) async fn experiment_notes((State(app), Path(id), body): Sent) -> Answer {
    let edit = notes_of(&fields(&app, &body)?)?;
    let changed = app.stored.with(move |store| {
        let id = store.experiment(&id)?.id;
        store.edit_experiment_notes(&id, &edit)?;
        Ok(format!("/experiments/{id}"))
    });
    Ok(see_other(changed.await?))
}

/// Removes the run.
pub(in crate::serve) async fn remove((State(app), Path(id), body): Sent) -> Answer {
    if fields(&app, &body)?.get("confirm") != Some("yes") {
        return Err(Failure::request("tick the box to confirm that the run is removed"));
    }
    let changed = app.stored.with(move |store| {
        store.remove(&store.id(&id)?)?;
        Ok("/".to_owned())
    });
    Ok(see_other(changed.await?))
}

/// Returns the change of notes that a form describes: a note without text is removed, one that is not in the form stays.
fn notes_of(fields: &Query) -> Result<impl Fn(&mut Vec<Note>) + Send + 'static, Failure> {
    let author = fields.given("author").unwrap_or("unknown").to_owned();
    let mut changed: BTreeMap<String, Option<String>> = BTreeMap::new();
    let parsed = |text: &str| match Note::new(text, author.clone()) {
        Err(NoteError::Empty) => Ok(None),
        note => note.map(|note| Some(note.text)).map_err(Failure::request),
    };
    for (name, text) in fields.named("note-") {
        let shown = fields.get(&name.replacen("note-", "was-", 1)).unwrap_or_default();
        let note = parsed(text)?;
        // Others may have changed it since the form was loaded.
        if note != parsed(shown)? {
            changed.insert(name.to_owned(), note);
        }
    }
    let new = fields.given("new").map(|text| Note::new(text, author)).transpose();
    let new = new.map_err(Failure::request)?;
    Ok(move |notes: &mut Vec<Note>| {
        notes.retain_mut(|note| match changed.get(&NoteField::name(note)) {
            None => true,
            Some(None) => false,
            Some(Some(text)) => {
                note.text.clone_from(text);
                true
            }
        });
        notes.extend(new.clone());
    })
}

/// Reads a tag in each line.
fn parse_tags(text: &str) -> Result<BTreeMap<String, String>, Failure> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let tag = |line: &str| match line.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(Failure::Request(format!("\"{line}\" is not a tag: expected NAME=VALUE"))),
    };
    let tags: BTreeMap<String, String> = lines.map(tag).collect::<Result<_, _>>()?;
    require_public(pairs(&tags)).map_err(Failure::request)?;
    if tags.len() > TAGS_MAX {
        return Err(Failure::Request(format!(
            "in the dashboard, a run has at most {TAGS_MAX} tags"
        )));
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_changed_removed_and_added() {
        let note = |text: &str, second: i64| Note {
            at: jiff::Timestamp::from_second(second).unwrap(),
            author: "ann".to_owned(),
            text: text.to_owned(),
        };
        let mut notes = vec![note("one", 1), note("two", 2), note("three", 3)];
        let fields = Query::default()
            .with(&NoteField::name(&notes[0]), "one, changed")
            .with(&NoteField::name(&notes[1]), " ")
            .with(&NoteField::name(&notes[1]).replace("note", "was"), "two")
            .with(&NoteField::name(&notes[2]), "as shown")
            .with(&NoteField::name(&notes[2]).replace("note", "was"), "as shown")
            .with("new", "four\nlines")
            .with("author", "bob");
        notes_of(&fields).unwrap()(&mut notes);
        let texts: Vec<_> =
            notes.iter().map(|note| (note.author.as_str(), note.text.as_str())).collect();
        assert_eq!(texts, [("ann", "one, changed"), ("ann", "three"), ("bob", "four\nlines")]);
        assert!(notes_of(&Query::default().with("new", "\u{1b}[2J")).is_err());
    }

    #[test]
    fn tags_are_read_from_lines() {
        let tags = parse_tags("a=1\r\n\n  b = x=y \nc=").unwrap();
        let expected = [("a", "1"), ("b", "x=y"), ("c", "")];
        let pairs: Vec<_> =
            tags.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(pairs, expected);
        for wrong in ["a", "=1", "a=\u{1b}[2J", "a\u{9b}=1", "a=\u{202e}cba"] {
            assert!(parse_tags(wrong).is_err(), "{wrong}");
        }
        let many: Vec<String> = (0..=TAGS_MAX).map(|index| format!("t{index}=1")).collect();
        assert!(parse_tags(&many.join("\n")).is_err());
    }
}
