//! One connection: the payload of both directions in order, its handshake, and when what happened.

use crate::order::{Order, Payload, Waiting};
use crate::packet::Segment;
use hello::handshake::{End, Handshake, Step};
use records::values::ConnectionMix;

/// What encryption adds to a record (RFC 8446, 5.2; RFC 5288): content type and tag, or explicit nonce and tag.
const OVERHEAD13_BYTES: u64 = 17;
const OVERHEAD12_BYTES: u64 = 24;
const OVERHEAD12_CHACHA_BYTES: u64 = 16;
const OVERHEAD13_CCM8_BYTES: u64 = 9;
/// Cipher suites of TLS 1.2 with `ChaCha20` have numbers of this first byte.
const CHACHA12: u8 = 0xcc;
/// `TLS_AES_128_CCM_8_SHA256`, whose tag has 8 bytes (RFC 8446, B.4).
const CCM8: u16 = 0x1305;
/// An alert, before it is encrypted.
const ALERT_BYTES: u64 = 2;

/// A connection. Times are in nanoseconds since 1970; 0 for what did not happen.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pub(crate) opened: Opening,
    /// What was captured last.
    pub(crate) last_ns: u64,
    /// When the client sent data last, before either end closed.
    pub(crate) asked_ns: u64,
    /// The interface that it was seen on first; what others show of it is the same again.
    pub(crate) interface: u32,
    pub(crate) orders: [Order; 2],
    /// `None` if it cannot be judged: its beginning or a part of it was not captured.
    pub(crate) handshake: Option<Box<Handshake>>,
    /// Memory of the parts of messages that are not whole.
    pub(crate) kept_bytes: usize,
    /// Segments that the server sent again.
    pub(crate) sent_again: u64,
    /// Plaintext from and to the client.
    pub(crate) bytes: [u64; 2],
    /// Whether each end announced last that it takes no more.
    pub(crate) is_window_full: [bool; 2],
    pub(crate) first_close: Option<Close>,
    pub(crate) has_fin: [bool; 2],
    pub(crate) is_closed: bool,
    /// Whether it is counted; other connections may be of another protocol.
    pub(crate) is_counted: bool,
    /// TCP payload that is not counted yet.
    pub(crate) uncounted_wire: [u64; 2],
    pub(crate) conn: u64,
    /// The name of its service, and the index of the counter that counts it, once it is counted.
    pub(crate) service: Box<str>,
    pub(crate) counter: Option<usize>,
    pub(crate) mix: ConnectionMix,
    exchange: Exchange,
}

/// When it was opened.
#[expect(clippy::struct_field_names, reason = "the unit is part of each name")]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    pub(crate) syn_ns: u64,
    pub(crate) syn_ack_ns: u64,
    pub(crate) established_ns: u64,
}

/// Who closed it first, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Close {
    pub(crate) end: End,
    pub(crate) is_reset: bool,
    pub(crate) time_ns: u64,
}

/// The answer that a client waits for.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    /// The last data of the client that the server has not answered.
    asked_ns: u64,
    /// Whether the next data of the server may be a ticket, and no answer.
    is_ticket_due: bool,
}

/// What a segment's payload added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Added {
    /// TCP payload that is sent for the first time, in bytes.
    pub(crate) wire: u64,
    /// Plaintext, in bytes.
    pub(crate) plain: u64,
    /// From a client's last data to the server's answer, in nanoseconds.
    pub(crate) exchange_ns: Option<u64>,
    /// When the client sent what came before a ticket: its answer looks the same.
    pub(crate) unanswered_ns: Option<u64>,
}

impl Opening {
    /// The round trip between the capture and the client, and between the capture and the server.
    pub(crate) fn round_trips_ns(self) -> [u64; 2] {
        if self.syn_ack_ns == 0 {
            return [0, 0];
        }
        let to_server = if self.syn_ns == 0 { 0 } else { self.syn_ack_ns.saturating_sub(self.syn_ns) };
        [self.established_ns.saturating_sub(self.syn_ack_ns), to_server]
    }
}

