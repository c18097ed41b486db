//! A readable journal: a file with its archives, a folder of files, journald's, or a store of logs.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use crate::journals::staged_files::StagedFiles;
use journal::{Entry, EntrySource, InstanceError, JournaldInstance, ReadError, Start, Tail};
use log_store::{StoreReader, StoreUrl, StoreUrlError};
use model::history::{RunFilter, WriterFilter};
use records::ids::{RUN_PARTS_MAX, RunId};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// An entry is read if it has one of these fields: our records' kind, or journald's number of dropped messages.
pub(super) const FIELDS: [&str; 2] = ["TLSDASH_KIND", "N_DROPPED"];

/// The folders in which journald has its own subfolders.
const JOURNALD: [&str; 2] = ["/var/log/journal", "/run/log/journal"];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalSource {
    /// A file with the archives beside it, or a folder of files.
    Path(PathBuf),
    /// The files of journald.
    Instance(JournaldInstance),
    /// A store that journals are sent to.
    Store(Box<StoreUrl>),
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("{}: {error}", shown(.text))]
    Instance { text: OsString, error: InstanceError },
    /// Without the text, which may have a password.
    #[error("SOURCE: {0}")]
    Store(#[from] StoreUrlError),
}

/// A place as a line of text.
pub(crate) fn shown(text: &OsStr) -> String {
    records::text::clean::text(&text.to_string_lossy())
}

impl JournalSource {
    /// Parses `system`, `namespace:NAME`, `file:PATH`, `logs+http://…`, `logs+https://…` and plain paths.
    ///
    /// # Errors
    /// If the name of a namespace or the URL is invalid.
    pub(crate) fn parse(text: &OsStr) -> Result<Self, SourceError> {
        let Some(text) = text.to_str() else { return Ok(Self::Path(text.into())) };
        if StoreUrl::is_one(text) {
            return Ok(Self::Store(Box::new(text.parse()?)));
        }
        let refuse = |error| SourceError::Instance { text: text.into(), error };
        match text.split_once(':') {
            None if text == "system" => Ok(Self::Instance(JournaldInstance::system())),
            Some(("namespace", _)) => text.parse().map(Self::Instance).map_err(refuse),
            Some(("file", path)) => Ok(Self::Path(path.into())),
            _ => Ok(Self::Path(text.into())),
        }
    }

    /// Returns a function that opens it; a store leaves out runs whose ids do not begin with `id_prefix`. What is opened
    /// stays on the thread that opened it, so the function is called there.
    pub(crate) fn opener(
        &self,
        start: Start,
        id_prefix: &str,
    ) -> impl FnOnce() -> Result<Box<dyn EntrySource>, ReadError> + Send + 'static {
        let (source, id_prefix) = (self.clone(), id_prefix.to_owned());
        move || source.open(start, &FIELDS, &id_prefix)
    }

    /// Returns a function that opens it for the runs and the range of a filter. If it has more records than the filter says,
    /// roll-ups are read in place of some.
    pub(crate) fn opener_of_range(
        &self,
        filter: &RunFilter,
    ) -> impl FnOnce() -> Result<Box<dyn EntrySource>, ReadError> + Send + 'static {
        let (source, filter, name) = (self.clone(), filter.clone(), self.to_string());
        move || match source {
            Self::Store(url) => {
                let RunFilter { id_prefix, range, records_max, .. } = filter;
                let range = (range.from_us, range.until_us);
                Ok(Box::new(StoreReader::open_range(&url, &id_prefix, range, records_max)?))
            }
            _ if filter.records_max == u64::MAX => source.open(Start::Oldest, &FIELDS, &filter.id_prefix),
            Self::Path(path) => {
                let is_of_one_writer = !path.is_dir();
                Ok(Box::new(StagedFiles::open(name, filter, is_of_one_writer, move |start| {
                    open_path(&path, start)
                })?))
            }
            Self::Instance(instance) => {
                let open = move |start| Tail::open_instance(&instance, start);
                Ok(Box::new(StagedFiles::open(name, filter, false, open)?))
            }
        }
    }

    /// Returns a function that opens it for a run that begins now, and skips the records of others. A file of our own
    /// is read from its beginning, since it may have records by then.
    pub(crate) fn opener_of_run(
        &self,
        run: RunId,
    ) -> impl FnOnce() -> Result<Box<dyn EntrySource>, ReadError> + Send + 'static {
        let source = self.clone();
        move || {
            let start = match source {
                Self::Path(_) => Start::File,
                Self::Instance(_) | Self::Store(_) => Start::End,
            };
            let ids = (0..=RUN_PARTS_MAX).map(|number| format!("TLSDASH_RUN={}", run.part(number)));
            // Clients cannot forge messages of journald itself.
            let fields: Vec<String> = ids.chain(["_TRANSPORT=driver".to_owned()]).collect();
            source.open(start, &fields.iter().map(String::as_str).collect::<Vec<_>>(), &run.family())
        }
    }

    fn open(
        &self,
        start: Start,
        fields: &[&str],
        id_prefix: &str,
    ) -> Result<Box<dyn EntrySource>, ReadError> {
        let tail = match self {
            Self::Path(path) => open_path(path, start),
            Self::Instance(instance) => Tail::open_instance(instance, start),
            Self::Store(url) => return Ok(Box::new(StoreReader::open(url, start, id_prefix)?)),
        };
        Ok(Box::new(tail?.only_with(fields)))
    }

    /// The same, but of a store only what one host or unit may have written, if it is named. Other places are read as a
    /// whole in any case.
    pub(crate) fn limited_to(self, host: Option<&str>, unit: Option<&str>) -> Self {
        match self {
            Self::Store(url) => Self::Store(Box::new(url.limited_to(host, unit))),
            other => other,
        }
    }

    /// Whether it is read as a whole or not at all. What is left of a damaged file is all that there is, but a store
    /// that fails has the rest.
    pub(crate) fn is_all_or_nothing(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    /// Whether journald keeps it on this host, where every user may write, and trusted fields name the writer. False
    /// for the files of systemd-journal-remote, for stores, and for files made or copied elsewhere.
    pub(crate) fn is_of_this_host(&self) -> bool {
        let path = match self {
            Self::Path(path) => path,
            Self::Instance(_) => return true,
            Self::Store(_) => return false,
        };
        let Ok(path) = path.canonicalize() else { return false };
        JOURNALD.iter().any(|folder| {
            let folder = Path::new(folder).canonicalize().unwrap_or_else(|_| folder.into());
            path.strip_prefix(folder).is_ok_and(|rest| !rest.starts_with("remote"))
        })
    }

    /// Its size in bytes, as far as it is known; 0 for a store.
    pub(crate) fn size_bytes(&self) -> u64 {
        match self {
            Self::Path(path) if path.is_dir() => files_in(path, 2),
            Self::Path(path) => {
                let archives = path.file_stem().zip(path.parent()).map_or(0, |(stem, folder)| {
                    let begin = format!("{}@", stem.display());
                    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                    journals(folder, |name| name.starts_with(&begin))
                });
                archives + path.metadata().map_or(0, |metadata| metadata.len())
            }
            Self::Instance(instance) => {
                instance.folders().into_iter().flatten().map(|folder| files_in(&folder, 1)).sum()
            }
            Self::Store(_) => 0,
        }
    }

    /// Whether it holds a readable record of one of the `writers`.
    pub(crate) fn holds_records(&self, writers: &WriterFilter) -> bool {
        let Ok(mut source) = self.opener(Start::Oldest, "")() else { return false };
        let mut found = false;
        while !found {
            let is_wanted = |entry: &Entry| entry.text("TLSDASH_KIND").is_some() && writers.admit(entry);
            match source.poll(&mut |entry| found = found || is_wanted(entry)) {
                Ok(progress) if progress.more => {}
                Ok(_) | Err(_) => break,
            }
        }
        found
    }
}

