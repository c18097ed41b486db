//! Lines on standard error.

use std::fmt::Display;
use std::io::Write;

/// Prints one line on standard error, made printable, since it may quote peers, paths and files. A closed standard
/// error is ignored.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "tlsdash: {}", records::text::clean::line(&line.to_string()));
}

/// Replaces the last line of a terminal. A closed terminal is not a failure.
pub(crate) fn rewrite_line(line: &str) {
    // Returns to the first column and erases the rest of the line.
    let _ = write!(std::io::stderr(), "\r\x1b[K{line}").and_then(|()| std::io::stderr().flush());
}
