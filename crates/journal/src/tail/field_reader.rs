//! Decodes compressed and binary fields with `systemd-journal-reader`, fed through a pipe.
//!
//! The library reads whole journals from a stream. It trusts every size, cannot seek, keeps all fields and
//! decompresses without a limit. So it gets a separate stream: each field once, uncompressed and of a bounded size,
//! followed by an entry that has only this field.

use std::cell::RefCell;
use std::io::{self, Read};
use std::rc::Rc;

use systemd_journal_reader::JournalReader;

use super::entry_scanner::ITEMS_AT;
use crate::layout::{INCOMPATIBLE_COMPACT, SIGNATURE, align8, kind};

/// The stream size after which a reader is replaced, since it keeps a copy of all that it read.
const STREAM_BYTES_MAX: u64 = 256 << 10;
/// The smallest header that the library accepts.
const HEADER_BYTES: usize = 240;
/// The offset of the payload in a DATA object of a compact file.
const PAYLOAD_AT: usize = 72;

/// The library's reader, and the pipe that feeds it.
pub(super) struct FieldReader {
    pipe: Pipe,
    reader: JournalReader<Pipe>,
    /// The bytes written to the pipe so far.
    len: u64,
}

impl FieldReader {
    pub(super) fn new() -> io::Result<Self> {
        let pipe = Pipe::default();
        pipe.write(|out| {
            out.extend_from_slice(SIGNATURE);
            out.resize(HEADER_BYTES, 0);
            out[12..16].copy_from_slice(&INCOMPATIBLE_COMPACT.to_le_bytes());
            out[88..96].copy_from_slice(&(HEADER_BYTES as u64).to_le_bytes());
            // The reader stops at the end of the arena, so this arena never ends.
            out[96..104].copy_from_slice(&(1_u64 << 62).to_le_bytes());
        });
        Ok(Self { reader: JournalReader::new(pipe.clone())?, pipe, len: HEADER_BYTES as u64 })
    }

    /// Returns whether this reader should be replaced.
    pub(super) fn is_full(&self) -> bool {
        self.len >= STREAM_BYTES_MAX
    }

    /// Returns the name and value, as text, of a plain field `NAME=value`.
    pub(super) fn decode(&mut self, field: &[u8]) -> Option<(Rc<str>, Rc<str>)> {
        // A full reader is replaced long before this fails.
        let place = u32::try_from(self.len).ok()?;
        self.write_object(kind::DATA, PAYLOAD_AT, field);
        self.write_object(kind::ENTRY, ITEMS_AT, &place.to_le_bytes());
        self.reader.next_entry()?.fields.into_iter().next()
    }

    /// Writes an object whose payload begins at the offset `payload_at`.
    fn write_object(&mut self, kind: u8, payload_at: usize, payload: &[u8]) {
        let size = (payload_at + payload.len()) as u64;
        self.pipe.write(|out| {
            let start = out.len();
            out.resize(start + payload_at, 0);
            out[start] = kind;
            out[start + 8..start + 16].copy_from_slice(&size.to_le_bytes());
            out.extend_from_slice(payload);
            out.resize(start + align8(size) as usize, 0);
        });
        self.len += align8(size);
    }
}

/// The bytes on their way to the reader, which owns a clone of the pipe. An empty pipe reads as the end of
/// the stream; the reader continues once it holds more.
#[derive(Clone, Debug, Default)]
struct Pipe(Rc<RefCell<Vec<u8>>>);

impl Pipe {
    fn write(&self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.0.borrow_mut());
    }
}

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut waiting = self.0.borrow_mut();
        let len = waiting.as_slice().read(out)?;
        waiting.drain(..len);
        Ok(len)
    }
}
