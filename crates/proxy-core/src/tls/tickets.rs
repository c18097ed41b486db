//! Session tickets (RFC 5077, RFC 8446 4.6.1): their keys, and sealing and opening them.
//!
//! A ticket is `name (16) | nonce (12) | sealed(seconds since 1970 (8) | session) | tag (16)`, AES-256-GCM-SIV (RFC
//! 8452): unlike GCM it stands the same random nonce coming up twice, as it may on many hosts under one key.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::{hkdf, rand};
use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use super::error::{TlsFileError, TlsFileWarning};
use super::files::{self, FileOrigin, FromFiles};

const NAME_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
/// Bytes of a key in a file: a name, which tickets carry openly, and a secret.
const FILE_KEY_BYTES: usize = 80;
/// Keys in a file at most.
const FILE_KEYS_MAX: usize = 16;
/// Keys of our own at most; bounds the lifetime of tickets in rotations.
pub(super) const OWN_KEYS_MAX: u32 = 32;

type Name = [u8; NAME_BYTES];
/// What a ticket is bound to, besides its key.
pub(super) type Binding = [u8; 32];

/// A key that seals tickets.
pub(super) struct TicketKey {
    name: Name,
    key: RandomizedNonceKey,
}

impl TicketKey {
    fn random() -> Result<Self, Unspecified> {
        let mut bytes = Zeroizing::new([0; FILE_KEY_BYTES]);
        rand::fill(&mut *bytes)?;
        Self::derive(&bytes)
    }

    /// The secret is not used as it is: nginx, for one, uses such files too, and in another way.
    fn derive(bytes: &[u8; FILE_KEY_BYTES]) -> Result<Self, Unspecified> {
        let (name, secret) = bytes.split_at(NAME_BYTES);
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        hkdf::Salt::new(hkdf::HKDF_SHA256, name)
            .extract(secret)
            .expand(&[b"tlsdash session ticket 1"], hkdf::HKDF_SHA256)?
            .fill(&mut *key)?;
        let mut own = Name::default();
        own.copy_from_slice(name);
        Ok(Self { name: own, key: RandomizedNonceKey::new(&AES_256_GCM_SIV, &*key)? })
    }
}

impl fmt::Debug for TicketKey {
    // By hand, so that no secret can show up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKey").finish_non_exhaustive()
    }
}

/// The keys of a file that several processes share, on one host or on many.
#[derive(Clone, Debug)]
pub struct TicketKeyFile {
    keys: Vec<Arc<TicketKey>>,
    warnings: Vec<TlsFileWarning>,
    origin: FileOrigin,
}

impl TicketKeyFile {
    /// Loads keys of 80 random bytes each: the first seals new tickets, all open them.
    ///
    /// # Errors
    /// When the file cannot be read, or does not hold such keys.
    pub fn load(path: &Path) -> Result<Self, TlsFileError> {
        let origin = FileOrigin::of(&[path]);
        let contents = files::read(path)?;
        let (bytes, rest) = contents.bytes.as_chunks::<FILE_KEY_BYTES>();
        let malformed = |problem: String| TlsFileError::malformed(path, problem);
        if !rest.is_empty() || contents.bytes.iter().all(u8::is_ascii) {
            return Err(malformed(format!(
                "expected keys of {FILE_KEY_BYTES} random bytes each, as from openssl rand -out {} {FILE_KEY_BYTES}",
                path.display()
            )));
        }
        if bytes.len() > FILE_KEYS_MAX {
            return Err(malformed(format!("{} keys are more than {FILE_KEYS_MAX}", bytes.len())));
        }
        // A file that was never filled, or a key that was added twice, makes tickets that anyone opens or none.
        if bytes.iter().any(|key| key[NAME_BYTES..].iter().all(|&byte| byte == key[NAME_BYTES])) {
            return Err(malformed("a key that is one byte over and over is not random".into()));
        }
        let names: HashSet<&[u8]> = bytes.iter().map(|key| &key[..NAME_BYTES]).collect();
        if names.len() < bytes.len() {
            return Err(malformed("two keys have the same name, their first 16 bytes".into()));
        }
        let keys = bytes.iter().map(|key| TicketKey::derive(key).map(Arc::new));
        let keys = keys.collect::<Result<_, _>>().map_err(|error| malformed(error.to_string()))?;
        Ok(Self { keys, warnings: contents.exposure(path).into_iter().collect(), origin })
    }

    /// What a person should know about it.
    pub fn warnings(&self) -> &[TlsFileWarning] {
        &self.warnings
    }

    /// What it is, in one line without any secret: the beginnings of the keys' names, that of the one that seals first.
    pub(super) fn summary(&self) -> String {
        let names =
            self.keys.iter().map(|key| format!("{:08x}", (u128::from_be_bytes(key.name) >> 96) as u32));
        format!("{} of {}", names.collect::<Vec<_>>().join(" "), self.origin.paths()[0].display())
    }

