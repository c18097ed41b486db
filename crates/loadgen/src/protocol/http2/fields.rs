//! Header fields of requests, encoded once for all connections.
//!
//! Once a repeated field was sent on a connection, it has a number there. The number depends on the fields sent
//! before, so only the number is determined when a request is sent. The table has room for every numbered field, so no
//! field is evicted, and each number fits into one byte.

use std::collections::HashMap;

use http_codec::hpack::{
    ENTRY_BYTES, Indexing, STATIC, TABLE_BYTES, encode_field, encode_size_update, static_index,
};

/// Most fields that get a number.
const NUMBERED_MAX: usize = 60;
/// The number of the field that was added last.
const NEWEST: u8 = STATIC.len() as u8 + 1;

/// Assigns a number to each distinct field while requests are encoded.
#[derive(Debug, Default)]
pub(crate) struct FieldNumbers(HashMap<(Vec<u8>, Vec<u8>), u8>);

/// The header block of a request.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    pieces: Vec<HeaderPiece>,
}

#[derive(Debug)]
enum HeaderPiece {
    /// Bytes that are the same on all connections.
    Fixed(Vec<u8>),
    /// A field that may have been sent before.
    Field { field: u8, table_bytes: usize, adding: Box<[u8]>, plain: Box<[u8]> },
}

/// The fields in the peer's dynamic table on one connection, with their indices.
#[derive(Debug)]
pub(crate) struct EncoderTable {
    /// For each field, the number of fields added up to and including it; 0 for a field that was not added.
    places: [u8; NUMBERED_MAX],
    added: u8,
    /// Room in the server's table that is left.
    room: usize,
    /// How large the server's table is allowed to be.
    table_bytes: usize,
    /// The server must get the table's new size before anything else.
    has_shrunk: bool,
}

impl Fields {
    /// Adds a field whose value may come again, in this request or in others.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8], numbers: &mut FieldNumbers) {
        if let Some(index) = static_index(name, value) {
            return self.fixed(&[0x80 | index]);
        }
        let next = numbers.0.len();
        let known = numbers.0.get(&(name.to_vec(), value.to_vec())).copied();
        let field = known.or_else(|| {
            let field = u8::try_from(next).ok().filter(|_| next < NUMBERED_MAX)?;
            numbers.0.insert((name.to_vec(), value.to_vec()), field);
            Some(field)
        });
        let Some(field) = field else { return self.push_once(name, value) };
        let table_bytes = name.len() + value.len() + ENTRY_BYTES;
        let (adding, plain) = (encoded(name, value, Indexing::Added), encoded(name, value, Indexing::Plain));
        self.pieces.push(HeaderPiece::Field { field, table_bytes, adding, plain });
    }

    /// Adds a field that is spelled out each time.
    pub(crate) fn push_once(&mut self, name: &[u8], value: &[u8]) {
        self.fixed(&encoded(name, value, Indexing::Plain));
    }

    fn fixed(&mut self, bytes: &[u8]) {
        if let Some(HeaderPiece::Fixed(before)) = self.pieces.last_mut() {
            before.extend_from_slice(bytes);
        } else {
            self.pieces.push(HeaderPiece::Fixed(bytes.to_vec()));
        }
    }

    /// Appends the block as it goes over a connection now.
    pub(crate) fn write(&self, indexed: &mut EncoderTable, out: &mut Vec<u8>) {
        if std::mem::take(&mut indexed.has_shrunk) {
            // The old content is not tracked: the size is first set to zero, then to the new value.
            out.push(0x20);
            encode_size_update(indexed.table_bytes, out);
        }
        for piece in &self.pieces {
            match piece {
                HeaderPiece::Fixed(bytes) => out.extend_from_slice(bytes),
                HeaderPiece::Field { field, table_bytes, adding, plain } => {
                    let place = indexed.places[usize::from(*field)];
                    if place > 0 {
                        out.push(0x80 | (NEWEST + indexed.added - place));
                    } else if indexed.add(*field, *table_bytes) {
                        out.extend_from_slice(adding);
                    } else {
                        out.extend_from_slice(plain);
                    }
                }
            }
        }
    }
}

