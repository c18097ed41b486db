//! The encoded requests of a thread. New ones can replace them while some are in flight.

use std::sync::Arc;

use crate::protocol::EncodedRequest;

/// Prepared requests by number. New ones get higher numbers, so requests in flight keep theirs.
#[derive(Debug)]
pub(crate) struct EncodedRequests {
    newest: Arc<[EncodedRequest]>,
    /// The number of the first of the newest.
    begins: usize,
    /// Earlier requests, oldest first, with the number of the first; kept only while in use.
    older: Vec<(usize, Arc<[EncodedRequest]>)>,
    /// The place in the sequence of the next request.
    place: usize,
}

impl EncodedRequests {
    /// Begins at this place of the sequence.
    pub(crate) fn new(requests: Arc<[EncodedRequest]>, place: usize) -> Self {
        Self { newest: requests, begins: 0, older: Vec::new(), place }
    }

    /// Replaces the requests if they have changed. `in_use` are the numbers of those in flight.
    pub(crate) fn renew(&mut self, requests: Arc<[EncodedRequest]>, in_use: impl Iterator<Item = usize>) {
        if Arc::ptr_eq(&requests, &self.newest) {
            return;
        }
        let oldest = in_use.min().unwrap_or(usize::MAX);
        let before = std::mem::replace(&mut self.newest, requests);
        self.older.push((self.begins, before));
        self.begins += self.older.last().map_or(0, |(_, before)| before.len());
        self.older.retain(|(begins, requests)| begins + requests.len() > oldest);
    }

    /// The number of the newest request of this index.
    pub(crate) fn number(&self, index: usize) -> usize {
        self.begins + index
    }

    /// The number of the next request in the sequence.
    pub(crate) fn next(&mut self, sequence: &[u16]) -> usize {
        let index = usize::from(sequence[self.place]);
        self.place = (self.place + 1) % sequence.len();
        self.number(index)
    }

    /// The request of this number, which must be in use.
    pub(crate) fn at(&self, number: usize) -> &EncodedRequest {
        if number >= self.begins {
            return &self.newest[number - self.begins];
        }
        let found = self.older.iter().rev().find(|(begins, _)| *begins <= number);
        let (begins, requests) = found.expect("requests are kept while they are in use");
        &requests[number - begins]
    }
}
