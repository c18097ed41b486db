//! Sends the entries of a journal file to a store, as systemd-journal-upload does.
//!
//! The file and its archives are the queue. systemd-journal-upload sends one endless request, which nobody confirms; here
//! each request is short, and its response confirms its entries. After a failure, what was not
//! confirmed, or only just, is sent again, so an entry may arrive twice: readers count a record once. How far the journal was
//! sent is kept in a file beside it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use journal::{EntryPosition, Start, Tail};
use serde::{Deserialize, Serialize};

use crate::client::{Client, Reason, Sent};
use crate::url::UploadUrl;

/// The entries that are read at a time: some 100 KB.
const ENTRIES_PER_READ: u64 = 64;
/// A request has more bytes than this only if one entry has. nginx refuses more than 1 MiB by default.
const REQUEST_BYTES_MAX: usize = 512 << 10;
/// A receiver may confirm entries before they are on its disk (VictoriaLogs writes them within 5 s). So those that were
/// confirmed within this time before a failure, and up to twice as long, are sent again.
const SETTLED_AFTER: Duration = Duration::from_secs(10);

/// An upload that was checked before anything is started.
#[derive(Clone, Debug)]
pub struct UploadTarget {
    url: UploadUrl,
    client: Client,
}

/// How an upload stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadState {
    /// Entries that were not confirmed yet, by the sequence numbers of the files.
    pub waiting: u64,
    /// Entries that left the archives, or became unreadable, before they were confirmed.
    pub lost_total: u64,
    /// Why nothing is confirmed at the moment.
    pub failure: Option<String>,
}

/// Sends the entries of a journal file and its archives. Not `Send`, as the tail that it reads.
#[derive(Debug)]
pub struct Uploader {
    target: UploadTarget,
    journal: PathBuf,
    place_file: PathBuf,
    tail: Tail,
    /// What was read and not confirmed, in the Journal Export Format.
    unsent: Vec<u8>,
    /// The end of each entry there, and the place behind it.
    ends: VecDeque<(usize, EntryPosition)>,
    read: EntryPosition,
    confirmed: Place,
    /// The place of some time ago, which is written next.
    settled: Place,
    /// The place in the file.
    saved: Place,
    settled_at: Instant,
    confirmed_at: Instant,
    request_bytes_max: usize,
}

/// How far a journal was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// Of the journal files' writer.
    seqnum_id: u128,
    /// The last entry that was confirmed.
    seqnum: u64,
    /// The last entry that this writer is known to have written.
    written: u64,
    /// Entries before this place that nobody got, of those that this process should have sent.
    #[serde(skip)]
    lost_total: u64,
}

impl Place {
    fn position(&self) -> EntryPosition {
        EntryPosition { seqnum_id: self.seqnum_id, seqnum: self.seqnum }
    }
}

impl UploadTarget {
    /// Reads the secrets and certificates that the URL names. Does not connect.
    ///
    /// # Errors
    /// If one of them cannot be read or used.
    pub fn new(url: UploadUrl) -> Result<Self, String> {
        let client = Client::new(&url.url, url.path).map_err(|reason| format!("{url}: {reason}"))?;
        Ok(Self { url, client })
    }

    /// Its URL as it was given.
    pub fn url(&self) -> &UploadUrl {
        &self.url
    }
}

