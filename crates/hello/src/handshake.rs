//! One handshake, from the bytes of both directions in order.
//!
//! What says that it is complete, and how: in TLS 1.3 the `ServerHello` with or without a pre-shared key, and the first
//! encrypted record of the client behind it that is no alert; in TLS 1.2 the last side's encrypted `Finished`, with
//! `ServerHelloDone` in a full handshake only.

use crate::stream::{Protection, StreamEvent, TlsStream, content, message};
use crate::{ClientHello, ServerHello, key_exchange_group};

/// Length of an encrypted alert of TLS 1.3 without padding: two bytes, the content type and the tag (RFC 8446, 5.2).
const ALERT13_BYTES: u16 = 2 + 1 + 16;
/// The tag with the suites of `CCM_8`.
const ALERT13_SHORT_BYTES: u16 = 2 + 1 + 8;
/// Lengths of an encrypted `Finished` of TLS 1.3, with SHA-256 and with SHA-384.
const FINISHED13_BYTES: [u16; 2] = [4 + 32 + 1 + 16, 4 + 48 + 1 + 16];
/// The description of the alert that says goodbye.
pub const CLOSE_NOTIFY: u8 = 0;
/// A client of `PostgreSQL` asks for TLS with these bytes, and a server that speaks it answers with one.
const POSTGRES_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];
const POSTGRES_YES: u8 = b'S';

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

impl End {
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// How far a handshake is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Nothing came of the client.
    #[default]
    Opened,
    /// A part of the `ClientHello` came.
    Begun,
    /// The `ClientHello` is whole; the server's flight is awaited.
    Asked,
    /// The server chose; the client's last flight is awaited.
    Answered,
    Complete,
    Failed,
}

/// Why a handshake failed, as far as its bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    NotTls(End),
    /// An alert, by its description; `None` if it is encrypted.
    Alert(End, Option<u8>),
    /// The `ClientHello` or the `ServerHello` cannot be read.
    Malformed(End),
}

/// What is remembered of a handshake.
#[expect(clippy::struct_excessive_bools, reason = "each was seen or was not")]
#[derive(Debug, Default)]
pub struct Handshake {
    streams: [TlsStream; 2],
    step: Step,
    pub fault: Option<Fault>,
    pub offer: Option<ClientHello>,
    pub choice: Option<ServerHello>,
    pub is_retried: bool,
    /// A full handshake of TLS 1.2.
    has_server_done: bool,
    has_client_cipher: bool,
    /// The server's flight of TLS 1.3 has ended.
    has_server_finished: bool,
    /// Data came behind that flight, before the client's `Finished`.
    has_early_answer: bool,
    is_postgres: bool,
    pub times: HandshakeTimes,
}

/// When the parts of a handshake came, in nanoseconds since 1970; 0 for what did not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeTimes {
    /// The first byte of the `ClientHello`.
    pub begun_ns: u64,
    /// The flight of the client that the server has not answered yet.
    asked_ns: u64,
    /// The flight of the server that the client has not answered yet.
    answered_ns: u64,
    pub done_ns: u64,
    /// The server's time: from each flight of the client to its answer, summed.
    pub server_ns: u64,
    /// The client's time with the round trips: from each flight of the server to its answer, summed.
    pub client_ns: u64,
    /// The flights of the server that the client answered, and of the client that the server answered.
    pub client_flights: u32,
    pub server_flights: u32,
}

impl Handshake {
    pub fn step(&self) -> Step {
        self.step
    }

    /// Whether it resumed a session; meaningful once it is complete.
    pub fn is_resumed(&self) -> bool {
        match &self.choice {
            Some(choice) if choice.is_tls13() => choice.has_psk,
            _ => !self.has_server_done,
        }
    }

    /// Whether the client offered to resume, in a way that the version chosen knows.
    pub fn has_offer(&self) -> bool {
        let (Some(offer), Some(choice)) = (&self.offer, &self.choice) else { return false };
        let resumption = offer.resumption;
        if choice.is_tls13() {
            return resumption.has_psk;
        }
        // A client of TLS 1.3 sends a session identifier without a session (RFC 8446, D.4).
        resumption.has_ticket || (resumption.has_session_id && !offer.choices.has_tls13())
    }

