//! Decodes any fields as a record, writes what that gave and decodes it again, and shows it to a model.
//!
//! The input is lines: the kind of the record, then the values of its fields in the order of the schema; an empty line
//! leaves a field out. What follows a byte 1 in a value is the plain form of a histogram.

#![no_main]

mod seeds;

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use fuzz::seeds_if_asked;
use journal::EntryBuf;
use libfuzzer_sys::fuzz_target;
use model::runs::Model;
use records::codec::{decode_fields, encode};
use records::kinds::{Body, Record};
use records::wire::field::common_fields;

const REALTIME_US: u64 = 1_700_000_000_000_000;

fuzz_target!(init: seeds_if_asked(seeds::write_all), |input: &[u8]| {
    let Some(record) = record(input) else { return };
    let mut written = EntryBuf::new();
    encode(&record, &mut written);
    assert_eq!(written.fault(), None);
    let read = decode_fields(&written, REALTIME_US).expect("what was written can be read");
    assert_eq!(read.as_ref(), Some(&record));

    let mut model = Model::new(4);
    // Twice, since sums and differences may not overflow either.
    for _ in 0..2 {
        model.apply(record.clone(), Some(record.stamp.mono_us));
    }
});

/// Makes a record of an input, if it is one.
fn record(input: &[u8]) -> Option<Record> {
    let mut lines = input.split(|byte| *byte == b'\n');
    let kind = std::str::from_utf8(lines.next()?).ok()?;
    let mut fields = EntryBuf::new();
    fields.push("TLSDASH_KIND", kind.as_bytes());
    let names = common_fields().into_iter().chain(Body::fields(kind)).map(|field| field.name);
    for (name, value) in names.filter(|name| name != "TLSDASH_KIND").zip(lines) {
        match value.iter().position(|byte| *byte == 1) {
            _ if value.is_empty() => {}
            Some(end) => {
                let packed = histogram(&value[end + 1..]);
                fields.push(&name, &[&value[..end], packed.as_bytes()].concat());
            }
            None => fields.push(&name, value),
        }
    }
    decode_fields(&fields, REALTIME_US).ok()?
}

/// Packs the plain form of a histogram as it stands in a field.
fn histogram(plain: &[u8]) -> String {
    let mut deflated = ZlibEncoder::new(Vec::new(), Compression::fast());
    deflated.write_all(plain).expect("writing to memory");
    let deflated = deflated.finish().expect("writing to memory");
    let mut bytes = 0x1c84_9314_u32.to_be_bytes().to_vec();
    bytes.extend((deflated.len() as u32).to_be_bytes());
    bytes.extend(deflated);
    STANDARD.encode(bytes)
}