fn open_path(path: &Path, start: Start) -> Result<Tail, ReadError> {
    allow_many_files();
    Tail::open(path, start)
}

/// Raises the limit on descriptors as far as it goes: each file that is being written in a folder stays open, and the usual
/// limit is 1,024.
fn allow_many_files() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // Files beyond the limit are said when they cannot be opened.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// The total size of the wanted journal files in a folder.
fn journals(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> u64 {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let size = |entry: DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_journal = name.ends_with(".journal") || name.ends_with(".journal~");
        (is_journal && is_wanted(&name)).then(|| entry.metadata().map_or(0, |metadata| metadata.len()))
    };
    entries.filter_map(size).sum()
}

/// The total size of all journal files in a folder and its subfolders.
fn files_in(folder: &Path, depth: u32) -> u64 {
    let within = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let within = within.filter(|path| depth > 1 && path.is_dir()).map(|path| files_in(&path, depth - 1));
    within.sum::<u64>() + journals(folder, |_| true)
}

/// Printable, since summaries and reports show it.
impl fmt::Display for JournalSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printable = |path: &Path| records::text::clean::line(&path.to_string_lossy());
        match self {
            Self::Path(path) if path.is_dir() => f.write_str(&printable(path)),
            Self::Path(path) => write!(f, "file:{}", printable(path)),
            Self::Instance(instance) => write!(f, "{instance}"),
            Self::Store(url) => write!(f, "{url}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_journald_only_by_its_exact_words() {
        let parse = |text: &str| JournalSource::parse(OsStr::new(text));
        for text in ["system", "namespace:tls"] {
            assert_eq!(parse(text).unwrap(), JournalSource::Instance(text.parse().unwrap()));
        }
        for (text, path) in
            [("./system", "./system"), ("file:system", "system"), ("a:b.journal", "a:b.journal")]
        {
            assert_eq!(parse(text).unwrap(), JournalSource::Path(path.into()));
        }
        assert!(parse("namespace:").is_err());
        assert!(parse("namespace:a/b").is_err());
        let store = "logs+http://h:9428?query=_time:1h";
        assert_eq!(parse(store).unwrap(), JournalSource::Store(Box::new(store.parse().unwrap())));
        let error = parse("logs+http://u:geheim@h").unwrap_err().to_string();
        assert!(!error.contains("geheim"), "{error}");
    }
}
