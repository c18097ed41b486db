//! Histograms as text: `HdrHistogram` V2, deflate, base64, as the `HdrHistogram` tools of other languages read it.

use std::cell::RefCell;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::histogram::sparse::{Buckets, SparseHistogram};
use crate::histogram::window::{highest_units, index};
use crate::histogram::{DIGITS, HIGHEST_NS, LOWEST_NS};

/// Longest base64 text that is decoded; one with every bucket in use is shorter.
const TEXT_BYTES_MAX: usize = 512 * 1024;
/// Longest inflated histogram: a header and nine bytes for each of some 22,000 buckets.
const INFLATED_BYTES_MAX: usize = 256 * 1024;
/// Cookie, length, offset, digits, lowest and highest value, and a factor.
const HEADER_BYTES: usize = 40;
/// Buckets up to [`HIGHEST_NS`], as in the library.
const BUCKETS: usize = 21 * 1024;
/// Most samples of one histogram: a hundred thousand a second for five years. A sparse bucket holds 2³² samples, so a
/// count that only claims to be large would make many buckets.
const SAMPLES_MAX: u64 = 1 << 44;
/// First word of the deflated form, and of its content.
const COOKIE_DEFLATED: u32 = 0x1c84_9314;
const COOKIE: u32 = 0x1c84_9313;

/// The text is not a histogram of ours; each of ours holds a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAHistogram;

/// Writes a histogram as text.
///
/// The library would iterate over a dense histogram, most of whose buckets are empty. In the tests the library reads
/// the text.
pub(crate) fn encode(histogram: &SparseHistogram) -> String {
    DEFLATER.with_borrow_mut(|deflater| deflater.text(histogram))
}

thread_local! {
    /// Kept, since its tables are larger than most histograms.
    static DEFLATER: RefCell<Deflater> = RefCell::new(Deflater::default());
}

struct Deflater {
    deflate: Compress,
    plain: Vec<u8>,
    bytes: Vec<u8>,
}

impl Default for Deflater {
    fn default() -> Self {
        // Counts repeat little: a longer search finds 1 to 7 % more, and takes four times as long.
        let deflate = Compress::new(Compression::fast(), true);
        Self { deflate, plain: Vec::new(), bytes: Vec::new() }
    }
}

impl Deflater {
    fn text(&mut self, histogram: &SparseHistogram) -> String {
        self.plain.clear();
        self.plain.resize(HEADER_BYTES, 0);
        write_counts(histogram, &mut self.plain);
        let payload_bytes = self.plain.len() - HEADER_BYTES;
        self.plain[..HEADER_BYTES].copy_from_slice(&header(payload_bytes as u32, HIGHEST_NS));
        self.bytes.clear();
        self.bytes.resize(8, 0);
        self.deflate.reset();
        loop {
            self.bytes.reserve(self.plain.len() / 2 + 64);
            let read = &self.plain[self.deflate.total_in() as usize..];
            let status = self.deflate.compress_vec(read, &mut self.bytes, FlushCompress::Finish);
            if status.expect("memory is deflated in order") == Status::StreamEnd {
                break;
            }
        }
        let deflated_bytes = (self.bytes.len() - 8) as u32;
        self.bytes[..4].copy_from_slice(&COOKIE_DEFLATED.to_be_bytes());
        self.bytes[4..8].copy_from_slice(&deflated_bytes.to_be_bytes());
        STANDARD.encode(&self.bytes)
    }
}

/// The header before the counts.
fn header(payload_bytes: u32, highest_ns: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    for (at, word) in [COOKIE, payload_bytes, 0, u32::from(DIGITS)].into_iter().enumerate() {
        header[4 * at..4 * at + 4].copy_from_slice(&word.to_be_bytes());
    }
    let longs = [LOWEST_NS, highest_ns, 1.0_f64.to_bits()];
    for (at, long) in longs.into_iter().enumerate() {
        header[16 + 8 * at..24 + 8 * at].copy_from_slice(&long.to_be_bytes());
    }
    header
}

/// Writes the number of samples of each bucket. Empty ones in a row are their number, negative; one alone is a zero.
fn write_counts(histogram: &SparseHistogram, plain: &mut Vec<u8>) {
    let mut buckets = histogram.units().map(|(units, count)| (index(units), count)).peekable();
    let mut end = 0;
    while let Some((at, mut count)) = buckets.next() {
        // A large count takes several.
        while let Some((_, more)) = buckets.next_if(|(next, _)| *next == at) {
            count += more;
        }
        match at - end {
            0 => {}
            1 => write_signed(0, plain),
            empty => write_signed(-(empty as i64), plain),
        }
        write_signed(count as i64, plain);
        end = at + 1;
    }
}

/// A line of an `HdrHistogram` interval log: tag, beginning and length in seconds, maximum in milliseconds, histogram.
pub fn interval_log_line(tag: &str, start_s: f64, length_s: f64, interval: &SparseHistogram) -> String {
    let max_ms = interval.max_ns() as f64 / 1e6;
    format!("Tag={tag},{start_s:.3},{length_s:.3},{max_ms:.3},{}\n", encode(interval))
}

