//! What all PNG files need: the embedded font, the file format, the errors.

use std::sync::OnceLock;

use plotters::prelude::FontStyle;

/// The embedded font, so that no installed font is required.
const FONT: &[u8] = include_bytes!("../../../assets/DejaVuSans.ttf");
/// Its name for plotters.
pub(in crate::report) const FAMILY: &str = "riops";

/// Errors of drawing a graph.
#[derive(Debug, thiserror::Error)]
pub enum DrawingError {
    /// The record has no sampled transactions.
    #[error("no transactions were sampled")]
    Empty,
    /// The drawing library failed.
    #[error("drawing failed: {0}")]
    Failed(String),
}

impl DrawingError {
    pub(in crate::report) fn of(error: &dyn std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Makes the font known to plotters.
pub(in crate::report) fn register_font() -> Result<(), DrawingError> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = *REGISTERED
        .get_or_init(|| plotters::style::register_font(FAMILY, FontStyle::Normal, FONT).is_ok());
    registered
        .then_some(())
        .ok_or_else(|| DrawingError::Failed("cannot load the embedded font".to_owned()))
}

/// Returns pixels of three bytes as a PNG file.
pub(in crate::report) fn png_file(
    pixels: &[u8],
    width: u32,
    height: u32,
) -> Result<Vec<u8>, DrawingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(pixels))
        .map_err(|error| DrawingError::of(&error))?;
    Ok(file)
}
