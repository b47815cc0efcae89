//! Completeness of the documentation: every option in the reference, every module in ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::workspace::{files, path, read};

/// Returns the options that the reference does not mention, each with a command that has it.
pub(crate) fn undocumented_options() -> Vec<String> {
    let mut options = BTreeMap::new();
    walk(&mut Vec::new(), &mut options);
    assert!(options.len() > 50, "cannot parse the help texts: {options:?}");
    let (file, reference) = reference();
    let missing = |text: &str, file: &str, option: &str, command: &str| {
        (!mentions(text, option)).then(|| format!("{file}:1: {option} of `{command}` is missing"))
    };
    let mut violations: Vec<String> = options
        .iter()
        .filter_map(|(option, command)| missing(&reference, &file, option, command))
        .collect();
    for (line, file) in ORIGINALS {
        let text = read(file).unwrap_or_default().replace('_', "-");
        let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (last, command) = command.split_last().unwrap();
        let options = options_in(&capture_output(command, last).replace('_', "-"));
        assert!(options.len() > 2, "cannot parse the help text of `{line}`");
        violations.extend(options.iter().filter_map(|option| missing(&text, file, option, line)));
    }
    violations
}

/// Commands that list the options of another tool, and the pages that list them too.
const ORIGINALS: [(&str, &str); 4] = [
    ("sysbench --help", "docs/from-sysbench.md"),
    ("sysbench oltp_read_write help", "docs/from-sysbench.md"),
    ("sysbench select_random_ranges help", "docs/from-sysbench.md"),
    ("ysql-bench --help", "docs/from-ysql-bench.md"),
];

/// Returns the warnings, bottlenecks and verdicts on rates that docs/reading-results.md does not explain.
pub(crate) fn unexplained_verdicts() -> Vec<String> {
    use riops::figure::Bottleneck;
    use riops::record::{ClientLimit, RateVerdict, WarningKind};
    let file = "docs/reading-results.md";
    let text = read(file).unwrap_or_default();
    let keys = WarningKind::ALL.iter().map(|kind| kind.as_str());
    let keys = keys.chain(Bottleneck::ALL.iter().map(|bottleneck| bottleneck.as_str()));
    let keys = keys.chain(RateVerdict::ALL.iter().map(|verdict| verdict.as_str()));
    let rows = keys.map(|key| format!("\n| `{key}` |"));
    let limits = ClientLimit::ALL.iter();
    rows.chain(limits.map(|limit| format!("| `client` | the client: {} |", limit.text())))
        .filter(|row| !text.contains(row))
        .map(|row| format!("{file}:1: no table has the row {row}"))
        .collect()
}

/// Returns the reasons of an invalid run, as they are in the code, that docs/reading-results.md does not have.
pub(crate) fn unexplained_reasons() -> Vec<String> {
    let page = read("docs/reading-results.md").unwrap_or_default();
    let mut missing = Vec::new();
    for name in ["reasons", "accesses"] {
        let file = format!("crates/riops-measure/src/run/verdict/{name}.rs");
        let code = read(&file).unwrap_or_default();
        let product = code.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
        let lines: Vec<&str> = lines.collect();
        // Texts are every second part between quotes; what is not text between braces is fixed.
        let product = lines.join("\n");
        let texts = product.split('"').skip(1).step_by(2);
        for text in texts.filter(|text| text.contains(' ') && !text.starts_with(char::is_uppercase))
        {
            let fixed = text.split(['{', '}']).step_by(2).map(|part| part.trim_matches([' ', ':']));
            let longest = fixed.max_by_key(|part| part.len()).unwrap_or_default();
            if longest.len() > 12 && !page.contains(longest) {
                missing.push(format!("{file}:1: the page does not have \"{longest}\""));
            }
        }
    }
    missing
}

/// Returns the rows of the tables of figures in the reference that differ from the catalog.
pub(crate) fn other_figures() -> Vec<String> {
    use riops::figure::{COUNTS, Figure, STATISTICS, Unit};
    let file = "docs/reference.md";
    let text = read(file).unwrap_or_default();
    let section = text.split("### Figures").nth(1).unwrap_or_default();
    let section = section.split("\n#").next().unwrap_or_default();
    let unit = |figure: Figure| match figure.unit() {
        Unit::PerSecond => "1/s",
        Unit::MbPerSecond => "MB/s",
        Unit::Microseconds => "µs",
        Unit::Seconds => "s",
        Unit::Processors => "processors",
        Unit::Bytes => "bytes",
        Unit::Events => "",
        Unit::Money => "currency of the price",
    };
    let better = |figure: Figure| match figure.direction() {
        riops::stats::Direction::HigherIsBetter => "higher",
        riops::stats::Direction::LowerIsBetter => "lower",
    };
    let figures = Figure::ALL.into_iter().map(|figure| {
        format!(
            "| `{}` | {} | {} | {} |",
            figure.as_str(),
            figure.name(),
            unit(figure),
            better(figure)
        )
    });
    let statistics =
        STATISTICS.iter().map(|statistic| format!("| `{}` | {} |", statistic.key, statistic.name));
    let counts = COUNTS.iter().map(|count| format!("| `{}` | {} |", count.key, count.help));
    let expected: BTreeSet<String> = figures.chain(statistics).chain(counts).collect();
    let documented: BTreeSet<String> =
        section.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect();
    let missing = expected.difference(&documented).map(|row| format!("{file}:1: missing: {row}"));
    let surplus =
        documented.difference(&expected).map(|row| format!("{file}:1: not in figure/: {row}"));
    missing.chain(surplus).collect()
}

