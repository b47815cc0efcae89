//! Prints a result, and writes it to the files of `--output`. They are opened before the result is known: a path that cannot
//! be written fails before the measurement.

use std::fs::create_dir_all;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use riops::host::OutputFile;
use riops::report::{Lines, Rendered};
use riops::units::text::lines;

use crate::args::output::{Output, OutputOptions};
use crate::failure::refuse;
use crate::ui::{self, Ui};

/// A file that is replaced at once when its contents are complete.
pub(crate) struct OpenFile {
    path: PathBuf,
    file: OutputFile,
    existed: bool,
}

impl OpenFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let existed = path.exists();
        let file =
            OutputFile::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file, existed })
    }

    pub(crate) fn write(mut self, bytes: &[u8], ui: Ui) -> Result<()> {
        let path = self.path.display();
        let written = self.file.write_all(bytes).and_then(|()| self.file.complete());
        written.with_context(|| format!("cannot write {path}"))?;
        ui.notice(&format!("{} {path}", if self.existed { "replaced" } else { "wrote" }));
        Ok(())
    }
}

/// What gets a form of the result.
enum Place {
    File(OpenFile),
    /// The folder of the charts.
    Folder(PathBuf),
}

/// The open files of `--output`.
pub(crate) struct Outputs {
    /// The form for standard output, if there is one.
    shown: Option<String>,
    places: Vec<(String, Place)>,
    ui: Ui,
}

impl Outputs {
    /// Opens the files. Without a form for standard output, `default` is printed.
    ///
    /// # Errors
    /// If a file cannot be written, or if several forms are meant for standard output.
    pub(crate) fn open(options: &OutputOptions, default: Option<&str>, ui: Ui) -> Result<Self> {
        let (mut shown, mut places) = (None, Vec::new());
        for Output { form, file } in &options.output {
            let place = match file {
                _ if form == "png" => {
                    let folder = file.as_deref().unwrap_or(Path::new("."));
                    create_dir_all(folder)
                        .with_context(|| format!("cannot write {}", folder.display()))?;
                    Place::Folder(folder.to_owned())
                }
                Some(path) => Place::File(OpenFile::open(path)?),
                None if shown.is_some() => {
                    return refuse(format!(
                        "only one form can be printed: write the others to files, as in --output {form}=FILE"
                    ));
                }
                None => {
                    shown = Some(form.clone());
                    continue;
                }
            };
            places.push((form.clone(), place));
        }
        Ok(Self { shown: shown.or_else(|| default.map(str::to_owned)), places, ui })
    }

    /// Prints and writes the result, which `render` returns in a form for these lines.
    pub(crate) fn emit(self, render: impl Fn(&str, Lines) -> Result<Rendered>) -> Result<()> {
        if let Some(form) = &self.shown {
            print(&render(form, ui::output_lines())?, self.ui)?;
        }
        self.write(render)
    }

    /// Writes the result to the files alone.
    pub(crate) fn write(self, render: impl Fn(&str, Lines) -> Result<Rendered>) -> Result<()> {
        for (form, place) in self.places {
            match (place, render(&form, Lines::from(usize::MAX))?) {
                (Place::Folder(folder), Rendered::Images(images)) => {
                    for image in images {
                        let file = OpenFile::open(&folder.join(image.name + ".png"))?;
                        file.write(&image.bytes, self.ui)?;
                    }
                }
                (Place::File(file), Rendered::Page(page)) => {
                    file.write(page.as_bytes(), self.ui)?;
                }
                // Characters that a terminal obeys are escaped.
                (Place::File(file), text) => {
                    file.write(lines(&text.into_text()).as_bytes(), self.ui)?;
                }
                (Place::Folder(_), _) => {}
            }
        }
        Ok(())
    }
}

/// Prints a result. The commands in a text get the options for the server and the store.
pub(crate) fn print(rendered: &Rendered, ui: Ui) -> Result<()> {
    match rendered {
        Rendered::Text(text) => ui::print_colored(&ui.given().complete(text)),
        Rendered::Data(text) => ui::print(text),
        Rendered::Page(text) => ui::print_bytes(text.as_bytes()),
        Rendered::Images(_) => Ok(()),
    }
}
