//! The short help of `-h`: the options that a newcomer needs, and where the others are. `--help` shows all.

use clap::{Arg, Command};

/// The commands with a short help, and the options that it shows: at most ten each.
const SHORT: [(&str, &str); 21] = [
    ("run", "plan prepare dump-plan output repeat database"),
    ("sweep", "resume list axis repeat find-saturation set dry-run output database"),
    ("ab", "vary trust resume set rounds-max dry-run output database"),
    ("gallery", "label tag fact since compare title with-hosts store"),
    ("gate", "base head build trust exit-code output database"),
    ("bisect", "good bad build trust output database"),
    (
        "run rows",
        "batch update-percent sessions duration rate threshold label output rows database",
    ),
    ("run load", "method batch-size rows drop sessions label output database"),
    ("run point", "op sessions duration rate threshold label output rows prepare database"),
    (
        "run oltp",
        "distribution sessions duration rate threshold label output tables table-size database",
    ),
    ("run cbc", "size cold query-sessions query-duration keep label output database"),
    ("observe", "for command count probe database-wide threshold label output database"),
    ("run script", "file builtin define scale sessions duration rate threshold output database"),
    ("run observe", "for command count probe threshold label output database"),
    ("runs rerun", "seed trust prepare repeat output database"),
    ("run ping", "statement sessions duration rate pipeline label output database"),
    ("prepare rows", "tables rows filler layout size recreate connections database"),
    ("prepare load", "rows table-name field-length recreate connections database"),
    ("prepare oltp", "tables table-size schema recreate connections database"),
    ("prepare script", "scale schema recreate database"),
    ("script check", "define offline database"),
];

/// Text after the list of commands.
const START: &str = "\
Options of a command: riops COMMAND -h. Exit codes, more examples and the terms: riops --help";

/// Hides all options of each command that its short help does not show.
pub(crate) fn shortened(command: Command) -> Command {
    SHORT.into_iter().fold(command.after_help(START), |command, (path, shown)| {
        let (outer, inner) = path.split_once(' ').unwrap_or((path, ""));
        let command = command.mut_subcommand(outer, |outer| match inner {
            "" => shorten(outer, path, shown),
            _ => outer.mut_subcommand(inner, |inner| shorten(inner, path, shown)),
        });
        // Experiments have the options of their workload.
        if outer != "run" || inner.is_empty() {
            return command;
        }
        let own = [("sweep", "axis repeat find-saturation"), ("ab", "vary rounds-max restart")];
        own.into_iter().fold(command, |command, (experiment, own)| {
            let (path, shown) = (format!("{experiment} {inner}"), format!("{own} {shown}"));
            command.mut_subcommand(experiment, |outer| {
                outer.mut_subcommand(inner, |inner| shorten(inner, &path, &shown))
            })
        })
    })
}

fn shorten(command: Command, path: &str, shown: &str) -> Command {
    let is_in_list = |long: &str| shown.split(' ').any(|name| name == long);
    let hide = |arg: Arg| {
        let is_shown = arg.get_long().is_none_or(is_in_list);
        let is_hidden = arg.is_hide_set() || !is_shown;
        arg.hide(is_hidden)
    };
    command.mut_args(hide).after_help(format!("All options: riops {path} --help"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_help_shows_at_most_ten_options_of_its_command() {
        for (path, shown) in SHORT {
            let mut command = crate::args::command().clone();
            for name in path.split(' ') {
                command = command.find_subcommand(name).unwrap().clone();
            }
            assert!(shown.split(' ').count() <= 10, "{path}");
            for name in shown.split(' ') {
                let is_known = command.get_arguments().any(|arg| arg.get_long() == Some(name));
                assert!(is_known, "riops {path} --{name}");
            }
        }
    }

    #[test]
    fn every_short_help_fits_a_screen() {
        let mut pending = vec![shortened(crate::args::command().clone()).term_width(100)];
        let mut all = 0;
        while let Some(mut command) = pending.pop() {
            let lines = command.render_help().to_string().lines().count();
            assert!(lines <= 50, "{}: {lines} lines", command.get_name());
            pending.extend(
                command.get_subcommands().map(|subcommand| subcommand.clone().term_width(100)),
            );
            all += 1;
        }
        assert!(all > 30, "{all}");
    }

    #[test]
    fn the_short_help_of_run_rows() {
        let words = ["riops", "run", "rows", "-h"];
        let command = shortened(crate::args::command().clone()).term_width(80);
        insta::assert_snapshot!(command.try_get_matches_from(words).unwrap_err().to_string());
    }
}
