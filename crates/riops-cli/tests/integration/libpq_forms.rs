//! Connection strings, options, variables and files, generated from a seed.

use std::fmt::Write as _;
use std::path::PathBuf;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Where servers listen, and a port where none does.
pub(crate) struct Places {
    pub(crate) ports: [u16; 2],
    pub(crate) dead: u16,
    pub(crate) folders: [PathBuf; 2],
}

/// Connection settings of a user: typed, in files and in variables.
#[derive(Debug, Clone, Default)]
pub(crate) struct Form {
    pub(crate) database: Option<String>,
    /// Values of -h, -p and -U.
    pub(crate) beside: Vec<(&'static str, String)>,
    pub(crate) variables: Vec<(&'static str, String)>,
    pub(crate) services: Option<String>,
    pub(crate) passwords: Option<String>,
}

impl Form {
    pub(crate) fn new(database: &str) -> Self {
        Self { database: Some(database.to_owned()), ..Self::default() }
    }

    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }
}

/// A generator of numbers (`SplitMix64`).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 11).unwrap() % limit
    }

    /// True in one of so many cases.
    fn is_one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }

    fn choose<'a, T>(&mut self, values: &'a [T]) -> &'a T {
        &values[self.below(values.len())]
    }
}

const USERS: [&str; 8] = ["me", "o'neil", "a b", "üser", "x@y", "p:q", r"back\slash", "u%20"];
const DATABASES: [&str; 8] = ["bench", "My DB", "a=b", "d/e", "täst", "x'y", "-", "%41"];
const PASSWORDS: [&str; 6] = ["secret", "p w", "s:e@c/r?e&t=%", r"\", "it's", "ü"];
const OPTIONS: [&str; 3] = ["-c geqo=off", r"-c search_path=a\ b", "-csearch_path=a,b"];
const NAMES: [&str; 3] = ["app", "my app", "a'b"];
/// Parameters that say nothing about the server, with their values.
const OTHERS: [(&str, &str); 13] = [
    ("connect_timeout", "5"),
    ("connect_timeout", "-1"),
    ("sslmode", "disable"),
    ("sslmode", "prefer"),
    ("sslmode", "allow"),
    ("sslmode", "strict"),
    ("sslrootcert", "/nonexistent.crt"),
    ("sslcert", "/nonexistent.crt"),
    ("krbsrvname", "x"),
    ("keepalives_idle", "9"),
    ("target_session_attrs", "any"),
    ("ssl_min_protocol_version", "TLSv1"),
    ("colour", "blue"),
];
/// Ends of URLs with an error, or nearly one.
const ENDS: [&str; 11] = [
    "&",
    "&&",
    "&user",
    "&user=a=b",
    "&user=%zz",
    "&user=%00",
    "&sslmode=allow",
    "&ssl=false",
    "&a%62c=1",
    "%",
    "&user=",
];

/// Makes forms for these servers.
pub(crate) struct Maker<'a> {
    pub(crate) random: Random,
    pub(crate) places: &'a Places,
}

