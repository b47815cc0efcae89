//! The terminal of progress bars: standard error without its last columns.
//!
//! A progress bar fills its line with spaces, so that the cursor is at its end. On Ctrl-C, the terminal echoes
//! `^C` there. In a full line, the cursor would wrap to the next line, and the bar could not be cleared any more. A
//! line break is therefore written between lines: indicatif expects that the terminal wraps.

use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard};

use indicatif::TermLike;
use terminal_size::{Height, Width, terminal_size_of};

/// Columns of the `^C` of two interruptions: the second one ends the drain.
pub(crate) const ECHO_COLUMNS: usize = 4;
/// Lines and columns of a terminal that does not report its size.
const DEFAULT_SIZE: (u16, u16) = (24, 80);

/// Draws to `output`, usually standard error, whose size `size` returns as lines and columns.
#[derive(Debug)]
pub(crate) struct BarTerminal<W> {
    output: Mutex<Output<W>>,
    size: fn() -> Option<(u16, u16)>,
}

#[derive(Debug)]
struct Output<W> {
    writer: W,
    /// What `flush` writes at once.
    buffer: Vec<u8>,
    /// Whether a line is complete: indicatif writes each line, and then spaces up to the width.
    is_full: bool,
}

impl<W> Output<W> {
    fn new(writer: W) -> Mutex<Self> {
        Mutex::new(Self { writer, buffer: Vec::new(), is_full: false })
    }
}

impl BarTerminal<io::Stderr> {
    pub(crate) fn stderr() -> Self {
        let size = || terminal_size_of(io::stderr()).map(|(Width(w), Height(h))| (h, w));
        Self { output: Output::new(io::stderr()), size }
    }
}

impl<W: Write> BarTerminal<W> {
    fn output(&self) -> io::Result<MutexGuard<'_, Output<W>>> {
        self.output.lock().map_err(|_| io::Error::other("a drawing panicked"))
    }

    /// Adds to the buffer.
    fn add(&self, text: &str) -> io::Result<()> {
        self.output()?.buffer.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn moved(&self, lines_or_columns: usize, direction: char) -> io::Result<()> {
        if lines_or_columns == 0 {
            return Ok(());
        }
        self.add(&format!("\x1b[{lines_or_columns}{direction}"))
    }
}

impl<W: Write + Send + Debug> TermLike for BarTerminal<W> {
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
        let mut output = self.output()?;
        let is_filler = text.bytes().all(|byte| byte == b' ');
        if std::mem::replace(&mut output.is_full, is_filler) && !is_filler && text != "\r" {
            output.buffer.extend_from_slice(b"\r\n");
        }
        output.buffer.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn clear_line(&self) -> io::Result<()> {
        self.add("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        let mut output = self.output()?;
        let Output { writer, buffer, is_full } = &mut *output;
        *is_full = false;
        let written = writer.write_all(buffer).and_then(|()| writer.flush());
        buffer.clear();
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
    use std::sync::Arc;

    #[derive(Clone, Debug, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
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
        let output = Written::default();
        let terminal = BarTerminal { output: Output::new(output.clone()), size: || Some((40, 60)) };
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

    #[test]
    fn several_lines_are_below_each_other_and_all_are_cleared() {
        let output = Written::default();
        let terminal = BarTerminal { output: Output::new(output.clone()), size: || Some((40, 20)) };
        let bar = ProgressBar::with_draw_target(
            Some(10),
            ProgressDrawTarget::term_like_with_hz(Box::new(terminal), 255),
        );
        bar.set_style(ProgressStyle::with_template("{msg}").unwrap());
        for message in ["first\nsecond line", "third\nfourth\nfifth", "sixth"] {
            bar.set_message(message);
            bar.force_draw();
        }
        let text = |output: &Written| {
            let mut screen = vt100::Parser::new(40, 20, 0);
            screen.process(&output.0.lock().unwrap());
            screen.screen().contents()
        };
        assert_eq!(text(&output).trim_end(), "sixth");
        bar.set_message("seventh\neighth\nninth");
        bar.force_draw();
        let lines: Vec<_> = text(&output).lines().map(|line| line.trim_end().to_owned()).collect();
        assert_eq!(lines, ["seventh", "eighth", "ninth"]);
        bar.finish_and_clear();
        assert_eq!(text(&output).trim(), "");
    }
}