/// Reads a histogram from text. Sum, maximum and saturation are separate fields.
///
/// The library would make a dense histogram, most of whose buckets are empty; reading a recording would take twice as
/// long. The tests compare the result with the library's.
pub(crate) fn decode(text: &str) -> Result<SparseHistogram, NotAHistogram> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(NotAHistogram);
    }
    INFLATER.with_borrow_mut(|inflater| counts(inflater.plain(text)?))
}

thread_local! {
    /// Kept, since its tables are larger than most histograms.
    static INFLATER: RefCell<Inflater> = RefCell::new(Inflater::default());
}

struct Inflater {
    inflate: Decompress,
    bytes: Vec<u8>,
    plain: Vec<u8>,
}

impl Default for Inflater {
    fn default() -> Self {
        Self { inflate: Decompress::new(true), bytes: Vec::new(), plain: Vec::new() }
    }
}

impl Inflater {
    /// The decompressed content of the text.
    fn plain(&mut self, text: &str) -> Result<&[u8], NotAHistogram> {
        self.bytes.clear();
        STANDARD.decode_vec(text, &mut self.bytes).map_err(|_| NotAHistogram)?;
        let (head, body) = self.bytes.split_at_checked(8).ok_or(NotAHistogram)?;
        if word(head, 0) != Some(COOKIE_DEFLATED) {
            return Err(NotAHistogram);
        }
        self.inflate.reset(true);
        self.plain.clear();
        let mut room = body.len() * 4 + HEADER_BYTES;
        loop {
            self.plain.reserve(room.min(INFLATED_BYTES_MAX + 1 - self.plain.len()));
            let read = body.get(self.inflate.total_in() as usize..).unwrap_or_default();
            let before = self.plain.len();
            // With the flag to finish, decompression would fail if the output buffer is too small.
            let status = self.inflate.decompress_vec(read, &mut self.plain, FlushDecompress::None);
            match status {
                Ok(Status::StreamEnd) => break,
                Ok(_) if self.plain.len() <= INFLATED_BYTES_MAX && self.plain.len() > before => room *= 2,
                Ok(_) | Err(_) => return Err(NotAHistogram),
            }
        }
        if is_ours(&self.plain) { Ok(&self.plain) } else { Err(NotAHistogram) }
    }
}

/// The counts that follow the header: each a number of samples of the next bucket or, if negative, of buckets that are
/// empty.
fn counts(plain: &[u8]) -> Result<SparseHistogram, NotAHistogram> {
    let mut rest = plain.get(HEADER_BYTES..).unwrap_or_default();
    let mut at = 0;
    let mut buckets = Buckets::with_capacity(rest.len());
    while !rest.is_empty() {
        let number = signed(&mut rest).ok_or(NotAHistogram)?;
        if number <= 0 {
            let empty = usize::try_from(number.unsigned_abs()).map_err(|_| NotAHistogram)?;
            at += empty.clamp(1, BUCKETS + 1);
        } else {
            let samples = number as u64;
            if at >= BUCKETS || samples > SAMPLES_MAX - buckets.count() {
                return Err(NotAHistogram);
            }
            buckets.push(highest_units(at), samples);
            at += 1;
        }
        if at > BUCKETS {
            return Err(NotAHistogram);
        }
    }
    if buckets.count() == 0 {
        return Err(NotAHistogram);
    }
    Ok(buckets.into_sparse())
}

