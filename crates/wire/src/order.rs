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
    /// The sequence number of the next byte; `None` before the first segment.
    next: Option<u32>,
    /// Segments that came before an earlier one.
    waiting: Vec<Waiting>,
    /// True once bytes are missing for good: bytes are counted, and not read.
    is_broken: bool,
}

#[derive(Debug)]
struct Waiting {
    sequence: u32,
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
    pub(crate) time_ns: u64,
    /// Its bytes, as far as they were captured.
    pub(crate) bytes: &'a [u8],
    /// Its length on the wire, in bytes.
    pub(crate) len: u32,
}

impl Order {
    /// Begins at this sequence number, unless it has begun.
    pub(crate) fn begin(&mut self, sequence: u32) {
        self.next.get_or_insert(sequence);
    }

    /// Whether bytes are missing for good.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Memory of the segments that wait.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(Waiting::memory).sum()
    }

    /// Adds a segment's payload, and hands what is in order to `read`, with the time of each piece. `room` is the memory
    /// that segments may still wait in.
    pub(crate) fn add(
        &mut self,
        payload: Payload<'_>,
        room: &mut usize,
        read: &mut impl FnMut(&[u8], u64),
    ) -> Ordered {
        let mut ordered = Ordered::default();
        if payload.len == 0 {
            return ordered;
        }
        let next = *self.next.get_or_insert(payload.sequence);
        let is_ahead = payload.sequence.wrapping_sub(next) as i32 > 0;
        if is_ahead && !self.is_broken {
            if self.keep(payload, room) {
                return ordered;
            }
            ordered.new += self.give_up(room);
        }
        self.take(payload, &mut ordered, read);
        while let Some(at) = self.first_in_order() {
            let piece = self.waiting.swap_remove(at);
            *room += piece.memory();
            let Waiting { sequence, time_ns, ref bytes, len } = piece;
            self.take(Payload { sequence, time_ns, bytes, len }, &mut ordered, read);
        }
        ordered
    }

    /// Gives up what is missing. Returns the bytes up to the last that was captured.
    pub(crate) fn give_up(&mut self, room: &mut usize) -> u32 {
        self.is_broken = true;
        let mut new = 0;
        for piece in std::mem::take(&mut self.waiting) {
            *room += piece.memory();
            new += self.advance(piece.sequence, piece.len).1;
        }
        new
    }

    fn first_in_order(&self) -> Option<usize> {
        let next = self.next?;
        self.waiting.iter().position(|piece| piece.sequence.wrapping_sub(next) as i32 <= 0)
    }

    /// Goes on behind this payload, if that is ahead. Returns the bytes of it that had come before, and the way.
    fn advance(&mut self, sequence: u32, len: u32) -> (u32, u32) {
        let next = self.next.unwrap_or(sequence);
        let way = (sequence.wrapping_add(len).wrapping_sub(next) as i32).max(0) as u32;
        self.next = Some(next.wrapping_add(way));
        (len.saturating_sub(way), way)
    }

    fn take(&mut self, payload: Payload<'_>, ordered: &mut Ordered, read: &mut impl FnMut(&[u8], u64)) {
        let (again, new) = self.advance(payload.sequence, payload.len);
        ordered.again += again;
        ordered.new += new;
        let bytes = payload.bytes.get(again as usize..).unwrap_or_default();
        if new > 0 && !self.is_broken {
            if !bytes.is_empty() {
                read(bytes, payload.time_ns);
            }
            // Nothing can be read behind a cut.
            self.is_broken = payload.bytes.len() < payload.len as usize;
        }
    }

    /// Keeps a payload for later. False if there is no room.
    fn keep(&mut self, payload: Payload<'_>, room: &mut usize) -> bool {
        let Payload { sequence, time_ns, bytes, len } = payload;
        if self.waiting.iter().any(|piece| piece.sequence == sequence && piece.len >= len) {
            return true;
        }
        let piece = Waiting { sequence, time_ns, bytes: bytes.into(), len };
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

impl Waiting {
    fn memory(&self) -> usize {
        self.bytes.len() + PIECE_BYTES
    }
}
