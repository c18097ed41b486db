//! `--journal`: where records go, and where they are read back.

use std::path::PathBuf;

use anyhow::Context;
use journal::{FileWriter, JournaldInstance, SendError, Sender};
use telemetry::{Origin, RECORDS_PER_SECOND_OWN, RECORDS_PER_SECOND_SYSTEM};

use crate::args::usage;
use crate::privileges;
use crate::source::Source;
use crate::writers::WriterArgs;
use crate::{probe, state_directory};

/// Where records go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalChoice {
    /// The system's journald if what it takes can be read back, else a file in the state directory.
    Auto,
    /// The same, with the state directory as it was before root was given up.
    AutoIn(PathBuf),
    /// This journald.
    Instance(JournaldInstance),
    /// This file.
    File(PathBuf),
    /// Nowhere: to measure what watching costs.
    Off,
}

/// A journal that is open for writing.
#[derive(Debug)]
pub(crate) enum Journal {
    /// A file of our own.
    File(Box<FileWriter>),
    /// A journald, and this process as it knows it.
    Daemon(JournaldInstance, Sender, Origin),
    /// None.
    Off,
}

impl JournalChoice {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "off" => Ok(Self::Off),
            None if text == "system" => Ok(Self::Instance(JournaldInstance::system())),
            Some(("namespace", name)) => JournaldInstance::namespace(name)
                .map(Self::Instance)
                .map_err(|error| usage(format!("--journal {text}: {error}"))),
            Some(("file", path)) if path.ends_with(".journal") => Ok(Self::File(path.into())),
            Some(("file", path)) => Err(usage(format!(
                "--journal file:{path}: the file's name must end in .journal, so that journalctl reads it"
            ))),
            _ => Err(usage(format!(
                "--journal {text}: expected auto, system, namespace:NAME, file:PATH.journal or off"
            ))),
        }
    }

    /// Opens the journal for writing.
    pub(crate) fn open(&self) -> anyhow::Result<Journal> {
        match self {
            Self::Off => Ok(Journal::Off),
            Self::File(path) => Ok(Journal::File(Box::new(state_directory::create_named(path)?))),
            Self::Instance(instance) => {
                let (sender, origin) =
                    probe::open(instance).with_context(|| format!("--journal {instance}"))?;
                Ok(Journal::Daemon(instance.clone(), sender, origin))
            }
            Self::Auto => open_auto(state_directory::make),
            Self::AutoIn(folder) => open_auto(|| Ok(folder.clone())),
        }
    }

    /// Makes sure that `owner`, whom the program is about to become, finds the state directory and can write to it.
    pub(crate) fn hand_to(self, owner: &privileges::Target) -> anyhow::Result<Self> {
        if self != Self::Auto {
            return Ok(self);
        }
        let folder = state_directory::make()?;
        owner.give(&folder)?;
        Ok(Self::AutoIn(folder))
    }
}

/// `folder` is only asked for if a file is to be begun in it.
fn open_auto(folder: impl FnOnce() -> anyhow::Result<PathBuf>) -> anyhow::Result<Journal> {
    let system = JournaldInstance::system();
    let why_not = match probe::open(&system) {
        Ok((sender, origin)) => return Ok(Journal::Daemon(system, sender, origin)),
        Err(why_not) => why_not,
    };
    let writer = state_directory::begin_in(&folder()?)?;
    // A box without journald is nothing to be told of.
    if !matches!(why_not.downcast_ref(), Some(SendError::Absent { .. })) {
        crate::say(format_args!("not the system's journal but {}: {why_not}", writer.path().display()));
    }
    Ok(Journal::File(Box::new(writer)))
}

impl Journal {
    /// Where what is written can be read; `None` if nothing is.
    pub(crate) fn source(&self) -> Option<Source> {
        match self {
            Self::File(writer) => Some(Source::Path(writer.path().to_owned())),
            Self::Daemon(instance, ..) => Some(Source::Instance(instance.clone())),
            Self::Off => None,
        }
    }

    /// This process, as what it writes there says.
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::Daemon(_, _, origin) => *origin,
            Self::File(_) | Self::Off => Origin::own(),
        }
    }

    /// How many records it may be given each second. journald drops silently above 10,000 in 30 s of a service, of
    /// whatever that service says; a namespace is ours.
    pub(crate) fn records_per_second(&self) -> u32 {
        match self {
            Self::Daemon(instance, ..) if *instance == JournaldInstance::system() => {
                RECORDS_PER_SECOND_SYSTEM
            }
            Self::Daemon(..) | Self::File(_) | Self::Off => RECORDS_PER_SECOND_OWN,
        }
    }
}

/// The journal that `auto` writes to, or has written to last; the system's if that holds records of those who are read.
pub(crate) fn auto_source(writers: &WriterArgs) -> anyhow::Result<Source> {
    let own = state_directory::newest();
    if let Ok((path, true)) = own {
        return Ok(Source::Path(path));
    }
    let system = Source::Instance(JournaldInstance::system());
    if system.holds_records(&writers.filter(&system)?) {
        return Ok(system);
    }
    own.map(|(path, _)| Source::Path(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_journal_are_understood() {
        assert_eq!(JournalChoice::parse("auto").unwrap(), JournalChoice::Auto);
        assert_eq!(JournalChoice::parse("off").unwrap(), JournalChoice::Off);
        assert_eq!(
            JournalChoice::parse("system").unwrap(),
            JournalChoice::Instance(JournaldInstance::system())
        );
        let tls = JournaldInstance::namespace("tls").unwrap();
        assert_eq!(JournalChoice::parse("namespace:tls").unwrap(), JournalChoice::Instance(tls));
        let file = JournalChoice::parse("file:/tmp/a:b.journal").unwrap();
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
            assert!(JournalChoice::parse(text).is_err(), "{text:?}");
        }
    }
}