/// Writes a number as [`signed`] reads it.
fn write_signed(number: i64, bytes: &mut Vec<u8>) {
    let mut rest = ((number << 1) ^ (number >> 63)) as u64;
    for _ in 0..8 {
        if rest <= 0x7f {
            break;
        }
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Takes a number from the front: LEB128 of at most nine bytes, the ninth whole, then zigzag, as `HdrHistogram` has it.
fn signed(bytes: &mut &[u8]) -> Option<i64> {
    // Most are small.
    if let [byte @ ..0x80, rest @ ..] = *bytes {
        *bytes = rest;
        return Some(i64::from(byte >> 1) ^ -i64::from(byte & 1));
    }
    let mut number = 0_u64;
    for n in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if n == 8 || byte & 0x80 == 0 {
            number |= u64::from(byte) << (7 * n);
            break;
        }
        number |= u64::from(byte & 0x7f) << (7 * n);
    }
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// True if the inflated bytes have the length in their header and the bounds of our histograms.
fn is_ours(plain: &[u8]) -> bool {
    let payload = plain.get(HEADER_BYTES..).unwrap_or_default();
    plain.len() <= INFLATED_BYTES_MAX
        && word(plain, 0) == Some(COOKIE)
        && word(plain, 4) == Some(payload.len() as u32)
        && word(plain, 12) == Some(u32::from(DIGITS))
        && long(plain, 16) == Some(LOWEST_NS)
        && long(plain, 24) == Some(HIGHEST_NS)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::Histogram;

    /// The library's reading of a text.
    fn read_by_library(text: &str) -> Option<SparseHistogram> {
        let bytes = STANDARD.decode(text).ok()?;
        let hdr = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
        Some(Histogram::from_hdr(hdr, 0, 0, 0).to_sparse())
    }

    /// The library's text of a histogram.
    fn written_by_library(sparse: &SparseHistogram) -> String {
        let mut dense = Histogram::new();
        dense.add_sparse(sparse);
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&dense.into_hdr(), &mut bytes).unwrap();
        STANDARD.encode(bytes)
    }

    #[test]
    fn compressible_text_is_read_whole() {
        let mut histogram = Histogram::new();
        (0..2_000_u64).for_each(|n| histogram.record_ns(10_000 + n * 500_000));
        (1..1_000_u64).for_each(|n| histogram.record_ns(n * 64));
        let text = encode(&histogram.to_sparse());
        assert_eq!(decode(&text).ok(), read_by_library(&text));
    }

    #[test]
    fn there_are_as_many_buckets_as_the_library_has() {
        let mut highest = Histogram::new();
        highest.record_ns(HIGHEST_NS);
        assert_eq!(highest.into_hdr().distinct_values(), BUCKETS);
    }

    fn inflated(text: &str) -> Vec<u8> {
        INFLATER.with_borrow_mut(|inflater| inflater.plain(text).unwrap().to_vec())
    }

    proptest! {
        #[test]
        fn histograms_are_decoded_as_they_were_encoded(latencies in prop::collection::vec(0_u64..70_000_000_000, 1..500)) {
            let mut histogram = Histogram::new();
            for &latency in &latencies {
                histogram.record_ns(latency);
            }
            let sent = histogram.to_sparse();
            let exact = (sent.sum_ns(), sent.max_ns(), sent.saturated());
            let text = encode(&sent);
            // The library deflates with a longer search.
            prop_assert_eq!(inflated(&text), inflated(&written_by_library(&sent)));
            let read = decode(&text).unwrap();
            prop_assert_eq!(Some(read.clone()), read_by_library(&text));
            prop_assert_eq!(read.with_exact(exact.0, exact.1, exact.2), sent);
        }

        #[test]
        fn decoding_equals_the_librarys(
            numbers in prop::collection::vec(prop_oneof![-20_000_i64..0, 1_i64..1 << 40], 0..40)
        ) {
            let mut payload = Vec::new();
            for &number in &numbers {
                write_signed(number, &mut payload);
            }
            let text = deflated(&header(payload.len() as u32, HIGHEST_NS), &payload);
            let ours = decode(&text).ok();
            let theirs = read_by_library(&text);
            // It lets a run of empty buckets end beyond the last one.
            if ours.is_some() {
                prop_assert_eq!(ours, theirs);
            } else {
                let is_long = numbers.iter().filter(|n| **n < 0).sum::<i64>() < -20_000;
                prop_assert!(is_long || theirs.is_none_or(|theirs| theirs.is_empty()));
            }
        }

        #[test]
        fn damaged_text_is_refused_or_read_but_never_panics(at in 0_usize..200, byte in any::<u8>()) {
            let mut histogram = Histogram::new();
            (0..100).for_each(|i| histogram.record_ns(i * 10_000));
            let mut bytes = STANDARD.decode(encode(&histogram.to_sparse())).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= byte;
            let _ = decode(&STANDARD.encode(&bytes));
        }

        #[test]
        fn hostile_payloads_never_panic(payload in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&deflated(&header(payload.len() as u32, HIGHEST_NS), &payload));
        }
    }

    fn deflated(header: &[u8], payload: &[u8]) -> String {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(header).unwrap();
        encoder.write_all(payload).unwrap();
        let body = encoder.finish().unwrap();
        let mut bytes = COOKIE_DEFLATED.to_be_bytes().to_vec();
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
        STANDARD.encode(bytes)
    }

    #[test]
    fn counts_that_a_payload_only_claims_are_not_allocated() {
        // 2⁵⁴ samples, zigzag and LEB128 as the format has it.
        let count = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
        let payload = count.repeat(100);
        assert_eq!(
            decode(&deflated(&header(payload.len() as u32, HIGHEST_NS), &payload)),
            Err(NotAHistogram)
        );
    }

    #[test]
    fn sizes_that_a_header_only_claims_are_not_allocated() {
        assert_eq!(decode(&deflated(&header(u32::MAX, HIGHEST_NS), &[])), Err(NotAHistogram));
        assert_eq!(decode(&deflated(&header(0, u64::MAX / 2), &[])), Err(NotAHistogram));
        assert_eq!(decode(&deflated(&header(0, HIGHEST_NS), &vec![0; 1 << 24])), Err(NotAHistogram));
    }

    #[test]
    fn a_histogram_without_a_sample_is_none() {
        // Sum and maximum beside it would have no sample to describe.
        assert_eq!(decode(&deflated(&header(0, HIGHEST_NS), &[])), Err(NotAHistogram));
        assert_eq!(decode(&deflated(&header(1, HIGHEST_NS), &[0x13])), Err(NotAHistogram));
    }
}