impl EncoderTable {
    pub(crate) fn new() -> Self {
        let table_bytes = TABLE_BYTES;
        Self { places: [0; NUMBERED_MAX], added: 0, room: table_bytes, table_bytes, has_shrunk: false }
    }

    /// Applies the server's `SETTINGS_HEADER_TABLE_SIZE`. Space beyond our own maximum is not used.
    pub(crate) fn allow(&mut self, table_bytes: usize) {
        if table_bytes < self.table_bytes {
            *self = Self { room: table_bytes, table_bytes, has_shrunk: true, ..Self::new() };
        }
    }

    fn add(&mut self, field: u8, bytes: usize) -> bool {
        let Some(room) = self.room.checked_sub(bytes) else { return false };
        self.room = room;
        self.added += 1;
        self.places[usize::from(field)] = self.added;
        true
    }
}

fn encoded(name: &[u8], value: &[u8], indexing: Indexing) -> Box<[u8]> {
    let mut out = Vec::new();
    encode_field(name, value, indexing, &mut out);
    out.into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use http_codec::hpack::Decoder;
    use proptest::prelude::*;

    use super::*;

    type List = Vec<(String, String)>;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> List {
        let mut list = List::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(block, u64::MAX, |field| list.push((text(field.name), text(field.value)))).unwrap();
        list
    }

    fn list(fields: &[(&str, &str)]) -> List {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn request(fields: &[(&str, &str)], numbers: &mut FieldNumbers) -> Fields {
        let mut written = Fields::default();
        for (name, value) in fields {
            written.push(name.as_bytes(), value.as_bytes(), numbers);
        }
        written
    }

    #[test]
    fn a_repeated_field_takes_one_byte() {
        let mut numbers = FieldNumbers::default();
        let get = [(":method", "GET"), (":path", "/a"), (":authority", "example.org"), ("x-own", "A value.")];
        let post =
            [(":method", "POST"), (":path", "/b"), (":authority", "example.org"), ("x-own", "A value.")];
        let (get_fields, post_fields) = (request(&get, &mut numbers), request(&post, &mut numbers));
        let (mut indexed, mut decoder) = (EncoderTable::new(), <Decoder>::default());
        let mut lens = Vec::new();
        for _ in 0..2 {
            for (fields, expected) in [(&get_fields, &get), (&post_fields, &post)] {
                let mut block = Vec::new();
                fields.write(&mut indexed, &mut block);
                assert_eq!(decode(&mut decoder, &block), list(expected));
                lens.push(block.len());
            }
        }
        assert!(lens[0] > 20 && lens[1] < lens[0], "{lens:?}");
        assert_eq!(lens[2..], [4, 4]);
        // A server that allows no table gets a size of zero, and every field in full each time.
        indexed.allow(0);
        let mut lens = Vec::new();
        for _ in 0..2 {
            let mut block = Vec::new();
            get_fields.write(&mut indexed, &mut block);
            assert_eq!(decode(&mut decoder, &block), list(&get));
            lens.push(block.len());
        }
        assert!(lens[1] > 20 && lens[0] == lens[1] + 2, "{lens:?}");
    }

    proptest! {
        #[test]
        fn any_requests_are_read_as_they_were_written(
            requests in proptest::collection::vec(proptest::collection::vec(("[a-z:-]{1,20}", ".{0,300}"), 1..10), 1..12),
            order in proptest::collection::vec((any::<prop::sample::Index>(), proptest::option::of(0_usize..6_000)), 1..40),
        ) {
            let mut numbers = FieldNumbers::default();
            let written: Vec<Fields> = requests.iter().map(|fields| {
                let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
                request(&fields, &mut numbers)
            }).collect();
            let (mut indexed, mut decoder) = (EncoderTable::new(), <Decoder>::default());
            for (nth, allowed) in order {
                if let Some(table_bytes) = allowed {
                    indexed.allow(table_bytes);
                }
                let nth = nth.index(requests.len());
                let mut block = Vec::new();
                written[nth].write(&mut indexed, &mut block);
                prop_assert_eq!(decode(&mut decoder, &block), requests[nth].clone());
            }
        }
    }
}
