//! Settings of the server that a run changes, and that it gives back.
//!
//! Sessions set what they may set for themselves. Everything else is changed with ALTER SYSTEM, and with a restart where
//! PostgreSQL requires one. The previous values are in the setting `riops.previous_settings` of the server until they are
//! restored, so that another command can restore them if riops was killed. A session with a special name, which exists until
//! then, tells the two cases apart.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::error::RunError;
use crate::dataset::Holders;
use crate::host::Interrupt;
use crate::server::{Connection, ConnectionError, Feature, Server};
use riops_model::plan::Plan;
use riops_model::record::{Events, RunEvent};
use riops_model::units::format::joined;
use riops_model::units::sql::{identifier, literal};
use riops_model::units::text::nearest;

/// The setting with the previous values, as JSON.
const JOURNAL: &str = "riops.previous_settings";
/// Name of the session that exists while the settings are changed.
const GUARD: &str = "riops settings";
/// Longest wait for a server that restarts, or for the reload of its files.
const READY_WITHIN: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(20);
/// Settings that are lists: each element is quoted separately.
const LISTS: [&str; 6] = [
    "local_preload_libraries",
    "search_path",
    "session_preload_libraries",
    "shared_preload_libraries",
    "temp_tablespaces",
    "unix_socket_directories",
];

/// Values that ALTER SYSTEM had set; `None` without one.
type Previous = BTreeMap<String, Option<String>>;

const OTHERS: &str = include_str!("../../sql/target/other_sessions.sql");

/// When a setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Session,
    Reload,
    Restart,
}

/// The settings of a run, in effect until they are [restored](Self::restore).
pub(super) struct RunSettings {
    server: Server,
    interrupt: Interrupt,
    /// The values that sessions of the server see, by name.
    pub(super) effective: BTreeMap<String, String>,
    /// The statements with which a session sets its own values and checks all of them.
    pub(super) session_sql: Vec<String>,
    /// Whether settings of the whole server are changed.
    is_changed: bool,
    /// The session that exists meanwhile, except during a restart.
    guard: Option<Connection>,
}

impl RunSettings {
    /// Brings the settings into effect.
    ///
    /// # Errors
    /// [`RunError`] if there is no such setting, the server refuses the value, others use the server, or a restart is required
    /// and no command for it is known. Changes until then are undone.
    pub(super) fn apply(
        plan: &Plan,
        server: &Server,
        interrupt: &Interrupt,
        events: &Events,
    ) -> Result<Self, RunError> {
        let wanted = &plan.settings;
        let mut settings = Self::new(server, interrupt.clone());
        if wanted.is_empty() {
            return Ok(settings);
        }
        server.await_connection(plan.connect_within_s, interrupt)?;
        let applied = settings.apply_all(wanted, events);
        if let Err(error) = applied {
            settings.restore(events);
            return Err(error);
        }
        Ok(settings)
    }

    fn new(server: &Server, interrupt: Interrupt) -> Self {
        Self {
            server: server.clone(),
            interrupt,
            effective: BTreeMap::new(),
            session_sql: Vec::new(),
            is_changed: false,
            guard: None,
        }
    }

    fn apply_all(
        &mut self,
        wanted: &BTreeMap<String, String>,
        events: &Events,
    ) -> Result<(), RunError> {
        let mut control = self.connect()?;
        if !control.dialect().has(Feature::Catalogs) {
            return unsuitable("--setting requires a server with pg_settings");
        }
        let mut of_server = Vec::new();
        for (name, value) in wanted {
            match level(&mut control, name)? {
                Level::Session => {
                    let set = format!("set {} = {}", quoted_name(name), quoted_value(name, value));
                    control.execute(&set)?;
                    self.session_sql.push(set);
                }
                Level::Restart if self.server.embedded => {
                    return unsuitable(format!(
                        "{name} takes effect when the server starts: use --server-set {name}={value}, with an embedded server that is not running"
                    ));
                }
                Level::Restart if self.server.changes.restart.is_none() => {
                    return unsuitable(format!(
                        "{name} takes effect when the server starts: {NAME_COMMAND}"
                    ));
                }
                Level::Reload | Level::Restart => of_server.push((name, value)),
            }
        }
        if !of_server.is_empty() {
            let own = std::mem::take(&mut self.session_sql);
            drop(control);
            self.change_server(&of_server, events)?;
            control = self.connect()?;
            own.iter().try_for_each(|set| control.execute(set))?;
            self.session_sql = own;
        }
        for name in wanted.keys() {
            let value = control.query_value(&format!("show {}", quoted_name(name)))?;
            self.effective.insert(name.clone(), value.unwrap_or_default());
        }
        self.session_sql.extend(self.effective.iter().map(|(name, value)| check_sql(name, value)));
        Ok(())
    }

