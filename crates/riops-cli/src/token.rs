//! The token of an HTTP server, from an option or from a file.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use riops::host::files::text_limited;
use riops::serve::Token;

use crate::ui::Ui;

/// Maximum size of a file with a token, of which 16 characters suffice.
const FILE_BYTES_MAX: u64 = 4 << 10;

/// Returns the token in a file, or else the one that was given as text.
pub(crate) fn token(text: Option<&str>, file: Option<&Path>, ui: Ui) -> Result<Option<Token>> {
    let Some(file) = file else {
        return Ok(text.map(Token::new).transpose()?);
    };
    let shown = file.display();
    let contents = text_limited(file, FILE_BYTES_MAX)
        .with_context(|| format!("cannot read the token file {shown}"))?;
    if file.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 != 0) {
        ui.notice(&format!(
            "other users can access the token file {shown}; run: chmod 600 {shown}"
        ));
    }
    let token = Token::new(contents.trim()).with_context(|| format!("token file {shown}"))?;
    Ok(Some(token))
}
