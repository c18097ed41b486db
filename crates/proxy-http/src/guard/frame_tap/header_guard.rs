//! Looks at header blocks before h2 decodes them. h2 ends the whole connection for fields that are an error of their stream
//! only (RFC 9113, section 8.1.1), answers others without the program, and refuses characters that upstreams take.
//!
//! A block that h2 would not pass on is replaced by one that it does, whose field [`VERDICT`] says what the proxy has found.
//! HPACK's table belongs to the connection: a field that the block adds to it, and that h2 must not see, is replaced by one
//! of the same size. From then on, blocks that name that entry are replaced too.

use http_codec::hpack::{DecodedField, Decoder, ENTRY_BYTES, HpackDecodeError, Indexing, encode_field};

use super::field_kind::{FieldKind, PseudoField, VERDICT};
use crate::request::target_text;

/// A header list that exceeds its bound by this factor is a flood.
const FLOOD_FACTOR: usize = 4;
/// Longest trailer section of a request: names, values, and 32 bytes a field.
const TRAILER_BYTES_MAX: usize = 16 << 10;

/// Stand-ins for fields that a refused request lacks, or has in a form that cannot be repeated.
const UNKNOWN_METHOD: &[u8] = b"-";
const UNKNOWN_PATH: &[u8] = b"*";
const CONNECT: &[u8] = b"CONNECT";

/// The protocol that an extended CONNECT may ask for (RFC 8441).
const WEBSOCKET: &str = "websocket";

/// What a header block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// A request; `ends`: it has no content.
    Request {
        ends: bool,
    },
    Trailers,
}

/// What became of a block.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CheckedBlock {
    /// What h2 gets in its place.
    pub(super) replacement: Option<Vec<u8>>,
    pub(super) is_malformed: bool,
    /// Whether the client waits for `100 Continue`.
    pub(super) expects_continue: bool,
    /// Names and values, and 4 bytes a field.
    pub(super) plain_bytes: u64,
}

/// Why a connection cannot continue after a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockError {
    /// The block is malformed HPACK, so h2 ends the connection.
    Hpack,
    /// The header list exceeds all bounds.
    TooLarge,
}

/// Checks the header blocks of one connection.
#[derive(Debug)]
pub(super) struct HeaderGuard {
    decoder: Decoder<FieldTag>,
    list_bytes_max: usize,
    /// The number of the last block.
    block: u32,
}

/// What is known of a field in HPACK's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FieldTag {
    kind: FieldKind,
    /// Whether h2's table has another field in its place.
    is_hidden: bool,
    /// The number of the block that has added it.
    block: u32,
}

/// The fields of the block that is being checked; memory for the next one otherwise.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub(crate) struct BlockFields {
    fields: Vec<BlockField>,
    /// The values of pseudo-header fields, in the order of [`PseudoField`].
    pseudo: [PseudoValue; 5],
    /// Where the block's first field begins. In front of it stand sizes of the table.
    sizes_end: Option<usize>,
    /// Fields that h2 cannot read as they are in the block.
    encoded: Vec<u8>,
    /// Length of all names and values.
    text_bytes: usize,
    /// Whether it has a content length, and whether that is above 0.
    has_length: bool,
    has_content: bool,
    expects_continue: bool,
    has_hidden: bool,
    refusal: Option<Refusal>,
}

#[derive(Debug, Default)]
struct PseudoValue {
    is_there: bool,
    value: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct BlockField {
    kind: FieldKind,
    is_added: bool,
    /// Whether it is in [`BlockFields::encoded`], not in the block.
    is_encoded: bool,
    begins: usize,
    ends: usize,
    /// Length of name and value.
    text_bytes: usize,
}

/// Why a request is refused; the text of its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Malformed,
    Connect,
    /// An extended CONNECT for another protocol than WebSocket.
    Protocol,
    HeaderTooLarge,
    UriTooLong,
}

/// What the proxy has found in a request, as carried by its field [`VERDICT`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict<'a> {
    Refused(Refusal),
    Passed {
        /// Whether h2 gets a GET in the place of an extended CONNECT.
        is_websocket: bool,
        /// The path with its query as received, if h2 gets another.
        path: Option<&'a str>,
    },
}

impl Refusal {
    const ALL: [Self; 5] =
        [Self::Malformed, Self::Connect, Self::Protocol, Self::HeaderTooLarge, Self::UriTooLong];

    fn text(self) -> &'static [u8] {
        match self {
            Self::Malformed => b"malformed",
            Self::Connect => b"connect",
            Self::Protocol => b"protocol",
            Self::HeaderTooLarge => b"header",
            Self::UriTooLong => b"uri",
        }
    }
}

impl<'a> Verdict<'a> {
    /// Parses the value of the last field [`VERDICT`].
    pub(crate) fn parse(value: &'a [u8]) -> Self {
        let refusal = Refusal::ALL.into_iter().find(|refusal| refusal.text() == value);
        match std::str::from_utf8(value) {
            Ok(text) if refusal.is_none() => {
                let behind = text.strip_prefix(WEBSOCKET);
                let path = Some(behind.unwrap_or(text)).filter(|path| !path.is_empty());
                Verdict::Passed { is_websocket: behind.is_some(), path }
            }
            _ => Verdict::Refused(refusal.unwrap_or(Refusal::Malformed)),
        }
    }
}