    /// Changes settings of the whole server.
    fn change_server(
        &mut self,
        wanted: &[(&String, &String)],
        events: &Events,
    ) -> Result<(), RunError> {
        self.server.require_dedicated_sessions(&self.interrupt)?;
        let mut control = self.connect()?;
        if is_guarded(&mut control)? {
            return unsuitable(RUNNING);
        }
        if !left(&mut control)?.is_empty() {
            return unsuitable(
                "settings of this server are not restored yet: `riops server restore`",
            );
        }
        let others = control.query(OTHERS)?;
        let others = Holders(others.into_iter().flatten().flatten().collect());
        if !self.server.changes.of_shared && !self.server.embedded && others != Holders::default() {
            return unsuitable(format!(
                "others use this server{others}: --trust changes its settings nevertheless"
            ));
        }
        let mut previous = Previous::new();
        for (name, _) in wanted {
            previous.insert((*name).clone(), control.query_value(&previous_sql(name))?);
        }
        guard(&mut control)?;
        self.is_changed = true;
        let control = self.guard.insert(control);
        note(control, &previous)?;
        reload(control, &self.server, &self.interrupt)?;
        for (name, value) in wanted {
            control.execute(&alter(name, Some(value)))?;
        }
        events.notice(&format!(
            "changed on the server until the end of the run: {}",
            joined(wanted.iter().map(|(name, value)| format!("{name} = {value}")), ", ")
        ));
        self.take_effect()
    }

    /// Lets the server read its files, and restarts it if it has to.
    fn take_effect(&mut self) -> Result<(), RunError> {
        reload(&mut self.connect()?, &self.server, &self.interrupt)?;
        let mut control = self.connect()?;
        // Others may wait for a restart, too, which the user has not asked for.
        let names =
            joined(left(&mut control)?.keys().map(|name| literal(&name.to_lowercase())), ", ");
        let pending = format!(
            "select count(*) from pg_settings where pending_restart and lower(name) in ({names})"
        );
        let is_pending = control.query_value(&pending)?.is_some_and(|count| count != "0");
        let Some(command) = self.server.changes.restart.clone().filter(|_| is_pending) else {
            return Ok(());
        };
        drop(control);
        self.guard = None;
        let mut control = restart(&command, &self.server, &self.interrupt)?;
        guard(&mut control)?;
        self.guard = Some(control);
        Ok(())
    }

    /// Restores the previous values of the server. A failure is a notice: the result of the run exists.
    pub(super) fn restore(&mut self, events: &Events) {
        if !self.is_changed {
            return;
        }
        // An interrupted run is not a reason to leave them.
        self.interrupt = Interrupt::new();
        if let Err(error) = self.restore_all() {
            let text = format!(
                "the settings of the server could not be restored: {error}: `riops server restore`"
            );
            events.send(&RunEvent::Notice { text, is_important: true });
        }
        (self.is_changed, self.guard) = (false, None);
    }

    fn restore_all(&mut self) -> Result<Vec<String>, RunError> {
        // The server may have restarted during the run.
        let mut control = self.server.connect_within(READY_WITHIN, PAUSE, &self.interrupt)?;
        let changed = left(&mut control)?;
        for (name, previous) in &changed {
            control.execute(&alter(name, previous.as_ref()))?;
        }
        drop(control);
        self.take_effect()?;
        let mut control = self.connect()?;
        control.execute(&alter(JOURNAL, None))?;
        reload(&mut control, &self.server, &self.interrupt)?;
        Ok(changed.into_keys().collect())
    }

