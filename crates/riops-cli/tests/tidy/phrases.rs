//! Phrases that LANGUAGE.md replaces. They must not occur in code, comments, SQL and documentation.

use crate::workspace::{files, read};

/// Phrases, and what to write instead.
const PHRASES: [(&str, &str); 63] = [
    ("a look at", "a check of"),
    ("all alike", "uniform"),
    ("anew", "again, recreate"),
    ("are told", "receive"),
    ("are to be", "will be"),
    ("as it is typed", "as typed"),
    ("asks for", "requires"),
    ("at best, in the middle", "min, median, max"),
    ("be told", "be reported"),
    ("between two looks", "poll-loop stall"),
    ("by itself", "separately"),
    ("came about", "occurred"),
    ("come about", "occur"),
    ("did not come about", "failed to start"),
    ("from here on", "from"),
    ("gives up", "stops after"),
    ("goes home", "returns"),
    ("goes with --", "requires --"),
    ("hands out", "returns"),
    ("has to be", "must be"),
    ("have to be", "must be"),
    ("heed", "handle"),
    ("heeds", "handles"),
    ("held against", "compared with"),
    ("held back by", "bottleneck"),
    ("honest digits", "significant digits"),
    ("in good order", "cleanly"),
    ("in its place", "instead"),
    ("in the place of", "instead of"),
    ("is gone", "no longer exists"),
    ("is there already", "already exists"),
    ("is to be", "must be"),
    ("is told", "receives, gets"),
    ("kept runs", "stored runs"),
    ("limit that was used up", "bottleneck"),
    ("looked at", "checked, read"),
    ("looks at", "checks, reads"),
    ("made by riops", "created by riops"),
    ("mended", "fixed"),
    ("nobody", "no session, no user, n/a"),
    ("not held", "changed"),
    ("of its own", "separate, dedicated"),
    ("patience", "timeout"),
    ("relative of", "PostgreSQL-compatible database"),
    ("relatives", "PostgreSQL-compatible databases"),
    ("says so", "reports it"),
    ("shall", "must, should"),
    ("small letters", "lowercase letters"),
    ("so to speak", ""),
    ("somebody", "another user, another session"),
    ("strange hands", "the bug itself"),
    ("stranger", "another user"),
    ("taken away", "removed"),
    ("takes away", "removes"),
    ("that is there", "existing"),
    ("the like", "similar"),
    ("the wish", "the request"),
    ("told apart", "distinguished"),
    ("under way", "in progress, in flight"),
    ("used up", "fully used"),
    ("vouches", "certifies"),
    ("what is there", "the existing objects"),
    ("whoever", "the user, the caller"),
];

/// Texts that contain a phrase and are correct: names outside riops, and a mark stored in databases.
const ALLOWED: [&str; 8] = [
    "\"nobody\"",
    "\"nobody\\",
    "`nobody`",
    ":nobody:",
    "nobody@",
    "MARK: &str = \"made by riops\"",
    "is 'made by riops",
    "`made by riops",
];

/// Returns every use of a phrase.
pub(crate) fn violations() -> Vec<String> {
    texts().iter().flat_map(|name| in_file(name, &read(name).unwrap())).collect()
}

/// Returns the files whose language is checked: all but the lists of what is to be replaced.
pub(crate) fn texts() -> Vec<String> {
    let extensions = ["rs", "md", "sql", "py", "sh", "toml", "html"];
    let folders = ["crates", "docs", "sql", "bench", "deploy", "scripts", ".ci"];
    let mut names: Vec<String> = [
        "README.md",
        "CHANGELOG.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "Cargo.toml",
        ".ci/run",
    ]
    .map(str::to_owned)
    .into();
    for folder in folders {
        names.extend(extensions.iter().flat_map(|extension| files(folder, extension)));
    }
    names.retain(|name| !["/phrases.rs", "/language.rs"].iter().any(|own| name.ends_with(own)));
    assert!(names.len() > 300, "cannot list the files of the workspace: {names:?}");
    names
}

fn in_file(name: &str, text: &str) -> Vec<String> {
    let lines: Vec<String> = text.lines().map(plain_text).collect();
    let mut violations = Vec::new();
    for (line_number, line) in (1..).zip(&lines) {
        // A phrase may continue on the next line.
        let next = lines.get(line_number).map_or("", String::as_str);
        let both = format!("{line} {next}");
        for (phrase, instead) in PHRASES {
            if starts_of(&both, phrase).any(|start| start < line.len()) {
                violations.push(format!("{name}:{line_number}: \"{phrase}\"; use: {instead}"));
            }
        }
    }
    violations
}

/// A line in lower case without comment markers and allowed texts.
fn plain_text(line: &str) -> String {
    let line = ALLOWED.iter().fold(line.to_owned(), |line, allowed| line.replace(allowed, ""));
    let text = line.trim().trim_start_matches(['/', '!', '-', '#', ' ']);
    text.to_lowercase()
}

/// Returns where a phrase starts as whole words.
pub(crate) fn starts_of<'a>(text: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |character: Option<char>| {
        character.is_some_and(|character| character.is_alphanumeric() || character == '_')
    };
    text.match_indices(phrase).map(|(start, _)| start).filter(move |&start| {
        let end = start + phrase.len();
        !is_word(text[..start].chars().next_back()) && !is_word(text[end..].chars().next())
    })
}

#[test]
fn finds_a_phrase_in_any_case_and_across_lines_of_a_comment() {
    let text = "/// Under way.\n//! A name of its\n//! own. Plunder ways are fine.\n";
    let violations = in_file("a.rs", text);
    assert_eq!(violations.len(), 2, "{violations:?}");
    assert!(violations[0].starts_with("a.rs:1: \"under way\""), "{violations:?}");
    assert!(violations[1].starts_with("a.rs:2: \"of its own\""), "{violations:?}");
}
