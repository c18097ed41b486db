//! Encodes fields, each for itself.

use super::huffman;
use super::table::STATIC;

/// Whether the peer adds a field to its table (RFC 7541, sections 6.2.1 and 6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// The peer adds the field.
    Added,
    /// The peer does not add the field.
    Plain,
}

/// The number of a field that the static table has as a whole.
pub fn static_index(name: &[u8], value: &[u8]) -> Option<u8> {
    STATIC.iter().position(|field| *field == (name, value)).map(|index| index as u8 + 1)
}

/// Writes out a field, except for a name in the static table.
pub fn encode_field(name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
    let (pattern, prefix) = match indexing {
        Indexing::Added => (0x40, 6),
        Indexing::Plain => (0, 4),
    };
    let index = STATIC.iter().position(|(known, _)| *known == name).map_or(0, |index| index + 1);
    integer(pattern, prefix, index, out);
    if index == 0 {
        string(name, out);
    }
    string(value, out);
}

/// Writes the size that the peer's table has from here on (RFC 7541, section 6.3).
pub fn encode_size_update(table_bytes: usize, out: &mut Vec<u8>) {
    integer(0x20, 5, table_bytes, out);
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