    fn connect(&self) -> Result<Connection, ConnectionError> {
        Connection::open(&self.server.conninfo, &self.interrupt)
    }
}

/// Restores the settings of a server that a killed riops left changed. Returns their names.
///
/// # Errors
/// [`RunError`] if another riops needs them, or the server cannot be reached or restarted.
pub fn restore_settings(server: &Server) -> Result<Vec<String>, RunError> {
    let interrupt = Interrupt::new();
    let mut control = Connection::open(&server.conninfo, &interrupt)?;
    let changed = left(&mut control)?;
    if changed.is_empty() {
        return Ok(Vec::new());
    }
    if is_guarded(&mut control)? {
        return unsuitable(RUNNING);
    }
    let needs_restart = changed.keys().map(|name| level(&mut control, name));
    let needs_restart = needs_restart.collect::<Result<Vec<_>, _>>()?.contains(&Level::Restart);
    if needs_restart && server.changes.restart.is_none() {
        return unsuitable(format!("the server must restart, too: {NAME_COMMAND}"));
    }
    guard(&mut control)?;
    let mut settings = RunSettings::new(server, interrupt);
    settings.guard = Some(control);
    settings.restore_all()
}

/// Returns a warning if a killed riops left settings of this server changed.
///
/// # Errors
/// [`ConnectionError`] if a query fails.
pub fn settings_warning(control: &mut Connection) -> Result<Option<String>, ConnectionError> {
    if !control.dialect().has(Feature::Catalogs) {
        return Ok(None);
    }
    let changed = left(control)?;
    if changed.is_empty() || is_guarded(control)? {
        return Ok(None);
    }
    let names = joined(changed.into_keys(), ", ");
    Ok(Some(format!(
        "a riops that was killed left settings of this server changed ({names}): `riops server restore` restores them"
    )))
}

fn unsuitable<T>(text: impl Into<String>) -> Result<T, RunError> {
    Err(RunError::Unsuitable(text.into()))
}

const NAME_COMMAND: &str =
    "--restart names the command that restarts it, as in --restart 'pg_ctlcluster 18 main restart'";
const RUNNING: &str = "another riops has changed settings of this server and is still running";

/// Names a session that exists while the settings are changed.
fn guard(control: &mut Connection) -> Result<(), ConnectionError> {
    control.execute(&format!("set application_name = {}", literal(GUARD)))
}

/// Whether another session has that name.
fn is_guarded(control: &mut Connection) -> Result<bool, ConnectionError> {
    let sql = format!(
        "select count(*) > 0 from pg_stat_activity where application_name = {} and pid <> pg_backend_pid()",
        literal(GUARD)
    );
    Ok(control.query_value(&sql)?.as_deref() == Some("t"))
}

/// Stores the previous values in the server.
fn note(control: &mut Connection, previous: &Previous) -> Result<(), RunError> {
    let text = serde_json::to_string(previous).unwrap_or_default();
    // The server accepts a setting without an owner in its file only if the session has one of that name.
    control.execute(&format!("set {} = ''", quoted_name(JOURNAL)))?;
    Ok(control.execute(&alter(JOURNAL, Some(&text)))?)
}

