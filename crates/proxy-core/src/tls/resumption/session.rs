//! Sessions as rustls encodes them, and when they end.

use std::time::Duration;

use crate::tls::certificates::description::last_second;
use crate::tls::certificates::revocation::Revocation;

/// How far the clock of a host that shares our keys may be ahead of ours. A session from further ahead has no age that
/// we know: our clock may have been set back.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(60);

/// The outcome of a session that a client offered to resume; later variants are closer to a resumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tls) enum OfferedSession {
    /// The ticket names no key that is known.
    UnknownKey,
    /// The ticket names a key, and it does not open it.
    Damaged,
    /// The session was in the cache, and was evicted or used.
    Evicted,
    /// The session began under other rules for client certificates, or the client's has been revoked since.
    ClientAuth,
    /// The session has ended: by its lifetime, or with the client's certificate.
    Expired { age: Duration },
    /// The ticket is valid, but resumption has changed to the session cache since.
    NotAccepted,
    /// rustls was given the session, whose first handshake was at `began_at`, in seconds since 1970.
    Opened { began_at: u64, age: Duration, state: SessionState },
}

impl OfferedSession {
    /// The verdict on a session of rustls that is handed to it.
    pub(in crate::tls) fn opened(
        session: &[u8],
        began_at: u64,
        age: Duration,
        server_name: Option<&str>,
    ) -> Option<Self> {
        SessionState::read(session, server_name).map(|state| Self::Opened { began_at, age, state })
    }

    /// The closer to a resumption, the higher.
    pub(in crate::tls) fn rank(&self) -> u8 {
        match self {
            Self::UnknownKey => 0,
            Self::Damaged => 1,
            Self::Evicted => 2,
            Self::ClientAuth => 3,
            Self::Expired { .. } => 4,
            Self::NotAccepted => 5,
            Self::Opened { state, .. } => 6 + u8::from(state.is_same_name),
        }
    }
}

/// The TLS parameters that a session was created with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tls) struct SessionState {
    pub(in crate::tls) is_same_name: bool,
    pub(in crate::tls) version: u16,
    pub(in crate::tls) cipher: u16,
}

impl SessionState {
    /// Parses the beginning of a session; `None` if it is not a session.
    pub(in crate::tls) fn read(session: &[u8], server_name: Option<&str>) -> Option<Self> {
        let mut rest = session;
        let name = read_optional::<1>(&mut rest)?;
        let [v1, v2, c1, c2] = read_array(&mut rest)?;
        Some(Self {
            is_same_name: name == server_name.unwrap_or_default().as_bytes(),
            version: u16::from_be_bytes([v1, v2]),
            cipher: u16::from_be_bytes([c1, c2]),
        })
    }
}

/// How old a session is whose first handshake was at `began_at`. Times are in seconds since 1970.
///
/// The end is that of the first handshake's session: each resumption makes a new secret, and no new proof of who the
/// client is (RFC 8446, 4.6.1).
///
/// # Errors
/// If the session has ended, by its lifetime or with a certificate of the client, or such a certificate is no longer good.
pub(in crate::tls) fn age(
    session: &[u8],
    began_at: u64,
    now: u64,
    lifetime: Duration,
    revocation: Option<&Revocation>,
) -> Result<Duration, OfferedSession> {
    // Another host's clock may be ahead of ours.
    let age = Duration::from_secs(now.saturating_sub(began_at));
    let ahead = Duration::from_secs(began_at.saturating_sub(now));
    let lasts = age <= lifetime && ahead <= CLOCK_SKEW_MAX;
    let ended = OfferedSession::Expired { age };
    // What cannot be read proves nothing.
    let mut chain = client_chain(session).filter(|_| lasts).ok_or(ended)?;
    while !chain.is_empty() {
        let certificate = read_vector::<3>(&mut chain).ok_or(ended)?;
        let end = last_second(certificate).ok_or(ended)?;
        // One that had ended when the session began is no part of the path that was verified then.
        if (began_at..now).contains(&end) {
            return Err(ended);
        }
        if revocation.is_some_and(|revocation| revocation.bars(certificate, now)) {
            return Err(OfferedSession::ClientAuth);
        }
    }
    Ok(age)
}

/// The client's certificates, each behind its length; `None` if this is no session.
fn client_chain(session: &[u8]) -> Option<&[u8]> {
    let mut rest = session;
    read_optional::<1>(&mut rest)?;
    let [_, _, _, _] = read_array(&mut rest)?;
    let _secret = read_vector::<1>(&mut rest)?;
    let [_extended_master_secret] = read_array(&mut rest)?;
    read_optional::<3>(&mut rest)
}

/// Bytes behind a marker that says whether there are any.
fn read_optional<'a, const LEN_BYTES: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let [is_present] = read_array(rest)?;
    if is_present == 0 { Some(&[]) } else { read_vector::<LEN_BYTES>(rest) }
}

/// Bytes behind their length, which has `LEN_BYTES`.
fn read_vector<'a, const LEN_BYTES: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = read_array::<LEN_BYTES>(rest)?.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
    let (bytes, behind) = rest.split_at_checked(len)?;
    *rest = behind;
    Some(bytes)
}

fn read_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (array, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*array)
}