    pub(super) fn keys(&self) -> Vec<Arc<TicketKey>> {
        self.keys.clone()
    }
}

impl FromFiles for TicketKeyFile {
    fn origin(&self) -> Option<&FileOrigin> {
        Some(&self.origin)
    }

    fn read_again(&self) -> Result<Self, TlsFileError> {
        Self::load(&self.origin.paths()[0])
    }
}

/// Keys that are random in this process, never leave it, and are replaced from time to time.
#[derive(Debug)]
pub(super) struct OwnKeys {
    /// The newest first, each with the moment it was made.
    keys: VecDeque<(Arc<TicketKey>, Instant)>,
}

impl OwnKeys {
    pub(super) fn new(now: Instant) -> Result<Self, Unspecified> {
        Ok(Self { keys: VecDeque::from([(Arc::new(TicketKey::random()?), now)]) })
    }

    pub(super) fn keys(&self) -> Vec<Arc<TicketKey>> {
        self.keys.iter().map(|(key, _)| Arc::clone(key)).collect()
    }

    /// Makes a new key if the newest has sealed for `rotation`, and forgets those whose last tickets are older than
    /// `lifetime`. Returns whether the keys have changed.
    pub(super) fn rotate(
        &mut self,
        now: Instant,
        rotation: Duration,
        lifetime: Duration,
    ) -> Result<bool, Unspecified> {
        let before = self.keys.len();
        // A key has sealed until the next newer one was made.
        while self.keys.len() > 1
            && now.saturating_duration_since(self.keys[self.keys.len() - 2].1) > lifetime
        {
            self.keys.pop_back();
        }
        let is_due = now.saturating_duration_since(self.keys[0].1) >= rotation;
        if is_due {
            self.keys.push_front((Arc::new(TicketKey::random()?), now));
            self.keys.truncate(OWN_KEYS_MAX as usize);
        }
        Ok(is_due || self.keys.len() < before)
    }
}

/// Seals with its first key, and opens with all of them.
pub(super) struct Ticketer {
    keys: Vec<Arc<TicketKey>>,
    lifetime: Duration,
    binding: Binding,
}

impl Ticketer {
    /// `keys` are at least one. Tickets of another `binding` do not open.
    pub(super) fn new(keys: Vec<Arc<TicketKey>>, lifetime: Duration, binding: Binding) -> Self {
        Self { keys, lifetime, binding }
    }

    fn seal(&self, session: &[u8], now: u64) -> Option<Vec<u8>> {
        let sealing = self.keys.first()?;
        let mut body = Vec::with_capacity(8 + session.len() + AES_256_GCM_SIV.tag_len());
        body.extend_from_slice(&now.to_be_bytes());
        body.extend_from_slice(session);
        let nonce = sealing.key.seal_in_place_append_tag(Aad::from(self.binding), &mut body).ok()?;
        let mut ticket = Vec::with_capacity(NAME_BYTES + NONCE_LEN + body.len());
        ticket.extend_from_slice(&sealing.name);
        ticket.extend_from_slice(nonce.as_ref());
        ticket.extend_from_slice(&body);
        Some(ticket)
    }

    fn open(&self, ticket: &[u8], now: u64) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let opening = self.keys.iter().find(|key| key.name == *name)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut body = sealed.to_vec();
        let opened = opening.key.open_in_place(nonce, Aad::from(self.binding), &mut body).ok()?;
        let (made_at, len) = (u64::from_be_bytes(*opened.first_chunk()?), opened.len());
        // In the same memory, so that no copy of the session's secret stays behind.
        body.truncate(len);
        body.drain(..size_of_val(&made_at));
        // Another host's clock may be ahead of ours.
        (now.saturating_sub(made_at) <= self.lifetime.as_secs()).then_some(body)
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.lifetime.as_secs() as u32
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        self.seal(session, unix_now())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open(ticket, unix_now())
    }
}

impl fmt::Debug for Ticketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticketer").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

