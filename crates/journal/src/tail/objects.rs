//! The walk over the objects of a file, which may be growing or damaged.
//!
//! The reader that makes entries of objects trusts every size that it meets and cannot seek. So it gets a stream in
//! which every object is whole and of a bounded size, and which ends before what the writer has not completed. What
//! cannot be read, and what it need not read, is replaced by objects of the kind "unused" and of the same size, since
//! the reader knows objects by where they lie.
//!
//! Compressed values are handed over plain, since the reader would make them plain without a bound. They are larger
//! then, and everything behind them lies further on in the stream than in the file: entries are told so.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::compressed::{Compression, EXPANDED_BYTES_MAX, Expander};
use super::shifts::{ENTRY_ITEMS_AT, Shifts};
use crate::layout::{
    HEADER_BYTES, HEADER_BYTES_MIN, Header, INCOMPATIBLE_COMPACT, INCOMPATIBLE_KEYED_HASH,
    OBJECT_HEADER_BYTES, align8, kind, u64_at,
};

/// So much of the file is looked at in one step, unless one object is larger.
const WINDOW_BYTES: u64 = 256 << 10;

/// Values and entries above this size are skipped: journald keeps larger ones (core dumps), our writer none.
const OBJECT_BYTES_MAX: u64 = 16 << 20;

/// What is passed over reaches the reader in pieces of this size, which bounds the memory that it takes.
const GAP_BYTES_MAX: u64 = 1 << 20;

/// So many bytes of values that were compressed are handed over from one file: the reader keeps them all.
const EXPANDED_BYTES_PER_FILE_MAX: u64 = 256 << 20;

/// A step ends when it has made so much plain, or tried to, in addition to its window.
const EXPANDED_BYTES_PER_STEP_MAX: u64 = 1 << 20;

/// The reader below wants at least this much of a header; systemd has written it since version 189.
const READER_HEADER_BYTES: u64 = 240;
/// No known header is larger than this by far.
const HEADER_BYTES_MAX: u64 = 4096;

/// The incompatible flags of files that can be read.
const INCOMPATIBLE_KNOWN: u32 = INCOMPATIBLE_KEYED_HASH
    | INCOMPATIBLE_COMPACT
    | Compression::Xz.file_flag()
    | Compression::Lz4.file_flag()
    | Compression::Zstd.file_flag();

/// Where an ENTRY object has its time by the realtime clock.
const ENTRY_REALTIME_AT: usize = 24;

/// What keeps a file from being read at all.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotAJournal(&'static str),
    Unsupported(String),
}

/// A walk over a file, from its first object on.
#[derive(Debug)]
pub(super) struct Objects {
    file: File,
    header: Header,
    compact: bool,
    /// Where the walk has come to.
    position: u64,
    /// ENTRY objects met so far.
    entries_seen: u64,
    passed: Passed,
    /// Bytes before `position` for which the reader has not been given anything yet.
    gap: u64,
    /// Within a damaged part, where the next object may begin at any multiple of eight.
    searching: bool,
    skipped_bytes: u64,
    expander: Expander,
    /// Bytes of plain values that were handed over in place of compressed ones.
    expanded_bytes: u64,
    shifts: Shifts,
}

/// The entries that are passed over, because the tail begins later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    /// Only entries that were there when the tail was opened are passed over: so many.
    entries: u64,
    /// They are passed over if they are earlier than this.
    before_us: u64,
}

impl Passed {
    /// Gives what is passed over of a file as it is now, for a tail that begins at a time.
    pub(super) fn before(realtime_us: u64, header: &Header) -> Self {
        Self { entries: header.n_entries, before_us: realtime_us }
    }
}

/// What one step of the walk came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The walk went on, and may go on further.
    Moved,
    /// There is nothing more now.
    CaughtUp,
}

/// An object as far as its header tells.
#[derive(Clone, Copy, Debug)]
struct Object {
    kind: u8,
    compression: Option<Compression>,
    size: u64,
    /// With the padding behind it.
    padded_size: u64,
}

impl Objects {
    /// Starts a walk, and gives what the reader must be given first.
    pub(super) fn start(file: File) -> io::Result<Result<(Self, Vec<u8>), Refusal>> {
        let mut bytes = [0; HEADER_BYTES];
        let len = read_at_most(&file, &mut bytes, 0)?;
        let header = match check(&bytes[..len]) {
            Ok(header) => header,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut start = bytes[..READER_HEADER_BYTES as usize].to_vec();
        // The reader stops at the end of the arena as it was when it began. This one never ends.
        start[96..104].copy_from_slice(&(1_u64 << 62).to_le_bytes());
        start.resize(header.header_size as usize, 0);
        let compact = header.incompatible_flags & INCOMPATIBLE_COMPACT != 0;
        let position = header.header_size;
        let walk = Self {
            file,
            header,
            compact,
            position,
            entries_seen: 0,
            passed: Passed::default(),
            gap: 0,
            searching: false,
            skipped_bytes: 0,
            expander: Expander::default(),
            expanded_bytes: 0,
            shifts: Shifts::default(),
        };
        Ok(Ok((walk, start)))
    }

    /// Passes over some of the entries.
    pub(super) fn pass_over(&mut self, passed: Passed) {
        self.passed = passed;
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn header(&self) -> &Header {
        &self.header
    }

    /// Gives the bytes that were skipped since the last call, because they are damaged.
    pub(super) fn take_skipped_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.skipped_bytes)
    }

