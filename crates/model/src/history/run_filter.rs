//! Chooses the runs to read from a journal that many may write to.
//!
//! The writer chooses a record's content, but journald adds the writer's identity. So the filter checks the writer
//! first, and records of other writers are never decoded.

use foldhash::HashSet;

use records::codec::{Origin, is_tlsdash};
use records::ids::RunId;
use records::slice::TimeRange;
use records::wire::{FieldSource, field};

/// Admitted processes that are remembered, at most.
const ADMITTED_MAX: usize = 1_024;

/// The writers whose runs are read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum WriterFilter {
    /// Runs of any user: for a recording.
    #[default]
    Any,
    /// On the machine of this process, which reads: runs of root, of its user, and of the units of tlsdash. On other
    /// machines: runs of anybody.
    Trusted(Origin),
    /// Runs of this user and of this service, if given.
    Named {
        /// `_UID`.
        uid: Option<u32>,
        /// `_SYSTEMD_UNIT`.
        unit: Option<String>,
    },
    /// Runs of this process only.
    Process(Origin),
}

impl WriterFilter {
    /// True if records of the writer of this entry are read.
    pub fn admit(&self, entry: &journal::Entry) -> bool {
        self.admit_from(&Origin::of(entry), entry)
    }

    fn admit_from(&self, origin: &Origin, entry: &dyn FieldSource) -> bool {
        let unit = || entry.text("_SYSTEMD_UNIT").unwrap_or_default();
        match self {
            Self::Any => true,
            Self::Process(process) => process == origin,
            Self::Trusted(reader) => {
                let is_trusted_uid =
                    || origin.uid == Some(0) || (origin.uid.is_some() && origin.uid == reader.uid);
                reader.is_on_other_machine(origin) || is_trusted_uid() || is_tlsdash(unit())
            }
            Self::Named { uid, unit: named } => {
                uid.is_none_or(|uid| origin.uid == Some(uid))
                    && named.as_deref().is_none_or(|named| unit() == named)
            }
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFilter {
    pub writers: WriterFilter,
    /// The beginning of their ids.
    pub id_prefix: String,
    /// Their time: records of others outside it are not reported.
    pub range: TimeRange,
    /// If there are more records, roll-ups may be read in their place.
    pub records_max: u64,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self {
            writers: WriterFilter::Any,
            id_prefix: String::new(),
            range: TimeRange::ALL,
            records_max: u64::MAX,
        }
    }
}

impl RunFilter {
    /// The run of this id with its parts, of this process.
    pub fn own(run: RunId, process: Origin) -> Self {
        Self { writers: WriterFilter::Process(process), id_prefix: run.family(), ..Self::default() }
    }
}

/// Whether an entry is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    OtherRun,
    /// Its run may be wanted, but its writer is not admitted.
    OtherWriter,
}

/// Decides entry by entry which are read.
#[derive(Debug)]
pub struct EntryFilter {
    settings: RunFilter,
    /// Processes with an entry that was admitted for its unit: journald omits an unknown unit.
    admitted: HashSet<Origin>,
}

impl EntryFilter {
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

    /// Decides on an entry with a record that this process wrote.
    pub(crate) fn admit(&mut self, origin: &Origin, entry: &dyn FieldSource) -> Admission {
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
        fn only_root_the_reader_and_tlsdash_units_are_trusted(
            entries in prop::collection::vec((0_u32..5_000, unit(), any::<Option<String>>(), 1_u32..4), 1..20),
        ) {
            let reader = Origin { machine: Some(1), boot: Some(2), pid: Some(3), uid: Some(READER) };
            let settings = RunFilter { writers: WriterFilter::Trusted(reader), ..RunFilter::default() };
            let mut filter = EntryFilter::new(settings);
            for (uid, unit, own_unit, pid) in entries {
                let mut entry = EntryBuf::new();
                // Fields that a user may write change nothing.
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
