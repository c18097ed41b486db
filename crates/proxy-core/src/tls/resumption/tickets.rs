//! Session tickets (RFC 5077, RFC 8446 4.6.1): their keys, and sealing and opening them.
//!
//! A ticket is `name (16) | nonce (12) | sealed(began_at (8) | binding (16) | session) | tag (16)`, where `began_at` is the
//! time of the session's first handshake in seconds since 1970; AES-256-GCM-SIV (RFC 8452). Unlike GCM it tolerates a
//! repeated random nonce, which may occur on many hosts under one key. The binding is sealed too, and not only
//! authenticated, so a ticket with another binding can be recognised.

pub(in crate::tls) mod snapshot;

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::{hkdf, rand};
use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use crate::tls::certificates::authorities::AuthDigest;
use crate::tls::certificates::error::{TlsFileError, TlsFileWarning};
use crate::tls::certificates::files::{self, FileOrigin, FromFiles};
use crate::tls::certificates::revocation::Revocation;
use crate::tls::clock::unix_now;
use crate::tls::resumption::session;
use crate::tls::resumption::session::OfferedSession;
use crate::tls::server::evidence::HandshakeNotes;

const NAME_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
/// Bytes of the sealed time, in front of the session.
const TIME_BYTES: usize = 8;
/// Bytes of the digest of the rules for client certificates that a ticket is bound to, behind the time.
const BINDING_BYTES: usize = 16;
/// Bytes of a key in a file: a name, which tickets carry openly, and a secret.
const FILE_KEY_BYTES: usize = 80;
const FILE_KEYS_MAX: usize = 16;
/// Keys of our own at most; bounds the lifetime of tickets in rotations.
pub(in crate::tls) const OWN_KEYS_MAX: u32 = 32;

type Name = [u8; NAME_BYTES];

/// A key that seals tickets.
pub(in crate::tls) struct TicketKey {
    name: Name,
    key: RandomizedNonceKey,
}

