//! Encodes records as journal entries, and decodes them.

pub mod message;
mod origin;
mod resolution;

use journal::{Entry, EntryBuf};

use crate::ids::RunId;
use crate::kinds::{Body, Record, SCHEMA, Stamp};
use crate::wire::{DecodeError, FieldSource, field, get_parsed};

pub use resolution::{Coverage, Resolution, RollupBatch};

pub use origin::{Origin, SuppressedMessages, Writer, is_tlsdash};

/// The value of `SYSLOG_IDENTIFIER`.
pub const IDENTIFIER: &str = "tlsdash";

/// The priority of roll-ups: debug. Whoever looks for problems finds each once.
const ROLLUP_PRIORITY: u8 = 7;

/// Writes a record's fields into `out`, after clearing it.
pub fn encode(record: &Record, out: &mut EntryBuf) {
    encode_as(record, Coverage::default(), out);
}

/// Writes the fields of a record, or of a roll-up, into `out`, after clearing it.
pub fn encode_as(record: &Record, coverage: Coverage, out: &mut EntryBuf) {
    let kind = record.body.kind();
    out.clear();
    out.push_display(field::MESSAGE, message::sentence(record));
    if coverage.is_interval() {
        out.push("MESSAGE_ID", kind.message_id.as_bytes());
        out.push_display("PRIORITY", message::priority(&record.body));
    } else {
        out.push_display("PRIORITY", ROLLUP_PRIORITY);
    }
    out.push("SYSLOG_IDENTIFIER", IDENTIFIER.as_bytes());
    out.push(&coverage.resolution.kind_field().name, kind.word.as_bytes());
    if let Some(RollupBatch { after, through, rollups }) = coverage.batch {
        out.push_display(&field::AFTER.name, after);
        out.push_display(&field::THROUGH.name, through);
        out.push_display(&field::BATCH.name, rollups);
    }
    out.push_display(&field::RUN.name, record.stamp.run);
    out.push_display(&field::SEQ.name, record.stamp.seq);
    out.push_display(&field::SCHEMA.name, SCHEMA);
    out.push_display(&field::MONO.name, record.stamp.mono_us);
    out.push_display(&field::INTERVAL.name, record.stamp.interval_us);
    record.body.put(out);
}

/// Reads a record from an entry; `None` if the entry is not one of ours.
///
/// # Errors
/// When it claims to be ours and is not: a missing or malformed field, or a newer schema.
pub fn decode(entry: &Entry) -> Result<Option<Record>, DecodeError> {
    decode_from(entry, entry.realtime_us())
}

/// Reads a record from fields that were not read from a journal, as [`encode`] makes them; see [`decode`].
///
/// # Errors
/// As those of [`decode`].
pub fn decode_fields(fields: &EntryBuf, realtime_us: u64) -> Result<Option<Record>, DecodeError> {
    decode_from(fields, realtime_us)
}

pub(crate) fn decode_from(from: &dyn FieldSource, realtime_us: u64) -> Result<Option<Record>, DecodeError> {
    let Some(kind) = from.text(&field::KIND.name) else { return Ok(None) };
    let schema: u64 = get_parsed(&field::SCHEMA, from)?;
    if schema > SCHEMA {
        return Err(DecodeError::Newer(schema));
    }
    let stamp = Stamp {
        run: get_parsed::<RunId>(&field::RUN, from)?,
        seq: get_parsed(&field::SEQ, from)?,
        mono_us: get_parsed(&field::MONO, from)?,
        realtime_us,
        interval_us: get_parsed(&field::INTERVAL, from)?,
    };
    let body = match Body::get(kind, from) {
        None | Some(Err(DecodeError::UnknownWord(_))) => Body::Unknown,
        Some(body) => body?,
    };
    Ok(Some(Record { stamp, body }))
}