impl Flow {
    pub(crate) fn new(interface: u32) -> Self {
        Self { interface, handshake: Some(Box::default()), ..Self::default() }
    }

    pub(crate) fn step(&self) -> Step {
        self.handshake.as_ref().map_or(Step::Opened, |handshake| handshake.step())
    }

    /// Whether both ends have said that they end, or one has broken it off.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_fin == [true; 2]
    }

    /// Whether something is missing that may say how the handshake ended.
    pub(crate) fn is_incomplete(&self) -> bool {
        let is_open = self.handshake.as_ref().is_some_and(|handshake| handshake.step() < Step::Complete);
        is_open && self.orders.iter().any(Order::is_missing)
    }

    /// Adds a segment, and what waited for it. `room` is the memory that all connections together may still keep of parts.
    /// Returns what was added to each direction.
    pub(crate) fn add(
        &mut self,
        end: End,
        segment: &Segment<'_>,
        time_ns: u64,
        room: &mut usize,
    ) -> [Added; 2] {
        let mut added = <[Added; 2]>::default();
        let payload = Payload {
            sequence: segment.sequence.wrapping_add(u32::from(segment.is_syn)),
            acknowledged: segment.acknowledged,
            time_ns,
            bytes: segment.payload,
            len: segment.len,
        };
        self.note_numbers(end, segment, payload);
        if payload.len > 0 {
            let is_due =
                self.orders[end as usize].is_next(payload) && self.is_answer(end, payload.acknowledged);
            if is_due || !self.orders[end as usize].keep(payload, room) {
                if !is_due {
                    added[end as usize] = self.give_up(end, room);
                    self.forget_if_broken(room);
                }
                self.take(end, payload, &mut added[end as usize]);
                self.forget_if_broken(room);
            }
        }
        while let Some((end, piece)) = self.pop(room) {
            self.take(end, piece.payload(), &mut added[end as usize]);
            self.forget_if_broken(room);
        }
        self.charge(room);
        for end in [End::Client, End::Server] {
            self.bytes[end as usize] += added[end as usize].plain;
        }
        added
    }

    /// Forgets the handshake if a part of it is missing for good. What the peer sent behind that part waits for it no
    /// longer, and must not be judged without it.
    fn forget_if_broken(&mut self, room: &mut usize) {
        let Some(handshake) = &self.handshake else { return };
        let is_lacking = |end: End| self.orders[end as usize].is_broken() && handshake.needs(end);
        if is_lacking(End::Client) || is_lacking(End::Server) {
            self.forget_handshake(room);
        }
    }

    /// Gives up what is missing. After the handshake it is plaintext as far as one can know, like all that follows.
    pub(crate) fn give_up(&mut self, end: End, room: &mut usize) -> Added {
        let wire = self.orders[end as usize].give_up(room);
        let plain = if self.step() == Step::Complete { wire } else { 0 };
        Added { wire, plain, ..Added::default() }
    }

    /// Notes what a segment says to have been sent.
    fn note_numbers(&mut self, end: End, segment: &Segment<'_>, payload: Payload<'_>) {
        let behind = payload.sequence.wrapping_add(payload.len);
        let order = &mut self.orders[end as usize];
        order.note_sent(behind);
        if segment.is_fin {
            order.note_fin(behind);
        }
        if let Some(acknowledged) = segment.acknowledged {
            self.orders[end.peer() as usize].note_sent(acknowledged);
        }
    }

    /// Whether all was read that the sender had read, as far as that is needed: a capture may have the answer before the
    /// question.
    fn is_answer(&self, end: End, acknowledged: Option<u32>) -> bool {
        let is_needed = self.handshake.as_ref().is_some_and(|handshake| handshake.needs(end.peer()));
        let peer = &self.orders[end.peer() as usize];
        !is_needed || peer.is_broken() || acknowledged.is_none_or(|sequence| peer.is_read_up_to(sequence))
    }

    /// The next payload that need not wait any more.
    fn pop(&mut self, room: &mut usize) -> Option<(End, Waiting)> {
        let mut ends = [End::Client, End::Server].into_iter();
        ends.find_map(|end| {
            if !self.orders[end as usize].has_waiting() {
                return None;
            }
            let mut order = std::mem::take(&mut self.orders[end as usize]);
            let piece = order.pop(|acknowledged| self.is_answer(end, acknowledged), room);
            self.orders[end as usize] = order;
            Some((end, piece?))
        })
    }

    /// Reads a payload.
    fn take(&mut self, end: End, payload: Payload<'_>, added: &mut Added) {
        let Self { orders, handshake, exchange, .. } = self;
        let order = &mut orders[end as usize];
        let plain_before = added.plain;
        let was_complete = handshake.as_ref().is_some_and(|handshake| handshake.step() == Step::Complete);
        let time_ns = payload.time_ns;
        let ordered = order.take(payload, |bytes| {
            let Some(handshake) = handshake else { return };
            let (is_tls13, overhead) = sealing(handshake);
            let before = handshake.step();
            handshake.read(end, time_ns, bytes, |len| {
                let is_goodbye = is_tls13 && u64::from(len) == overhead + ALERT_BYTES;
                added.plain += u64::from(len).saturating_sub(overhead);
                if !is_goodbye {
                    exchange.data(end, time_ns, added);
                }
            });
            if before < Step::Complete && handshake.step() == Step::Complete {
                exchange.is_ticket_due = is_tls13;
            }
        });
        added.wire += u64::from(ordered.new);
        self.sent_again += u64::from(end == End::Server && ordered.again > 0);
        if order.is_broken() && was_complete && ordered.new > 0 {
            // All payload counts in place of records, also of those before the cut: what follows is not known as records.
            added.plain = plain_before + u64::from(ordered.new);
            exchange.data(end, time_ns, added);
        }
    }

    /// Takes back the memory of parts, and gives it up as far as there is no room.
    fn charge(&mut self, room: &mut usize) {
        let kept = self.handshake.as_ref().map_or(0, |handshake| handshake.kept_bytes());
        *room += std::mem::take(&mut self.kept_bytes);
        match room.checked_sub(kept) {
            Some(left) => (*room, self.kept_bytes) = (left, kept),
            None => self.handshake = None,
        }
    }

    /// It cannot be judged any more.
    pub(crate) fn forget_handshake(&mut self, room: &mut usize) {
        self.handshake = None;
        *room += std::mem::take(&mut self.kept_bytes);
    }

    /// Gives back all memory of parts.
    pub(crate) fn release(&mut self, room: &mut usize) {
        *room += self.kept_bytes + self.orders.iter().map(Order::waiting_bytes).sum::<usize>();
        self.kept_bytes = 0;
    }
}

/// Whether it is TLS 1.3, and what encryption adds to each record.
fn sealing(handshake: &Handshake) -> (bool, u64) {
    match &handshake.choice {
        Some(choice) if choice.suite == CCM8 => (true, OVERHEAD13_CCM8_BYTES),
        Some(choice) if choice.is_tls13() => (true, OVERHEAD13_BYTES),
        Some(choice) if choice.suite.to_be_bytes()[0] == CHACHA12 => (false, OVERHEAD12_CHACHA_BYTES),
        _ => (false, OVERHEAD12_BYTES),
    }
}

impl Exchange {
    fn data(&mut self, end: End, time_ns: u64, added: &mut Added) {
        match end {
            End::Client => self.asked_ns = time_ns,
            End::Server if self.is_ticket_due => {
                added.unanswered_ns = Some(self.asked_ns).filter(|asked_ns| *asked_ns > 0);
                (self.is_ticket_due, self.asked_ns) = (false, 0);
            }
            End::Server if self.asked_ns > 0 => {
                added.exchange_ns = Some(time_ns.saturating_sub(self.asked_ns));
                self.asked_ns = 0;
            }
            End::Server => {}
        }
    }
}
