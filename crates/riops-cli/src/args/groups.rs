//! The help of `riops` without a command: the commands in groups, by what a user wants.

use std::fmt::Write as _;

use clap::Command;

/// Columns before the description of a command.
const NAME_COLUMNS: usize = 13;

/// The commands by what they are for; the first group is what a newcomer needs first.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start here", &["run", "last", "compare", "ab", "doctor"]),
    ("Measure", &["prepare", "observe", "warm", "verify", "cleanup", "generate", "script"]),
    ("Experiment", &["sweep", "gate", "bisect", "experiments", "fleet"]),
    ("Results", &["runs", "report", "serve", "gallery", "explain"]),
    ("Server and shell", &["server", "completions", "man"]),
    ("Command lines of other tools", &["pgbench", "sysbench", "ysql-bench", "pgio"]),
];

/// The text of `riops` without a command.
pub(crate) const FIRST_STEPS: &str = "\
riops measures PostgreSQL-compatible databases, and says what limits them.

  riops run rows            read random rows from a server that riops starts
  riops run oltp -d URL     run OLTP transactions on your server
  riops last                show the last result again
  riops compare A B         compare stored runs: ids, labels or tags
  riops ab A.toml B.toml    find out which of two variants is faster
  riops doctor -d URL       check a server before a measurement

All commands: riops -h       Options of a command: riops COMMAND -h
Meaning of a term: riops explain TERM
";

/// Returns the commands in groups, each with its description.
fn groups_text(command: &Command) -> String {
    let header = *command.get_styles().get_header();
    let mut groups = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(groups, "{header}{title}:{header:#}");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            // The help of the command has the rest.
            let about = about.split(": ").next().unwrap_or_default();
            let _ = writeln!(groups, "  {name:<NAME_COLUMNS$}{about}");
        }
    }
    groups
}

/// Replaces the list of commands in the help by groups.
pub(super) fn grouped(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let groups = groups_text(&command);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::builder::Styles;

    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_in_a_line() {
        let command = crate::args::command();
        let all: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let shown: BTreeSet<&str> = all.iter().copied().collect();
        let visible = command.get_subcommands().filter(|inner| !inner.is_hide_set());
        assert_eq!(shown, visible.map(Command::get_name).collect());
        assert_eq!(all.len(), shown.len());
        let text = groups_text(&command.clone().styles(Styles::plain()));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(FIRST_STEPS.lines().count() <= 15);
    }
}
