//! Texts that may hold a secret, and how they are shown: `***` replaces passwords and tokens. Command lines, addresses and
//! messages become visible and are stored only through this module. It hides too much rather than too little, because a
//! text may be mistyped.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize, Serializer};

/// Shown instead of a secret.
pub const HIDDEN: &str = "***";

/// Parts of the names of options, variables and settings whose values are secrets.
const NAMES: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "credential",
    "apikey",
    "api_key",
    "authorization",
];
/// The last words of such names.
const LAST_WORDS: [&str; 4] = ["pass", "pwd", "pw", "access_key"];
/// Ends of names whose values are not secrets.
const PUBLIC: [&str; 6] = ["file", "_path", "_encryption", "_method", "_age", "_count"];
/// Options of curl and others whose value has the form `USER:PASSWORD`.
const LOGIN_OPTIONS: [&str; 4] = ["-u", "-U", "--user", "--proxy-user"];

/// A command with its arguments. It is executed as given, and shown and stored without secrets.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// Returns the command that executes a line with a shell.
    pub fn of_shell(line: String) -> Self {
        Self(vec!["sh".to_owned(), "-c".to_owned(), line])
    }

    /// Returns the words to execute.
    pub fn words(&self) -> &[String] {
        &self.0
    }

    /// Whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the words to show.
    pub fn shown(&self) -> Vec<String> {
        let secrets = secrets_of(&self.0);
        self.0.iter().zip(secrets).map(|(word, ranges)| replaced(word, &ranges)).collect()
    }

    /// Whether any word has a secret.
    pub fn has_secret(&self) -> bool {
        self.has_any_secret(|secret| secret != HIDDEN)
    }

    /// Whether a secret was removed when the command was stored: it cannot be executed again.
    pub fn is_incomplete(&self) -> bool {
        self.has_any_secret(|secret| secret == HIDDEN)
    }

    fn has_any_secret(&self, is_meant: impl Fn(&str) -> bool) -> bool {
        let secrets = secrets_of(&self.0);
        let mut words = self.0.iter().zip(secrets);
        words.any(|(word, ranges)| {
            ranges.into_iter().filter_map(|range| word.get(range)).any(&is_meant)
        })
    }
}

impl From<Vec<String>> for CommandLine {
    fn from(words: Vec<String>) -> Self {
        Self(words)
    }
}

impl Serialize for CommandLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.shown().serialize(serializer)
    }
}

impl fmt::Debug for CommandLine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "CommandLine({self})")
    }
}

impl fmt::Display for CommandLine {
    /// Writes one line, quoted for a shell, without secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+*".contains(c);
        for (position, word) in self.shown().iter().enumerate() {
            let space = if position == 0 { "" } else { " " };
            if !word.is_empty() && word.chars().all(is_plain) {
                write!(formatter, "{space}{word}")?;
            } else {
                write!(formatter, "{space}'{}'", word.replace('\'', "'\\''"))?;
            }
        }
        Ok(())
    }
}

/// Returns an address, a connection string or a message without passwords and tokens.
pub fn redacted(text: &str) -> String {
    replaced(text, &[logins(text), values(text, Form::Message)].concat())
}

/// Whether a label, a note or another free text contains a secret: an address with a password, or `password=…`. A commit
/// such as `me/x@abc`, which could be a mistyped address, does not.
pub fn names_secret(text: &str) -> bool {
    let is_link = |word: &str| {
        let link = word
            .split_once("://")
            .filter(|(scheme, _)| scheme.ends_with("http") || scheme.ends_with("https"));
        link.is_some_and(|(_, rest)| !rest.split('/').next().unwrap_or_default().contains('@'))
    };
    let is_address = |word: &&str| word.contains(":/") && !is_link(word);
    let mut words =
        text.split(|c: char| c.is_whitespace() || "'\"`<>".contains(c)).filter(is_address);
    let is_hidden = |range: Range<usize>| text.get(range) == Some(HIDDEN);
    words.any(|word| !logins(word).is_empty())
        || values(text, Form::Message).into_iter().any(|range| !is_hidden(range))
}

