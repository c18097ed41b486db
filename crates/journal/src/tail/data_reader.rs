//! Reads DATA objects as plain `NAME=value`, within bounds.

use std::io;

use super::compression::ValueDecompressor;
use super::object_reader::ObjectReader;
use crate::layout::kind;

/// Larger objects are skipped. Only journald writes such objects (core dumps).
const OBJECT_BYTES_MAX: u64 = 16 << 20;

/// The bytes of fields that are read for one entry: more than a client without privileges can send to
/// journald.
const ENTRY_BYTES_MAX: usize = 32 << 20;

/// Most objects are at most this large, so one system call reads them.
const USUAL_BYTES: usize = 1024;

/// A larger scratch buffer is freed.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// The bytes of fields that may be read for each byte of the file, in addition to `READ_BYTES_MIN`.
///
/// Shared fields are sometimes read again, and compressed ones grow, but only a hostile file exceeds this.
const READ_BYTES_PER_FILE_BYTE: u64 = 16;
const READ_BYTES_MIN: u64 = 256 << 20;

/// How a field is stored in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Plain,
    Compressed,
}

#[derive(Debug)]
pub(super) struct DataReader {
    decompressor: ValueDecompressor,
    scratch: Vec<u8>,
    /// The bytes that may still be read for the current entry, and for the file.
    entry_bytes_left: usize,
    file_bytes_left: u64,
    /// The offset up to which refused fields are counted.
    refused_up_to: u64,
    skipped_bytes: u64,
}

impl DataReader {
    pub(super) fn new() -> Self {
        Self {
            decompressor: ValueDecompressor::default(),
            scratch: Vec::new(),
            entry_bytes_left: 0,
            file_bytes_left: READ_BYTES_MIN,
            refused_up_to: 0,
            skipped_bytes: 0,
        }
    }

    /// Frees buffers until there is more to read.
    pub(super) fn rest(&mut self) {
        self.decompressor = ValueDecompressor::default();
        self.scratch = Vec::new();
    }

    pub(super) fn begin_entry(&mut self) {
        self.entry_bytes_left = ENTRY_BYTES_MAX;
        if self.scratch.capacity() > SCRATCH_BYTES_MAX {
            self.scratch = Vec::new();
        }
    }

    /// Records how many bytes of the file were scanned.
    pub(super) fn note_scanned(&mut self, bytes: u64) {
        let more = bytes.saturating_mul(READ_BYTES_PER_FILE_BYTE);
        self.file_bytes_left = self.file_bytes_left.saturating_add(more);
    }

    /// Returns the bytes of fields refused since the last call.
    pub(super) fn take_skipped_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.skipped_bytes)
    }

    /// Appends the plain field at `offset` to `out`; `None` if there is none, or it is refused.
    pub(super) fn append(
        &mut self,
        objects: &ObjectReader,
        offset: u64,
        out: &mut Vec<u8>,
    ) -> io::Result<Option<Encoding>> {
        let parse = |bytes: &[u8]| {
            objects.parse(bytes, offset, objects.end()).filter(|object| object.kind == kind::DATA)
        };
        let mut bytes = objects.in_window(offset);
        let mut object = parse(bytes).filter(|object| object.size <= bytes.len() as u64);
        if object.is_none() {
            bytes = objects.bytes_at(offset, USUAL_BYTES, &mut self.scratch)?;
            object = parse(bytes);
        }
        // The scanner has counted damaged objects.
        let Some(object) = object else { return Ok(None) };
        let value_at = objects.fixed_size(kind::DATA) as usize;
        let before = out.len();
        let mut is_taken = false;
        if object.size <= OBJECT_BYTES_MAX.min(self.file_bytes_left) {
            let size = object.size as usize;
            if bytes.len() < size {
                bytes = objects.bytes_at(offset, size, &mut self.scratch)?;
            }
            let Some(value) = bytes.get(value_at..size) else { return Ok(None) };
            let plain = match object.compression {
                None => {
                    out.extend_from_slice(value);
                    Some(())
                }
                Some(compression) => self.decompressor.decompress(compression, value, out),
            };
            let len = out.len() - before;
            is_taken = plain.is_some() && name_len(&out[before..]).is_some() && len <= self.entry_bytes_left;
            self.file_bytes_left = self.file_bytes_left.saturating_sub(len.max(value_at) as u64);
        }
        if is_taken {
            self.entry_bytes_left -= out.len() - before;
            return Ok(Some(if object.compression.is_none() {
                Encoding::Plain
            } else {
                Encoding::Compressed
            }));
        }
        out.truncate(before);
        if offset >= self.refused_up_to {
            self.refused_up_to = offset + object.padded_size;
            self.skipped_bytes += object.padded_size;
        }
        Ok(None)
    }
}

/// Returns the length of the name in `NAME=value`, if it has only the characters that journald writes: A-Z,
/// 0-9 and _.
pub(super) fn name_len(field: &[u8]) -> Option<usize> {
    let is_of_name = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
    let len = field.iter().position(|byte| !is_of_name(byte))?;
    (len > 0 && field[len] == b'=').then_some(len)
}
