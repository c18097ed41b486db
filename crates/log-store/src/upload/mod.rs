//! Sends the entries of a journal file to a store, as systemd-journal-upload does.
//!
//! The file and its archives are the queue. systemd-journal-upload sends one endless request, which nobody confirms; here
//! each request is short, and its response confirms its entries. After a failure, what was not confirmed, or only just, is
//! sent again, so an entry may arrive twice: readers count a record once. How far the journal was sent is kept in a file
//! beside it.

use std::collections::VecDeque;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use journal::{EntryPosition, Tail, WriterPlaces};
use serde::{Deserialize, Serialize};

use crate::client::{Client, Reason, Sent};
use crate::now_s;
use crate::url::UploadUrl;

/// The entries that are read at a time: some 100 KB.
const ENTRIES_PER_READ: u64 = 64;
/// A request has more bytes than this only if one entry has. nginx refuses more than 1 MiB by default.
const REQUEST_BYTES_MAX: usize = 512 << 10;
/// After so many smaller requests that were taken, a request is tried that is twice as large.
const SMALL_REQUESTS: u32 = 16;
/// A receiver may confirm entries before they are on its disk (VictoriaLogs writes them within 5 s). So those that were
/// confirmed within this time before a failure, and up to twice as long, are sent again.
const SETTLED_AFTER: Duration = Duration::from_secs(10);
/// Confirmed places that are not settled: a receiver that ends each connection would keep any number.
const MARKS_MAX: usize = 16;
/// The bytes of the file with the places: a writer takes 100, and is forgotten with its last archive.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// An upload that was checked before anything is started.
#[derive(Clone, Debug)]
pub struct UploadTarget {
    url: UploadUrl,
    client: Client,
}

/// How an upload stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UploadState {
    /// Entries that were not confirmed yet.
    pub waiting: u64,
    /// Entries that nobody got: they left the archives, became unreadable, or were too large for the receiver. It never falls.
    pub lost_total: u64,
    /// Why nothing is confirmed at the moment.
    pub failure: Option<String>,
}

/// Sends the entries of a journal file and its archives. Not `Send`, as the tail that it reads.
#[derive(Debug)]
pub struct Uploader {
    target: UploadTarget,
    journal: PathBuf,
    tail: Tail,
    /// What was read and not confirmed, in the Journal Export Format.
    unsent: Vec<u8>,
    unsent_entries: VecDeque<UnsentEntry>,
    /// The last entry read of each writer, and the last one confirmed since the places of the file.
    read: WriterPlaces,
    confirmed: WriterPlaces,
    /// The last one that was confirmed at all.
    furthest: WriterPlaces,
    /// What an earlier upload had confirmed last. It counts as sent once this one has sent it too.
    again: Option<WriterPlaces>,
    kept: SentPlaces,
    marked_at: Instant,
    request_bytes_max: usize,
    small_requests: u32,
    lost_total: u64,
}

#[derive(Clone, Copy, Debug)]
struct UnsentEntry {
    /// Its end among the unsent bytes.
    end: usize,
    at: EntryPosition,
    /// The number of the entry before it that could be read.
    before: u64,
}

/// How far a journal was sent, as the file beside it has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SentPlaces {
    /// The last entry of each writer that was confirmed some time ago.
    sent: WriterPlaces,
    /// The last one that it is known to have written.
    written: WriterPlaces,
    /// What was confirmed later, and when, in seconds since 1970.
    marks: VecDeque<(u64, WriterPlaces)>,
}

impl SentPlaces {
    /// Takes over what was confirmed long enough ago: the receiver has been the same since then.
    fn settle(&mut self, now_s: u64) {
        let is_settled = |at_s: u64| at_s.saturating_add(SETTLED_AFTER.as_secs()) <= now_s;
        while self.marks.front().is_some_and(|(at_s, _)| is_settled(*at_s)) {
            self.settle_first();
        }
    }

    fn settle_first(&mut self) {
        self.sent = self.marks.pop_front().map(|(_, places)| places).unwrap_or_default();
    }

