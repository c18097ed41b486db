//! HPACK (RFC 7541): decodes the header fields of responses. Those of requests are encoded
//! before the load starts, as far as possible.

mod fields;
mod huffman;
mod table;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub(crate) use fields::{EncoderTable, FieldNumbers, Fields};
use table::{DynamicTable, STATIC};

/// Room for added fields that both sides begin with (RFC 9113, section 6.5.2).
pub(crate) const TABLE_BYTES: usize = 4096;
/// Bytes of an integer beyond its prefix. A longer integer is larger than any allowed value.
const INTEGER_BYTES_MAX: usize = 4;

/// The bytes are not a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HpackError;

/// The reason why a block was not decoded to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HpackDecodeError {
    Malformed,
    /// Its fields are longer than they may be.
    TooLong,
}

impl From<HpackError> for HpackDecodeError {
    fn from(_: HpackError) -> Self {
        Self::Malformed
    }
}

/// Decodes all header blocks of a connection, in their order.
#[derive(Debug)]
pub(crate) struct Decoder {
    added: DynamicTable,
    decoded: DecodedBytes,
    /// Decoded strings of the current field.
    text: Vec<u8>,
}

/// Bytes of names and values decoded so far, and their limit.
#[derive(Debug, Default)]
struct DecodedBytes {
    bytes: u64,
    bytes_max: u64,
}

impl DecodedBytes {
    fn count(&mut self, name: &[u8], value: &[u8]) -> Result<(), HpackDecodeError> {
        let bytes = self.bytes + (name.len() + value.len()) as u64;
        if bytes > self.bytes_max {
            return Err(HpackDecodeError::TooLong);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self { added: DynamicTable::new(TABLE_BYTES), decoded: DecodedBytes::default(), text: Vec::new() }
    }
}

/// A decoded string: in the block, or in the buffer if it was Huffman-coded.
enum StringRef<'b> {
    InBlock(&'b [u8]),
    Decoded(Range<usize>),
}

impl StringRef<'_> {
    fn of<'t>(&'t self, decoded: &'t [u8]) -> &'t [u8] {
        match self {
            Self::InBlock(bytes) => bytes,
            Self::Decoded(range) => &decoded[range.clone()],
        }
    }
}

impl Decoder {
    /// Bytes of names and values that all blocks have decoded to.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.decoded.bytes
    }

    /// Decodes a whole block, and passes on each field's name and value. The limit is `bytes_max` bytes, because a
    /// byte of a block can refer to a whole table. After an error the rest of the connection cannot be decoded.
    pub(crate) fn decode(
        &mut self,
        mut block: &[u8],
        bytes_max: u64,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), HpackDecodeError> {
        self.decoded.bytes_max = self.decoded.bytes.saturating_add(bytes_max);
        // The table's size changes only between blocks (RFC 7541, section 4.2).
        while let Some(0b0010_0000..=0b0011_1111) = block.first() {
            let bytes_max = integer(&mut block, 5)?;
            if bytes_max > TABLE_BYTES {
                return Err(HpackDecodeError::Malformed);
            }
            self.added.resize(bytes_max);
        }
        while let Some(first) = block.first() {
            match first {
                0b1000_0000.. => {
                    let index = integer(&mut block, 7)?;
                    let (name, value) = numbered(&self.added, index)?;
                    self.decoded.count(name, value)?;
                    field(name, value);
                }
                0b0100_0000.. => self.literal(&mut block, 6, true, &mut field)?,
                0b0010_0000.. => return Err(HpackDecodeError::Malformed),
                _ => self.literal(&mut block, 4, false, &mut field)?,
            }
        }
        Ok(())
    }

    /// A field that is written out, except for a name that may have a number.
    fn literal(
        &mut self,
        block: &mut &[u8],
        prefix: u32,
        is_added: bool,
        field: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), HpackDecodeError> {
        self.text.clear();
        let name = match integer(block, prefix)? {
            0 => self.string(block)?,
            index => {
                if let Some((name, _)) = STATIC.get(index - 1) {
                    StringRef::InBlock(name)
                } else {
                    let (name, _) = self.added.get(index - 1 - STATIC.len()).ok_or(HpackError)?;
                    self.text.extend_from_slice(name);
                    StringRef::Decoded(0..self.text.len())
                }
            }
        };
        let value = self.string(block)?;
        let (name, value) = (name.of(&self.text), value.of(&self.text));
        self.decoded.count(name, value)?;
        field(name, value);
        if is_added {
            self.added.add(name, value);
        }
        Ok(())
    }

    fn string<'b>(&mut self, block: &mut &'b [u8]) -> Result<StringRef<'b>, HpackError> {
        let is_huffman = block.first().is_some_and(|first| first & 0x80 != 0);
        let len = integer(block, 7)?;
        let (string, rest) = block.split_at_checked(len).ok_or(HpackError)?;
        *block = rest;
        if !is_huffman {
            return Ok(StringRef::InBlock(string));
        }
        let begins = self.text.len();
        huffman::decode(string, &mut self.text)?;
        Ok(StringRef::Decoded(begins..self.text.len()))
    }
}

/// The field of a number.
fn numbered(added: &DynamicTable, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
    let index = index.checked_sub(1).ok_or(HpackError)?;
    match STATIC.get(index) {
        Some(field) => Ok(*field),
        None => added.get(index - STATIC.len()).ok_or(HpackError),
    }
}

/// Takes an integer off the block (RFC 7541, section 5.1).
fn integer(block: &mut &[u8], prefix: u32) -> Result<usize, HpackError> {
    let (first, mut rest) = block.split_first().ok_or(HpackError)?;
    let most = (1 << prefix) - 1;
    let mut value = usize::from(*first) & most;
    if value == most {
        for nth in 0.. {
            let (byte, behind) = rest.split_first().filter(|_| nth < INTEGER_BYTES_MAX).ok_or(HpackError)?;
            rest = behind;
            value += usize::from(byte & 0x7f) << (7 * nth);
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *block = rest;
    Ok(value)
}