/// Whether the name of an option, a variable or a setting says that its value is a secret.
fn is_secret_name(name: &str) -> bool {
    let decoded = percent_decode_str(name).decode_utf8().unwrap_or(Cow::Borrowed(name));
    if matches!(&*decoded, "PWD" | "OLDPWD") {
        return false;
    }
    let name = decoded.to_lowercase().replace(['-', '.'], "_");
    let is_last = |word: &str| {
        name.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
    };
    (NAMES.iter().any(|part| name.contains(part)) || LAST_WORDS.iter().any(|word| is_last(word)))
        && !PUBLIC.iter().any(|end| name.ends_with(end))
}

/// Returns the secrets in each word of a command.
fn secrets_of(words: &[String]) -> Vec<Vec<Range<usize>>> {
    let is_sshpass = words.iter().any(|word| word.rsplit('/').next() == Some("sshpass"));
    let secrets = |(option, word): (&str, &String)| {
        let is_value = option.starts_with('-') && !option.contains('=') && is_secret_name(option)
            || is_sshpass && option == "-p";
        if is_value && !word.starts_with('-') {
            return std::iter::once(0..word.len()).collect();
        }
        let is_script =
            option.starts_with('-') && !option.starts_with("--") && option.ends_with('c');
        let form = if is_script || option == "--command" { Form::Script } else { Form::Word };
        let mut ranges = [logins(word), values(word, form)].concat();
        ranges.extend(password_of_user(option, word));
        if is_sshpass && word.starts_with("-p") && word.len() > 2 {
            ranges.push(2..word.len());
        }
        ranges
    };
    let before = std::iter::once("").chain(words.iter().map(String::as_str));
    before.zip(words).map(secrets).collect()
}

/// Schemes of addresses: before `://`, they are not users with the password `//…`.
const SCHEMES: [&str; 6] = ["http", "https", "postgres", "postgresql", "ftp", "socks5"];

/// Returns the password in `USER:PASSWORD` after an option, or within the option.
fn password_of_user(option: &str, word: &str) -> Option<Range<usize>> {
    let with_option = LOGIN_OPTIONS.iter().find_map(|name| {
        let separator = if name.starts_with("--") { "=" } else { "" };
        Some(word.strip_prefix(name)?.strip_prefix(separator)?).filter(|value| !value.is_empty())
    });
    let value = if LOGIN_OPTIONS.contains(&option) { Some(word) } else { with_option }?;
    let is_url = |user: &str, rest: &str| rest.starts_with("//") && SCHEMES.contains(&user);
    let (user, password) = value.split_once(':').filter(|(user, rest)| !is_url(user, rest))?;
    let start = word.len() - value.len() + user.len() + 1;
    (!password.is_empty()).then_some(start..word.len())
}

/// Returns the passwords of the addresses in a text, also of mistyped ones: `u:PW@host`, `u/PW@host`, `scheme:/u:PW@host`.
fn logins(text: &str) -> Vec<Range<usize>> {
    let scheme = text.split("://").next().unwrap_or_default();
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    if scheme.len() < text.len() && scheme.chars().all(is_scheme) {
        // The whole text is an address, even if it contains spaces and quotes.
        return login(text, 0).into_iter().collect();
    }
    let is_end = |c: char| c.is_whitespace() || "'\"`<>".contains(c);
    let mut start = 0;
    let mut ranges = Vec::new();
    for token in text.split_inclusive(is_end) {
        ranges.extend(login(token.trim_end_matches(is_end), start));
        start += token.len();
    }
    ranges
}

