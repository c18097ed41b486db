//! Decompresses values within a bound.

use std::fmt;
use std::io::Read as _;

use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

use crate::layout::u64_at;

/// The largest decompressed value, including its name.
pub(super) const DECOMPRESSED_BYTES_MAX: usize = 1 << 20;

/// journald uses an xz dictionary of 1 MiB; a value that needs much more is not from journald.
const XZ_MEMORY_KIB_MAX: u32 = 2048;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Xz,
    Lz4,
    Zstd,
}

impl Compression {
    /// Returns the compression of a DATA object's flags; `None` for no flag and for several.
    pub(super) fn of_object(flags: u8) -> Option<Self> {
        match flags {
            0b001 => Some(Self::Xz),
            0b010 => Some(Self::Lz4),
            0b100 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Returns the incompatible flag of files with such values.
    pub(super) const fn file_flag(self) -> u32 {
        match self {
            Self::Xz => 1,
            Self::Lz4 => 1 << 1,
            Self::Zstd => 1 << 3,
        }
    }
}

#[derive(Default)]
pub(super) struct ValueDecompressor {
    /// Reused, since it is large and slow to create.
    zstd: Option<Decompressor<'static>>,
}

impl ValueDecompressor {
    /// Appends the decompressed value to `out`.
    ///
    /// If the value is damaged, or larger than [`DECOMPRESSED_BYTES_MAX`], `out` is unchanged, and the result
    /// `None`.
    pub(super) fn decompress(
        &mut self,
        compression: Compression,
        value: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let before = out.len();
        let decompressed = match compression {
            Compression::Xz => xz(value, out),
            Compression::Lz4 => lz4(value, out),
            Compression::Zstd => self.zstd(value, out),
        };
        if decompressed.is_none() {
            out.truncate(before);
        }
        decompressed
    }

    /// journald writes one frame that contains its size; other input is refused.
    fn zstd(&mut self, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let place = grow(out, get_frame_content_size(value).ok()??)?;
        if self.zstd.is_none() {
            self.zstd = Some(Decompressor::new().ok()?);
        }
        let written = self.zstd.as_mut()?.decompress_to_buffer(value, place).ok()?;
        (written == place.len()).then_some(())
    }
}

impl fmt::Debug for ValueDecompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueDecompressor").finish_non_exhaustive()
    }
}

/// The format is the decompressed size in eight bytes, then one block.
fn lz4(value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let block = value.get(8..)?;
    let place = grow(out, u64_at(value, 0))?;
    let written = lz4_flex::block::decompress_into(block, place).ok()?;
    (written == place.len()).then_some(())
}

/// The format is an `.xz` stream, which does not contain its size.
fn xz(value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let before = out.len();
    let stream = lzma_rust2::XzReader::new_mem_limit(value, false, XZ_MEMORY_KIB_MAX);
    stream.take(DECOMPRESSED_BYTES_MAX as u64 + 1).read_to_end(out).ok()?;
    (out.len() - before <= DECOMPRESSED_BYTES_MAX).then_some(())
}

/// Extends `out` by the size that a value claims to have.
fn grow(out: &mut Vec<u8>, claimed: u64) -> Option<&mut [u8]> {
    let before = out.len();
    let size = usize::try_from(claimed).ok().filter(|size| *size <= DECOMPRESSED_BYTES_MAX)?;
    out.resize(before + size, 0);
    Some(&mut out[before..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompress(compression: Compression, value: &[u8]) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        let decompressed = ValueDecompressor::default().decompress(compression, value, &mut out);
        assert!(out.starts_with(b"before"));
        assert_eq!(decompressed.is_none(), out.len() == 6, "what was refused must leave nothing behind");
        decompressed.map(|()| out.split_off(6))
    }

    /// Returns the lz4 object of a value, with this claimed size.
    fn lz4_object(value: &[u8], claimed: u64) -> Vec<u8> {
        [&claimed.to_le_bytes()[..], &lz4_flex::block::compress(value)].concat()
    }

    #[test]
    fn values_decompress_up_to_the_bound() {
        for (size, fits) in
            [(1, true), (70_000, true), (DECOMPRESSED_BYTES_MAX, true), (DECOMPRESSED_BYTES_MAX + 1, false)]
        {
            let value: Vec<u8> = (0..size).map(|i| (i / 1000) as u8).collect();
            let zstd = zstd::bulk::compress(&value, 3).unwrap();
            assert_eq!(decompress(Compression::Zstd, &zstd).as_deref(), fits.then_some(&*value));
            let lz4 = lz4_object(&value, size as u64);
            assert_eq!(decompress(Compression::Lz4, &lz4).as_deref(), fits.then_some(&*value));
        }
    }

    #[test]
    fn a_wrong_claimed_size_is_refused() {
        let value = vec![7; 10_000];
        for claimed in [0, 9_999, 10_001, 1 << 40, u64::MAX] {
            assert_eq!(decompress(Compression::Lz4, &lz4_object(&value, claimed)), None, "{claimed}");
        }
        let mut twice = zstd::bulk::compress(&value, 3).unwrap();
        twice.extend_from_within(..);
        assert_eq!(decompress(Compression::Zstd, &twice), None);
        // A stream does not contain its size.
        let stream = zstd::stream::encode_all(&*value, 3).unwrap();
        assert_eq!(decompress(Compression::Zstd, &stream), None);
    }

    #[test]
    fn truncated_values_are_refused() {
        let value: Vec<u8> = (0..5_000_u32).flat_map(|i| (i / 7).to_le_bytes()).collect();
        let (zstd, lz4) = (zstd::bulk::compress(&value, 3).unwrap(), lz4_object(&value, value.len() as u64));
        for (compression, whole) in [(Compression::Zstd, zstd), (Compression::Lz4, lz4)] {
            for len in [0, 1, 7, 8, 9, 100, whole.len() - 1] {
                assert_eq!(decompress(compression, &whole[..len]), None, "{compression:?} {len}");
            }
        }
        assert_eq!(decompress(Compression::Xz, b""), None);
        assert_eq!(decompress(Compression::Xz, b"\xfd7zXZ\0"), None);
    }
}