impl TicketKey {
    #[cfg(test)]
    fn random() -> Result<Self, Unspecified> {
        let mut bytes = [0; FILE_KEY_BYTES];
        rand::fill(&mut bytes)?;
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
    // By hand, so no secret can appear.
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

    pub fn warnings(&self) -> &[TlsFileWarning] {
        &self.warnings
    }

    /// A description in one line without secrets: the beginnings of the keys' names, with the sealing key first.
    pub(in crate::tls) fn summary(&self) -> String {
        let names =
            self.keys.iter().map(|key| format!("{:08x}", (u128::from_be_bytes(key.name) >> 96) as u32));
        format!("{} of {}", names.collect::<Vec<_>>().join(" "), self.origin.paths()[0].display())
    }

    pub(in crate::tls) fn keys(&self) -> Vec<Arc<TicketKey>> {
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

/// A key of this process, or of one that it has replaced.
struct OwnKey {
    key: Arc<TicketKey>,
    /// The secret that it was derived from, for the process that replaces this one.
    secret: Box<Zeroizing<[u8; FILE_KEY_BYTES]>>,
    made_at: Instant,
}

impl OwnKey {
    fn random(now: Instant) -> Result<Self, Unspecified> {
        let mut secret = Box::new(Zeroizing::new([0; FILE_KEY_BYTES]));
        rand::fill(&mut **secret)?;
        Self::made_of(secret, now)
    }

    fn made_of(secret: Box<Zeroizing<[u8; FILE_KEY_BYTES]>>, made_at: Instant) -> Result<Self, Unspecified> {
        Ok(Self { key: Arc::new(TicketKey::derive(&secret)?), secret, made_at })
    }
}

impl fmt::Debug for OwnKey {
    // By hand, so no secret can appear.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnKey").field("made_at", &self.made_at).finish_non_exhaustive()
    }
}

/// Random keys of this process, and of processes that it replaces or that replace it. They are rotated.
#[derive(Debug)]
pub(in crate::tls) struct RotatingTicketKeys {
    /// The newest first.
    keys: VecDeque<OwnKey>,
}

impl RotatingTicketKeys {
    pub(in crate::tls) fn new(now: Instant) -> Result<Self, Unspecified> {
        Ok(Self { keys: VecDeque::from([OwnKey::random(now)?]) })
    }

    pub(in crate::tls) fn keys(&self) -> Vec<Arc<TicketKey>> {
        self.keys.iter().map(|own| Arc::clone(&own.key)).collect()
    }

    /// Makes a new key if the newest has sealed for `rotation`, and forgets those whose last tickets are older than
    /// `lifetime`. Returns whether the keys have changed.
    pub(in crate::tls) fn rotate(
        &mut self,
        now: Instant,
        rotation: Duration,
        lifetime: Duration,
    ) -> Result<bool, Unspecified> {
        let before = self.keys.len();
        // A key has sealed until the next newer one was made.
        while self.keys.len() > 1
            && now.saturating_duration_since(self.keys[self.keys.len() - 2].made_at) > lifetime
        {
            self.keys.pop_back();
        }
        let is_due = now.saturating_duration_since(self.keys[0].made_at) >= rotation;
        if is_due {
            self.add(now)?;
        }
        Ok(is_due || self.keys.len() < before)
    }

    /// Makes a new key, which seals from now on. The oldest key is dropped if there are too many.
    pub(in crate::tls) fn add(&mut self, now: Instant) -> Result<(), Unspecified> {
        self.keys.push_front(OwnKey::random(now)?);
        self.keys.truncate(OWN_KEYS_MAX as usize);
        Ok(())
    }
}

/// Seals with its first key, and opens with all of them.
pub(in crate::tls) struct Ticketer {
    keys: Vec<Arc<TicketKey>>,
    lifetime: Duration,
    binding: [u8; BINDING_BYTES],
    /// What certificates of clients are looked up in when their sessions resume.
    pub(in crate::tls) revocation: Option<Revocation>,
    /// Seconds since 1970.
    pub(in crate::tls) clock: fn() -> u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// It is too short for any ticket.
    NoTicket,
    Because(OfferedSession),
}

/// A session that may be resumed.
#[derive(Debug, PartialEq, Eq)]
struct OpenedTicket {
    session: Vec<u8>,
    /// When its first handshake was, in seconds since 1970.
    began_at: u64,
    age: Duration,
}

impl Ticketer {
    /// `keys` are at least one. Tickets of another `binding` are not accepted.
    pub(in crate::tls) fn new(keys: Vec<Arc<TicketKey>>, lifetime: Duration, binding: AuthDigest) -> Self {
        let mut own = [0; BINDING_BYTES];
        own.copy_from_slice(&binding[..BINDING_BYTES]);
        Self { keys, lifetime, binding: own, revocation: None, clock: unix_now }
    }

    fn seal(&self, session: &[u8], began_at: u64) -> Option<Vec<u8>> {
        let sealing = self.keys.first()?;
        let sealed_bytes = TIME_BYTES + BINDING_BYTES + session.len() + AES_256_GCM_SIV.tag_len();
        let mut body = Vec::with_capacity(sealed_bytes);
        body.extend_from_slice(&began_at.to_be_bytes());
        body.extend_from_slice(&self.binding);
        body.extend_from_slice(session);
        let nonce = sealing.key.seal_in_place_append_tag(Aad::empty(), &mut body).ok()?;
        let mut ticket = Vec::with_capacity(NAME_BYTES + NONCE_LEN + body.len());
        ticket.extend_from_slice(&sealing.name);
        ticket.extend_from_slice(nonce.as_ref());
        ticket.extend_from_slice(&body);
        Some(ticket)
    }

    /// Why a ticket does not resume a session while none is accepted; `None` if it is too short for any ticket.
    pub(in crate::tls) fn refuse(&self, ticket: &[u8]) -> Option<OfferedSession> {
        match self.open(ticket, (self.clock)()) {
            Ok(_) => Some(OfferedSession::NotAccepted),
            Err(Refused::Because(verdict)) => Some(verdict),
            Err(Refused::NoTicket) => None,
        }
    }

    fn open(&self, ticket: &[u8], now: u64) -> Result<OpenedTicket, Refused> {
        let damaged = Refused::Because(OfferedSession::Damaged);
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>().ok_or(Refused::NoTicket)?;
        let opening = self.keys.iter().find(|key| key.name == *name);
        let opening = opening.ok_or(Refused::Because(OfferedSession::UnknownKey))?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>().ok_or(damaged)?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut body = sealed.to_vec();
        let opened = opening.key.open_in_place(nonce, Aad::empty(), &mut body).map_err(|_| damaged)?;
        let (began_at, rest) = opened.split_first_chunk::<TIME_BYTES>().ok_or(damaged)?;
        let (binding, session) = rest.split_first_chunk::<BINDING_BYTES>().ok_or(damaged)?;
        if *binding != self.binding {
            return Err(Refused::Because(OfferedSession::ClientAuth));
        }
        let began_at = u64::from_be_bytes(*began_at);
        let age = session::age(session, began_at, now, self.lifetime, self.revocation.as_ref())
            .map_err(Refused::Because)?;
        // In the same memory, so no copy of the session's secret remains.
        let len = opened.len();
        body.truncate(len);
        body.drain(..TIME_BYTES + BINDING_BYTES);
        Ok(OpenedTicket { session: body, began_at, age })
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    /// What is left to the session whose ticket was sealed last.
    fn lifetime(&self) -> u32 {
        let age = HandshakeNotes::resumed_session_began_at()
            .map_or(0, |began_at| (self.clock)().saturating_sub(began_at));
        self.lifetime.as_secs().saturating_sub(age) as u32
    }

    /// A session that is resumed keeps its beginning in the next ticket.
    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        self.seal(session, HandshakeNotes::resumed_session_began_at().unwrap_or_else(self.clock))
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let opened = self.open(ticket, (self.clock)());
        HandshakeNotes::offered(|name| match &opened {
            Ok(ticket) => OfferedSession::opened(&ticket.session, ticket.began_at, ticket.age, name),
            Err(Refused::Because(verdict)) => Some(*verdict),
            Err(Refused::NoTicket) => None,
        });
        opened.ok().map(|ticket| ticket.session)
    }
}

/// Seals no ticket and accepts none, while sessions are kept in a cache; classifies offered tickets.
#[derive(Debug)]
pub(in crate::tls) struct RefusingTicketer(pub(in crate::tls) Arc<Ticketer>);

impl ProducesTickets for RefusingTicketer {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _session: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// rustls asks for TLS 1.2 only; with TLS 1.3 it takes tickets for identifiers of the cache.
    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        HandshakeNotes::offered(|_| self.0.refuse(ticket));
        None
    }
}

impl fmt::Debug for Ticketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticketer").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
