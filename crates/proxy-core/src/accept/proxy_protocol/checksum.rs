//! The checksum that a header of version 2 may carry.

use super::HeaderError;

/// Bytes in front of the addresses: signature, version and command, family, length.
const PREFIX_BYTES: usize = 16;
/// The offsets of version and command, and of the family.
const COMMAND_AT: usize = 12;
const FAMILY_AT: usize = 13;
const COMMAND_LOCAL: u8 = 0x20;
/// Type and length in front of a field's value.
const FIELD_PREFIX_BYTES: usize = 3;
/// The type of the field (`PP2_TYPE_CRC32C`).
const CRC32C: u8 = 0x03;

/// Checks a whole header of version 2 against its checksum, if it has one.
///
/// # Errors
/// When they differ, or the fields do not fit into the header.
pub(super) fn check(header: &[u8]) -> Result<(), HeaderError> {
    let (addresses, is_opaque) = match header[FAMILY_AT] >> 4 {
        1 => (12, false),
        2 => (36, false),
        3 => (216, false),
        // The bytes there need not be fields.
        _ => (0, true),
    };
    let is_opaque = is_opaque || header[COMMAND_AT] == COMMAND_LOCAL;
    let mut at = PREFIX_BYTES + addresses;
    let mut told = None;
    while at < header.len() {
        let Some(value) = field(header, at) else {
            return if is_opaque { Ok(()) } else { Err(HeaderError::Malformed) };
        };
        if header[at] == CRC32C && told.replace(value.clone()).is_some() {
            return Err(HeaderError::Malformed);
        }
        at = value.end;
    }
    let Some(place) = told else { return Ok(()) };
    let Ok(sum) = <[u8; 4]>::try_from(&header[place.clone()]) else { return Err(HeaderError::Malformed) };
    let zeroed = header.iter().enumerate().map(|(i, &byte)| if place.contains(&i) { 0 } else { byte });
    if crc32c(zeroed) == u32::from_be_bytes(sum) { Ok(()) } else { Err(HeaderError::Checksum) }
}

/// The place of the value of the field at `at`, if the header holds all of it.
fn field(header: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let start = at + FIELD_PREFIX_BYTES;
    let &[_, high, low] = header.get(at..start)?.first_chunk()?;
    let end = start + usize::from(u16::from_be_bytes([high, low]));
    (end <= header.len()).then_some(start..end)
}

/// CRC-32C (RFC 9260, appendix A), a bit at a time: headers are short, and few have one.
pub(super) fn crc32c(bytes: impl Iterator<Item = u8>) -> u32 {
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    !bytes.fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| (sum >> 1) ^ (POLYNOMIAL * (sum & 1)))
    })
}