impl HeaderGuard {
    pub(super) fn new(list_bytes_max: usize) -> Self {
        Self { decoder: Decoder::default(), list_bytes_max, block: 0 }
    }

    /// Checks a whole block, in the memory of `fields`.
    ///
    /// # Errors
    /// If the connection cannot continue.
    pub(super) fn check(
        &mut self,
        block: &[u8],
        kind: BlockKind,
        fields: &mut BlockFields,
    ) -> Result<CheckedBlock, BlockError> {
        fields.clear();
        self.block = self.block.wrapping_add(1);
        let (number, flood_bytes) = (self.block, self.list_bytes_max * FLOOD_FACTOR);
        let decoded = self.decoder.decode(block, flood_bytes as u64, |field| {
            let kind = field.tag.map_or_else(|| FieldKind::of(field.name, field.value), |tag| tag.kind);
            if fields.list_bytes() <= flood_bytes {
                fields.add(&field, kind);
            }
            FieldTag { kind, is_hidden: kind.is_never_seen(), block: number }
        });
        match decoded {
            Ok(()) if fields.list_bytes() <= flood_bytes => {}
            Ok(()) | Err(HpackDecodeError::TooLong) => return Err(BlockError::TooLarge),
            Err(HpackDecodeError::Malformed(_)) => return Err(BlockError::Hpack),
        }
        let refusal = match kind {
            BlockKind::Request { ends } => fields.request_refusal(ends, self.list_bytes_max),
            BlockKind::Trailers => fields.trailers_refusal(),
        };
        let mut checked = CheckedBlock {
            replacement: None,
            is_malformed: refusal == Some(Refusal::Malformed),
            expects_continue: refusal.is_none() && fields.expects_continue,
            plain_bytes: (fields.text_bytes + 4 * fields.fields.len()) as u64,
        };
        if refusal.is_some() || fields.has_hidden || fields.value(PseudoField::Protocol).is_some() {
            checked.replacement = Some(fields.replacement(block, kind, refusal));
            let added = self.decoder.tags_mut().filter(|tag| tag.block == number);
            added.for_each(|tag| tag.is_hidden |= tag.kind.pseudo().is_some());
        }
        Ok(checked)
    }
}

impl FieldKind {
    /// Whether h2 cannot have it.
    fn is_never_seen(self) -> bool {
        matches!(self, Self::OddPath | Self::LongPath | Self::Malformed)
    }

    fn pseudo(self) -> Option<PseudoField> {
        match self {
            Self::Pseudo(field) => Some(field),
            Self::OddPath | Self::LongPath => Some(PseudoField::Path),
            Self::Regular | Self::ContentLength | Self::ExpectContinue | Self::Malformed => None,
        }
    }
}

impl BlockFields {
    /// Forgets the last block. What a large one has taken is freed.
    fn clear(&mut self) {
        const KEPT_MAX: usize = 256;
        let mut kept = std::mem::take(self);
        kept.fields.clear();
        kept.encoded.clear();
        if kept.fields.capacity() <= KEPT_MAX && kept.encoded.capacity() <= KEPT_MAX {
            (self.fields, self.encoded) = (kept.fields, kept.encoded);
        }
        for (pseudo, kept) in self.pseudo.iter_mut().zip(kept.pseudo) {
            if kept.value.capacity() <= KEPT_MAX {
                pseudo.value = kept.value;
            }
        }
    }

    /// The size of the list (RFC 9113, section 6.5.2).
    fn list_bytes(&self) -> usize {
        self.text_bytes + ENTRY_BYTES * self.fields.len()
    }

    fn add(&mut self, field: &DecodedField<'_, FieldTag>, kind: FieldKind) {
        match kind {
            FieldKind::Malformed => self.refuse(Refusal::Malformed),
            FieldKind::ContentLength if self.has_length => self.refuse(Refusal::Malformed),
            FieldKind::ContentLength => {
                self.has_length = true;
                self.has_content = field.value.iter().any(|digit| *digit != b'0');
            }
            FieldKind::ExpectContinue => self.expects_continue = true,
            FieldKind::LongPath => self.refuse(Refusal::UriTooLong),
            FieldKind::Pseudo(_) | FieldKind::OddPath | FieldKind::Regular => {}
        }
        if let Some(pseudo) = kind.pseudo() {
            let is_late = self.fields.last().is_some_and(|before| before.kind.pseudo().is_none());
            let PseudoValue { is_there, value } = &mut self.pseudo[pseudo as usize];
            let is_twice = std::mem::replace(is_there, true);
            value.clear();
            value.extend_from_slice(field.value);
            if is_twice || is_late {
                self.refuse(Refusal::Malformed);
            }
        }
        let is_hidden = |tag: Option<FieldTag>| tag.is_some_and(|tag| tag.is_hidden);
        self.has_hidden |= kind.is_never_seen() || is_hidden(field.tag) || is_hidden(field.name_tag);
        let mut place = field.place.clone();
        self.sizes_end.get_or_insert(place.start);
        if is_hidden(field.name_tag) {
            let indexing = if field.is_added { Indexing::Added } else { Indexing::Plain };
            place.start = self.encoded.len();
            encode_field(field.name, field.value, indexing, &mut self.encoded);
            place.end = self.encoded.len();
        }
        let text_bytes = field.name.len() + field.value.len();
        self.text_bytes += text_bytes;
        self.fields.push(BlockField {
            kind,
            is_added: field.is_added,
            is_encoded: is_hidden(field.name_tag),
            begins: place.start,
            ends: place.end,
            text_bytes,
        });
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.refusal = self.refusal.or(Some(refusal));
    }

