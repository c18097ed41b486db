//! The writer of an entry, by the trusted fields that journald adds.

use crate::ids;
use crate::text::clean;
use crate::wire::FieldSource;

/// The `MESSAGE_ID` of journald's report about dropped messages (`SD_MESSAGE_JOURNAL_DROPPED` of sd-messages.h).
const DROPPED_MESSAGE_ID: &str = "a596d6fe7bfa4994828e72309e95d61e";

/// A process, as the journal saw it when it took an entry (trusted fields of systemd.journal-fields(7)). `None` where
/// a field is missing; an origin without it differs from one with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// `_MACHINE_ID`.
    pub machine: Option<u128>,
    /// `_BOOT_ID`.
    pub boot: Option<u128>,
    /// `_PID`.
    pub pid: Option<u32>,
    /// `_UID`.
    pub uid: Option<u32>,
}

impl Origin {
    /// This process, as in its own file. A journald in another namespace may have other numbers for it.
    pub fn own() -> Self {
        Self::of(&journal::process_fields())
    }

    /// The process that wrote an entry that was read.
    pub fn of_entry(entry: &journal::Entry) -> Self {
        Self::of(entry)
    }

    /// True if the other one is known to be on another machine.
    pub fn is_on_other_machine(&self, other: &Self) -> bool {
        self.machine.zip(other.machine).is_some_and(|(machine, other)| machine != other)
    }

    pub fn of(entry: &dyn FieldSource) -> Self {
        let number = |name| entry.text(name).and_then(|text| text.parse().ok());
        Self {
            machine: id(entry, "_MACHINE_ID"),
            boot: id(entry, "_BOOT_ID"),
            pid: number("_PID"),
            uid: number("_UID"),
        }
    }
}

fn id(entry: &dyn FieldSource, name: &str) -> Option<u128> {
    entry.text(name).and_then(ids::bits)
}

/// A process that wrote records, with further trusted fields of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    /// Which process it is: the only part that is compared.
    pub origin: Origin,
    /// `_HOSTNAME`, cleaned; empty if the entry has none.
    pub hostname: String,
    /// `_SYSTEMD_UNIT`, cleaned; empty if the entry has none.
    pub unit: String,
    /// True if it ran on another machine than the reader, where users and units differ.
    pub is_remote: bool,
}

impl Writer {
    /// Who wrote an entry that was read.
    pub fn of_entry(entry: &journal::Entry) -> Self {
        Self::of(entry)
    }

    pub fn of(entry: &dyn FieldSource) -> Self {
        let text = |name| entry.text(name).map(clean::text).unwrap_or_default();
        Self {
            origin: Origin::of(entry),
            hostname: text("_HOSTNAME"),
            unit: text("_SYSTEMD_UNIT"),
            is_remote: false,
        }
    }

    /// Its system service; `None` for processes of a user, also in the user's own services.
    pub fn service(&self) -> Option<&str> {
        Some(&*self.unit).filter(|unit| is_service(unit))
    }

    /// False for a user's run on another machine, because a service's runs there come first. Files that journald did
    /// not write name no unit.
    pub fn is_preferred(&self) -> bool {
        !self.is_remote || self.unit.is_empty() || self.service().is_some()
    }

    /// Its account, in short: its service, its user, or both if the service is not known to be tlsdash's; empty if the
    /// journal does not have it.
    pub fn account(&self) -> String {
        match (self.service(), self.origin.uid) {
            (Some(unit), None) => unit.to_owned(),
            (Some(unit), Some(_)) if is_tlsdash(unit) => unit.to_owned(),
            (Some(unit), Some(uid)) => format!("{unit} (uid {uid})"),
            (None, Some(uid)) => format!("uid {uid}"),
            (None, None) => String::new(),
        }
    }

    /// True if both are of one account: the same unit of tlsdash, else the same user, of one host.
    pub fn is_same_account(&self, other: &Self) -> bool {
        let is_same_host = self.origin.machine == other.origin.machine && self.hostname == other.hostname;
        let is_same_owner = if is_tlsdash(&self.unit) || is_tlsdash(&other.unit) {
            self.unit == other.unit
        } else {
            self.origin.uid == other.origin.uid
        };
        is_same_host && is_same_owner
    }
}

/// True for the name of a system service, not for sessions and a user's manager, `user@UID.service`, which runs
/// anything that the user starts.
fn is_service(unit: &str) -> bool {
    unit.ends_with(".service") && !unit.starts_with("user@")
}

/// True for the units that run tlsdash: `tlsdash.service`, and `tlsdash@NAME.service` or `tlsdash-NAME.service`. In
/// other services users may run anything: `cron.service` runs the jobs of all users, a web server their scripts.
pub fn is_tlsdash(unit: &str) -> bool {
    let name = unit.strip_suffix(".service").and_then(|name| name.strip_prefix("tlsdash"));
    name.is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', '-']))
}

/// A message of journald: its rate limit dropped messages of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuppressedMessages {
    /// `_BOOT_ID`: where and when.
    pub boot: Option<u128>,
    /// `OBJECT_PID`: the process whose message journald accepted first after the drop.
    pub pid: Option<u32>,
    /// `OBJECT_SYSTEMD_UNIT`: its unit, which all dropped messages came from; empty if unknown.
    pub unit: String,
    /// `N_DROPPED`: how many messages.
    pub dropped: u64,
}

impl SuppressedMessages {
    /// Reads it from an entry that was read, if the entry is such a message.
    pub fn of_entry(entry: &journal::Entry) -> Option<Self> {
        Self::of(entry)
    }