    /// Reads the file; `None` if there is none. What is no such file begins with nothing: all is sent again.
    fn read(path: &Path) -> Result<Option<Self>, Reason> {
        let reason = |error| format!("cannot read {}: {error}", path.display());
        let file = match journal::open_regular(path) {
            Ok(Some(file)) => file,
            Ok(None) => return Err(format!("{} is not a regular file", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(reason(error)),
        };
        let mut json = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut json).map_err(reason)?;
        Ok(Some(serde_json::from_slice(&json).unwrap_or_default()))
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

/// The file beside a journal that says how far it was sent.
fn places_file(journal: &Path) -> PathBuf {
    journal.with_extension("upload")
}

impl Uploader {
    /// Opens a journal file and its archives where an earlier upload ended, or else at the beginning of the file.
    ///
    /// # Errors
    /// If the journal, or the file with the places, cannot be read or written.
    pub fn open(target: UploadTarget, journal: &Path) -> Result<Self, String> {
        let reason = |error: journal::ReadError| error.to_string();
        let mut kept = if let Some(kept) = SentPlaces::read(&places_file(journal))? {
            kept
        } else {
            // What was archived before is not sent.
            let mut sent = journal::last_entries(journal).map_err(reason)?;
            sent.insert(journal::file_writer(journal).map_err(reason)?, 0);
            SentPlaces { sent, ..SentPlaces::default() }
        };
        // Nobody knows what the receiver did meanwhile: what was confirmed last is sent once more.
        let again = std::mem::take(&mut kept.marks).pop_back().map(|(_, places)| places);
        let furthest = again.clone().unwrap_or_else(|| kept.sent.clone());
        let mut uploader = Self {
            target,
            journal: journal.to_owned(),
            tail: Tail::resume(journal, kept.sent.clone()).map_err(reason)?,
            unsent: Vec::new(),
            unsent_entries: VecDeque::new(),
            read: kept.sent.clone(),
            confirmed: kept.sent.clone(),
            furthest,
            again,
            kept,
            marked_at: Instant::now(),
            request_bytes_max: REQUEST_BYTES_MAX,
            small_requests: 0,
            lost_total: 0,
        };
        // From now on a run that is killed before anything was confirmed is sent by the next one.
        uploader.write()?;
        Ok(uploader)
    }

    /// Sends the next entries. Returns false if none are left.
    ///
    /// # Errors
    /// If they were not confirmed: they are sent again. Or if the journal cannot be read, or the places not be written.
    pub fn step(&mut self) -> Result<bool, Reason> {
        if self.unsent.len() < self.request_bytes_max {
            self.read()?;
        }
        if self.marked_at.elapsed() >= SETTLED_AFTER {
            self.save()?;
        }
        let is_fitting = |entry: &&UnsentEntry| entry.end <= self.request_bytes_max;
        let in_one = self.unsent_entries.iter().take_while(is_fitting).count().max(1);
        let Some(&UnsentEntry { end, .. }) = self.unsent_entries.get(in_one - 1) else { return Ok(false) };
        match self.target.client.send(&self.unsent[..end]) {
            // It may have been started anew, without what it had confirmed.
            Ok(Sent::TakenAnew) => self.rewind()?,
            Ok(Sent::Taken { is_same }) => {
                if is_same {
                    self.kept.settle(now_s());
                }
                self.small_requests += u32::from(self.request_bytes_max < REQUEST_BYTES_MAX);
                if self.small_requests == SMALL_REQUESTS {
                    self.small_requests = 0;
                    self.request_bytes_max = (2 * self.request_bytes_max).min(REQUEST_BYTES_MAX);
                }
                self.confirm(in_one, end);
            }
            Ok(Sent::TooLarge) if in_one > 1 => {
                self.request_bytes_max = end / 2;
                self.small_requests = 0;
            }
            Ok(Sent::TooLarge) => {
                self.lost_total += 1;
                self.confirm(in_one, end);
            }
            Err(reason) => {
                // Its files may have been renewed.
                if let Ok(client) = Client::new(&self.target.url.url, self.target.url.path) {
                    self.target.client = client;
                }
                self.rewind()?;
                // With what is written by now: if it leaves the archives, it is known to be missing.
                self.write()?;
                return Err(reason);
            }
        }
        Ok(true)
    }

    /// How the upload stands if nothing waits but what was just written. It looks at no file.
    pub fn caught_up(&self) -> UploadState {
        UploadState { waiting: 0, lost_total: self.lost_total, failure: None }
    }

    /// How the upload stands, if the last step failed with this reason.
    pub fn state(&self, failure: Option<&str>) -> UploadState {
        let last = journal::last_entries(&self.journal).unwrap_or_default();
        let of_writer =
            |(id, seqnum): (&u128, &u64)| seqnum.saturating_sub(self.confirmed.get(id).copied().unwrap_or(0));
        let waiting = last.iter().map(of_writer).sum();
        UploadState { waiting, lost_total: self.lost_total, failure: failure.map(str::to_owned) }
    }

    /// Writes how far the journal was sent: every some seconds, and at the end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&mut self) -> Result<(), Reason> {
        self.marked_at = Instant::now();
        let is_sent = |(id, seqnum): (&u128, &u64)| self.confirmed.get(id).is_none_or(|sent| sent >= seqnum);
        if let Some(again) = self.again.take_if(|again| again.iter().all(is_sent)) {
            self.kept.sent = again;
        }
        if self.kept.marks.back().map_or(&self.kept.sent, |(_, places)| places) != &self.confirmed {
            self.kept.marks.push_back((now_s(), self.confirmed.clone()));
        }
        if self.kept.marks.len() > MARKS_MAX {
            self.kept.settle_first();
        }
        self.write()
    }

    fn write(&mut self) -> Result<(), Reason> {
        let last = journal::last_entries(&self.journal).map_err(|error| error.to_string())?;
        let kept = &mut self.kept;
        // A writer without files is no longer of interest.
        for (id, seqnum) in kept.written.iter().filter(|(id, _)| !last.contains_key(id)) {
            self.lost_total += seqnum.saturating_sub(self.furthest.get(id).copied().unwrap_or(0));
        }
        for places in [&mut kept.sent].into_iter().chain(kept.marks.iter_mut().map(|(_, places)| places)) {
            places.retain(|id, _| last.contains_key(id));
        }
        kept.written = last;
        let json = serde_json::to_string(&kept).map_err(|error| error.to_string())?;
        output_file::write(&places_file(&self.journal), &json)
            .map_err(|error| format!("cannot keep the place of the upload: {error}"))
    }

    /// Goes back to what is known to be kept.
    fn rewind(&mut self) -> Result<(), Reason> {
        let back_to = &self.kept.sent;
        if self.confirmed == *back_to {
            return Ok(());
        }
        self.tail = Tail::resume(&self.journal, back_to.clone()).map_err(|error| error.to_string())?;
        self.unsent.clear();
        self.unsent_entries.clear();
        (self.read, self.confirmed) = (back_to.clone(), back_to.clone());
        self.kept.marks.clear();
        Ok(())
    }

    fn read(&mut self) -> Result<(), Reason> {
        let Self { tail, unsent, unsent_entries, read, .. } = self;
        let each = |entry: &journal::Entry| {
            let at = entry.position();
            let before = read.insert(at.seqnum_id, at.seqnum).unwrap_or(0);
            entry.export(unsent);
            unsent_entries.push_back(UnsentEntry { end: unsent.len(), at, before });
        };
        tail.poll_up_to(ENTRIES_PER_READ, each).map(drop).map_err(|error| error.to_string())
    }

    /// Forgets the first entries, which end at a byte.
    fn confirm(&mut self, entries: usize, end: usize) {
        self.unsent.drain(..end);
        for UnsentEntry { at: EntryPosition { seqnum_id, seqnum }, before, .. } in
            self.unsent_entries.drain(..entries)
        {
            // What was confirmed once, and sent again, is no hole.
            let furthest = self.furthest.entry(seqnum_id).or_default();
            self.lost_total += seqnum.saturating_sub(1).saturating_sub(before.max(*furthest));
            *furthest = seqnum.max(*furthest);
            self.confirmed.insert(seqnum_id, seqnum);
        }
        self.unsent_entries.iter_mut().for_each(|entry| entry.end -= end);
    }
}

#[cfg(test)]
mod tests;
