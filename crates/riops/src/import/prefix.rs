//! Known prefixes of lines in logs: times, names of services and processes, levels, counters.

/// Words that logs put before a line, with or without a colon.
const LEVELS: [&str; 11] = [
    "info", "debug", "notice", "warn", "warning", "error", "log", "trace", "stdout", "stderr",
    "out",
];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// A prefix at the start of a line.
pub(super) struct Prefix<'a> {
    /// The name of what wrote the line; empty if it has none.
    pub(super) source: &'a str,
    pub(super) is_time: bool,
    pub(super) rest: &'a str,
}

impl<'a> Prefix<'a> {
    pub(super) fn parse(text: &'a str, is_timed: bool) -> Option<Self> {
        let unnamed = |rest| Self { source: "", is_time: false, rest };
        if let Some(rest) = time(text) {
            return Some(Self { source: "", is_time: true, rest });
        }
        if let Some((name, rest)) = bracketed(text) {
            let is_number = !name.is_empty() && without_digits(name).is_empty();
            let source = if is_name(name) || is_number { name } else { "" };
            return Some(Self { source, is_time: time(name).is_some(), rest });
        }
        if let Some((name, rest)) = piped(text).or_else(|| tabbed(text)) {
            return Some(Self { source: name, is_time: false, rest });
        }
        if let Some(rest) =
            level(text).or_else(|| counter(text)).or_else(|| step(text)).or_else(|| klog(text))
        {
            return Some(unnamed(rest));
        }
        let after_time = || stream(text).or_else(|| text.strip_prefix("- "));
        if let Some(rest) = is_timed.then(after_time).flatten() {
            return Some(unnamed(rest));
        }
        let (source, rest) = process(text, is_timed)?;
        Some(Self { source, is_time: false, rest })
    }
}

/// Names of services and processes, unlike counters and levels.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic())
        && text.contains(|c: char| !c.is_alphabetic())
        && !text.contains(' ')
        && time(text).is_none()
}

/// `[text] rest`, but not the prompt of a shell.
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.strip_prefix('[')?.split_once(']')?;
    let is_prompt = rest.starts_with(['$', '#', '%']);
    (!name.is_empty() && !is_prompt && !is_interval(text.get(1..)?)).then_some((name, rest))
}

/// `name-1  | rest`, as Docker Compose and foreman write it.
fn piped(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('|')?;
    let name = name.trim_end();
    let is_word = |c: char| c.is_alphanumeric() || "-_./@:".contains(c);
    let is_name = name.starts_with(|c: char| c.is_alphabetic()) && name.chars().all(is_word);
    (is_name && (rest.is_empty() || rest.starts_with(char::is_whitespace))).then_some((name, rest))
}

/// `name<TAB>rest`, as `parallel --tag` writes it, and `job<TAB>step<TAB>time rest`, as `gh run view --log` does.
fn tabbed(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once('\t')?;
    let is_word = |c: char| c.is_alphanumeric() || "-_./@:=".contains(c);
    let is_named = name.starts_with(|c: char| c.is_alphabetic() || "-./".contains(c));
    let line_of_job =
        rest.split_once('\t').map(|(_, line)| line).filter(|line| time(line).is_some());
    let line = line_of_job.or_else(|| name.chars().all(is_word).then_some(rest));
    line.filter(|_| is_named).map(|line| (name, line))
}

fn level(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphabetic())?;
    let (word, rest) = text.split_at_checked(end)?;
    let rest = rest.trim_start_matches(':');
    let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    (is_level && rest.starts_with(char::is_whitespace)).then_some(rest)
}

/// The stream that containers and GitLab write after a time: `stdout F `, `01O `, `00O+`.
fn stream(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked(text.find([' ', '+'])?)?;
    let is_gitlab = matches!(word.as_bytes(), [one, two, b'O' | b'E']
        if one.is_ascii_hexdigit() && two.is_ascii_hexdigit());
    (is_gitlab || matches!(word, "F" | "P")).then(|| rest.get(1..).unwrap_or_default())
}

/// The number of a line, as `cat -n` and `grep -n` write it.
fn counter(text: &str) -> Option<&str> {
    let rest = without_digits(text);
    let is_counter = rest.len() < text.len() && (rest.starts_with('\t') || rest.starts_with(':'));
    is_counter.then(|| rest.get(1..).unwrap_or_default())
}

/// The step of `BuildKit` and its time: `#12 3.456 `.
fn step(text: &str) -> Option<&str> {
    let (step, rest) = text.strip_prefix('#')?.split_once(' ')?;
    let (seconds, rest) = rest.split_once(' ')?;
    let is_number = !step.is_empty() && without_digits(step).is_empty();
    (is_number && seconds.contains('.') && seconds.parse::<f64>().is_ok()).then_some(rest)
}

