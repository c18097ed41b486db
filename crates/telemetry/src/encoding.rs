//! Histograms as text: `HdrHistogram` V2, deflate, base64, as the `HdrHistogram` tools of other languages read it.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::histogram::{DIGITS, Distribution, HIGHEST_NS, Histogram, LOWEST_NS};

/// Longest base64 text that is decoded; one with every bucket in use is shorter.
const TEXT_BYTES_MAX: usize = 512 * 1024;
/// Largest inflated histogram: a header and nine bytes for each of some 22,000 buckets.
const INFLATED_BYTES_MAX: u64 = 256 * 1024;
/// Most samples of one histogram: a hundred thousand a second for five years. Buckets at rest hold 2³² samples each,
/// so a count that only claims to be large would make many of them.
const SAMPLES_MAX: u64 = 1 << 44;
/// First word of the deflated form, and of what is inside it.
const COOKIE_DEFLATED: u32 = 0x1c84_9314;
const COOKIE: u32 = 0x1c84_9313;

/// The text is not a histogram of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAHistogram;

/// Writes a distribution as text.
pub(crate) fn encode(distribution: &Distribution) -> String {
    let mut dense = Histogram::new();
    dense.add_distribution(distribution);
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(&dense.into_hdr(), &mut bytes)
        .expect("writing to memory, with counts far below the format's limit");
    STANDARD.encode(bytes)
}

/// A line of an `HdrHistogram` interval log: tag, beginning and length in seconds, maximum in milliseconds, histogram.
pub fn interval_log_line(tag: &str, start_s: f64, length_s: f64, interval: &Distribution) -> String {
    let max_ms = interval.max_ns() as f64 / 1e6;
    format!("Tag={tag},{start_s:.3},{length_s:.3},{max_ms:.3},{}\n", encode(interval))
}

/// Reads a distribution from text; sum, maximum and saturation travel in fields of their own.
///
/// The library allocates what a header asks for, so every size is checked before it sees them.
pub(crate) fn decode(text: &str) -> Result<Distribution, NotAHistogram> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(NotAHistogram);
    }
    let bytes = STANDARD.decode(text).map_err(|_| NotAHistogram)?;
    let (head, body) = bytes.split_at_checked(8).ok_or(NotAHistogram)?;
    if word(head, 0) != Some(COOKIE_DEFLATED) {
        return Err(NotAHistogram);
    }
    let mut plain = Vec::new();
    ZlibDecoder::new(body).take(INFLATED_BYTES_MAX + 1).read_to_end(&mut plain).map_err(|_| NotAHistogram)?;
    if !is_ours(&plain) {
        return Err(NotAHistogram);
    }
    let hdr = Deserializer::new().deserialize(&mut plain.as_slice()).map_err(|_| NotAHistogram)?;
    if hdr.len() > SAMPLES_MAX {
        return Err(NotAHistogram);
    }
    Ok(Histogram::from_hdr(hdr, 0, 0, 0).to_distribution())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// True if the inflated bytes are as long as they say and have the bounds that all our histograms have.
fn is_ours(plain: &[u8]) -> bool {
    let payload = plain.get(40..).unwrap_or_default();
    // A count of nine bytes is beyond any real one, and the library negates it without a check.
    let has_huge_count = payload.windows(8).any(|bytes| bytes.iter().all(|byte| byte & 0x80 != 0));
    plain.len() as u64 <= INFLATED_BYTES_MAX
        && word(plain, 0) == Some(COOKIE)
        && word(plain, 4) == Some(payload.len() as u32)
        && word(plain, 12) == Some(u32::from(DIGITS))
        && long(plain, 16) == Some(LOWEST_NS)
        && long(plain, 24) == Some(HIGHEST_NS)
        && !has_huge_count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn distributions_come_back_as_they_went(latencies in prop::collection::vec(0_u64..70_000_000_000, 0..500)) {
            let mut histogram = Histogram::new();
            for &latency in &latencies {
                histogram.record_ns(latency);
            }
            let sent = histogram.to_distribution();
            let exact = (sent.sum_ns(), sent.max_ns(), sent.saturated());
            let read = decode(&encode(&sent)).unwrap().with_exact(exact.0, exact.1, exact.2);
            prop_assert_eq!(read, sent);
        }

        #[test]
        fn damaged_text_is_refused_or_read_but_never_panics(at in 0_usize..200, byte in any::<u8>()) {
            let mut histogram = Histogram::new();
            (0..100).for_each(|i| histogram.record_ns(i * 10_000));
            let mut bytes = STANDARD.decode(encode(&histogram.to_distribution())).unwrap();
            let at = at % bytes.len();
            bytes[at] ^= byte;
            let _ = decode(&STANDARD.encode(&bytes));
        }

        #[test]
        fn hostile_payloads_never_panic(payload in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&deflated(&header(payload.len() as u32, HIGHEST_NS), &payload));
        }
    }

    fn header(payload_bytes: u32, highest_ns: u64) -> Vec<u8> {
        let mut plain = Vec::new();
        for word in [COOKIE, payload_bytes, 0, u32::from(DIGITS)] {
            plain.extend(word.to_be_bytes());
        }
        plain.extend(LOWEST_NS.to_be_bytes());
        plain.extend(highest_ns.to_be_bytes());
        plain.extend(1.0_f64.to_be_bytes());
        plain
    }

    fn deflated(header: &[u8], payload: &[u8]) -> String {
        use std::io::Write;
        let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
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
        assert!(decode(&deflated(&header(0, HIGHEST_NS), &[])).is_ok_and(|empty| empty.is_empty()));
    }
}
