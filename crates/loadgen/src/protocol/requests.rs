//! The requests that a thread sends, which may be exchanged for others while some of them are under way.

use std::sync::Arc;

use crate::protocol::Prepared;

/// Requests by number; numbers grow with each exchange, so that those under way keep theirs.
#[derive(Debug)]
pub(crate) struct Requests {
    newest: Arc<[Prepared]>,
    /// Number of the first of the newest.
    begins: usize,
    /// Those before, oldest first, each with the number of its first; none longer than it is in use.
    older: Vec<(usize, Arc<[Prepared]>)>,
    /// The place in the sequence of what is to be sent next.
    place: usize,
}

impl Requests {
    /// Begins at a place of the sequence in which they are sent.
    pub(crate) fn new(requests: Arc<[Prepared]>, place: usize) -> Self {
        Self { newest: requests, begins: 0, older: Vec::new(), place }
    }

    /// Goes over to other requests, if these are others. `in_use` are the numbers of those under way.
    pub(crate) fn renew(&mut self, requests: Arc<[Prepared]>, in_use: impl Iterator<Item = usize>) {
        if Arc::ptr_eq(&requests, &self.newest) {
            return;
        }
        let oldest = in_use.min().unwrap_or(usize::MAX);
        let before = std::mem::replace(&mut self.newest, requests);
        self.older.push((self.begins, before));
        self.begins += self.older.last().map_or(0, |(_, before)| before.len());
        self.older.retain(|(begins, requests)| begins + requests.len() > oldest);
    }

    /// The number of the request that the sequence has next, among the newest.
    pub(crate) fn next(&mut self, sequence: &[u16]) -> usize {
        let index = usize::from(sequence[self.place]);
        self.place = (self.place + 1) % sequence.len();
        self.begins + index
    }

    /// The request of this number, which is in use.
    pub(crate) fn at(&self, number: usize) -> &Prepared {
        if number >= self.begins {
            return &self.newest[number - self.begins];
        }
        let found = self.older.iter().rev().find(|(begins, _)| *begins <= number);
        let (begins, requests) = found.expect("requests are kept while they are in use");
        &requests[number - begins]
    }
}
