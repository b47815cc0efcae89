//! The forms of documents: a renderer knows no subject.

pub(super) mod fill;
pub(super) mod glossary;
pub(super) mod html;
pub(super) mod markdown;
mod plot;
pub(super) mod png;
pub(super) mod table;
pub(super) mod text;
