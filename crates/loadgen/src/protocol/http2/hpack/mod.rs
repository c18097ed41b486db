//! Compressed header fields (HPACK, RFC 7541): those of answers are decoded, those of requests are written out
//! beforehand as far as that goes.

mod fields;
mod huffman;
mod table;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub(crate) use fields::{Fields, Indexed, Numbers};
use table::{Added, STATIC};

/// Room for added fields that both sides begin with (RFC 9113, section 6.5.2).
pub(crate) const TABLE_BYTES: usize = 4096;
/// Bytes of an integer beyond its prefix; what would need more is larger than anything that may be sent.
const INTEGER_BYTES_MAX: usize = 4;

/// What a peer has sent is not a header block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HpackError;

/// Why a block was not decoded to its end.
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

/// Decodes the header blocks of a connection, each of them, in their order.
#[derive(Debug)]
pub(crate) struct Decoder {
    added: Added,
    decoded: Decoded,
    /// Strings that were decoded, of the field that is looked at.
    text: Vec<u8>,
}

/// Names and values that were handed on so far.
#[derive(Debug, Default)]
struct Decoded {
    bytes: u64,
    bytes_max: u64,
}

impl Decoded {
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
        Self { added: Added::new(TABLE_BYTES), decoded: Decoded::default(), text: Vec::new() }
    }
}

/// The place of a string.
enum Text<'b> {
    InBlock(&'b [u8]),
    Decoded(Range<usize>),
}

impl Text<'_> {
    fn of<'t>(&'t self, decoded: &'t [u8]) -> &'t [u8] {
        match self {
            Self::InBlock(bytes) => bytes,
            Self::Decoded(range) => &decoded[range.clone()],
        }
    }
}

impl Decoder {
    /// Bytes of names and values that all blocks so far have decoded to.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.decoded.bytes
    }

    /// Decodes a whole block, and hands on each field's name and value: up to `bytes_max` bytes, since a byte of a block
    /// can stand for a whole table. After an error nothing that follows on the connection can be understood.
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

    /// A field that is spelled out, but for a name that may have a number.
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
                    Text::InBlock(name)
                } else {
                    let (name, _) = self.added.get(index - 1 - STATIC.len()).ok_or(HpackError)?;
                    self.text.extend_from_slice(name);
                    Text::Decoded(0..self.text.len())
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

    fn string<'b>(&mut self, block: &mut &'b [u8]) -> Result<Text<'b>, HpackError> {
        let is_huffman = block.first().is_some_and(|first| first & 0x80 != 0);
        let len = integer(block, 7)?;
        let (string, rest) = block.split_at_checked(len).ok_or(HpackError)?;
        *block = rest;
        if !is_huffman {
            return Ok(Text::InBlock(string));
        }
        let begins = self.text.len();
        huffman::decode(string, &mut self.text)?;
        Ok(Text::Decoded(begins..self.text.len()))
    }
}

/// The field of a number.
fn numbered(added: &Added, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
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
