//! Prints a result, and writes it to the files of `--output`. They are opened before the result is known: a path that cannot
//! be written fails before the measurement.

use std::collections::BTreeSet;
use std::fs::create_dir_all;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf, absolute};

use anyhow::{Context, Result, bail};
use riops::host::OutputFile;
use riops::report::{Detail, Lines, Rendered};
use riops::units::text::lines;

use crate::args::output::{AnswerOptions, Output, OutputOptions};
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
        if path.as_os_str().as_bytes().ends_with(b"/") {
            bail!("cannot write {}: it is the name of a directory", path.display());
        }
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

/// How much a text on standard output says.
pub(crate) fn detail(details: bool, ui: Ui) -> Detail {
    match (details, ui.is_quiet()) {
        (true, _) => Detail::Everything,
        (false, true) => Detail::AnswerWithoutWarnings,
        (false, false) => Detail::Answer,
    }
}

/// A file or a folder for a form of the result.
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
    /// How much the text on standard output says.
    pub(crate) detail: Detail,
    ui: Ui,
}

impl Outputs {
    /// Opens the files. Without a form for standard output, `default` is printed.
    ///
    /// # Errors
    /// If a file cannot be written, or if several forms are meant for standard output.
    pub(crate) fn open(options: &OutputOptions, default: Option<&str>, ui: Ui) -> Result<Self> {
        let (mut shown, mut places) = (None, Vec::new());
        let mut files = BTreeSet::new();
        for Output { form, file } in &options.output {
            if let Some(file) = file
                && !files.insert(file.canonicalize().or_else(|_| absolute(file))?)
            {
                return refuse(format!("two forms cannot be written to {}", file.display()));
            }
            let place = match file {
                _ if form == "png" => {
                    let folder = file.as_deref().unwrap_or(Path::new("."));
                    create_dir_all(folder)
                        .and_then(|()| OutputFile::create(&folder.join("riops.png")))
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
        let shown = shown.or_else(|| default.map(str::to_owned));
        Ok(Self { shown, places, detail: Detail::Everything, ui })
    }

    /// Opens the files of a result that has an answer, which the text on standard output shows unless everything was requested.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn open_answer(options: &AnswerOptions, ui: Ui) -> Result<Self> {
        let detail = detail(options.details, ui);
        Ok(Self { detail, ..Self::open(&options.outputs, Some("text"), ui)? })
    }

    /// The options that select the store, as text for a shell.
    pub(crate) fn store_options(&self) -> &'static str {
        &self.ui.given().store
    }

    /// Prints and writes the result, which `render` returns in a form for these lines: each form, whatever happens to the
    /// others.
    ///
    /// # Errors
    /// The first failure; the others are printed.
    pub(crate) fn emit(self, render: impl Fn(&str, Lines) -> Result<Rendered>) -> Result<()> {
        let lines = Lines { detail: self.detail, ..ui::output_lines() };
        let shown = self.shown.as_ref().map(|form| render(form, lines));
        let printed = shown.map_or(Ok(()), |rendered| print(&rendered?, self.ui));
        self.write(printed, render)
    }

    /// Writes the result to the files alone, after it was `printed`.
    ///
    /// # Errors
    /// The first failure; the others are printed.
    pub(crate) fn write(
        self,
        printed: Result<()>,
        render: impl Fn(&str, Lines) -> Result<Rendered>,
    ) -> Result<()> {
        let ui = self.ui;
        let written = self.places.into_iter().map(|(form, place)| {
            let rendered = render(&form, Lines::from(usize::MAX))?;
            place.write(rendered, ui)
        });
        let mut all = std::iter::once(printed).chain(written).filter_map(Result::err);
        let Some(first) = all.next() else {
            return Ok(());
        };
        all.for_each(|error| ui.error(&format!("{error:#}")));
        Err(first)
    }
}

impl Place {
    fn write(self, rendered: Rendered, ui: Ui) -> Result<()> {
        match (self, rendered) {
            (Self::Folder(folder), Rendered::Images(images)) => {
                if images.is_empty() {
                    ui.notice("there are no charts to draw");
                }
                for image in images {
                    let file = OpenFile::open(&folder.join(image.name + ".png"))?;
                    file.write(&image.bytes, ui)?;
                }
                Ok(())
            }
            (Self::File(file), Rendered::Page(page)) => file.write(page.as_bytes(), ui),
            // Characters that a terminal obeys are escaped.
            (Self::File(file), text) => file.write(lines(&text.into_text()).as_bytes(), ui),
            (Self::Folder(_), _) => Ok(()),
        }
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
