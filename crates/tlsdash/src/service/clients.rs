//! Shared parts of a service's endpoints: a bounded number of clients, and reading the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use model::runs::Model;
use tui::{DashboardSender, Event, ModelReader};

#[derive(Clone, Debug)]
pub(crate) struct ClientSemaphore {
    taken: Arc<AtomicUsize>,
    max: usize,
}

/// The place of one client; free again when dropped.
#[derive(Debug)]
pub(crate) struct ClientPermit(Arc<AtomicUsize>);

impl ClientSemaphore {
    pub(crate) fn new(max: usize) -> Self {
        Self { taken: Arc::default(), max }
    }

    /// A place; `None` if all are taken.
    pub(crate) fn take(&self) -> Option<ClientPermit> {
        let place = ClientPermit(Arc::clone(&self.taken));
        (self.taken.fetch_add(1, Ordering::Relaxed) < self.max).then_some(place)
    }
}

impl Drop for ClientPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads the model on the thread that owns it; `None` if it does not answer within `patience`.
pub(crate) fn read_model<T: Send + 'static>(
    events: &DashboardSender,
    patience: Duration,
    read: impl FnOnce(&Model) -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = sync_channel(1);
    let reader = ModelReader::new(move |model| {
        // The client may have given up.
        let _ = tell.send(read(model));
    });
    events.send(Event::Read(reader)).ok()?;
    told.recv_timeout(patience).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_its_client_leaves() {
        let places = ClientSemaphore::new(2);
        let (first, second) = (places.take(), places.take());
        assert!(first.is_some() && second.is_some() && places.take().is_none());
        drop(first);
        assert!(places.take().is_some());
    }
}
