//! The writers whose runs are read from a journal, and the ignored runs of other writers.

use std::str::FromStr;

use clap::Args;
use model::history::WriterFilter;
use nix::unistd::User;
use records::codec::{Origin, Writer};
use records::text::quantity::counted;

use crate::journals::source::JournalSource;
use crate::value::ParsedValue;

/// Accounts named in messages about ignored runs; a user may have thousands of subordinate UIDs.
const ACCOUNTS_MAX: usize = 8;

/// Whose runs are read.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WriterArgs {
    /// Read runs of this user only. By default, in a journal of this host, those of root, your own, and those of the
    /// units tlsdash.service, tlsdash@NAME.service and tlsdash-NAME.service; in a recording all
    #[arg(long, value_name = "UID|NAME")]
    pub(crate) uid: Option<ParsedValue<UserId>>,
    /// Read runs of this service of the system only
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Option<String>,
    /// Read runs of all users, who may write what they like
    #[arg(long, conflicts_with_all = ["uid", "unit"])]
    pub(crate) any_user: bool,
}

impl WriterArgs {
    /// The writers whose runs are read from this journal.
    pub(crate) fn filter(&self, place: &JournalSource) -> WriterFilter {
        let uid = self.uid.as_ref().map(|uid| uid.0);
        match (uid, self.named_unit()) {
            (None, None) if !self.any_user && place.is_of_this_host() => WriterFilter::Trusted(Origin::own()),
            (None, None) => WriterFilter::Any,
            (uid, unit) => WriterFilter::Named { uid, unit },
        }
    }

    /// The name of the unit in full.
    pub(crate) fn named_unit(&self) -> Option<String> {
        let full = |unit: &String| if unit.contains('.') { unit.clone() } else { format!("{unit}.service") };
        self.unit.as_ref().map(full)
    }

    /// The writers whose runs are read, in words.
    fn described(&self) -> String {
        match (self.uid.as_ref().map(ParsedValue::text), &self.unit) {
            (Some(uid), Some(unit)) => format!("of user {uid} in {unit}"),
            (Some(uid), None) => format!("of user {uid}"),
            (None, Some(unit)) => format!("of {unit}"),
            (None, None) => {
                let own = Origin::own().uid.filter(|uid| *uid != 0);
                let own = own.map_or_else(String::new, |uid| format!(", of uid {uid}"));
                format!("of root{own} or of tlsdash.service")
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct UserId(u32);

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("there is no user of this name")]
pub(crate) struct UnknownUser;

impl FromStr for UserId {
    type Err = UnknownUser;

    /// Parses a number, or looks up a name.
    fn from_str(text: &str) -> Result<Self, UnknownUser> {
        if let Ok(uid) = text.parse() {
            return Ok(Self(uid));
        }
        let user = User::from_name(text).ok().flatten().ok_or(UnknownUser)?;
        Ok(Self(user.uid.as_raw()))
    }
}

/// Runs ignored because of who wrote them.
#[derive(Debug, Default)]
pub(crate) struct IgnoredRuns {
    accounts: Vec<(Writer, usize)>,
    /// Runs of further accounts.
    others: usize,
}

impl IgnoredRuns {
    /// Counts a run. Returns a line about it if it is the first of its account.
    pub(crate) fn note_first(&mut self, writer: Writer) -> Option<String> {
        self.note(writer).then(|| self.lines().pop()).flatten()
    }

    /// Counts a run. Returns whether it is the first of its account.
    pub(crate) fn note(&mut self, writer: Writer) -> bool {
        if let Some((_, runs)) =
            self.accounts.iter_mut().find(|(known, _)| known.account() == writer.account())
        {
            *runs += 1;
            return false;
        }
        let has_room = self.accounts.len() < ACCOUNTS_MAX;
        if has_room {
            self.accounts.push((writer, 1));
        } else {
            self.others += 1;
        }
        has_room
    }

    /// A line for each account: the ignored runs, and the flags that show them.
    pub(crate) fn lines(&self) -> Vec<String> {
        let line = |(writer, runs): &(Writer, usize)| {
            let (it, account) = (it(*runs), writer.account());
            format!(
                "{} of {account} ignored: {} or --any-user shows {it}",
                counted(*runs as u64, "run"),
                flags(writer)
            )
        };
        let others = (self.others > 0).then(|| {
            format!("{} of other users ignored: --any-user shows them", counted(self.others as u64, "run"))
        });
        self.accounts.iter().map(line).chain(others).collect()
    }

    /// The runs in the journal in place of the requested ones; `None` if there are none.
    pub(crate) fn other_runs(&self, asked: &WriterArgs) -> Option<String> {
        let lines = self.lines();
        (!lines.is_empty()).then(|| format!("no run {}: {}", asked.described(), lines.join(", ")))
    }
}

/// The flags that show the runs of an account.
fn flags(writer: &Writer) -> String {
    let unit = writer.service().map(|unit| format!("--unit {unit}"));
    let uid = writer.origin.uid.map(|uid| format!("--uid {uid}"));
    unit.into_iter().chain(uid).collect::<Vec<_>>().join(", ")
}

fn it(runs: usize) -> &'static str {
    if runs == 1 { "it" } else { "them" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(uid: u32, unit: &str) -> Writer {
        let origin = Origin { uid: Some(uid), ..Origin::default() };
        Writer { origin, unit: unit.to_owned(), ..Writer::default() }
    }

    #[test]
    fn what_was_left_out_is_said_with_what_shows_it() {
        let mut ignored = IgnoredRuns::default();
        assert_eq!((ignored.lines().len(), ignored.other_runs(&WriterArgs::default())), (0, None));
        assert!(ignored.note(writer(1_000, "user@1000.service")));
        assert_eq!(ignored.lines(), ["1 run of uid 1000 ignored: --uid 1000 or --any-user shows it"]);
        assert!(!ignored.note(writer(1_000, "session-3.scope")));
        assert!(ignored.note(writer(998, "edge.service")));
        assert_eq!(
            ignored.lines(),
            [
                "2 runs of uid 1000 ignored: --uid 1000 or --any-user shows them",
                "1 run of edge.service (uid 998) ignored: --unit edge.service, --uid 998 or --any-user shows it",
            ]
        );
        for uid in 0..100 {
            ignored.note(writer(100_000 + uid, ""));
        }
        let lines = ignored.lines();
        assert_eq!(lines.len(), ACCOUNTS_MAX + 1);
        assert_eq!(lines[ACCOUNTS_MAX], "94 runs of other users ignored: --any-user shows them");
    }

    #[test]
    fn a_user_is_named_or_numbered_and_a_unit_is_a_service() {
        let place = JournalSource::Path("/tmp/x.journal".into());
        let filter = |uid: Option<&str>, unit: Option<&str>| {
            let uid = uid.map(|uid| uid.parse().unwrap());
            WriterArgs { uid, unit: unit.map(Into::into), any_user: false }.filter(&place)
        };
        let named = |uid, unit: Option<&str>| WriterFilter::Named { uid, unit: unit.map(str::to_owned) };
        assert_eq!(filter(Some("root"), None), named(Some(0), None));
        assert_eq!(filter(Some("12"), Some("a@b")), named(Some(12), Some("a@b.service")));
        assert_eq!(filter(None, Some("x.scope")), named(None, Some("x.scope")));
        assert_eq!(filter(None, None), WriterFilter::Any);
        for text in ["", "-1", "4294967296", "nobody-is-called-so"] {
            assert!(text.parse::<UserId>().is_err(), "{text:?}");
        }
    }
}