impl Maker<'_> {
    fn host(&mut self) -> String {
        let [a, b] = &self.places.folders;
        let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
        self.random.choose(&["127.0.0.1", "127.0.0.1", "::1", "localhost", a, b]).to_string()
    }

    fn port(&mut self) -> String {
        let [first, second] = self.places.ports;
        let dead = self.places.dead;
        match self.random.below(12) {
            0 => dead.to_string(),
            1 => String::new(),
            draw if draw % 2 == 0 => first.to_string(),
            _ => second.to_string(),
        }
    }

    /// A list of one to three values.
    fn list(&mut self, value: fn(&mut Self) -> String) -> String {
        let count = 1 + self.random.below(8) / 6 + self.random.below(8) / 7;
        (0..count).map(|_| value(self)).collect::<Vec<_>>().join(",")
    }

    /// Settings with their values, in random order, most of which select a server.
    fn settings(&mut self) -> Vec<(&'static str, String)> {
        let mut settings = Vec::new();
        if !self.random.is_one_in(6) {
            settings.push(("host", self.list(Self::host)));
        }
        if self.random.is_one_in(6) {
            settings.push((
                "hostaddr",
                self.list(|maker| maker.random.choose(&["127.0.0.1", "::1", ""]).to_string()),
            ));
        }
        if !self.random.is_one_in(8) {
            let is_one = !self.random.is_one_in(5);
            settings.push(("port", if is_one { self.port() } else { self.list(Self::port) }));
        }
        let mut some = |cases, name, values: &[&str]| {
            if self.random.is_one_in(cases) {
                settings.push((name, (*self.random.choose(values)).to_owned()));
            }
        };
        some(2, "user", &USERS);
        some(2, "dbname", &DATABASES);
        some(2, "password", &PASSWORDS);
        some(6, "options", &OPTIONS);
        some(6, "application_name", &NAMES);
        some(10, "user", &USERS);
        some(12, "dbname", &[""]);
        some(12, "host", &[""]);
        if self.random.is_one_in(5) {
            let (name, value) = *self.random.choose(&OTHERS);
            settings.push((name, value.to_owned()));
        }
        for place in (1..settings.len()).rev() {
            settings.swap(place, self.random.below(place + 1));
        }
        settings
    }

    fn pairs(&mut self) -> String {
        let mut text = String::new();
        for (name, value) in self.settings() {
            let is_quoted = self.random.is_one_in(3) || value.is_empty();
            let (equals, end) = (
                *self.random.choose(&["=", "=", " = ", "=\t"]),
                *self.random.choose(&[" ", " ", "\n", "  "]),
            );
            let mut escaped = String::new();
            for character in value.chars() {
                let is_special = matches!(character, '\'' | '\\') || !is_quoted && character == ' ';
                if is_special || self.random.is_one_in(12) {
                    escaped.push('\\');
                }
                escaped.push(character);
            }
            let quote = if is_quoted { "'" } else { "" };
            write!(text, "{name}{equals}{quote}{escaped}{quote}{end}").unwrap();
        }
        match self.random.below(24) {
            0 => text.push('\''),
            1 => text.push('='),
            2 => text.push_str("user"),
            3 => text.push_str("user='x"),
            4 => text.push_str(r"user=x\"),
            5 => text.push_str("user="),
            6 => text.push_str("user='x'dbname='y'"),
            7 => text.push_str("requiressl=0"),
            8 => text.push_str("servce=a"),
            _ => {}
        }
        text
    }

    fn encode(&mut self, text: &str) -> String {
        if self.random.is_one_in(4) && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return text.bytes().fold(String::new(), |mut all, byte| {
                write!(all, "%{byte:02x}").unwrap();
                all
            });
        }
        utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
    }

    fn url(&mut self) -> String {
        let mut url = (*self.random.choose(&["postgresql://", "postgres://"])).to_owned();
        if self.random.is_one_in(2) {
            let user = *self.random.choose(&USERS);
            url += &self.encode(user);
            if self.random.is_one_in(2) {
                let password = *self.random.choose(&PASSWORDS);
                url = format!("{url}:{}", self.encode(password));
            }
            url.push('@');
        }
        if !self.random.is_one_in(5) {
            url += &self.list(|maker| {
                let host = match maker.host() {
                    host if host.contains(':') => format!("[{host}]"),
                    host if host.starts_with('/') => maker.encode(&host),
                    host => host,
                };
                let port = if maker.random.is_one_in(5) {
                    String::new()
                } else {
                    format!(":{}", maker.port())
                };
                host + &port
            });
        }
        if !self.random.is_one_in(4) {
            let database = *self.random.choose(&DATABASES);
            url = format!("{url}/{}", self.encode(database));
        }
        if self.random.is_one_in(2) {
            let mut all = self.settings();
            // The number of ports would rarely match the number of hosts before them.
            if !self.random.is_one_in(4) {
                all.retain(|(name, _)| !name.starts_with("host") && *name != "port");
            }
            let count = self.random.below(4);
            let chosen: Vec<_> = all.iter().take(count).collect();
            let pairs: Vec<_> = chosen
                .iter()
                .map(|(name, value)| format!("{name}={}", self.encode(value)))
                .collect();
            url = format!("{url}?{}", pairs.join("&"));
        }
        if url.contains('?') && self.random.is_one_in(3) {
            let end = *self.random.choose(&ENDS);
            url += end;
        }
        url
    }

    fn variables(&mut self, form: &mut Form) {
        let cases = if form.database.is_some() { 4 } else { 2 };
        for (name, variable) in [
            ("host", "PGHOST"),
            ("port", "PGPORT"),
            ("user", "PGUSER"),
            ("dbname", "PGDATABASE"),
            ("password", "PGPASSWORD"),
            ("options", "PGOPTIONS"),
            ("application_name", "PGAPPNAME"),
            ("hostaddr", "PGHOSTADDR"),
        ] {
            if self.random.is_one_in(cases)
                && let Some((_, value)) =
                    self.settings().into_iter().find(|(known, _)| *known == name)
            {
                form.variables.push((variable, value));
            }
        }
        if self.random.is_one_in(4) {
            let (variable, value) = *self.random.choose(&[
                ("PGTZ", "Asia/Tokyo"),
                ("PGDATESTYLE", "SQL, DMY"),
                ("PGGEQO", "Off"),
                ("PGTZ", "Default"),
                ("PGSSLMODE", "allow"),
                ("PGREQUIRESSL", "0"),
                ("PGCONNECT_TIMEOUT", "3"),
                ("PGKRBSRVNAME", "x"),
                ("PGGSSENCMODE", "disable"),
                ("PGPORT", ""),
                ("PGSSLROOTCERT", "/nonexistent.crt"),
                ("PGTARGETSESSIONATTRS", "best"),
            ]);
            form.variables.push((variable, value.to_owned()));
        }
    }

    fn services(&mut self, form: &mut Form) {
        let mut text = "# services\n[other]\nport=1\n[a]\n".to_owned();
        let (all, again) = (self.settings(), self.settings());
        for (name, value) in all.iter().chain(&again) {
            writeln!(text, "{name}={value}").unwrap();
        }
        if self.random.is_one_in(4) {
            text += *self.random.choose(&[
                " # no comment\n",
                "port = 1\n",
                "host\n",
                "service=b\n",
                "[a]\nuser=z\n",
            ]);
        }
        form.services = Some(text + "\n[b]x\nuser=of_b\n");
        let name = *self.random.choose(&["a", "a", "a", "b", "none"]);
        if self.random.is_one_in(2) {
            form.variables.push(("PGSERVICE", name.to_owned()));
        } else {
            let text = form.database.clone().unwrap_or_default();
            if text.contains("://") {
                let separator = if text.contains('?') { '&' } else { '?' };
                form.database = Some(format!("{text}{separator}service={name}"));
            } else if text.contains('=') || text.is_empty() {
                form.database = Some(format!("service={name} {text}"));
            }
        }
        if self.random.is_one_in(12) {
            form.variables.push(("PGSERVICEFILE", "/nonexistent".to_owned()));
        }
    }

    fn passwords(&mut self, form: &mut Form) {
        let mut text = "# host:port:database:user:password\n\n".to_owned();
        for _ in 0..=self.random.below(6) {
            let host = self.host();
            let port = self.places.ports[self.random.below(2)].to_string();
            let fields =
                [&host, &port, *self.random.choose(&DATABASES), *self.random.choose(&USERS)];
            for field in fields {
                // A colon may be written without a backslash.
                let is_escaped = self.random.is_one_in(2);
                let escaped = if is_escaped {
                    field.replace('\\', r"\\").replace(':', r"\:")
                } else {
                    field.replace('\\', r"\\")
                };
                text += if self.random.is_one_in(2) { "*" } else { &escaped };
                text.push(':');
            }
            text += *self.random.choose(&[
                "one", "two", r"th\:ree", r"fo\\ur", "five:six", r"seven\", "", "eight\r",
            ]);
            text.push('\n');
        }
        form.passwords = Some(text);
    }

    pub(crate) fn form(&mut self) -> Form {
        let mut form = Form::default();
        match self.random.below(10) {
            0 => {}
            1 => {
                form.database =
                    Some(self.random.choose(&["bench", "My DB", " x ", "ü", ""]).to_string());
            }
            2..=5 => form.database = Some(self.url()),
            _ => form.database = Some(self.pairs()),
        }
        self.variables(&mut form);
        if self.random.is_one_in(4) {
            let host = if self.random.is_one_in(2) { self.host() } else { self.list(Self::host) };
            form.beside.push(("host", host));
        }
        if self.random.is_one_in(4) {
            form.beside.push(("port", self.port()));
        }
        if self.random.is_one_in(5) {
            form.beside.push(("user", self.random.choose(&USERS).to_string()));
        }
        if self.random.is_one_in(5) {
            self.services(&mut form);
        }
        if self.random.is_one_in(3) {
            self.passwords(&mut form);
        }
        form
    }
}
