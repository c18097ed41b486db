//! HPACK (RFC 7541).

mod encode;
mod huffman;
mod table;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use encode::{Indexing, encode_field, encode_size_update, static_index};
use table::{DynamicTable, TableField};
pub use table::{ENTRY_BYTES, STATIC};

/// Room for added fields that both sides begin with (RFC 9113, section 6.5.2).
pub const TABLE_BYTES: usize = 4096;
/// Bytes of an integer beyond its prefix. A longer integer is larger than any allowed value.
const INTEGER_BYTES_MAX: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a header block is malformed")]
pub struct HpackError;

/// The reason why a block was not decoded to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpackDecodeError {
    #[error(transparent)]
    Malformed(#[from] HpackError),
    /// Its fields are longer than they may be.
    #[error("a header list is too long")]
    TooLong,
}

#[derive(Clone, Debug)]
pub struct DecodedField<'a, T> {
    pub name: &'a [u8],
    pub value: &'a [u8],
    /// The field's range in the block.
    pub place: Range<usize>,
    /// Whether the block adds it to the table.
    pub is_added: bool,
    /// The tag of the field in the table whose number it is.
    pub tag: Option<T>,
    /// The tag of the field in the table whose name it has by number.
    pub name_tag: Option<T>,
}

/// Decodes all header blocks of a connection, in their order. Fields in the table have a tag of the type `T`.
#[derive(Debug)]
pub struct Decoder<T = ()> {
    added: DynamicTable<T>,
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

impl<T: Copy> Default for Decoder<T> {
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

impl<T: Copy> Decoder<T> {
    /// Bytes of names and values that all blocks have decoded to.
    pub fn decoded_bytes(&self) -> u64 {
        self.decoded.bytes
    }

    /// The tags of the fields in the table, the newest first.
    pub fn tags_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.added.tags_mut()
    }

    /// Decodes a whole block, and passes on each field; `field` returns the tag with which it is added to the table. The
    /// limit is `bytes_max` bytes, because a byte of a block can refer to a whole table. After an error the rest of the
    /// connection cannot be decoded.
    ///
    /// # Errors
    /// If the block is malformed, or longer than its limit.
    pub fn decode(
        &mut self,
        block: &[u8],
        bytes_max: u64,
        mut field: impl FnMut(DecodedField<'_, T>) -> T,
    ) -> Result<(), HpackDecodeError> {
        self.decoded.bytes_max = self.decoded.bytes.saturating_add(bytes_max);
        let mut rest = block;
        // The table's size changes only between blocks (RFC 7541, section 4.2).
        while let Some(0b0010_0000..=0b0011_1111) = rest.first() {
            let bytes_max = integer(&mut rest, 5)?;
            if bytes_max > TABLE_BYTES {
                return Err(HpackError.into());
            }
            self.added.resize(bytes_max);
        }
        while let Some(first) = rest.first() {
            match first {
                0b1000_0000.. => {
                    let begins = block.len() - rest.len();
                    let index = integer(&mut rest, 7)?;
                    let place = begins..block.len() - rest.len();
                    let (name, value, tag) = numbered(&self.added, index)?;
                    self.decoded.count(name, value)?;
                    field(DecodedField { name, value, place, is_added: false, tag, name_tag: None });
                }
                0b0100_0000.. => self.literal(block, &mut rest, 6, &mut field)?,
                0b0010_0000.. => return Err(HpackError.into()),
                _ => self.literal(block, &mut rest, 4, &mut field)?,
            }
        }
        Ok(())
    }

    /// A field that is written out, except for a name that may have a number. One with a `prefix` of 6 bits is added.
    fn literal(
        &mut self,
        block: &[u8],
        rest: &mut &[u8],
        prefix: u32,
        field: &mut impl FnMut(DecodedField<'_, T>) -> T,
    ) -> Result<(), HpackDecodeError> {
        let begins = block.len() - rest.len();
        self.text.clear();
        let mut name_tag = None;
        let name = match integer(rest, prefix)? {
            0 => self.string(rest)?,
            index => {
                if let Some((name, _)) = STATIC.get(index - 1) {
                    StringRef::InBlock(name)
                } else {
                    let (name, _, tag) = self.added.get(index - 1 - STATIC.len()).ok_or(HpackError)?;
                    name_tag = Some(tag);
                    self.text.extend_from_slice(name);
                    StringRef::Decoded(0..self.text.len())
                }
            }
        };
        let value = self.string(rest)?;
        let (name, value) = (name.of(&self.text), value.of(&self.text));
        self.decoded.count(name, value)?;
        let (place, is_added) = (begins..block.len() - rest.len(), prefix == 6);
        let tag = field(DecodedField { name, value, place, is_added, tag: None, name_tag });
        if is_added {
            self.added.add(name, value, tag);
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

/// The field of a number, and its tag if it was added.
fn numbered<T: Copy>(added: &DynamicTable<T>, index: usize) -> Result<TableField<'_, Option<T>>, HpackError> {
    let index = index.checked_sub(1).ok_or(HpackError)?;
    if let Some((name, value)) = STATIC.get(index) {
        return Ok((name, value, None));
    }
    let (name, value, tag) = added.get(index - STATIC.len()).ok_or(HpackError)?;
    Ok((name, value, Some(tag)))
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
