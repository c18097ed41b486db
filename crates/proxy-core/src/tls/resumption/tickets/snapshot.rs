//! The keys of tickets on their way to the process that replaces this one.
//!
//! A line names the format. Then comes each key, the newest first: its age in milliseconds (8 bytes, big-endian), and the
//! 80 bytes that it was made of.

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use aws_lc_rs::error::Unspecified;
use zeroize::Zeroizing;

use super::{FILE_KEY_BYTES, NAME_BYTES, OWN_KEYS_MAX, OwnKey, RotatingTicketKeys};

/// Begins a snapshot. A program that derives keys in another way must name another format.
const FORMAT: &[u8] = b"tlsdash ticket keys 1\n";
const AGE_BYTES: usize = 8;
const ENTRY_BYTES: usize = AGE_BYTES + FILE_KEY_BYTES;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketSnapshotError {
    /// Another version of the program wrote them.
    #[error("ticket keys are in another format")]
    Format,
    /// Too few or too many bytes.
    #[error("ticket keys have {0} bytes: this is no number of keys from 1 to {OWN_KEYS_MAX}")]
    Length(usize),
    /// An older key comes before a newer one.
    #[error("ticket keys are not in the order of their ages")]
    Order,
    /// A key that repeats one byte, or a duplicate key.
    #[error("a ticket key is not random")]
    NotRandom,
}

/// All keys that open tickets, with their ages. Wiped when it is dropped.
pub struct TicketKeySnapshot {
    bytes: Zeroizing<Vec<u8>>,
}

impl TicketKeySnapshot {
    pub const BYTES_MAX: usize = FORMAT.len() + OWN_KEYS_MAX as usize * ENTRY_BYTES;

    /// Checks bytes that another process wrote.
    ///
    /// # Errors
    /// When they are not the keys of tickets.
    pub fn parse(bytes: Zeroizing<Vec<u8>>) -> Result<Self, TicketSnapshotError> {
        let snapshot = Self { bytes };
        let rest = snapshot.bytes.strip_prefix(FORMAT).ok_or(TicketSnapshotError::Format)?;
        let count = rest.len() / ENTRY_BYTES;
        if !rest.len().is_multiple_of(ENTRY_BYTES) || !(1..=OWN_KEYS_MAX as usize).contains(&count) {
            return Err(TicketSnapshotError::Length(rest.len()));
        }
        if !snapshot.entries().is_sorted_by_key(|(age, _)| age) {
            return Err(TicketSnapshotError::Order);
        }
        let names: HashSet<&[u8]> = snapshot.entries().map(|(_, key)| &key[..NAME_BYTES]).collect();
        let is_constant = |key: &[u8; FILE_KEY_BYTES]| {
            let secret = &key[NAME_BYTES..];
            secret.iter().all(|byte| *byte == secret[0])
        };
        if names.len() < count || snapshot.entries().any(|(_, key)| is_constant(key)) {
            return Err(TicketSnapshotError::NotRandom);
        }
        Ok(snapshot)
    }

    /// The bytes, which are secret.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn len(&self) -> usize {
        self.entries().count()
    }

    /// Whether there is no key, which never happens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The age and the secret of each key, the newest first.
    fn entries(&self) -> impl Iterator<Item = (Duration, &[u8; FILE_KEY_BYTES])> {
        let entries = self.bytes.get(FORMAT.len()..).unwrap_or_default();
        entries.as_chunks::<ENTRY_BYTES>().0.iter().filter_map(|entry| {
            let (age, key) = entry.split_first_chunk::<AGE_BYTES>()?;
            Some((Duration::from_millis(u64::from_be_bytes(*age)), key.try_into().ok()?))
        })
    }
}

impl fmt::Debug for TicketKeySnapshot {
    // By hand, so no secret can appear.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeySnapshot").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl RotatingTicketKeys {
    /// All keys with their ages.
    pub(in crate::tls) fn snapshot(&self, now: Instant) -> TicketKeySnapshot {
        // Allocated at once: a growing vector leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(TicketKeySnapshot::BYTES_MAX));
        bytes.extend_from_slice(FORMAT);
        for OwnKey { made_at, secret, .. } in &self.keys {
            let age = now.saturating_duration_since(*made_at).as_millis() as u64;
            bytes.extend_from_slice(&age.to_be_bytes());
            bytes.extend_from_slice(&secret[..]);
        }
        TicketKeySnapshot { bytes }
    }

