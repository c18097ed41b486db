//! Evidence about a handshake: the client's offer, and why its session was not resumed.
//!
//! rustls calls the certificate resolver, the ticketer and the session cache within a connection's own call, and does
//! not return their findings. They store them in the thread's [`HandshakeNotes`], from which the engine takes them.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use records::metrics::FullReason;

use crate::tls::certificates::served::CertificateUse;
use crate::tls::resumption::session::OfferedSession;
use crate::tls::server::negotiated::NegotiatedTls;
use crate::tls::settings::Resumption;
use hello::{Choices, ClientHello, HelloReader, SingleChoices};

#[derive(Clone, Debug)]
pub(in crate::tls) struct PresentedCertificate {
    pub(in crate::tls) certificate: Arc<CertificateUse>,
    /// The signature scheme of its key; `None` if the client can verify none of its schemes.
    pub(in crate::tls) scheme: Option<u16>,
    /// Whether the client asked for a name that no certificate covers, so this certificate is used instead.
    pub(in crate::tls) is_name_uncovered: bool,
}

/// Whom a client's certificate that was refused names, and who is said to have issued it; made printable and cut to a
/// bound.
#[derive(Debug)]
pub(crate) struct RefusedCertificate {
    pub(crate) subject: String,
    pub(crate) issuer: String,
}

/// Notes that rustls' callbacks made during its current call.
#[derive(Debug, Default)]
pub(in crate::tls) struct HandshakeNotes {
    /// The server name of the `ClientHello`, in lower case.
    pub(in crate::tls) server_name: Option<Box<str>>,
    presented: Option<PresentedCertificate>,
    pub(in crate::tls) offered: Option<OfferedSession>,
    /// Whether the name is refused, so there is no certificate for it.
    pub(in crate::tls) is_name_refused: bool,
    refused: Option<Box<RefusedCertificate>>,
}

thread_local! {
    static NOTES: RefCell<HandshakeNotes> = const {
        RefCell::new(HandshakeNotes {
            server_name: None,
            presented: None,
            offered: None,
            is_name_refused: false,
            refused: None,
        })
    };
}

impl HandshakeNotes {
    /// Begins a call into rustls for a client that asked for this name, as far as that is known. `resumed`: the session
    /// that an earlier call has resumed.
    pub(in crate::tls) fn begin(server_name: Option<Box<str>>, resumed: Option<OfferedSession>) {
        NOTES.set(Self { server_name, offered: resumed, ..Self::default() });
    }

    /// Takes the notes of the call.
    pub(in crate::tls) fn take() -> Self {
        NOTES.take()
    }

    /// Notes the answer to a `ClientHello`.
    pub(in crate::tls) fn resolved(name: Option<&str>, presented: Option<PresentedCertificate>) {
        NOTES.with_borrow_mut(|notes| {
            if notes.server_name.as_deref() != name {
                notes.server_name = name.map(Box::from);
            }
            notes.presented = presented;
        });
    }

    /// Notes that the name of the `ClientHello` is not served.
    pub(in crate::tls) fn refuse_name() {
        NOTES.with_borrow_mut(|notes| notes.is_name_refused = true);
    }

    /// The server name that the client of this call asks for, as rustls has it.
    pub(in crate::tls) fn with_server_name<T>(look: impl FnOnce(Option<&str>) -> T) -> T {
        NOTES.with_borrow(|notes| look(notes.server_name.as_deref()))
    }

    /// Notes the client's certificate that is refused.
    pub(in crate::tls) fn refuse_certificate(refused: RefusedCertificate) {
        NOTES.with_borrow_mut(|notes| notes.refused = Some(Box::new(refused)));
    }

    /// When the session began that this handshake resumes; `None` if it begins one. Asked where rustls issues a session:
    /// in the call for a `ClientHello` it does so only after a resumption, and with the session that it was given last.
    pub(in crate::tls) fn resumed_session_began_at() -> Option<u64> {
        NOTES.with_borrow(|notes| match notes.offered {
            Some(OfferedSession::Opened { began_at, .. }) => Some(began_at),
            _ => None,
        })
    }

    /// Notes the fate of an offered session. `judge` gets the requested server name.
    pub(in crate::tls) fn offered(judge: impl FnOnce(Option<&str>) -> Option<OfferedSession>) {
        NOTES.with_borrow_mut(|notes| {
            let judged = judge(notes.server_name.as_deref());
            notes.offered = better(notes.offered, judged);
        });
    }
}

/// Returns the offered session with more information; on a tie the later, since rustls uses the last usable one.
fn better(one: Option<OfferedSession>, other: Option<OfferedSession>) -> Option<OfferedSession> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.rank() >= one.rank() { other } else { one }),
        (one, other) => one.or(other),
    }
}

/// The parameters that the configuration allows to a connection.
#[derive(Clone, Copy, Debug)]
pub(in crate::tls) struct Policy {
    pub(in crate::tls) resumption: Resumption,
    pub(in crate::tls) allowed: Choices,
    /// Whether clients need certificates for some server names.
    pub(in crate::tls) is_by_name: bool,
}

/// The evidence about a handshake, kept until it has been counted.
#[derive(Debug)]
pub(in crate::tls) struct HandshakeEvidence {
    policy: Policy,
    reader: HelloReader,
    /// The first one; that after a `HelloRetryRequest` adds nothing.
    hello: Option<ClientHello>,
    presented: Option<PresentedCertificate>,
    offered: Option<OfferedSession>,
    refused: Option<Box<RefusedCertificate>>,
}