    /// Reads it from an entry, if the entry is such a word and journald's own: `driver` is a transport that no client
    /// can claim.
    pub fn of(entry: &dyn FieldSource) -> Option<Self> {
        let is_journalds_own = || entry.text("_TRANSPORT") == Some("driver");
        if entry.text("MESSAGE_ID") != Some(DROPPED_MESSAGE_ID) || !is_journalds_own() {
            return None;
        }
        Some(Self {
            boot: id(entry, "_BOOT_ID"),
            pid: entry.text("OBJECT_PID").and_then(|text| text.parse().ok()),
            unit: entry.text("OBJECT_SYSTEMD_UNIT").map(clean::text).unwrap_or_default(),
            dropped: entry.text("N_DROPPED")?.parse().ok()?,
        })
    }

    /// True if messages of this process may be among the dropped ones: each unit has one limit.
    pub fn concerns(&self, origin: &Origin, unit: &str) -> bool {
        let same_boot = self.boot.is_some() && self.boot == origin.boot;
        let same_unit = !unit.is_empty() && self.unit == unit;
        same_boot && (same_unit || self.is_about(origin))
    }

    /// True if it names this very process.
    pub fn is_about(&self, origin: &Origin) -> bool {
        self.pid.is_some() && self.pid == origin.pid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::EntryBuf;

    fn notice(transport: &str) -> EntryBuf {
        let mut entry = EntryBuf::new();
        entry.push("MESSAGE_ID", DROPPED_MESSAGE_ID.as_bytes());
        entry.push("N_DROPPED", b"17");
        entry.push("OBJECT_PID", b"42");
        entry.push("OBJECT_SYSTEMD_UNIT", b"tlsdash.service");
        entry.push_trusted("_TRANSPORT", transport.as_bytes());
        entry.push_trusted("_BOOT_ID", format!("{:032x}", 7).as_bytes());
        entry
    }

    #[test]
    fn only_journald_itself_is_believed_that_it_dropped_messages() {
        assert_eq!(SuppressedMessages::of(&notice("driver")).unwrap().dropped, 17);
        assert_eq!(SuppressedMessages::of(&notice("journal")), None);
    }

    #[test]
    fn dropped_messages_concern_that_units_processes_in_that_boot() {
        let notice = SuppressedMessages::of(&notice("driver")).unwrap();
        let at = |boot, pid| Origin { boot: Some(boot), pid: Some(pid), ..Origin::default() };
        assert!(notice.concerns(&at(7, 1), "tlsdash.service"));
        assert!(notice.concerns(&at(7, 42), ""));
        assert!(!notice.concerns(&at(8, 42), "tlsdash.service"), "another boot");
        assert!(!notice.concerns(&at(7, 1), "other.service"));
        assert!(
            !SuppressedMessages { unit: String::new(), ..notice }.concerns(&at(7, 1), ""),
            "no unit is not one unit"
        );
    }

    #[test]
    fn an_origin_is_read_as_far_as_the_entry_says_it() {
        let own = Origin::own();
        assert_eq!(own.pid, Some(std::process::id()));
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let boot = u128::from_str_radix(&boot.trim().replace('-', ""), 16).unwrap();
        assert_eq!(own.boot, Some(boot));
        let mut odd = EntryBuf::new();
        odd.push_trusted("_BOOT_ID", b"+0000000000000000000000000000007");
        odd.push_trusted("_PID", b"-1");
        assert_eq!(Origin::of(&odd), Origin { boot: None, ..Origin::default() });
    }

    fn writer(uid: u32, unit: &str) -> Writer {
        let origin = Origin { uid: Some(uid), ..Origin::default() };
        Writer { origin, unit: unit.to_owned(), ..Writer::default() }
    }

    #[test]
    fn only_services_named_after_tlsdash_are_its_units() {
        for unit in ["tlsdash.service", "tlsdash@web.service", "tlsdash-web.service"] {
            assert!(is_tlsdash(unit), "{unit}");
        }
        for unit in [
            "",
            "tlsdash",
            "tlsdash.scope",
            "tlsdash.socket",
            "tlsdash.service.service",
            "tlsdashed.service",
            "TLSDASH.service",
            "user@1000.service",
            "user@tlsdash.service",
            "app-tlsdash.service",
            " tlsdash.service",
            "cron.service",
        ] {
            assert!(!is_tlsdash(unit), "{unit:?}");
        }
    }

    #[test]
    fn an_account_is_named_by_its_unit_only_if_no_user_chose_it() {
        let account = |uid, unit| writer(uid, unit).account();
        assert_eq!(account(998, "tlsdash.service"), "tlsdash.service");
        assert_eq!(account(1_000, "user@1000.service"), "uid 1000");
        assert_eq!(account(1_000, "session-3.scope"), "uid 1000");
        assert_eq!(account(1_000, "cron.service"), "cron.service (uid 1000)");
        assert_eq!(account(0, ""), "uid 0");
        assert_eq!(Writer::default().account(), "");
    }

    #[test]
    fn an_account_is_one_unit_of_tlsdash_or_else_one_user_of_one_host() {
        let unit = |uid| writer(uid, "tlsdash.service");
        assert!(unit(998).is_same_account(&unit(64_000)), "a dynamic user may be another after a restart");
        assert!(!unit(998).is_same_account(&writer(998, "tlsdash@web.service")));
        assert!(!unit(1_000).is_same_account(&writer(1_000, "user@1000.service")));
        assert!(writer(1_000, "session-1.scope").is_same_account(&writer(1_000, "session-2.scope")));
        assert!(!writer(1_000, "cron.service").is_same_account(&writer(0, "cron.service")));
        let elsewhere = Writer { hostname: "edge-2".to_owned(), ..unit(998) };
        assert!(!unit(998).is_same_account(&elsewhere));
    }
}
