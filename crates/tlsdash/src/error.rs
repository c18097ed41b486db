//! Errors in one line: wrong usage, an error with its causes, and what clap refuses.

use std::fmt;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A usage error: the command line or the configuration is wrong. The program ends with exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(String);

/// A condition that was asked for does not hold, such as an assertion. The program ends with exit code 99.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UnmetCondition(pub(crate) String);

impl UnmetCondition {
    /// An error that lists the failed assertions with their reasons.
    pub(crate) fn of_assertions(breaches: &[String]) -> anyhow::Error {
        Self(format!("assertion does not hold: {}", breaches.join("; "))).into()
    }
}

/// Makes a usage error. The reason is reduced to one printable line.
pub(crate) fn usage(reason: impl fmt::Display) -> anyhow::Error {
    anyhow::Error::new(UsageError(records::text::clean::line(&reason.to_string())))
}

/// An error with its causes, each once.
pub(crate) fn line(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |line, cause| {
        if line.ends_with(&cause) { line } else { format!("{line}: {cause}") }
    })
}

/// Why clap refuses arguments, in one line.
pub(crate) fn refusal(error: &clap::Error) -> String {
    refused_value(error).unwrap_or_else(|| refused_words(error))
}

/// clap's message about refused arguments, in one line.
pub(crate) fn refused_words(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let what = lines.next().unwrap_or_default().trim_start_matches("error: ");
    // Missing arguments and suggestions are on separate lines.
    let more = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words: Vec<_> = std::iter::once(what).chain(more).collect();
    words.join("; ").replace(":;", ":")
}

/// What somebody may have meant by a flag that is another one's elsewhere, or what has it.
pub(crate) fn meant(error: &clap::Error) -> &'static str {
    let flag = context(error, ContextKind::InvalidArg).unwrap_or_default();
    match flag.split(' ').next() {
        Some("--keep-alive") => "; curl's -k is --insecure here",
        Some("--record") => "; only tlsdash, demo, load, observe and wire make records (in watch, press R)",
        Some("--journal") => {
            "; only tlsdash, demo, load, observe and wire make records; others read a SOURCE"
        }
        _ => "",
    }
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    }
}

/// The line about a value that a flag cannot have: flag, value, reason.
pub(crate) fn refused_value(error: &clap::Error) -> Option<String> {
    let argument = context(error, ContextKind::InvalidArg)?;
    let value = context(error, ContextKind::InvalidValue)?;
    let reason = std::error::Error::source(error).filter(|_| error.kind() == ErrorKind::ValueValidation)?;
    let flag = argument.split([' ', '[', '=']).next().filter(|flag| flag.starts_with('-'));
    Some(flag.map_or_else(|| reason.to_string(), |flag| format!("{flag} {value}: {reason}")))
}
