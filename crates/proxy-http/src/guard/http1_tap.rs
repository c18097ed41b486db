//! Follows the requests of an HTTP/1.1 connection: hyper gets each head by itself, with a request line that it accepts in
//! place of one that it would refuse. Where content ends, hyper says once it has read the head.

use std::cell::{Cell, RefCell};

use http_codec::chunked::Chunked;

use crate::request::target_text;

/// What hyper and the tap tell each other of a connection's requests.
#[derive(Debug, Default)]
pub(crate) struct Http1Requests {
    /// What follows the head that hyper has read, once it has.
    pub(crate) content: Cell<Option<Http1Content>>,
    /// The path of the next request with its query as it was received, if hyper gets another.
    pub(crate) received_path: RefCell<Option<Box<str>>>,
}

/// What follows the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http1Content {
    /// So many bytes, and then another request.
    Length(u64),
    /// Chunks, and then another request.
    Chunked,
    /// Perhaps another protocol.
    Unknown,
}

/// The position of the next byte for hyper in a connection.
#[derive(Debug, Default)]
pub(crate) struct Http1Tap {
    state: TapState,
    /// Bytes that hyper may read.
    ready: usize,
    /// Bytes behind them without the end of a request line.
    scanned: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TapState {
    #[default]
    RequestLine,
    /// In the fields of a head; whether the line has only a CR so far.
    Fields {
        is_line_empty: bool,
    },
    /// Behind a head that hyper has not read.
    Head,
    Content(u64),
    Chunks(Chunked),
    /// Nothing is known.
    Opaque,
}

impl Http1Tap {
    /// How much of `received` hyper may read now. With `is_last`, no more bytes follow.
    pub(crate) fn readable(&mut self, received: &mut [u8], is_last: bool, requests: &Http1Requests) -> usize {
        while self.ready < received.len() {
            let taken = self.look(&mut received[self.ready..], is_last, requests);
            if taken == 0 {
                break;
            }
            self.ready += taken;
            self.scanned = 0;
        }
        self.ready
    }

    /// Whether the next byte for hyper begins another request.
    pub(crate) fn is_between_requests(&self, requests: &Http1Requests) -> bool {
        let is_request_over = match self.state {
            TapState::RequestLine => true,
            TapState::Head => requests.content.get() == Some(Http1Content::Length(0)),
            TapState::Fields { .. } | TapState::Content(_) | TapState::Chunks(_) | TapState::Opaque => false,
        };
        is_request_over && self.ready == 0
    }

    /// Whether a part of the next request's head has arrived, and not all of it.
    pub(crate) fn is_within_head(&self) -> bool {
        match self.state {
            TapState::RequestLine => self.scanned > 0,
            TapState::Fields { .. } => true,
            TapState::Head | TapState::Content(_) | TapState::Chunks(_) | TapState::Opaque => false,
        }
    }

    /// Notes that hyper has read `n` bytes.
    pub(crate) fn consume(&mut self, n: usize) {
        self.ready -= n;
    }

    /// Looks at bytes that hyper has not read; returns how many it may.
    fn look(&mut self, bytes: &mut [u8], is_last: bool, requests: &Http1Requests) -> usize {
        match &mut self.state {
            TapState::RequestLine => self.look_at_line(bytes, is_last, requests),
            TapState::Fields { is_line_empty } => {
                let end = end_of_fields(bytes, is_line_empty);
                if end.is_some() {
                    self.state = TapState::Head;
                }
                end.unwrap_or(bytes.len())
            }
            TapState::Head => {
                self.state = match requests.content.take() {
                    None => return 0,
                    Some(Http1Content::Length(0)) => TapState::RequestLine,
                    Some(Http1Content::Length(length)) => TapState::Content(length),
                    Some(Http1Content::Chunked) => TapState::Chunks(Chunked::default()),
                    Some(Http1Content::Unknown) => TapState::Opaque,
                };
                self.look(bytes, is_last, requests)
            }
            TapState::Content(left) => {
                let taken = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                if *left == 0 {
                    self.state = TapState::RequestLine;
                }
                taken
            }
            TapState::Chunks(chunks) => {
                let Ok(taken) = chunks.feed(bytes, |_| ()) else { return self.give_up(bytes) };
                if chunks.is_done() {
                    self.state = TapState::RequestLine;
                }
                taken
            }
            TapState::Opaque => bytes.len(),
        }
    }

    fn look_at_line(&mut self, bytes: &mut [u8], is_last: bool, requests: &Http1Requests) -> usize {
        // hyper skips empty lines in front of a request.
        let empty = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if empty > 0 {
            return empty;
        }
        if let Some(at) = memchr::memchr(b'\n', &bytes[self.scanned..]) {
            let line = self.scanned + at + 1;
            adapt_line(&mut bytes[..line], requests);
            self.state = TapState::Fields { is_line_empty: true };
            return line;
        }
        self.scanned = bytes.len();
        // hyper answers a line without end.
        if is_last || self.scanned > target_text::PATH_BYTES_MAX { self.give_up(bytes) } else { 0 }
    }

