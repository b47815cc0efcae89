//! Reads scripts and tokens from files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use riops::host::files::{TEXT_BYTES_MAX, read_limited, rest_limited, text_limited};
use riops::serve::Token;

use crate::failure::UsageError;
use crate::ui::Ui;

/// Maximum size of a file with a token, of which 16 characters suffice.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// Returns the token in the file, or without a file the token that was given as text.
pub(crate) fn token(text: Option<&str>, file: Option<&Path>, ui: Ui) -> Result<Option<Token>> {
    let Some(file) = file else {
        return Ok(text.map(Token::new).transpose()?);
    };
    let shown = file.display();
    let contents = text_limited(file, TOKEN_BYTES_MAX)
        .with_context(|| format!("cannot read the token file {shown}"))?;
    if file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0) {
        ui.notice(&format!(
            "other users can access the token file {shown}; run: chmod 600 {shown}"
        ));
    }
    let token = Token::new(contents.trim()).with_context(|| format!("token file {shown}"))?;
    Ok(Some(token))
}

/// Reads a script; `-` is standard input.
pub(crate) fn read_script(file: &str) -> Result<String> {
    let bytes = if file == "-" {
        rest_limited(&mut std::io::stdin(), TEXT_BYTES_MAX).context("cannot read standard input")?
    } else {
        read_limited(Path::new(file), TEXT_BYTES_MAX)
            .with_context(|| format!("cannot read {file}"))?
    };
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
        let line = valid.split(|byte| *byte == b'\n').count();
        UsageError(format!("{file}:{line}: the script is not valid UTF-8")).into()
    })
}
