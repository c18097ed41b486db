//! The parts of a run: what each service did that its packets tell apart.

use std::sync::Arc;

use journal::Timestamps;
use records::delta::{ProxyDelta, ServiceDelta};
use records::ids::RUN_PARTS_MAX;
use records::kinds::RunRecord;

use super::{ClientTable, Publisher, Rollups, Sink};

/// The fewest records that a service may write in a second: those of an interval, and some of its clients.
const RECORDS_PER_SECOND_MIN: u32 = 6;
/// The clients of a service that have rows of their own.
const CLIENTS_MAX: usize = 1_000;

/// Publishes the part of a run that is one service's.
#[derive(Debug)]
pub(super) struct ServicePublisher<S> {
    name: Box<str>,
    pub(super) publisher: Publisher<S>,
}

impl<S: Sink> Publisher<S> {
    /// Records the interval that ends now for each service. One that is seen for the first time begins with this interval.
    pub(super) fn publish_services(&mut self, proxy: Option<&ProxyDelta>, now: Timestamps) {
        let Some(delta) = proxy else { return };
        self.begin_services(&delta.services);
        let nothing = ProxyDelta::default();
        for service in &mut self.services {
            let counted = service.counted(&delta.services).unwrap_or(&nothing);
            service.publisher.interval(Some(counted), None, None, now);
        }
    }

    /// Closes the runs of all services.
    pub(super) fn stop_services(&mut self, run: &RunRecord, proxy: Option<&ProxyDelta>, now: Timestamps) {
        let deltas = proxy.map(|delta| &*delta.services).unwrap_or_default();
        self.begin_services(deltas);
        for service in &mut self.services {
            let counted = service.counted(deltas);
            let run = RunRecord { service: service.name.to_string(), ..run.clone() };
            service.publisher.stop(run, counted, None, None, now);
        }
    }

    /// Begins the runs of services that are seen for the first time. What comes beyond the bound has none; it counts in the
    /// whole run.
    fn begin_services(&mut self, deltas: &[ServiceDelta]) {
        let before = self.services.len();
        for ServiceDelta { name, .. } in deltas {
            let number = u8::try_from(self.services.len() + 1).unwrap_or(u8::MAX);
            if number > RUN_PARTS_MAX || self.services.iter().any(|known| known.name == *name) {
                continue;
            }
            let began = self.ticked;
            let mut publisher =
                Self::sharing(self.run.part(number), Arc::clone(&self.sink), self.records_per_second, began);
            publisher.rollups = self.rollups.as_ref().map(|_| Rollups::new());
            publisher.clients = ClientTable::new(CLIENTS_MAX);
            let header = self.written.began.as_deref().cloned().unwrap_or_default();
            let (listen, service) = (name.to_string(), name.to_string());
            publisher.start(RunRecord { listen, service, ..header }, began);
            self.services.push(ServicePublisher { name: name.clone(), publisher });
        }
        if self.services.len() > before {
            let count = self.services.len() as u32;
            let half = self.records_per_second.div_ceil(2);
            self.budget.share(half, 1, 1);
            for service in &mut self.services {
                service.publisher.budget.share(half, count, RECORDS_PER_SECOND_MIN);
            }
        }
    }

    /// Records of services that the journal has not taken yet.
    pub(super) fn pending_of_services(&self) -> usize {
        self.services.iter().map(|service| service.publisher.pending()).sum()
    }
}

impl<S> ServicePublisher<S> {
    fn counted<'d>(&self, deltas: &'d [ServiceDelta]) -> Option<&'d ProxyDelta> {
        deltas.iter().find(|delta| delta.name == self.name).map(|delta| &delta.counted)
    }
}
