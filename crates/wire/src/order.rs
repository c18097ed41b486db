//! Puts the payload of one direction in order, as far as it was captured.

/// The most bytes of one direction that wait for an earlier one. A server's flight has a few thousand.
const WAITING_BYTES_MAX: usize = 64 << 10;
/// The most pieces of them.
const WAITING_PIECES_MAX: usize = 256;

/// Memory of a piece besides its bytes.
const PIECE_BYTES: usize = 64;

/// The payload of one direction.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// The sequence number of the first byte; `None` before the first segment.
    start: Option<u32>,
    /// Whether a SYN says where it starts. Otherwise a segment before it moves it.
    has_syn: bool,
    /// The sequence number of the next byte.
    next: Option<u32>,
    /// The sequence number behind the last byte that is known to have been sent.
    sent: Option<u32>,
    /// The sequence number of the FIN.
    fin: Option<u32>,
    /// Segments that came too early.
    waiting: Vec<Waiting>,
    /// True once bytes are missing for good: bytes are counted, and not read.
    is_broken: bool,
}

/// A segment's payload that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    sequence: u32,
    acknowledged: Option<u32>,
    time_ns: u64,
    bytes: Box<[u8]>,
    len: u32,
}

/// What became of a segment's payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ordered {
    /// Bytes that are sent for the first time, with those before them that were not captured.
    pub(crate) new: u32,
    /// Bytes that had come before.
    pub(crate) again: u32,
}

/// A segment's payload, and when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payload<'a> {
    pub(crate) sequence: u32,
    /// The acknowledgment number: the sender had read so far.
    pub(crate) acknowledged: Option<u32>,
    pub(crate) time_ns: u64,
    /// Its bytes, as far as they were captured.
    pub(crate) bytes: &'a [u8],
    /// Its length on the wire, in bytes.
    pub(crate) len: u32,
}

impl Order {
    /// Begins at this sequence number, unless it has begun there or before. Without a SYN the first segment may be late.
    pub(crate) fn begin(&mut self, sequence: u32) {
        let can_begin = !self.has_syn && self.next == self.start;
        if can_begin && self.start.is_none_or(|start| is_ahead(start, sequence)) {
            (self.start, self.next) = (Some(sequence), Some(sequence));
        }
    }

    /// Begins behind a SYN, which may come late.
    pub(crate) fn begin_with_syn(&mut self, syn: u32) {
        let first = syn.wrapping_add(1);
        if !self.has_syn && self.next == self.start {
            (self.start, self.next) = (Some(first), Some(first));
        }
        self.has_syn = true;
    }

    /// Whether it begins behind this SYN.
    pub(crate) fn is_behind(&self, syn: u32) -> bool {
        self.start == Some(syn.wrapping_add(1))
    }

    /// Notes that all bytes before this sequence number were sent.
    pub(crate) fn note_sent(&mut self, sequence: u32) {
        let sent = self.sent.get_or_insert(sequence);
        if is_ahead(sequence, *sent) {
            *sent = sequence;
        }
    }

    pub(crate) fn note_fin(&mut self, sequence: u32) {
        self.fin = Some(sequence);
    }

    /// Whether bytes are missing for good.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether bytes were sent that were not captured, or not yet.
    pub(crate) fn is_missing(&self) -> bool {
        self.is_broken || self.has_waiting() || self.sent.is_some_and(|sent| !self.is_read_up_to(sent))
    }

    /// Whether every byte before this sequence number was captured. A FIN has a number too.
    pub(crate) fn is_read_up_to(&self, sequence: u32) -> bool {
        let Some(next) = self.next else { return true };
        !is_ahead(sequence, next) || (self.fin == Some(next) && sequence == next.wrapping_add(1))
    }

    /// Whether segments wait.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Memory of the segments that wait.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(Waiting::memory).sum()
    }

    /// Whether no byte is missing before this payload.
    pub(crate) fn is_next(&mut self, payload: Payload<'_>) -> bool {
        self.begin(payload.sequence);
        self.is_broken || self.is_read_up_to(payload.sequence)
    }

    /// Takes the first payload that waits no longer: nothing is missing before it, and `is_due` says the same of the other
    /// direction up to its acknowledgment number.
    pub(crate) fn pop(&mut self, is_due: impl Fn(Option<u32>) -> bool, room: &mut usize) -> Option<Waiting> {
        let next = self.next?;
        let is_next = |piece: &Waiting| !is_ahead(piece.sequence, next) && is_due(piece.acknowledged);
        let piece = self.waiting.swap_remove(self.waiting.iter().position(is_next)?);
        *room += piece.memory();
        Some(piece)
    }

    /// Gives up what is missing. Returns the bytes up to the last that was captured: with sequence numbers that nobody checks,
    /// more than 32 bits hold.
    pub(crate) fn give_up(&mut self, room: &mut usize) -> u64 {
        self.is_broken = true;
        let mut new = 0;
        for piece in std::mem::take(&mut self.waiting) {
            *room += piece.memory();
            new += u64::from(self.advance(piece.sequence, piece.len).1);
        }
        new
    }

    /// Goes on behind this payload, if that is ahead. Returns the bytes of it that had come before, and the way.
    fn advance(&mut self, sequence: u32, len: u32) -> (u32, u32) {
        let next = self.next.unwrap_or(sequence);
        let way = (sequence.wrapping_add(len).wrapping_sub(next) as i32).max(0) as u32;
        self.next = Some(next.wrapping_add(way));
        (len.saturating_sub(way), way)
    }

    /// Hands the new bytes of a payload to `read`.
    pub(crate) fn take(&mut self, payload: Payload<'_>, read: impl FnOnce(&[u8])) -> Ordered {
        let (again, new) = self.advance(payload.sequence, payload.len);
        let bytes = payload.bytes.get(again as usize..).unwrap_or_default();
        if new > 0 && !self.is_broken {
            if !bytes.is_empty() {
                read(bytes);
            }
            // Nothing can be read behind a cut.
            self.is_broken = payload.bytes.len() < payload.len as usize;
        }
        Ordered { new, again }
    }

    /// Keeps a payload for later. False if there is no room.
    pub(crate) fn keep(&mut self, payload: Payload<'_>, room: &mut usize) -> bool {
        let Payload { sequence, acknowledged, time_ns, bytes, len } = payload;
        if self.waiting.iter().any(|piece| piece.sequence == sequence && piece.len >= len) {
            return true;
        }
        let piece = Waiting { sequence, acknowledged, time_ns, bytes: bytes.into(), len };
        let has_room = self.waiting.len() < WAITING_PIECES_MAX
            && self.waiting_bytes() + bytes.len() <= WAITING_BYTES_MAX
            && piece.memory() <= *room;
        if has_room {
            *room -= piece.memory();
            self.waiting.push(piece);
        }
        has_room
    }
}

/// Whether a sequence number is behind another one.
fn is_ahead(sequence: u32, other: u32) -> bool {
    sequence.wrapping_sub(other) as i32 > 0
}

impl Waiting {
    pub(crate) fn payload(&self) -> Payload<'_> {
        let Self { sequence, acknowledged, time_ns, ref bytes, len } = *self;
        Payload { sequence, acknowledged, time_ns, bytes, len }
    }

    fn memory(&self) -> usize {
        self.bytes.len() + PIECE_BYTES
    }
}