    /// Adds the next whole objects to `out`, about a window of them.
    pub(super) fn step(&mut self, out: &mut Vec<u8>) -> io::Result<Step> {
        if self.gap >= GAP_BYTES_MAX {
            self.fill_gap(out);
            return Ok(Step::Moved);
        }
        self.refresh_header()?;
        let limit = self.readable_end()?;
        let start = self.position;
        if self.entries_seen >= self.header.n_entries || start + OBJECT_HEADER_BYTES > limit {
            return Ok(Step::CaughtUp);
        }
        let window = self.read_window(limit)?;
        let mut expanded = 0;
        while self.entries_seen < self.header.n_entries
            && self.gap < GAP_BYTES_MAX
            && expanded < EXPANDED_BYTES_PER_STEP_MAX
        {
            let rest = window.get((self.position - start) as usize..).unwrap_or_default();
            if rest.len() < OBJECT_HEADER_BYTES as usize {
                break;
            }
            match self.object(rest, limit) {
                None => self.pass_damaged(),
                Some(object) if self.reader_needs(object, rest) => {
                    let Some(whole) = rest.get(..object.padded_size as usize) else { break };
                    match object.compression {
                        Some(compression) => expanded += self.expand(object, compression, whole, out),
                        None => self.hand_over(whole, out),
                    }
                }
                Some(object) => self.pass_object(object),
            }
        }
        self.fill_gap(out);
        // Without this the rest of a file that was cut off would be looked at for ever.
        Ok(if self.position == start { Step::CaughtUp } else { Step::Moved })
    }

    /// Reads the header again, since a growing file says there how far it goes.
    fn refresh_header(&mut self) -> io::Result<()> {
        let mut bytes = [0; HEADER_BYTES];
        let len = read_at_most(&self.file, &mut bytes, 0)?;
        // A header that is damaged while we read leaves us with what was known before.
        if let Some(header) = Header::parse(&bytes[..len]) {
            self.header = header;
        }
        Ok(())
    }

    /// Finds the end of the last object, or of the file if that is nearer.
    fn readable_end(&self) -> io::Result<u64> {
        let file_end = self.file.metadata()?.len() & !7;
        let tail = self.header.tail_object_offset;
        let mut object = [0; OBJECT_HEADER_BYTES as usize];
        let is_whole = read_at_most(&self.file, &mut object, tail)? == object.len();
        let tail_end = tail.saturating_add(u64_at(&object, 8)).checked_next_multiple_of(8);
        Ok(match tail_end {
            Some(end) if is_whole => end.min(file_end),
            _ => file_end,
        })
    }

    /// Reads what follows the position: a window, or the one object there if it is larger.
    fn read_window(&self, limit: u64) -> io::Result<Vec<u8>> {
        let mut window = vec![0; (limit - self.position).min(WINDOW_BYTES) as usize];
        let len = read_at_most(&self.file, &mut window, self.position)?;
        window.truncate(len);
        let larger = self.object(&window, limit).filter(|object| {
            self.reader_needs(*object, &window)
                && len as u64 == WINDOW_BYTES
                && object.padded_size > WINDOW_BYTES
        });
        if let Some(object) = larger {
            window.resize(object.padded_size as usize, 0);
            let len = read_at_most(&self.file, &mut window, self.position)?;
            window.truncate(len);
        }
        Ok(window)
    }

    /// Reads the header of the object at the position, or finds that there cannot be one.
    fn object(&self, bytes: &[u8], limit: u64) -> Option<Object> {
        if bytes.len() < OBJECT_HEADER_BYTES as usize {
            return None;
        }
        // A gap is filled by an object, and there is none of eight bytes.
        if self.gap == 8 {
            return None;
        }
        let (kind, flags, reserved, size) = (bytes[0], bytes[1], &bytes[2..8], u64_at(bytes, 8));
        let padded_size = size.checked_next_multiple_of(8)?;
        let compression = Compression::of_object(flags)
            .filter(|by| kind == kind::DATA && self.header.incompatible_flags & by.file_flag() != 0);
        let is_sound = (flags == 0 || compression.is_some())
            && reserved.iter().all(|byte| *byte == 0)
            && size >= self.least_size(kind)
            && padded_size <= limit - self.position;
        // Kinds that are not known yet are skipped as the format asks, but not taken for the end of a damaged part.
        let is_known = (kind::DATA..=kind::TAG).contains(&kind);
        (is_sound && (is_known || !self.searching)).then_some(Object { kind, compression, size, padded_size })
    }