    fn give_up(&mut self, bytes: &[u8]) -> usize {
        self.state = TapState::Opaque;
        bytes.len()
    }
}

/// The position after the empty line that ends the fields of a head, if it has arrived.
fn end_of_fields(bytes: &[u8], is_line_empty: &mut bool) -> Option<usize> {
    let is_empty = |line: &[u8]| line.iter().all(|byte| *byte == b'\r');
    let mut begin = 0;
    for at in memchr::memchr_iter(b'\n', bytes) {
        if std::mem::replace(is_line_empty, true) && is_empty(&bytes[begin..at]) {
            return Some(at + 1);
        }
        begin = at + 1;
    }
    *is_line_empty &= is_empty(&bytes[begin..]);
    None
}

/// Makes a request line one that hyper takes: a path without characters that no URI has, and the version 1.1 for a later
/// one (RFC 9110, section 2.5).
fn adapt_line(line: &mut [u8], requests: &Http1Requests) {
    let (Some(before), Some(behind)) = (memchr::memchr(b' ', line), memchr::memrchr(b' ', line)) else {
        return;
    };
    if let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor @ b'2'..=b'9', b'\r' | b'\n', ..] =
        &mut line[behind + 1..]
    {
        *minor = b'1';
    }
    let Some(path) = line.get_mut(before + 1..behind) else { return };
    if let Some(stand_in) = target_text::stand_in(path)
        && let Ok(received) = std::str::from_utf8(path)
    {
        requests.received_path.replace(Some(received.into()));
        path.copy_from_slice(&stand_in);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &str = "GET /a HTTP/1.1\r\nhost: a\r\nx: <y>\r\n\r\n";

    /// Reads a connection in pieces of `step` as hyper would, which says after each head what follows. Returns the pieces
    /// of each head and content, and the paths.
    fn read(sent: &str, contents: &[Http1Content], step: usize) -> (Vec<String>, Vec<String>) {
        let (mut tap, requests) = (Http1Tap::default(), Http1Requests::default());
        let (mut received, mut parts, mut paths) = (Vec::new(), vec![String::new()], Vec::new());
        let mut contents = contents.iter();
        let mut pieces = sent.as_bytes().chunks(step).peekable();
        while let Some(piece) = pieces.next() {
            received.extend_from_slice(piece);
            loop {
                let n = tap.readable(&mut received, pieces.peek().is_none(), &requests);
                tap.consume(n);
                let part = parts.last_mut().unwrap();
                part.extend(received.drain(..n).map(char::from));
                if tap.state == TapState::Head && requests.content.get().is_none() {
                    paths.extend(requests.received_path.take().map(String::from));
                    requests.content.set(contents.next().copied());
                    parts.push(String::new());
                }
                if n == 0 {
                    break;
                }
            }
        }
        parts.retain(|part| !part.is_empty());
        (parts, paths)
    }

    #[test]
    fn hyper_gets_one_head_at_a_time_and_what_is_odd_in_its_line_in_another_form() {
        use Http1Content::{Chunked, Length};
        let odd = "POST /<x>?\"`é HTTP/1.2\r\nhost: a\n\n";
        let chunks = "2;x=\"<\"\r\nhi\r\n0\r\nx: y\r\n\r\n";
        let sent = format!("\r\n{GET}{odd}{chunks}{GET}{odd}abc{GET}");
        for step in [1, 2, 3, 7, 50, 1_000] {
            let (parts, paths) = read(&sent, &[Length(0), Chunked, Length(0), Length(3), Length(0)], step);
            let passed = sent.replace("/<x>?\"`é HTTP/1.2", "/_x_?__é HTTP/1.1");
            let parts: Vec<u8> = parts.concat().chars().map(|byte| byte as u8).collect();
            assert_eq!(String::from_utf8(parts).unwrap(), passed, "in pieces of {step}");
            assert_eq!(paths, ["/<x>?\"`é"; 2], "in pieces of {step}");
        }
        let (parts, _) = read(&format!("{GET}{GET}"), &[Length(0); 2], 1_000);
        assert_eq!(parts, [GET, GET]);
    }

    #[test]
    fn what_is_no_request_passes_as_it_is() {
        for sent in [
            "no request",
            "GET",
            "\u{16}\u{3}\u{1}",
            "GET https://a/<b> HTTP/1.1\r\n",
            "GET <b> HTTP/1.1\r\n",
        ] {
            let (parts, paths) = read(sent, &[], 1_000);
            assert_eq!((parts.concat(), paths.len()), (sent.to_owned(), 0), "{sent:?}");
        }
        let tunnel = format!("{GET}GET /<a> HTTP/1.2\r\n");
        assert_eq!(read(&tunnel, &[Http1Content::Unknown], 1_000).0.concat(), tunnel);
        let broken = format!("{GET}zz\r\nGET /<a> HTTP/1.2\r\n");
        assert_eq!(read(&broken, &[Http1Content::Chunked], 1_000).0.concat(), broken);
    }

    #[test]
    fn a_line_without_end_is_hypers_to_answer() {
        let (mut tap, requests) = (Http1Tap::default(), Http1Requests::default());
        let mut received = vec![b'a'; target_text::PATH_BYTES_MAX];
        assert_eq!(tap.readable(&mut received, false, &requests), 0);
        received.push(b'a');
        assert_eq!(tap.readable(&mut received, false, &requests), received.len());
    }
}
