//! `--journal`: where records go, and where they are read back.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context;
use journal::{FileWriter, InstanceError, JournaldInstance, SendError, Sender};
use recorder::publish::{RECORDS_PER_SECOND_OWN, RECORDS_PER_SECOND_SYSTEM};
use records::codec::Origin;

use super::{probe, state_directory};
use crate::error::usage;
use crate::journals::source::JournalSource;
use crate::journals::writers::WriterArgs;
use crate::service::privileges;

/// Where records go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalChoice {
    /// The system's journald if records can be read back from it, else a file in the state directory.
    Auto,
    /// The same with this state directory, from before root was given up.
    AutoIn(PathBuf),
    /// A file in the state directory, or in this one.
    OwnFile(Option<PathBuf>),
    /// This journald.
    Instance(JournaldInstance),
    File(PathBuf),
    /// This file, or one beside it while another process writes it.
    Beside(PathBuf),
    /// Nowhere: to measure the cost of the journal.
    Off,
}

#[derive(Debug)]
pub(crate) enum OpenJournal {
    /// A file of our own.
    File(Box<FileWriter>),
    /// A journald, and this process as journald identifies it.
    Daemon(JournaldInstance, Sender, Origin),
    Off,
}

/// The text names no journal to write to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JournalChoiceError {
    #[error("expected auto, system, namespace:NAME, file:PATH.journal or off")]
    Unknown,
    #[error("the file's name must end in .journal, so that journalctl reads it")]
    FileName,
    #[error(transparent)]
    Namespace(#[from] InstanceError),
}

impl FromStr for JournalChoice {
    type Err = JournalChoiceError;

    fn from_str(text: &str) -> Result<Self, JournalChoiceError> {
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "off" => Ok(Self::Off),
            None if text == "system" => Ok(Self::Instance(JournaldInstance::system())),
            Some(("namespace", name)) => Ok(Self::Instance(JournaldInstance::namespace(name)?)),
            Some(("file", path)) if path.ends_with(".journal") => Ok(Self::File(path.into())),
            Some(("file", _)) => Err(JournalChoiceError::FileName),
            _ => Err(JournalChoiceError::Unknown),
        }
    }
}

impl JournalChoice {
    pub(crate) fn open(&self) -> anyhow::Result<OpenJournal> {
        match self {
            Self::Off => Ok(OpenJournal::Off),
            Self::File(path) => Ok(OpenJournal::File(Box::new(state_directory::create_named(path)?))),
            Self::Beside(path) => Ok(OpenJournal::File(Box::new(state_directory::create_beside(path)?))),
            Self::Instance(instance) => {
                let (sender, origin) =
                    probe::open(instance).with_context(|| format!("--journal {instance}"))?;
                Ok(OpenJournal::Daemon(instance.clone(), sender, origin))
            }
            Self::Auto => open_auto(state_directory::make),
            Self::AutoIn(folder) => open_auto(|| Ok(folder.clone())),
            Self::OwnFile(None) => open_own(&state_directory::make()?),
            Self::OwnFile(Some(folder)) => open_own(folder),
        }
    }

    /// The same in a file of our own.
    ///
    /// # Errors
    /// If it names another place.
    pub(crate) fn in_file(self) -> anyhow::Result<Self> {
        match self {
            Self::Auto => Ok(Self::OwnFile(None)),
            Self::File(_) => Ok(self),
            _ => Err(usage(
                "--upload sends a file of our own: it goes with --journal auto or file:PATH.journal \
                 (systemd-journal-upload sends the system's journal)",
            )),
        }
    }

    /// The journal of a process that replaces another one, which still writes its own.
    pub(crate) fn beside(self) -> Self {
        match self {
            Self::File(path) => Self::Beside(path),
            other => other,
        }
    }

    /// The state directory from before root was given up.
    pub(crate) fn state_directory(&self) -> Option<PathBuf> {
        match self {
            Self::AutoIn(folder) => Some(folder.clone()),
            Self::OwnFile(folder) => folder.clone(),
            Self::Auto | Self::Instance(_) | Self::File(_) | Self::Beside(_) | Self::Off => None,
        }
    }

