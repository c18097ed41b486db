//! The files that commands write for others.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::summary;

/// Writes what a flag is to write, if it was given; - is standard output.
///
/// # Errors
/// If the text cannot be made, or the file not be written.
pub(crate) fn write(
    flag: &str,
    file: Option<&PathBuf>,
    text: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let text = text()?;
    if is_standard_output(file) {
        return summary::print_text(&text);
    }
    std::fs::write(file, text).with_context(|| format!("cannot write --{flag} {}", file.display()))
}

/// Whether it stands for standard output.
pub(crate) fn is_standard_output(file: &Path) -> bool {
    file == Path::new("-")
}

/// What was asked for, as a shell takes it, so that a reader can ask again.
pub(crate) fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| {
        let word = telemetry::clean::text(&word.to_string_lossy());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    std::iter::once("tlsdash".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