    /// Whether what this end sends is needed to judge the handshake.
    pub fn needs(&self, end: End) -> bool {
        let is_tls13 = self.choice.as_ref().is_some_and(ServerHello::is_tls13);
        self.step < Step::Complete && !(end == End::Server && self.step == Step::Answered && is_tls13)
    }

    /// Reads bytes of one end that came at a time, in order. `data` is told the length of each record of application data
    /// once the handshake is complete.
    pub fn read(&mut self, end: End, time_ns: u64, mut bytes: &[u8], mut data: impl FnMut(u16)) {
        if self.step == Step::Failed || bytes.is_empty() {
            return;
        }
        if self.step <= Step::Begun && self.is_postgres(end, &mut bytes) {
            return;
        }
        if end == End::Client && self.step == Step::Opened {
            self.step = Step::Begun;
            self.times.begun_ns = time_ns;
        }
        // A server that speaks first speaks something else.
        if end == End::Server && self.step <= Step::Begun {
            return self.fail(Fault::NotTls(End::Server));
        }
        let mut stream = std::mem::take(&mut self.streams[end as usize]);
        stream.read(bytes, |event| match event {
            StreamEvent::Encrypted { content: content::APPLICATION_DATA, len }
                if self.step == Step::Complete =>
            {
                data(len);
                Protection::Encrypted
            }
            event => self.event(end, time_ns, event),
        });
        self.streams[end as usize] = stream;
    }

    /// Bytes kept of messages that are not whole.
    pub fn kept_bytes(&self) -> usize {
        self.streams.iter().map(TlsStream::kept_bytes).sum()
    }

    /// Takes the request for TLS that `PostgreSQL`'s clients send first, and its answer. True if nothing else is there.
    fn is_postgres(&mut self, end: End, bytes: &mut &[u8]) -> bool {
        match end {
            End::Client if self.step == Step::Opened && !self.is_postgres => {
                self.is_postgres = **bytes == POSTGRES_REQUEST;
                self.is_postgres
            }
            End::Server if self.is_postgres && self.step == Step::Opened => {
                if bytes[0] != POSTGRES_YES || bytes.len() > 1 {
                    self.fail(Fault::NotTls(End::Server));
                }
                true
            }
            _ => false,
        }
    }

    fn fail(&mut self, fault: Fault) {
        self.fault = Some(fault);
        self.step = Step::Failed;
    }

    fn event(&mut self, end: End, time_ns: u64, event: StreamEvent<'_>) -> Protection {
        if self.step >= Step::Complete {
            return Protection::Encrypted;
        }
        match (end, event) {
            (_, StreamEvent::NotTls) => self.fail(match self.step {
                Step::Begun => Fault::NotTls(end),
                _ => Fault::Malformed(end),
            }),
            (_, StreamEvent::Alert { is_fatal, description }) => {
                // A warning ends nothing, but for the one that says goodbye.
                if is_fatal || description == CLOSE_NOTIFY {
                    self.fail(Fault::Alert(end, Some(description)));
                }
            }
            (End::Client, StreamEvent::Message { kind: message::CLIENT_HELLO, body }) => {
                self.client_hello(time_ns, body);
            }
            (End::Server, StreamEvent::Message { kind: message::SERVER_HELLO, body }) => {
                self.server_hello(time_ns, body);
            }
            (End::Server, StreamEvent::Message { kind: message::SERVER_KEY_EXCHANGE, body }) => {
                if let Some(choice) = &mut self.choice {
                    choice.group = key_exchange_group(body);
                }
            }
            (End::Server, StreamEvent::Message { kind: message::SERVER_HELLO_DONE, .. }) => {
                self.has_server_done = true;
                self.times.answered_ns = time_ns;
            }
            (_, StreamEvent::Message { .. }) => {
                if self.step == Step::Begun {
                    self.fail(Fault::NotTls(end));
                }
            }
            (End::Client, StreamEvent::ChangeCipherSpec) if self.is_tls12() => {
                if self.has_server_done {
                    self.client_answered(time_ns);
                }
                self.has_client_cipher = true;
                return Protection::Encrypted;
            }
            (End::Server, StreamEvent::ChangeCipherSpec) if self.is_tls12() => {
                if self.has_server_done {
                    self.server_answered(time_ns);
                } else {
                    self.times.answered_ns = time_ns;
                }
                return Protection::Encrypted;
            }
            // That of TLS 1.3 means nothing.
            (_, StreamEvent::ChangeCipherSpec) => {}
            (_, StreamEvent::Encrypted { content: content::ALERT, .. }) => {
                self.fail(Fault::Alert(end, None));
            }
            (_, StreamEvent::Encrypted { content, len }) => self.encrypted(end, time_ns, content, len),
        }
        Protection::Clear
    }