    /// Creates the state directory for `owner`, the user that the program is about to become.
    pub(crate) fn hand_to(self, owner: &privileges::ServiceUser) -> anyhow::Result<Self> {
        let hand_over = || {
            let folder = state_directory::make()?;
            owner.give(&folder)?;
            anyhow::Ok(folder)
        };
        match self {
            Self::Auto => Ok(Self::AutoIn(hand_over()?)),
            Self::OwnFile(None) => Ok(Self::OwnFile(Some(hand_over()?))),
            other => Ok(other),
        }
    }
}

fn open_own(folder: &Path) -> anyhow::Result<OpenJournal> {
    Ok(OpenJournal::File(Box::new(state_directory::begin_in(folder)?)))
}

/// `folder` is only called if a file is created in it.
fn open_auto(folder: impl FnOnce() -> anyhow::Result<PathBuf>) -> anyhow::Result<OpenJournal> {
    let system = JournaldInstance::system();
    let why_not = match probe::open(&system) {
        Ok((sender, origin)) => return Ok(OpenJournal::Daemon(system, sender, origin)),
        Err(why_not) => why_not,
    };
    let writer = state_directory::begin_in(&folder()?)?;
    // A host without journald needs no message.
    if !matches!(why_not.downcast_ref(), Some(SendError::Absent { .. })) {
        crate::say(format_args!("not the system's journal but {}: {why_not}", writer.path().display()));
    }
    Ok(OpenJournal::File(Box::new(writer)))
}

impl OpenJournal {
    /// Where the records can be read back; `None` with `--journal off`.
    pub(crate) fn source(&self) -> Option<JournalSource> {
        match self {
            Self::File(writer) => Some(JournalSource::Path(writer.path().to_owned())),
            Self::Daemon(instance, ..) => Some(JournalSource::Instance(instance.clone())),
            Self::Off => None,
        }
    }

    /// This process, as its records there identify it.
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::Daemon(_, _, origin) => *origin,
            Self::File(_) | Self::Off => Origin::own(),
        }
    }

    /// The number of records that it accepts each second. journald silently drops messages of a service above 10,000
    /// in 30 s; only tlsdash uses a namespace.
    pub(crate) fn records_per_second(&self) -> u32 {
        match self {
            Self::Daemon(instance, ..) if *instance == JournaldInstance::system() => {
                RECORDS_PER_SECOND_SYSTEM
            }
            Self::Daemon(..) | Self::File(_) | Self::Off => RECORDS_PER_SECOND_OWN,
        }
    }
}

/// The file that `auto` writes now; else the system's journal if it holds wanted records; else the file written last.
pub(crate) fn auto_source(writers: &WriterArgs) -> anyhow::Result<JournalSource> {
    let own = state_directory::newest();
    if let Ok((path, true)) = own {
        return Ok(JournalSource::Path(path));
    }
    let system = JournalSource::Instance(JournaldInstance::system());
    if system.holds_records(&writers.filter(&system)) {
        return Ok(system);
    }
    own.map(|(path, _)| JournalSource::Path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_journal_are_understood() {
        let parse = |text: &str| text.parse::<JournalChoice>().unwrap();
        assert_eq!(parse("auto"), JournalChoice::Auto);
        assert_eq!(parse("off"), JournalChoice::Off);
        assert_eq!(parse("system"), JournalChoice::Instance(JournaldInstance::system()));
        let tls = JournaldInstance::namespace("tls").unwrap();
        assert_eq!(parse("namespace:tls"), JournalChoice::Instance(tls));
        let file = parse("file:/tmp/a:b.journal");
        assert_eq!(file, JournalChoice::File("/tmp/a:b.journal".into()));
        for text in [
            "",
            "file:",
            "file:/tmp/x",
            "systemd",
            "off:1",
            "system:x",
            "namespace",
            "namespace:",
            "namespace:a/b",
        ] {
            assert!(text.parse::<JournalChoice>().is_err(), "{text:?}");
        }
    }
}
