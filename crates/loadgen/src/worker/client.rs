//! A virtual client: one source address on one thread, with its own sessions to resume.

use std::net::{IpAddr, Ipv4Addr};

use records::metrics::{LoadCounter, LoadLatency};

use crate::control::ClientTotals;
use crate::plan::Share;
use crate::stats::WorkerStats;
use crate::tls::{ClientTls, Handshake, TlsEngine, TlsError};
use crate::worker::transport::Transport;

/// Clients do not share sessions: outside of tests no server sees a ticket move from one address to another.
#[derive(Debug)]
pub(crate) struct LoadClient {
    /// The address its connections are bound to; `None` leaves that to the kernel.
    pub(crate) bind: Option<Ipv4Addr>,
    /// How its connections begin, if they do so with TLS.
    pub(crate) tls: Option<ClientTls>,
    pub(crate) resume: EvenSampler,
    /// Its address, known with its first connection.
    pub(crate) address: Option<IpAddr>,
    pub(crate) totals: ClientTotals,
}

impl LoadClient {
    pub(crate) fn new(bind: Option<Ipv4Addr>, tls: Option<ClientTls>, resume: EvenSampler) -> Self {
        Self { bind, tls, resume, address: None, totals: ClientTotals::default() }
    }

    /// Counts an established connection of the client.
    pub(crate) fn established(&mut self, transport: &Transport, warmup: bool, stats: &mut WorkerStats) {
        stats.count(LoadCounter::Opened);
        self.totals.connections += 1;
        if self.address.is_none() {
            self.address = transport.socket.local_ip();
        }
        if !warmup {
            stats.time(LoadLatency::Connect, Some(transport.opened_ns), transport.established_ns);
        }
    }

    /// Begins TLS, if the target uses it. Also returns whether the connection was to resume a session.
    pub(crate) fn begin(
        &mut self,
        resume: Share,
        stats: &mut WorkerStats,
    ) -> Option<(Result<TlsEngine, TlsError>, bool)> {
        let tls = self.tls.as_ref()?;
        let wanted = self.resume.next(resume);
        let begun = tls.begin(wanted);
        let offered = matches!(begun, Ok((_, true)));
        stats.add(LoadCounter::ResumptionsWanted, u64::from(wanted));
        stats.add(LoadCounter::ResumptionsOffered, u64::from(offered));
        Some((begun.map(|(engine, _)| engine), wanted))
    }

    /// Counts a completed handshake of the client.
    pub(crate) fn on_handshake(&mut self, handshake: &Handshake) {
        self.totals.handshakes_resumed += u64::from(handshake.resumed);
        self.totals.handshakes_full += u64::from(!handshake.resumed);
    }
}

/// Spreads a share evenly over a sequence of decisions: with 80 %, exactly four of any five are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvenSampler {
    error: u32,
}

impl EvenSampler {
    /// Begins at its own phase, so the clients of a load do not all decide alike.
    pub(crate) fn new(client: u32, clients: u32) -> Self {
        let phase = u64::from(Share::WHOLE) * u64::from(client) / u64::from(clients.max(1));
        Self { error: phase as u32 % Share::WHOLE }
    }

    /// Decides for the next one.
    pub(crate) fn next(&mut self, share: Share) -> bool {
        self.error += share.parts();
        let taken = self.error >= Share::WHOLE;
        if taken {
            self.error -= Share::WHOLE;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(share: f64, client: u32, decisions: usize) -> usize {
        let mut diffusion = EvenSampler::new(client, 7);
        let share = Share::percent(share).unwrap();
        (0..decisions).filter(|_| diffusion.next(share)).count()
    }

    #[test]
    fn a_share_is_met_exactly_whatever_the_phase() {
        for client in 0..7 {
            assert_eq!(taken(80.0, client, 5), 4);
            assert_eq!(taken(80.0, client, 5_000), 4_000);
            assert_eq!(taken(0.01, client, 10_000), 1);
            assert_eq!(taken(0.0, client, 1_000), 0);
            assert_eq!(taken(100.0, client, 1_000), 1_000);
        }
    }
}