/// Returns the columns of a stage that the page about the store does not have. The statistics of latencies and the costs have names
/// with an ellipsis there.
pub(crate) fn undocumented_columns() -> Vec<String> {
    use riops::figure::{Figure, STATISTICS};
    use riops::record::LatencyKind;
    let file = "docs/reference/store.md";
    let page = read(file).unwrap_or_default();
    let is_statistic = |name: &str| {
        let columns =
            STATISTICS.iter().flat_map(|entry| LatencyKind::ALL.map(|kind| entry.column(kind)));
        columns.into_iter().any(|column| column == name)
    };
    let is_cost = |name: &str| {
        Figure::costs().any(|cost| {
            [cost.as_str(), &cost.as_str().replace("transaction", "row")].contains(&name)
        })
    };
    let columns = riops::summary::STAGE_COLUMNS.iter();
    let missing = columns.flat_map(|column| [&*column.name, column.joined_name()]).filter(|name| {
        !page.contains(&format!("`{name}`")) && !is_statistic(name) && !is_cost(name)
    });
    missing.map(|name| format!("{file}:1: the column {name} is missing")).collect()
}

/// Returns the name and the text of the reference, which is one file or a folder of files.
fn reference() -> (String, String) {
    let single = "docs/reference.md".to_owned();
    if let Some(text) = read(&single) {
        return (single, text);
    }
    let pages = files("docs/reference", "md");
    assert!(!pages.is_empty(), "neither {single} nor docs/reference/*.md exists");
    let text: Vec<String> = pages.iter().filter_map(|page| read(page)).collect();
    ("docs/reference/".to_owned(), text.join("\n"))
}

/// Adds the long options of a command and of its subcommands, each with the first command that has it.
fn walk(command: &mut Vec<String>, options: &mut BTreeMap<String, String>) {
    let help = help(command);
    let title = ["riops".to_owned()].iter().chain(&*command).cloned().collect::<Vec<_>>().join(" ");
    for option in options_in(&help) {
        options.entry(option).or_insert_with(|| title.clone());
    }
    // The options of other tools are not in the reference.
    let of_riops = |name: &String| !["sysbench", "ysql-bench", "pgio"].contains(&name.as_str());
    for name in subcommands_in(&help).into_iter().filter(of_riops) {
        command.push(name);
        walk(command, options);
        command.pop();
    }
}

fn help(command: &[String]) -> String {
    capture_output(command, "--help")
}

/// Returns what a command prints.
fn capture_output(command: &[String], argument: &str) -> String {
    let mut riops = Command::new(env!("CARGO_BIN_EXE_riops"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("RIOPS_")) {
        riops.env_remove(name);
    }
    let output = riops.args(command).arg(argument).env("COLUMNS", "100").output().unwrap();
    assert!(output.status.success(), "riops {command:?} {argument} failed");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the long options of a help text except `--help` and `--version`.
fn options_in(help: &str) -> BTreeSet<String> {
    help.lines()
        .filter(|line| indentation(line) <= 6 && line.trim_start().starts_with('-'))
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
        .map(|word| word.chars().take_while(|&c| is_option_char(c)).collect::<String>())
        .filter(|option| !["--help", "--version"].contains(&option.as_str()))
        .collect()
}

/// Returns the subcommands of a help text.
fn subcommands_in(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| !["Commands:", "Start here:"].contains(line))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| indentation(line) == 2)
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_option_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

/// Whether a text contains this option, and not only as the start of a longer one.
fn mentions(text: &str, option: &str) -> bool {
    text.match_indices(option).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + option.len()..].chars().next();
        !before.is_some_and(is_option_char) && !after.is_some_and(is_option_char)
    })
}

/// Returns the links of README and docs to files and headings that do not exist.
pub(crate) fn broken_links() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "CONTRIBUTING.md".to_owned()];
    pages.extend(files("docs", "md"));
    assert!(pages.len() > 30, "{pages:?}");
    let mut broken = Vec::new();
    for page in &pages {
        let text = read(page).unwrap_or_default();
        for (line, content) in (1..).zip(text.lines()) {
            let targets = content.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for target in targets.filter(|target| !target.contains("://")) {
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let folder = page.rsplit_once('/').map_or("", |(folder, _)| folder);
                let file = if file.is_empty() { page.clone() } else { join_paths(folder, file) };
                let exists = path(&file).exists();
                let page = read(&file).unwrap_or_default();
                if !exists || !anchor.is_empty() && !headings(&page).contains(anchor) {
                    broken.push(format!("{page}:{line}: no {target}"));
                }
            }
        }
    }
    broken
}

/// Returns the pages of the guide that its summary does not have.
pub(crate) fn unlisted_pages() -> Vec<String> {
    let summary = read("docs/SUMMARY.md").unwrap_or_default();
    let pages = files("docs", "md").into_iter().filter(|page| page != "docs/SUMMARY.md");
    let is_unlisted = |page: &String| {
        !summary.contains(&format!("]({})", page.strip_prefix("docs/").unwrap_or(page)))
    };
    pages.filter(is_unlisted).map(|page| format!("{page}:1: not in docs/SUMMARY.md")).collect()
}

/// A path relative to a folder, without `..`.
fn join_paths(folder: &str, file: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in file.split('/') {
        match part {
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchors of the headings of a page.
fn headings(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = text.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}
