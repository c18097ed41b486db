//! Counts a completed handshake for the record of TLS.

use std::time::Duration;

use records::ids::ClientId;
use records::metrics::{ClientCounter, FullReason, TlsCounter};

use super::clients::ClientSlot;
use super::proxy_stats::ProxyStats;
use super::usage::UsageSlots;
use crate::tls::NegotiatedTls;

impl ProxyStats {
    /// Counts the client's offer, the reason of a full handshake, and usage. `id` owns `client`.
    pub(super) fn handshake_details(
        &mut self,
        client: ClientSlot,
        id: ClientId,
        session: &NegotiatedTls<'_>,
        compute_ns: u64,
    ) -> UsageSlots {
        let reason = session.full_reason(self.seen.mark(id));
        if let Some(reason) = reason {
            self.full_because(client, reason, session.expired_age());
        }
        let delta = &mut self.delta.tls;
        if let Some(age) = session.resumed_age() {
            delta.ages_accepted.count(age);
        }
        delta.counters[TlsCounter::OffersToResume] += u64::from(session.has_offer());
        delta.counters[TlsCounter::MlkemOffered] += u64::from(session.has_mlkem());
        if let Some(hello) = session.hello() {
            delta.counters[TlsCounter::EarlyDataOffered] += u64::from(hello.has_early_data);
            delta.counters[TlsCounter::EchOffered] += u64::from(hello.has_ech);
        }
        if session.is_without_tls13() {
            delta.counters[TlsCounter::Tls12Only] += 1;
            self.clients.add(client, ClientCounter::Tls12Only, 1);
        }
        self.usage.handshake(session, reason, compute_ns)
    }

    fn full_because(&mut self, client: ClientSlot, reason: FullReason, expired_age: Option<Duration>) {
        let delta = &mut self.delta.tls;
        delta.counters[reason.counter()] += 1;
        if let Some(counter) = reason.client_counter() {
            self.clients.add(client, counter, 1);
        }
        match reason {
            FullReason::Expired => {
                if let Some(age) = expired_age {
                    delta.ages_expired.count(age);
                }
            }
            FullReason::NoTicket => {
                if let Some(others) = self.clients.other_connections(client) {
                    delta.counters[beside(others)] += 1;
                }
            }
            FullReason::FirstVisit
            | FullReason::UnknownKey
            | FullReason::Damaged
            | FullReason::OtherName
            | FullReason::OtherVersion
            | FullReason::ClientAuth
            | FullReason::ResumptionOff
            | FullReason::Evicted
            | FullReason::Refused
            | FullReason::Unknown => {}
        }
    }
}

/// The counter of handshakes without a ticket while the address has `others` other connections.
fn beside(others: u64) -> TlsCounter {
    match others {
        0 => TlsCounter::NoTicketAlone,
        1 => TlsCounter::NoTicketBeside1,
        2..=3 => TlsCounter::NoTicketBeside3,
        4..=7 => TlsCounter::NoTicketBeside7,
        _ => TlsCounter::NoTicketBesideMore,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_connections_are_counted_in_classes() {
        let classes = [0, 1, 2, 3, 4, 7, 8, 1_000].map(beside);
        assert_eq!(
            classes,
            [
                TlsCounter::NoTicketAlone,
                TlsCounter::NoTicketBeside1,
                TlsCounter::NoTicketBeside3,
                TlsCounter::NoTicketBeside3,
                TlsCounter::NoTicketBeside7,
                TlsCounter::NoTicketBeside7,
                TlsCounter::NoTicketBesideMore,
                TlsCounter::NoTicketBesideMore,
            ]
        );
    }
}
