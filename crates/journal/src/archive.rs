//! The names of archived files, and the search for those beside a journal file.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::layout::FileHeader;

/// The parts of an archive's name, `NAME@SEQNUM_ID-HEAD_SEQNUM-HEAD_REALTIME.journal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ArchiveName {
    /// Shared by all files of one writer.
    pub(crate) seqnum_id: u128,
    /// The sequence number of its first entry.
    pub(crate) head_seqnum: u64,
    /// The time of its first entry, in microseconds since 1970.
    pub(crate) head_realtime_us: u64,
}

impl ArchiveName {
    /// Returns the name under which a file with this header is archived.
    pub(crate) fn of(header: &FileHeader) -> Self {
        Self {
            seqnum_id: header.seqnum_id,
            head_seqnum: header.head_entry_seqnum,
            head_realtime_us: header.head_entry_realtime,
        }
    }

    /// Returns the path of this archive of `live`; `None` if `live` is not called `NAME.journal`.
    pub(crate) fn beside(&self, live: &Path) -> Option<PathBuf> {
        let mut name = stem(live)?.to_owned();
        name.push(format!(
            "@{:032x}-{:016x}-{:016x}.journal",
            self.seqnum_id, self.head_seqnum, self.head_realtime_us
        ));
        Some(live.with_file_name(name))
    }

    /// Parses a file name as that of an archive of the journal called `stem`.
    fn parse(file_name: &OsStr, stem: &OsStr) -> Option<Self> {
        let rest = file_name.as_encoded_bytes().strip_prefix(stem.as_encoded_bytes())?;
        let rest = std::str::from_utf8(rest).ok()?.strip_prefix('@')?.strip_suffix(".journal")?;
        let mut parts = rest.split('-');
        let mut hex = |digits: usize| {
            let part = parts.next()?;
            let plain = part.len() == digits && part.bytes().all(|b| b.is_ascii_hexdigit());
            plain.then(|| u128::from_str_radix(part, 16).ok())?
        };
        let name =
            Self { seqnum_id: hex(32)?, head_seqnum: hex(16)? as u64, head_realtime_us: hex(16)? as u64 };
        parts.next().is_none().then_some(name)
    }
}

/// Returns the path `NAME@….journal~` that journald gives to a damaged file; `None` if `live` is not called
/// `NAME.journal`.
pub(crate) fn disposed_path(live: &Path, now_us: u64, random: u64) -> Option<PathBuf> {
    let mut name = stem(live)?.to_owned();
    name.push(format!("@{now_us:016x}-{random:016x}.journal~"));
    Some(live.with_file_name(name))
}

/// Lists the archives of `live`, oldest first.
///
/// Sorts the files of one writer by sequence number, and writers by the time of their first remaining entry:
/// a clock that is set back does not reorder one writer's files.
pub(crate) fn list(live: &Path) -> io::Result<Vec<(ArchiveName, PathBuf)>> {
    let Some(stem) = stem(live) else { return Ok(Vec::new()) };
    let mut archives = Vec::new();
    for file in fs::read_dir(folder(live))? {
        let file = file?;
        if let Some(name) = ArchiveName::parse(&file.file_name(), stem) {
            archives.push((name, file.path()));
        }
    }
    archives.sort();
    let mut ordered: Vec<_> = archives
        .chunk_by(|(a, _), (b, _)| a.seqnum_id == b.seqnum_id)
        .map(|writer| (writer[0].0.head_realtime_us, writer))
        .collect();
    ordered.sort();
    Ok(ordered.into_iter().flat_map(|(_, writer)| writer.iter().cloned()).collect())
}

/// Returns the folder of a file; `.` for a bare name.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Returns the `NAME` of `NAME.journal`.
///
/// Returns `None` for a name with an `@`, which would look like an archive.
pub(crate) fn stem(live: &Path) -> Option<&OsStr> {
    let is_journal = live.extension().is_some_and(|extension| extension == "journal");
    live.file_stem().filter(|stem| is_journal && !stem.as_encoded_bytes().contains(&b'@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_names_match_journald_and_round_trip() {
        let name = ArchiveName { seqnum_id: 0xab, head_seqnum: 0x10, head_realtime_us: 0x5 };
        let path = name.beside(Path::new("/x/sys.journal")).unwrap();
        let expected = "/x/sys@000000000000000000000000000000ab-0000000000000010-0000000000000005.journal";
        assert_eq!(path, Path::new(expected));
        assert_eq!(ArchiveName::parse(path.file_name().unwrap(), OsStr::new("sys")), Some(name));
        assert_eq!(ArchiveName::parse(path.file_name().unwrap(), OsStr::new("sy")), None);
    }

    #[test]
    fn list_returns_archives_of_one_file_in_write_order() {
        let dir = tempfile::tempdir().unwrap();
        let live = dir.path().join("a.journal");
        // The clock of the second writer was set back between its files.
        let in_order = [(7, 1, 100), (7, 50, 200), (3, 1, 300), (3, 20, 90), (3, 40, 400)];
        for (id, seqnum, realtime) in in_order.into_iter().rev() {
            let name = ArchiveName { seqnum_id: id, head_seqnum: seqnum, head_realtime_us: realtime };
            fs::write(name.beside(&live).unwrap(), "").unwrap();
            fs::write(name.beside(&dir.path().join("b.journal")).unwrap(), "").unwrap();
        }
        for other in ["a.journal", "a@1-2-3.journal", "a@.journal", "a@x.journal~"] {
            fs::write(dir.path().join(other), "").unwrap();
        }
        let listed = list(&live).unwrap();
        let found: Vec<_> =
            listed.iter().map(|(n, _)| (n.seqnum_id, n.head_seqnum, n.head_realtime_us)).collect();
        // Writer 7 began at 100, writer 3 at 300.
        assert_eq!(found, in_order);
    }

    #[test]
    fn folder_of_a_bare_name_is_the_working_folder() {
        assert_eq!(folder(Path::new("a.journal")), Path::new("."));
        assert_eq!(stem(Path::new("a@b.journal")), None);
        assert_eq!(stem(Path::new("a.log")), None);
    }
}
