//! Header fields of requests, encoded once for all connections.
//!
//! Once a repeated field was sent on a connection, it has a number there. The number depends on the fields sent
//! before, so only the number is determined when a request is sent. The table has room for every numbered field, so no
//! field is evicted, and each number fits into one byte.

use std::collections::HashMap;

use super::huffman;
use super::table::{ENTRY_BYTES, STATIC};

/// Most fields that get a number.
const NUMBERED_MAX: usize = 60;
/// The number of the field that was added last.
const NEWEST: u8 = STATIC.len() as u8 + 1;

/// Assigns a number to each distinct field while requests are encoded.
#[derive(Debug, Default)]
pub(crate) struct FieldNumbers(HashMap<(Vec<u8>, Vec<u8>), u8>);

/// The header block of a request.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pieces: Vec<HeaderPiece>,
}

#[derive(Debug)]
enum HeaderPiece {
    /// Bytes that are the same on all connections.
    Fixed(Vec<u8>),
    /// A field that may have been sent before.
    Field { field: u8, table_bytes: usize, adding: Box<[u8]>, plain: Box<[u8]> },
}

/// The fields in the peer's dynamic table on one connection, with their indices.
#[derive(Debug)]
pub(crate) struct EncoderTable {
    /// For each field, the number of fields added up to and including it; 0 for a field that was not added.
    places: [u8; NUMBERED_MAX],
    added: u8,
    /// Room in the server's table that is left.
    room: usize,
    /// How large the server's table is allowed to be.
    table_bytes: usize,
    /// The server must get the table's new size before anything else.
    has_shrunk: bool,
}

impl Fields {
    /// Adds a field whose value may come again, in this request or in others.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8], numbers: &mut FieldNumbers) {
        if let Some(index) = STATIC.iter().position(|field| *field == (name, value)) {
            return self.fixed(&[0x80 | (index as u8 + 1)]);
        }
        let next = numbers.0.len();
        let known = numbers.0.get(&(name.to_vec(), value.to_vec())).copied();
        let field = known.or_else(|| {
            let field = u8::try_from(next).ok().filter(|_| next < NUMBERED_MAX)?;
            numbers.0.insert((name.to_vec(), value.to_vec()), field);
            Some(field)
        });
        let Some(field) = field else { return self.push_once(name, value) };
        let table_bytes = name.len() + value.len() + ENTRY_BYTES;
        let (adding, plain) = (literal(0x40, 6, name, value), literal(0, 4, name, value));
        self.pieces.push(HeaderPiece::Field { field, table_bytes, adding, plain });
    }

    /// Adds a field that is spelled out each time.
    pub(crate) fn push_once(&mut self, name: &[u8], value: &[u8]) {
        self.fixed(&literal(0, 4, name, value));
    }

    fn fixed(&mut self, bytes: &[u8]) {
        if let Some(HeaderPiece::Fixed(before)) = self.pieces.last_mut() {
            before.extend_from_slice(bytes);
        } else {
            self.pieces.push(HeaderPiece::Fixed(bytes.to_vec()));
        }
    }

    /// Appends the block as it goes over a connection now.
    pub(crate) fn write(&self, indexed: &mut EncoderTable, out: &mut Vec<u8>) {
        if std::mem::take(&mut indexed.has_shrunk) {
            // The old content is not tracked: the size is first set to zero, then to the new value.
            out.push(0x20);
            integer(0x20, 5, indexed.table_bytes, out);
        }
        for piece in &self.pieces {
            match piece {
                HeaderPiece::Fixed(bytes) => out.extend_from_slice(bytes),
                HeaderPiece::Field { field, table_bytes, adding, plain } => {
                    let place = indexed.places[usize::from(*field)];
                    if place > 0 {
                        out.push(0x80 | (NEWEST + indexed.added - place));
                    } else if indexed.add(*field, *table_bytes) {
                        out.extend_from_slice(adding);
                    } else {
                        out.extend_from_slice(plain);
                    }
                }
            }
        }
    }
}

impl EncoderTable {
    pub(crate) fn new() -> Self {
        let table_bytes = super::TABLE_BYTES;
        Self { places: [0; NUMBERED_MAX], added: 0, room: table_bytes, table_bytes, has_shrunk: false }
    }

    /// Applies the server's `SETTINGS_HEADER_TABLE_SIZE`. Space beyond our own maximum is not used.
    pub(crate) fn allow(&mut self, table_bytes: usize) {
        if table_bytes < self.table_bytes {
            *self = Self { room: table_bytes, table_bytes, has_shrunk: true, ..Self::new() };
        }
    }

    fn add(&mut self, field: u8, bytes: usize) -> bool {
        let Some(room) = self.room.checked_sub(bytes) else { return false };
        self.room = room;
        self.added += 1;
        self.places[usize::from(field)] = self.added;
        true
    }
}

/// A field that is written out, except for a name in the static table.
fn literal(pattern: u8, prefix: u32, name: &[u8], value: &[u8]) -> Box<[u8]> {
    let mut out = Vec::new();
    let index = STATIC.iter().position(|(known, _)| *known == name).map_or(0, |index| index + 1);
    integer(pattern, prefix, index, &mut out);
    if index == 0 {
        string(name, &mut out);
    }
    string(value, &mut out);
    out.into_boxed_slice()
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    let encoded_len = huffman::encoded_len(text);
    if encoded_len < text.len() {
        integer(0x80, 7, encoded_len, out);
        huffman::encode(text, out);
    } else {
        integer(0, 7, text.len(), out);
        out.extend_from_slice(text);
    }
}

/// Writes an integer behind a pattern of bits (RFC 7541, section 5.1).
fn integer(pattern: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1 << prefix) - 1;
    if value < most {
        return out.push(pattern | value as u8);
    }
    out.push(pattern | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}