    fn value(&self, field: PseudoField) -> Option<&[u8]> {
        let PseudoValue { is_there, value } = &self.pseudo[field as usize];
        is_there.then_some(value)
    }

    fn request_refusal(&self, ends: bool, list_bytes_max: usize) -> Option<Refusal> {
        use PseudoField::{Authority, Method, Path, Protocol, Scheme};
        if self.list_bytes() >= list_bytes_max {
            return Some(Refusal::HeaderTooLarge);
        }
        if self.refusal.is_some() {
            return self.refusal;
        }
        let (is_connect, protocol) = (self.value(Method) == Some(CONNECT), self.value(Protocol));
        if is_connect && protocol.is_none() {
            return Some(Refusal::Connect);
        }
        let is_whole = [Method, Scheme, Path].into_iter().all(|field| self.value(field).is_some());
        if !is_whole || ends && self.has_content {
            return Some(Refusal::Malformed);
        }
        let protocol = protocol?;
        if !is_connect || self.value(Authority).is_none() || self.has_length {
            return Some(Refusal::Malformed);
        }
        (!protocol.eq_ignore_ascii_case(WEBSOCKET.as_bytes())).then_some(Refusal::Protocol)
    }

    fn trailers_refusal(&self) -> Option<Refusal> {
        let has_pseudo = self.pseudo.iter().any(|pseudo| pseudo.is_there);
        let is_refused = self.refusal.is_some() || has_pseudo || self.list_bytes() > TRAILER_BYTES_MAX;
        is_refused.then_some(Refusal::Malformed)
    }

    /// The block that h2 gets instead.
    fn replacement(&self, block: &[u8], kind: BlockKind, refusal: Option<Refusal>) -> Vec<u8> {
        let mut out = block[..self.sizes_end.unwrap_or(block.len())].to_vec();
        let path = self.value(PseudoField::Path);
        let stand_in = path.and_then(target_text::stand_in);
        if kind != BlockKind::Trailers {
            self.replace_pseudo(stand_in.as_deref(), refusal, &mut out);
        }
        for field in &self.fields {
            let is_seen = !field.kind.is_never_seen() && field.kind.pseudo().is_none();
            if is_seen && (field.is_added || refusal.is_none()) {
                let bytes = if field.is_encoded { &self.encoded } else { block };
                out.extend_from_slice(&bytes[field.begins..field.ends]);
            } else if !is_seen && field.is_added {
                // As much room in the table as the field itself.
                let value = vec![b'x'; field.text_bytes.saturating_sub(VERDICT.len())];
                encode_field(VERDICT.as_bytes(), &value, Indexing::Added, &mut out);
            }
        }
        let is_websocket = self.value(PseudoField::Protocol).is_some();
        let websocket = if is_websocket { WEBSOCKET.as_bytes() } else { b"" };
        let path = path.filter(|_| stand_in.is_some()).unwrap_or_default();
        let verdict = refusal.map_or_else(|| [websocket, path].concat(), |refusal| refusal.text().into());
        if !verdict.is_empty() {
            encode_field(VERDICT.as_bytes(), &verdict, Indexing::Plain, &mut out);
        }
        out
    }

    /// Writes pseudo-header fields that h2 passes on: those of the client, as far as it can be known what they are.
    fn replace_pseudo(&self, stand_in: Option<&[u8]>, refusal: Option<Refusal>, out: &mut Vec<u8>) {
        for field in PseudoField::PASSED {
            let given = self.value(field).filter(|value| *value != CONNECT);
            let value = match field {
                PseudoField::Path if refusal == Some(Refusal::UriTooLong) => Some(UNKNOWN_PATH),
                PseudoField::Path => stand_in.or(given).or(Some(UNKNOWN_PATH)),
                // Of the others a CONNECT is the one that is passed on.
                PseudoField::Method if refusal.is_none() => given.or(Some(b"GET")),
                PseudoField::Method => given.or(Some(UNKNOWN_METHOD)),
                PseudoField::Scheme => given.or(Some(b"https")),
                PseudoField::Authority | PseudoField::Protocol => given,
            };
            if let Some(value) = value {
                encode_field(field.name(), value, Indexing::Plain, out);
            }
        }
    }
}

#[cfg(test)]
mod tests;