impl HandshakeEvidence {
    pub(in crate::tls) fn new(policy: Policy) -> Self {
        let reader = HelloReader::default();
        Self { policy, reader, hello: None, presented: None, offered: None, refused: None }
    }

    /// Adds received bytes. Returns the server name once the `ClientHello` is complete.
    pub(in crate::tls) fn read(&mut self, bytes: &[u8]) -> Option<Box<str>> {
        let mut hello = self.reader.read(bytes)?;
        let name = hello.server_name.take();
        self.hello = Some(hello);
        name
    }

    /// Adds the notes of a call into rustls, except the server name.
    pub(in crate::tls) fn add(&mut self, notes: HandshakeNotes) {
        self.presented = notes.presented.or_else(|| self.presented.take());
        self.offered = better(self.offered, notes.offered);
        self.refused = notes.refused.or_else(|| self.refused.take());
    }

    pub(in crate::tls) fn refused_certificate(&self) -> Option<&RefusedCertificate> {
        self.refused.as_deref()
    }

    /// The session that the client offered. If there are several, the one that rustls resumed, if any.
    pub(in crate::tls) fn offered(&self) -> Option<OfferedSession> {
        self.offered
    }

    pub(in crate::tls) fn hello(&self) -> Option<&ClientHello> {
        self.hello.as_ref()
    }

    pub(in crate::tls) fn presented(&self) -> Option<&PresentedCertificate> {
        self.presented.as_ref()
    }

    pub(in crate::tls) fn fingerprint(&self) -> Option<&[u8]> {
        Some(self.hello.as_ref()?.fingerprint.as_ref()?.as_bytes())
    }

    /// Whether the client offered only versions that the proxy does not support.
    pub(in crate::tls) fn is_without_version(&self) -> bool {
        self.hello.as_ref().is_some_and(|hello| !hello.choices.has_version())
    }

    pub(in crate::tls) fn is_without_tls13(&self) -> bool {
        self.hello.as_ref().is_some_and(|hello| !hello.choices.has_tls13())
    }

    pub(in crate::tls) fn has_mlkem(&self) -> bool {
        self.hello.as_ref().is_some_and(|hello| hello.choices.has_mlkem())
    }

    pub(in crate::tls) fn single_choices(&self, is_tls13: bool) -> SingleChoices {
        let single = |hello: &ClientHello| hello.choices.single(self.policy.allowed, is_tls13);
        self.hello.as_ref().map(single).unwrap_or_default()
    }

    /// Whether the client offered to resume a session. A session identifier is an offer if the proxy may have issued
    /// it, but not if it may only be there for TLS 1.3's compatibility mode.
    pub(in crate::tls) fn has_offer(&self) -> bool {
        let Some(hello) = &self.hello else { return self.offered.is_some() };
        let offer = hello.resumption;
        let counts = self.policy.resumption != Resumption::Tickets && !hello.choices.has_tls13();
        self.offered.is_some() || offer.has_psk || offer.has_ticket || (offer.has_session_id && counts)
    }

    /// Why the handshake was full. `was_seen`: the client's address completed a handshake before.
    pub(in crate::tls) fn full_reason(&self, session: &NegotiatedTls<'_>, was_seen: bool) -> FullReason {
        let Some(hello) = &self.hello else { return FullReason::Unknown };
        if !was_seen && !self.has_offer() {
            return FullReason::FirstVisit;
        }
        // Clients that come back have no ticket then, since they get none.
        if self.policy.resumption == Resumption::Off {
            return FullReason::ResumptionOff;
        }
        if !self.has_offer() {
            return FullReason::NoTicket;
        }
        match self.offered {
            Some(OfferedSession::UnknownKey) => FullReason::UnknownKey,
            Some(OfferedSession::Damaged) => FullReason::Damaged,
            Some(OfferedSession::Evicted) => FullReason::Evicted,
            Some(OfferedSession::ClientAuth) => FullReason::ClientAuth,
            Some(OfferedSession::Expired { .. }) => FullReason::Expired,
            Some(OfferedSession::NotAccepted) => FullReason::ResumptionOff,
            Some(OfferedSession::Opened { state, .. }) if !state.is_same_name => FullReason::OtherName,
            Some(OfferedSession::Opened { state, .. }) if !session.has_used(state.version, state.cipher) => {
                FullReason::OtherVersion
            }
            // An offer that exists only in TLS 1.3, or only in TLS 1.2, is ignored in the other version.
            None if session.is_tls13() != hello.resumption.has_psk
                && hello.resumption.is_for_one_version() =>
            {
                FullReason::OtherVersion
            }
            Some(OfferedSession::Opened { .. }) | None => FullReason::Unknown,
        }
    }

    /// How old the session is that was resumed.
    pub(in crate::tls) fn opened_age(&self) -> Option<Duration> {
        match self.offered {
            Some(OfferedSession::Opened { age, .. }) => Some(age),
            _ => None,
        }
    }

    /// How old the session is that had expired.
    pub(in crate::tls) fn expired_age(&self) -> Option<Duration> {
        match self.offered {
            Some(OfferedSession::Expired { age }) => Some(age),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
