//! One file that is being read.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

use super::entry::Entry;
use super::objects::{Objects, Refusal};
use super::stream::{Head, Stream};
use super::values::{Values, name_len};
use super::walk::{Passed, Stored, Walk};
use super::wanted::{Filter, Wanted};
use crate::ReadError;
use crate::layout::Header;

/// What gives away a file that journald is just making: it has its name before its header.
pub(super) const EMPTY: &str = "it is empty";

/// A file, the walk over its entries, and the reader that makes them readable.
pub(super) struct Source {
    objects: Objects,
    walk: Walk,
    wanted: Wanted,
    values: Values,
    stream: Stream,
    walked_bytes: u64,
}

/// What one step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It went on, and may go on further.
    Moved,
    /// There is nothing more now.
    CaughtUp,
}

impl Source {
    pub(super) fn open(path: &Path, filter: &Filter) -> Result<Self, ReadError> {
        let objects = open(path)?;
        Ok(Self {
            walk: Walk::new(&objects),
            wanted: Wanted::new(filter.clone()),
            values: Values::new(),
            stream: Stream::new().map_err(ReadError::io("read", path))?,
            walked_bytes: 0,
            objects,
        })
    }

    /// Hands out only what is wanted from now on.
    pub(super) fn set_filter(&mut self, filter: &Filter) {
        self.wanted = Wanted::new(filter.clone());
    }

    /// Passes over some of the entries.
    pub(super) fn pass_over(&mut self, passed: Passed) {
        self.walk.pass_over(passed);
    }

    /// Passes over the entries that are there now and earlier than the given time.
    pub(super) fn pass_before(&mut self, realtime_us: u64) {
        self.walk.pass_over(Passed::before(realtime_us, self.objects.header()));
    }

    pub(super) fn file(&self) -> &File {
        self.objects.file()
    }

    pub(super) fn header(&self) -> &Header {
        self.objects.header()
    }

    /// Gives the bytes that were skipped since the last call, because they are damaged or refused.
    pub(super) fn take_skipped_bytes(&mut self) -> u64 {
        self.walk.take_skipped_bytes() + self.values.take_skipped_bytes()
    }

    /// Gives how far the walk went since the last call, in bytes.
    pub(super) fn take_walked_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.walked_bytes)
    }

    /// Hands out what the reader was given, until `each` has taken `entries_max` entries, and counts these.
    pub(super) fn read(&mut self, entries_max: u64, each: &mut impl FnMut(&Entry) -> bool) -> u64 {
        let mut entries = 0;
        while entries < entries_max {
            let Some((head, inner)) = self.stream.next_entry() else { break };
            if self.wanted.filter().is_met(&inner) {
                let is_exact = head.is_text && head.fields == inner.fields.len();
                let exact = if is_exact { None } else { self.exact(head) };
                entries += u64::from(each(&Entry::new(head, inner, exact)));
            }
        }
        entries
    }

    /// Looks at the next part of the file for entries.
    pub(super) fn step(&mut self) -> io::Result<Step> {
        self.stream.begin_step()?;
        self.objects.refresh()?;
        if self.walk.is_at_end(&self.objects) {
            return Ok(Step::CaughtUp);
        }
        let start = self.walk.position();
        self.wanted.refresh(&self.objects)?;
        if let Some(last) = self.walk.last_needless(&self.objects, self.wanted.is_any())
            && let Some(offset) = self.objects.entry_offset(last)?
        {
            self.walk.jump(last, offset);
        }
        let window_start = self.walk.position();
        self.objects.load_window(window_start)?;
        while !self.stream.is_step_full()
            && let Some(entry) = self.walk.find_entry(&self.objects)
        {
            if !self.walk.is_passed_over(entry) && self.wanted.has(entry) {
                self.stream.push(entry, &self.objects, &mut self.values)?;
            }
            self.walk.pass_entry(entry);
        }
        self.values.note_walked(self.walk.position() - window_start);
        self.walked_bytes += self.walk.position() - start;
        // Without this the rest of a file that was cut off would be looked at for ever.
        Ok(if self.walk.position() == start { Step::CaughtUp } else { Step::Moved })
    }

    /// Reads all fields of an entry anew, byte for byte.
    ///
    /// If that fails, the file can no longer be read, which the next step will find; the entry remains as it is.
    fn exact(&mut self, head: Head) -> Option<Vec<(String, Vec<u8>)>> {
        let mut scratch = Vec::new();
        let bytes = self.objects.bytes_at(head.offset, head.bytes, &mut scratch).ok()?;
        if bytes.len() < head.bytes {
            return None;
        }
        let entry = Stored { offset: head.offset, bytes, is_compact: self.objects.is_compact() };
        let mut fields = Vec::with_capacity(head.fields);
        self.values.begin_entry();
        for offset in entry.items() {
            let mut name = Vec::new();
            if self.values.append(&self.objects, offset, &mut name).ok()?.is_some() {
                let value_at = name_len(&name)? + 1;
                let value = name.split_off(value_at);
                name.truncate(value_at - 1);
                fields.push((String::from_utf8(name).ok()?, value));
            }
        }
        Some(fields)
    }
}

/// Opens a file that may be a journal.
pub(super) fn open(path: &Path) -> Result<Objects, ReadError> {
    // A pipe or a device would keep us waiting.
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let file = OpenOptions::new().read(true).custom_flags(nonblocking).open(path);
    let file = file.map_err(ReadError::io("open", path))?;
    let metadata = file.metadata().map_err(ReadError::io("inspect", path))?;
    if !metadata.is_file() {
        return Err(ReadError::NotAJournal { path: path.to_owned(), reason: "it is not a regular file" });
    }
    if metadata.len() == 0 {
        return Err(ReadError::NotAJournal { path: path.to_owned(), reason: EMPTY });
    }
    let opened = Objects::of(file).map_err(ReadError::io("read", path))?;
    opened.map_err(|refusal| match refusal {
        Refusal::NotAJournal(reason) => ReadError::NotAJournal { path: path.to_owned(), reason },
        Refusal::Unsupported(feature) => ReadError::Unsupported { path: path.to_owned(), feature },
    })
}

/// Tells whether the file is the one at the path.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}
