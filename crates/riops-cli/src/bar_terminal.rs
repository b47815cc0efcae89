//! The terminal of progress bars: standard error without its last columns.
//!
//! A progress bar fills its line with spaces, so that the cursor is at its end. On Ctrl-C, the terminal echoes
//! `^C` there. In a full line, the cursor would wrap to the next line, and the bar could not be cleared any more.

use std::fmt::{self, Debug, Formatter};
use std::io::{self, Write};
use std::sync::Mutex;

use indicatif::TermLike;
use terminal_size::{Height, Width, terminal_size_of};

/// Columns of the `^C` of two interruptions: the second one ends the drain.
pub(crate) const ECHO_COLUMNS: usize = 4;
/// Lines and columns of a terminal that does not report its size.
const DEFAULT_SIZE: (u16, u16) = (24, 80);

/// Draws to `output`, usually standard error, whose size `size` returns as lines and columns.
pub(crate) struct BarTerminal<W> {
    output: Mutex<(W, Vec<u8>)>,
    size: fn() -> Option<(u16, u16)>,
}

impl BarTerminal<io::Stderr> {
    pub(crate) fn stderr() -> Self {
        let size = || terminal_size_of(io::stderr()).map(|(Width(w), Height(h))| (h, w));
        Self { output: Mutex::new((io::stderr(), Vec::new())), size }
    }
}

impl<W: Write> BarTerminal<W> {
    /// Adds to the buffer, which `flush` writes at once.
    fn add(&self, text: &str) -> io::Result<()> {
        let mut output = self.output.lock().map_err(|_| io::Error::other("a drawing panicked"))?;
        output.1.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn moved(&self, lines_or_columns: usize, direction: char) -> io::Result<()> {
        if lines_or_columns == 0 {
            return Ok(());
        }
        self.add(&format!("\x1b[{lines_or_columns}{direction}"))
    }
}

impl<W: Write + Send> TermLike for BarTerminal<W> {
    fn width(&self) -> u16 {
        let columns = (self.size)().unwrap_or(DEFAULT_SIZE).1;
        columns.saturating_sub(u16::try_from(ECHO_COLUMNS).unwrap_or_default()).max(1)
    }

    fn height(&self) -> u16 {
        (self.size)().unwrap_or(DEFAULT_SIZE).0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.moved(n, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.add(text)?;
        self.add("\n")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.add(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.add("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let mut output = self.output.lock().map_err(|_| io::Error::other("a drawing panicked"))?;
        let (writer, buffer) = &mut *output;
        let written = writer.write_all(buffer).and_then(|()| writer.flush());
        buffer.clear();
        written
    }
}

impl<W> Debug for BarTerminal<W> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BarTerminal").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Output(Arc<Mutex<Vec<u8>>>);

    impl Write for Output {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_leaves_room_for_the_echo_of_ctrl_c_and_is_cleared() {
        let output = Output::default();
        let terminal = BarTerminal {
            output: Mutex::new((output.clone(), Vec::new())),
            size: || Some((40, 60)),
        };
        let target = ProgressDrawTarget::term_like(Box::new(terminal));
        let bar = ProgressBar::with_draw_target(Some(10), target);
        bar.set_style(ProgressStyle::with_template("[{bar:10}] {msg}").unwrap());
        bar.set_message("m".repeat(40));
        bar.tick();
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<_> = text.split("\r\x1b[2K").collect();
        let line = lines.last().unwrap();
        assert!(line.contains("mmm") && line.chars().count() <= 60 - ECHO_COLUMNS, "{line:?}");
        bar.finish_and_clear();
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        assert!(text.ends_with("\r\x1b[2K"), "{text:?}");
    }
}