impl Uploader {
    /// Opens a journal file at the place where an earlier upload of this file or its archives ended, or else at the beginning
    /// of the file.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn open(target: UploadTarget, journal: &Path) -> Result<Self, String> {
        let reason = |error: journal::ReadError| error.to_string();
        let place_file = journal.with_extension("upload");
        let former = std::fs::read(&place_file).ok().and_then(|json| serde_json::from_slice(&json).ok());
        let end = EntryPosition::end_of(journal).map_err(reason)?;
        let (tail, place): (_, Place) = match former {
            Some(place) => (Tail::resume(journal, Place::position(&place)), place),
            None => {
                let EntryPosition { seqnum_id, seqnum: written } = end;
                (Tail::open(journal, Start::File), Place { seqnum_id, seqnum: 0, written, lost_total: 0 })
            }
        };
        let mut uploader = Self {
            target,
            journal: journal.to_owned(),
            place_file,
            tail: tail.map_err(reason)?,
            unsent: Vec::new(),
            ends: VecDeque::new(),
            read: place.position(),
            confirmed: place,
            settled: place,
            saved: place,
            settled_at: Instant::now(),
            confirmed_at: Instant::now(),
            request_bytes_max: REQUEST_BYTES_MAX,
        };
        // From now on a run that is killed before anything was confirmed is sent by the next one.
        uploader.write(place)?;
        Ok(uploader)
    }

    /// Sends the next entries. Returns false if none are left.
    ///
    /// # Errors
    /// If they were not confirmed: they are sent again. Or if the journal cannot be read, or the place not be written.
    pub fn step(&mut self) -> Result<bool, Reason> {
        if self.unsent.len() < self.request_bytes_max {
            self.read()?;
        }
        if self.settled_at.elapsed() >= SETTLED_AFTER {
            self.settled_at = Instant::now();
            let now = self.known_written();
            let settled = std::mem::replace(&mut self.settled, now);
            self.write(settled)?;
        }
        let fitting = self.ends.iter().take_while(|(end, _)| *end <= self.request_bytes_max).count();
        let Some(&(end, at)) = self.ends.get(fitting.saturating_sub(1)) else { return Ok(false) };
        let in_one = fitting.max(1);
        match self.target.client.send(&self.unsent[..end]) {
            // It may have been started anew, without what it had confirmed.
            Ok(Sent::TakenAnew) if self.confirmed_at.elapsed() < SETTLED_AFTER => self.rewind()?,
            Ok(Sent::Taken | Sent::TakenAnew) => self.confirm(in_one, end, at),
            Ok(Sent::TooLarge) if in_one > 1 => self.request_bytes_max = end / 2,
            Ok(Sent::TooLarge) => {
                self.confirmed.lost_total += 1;
                self.request_bytes_max = REQUEST_BYTES_MAX;
                self.confirm(in_one, end, at);
            }
            Err(reason) => {
                // Its files may have been renewed.
                if let Ok(client) = Client::new(&self.target.url.url, self.target.url.path) {
                    self.target.client = client;
                }
                self.rewind()?;
                return Err(reason);
            }
        }
        Ok(true)
    }

    /// How the upload stands, if the last step failed with this reason.
    pub fn state(&self, failure: Option<&str>) -> UploadState {
        let written = self.known_written();
        let mut waiting = written.written.saturating_sub(written.seqnum);
        // What the writer of the present file has written, if another one's entries are sent still.
        waiting += self.end().filter(|end| end.seqnum_id != written.seqnum_id).map_or(0, |end| end.seqnum);
        UploadState { waiting, lost_total: written.lost_total, failure: failure.map(str::to_owned) }
    }

    /// Writes the place behind the last confirmed entry, at the end of a run.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&mut self) -> Result<(), Reason> {
        self.write(self.known_written())
    }

    fn write(&mut self, place: Place) -> Result<(), Reason> {
        if place != self.saved || !self.place_file.exists() {
            let json = serde_json::to_string(&place).map_err(|error| error.to_string())?;
            output_file::write(&self.place_file, &json)
                .map_err(|error| format!("cannot keep the place of the upload: {error}"))?;
        }
        self.saved = place;
        Ok(())
    }

    /// Goes back to the place in the file.
    fn rewind(&mut self) -> Result<(), Reason> {
        let back_to = self.saved.position();
        if self.confirmed.position() == back_to {
            return Ok(());
        }
        self.tail = Tail::resume(&self.journal, back_to).map_err(|error| error.to_string())?;
        self.unsent.clear();
        self.ends.clear();
        self.read = back_to;
        (self.confirmed, self.settled) = (self.saved, self.saved);
        Ok(())
    }

    fn read(&mut self) -> Result<(), Reason> {
        let Self { tail, unsent, ends, read, confirmed, .. } = self;
        let each = |entry: &journal::Entry| {
            let at = entry.position();
            confirmed.lost_total += missing(*read, at, confirmed);
            *read = at;
            entry.export(unsent);
            ends.push_back((unsent.len(), at));
        };
        tail.poll_up_to(ENTRIES_PER_READ, each).map(drop).map_err(|error| error.to_string())
    }

    /// Forgets the first entries, which end at a byte and before a place.
    fn confirm(&mut self, entries: usize, end: usize, at: EntryPosition) {
        self.confirmed_at = Instant::now();
        self.unsent.drain(..end);
        self.ends.drain(..entries);
        self.ends.iter_mut().for_each(|(at, _)| *at -= end);
        let written = if at.seqnum_id == self.confirmed.seqnum_id { self.confirmed.written } else { 0 };
        self.confirmed = Place {
            seqnum_id: at.seqnum_id,
            seqnum: at.seqnum,
            written: written.max(at.seqnum),
            ..self.confirmed
        };
    }

    /// The place behind the last confirmed entry, with what is written now.
    fn known_written(&self) -> Place {
        let place = self.confirmed;
        let end = self.end().filter(|end| end.seqnum_id == place.seqnum_id);
        Place { written: place.written.max(end.map_or(0, |end| end.seqnum)), ..place }
    }

    /// The end of the file at the journal's path.
    fn end(&self) -> Option<EntryPosition> {
        EntryPosition::end_of(&self.journal).ok()
    }
}

/// The entries between two that were read one after the other.
fn missing(before: EntryPosition, after: EntryPosition, confirmed: &Place) -> u64 {
    if before.seqnum_id == after.seqnum_id {
        return after.seqnum.saturating_sub(before.seqnum.saturating_add(1));
    }
    // The rest of the former writer, as far as it is known, and the beginning of the next.
    let of_former = if confirmed.seqnum_id == before.seqnum_id { confirmed.written } else { 0 };
    of_former.saturating_sub(before.seqnum) + after.seqnum.saturating_sub(1)
}

#[cfg(test)]
mod tests;
