//! One record of every kind for the fuzzer to begin with, made of the examples of the schema.

use std::error::Error;
use std::fs;
use std::path::Path;

use records::histogram::HIGHEST_NS;
use records::kinds::Body;
use records::metrics::{Field, Unit};
use records::wire::field::common_fields;

const SETTING: &str = r#"{"name":"load.rate","value":0.1,"unit":"1/s","applies":"live","range":[0.0,1e6]}"#;

/// Writes them all.
pub(crate) fn write_all(folder: &Path) -> Result<(), Box<dyn Error>> {
    for kind in Body::KINDS {
        let mut seed = kind.word.as_bytes().to_vec();
        for field in common_fields().into_iter().chain(Body::fields(kind.word)) {
            if field.name != "TLSDASH_KIND" {
                seed.push(b'\n');
                seed.extend(example(&field));
            }
        }
        crate::record(&seed).ok_or_else(|| format!("the seed for {} is no record", kind.word))?;
        fs::write(folder.join(kind.word), seed)?;
    }
    Ok(())
}

/// Gives the example of a field, or one that is whole where that is shortened.
fn example(field: &Field) -> Vec<u8> {
    match (field.unit, field.example) {
        (Unit::Histogram, example) => {
            [example.trim_end_matches("HISTFAAAAC…").as_bytes(), &histogram()].concat()
        }
        (_, "6f1d…") => "6f1d".repeat(8).into_bytes(),
        (Unit::Json, example) if !example.contains('…') => example.into(),
        (Unit::Json, example) if example.starts_with('[') => format!("[{SETTING}]").into_bytes(),
        (Unit::Json, _) => SETTING.into(),
        (_, example) => example.into(),
    }
}

/// Gives byte 1 and the plain form of a histogram, `HdrHistogram` V2: some samples in buckets far apart.
fn histogram() -> Vec<u8> {
    // Zigzag, seven bits a byte: positive numbers are counts, negative ones so many empty buckets.
    let counts = [0x06, 0x09, 0x80, 0x02, 0xe7, 0x07, 0x02];
    let mut plain = vec![1];
    plain.extend(0x1c84_9313_u32.to_be_bytes());
    plain.extend((counts.len() as u32).to_be_bytes());
    plain.extend(0_u32.to_be_bytes());
    plain.extend(3_u32.to_be_bytes());
    plain.extend(100_u64.to_be_bytes());
    plain.extend(HIGHEST_NS.to_be_bytes());
    plain.extend(1_f64.to_be_bytes());
    plain.extend(counts);
    plain
}