    fn is_tls12(&self) -> bool {
        self.choice.as_ref().is_some_and(|choice| !choice.is_tls13())
    }

    fn client_hello(&mut self, time_ns: u64, body: &[u8]) {
        let Some(offer) = ClientHello::parse(body) else {
            return self.fail(Fault::Malformed(End::Client));
        };
        if self.is_retried {
            self.client_answered(time_ns);
        }
        // The first says what the client wanted; the second says what it resumes.
        match &mut self.offer {
            Some(first) => first.resumption = offer.resumption,
            none => *none = Some(offer),
        }
        self.times.asked_ns = time_ns;
        self.step = Step::Asked;
    }

    fn server_hello(&mut self, time_ns: u64, body: &[u8]) {
        let Some(choice) = ServerHello::parse(body) else {
            return self.fail(Fault::Malformed(End::Server));
        };
        self.server_answered(time_ns);
        if choice.is_retry {
            self.is_retried = true;
            return;
        }
        self.choice = Some(choice);
        self.step = Step::Answered;
    }

    /// A record that is encrypted, before the handshake is complete.
    fn encrypted(&mut self, end: End, time_ns: u64, content: u8, len: u16) {
        let Some(choice) = &self.choice else {
            // Early data come before the ServerHello.
            if self.offer.as_ref().is_none_or(|offer| !offer.has_early_data) {
                self.fail(Fault::NotTls(end));
            }
            return;
        };
        if choice.is_tls13() {
            // A retry ends early data (RFC 8446, 4.1.2).
            let is_early = !self.is_retried && self.offer.as_ref().is_some_and(|offer| offer.has_early_data);
            match (end, len) {
                // The server has answered early data, and says goodbye before the client's Finished has come.
                (End::Server, ALERT13_BYTES | ALERT13_SHORT_BYTES) if is_early && self.has_early_answer => {}
                (_, ALERT13_BYTES | ALERT13_SHORT_BYTES) => self.fail(Fault::Alert(end, None)),
                // Early data and their end stand before the client's Finished.
                (End::Client, len) if !is_early || FINISHED13_BYTES.contains(&len) => {
                    self.complete(end, time_ns);
                }
                (End::Server, len) => {
                    self.has_early_answer = self.has_server_finished;
                    self.has_server_finished |= FINISHED13_BYTES.contains(&len);
                }
                _ => {}
            }
            return;
        }
        // The Finished of the server ends a full handshake, that of the client a resumed one.
        let is_last = match end {
            End::Server => self.has_server_done && self.has_client_cipher,
            End::Client => !self.has_server_done && self.has_client_cipher,
        };
        if is_last && content == content::HANDSHAKE {
            self.complete(end, time_ns);
        }
    }

    fn complete(&mut self, end: End, time_ns: u64) {
        if end == End::Client {
            self.client_answered(time_ns);
        }
        self.times.done_ns = time_ns;
        self.step = Step::Complete;
    }

    fn server_answered(&mut self, time_ns: u64) {
        self.times.server_ns += time_ns.saturating_sub(self.times.asked_ns);
        self.times.server_flights += 1;
        self.times.answered_ns = time_ns;
    }

    fn client_answered(&mut self, time_ns: u64) {
        self.times.client_ns += time_ns.saturating_sub(self.times.answered_ns);
        self.times.client_flights += 1;
        self.times.asked_ns = time_ns;
    }
}
