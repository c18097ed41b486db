//! The parts of a run: what each service did that its packets tell apart.

use std::sync::Arc;

use journal::Timestamps;
use records::delta::ProxyDelta;
use records::ids::RUN_PARTS_MAX;
use records::kinds::RunRecord;

use super::{Publisher, Sink};

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
        let nothing = ProxyDelta::default();
        for service in &delta.services {
            if self.services.iter().all(|known| known.name != service.name) {
                self.begin_service(&service.name);
            }
        }
        for ServicePublisher { name, publisher } in &mut self.services {
            let counted = delta.services.iter().find(|service| service.name == *name);
            publisher.interval(Some(counted.map_or(&nothing, |service| &service.counted)), None, None, now);
        }
    }

    /// Closes the runs of all services.
    pub(super) fn stop_services(&mut self, run: &RunRecord, proxy: Option<&ProxyDelta>, now: Timestamps) {
        self.publish_services(proxy, now);
        for ServicePublisher { name, publisher } in &mut self.services {
            let run = RunRecord { service: name.to_string(), ..run.clone() };
            publisher.stop(run, None, None, None, now);
        }
    }

    /// Begins the run of a service. What comes beyond the bound has none; it counts in the whole run.
    fn begin_service(&mut self, name: &str) {
        let number = self.services.len() + 1;
        let Some(number) = u8::try_from(number).ok().filter(|number| *number <= RUN_PARTS_MAX) else {
            return;
        };
        let half = self.records_per_second.div_ceil(2);
        self.budget.set_rate(half);
        let share = (half / u32::from(number)).max(1);
        for known in &mut self.services {
            known.publisher.budget.set_rate(share);
        }
        let (run, sink, began) = (self.run.part(number), Arc::clone(&self.sink), self.ticked);
        let mut publisher = Self::sharing(run, sink, share, began);
        let header = self.written.began.as_deref().cloned().unwrap_or_default();
        publisher.start(RunRecord { listen: name.to_owned(), service: name.to_owned(), ..header }, began);
        self.services.push(ServicePublisher { name: name.into(), publisher });
    }
}
