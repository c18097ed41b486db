//! One connection that carries a request at a time: what carries it, and the answer that is being read.

use std::io;
use std::net::Ipv4Addr;

use crate::clock::now_ns;
use crate::http1::{Answer, Malformed, Parser};
use crate::ledger::Arrived;
use crate::socket::Address;
use crate::transport::{Received, Scratch, Transport};

/// Bytes that are told of what is no answer.
const SAMPLE_BYTES: usize = 60;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) transport: Transport,
    pub(crate) parser: Parser,
    /// Requests begun on it.
    pub(crate) requests: u32,
    /// Answers that were whole.
    pub(crate) answers: u32,
}

/// What reading has brought.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    /// What it has brought whatever the protocol.
    pub(crate) received: Received,
    /// The answer, when it has just become whole, or turned out to be none.
    pub(crate) answer: Option<Result<Answer, Malformed>>,
    /// When the answer came, as far as it did now.
    pub(crate) arrived: Arrived,
    /// The beginning of what is no answer.
    pub(crate) sample: Vec<u8>,
    /// Plaintext came that belongs to no answer.
    pub(crate) has_excess: bool,
}

impl Connection {
    /// Begins to connect.
    pub(crate) fn open(to: &Address, from: Option<Ipv4Addr>, now_ns: u64) -> io::Result<Self> {
        let transport = Transport::open(to, from, now_ns)?;
        Ok(Self { transport, parser: Parser::default(), requests: 0, answers: 0 })
    }

    /// Reads what there is, up to a bound. What TLS answers by itself stays in `scratch` until it is flushed.
    pub(crate) fn receive(&mut self, scratch: &mut Scratch) -> Inbound {
        let mut inbound = Inbound::default();
        let parser = &mut self.parser;
        inbound.received = self.transport.receive(scratch, |plaintext| inbound.plaintext(parser, plaintext));
        inbound
    }
}

impl Inbound {
    fn plaintext(&mut self, parser: &mut Parser, plaintext: &[u8]) {
        if self.answer.is_some() {
            self.has_excess = true;
            return;
        }
        let had_begun = parser.has_begun();
        let fed = parser.feed(plaintext);
        if !had_begun && parser.has_begun() {
            self.arrived.first_ns = now_ns();
        }
        match fed {
            Err(malformed) => {
                self.sample = plaintext[..plaintext.len().min(SAMPLE_BYTES)].to_vec();
                self.answer = Some(Err(malformed));
            }
            Ok(fed) => {
                if fed.answer.is_some() {
                    // Most answers come in one piece, whose time is known.
                    self.arrived.done_ns = if had_begun { now_ns() } else { self.arrived.first_ns };
                }
                self.answer = fed.answer.map(Ok);
                self.has_excess = fed.consumed < plaintext.len();
            }
        }
    }
}
