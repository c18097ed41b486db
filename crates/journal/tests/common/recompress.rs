//! Compresses the values in a journal file, as if another journald had written it.

use std::io::Write as _;
use std::process::{Command, Stdio};

pub(crate) const XZ: u8 = 1;
pub(crate) const LZ4: u8 = 2;
pub(crate) const ZSTD: u8 = 4;

/// The result of recompressing a file.
#[derive(Debug, Default)]
pub(crate) struct Recompressed {
    pub(crate) values: u64,
    /// The space left by the former values, now objects of an unknown kind.
    pub(crate) unused_bytes: u64,
}

/// Replaces plain values (`NAME=…`) of at least 600 bytes in place by the output of `compress`.
pub(crate) fn recompress(
    file: &mut [u8],
    compression: u8,
    mut compress: impl FnMut(&[u8]) -> Vec<u8>,
) -> Recompressed {
    // The file flags equal the object flags, except zstd's.
    file[12] |= if compression == ZSTD { 1 << 3 } else { compression };
    let value_at = if file[12] & 1 << 4 == 0 { 64 } else { 72 };
    let mut at = number_at(file, 88);
    let last = number_at(file, 136);
    let mut recompressed = Recompressed::default();
    while at <= last {
        let (kind, flags, size) = (file[at], file[at + 1], number_at(file, at + 8));
        let padded = size.next_multiple_of(8);
        if kind == 1 && flags == 0 && size >= value_at + 600 {
            let value = compress(&file[at + value_at..at + size]);
            let new_size = value_at + value.len();
            let rest = at + new_size.next_multiple_of(8);
            assert!(rest + 16 <= at + padded, "a value of {size} bytes did not become smaller");
            file[at + 1] = compression;
            file[at + 8..at + 16].copy_from_slice(&(new_size as u64).to_le_bytes());
            file[at + value_at..rest].fill(0);
            file[at + value_at..at + new_size].copy_from_slice(&value);
            file[rest..at + padded].fill(0);
            file[rest + 8..rest + 16].copy_from_slice(&((at + padded - rest) as u64).to_le_bytes());
            recompressed.values += 1;
            recompressed.unused_bytes += (at + padded - rest) as u64;
        }
        at += padded;
    }
    recompressed
}

/// Reads a number from the file.
pub(crate) fn number_at(file: &[u8], at: usize) -> usize {
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize
}

/// Compresses like a journald built with lz4.
pub(crate) fn lz4(value: &[u8]) -> Vec<u8> {
    [&(value.len() as u64).to_le_bytes()[..], &lz4_flex::block::compress(value)].concat()
}

/// Compresses like a journald built with xz.
pub(crate) fn xz(value: &[u8]) -> Vec<u8> {
    let mut xz = Command::new("xz")
        .args(["--format=xz", "--check=none", "--lzma2=dict=1MiB", "--threads=2", "--stdout"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("xz cannot be run: install the Debian package xz-utils");
    xz.stdin.take().unwrap().write_all(value).unwrap();
    let output = xz.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}
