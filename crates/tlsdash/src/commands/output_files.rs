//! The output files of a command, checked before anything is read or started.

use std::path::{Path, PathBuf};

use anyhow::Context;
use output_file::FileIdentity;

use crate::error::usage;
use crate::summary;

/// Output files by flag; `-` is standard output.
#[derive(Debug)]
pub(crate) struct OutputFiles(Vec<(&'static str, PathBuf)>);

impl OutputFiles {
    /// Checks the files of the given flags. `inputs` are files that the command reads.
    ///
    /// # Errors
    /// When a file may not or cannot be written, is an input, or is named twice.
    pub(crate) fn check<'a>(
        flags: &[(&'static str, &'a Option<PathBuf>)],
        inputs: impl IntoIterator<Item = &'a PathBuf>,
    ) -> anyhow::Result<Self> {
        let given = flags.iter().filter_map(|(flag, path)| Some((*flag, path.as_ref()?.clone())));
        let output_files = Self(given.collect());
        let inputs: Vec<FileIdentity> =
            inputs.into_iter().filter_map(|path| FileIdentity::of(path).ok()).collect();
        let mut seen: Vec<(&str, OutputDestination)> = Vec::new();
        for (flag, path) in &output_files.0 {
            let named = || named(flag, path);
            let identity = if output_file::is_stdout(path) {
                OutputDestination::Stdout
            } else {
                output_file::check(path).map_err(|error| refused(error, &named()))?;
                OutputDestination::File(FileIdentity::of(path).with_context(|| cannot(&named()))?)
            };
            if let Some((other, _)) = seen.iter().find(|(_, earlier)| *earlier == identity) {
                return Err(usage(match identity {
                    OutputDestination::Stdout => format!("{other} and {flag} both go to standard output"),
                    OutputDestination::File(_) => format!("{other} and {flag} are the same file"),
                }));
            }
            match identity {
                OutputDestination::File(file) if inputs.contains(&file) => {
                    return Err(usage(format!("{}: it is read too; name another file", cannot(&named()))));
                }
                OutputDestination::File(_) if !output_file::is_kept(path) => {}
                identity => seen.push((flag, identity)),
            }
        }
        Ok(output_files)
    }

    /// Whether one of them is standard output.
    pub(crate) fn has_stdout(&self) -> bool {
        self.0.iter().any(|(_, path)| output_file::is_stdout(path))
    }

    /// Writes the file of a flag, if it was given.
    ///
    /// # Errors
    /// When the text cannot be made, or the file cannot be written.
    pub(crate) fn write(
        &self,
        flag: &str,
        text: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<()> {
        let Some((_, path)) = self.0.iter().find(|(asking, _)| *asking == flag) else { return Ok(()) };
        let text = text()?;
        if output_file::is_stdout(path) {
            return summary::print_text(&text);
        }
        output_file::write(path, &text).map_err(|error| refused(error, &named(flag, path)))
    }
}

/// A destination that two outputs may not share.
#[derive(Debug, PartialEq)]
enum OutputDestination {
    Stdout,
    File(FileIdentity),
}

fn named(flag: &str, path: &Path) -> String {
    format!("{flag} {}", path.display())
}

fn cannot(named: &str) -> String {
    format!("cannot write {named}")
}

fn refused(error: output_file::OutputError, named: &str) -> anyhow::Error {
    if error.is_refusal() {
        return usage(format!("{}: {error}", cannot(named)));
    }
    anyhow::Error::new(error).context(cannot(named))
}
