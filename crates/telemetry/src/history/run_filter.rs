//! Which runs are read from a journal that many may write to.
//!
//! Whatever a record says, its writer has chosen. Who that is journald adds by itself, so it is asked first, and a record
//! of somebody else is never decoded.

use foldhash::HashSet;

use crate::history::slice::TimeRange;
use crate::record::field;
use crate::record::ids::RunId;
use crate::record::origin::{Origin, is_tlsdash};
use crate::record::wire::Source;

/// Processes that are remembered as admitted.
const ADMITTED_MAX: usize = 1_024;

/// Whose runs are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WriterFilter {
    /// Anybody's: a file of one's own is believed.
    #[default]
    Any,
    /// Of the machine of this process, which reads: those of root, of its user, and of the units of tlsdash. Of other
    /// machines anybody's.
    Trusted(Origin),
    /// Those of this user, and of this service, as far as named.
    Named {
        /// `_UID`.
        uid: Option<u32>,
        /// `_SYSTEMD_UNIT`.
        unit: Option<String>,
    },
    /// Those of this very process.
    Process(Origin),
}

impl WriterFilter {
    /// Tells whether records of the writer of an entry are read.
    pub fn admit(&self, entry: &journal::Entry) -> bool {
        self.admit_from(&Origin::of(entry), entry)
    }

    fn admit_from(&self, origin: &Origin, entry: &dyn Source) -> bool {
        let unit = || entry.text("_SYSTEMD_UNIT").unwrap_or_default();
        match self {
            Self::Any => true,
            Self::Process(process) => process == origin,
            Self::Trusted(reader) => {
                let is_trusted_uid =
                    || origin.uid == Some(0) || (origin.uid.is_some() && origin.uid == reader.uid);
                reader.is_elsewhere(origin) || is_trusted_uid() || is_tlsdash(unit())
            }
            Self::Named { uid, unit: named } => {
                uid.is_none_or(|uid| origin.uid == Some(uid))
                    && named.as_deref().is_none_or(|named| unit() == named)
            }
        }
    }
}

/// Which runs are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFilter {
    /// Whose.
    pub writers: WriterFilter,
    /// What their id begins with.
    pub id_prefix: String,
    /// When: what was written by others at other times is not worth a word.
    pub range: TimeRange,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self { writers: WriterFilter::Any, id_prefix: String::new(), range: TimeRange::ALL }
    }
}

impl RunFilter {
    /// One run of one process.
    pub fn own(run: RunId, process: Origin) -> Self {
        Self { writers: WriterFilter::Process(process), id_prefix: run.to_string(), ..Self::default() }
    }
}

/// Whether an entry is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is read.
    Admitted,
    /// Its run is not asked for.
    OtherRun,
    /// Its run may be asked for, and its writer is not admitted.
    OtherWriter,
}

/// Tells of entries, one after the other, which are read.
#[derive(Debug)]
pub struct EntryFilter {
    settings: RunFilter,
    /// Processes with an entry that was admitted for its unit: journald leaves that out where it cannot tell.
    admitted: HashSet<Origin>,
}

impl EntryFilter {
    /// Of entries of these runs.
    pub fn new(settings: RunFilter) -> Self {
        Self { settings, admitted: HashSet::default() }
    }

    pub(crate) fn settings(&self) -> &RunFilter {
        &self.settings
    }

    /// True for an entry with a record that is read.
    pub fn admits(&mut self, entry: &journal::Entry) -> bool {
        self.admit(&Origin::of(entry), entry) == Admission::Admitted
    }

    /// Tells of an entry with a record, which this process wrote.
    pub(crate) fn admit(&mut self, origin: &Origin, entry: &dyn Source) -> Admission {
        let RunFilter { writers, id_prefix, .. } = &self.settings;
        let is_of_run = || entry.text(&field::RUN.name).is_some_and(|id| id.starts_with(&**id_prefix));
        if !id_prefix.is_empty() && !is_of_run() {
            return Admission::OtherRun;
        }
        if writers.admit_from(origin, entry) {
            self.remember(origin);
            return Admission::Admitted;
        }
        let lacks_unit = || entry.text("_SYSTEMD_UNIT").is_none();
        if self.admitted.contains(origin) && lacks_unit() {
            Admission::Admitted
        } else {
            Admission::OtherWriter
        }
    }

    fn remember(&mut self, origin: &Origin) {
        let goes_by_unit = match &self.settings.writers {
            WriterFilter::Trusted(_) | WriterFilter::Named { unit: Some(_), .. } => true,
            WriterFilter::Any | WriterFilter::Named { .. } | WriterFilter::Process(_) => false,
        };
        if goes_by_unit && (self.admitted.len() < ADMITTED_MAX || self.admitted.contains(origin)) {
            self.admitted.insert(*origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use journal::EntryBuf;
    use proptest::prelude::*;

    use super::*;

    const READER: u32 = 4_242;

    fn unit() -> impl Strategy<Value = String> {
        let known = ["tlsdash.service", "tlsdash@a.service", "user@1000.service", "cron.service", ""];
        prop_oneof![
            prop::sample::select(known.to_vec()).prop_map(str::to_owned),
            "[a-z@.-]{0,12}(tlsdash)?[a-z@.-]{0,12}(.service)?",
            any::<String>(),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn nobody_is_trusted_but_root_the_reader_and_units_of_tlsdash(
            entries in prop::collection::vec((0_u32..5_000, unit(), any::<Option<String>>(), 1_u32..4), 1..20),
        ) {
            let reader = Origin { machine: Some(1), boot: Some(2), pid: Some(3), uid: Some(READER) };
            let settings = RunFilter { writers: WriterFilter::Trusted(reader), ..RunFilter::default() };
            let mut filter = EntryFilter::new(settings);
            for (uid, unit, own_unit, pid) in entries {
                let mut entry = EntryBuf::new();
                // Whatever a user may write himself changes nothing.
                entry.push("UID", b"0");
                entry.push("SYSTEMD_UNIT", b"tlsdash.service");
                entry.push_trusted("_SYSTEMD_UNIT", unit.as_bytes());
                if let Some(own_unit) = own_unit {
                    entry.push_trusted("_SYSTEMD_USER_UNIT", own_unit.as_bytes());
                    entry.push_trusted("_SYSTEMD_SLICE", own_unit.as_bytes());
                }
                let origin = Origin { pid: Some(pid), uid: Some(uid), ..reader };
                let expected = [0, READER].contains(&uid) || is_tlsdash(&unit);
                let admission = filter.admit(&origin, &entry);
                prop_assert_eq!(admission == Admission::Admitted, expected, "{} {}", uid, unit);
            }
        }
    }

    #[test]
    fn who_is_not_known_is_not_trusted() {
        let reader = Origin::default();
        let filter = WriterFilter::Trusted(reader);
        assert!(!filter.admit_from(&Origin::default(), &EntryBuf::new()), "no user is not the same user");
        let root = Origin { uid: Some(0), ..Origin::default() };
        assert!(filter.admit_from(&root, &EntryBuf::new()));
    }
}
