//! The options that commands in messages repeat: they select the server and the store.
//!
//! The library knows no options. It writes a command in a message between backquotes, and [`Given`] completes
//! the commands when the message is printed.

use std::ffi::OsString;

/// The options that were given, as text for a shell, each with a leading space.
#[derive(Debug, Default)]
pub(crate) struct Given {
    /// Options that select the server, as words.
    pub(crate) target: Vec<OsString>,
    /// Options that select the server.
    pub(crate) server: String,
    /// Options of the embedded server.
    pub(crate) embedded: String,
    /// Options that find the embedded server once it has been started.
    pub(crate) embedded_home: String,
    /// The words of `riops run`, `run` first, without the options for server, store and output, quoted for a shell; empty for
    /// other commands.
    pub(crate) run: Vec<String>,
    /// Options that select the store.
    pub(crate) store: String,
    /// Whether the options had a password, which commands do not repeat.
    pub(crate) omits_password: bool,
}

impl Given {
    /// Adds the options to each command in a message.
    pub(crate) fn complete(&self, text: &str) -> String {
        let mut complete = String::with_capacity(text.len());
        let mut has_address = false;
        for (position, part) in text.split('`').enumerate() {
            if position > 0 {
                complete.push('`');
            }
            complete.push_str(part);
            if position % 2 == 1 {
                for options in self.options_of(part) {
                    complete.push_str(options);
                    has_address |= !options.is_empty();
                }
            }
        }
        if has_address && self.omits_password {
            complete.push_str(" (the password is omitted: set PGPASSWORD or use a password file)");
        }
        complete
    }

    /// The options that a command takes; none for a text that is not a command of riops.
    fn options_of(&self, command: &str) -> [&str; 2] {
        let mut words = command.split(' ');
        match (words.next(), words.next()) {
            (Some("riops"), Some("prepare" | "warm" | "cleanup")) => [&self.server, ""],
            (Some("riops"), Some("run" | "verify" | "doctor")) => [&self.server, &self.store],
            (Some("riops"), Some("server")) => match words.next() {
                Some("start") => [&self.embedded, ""],
                Some("restore") => [&self.server, ""],
                _ => [&self.embedded_home, ""],
            },
            (
                Some("riops"),
                Some("runs" | "report" | "compare" | "serve" | "experiments" | "last"),
            ) => ["", &self.store],
            _ => [""; 2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_the_sources_of_an_omitted_password() {
        let server = " -d postgresql://u@h".to_owned();
        let given = Given { server, omits_password: true, ..Given::default() };
        let hint = " (the password is omitted: set PGPASSWORD or use a password file)";
        let complete = given.complete("run `riops prepare rows`");
        assert_eq!(complete, format!("run `riops prepare rows -d postgresql://u@h`{hint}"));
        assert_eq!(given.complete("`riops runs list`"), "`riops runs list`");
    }

    #[test]
    fn commands_in_messages_are_completed_with_the_options_that_they_take() {
        let given = Given {
            server: " -d bench".to_owned(),
            embedded: " --server-data /d --server-port 1".to_owned(),
            embedded_home: " --server-data /d".to_owned(),
            store: " --store s".to_owned(),
            ..Given::default()
        };
        for (text, complete) in [
            ("run `riops prepare rows`, or not", "run `riops prepare rows -d bench`, or not"),
            (
                "`riops runs list` or `riops server stop`",
                "`riops runs list --store s` or `riops server stop --server-data /d`",
            ),
            ("`riops run rows`", "`riops run rows -d bench --store s`"),
            ("of another riops run cbc", "of another riops run cbc"),
            ("syntax error at `select`", "syntax error at `select`"),
            ("a lone ` riops run", "a lone ` riops run"),
        ] {
            assert_eq!(given.complete(text), complete);
        }
    }
}