/// Returns the password of an address that starts here.
fn login(token: &str, start: usize) -> Option<Range<usize>> {
    let (login, host) = token.rsplit_once('@')?;
    let path = token.starts_with(['/', '.', '~']);
    if path || host.starts_with("sha256:") || host.is_empty() {
        return None;
    }
    let (before, rest) = match login.split_once(":/") {
        Some((scheme, rest)) => (scheme, rest.trim_start_matches('/')),
        None => login.split_once('=').unwrap_or(("", login)),
    };
    // The path of a link is not a login.
    let is_link = ["http", "https"].iter().any(|scheme| before.ends_with(scheme));
    let cut = rest.find(|c| c == ':' || c == '/' && !is_link)?;
    if cut == 0 && !rest.starts_with(':') {
        return None;
    }
    let secret = login.len() - rest.len() + cut + 1..login.len();
    (!secret.is_empty()).then(|| start + secret.start..start + secret.end)
}

/// Form of a text, which determines where a value ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A word of a command line.
    Word,
    /// A script of a shell, or SQL.
    Script,
    /// Text for people, in which a colon is punctuation.
    Message,
}

/// Returns the values after secret names.
fn values(text: &str, form: Form) -> Vec<Range<usize>> {
    let is_name = |c: char| c.is_alphanumeric() || "_-.%".contains(c);
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(length);
        if length == 0 {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        at += length;
        let start = if is_secret_name(name) { value_start(name, after, form) } else { None };
        if let Some(start) = start {
            let is_whole = form == Form::Word && at == length && after.starts_with('=');
            let begin = at + start;
            let end = if is_whole { text.len() } else { value_end(text, begin, form) };
            if begin < end {
                ranges.push(begin..end);
            }
            at = at.max(end);
        }
    }
    ranges
}

/// Returns where the value begins in the text after a secret name; `None` if there is none.
fn value_start(name: &str, after: &str, form: Form) -> Option<usize> {
    let rest = after.trim_start_matches(['"', '\'']);
    let trimmed = rest.trim_start();
    let is_spaced = trimmed.len() < rest.len();
    let value = match trimmed.strip_prefix('=') {
        Some(value) => value,
        None if form == Form::Message => return None,
        None => match trimmed.strip_prefix(':').filter(|value| !value.starts_with([':', '/'])) {
            Some(value) => value,
            // password 'x' in SQL, and --password x in a script.
            None if is_spaced && (trimmed.starts_with('\'') || trimmed.starts_with(HIDDEN)) => {
                trimmed
            }
            None if is_spaced && form == Form::Script && name.starts_with("--") => {
                Some(trimmed).filter(|value| !value.starts_with('-'))?
            }
            None => return None,
        },
    };
    Some(after.len() - value.trim_start().len())
}

/// Returns the end of the value that begins here.
fn value_end(text: &str, begin: usize, form: Form) -> usize {
    let value = text.get(begin..).unwrap_or_default();
    let before = text.get(..begin).unwrap_or_default();
    let is_open = |quote: char| before.matches(quote).count() % 2 == 1;
    let mut quote = None;
    let mut characters = value.char_indices();
    while let Some((position, c)) = characters.next() {
        match quote {
            Some(open) if c == open => quote = None,
            _ if c == '\\' => drop(characters.next()),
            Some(_) => {}
            None if (c == '\'' || c == '"') && is_open(c) => return begin + position,
            None if c == '\'' || c == '"' => quote = Some(c),
            None => {
                let rest = value.get(position..).unwrap_or_default();
                let ends = match form {
                    Form::Script => c.is_whitespace() || ";&|),".contains(c),
                    Form::Word | Form::Message => {
                        // The next line of a message has another subject.
                        "&;,}".contains(c)
                            || c.is_whitespace() && is_setting(rest)
                            || form == Form::Message && c == '\n'
                    }
                };
                if ends {
                    return begin + position;
                }
            }
        }
    }
    text.len()
}

/// Whether the next word of a text is `name=value`. Otherwise, it may be the rest of a value with a space.
fn is_setting(rest: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    let rest = rest.trim_start();
    let after = rest.trim_start_matches(is_name);
    after.len() < rest.len() && after.trim_start().starts_with('=')
}

