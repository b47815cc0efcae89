//! `riops serve`: the dashboard over a store.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use riops::serve::{Dashboard, Settings, Token};
use riops::store;
use riops::store::live::source_of;

use crate::args::Serve;
use crate::file::token;
use crate::stored;
use crate::ui::Ui;

/// Serves the dashboard until Ctrl-C, which is the regular end: the exit code is 0.
pub(crate) fn serve(options: &Serve, ui: Ui) -> Result<ExitCode> {
    let location = stored::location(&options.store, ui)?;
    // One that the environment names, or the default, appears with the first run.
    let is_missing = matches!(store::open_existing(&location, ui.interrupt), Ok(None));
    let variable = std::env::var_os("RIOPS_STORE");
    let typed = options.store.given().filter(|given| variable.as_deref() != Some(*given));
    if is_missing && typed.is_some() {
        bail!("there is no store: {location}; the first run creates it");
    }
    let given = token(options.token.as_deref(), options.token_file.as_deref(), ui)?;
    // Other users of this machine can connect too.
    let is_required = options.allow_edit || !options.listen.is_local();
    let is_generated = given.is_none() && is_required;
    let token = if is_generated { Some(Token::generate()?) } else { given };
    let (opened, stop) = (location.clone(), ui.interrupt.clone());
    let dashboard = Dashboard::open(Settings {
        listen: options.listen.clone(),
        token: token.clone(),
        allow_edit: options.allow_edit,
        open: Arc::new(move || store::open_existing(&opened, &stop)),
        live: source_of(&location, ui.interrupt),
        location: location.to_string(),
    })?;
    if is_missing {
        ui.notice(&format!("there is no store yet: {location}"));
    }
    ui.notice(&format!("runs of {location}; stop with Ctrl-C"));
    let url = dashboard.url();
    // A given token is known already, and would stay in the history of the terminal.
    let url = match token.filter(|_| is_generated) {
        Some(token) => format!("{url}?token={}", token.text()),
        None => url,
    };
    crate::ui::print(&format!("{url}\n"))?;
    dashboard.run(ui.interrupt)?;
    Ok(ExitCode::SUCCESS)
}