/// Seconds since 1970.
pub(super) fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const NOW: u64 = 1_800_000_000;

    fn ticketer(keys: &[Arc<TicketKey>]) -> Ticketer {
        Ticketer::new(keys.to_vec(), HOUR, [7; 32])
    }

    fn random() -> Arc<TicketKey> {
        Arc::new(TicketKey::random().unwrap())
    }

    /// Different bytes for each seed.
    fn file_key(seed: u8) -> Vec<u8> {
        (0..FILE_KEY_BYTES as u8).map(|i| i.wrapping_mul(31).wrapping_add(seed) | 0x80).collect()
    }

    #[test]
    fn a_ticket_opens_under_any_of_the_keys_and_no_other() {
        let (old, new) = (random(), random());
        let sealed = ticketer(&[Arc::clone(&old)]).seal(b"session", NOW).unwrap();
        assert_eq!(ticketer(&[Arc::clone(&new), old]).open(&sealed, NOW).unwrap(), b"session");
        assert_eq!(ticketer(&[new]).open(&sealed, NOW), None);
    }

    #[test]
    fn a_ticket_does_not_outlive_its_lifetime_nor_its_binding() {
        let key = random();
        let own = ticketer(&[Arc::clone(&key)]);
        let sealed = own.seal(b"session", NOW).unwrap();
        assert!(own.open(&sealed, NOW + 3600).is_some());
        assert_eq!(own.open(&sealed, NOW + 3601), None);
        assert!(own.open(&sealed, NOW - 60).is_some(), "the clock of who sealed it was ahead");
        assert_eq!(Ticketer::new(vec![key], HOUR, [8; 32]).open(&sealed, NOW), None);
    }

    proptest! {
        #[test]
        fn what_is_not_a_ticket_of_ours_does_not_open(
            garbage in prop::collection::vec(any::<u8>(), 0..200),
            at in 0..60_usize,
            flip in 1..=255_u8,
        ) {
            let key = random();
            let own = ticketer(&[key]);
            prop_assert_eq!(own.open(&garbage, NOW), None);
            let mut sealed = own.seal(b"session", NOW).unwrap();
            prop_assert_eq!(own.open(&sealed[..sealed.len() - 1], NOW), None);
            let at = at % sealed.len();
            sealed[at] ^= flip;
            prop_assert_eq!(own.open(&sealed, NOW), None);
        }
    }

    #[test]
    fn own_keys_seal_for_a_rotation_and_open_for_a_lifetime_more() {
        let begin = Instant::now();
        let mut keys = OwnKeys::new(begin).unwrap();
        let at = |hours: u32| begin + HOUR * hours;
        let first = keys.keys()[0].name;
        let mut rotate =
            |hours| keys.rotate(at(hours), HOUR * 6, HOUR * 12).map(|changed| (changed, keys.keys()));
        assert!(!rotate(5).unwrap().0);
        // Until six hours it has sealed, so that its last ticket is good until eighteen.
        for (hours, count) in [(6, 2), (12, 3), (18, 4)] {
            let (changed, keys) = rotate(hours).unwrap();
            assert!(changed && keys.len() == count, "{hours}");
            assert_eq!(keys.last().unwrap().name, first);
            assert_ne!(keys[0].name, first);
        }
        let (changed, keys) = rotate(19).unwrap();
        assert!(changed && keys.iter().all(|key| key.name != first), "it is forgotten");
    }

    #[test]
    fn a_file_of_keys_is_shared_by_content_and_its_first_key_seals() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), file_key(1)).unwrap();
        fs::write(at("new"), [file_key(2), file_key(1)].concat()).unwrap();
        let keys = |name: &str| TicketKeyFile::load(&at(name)).unwrap().keys();
        let sealed = ticketer(&keys("old")).seal(b"session", NOW).unwrap();
        assert_eq!(ticketer(&keys("new")).open(&sealed, NOW).unwrap(), b"session");
        let sealed = ticketer(&keys("new")).seal(b"session", NOW).unwrap();
        assert_eq!(ticketer(&keys("old")).open(&sealed, NOW), None);
        assert_eq!(sealed[..16], file_key(2)[..16]);
    }

    #[test]
    fn files_that_are_no_keys_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        for (bytes, part) in [
            (vec![], "empty"),
            (file_key(1)[..48].to_vec(), "80 random bytes"),
            ([file_key(1), vec![200]].concat(), "80 random bytes"),
            // Base64, as HAProxy wants it.
            (b"A".repeat(160), "80 random bytes"),
            (vec![0xff; 80], "not random"),
            ([file_key(1), file_key(1)].concat(), "same name"),
            ((0..17).flat_map(file_key).collect(), "17 keys"),
        ] {
            fs::write(&path, &bytes).unwrap();
            let text = TicketKeyFile::load(&path).unwrap_err().to_string();
            assert!(text.contains(part) && text.contains(path.to_str().unwrap()), "{text}");
        }
    }

    #[test]
    fn keys_never_show() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        fs::write(&path, file_key(1)).unwrap();
        let file = TicketKeyFile::load(&path).unwrap();
        let secret = u32::from_be_bytes(*file_key(1)[NAME_BYTES..].first_chunk().unwrap());
        let secret = format!("{secret:08x}");
        let secret_list = format!("{:?}", &file_key(1)[NAME_BYTES..NAME_BYTES + 4]);
        let own = OwnKeys::new(Instant::now()).unwrap();
        for text in
            [format!("{file:?}"), file.summary(), format!("{:?}", ticketer(&file.keys())), format!("{own:?}")]
        {
            assert!(
                !text.contains(&secret) && !text.contains(secret_list.trim_matches(['[', ']'])),
                "{text}"
            );
        }
        assert_eq!(format!("{:?}", file.keys), "[TicketKey { .. }]");
    }
}