/// Returns a text with [`HIDDEN`] in place of these parts, which may overlap.
fn replaced(text: &str, secrets: &[Range<usize>]) -> String {
    let mut secrets: Vec<_> = secrets.iter().filter(|secret| !secret.is_empty()).collect();
    secrets.sort_by_key(|secret| secret.start);
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    for secret in secrets {
        if secret.start >= done {
            shown.push_str(text.get(done..secret.start).unwrap_or_default());
            shown.push_str(HIDDEN);
        }
        done = done.max(secret.end);
    }
    shown + text.get(done..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn command(words: &[&str]) -> CommandLine {
        words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>().into()
    }

    #[test]
    fn a_command_is_shown_without_secrets_in_every_form() {
        for (words, shown) in [
            (vec!["psql", "postgresql://u:s3cret@h/d"], "psql postgresql://u:***@h/d"),
            (vec!["psql", "postgresql://u:s3 'cret@h/d"], "psql postgresql://u:***@h/d"),
            (vec!["psql", "postgresql://u:s3cret/s3cret?s3cret@h"], "psql postgresql://u:***@h"),
            (vec!["psql", "postgres:/u:s3cret@h/d"], "psql postgres:/u:***@h/d"),
            (vec!["psql", "postgresql://u/s3cret@h/d"], "psql postgresql://u/***@h/d"),
            (vec!["psql", "u/s3cret@h"], "psql u/***@h"),
            (vec!["psql", "--dbname=u:s3cret@h"], "psql --dbname=u:***@h"),
            (
                vec!["psql", "postgresql://h/d?user=u&p%61ssword=s3cret&port=1"],
                "psql 'postgresql://h/d?user=u&p%61ssword=***&port=1'",
            ),
            (vec!["psql", "host=h password=s3cret port=1"], "psql 'host=h password=*** port=1'"),
            (
                vec!["psql", "host=h password = 's3 cret' port=1"],
                "psql 'host=h password = *** port=1'",
            ),
            (vec!["psql", "host=h password='x's3cret"], "psql 'host=h password=***'"),
            (vec!["psql", "host=h password=my s3cret"], "psql 'host=h password=***'"),
            (vec!["psql", "-d", "password=s3cret"], "psql -d password=***"),
            (vec!["psql", "sslpassword=s3cret"], "psql sslpassword=***"),
            (vec!["env", "PGPASSWORD=a s3cret", "psql"], "env PGPASSWORD=*** psql"),
            (vec!["docker", "run", "-ePGPASSWORD=s3cret"], "docker run -ePGPASSWORD=***"),
            (
                vec!["sysbench", "--pgsql-password=s3cret", "run"],
                "sysbench --pgsql-password=*** run",
            ),
            (
                vec!["x", "--password", "s3cret", "--token", "s3cret"],
                "x --password *** --token ***",
            ),
            (vec!["curl", "-u", "u:s3cret", "http://h:80/x"], "curl -u u:*** http://h:80/x"),
            (vec!["curl", "--user=u:s3cret"], "curl --user=u:***"),
            (vec!["curl", "-H", "Authorization: Bearer s3cret"], "curl -H 'Authorization: ***'"),
            (vec!["sshpass", "-p", "s3cret", "ssh", "h"], "sshpass -p *** ssh h"),
            (vec!["sshpass", "-ps3cret", "ssh", "h"], "sshpass -p*** ssh h"),
            (
                vec!["sh", "-c", "PGPASSWORD='a s3cret' pgbench -c 8; true"],
                "sh -c 'PGPASSWORD=*** pgbench -c 8; true'",
            ),
            (
                vec!["bash", "-lc", "psql \"host=h password=s3cret\" -c 'select 1'"],
                r#"bash -lc 'psql "host=h password=***" -c '\''select 1'\'''"#,
            ),
            (
                vec!["sh", "-c", "x --password s3cret -v && psql postgres://u:s3cret@h"],
                "sh -c 'x --password *** -v && psql postgres://u:***@h'",
            ),
            (
                vec!["psql", "-c", "alter role u password 's3cret'"],
                r"psql -c 'alter role u password ***'",
            ),
            (
                vec!["x", r#"{"password": "s3cret", "port": 1}"#],
                r#"x '{"password": ***, "port": 1}'"#,
            ),
        ] {
            let command = command(&words);
            assert_eq!((command.to_string(), command.has_secret()), (shown.to_owned(), true));
            assert!(!format!("{command:?}").contains("s3cret"));
            let json = serde_json::to_string(&command).unwrap();
            assert!(!json.contains("s3cret"), "{json}");
            let stored: CommandLine = serde_json::from_str(&json).unwrap();
            assert_eq!((stored.to_string(), stored.has_secret()), (shown.to_owned(), false));
            assert!(stored.is_incomplete(), "{shown}");
            assert_eq!(command.words(), words);
        }
    }

    #[test]
    fn a_command_without_secrets_is_unchanged() {
        for words in [
            vec!["pgbench", "-n", "-c", "8", "-h", "db", "-U", "me", "bench"],
            vec!["ssh", "me@db", "uptime"],
            vec!["psql", "--password", "-h", "h"],
            vec!["/opt/postgresql@16/bin/pgbench", "--file=/a/b@c.sql"],
            vec!["psql", "-c", "select a::text, password from users"],
            vec!["curl", "https://example.org/a/b@c"],
            vec!["docker", "run", "host:5000/image@sha256:ab"],
            vec!["env", "PGPASSFILE=/x", "PWD=/y", "PGREQUIREAUTH=password", "psql"],
            vec!["postgres", "-c", "password_encryption=md5"],
            vec!["echo", "***"],
        ] {
            let command = command(&words);
            assert_eq!(command.shown(), words);
            assert!(!command.has_secret() && !command.is_incomplete(), "{words:?}");
        }
    }

    #[test]
    fn messages_keep_their_punctuation() {
        for (text, shown) in [
            ("the password: use PGPASSWORD", "the password: use PGPASSWORD"),
            ("cannot use \"postgres:/u:s3cret@h\"", "cannot use \"postgres:/u:***@h\""),
            ("unexpected argument 'password=s3cret'", "unexpected argument 'password=***'"),
            ("no run u/s3cret@h", "no run u/***@h"),
            (
                "1 | metrics-token = 5s3cret\n  |  ^^\nwrong",
                "1 | metrics-token = ***\n  |  ^^\nwrong",
            ),
        ] {
            assert_eq!(redacted(text), shown);
        }
    }

    proptest! {
        #[test]
        fn a_secret_never_remains(
            secret in "[a-zA-Z0-9/?:=&+ '\"%]{0,6}s3cret[a-zA-Z0-9/?:=+ %]{0,6}",
            form in 0_usize..7,
        ) {
            let words = match form {
                0 => vec!["psql".to_owned(), format!("postgresql://u:{secret}@h/d")],
                1 => vec!["env".to_owned(), format!("PGPASSWORD={secret}")],
                2 => vec!["x".to_owned(), format!("--password={secret}")],
                3 => vec!["x".to_owned(), "--password".to_owned(), secret],
                4 => vec!["x".to_owned(), format!("password='{}'", secret.replace('\'', "\\'"))],
                5 => vec!["curl".to_owned(), "-u".to_owned(), format!("u:{secret}")],
                _ => vec!["sh".to_owned(), "-c".to_owned(),
                          format!("PGPASSWORD='{}' psql", secret.replace('\'', ""))],
            };
            let command = CommandLine::from(words);
            prop_assert!(!command.to_string().contains("s3cret"), "{}", command);
            let stored = CommandLine::from(command.shown());
            prop_assert!(!stored.has_secret(), "{}", stored);
        }

        #[test]
        fn any_text_can_be_shown(text in any::<String>(), form in 0_usize..3) {
            let _ = redacted(&text);
            let option = ["-c", "-u", "--password"][form].to_owned();
            let _ = CommandLine::from(vec![option, text]).shown();
        }
    }
}