    fn least_size(&self, kind: u8) -> u64 {
        match kind {
            kind::DATA if self.compact => 72,
            kind::DATA | kind::ENTRY | kind::TAG => 64,
            kind::FIELD => 40,
            kind::ENTRY_ARRAY => 24,
            _ => OBJECT_HEADER_BYTES,
        }
    }

    /// Tells whether the reader needs an object, of which at least the beginning is given.
    fn reader_needs(&self, object: Object, bytes: &[u8]) -> bool {
        let is_early =
            || bytes.len() >= ENTRY_ITEMS_AT && u64_at(bytes, ENTRY_REALTIME_AT) < self.passed.before_us;
        let is_skipped = object.kind == kind::ENTRY && self.entries_seen < self.passed.entries && is_early();
        matches!(object.kind, kind::DATA | kind::ENTRY)
            && object.padded_size <= OBJECT_BYTES_MAX
            && !is_skipped
    }

    fn hand_over(&mut self, object: &[u8], out: &mut Vec<u8>) {
        self.fill_gap(out);
        let start = out.len();
        out.extend_from_slice(object);
        if object[0] == kind::ENTRY {
            self.entries_seen += 1;
            self.shifts.apply(&mut out[start..], self.compact);
        }
        self.searching = false;
        self.position += object.len() as u64;
    }

    /// Hands over a plain object in place of a compressed one; gives the size of what it made, or tried to make.
    fn expand(&mut self, object: Object, compression: Compression, whole: &[u8], out: &mut Vec<u8>) -> u64 {
        self.fill_gap(out);
        let start = out.len();
        let value_at = self.least_size(kind::DATA) as usize;
        let value = &whole[value_at..object.size as usize];
        out.extend_from_slice(&whole[..value_at]);
        let is_allowed = self.expanded_bytes < EXPANDED_BYTES_PER_FILE_MAX;
        if !is_allowed || self.expander.expand(compression, value, out).is_none() {
            out.truncate(start);
            self.skipped_bytes += object.padded_size;
            self.pass_object(object);
            return EXPANDED_BYTES_MAX as u64;
        }
        let size = (out.len() - start) as u64;
        out[start + 1] = 0;
        out[start + 8..start + 16].copy_from_slice(&size.to_le_bytes());
        let padded_size = align8(size);
        out.resize(start + padded_size as usize, 0);
        self.searching = false;
        self.position += object.padded_size;
        self.expanded_bytes += size;
        self.shifts.grow(self.position, padded_size as i64 - object.padded_size as i64);
        size
    }

    fn pass_object(&mut self, object: Object) {
        let is_oversize = object.padded_size > OBJECT_BYTES_MAX;
        let is_lost = match object.kind {
            kind::DATA | kind::ENTRY => is_oversize,
            known => !(kind::FIELD..=kind::TAG).contains(&known),
        };
        if is_lost {
            self.skipped_bytes += object.padded_size;
        }
        self.searching = false;
        self.gap += object.padded_size;
        self.position += object.padded_size;
        self.entries_seen += u64::from(object.kind == kind::ENTRY);
    }

    fn pass_damaged(&mut self) {
        self.searching = true;
        self.gap += 8;
        self.position += 8;
        self.skipped_bytes += 8;
    }

    /// Gives the reader an unused object in place of what was passed over, or of the first part of it.
    fn fill_gap(&mut self, out: &mut Vec<u8>) {
        let size = match self.gap {
            0..OBJECT_HEADER_BYTES => return,
            // What is left must still have room for an object.
            gap if gap > GAP_BYTES_MAX => gap.min(GAP_BYTES_MAX - OBJECT_HEADER_BYTES),
            gap => gap,
        };
        out.extend_from_slice(&u64::from(kind::UNUSED).to_le_bytes());
        out.extend_from_slice(&size.to_le_bytes());
        out.resize(out.len() + (size - OBJECT_HEADER_BYTES) as usize, 0);
        self.gap -= size;
    }
}

/// Finds out whether a file with this header can be read.
fn check(bytes: &[u8]) -> Result<Header, Refusal> {
    if bytes.len() < HEADER_BYTES_MIN {
        return Err(Refusal::NotAJournal("it is too short"));
    }
    let header = Header::parse(bytes).ok_or(Refusal::NotAJournal("its header is not one"))?;
    let unknown = header.incompatible_flags & !INCOMPATIBLE_KNOWN;
    if unknown != 0 {
        return Err(Refusal::Unsupported(format!("a newer format (flags {unknown:#x})")));
    }
    if !(HEADER_BYTES_MIN as u64..=HEADER_BYTES_MAX).contains(&header.header_size)
        || header.header_size % 8 != 0
    {
        return Err(Refusal::NotAJournal("the size of its header makes no sense"));
    }
    if header.header_size < READER_HEADER_BYTES || (bytes.len() as u64) < READER_HEADER_BYTES {
        return Err(Refusal::Unsupported("a header from before systemd 189".to_owned()));
    }
    Ok(header)
}

/// Reads until the buffer is full or the file ends.
fn read_at_most(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(&mut bytes[len..], offset.saturating_add(len as u64)) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Offsets above what the kernel takes come from damaged headers: there is nothing there.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => break,
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