/// The head of klog: level, date, time, process and place, `I0501 10:00:00.123456       1 main.go:88] `.
fn klog(text: &str) -> Option<&str> {
    let date = text.strip_prefix(['I', 'W', 'E', 'F'])?;
    let rest = clock(digits(date, 4)?.strip_prefix(' ')?)?.trim_start();
    let (place, text) = without_digits(rest).strip_prefix(' ')?.split_once("] ")?;
    (!place.contains(' ') && place.contains(':')).then_some(text)
}

/// `name[123]: rest`; after a time also `host name[123]: rest` and `host name: rest`, as syslog and journald write them.
fn process(text: &str, is_timed: bool) -> Option<(&str, &str)> {
    let end = text.strip_suffix(':').map(|head| (head, ""));
    let (head, rest) = text.split_once(": ").or(end)?;
    let (host, name) = head.rsplit_once(' ').unwrap_or(("", head));
    let has_number = name.ends_with(']') && name.contains('[');
    let is_word = |c: char| c.is_alphanumeric() || "-_./@[]".contains(c);
    let is_named = name.starts_with(char::is_alphabetic) && name.chars().all(is_word);
    let is_tool = ["pgbench", "sysbench"].contains(&name) || name.contains(['.', '-', '_', '/']);
    let is_host = is_timed && !host.is_empty() && !host.contains(' ');
    let is_process = has_number && (host.is_empty() || is_host) || is_tool && is_host;
    (is_named && is_process).then_some((head, rest))
}

/// Returns the rest after a time: `2024-05-01T10:00:00.123Z`, `2024-05-01 10:00:00,123`, `May  1 10:00:00`, `10:00:00`, or
/// seconds since 1970.
fn time(text: &str) -> Option<&str> {
    let rest = dated(text).or_else(|| clock(text)).or_else(|| epoch(text))?;
    let is_end = rest.is_empty() || rest.starts_with([' ', '\t', ':', '|', ']', '-', ',']);
    is_end.then(|| rest.trim_start_matches([' ', '\t', ':', '|', ',']))
}

fn dated(text: &str) -> Option<&str> {
    let text = after_word(text, &WEEKDAYS).unwrap_or(text);
    if let Some(rest) = after_word(text, &MONTHS) {
        let (day, rest) = rest.split_once(' ')?;
        day.parse::<u8>().ok()?;
        let rest = clock(rest.trim_start())?;
        // `date` prints the year after the time.
        let after_year = rest.strip_prefix(' ').and_then(|rest| digits(rest, 4));
        let after_year = after_year.filter(|rest| rest.is_empty() || rest.starts_with(' '));
        return Some(after_year.unwrap_or(rest));
    }
    let rest = digits(text, 4)?;
    let separator = rest.chars().next().filter(|c| matches!(c, '-' | '/'))?;
    let rest = digits(rest.strip_prefix(separator)?, 2)?;
    let rest = digits(rest.strip_prefix(separator)?, 2)?;
    clock(rest.strip_prefix(['T', ' ', '_'])?.trim_start())
}

fn after_word<'a>(text: &'a str, words: &[&str]) -> Option<&'a str> {
    let (word, rest) = text.split_once(' ')?;
    words.contains(&word).then(|| rest.trim_start())
}

/// `10:00:00.123` with or without a time zone.
fn clock(text: &str) -> Option<&str> {
    let rest = digits(text, 2)?.strip_prefix(':')?;
    let rest = digits(rest, 2)?.strip_prefix(':')?;
    let rest = digits(rest, 2)?;
    let rest = rest.strip_prefix(['.', ',']).map_or(rest, without_digits);
    let zone = rest.strip_prefix(" UTC").or_else(|| rest.strip_prefix('Z')).or_else(|| {
        let offset = digits(rest.trim_start_matches(' ').strip_prefix(['+', '-'])?, 2)?;
        let minutes = offset.strip_prefix(':').unwrap_or(offset);
        Some(digits(minutes, 2).unwrap_or(offset))
    });
    Some(zone.unwrap_or(rest))
}

/// Ten digits and a fraction.
fn epoch(text: &str) -> Option<&str> {
    let rest = without_digits(digits(text, 10)?);
    let rest = rest.strip_prefix('.').map_or(rest, without_digits);
    (rest.starts_with([' ', '\t'])).then_some(rest)
}

fn digits(text: &str, count: usize) -> Option<&str> {
    let (digits, rest) = text.split_at_checked(count)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
}

fn without_digits(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit())
}

/// `1s ] thds: 4 tps: …`, in version 0.5 `   1s] threads: 4, tps: …`, without the first bracket.
pub(super) fn is_interval(text: &str) -> bool {
    let time = text.split_once(']').map(|(time, _)| time.trim());
    time.and_then(|time| time.strip_suffix('s')).is_some_and(|time| time.parse::<f64>().is_ok())
}