/// Returns the settings that are not restored yet.
fn left(control: &mut Connection) -> Result<Previous, ConnectionError> {
    let text =
        control.query_value(&format!("select current_setting({}, true)", literal(JOURNAL)))?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// Returns when a setting takes effect.
fn level(control: &mut Connection, name: &str) -> Result<Level, RunError> {
    let sql = format!("select context from pg_settings where name = lower({})", literal(name));
    match control.query_value(&sql)?.as_deref() {
        Some("user" | "superuser") => Ok(Level::Session),
        Some("postmaster") => Ok(Level::Restart),
        Some("internal") => {
            unsuitable(format!("{name} is fixed when the server is built or initialized"))
        }
        Some(_) => Ok(Level::Reload),
        // The settings of extensions are known once these are loaded.
        None if name.contains('.') => Ok(Level::Session),
        None => {
            let names = control.query("select name from pg_settings")?;
            let names: Vec<String> = names.into_iter().flatten().flatten().collect();
            let similar = nearest(name, names.iter().map(String::as_str));
            let tip = similar.map_or_else(String::new, |name| format!("; did you mean {name}?"));
            unsuitable(format!("the server has no setting \"{name}\"{tip}"))
        }
    }
}

/// Returns the query for the value in postgresql.auto.conf; null without one.
fn previous_sql(name: &str) -> String {
    format!(
        "select setting from pg_file_settings where name = lower({}) and sourcefile like '%postgresql.auto.conf' order by seqno desc limit 1",
        literal(name)
    )
}

fn alter(name: &str, value: Option<&String>) -> String {
    match value {
        Some(value) => {
            format!("alter system set {} = {}", quoted_name(name), quoted_value(name, value))
        }
        None => format!("alter system reset {}", quoted_name(name)),
    }
}

/// Returns a name, of which the parts are quoted.
fn quoted_name(name: &str) -> String {
    name.split('.').map(identifier).collect::<Vec<_>>().join(".")
}

fn quoted_value(name: &str, value: &str) -> String {
    if LISTS.contains(&name) {
        return joined(value.split(',').map(|element| literal(element.trim())), ", ");
    }
    literal(value)
}

/// Returns a statement that fails if a session has another value.
fn check_sql(name: &str, value: &str) -> String {
    let (setting, expected) = (literal(name), literal(value));
    format!(
        "do $riops$ begin if current_setting({setting}) is distinct from {expected} then raise exception 'the session has % = %, not %', {setting}, current_setting({setting}), {expected}; end if; end $riops$"
    )
}

/// Lets the server read its files again, and waits until new sessions see them.
fn reload(
    control: &mut Connection,
    server: &Server,
    interrupt: &Interrupt,
) -> Result<(), RunError> {
    let loaded = "select pg_conf_load_time()";
    let before = control.query_value(loaded)?;
    control.execute("select pg_reload_conf()")?;
    let deadline = Instant::now() + READY_WITHIN;
    loop {
        if Connection::open(&server.conninfo, interrupt)?.query_value(loaded)? != before {
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(RunError::Precondition("the server did not read its settings".to_owned()));
        }
        interrupt.pause(PAUSE);
    }
}

/// Restarts the server with a command of the user, and returns a connection to it.
fn restart(command: &str, server: &Server, interrupt: &Interrupt) -> Result<Connection, RunError> {
    let started = "select pg_postmaster_start_time()";
    let before = Connection::open(&server.conninfo, interrupt)?.query_value(started)?;
    let failed =
        |reason: String| RunError::Precondition(format!("--restart '{command}': {reason}"));
    // A server that inherits a pipe would keep it open. Ctrl-C must not end the command between stop and start.
    let status = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .status()
        .map_err(|error| failed(error.to_string()))?;
    if !status.success() {
        return Err(failed(status.to_string()));
    }
    let mut control = server.connect_within(READY_WITHIN, PAUSE, interrupt)?;
    if control.query_value(started)? == before {
        return Err(failed("the server was not restarted".to_owned()));
    }
    Ok(control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_elements_of_a_list_and_the_parts_of_a_name_are_quoted() {
        let sql = |name: &str, value: &str| alter(name, Some(&value.to_owned()));
        assert_eq!(sql("work_mem", "4MB"), r#"alter system set "work_mem" = '4MB'"#);
        assert_eq!(
            sql("shared_preload_libraries", "pg_stat_statements, auto_explain"),
            r#"alter system set "shared_preload_libraries" = 'pg_stat_statements', 'auto_explain'"#
        );
        assert_eq!(
            sql("auto_explain.log_analyze", "it's"),
            r#"alter system set "auto_explain"."log_analyze" = 'it''s'"#
        );
        assert_eq!(alter("work_mem", None), r#"alter system reset "work_mem""#);
        assert!(check_sql("a'b", "c").contains("current_setting('a''b') is distinct from 'c'"));
    }
}