    /// The keys of another process, with the ages that they had there.
    pub(in crate::tls) fn restore(snapshot: &TicketKeySnapshot, now: Instant) -> Result<Self, Unspecified> {
        let keys = snapshot.entries().map(|(age, key)| {
            let mut secret = Box::new(Zeroizing::new([0; FILE_KEY_BYTES]));
            secret.copy_from_slice(key);
            // The host has not been up for as long as a false age.
            OwnKey::made_of(secret, now.checked_sub(age).unwrap_or(now))
        });
        Ok(Self { keys: keys.collect::<Result<_, _>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ticketer;
    use super::*;
    use crate::tls::clock::unix_now;
    use crate::tls::testing::SESSION;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Three keys made an hour apart, the oldest at `begin`.
    fn three(begin: Instant) -> RotatingTicketKeys {
        let mut keys = RotatingTicketKeys::new(begin).unwrap();
        keys.add(begin + HOUR).unwrap();
        keys.add(begin + 2 * HOUR).unwrap();
        keys
    }

    fn ticketer(keys: &RotatingTicketKeys) -> Ticketer {
        Ticketer::new(keys.keys(), 100 * HOUR, [7; 32])
    }

    fn parsed(bytes: &[u8]) -> Result<TicketKeySnapshot, TicketSnapshotError> {
        TicketKeySnapshot::parse(Zeroizing::new(bytes.to_vec()))
    }

    #[test]
    fn every_key_opens_its_tickets_in_the_next_process_and_the_newest_seals() {
        let begin = Instant::now();
        let before = three(begin);
        let snapshot = parsed(before.snapshot(begin + 3 * HOUR).as_bytes()).unwrap();
        assert_eq!(snapshot.len(), 3);
        let after = RotatingTicketKeys::restore(&snapshot, begin + 3 * HOUR).unwrap();
        for key in before.keys() {
            let sealed = Ticketer::new(vec![key], 100 * HOUR, [7; 32]).seal(SESSION, unix_now()).unwrap();
            assert_eq!(ticketer(&after).open(&sealed, unix_now()).unwrap().session, SESSION);
        }
        let sealed = ticketer(&after).seal(SESSION, unix_now()).unwrap();
        let newest = Ticketer::new(before.keys()[..1].to_vec(), HOUR, [7; 32]);
        assert!(newest.open(&sealed, unix_now()).is_ok());
    }

    #[test]
    fn keys_keep_their_ages() {
        let begin = Instant::now();
        let now = begin + 3 * HOUR;
        let mut before = three(begin);
        let mut after = RotatingTicketKeys::restore(&before.snapshot(now), now).unwrap();
        for (at, lifetime, left) in [(now, HOUR + HOUR / 2, 2), (now + HOUR / 2, HOUR, 1)] {
            for keys in [&mut before, &mut after] {
                keys.rotate(at, 100 * HOUR, lifetime).unwrap();
                assert_eq!(keys.keys().len(), left);
            }
        }
        assert!(!after.rotate(now, HOUR + HOUR / 1000, 100 * HOUR).unwrap());
        assert!(after.rotate(now + HOUR, HOUR + HOUR / 1000, 100 * HOUR).unwrap());
    }

    #[test]
    fn other_bytes_are_refused() {
        let begin = Instant::now();
        let good = three(begin).snapshot(begin + 3 * HOUR);
        let good = good.as_bytes();
        let changed = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.to_vec();
            change(&mut bytes);
            parsed(&bytes).unwrap_err()
        };
        assert_eq!(changed(&|bytes| bytes.clear()), TicketSnapshotError::Format);
        assert_eq!(changed(&|bytes| bytes[FORMAT.len() - 2] = b'2'), TicketSnapshotError::Format);
        assert_eq!(changed(&|bytes| bytes.truncate(FORMAT.len())), TicketSnapshotError::Length(0));
        assert_eq!(changed(&|bytes| bytes.push(0)), TicketSnapshotError::Length(3 * ENTRY_BYTES + 1));
        let many = changed(&|bytes| bytes.resize(TicketKeySnapshot::BYTES_MAX + ENTRY_BYTES, 1));
        assert_eq!(many, TicketSnapshotError::Length(33 * ENTRY_BYTES));
        assert_eq!(changed(&|bytes| bytes[FORMAT.len()] = 1), TicketSnapshotError::Order);
        assert_eq!(
            changed(&|bytes| bytes[FORMAT.len() + AGE_BYTES + NAME_BYTES..][..64].fill(9)),
            TicketSnapshotError::NotRandom
        );
        let (first, second) = (FORMAT.len() + AGE_BYTES, FORMAT.len() + AGE_BYTES + ENTRY_BYTES);
        assert_eq!(
            changed(&|bytes| bytes.copy_within(first..first + NAME_BYTES, second)),
            TicketSnapshotError::NotRandom
        );
    }

    #[test]
    fn a_snapshot_does_not_show_its_keys() {
        let keys = RotatingTicketKeys::new(Instant::now()).unwrap();
        let text = format!("{keys:?} {:?}", keys.snapshot(Instant::now()));
        let secret = keys.keys[0].secret[NAME_BYTES..][..4].iter().map(u8::to_string).collect::<Vec<_>>();
        assert!(text.contains("TicketKeySnapshot { len: 1, .. }"), "{text}");
        assert!(!text.contains(&secret.join(", ")), "{text}");
    }
}
