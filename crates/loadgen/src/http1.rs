//! Answers of HTTP/1.1 taken apart as they come, in whatever pieces (RFC 9112, sections 4 to 7).
//!
//! Bodies are counted off, and compared where that is wanted, not kept: the parser holds at most one incomplete head.
//! An echo without any protocol is a body alone.

use std::mem::MaybeUninit;
use std::sync::Arc;

/// Longest head of an answer, and longest sum of chunk extensions and trailers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most header fields of an answer.
const FIELDS_MAX: usize = 128;
/// Most interim answers (1xx) before the final one.
const INTERIM_MAX: u32 = 16;

/// A whole answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The status code; an echo has none.
    pub(crate) status: Option<u16>,
    /// True if the server lets the connection carry another request.
    pub(crate) keep_alive: bool,
    /// Bytes of its head, interim answers included, as they came.
    pub(crate) head_bytes: u64,
    /// The same without compression, which this protocol has none of.
    pub(crate) head_plain_bytes: u64,
    /// Bytes of its body, without framing.
    pub(crate) body_bytes: u64,
    /// False if another body was expected.
    pub(crate) body_is_right: bool,
}

/// What the next answer is held to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    /// The request was a `HEAD`: its answer has no body, whatever its fields say.
    pub(crate) head_only: bool,
    /// What the body must be, byte for byte.
    pub(crate) body: Option<Arc<[u8]>>,
    /// How long the body must be.
    pub(crate) body_bytes: Option<u64>,
    /// There is nothing but the body.
    pub(crate) is_raw: bool,
}

/// What a piece of input led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fed {
    /// Bytes that belong to the answer; the rest of the input lies beyond it.
    pub(crate) consumed: usize,
    /// The answer, once it is whole.
    pub(crate) answer: Option<Answer>,
}

/// The answer is not HTTP/1.x, or larger than anything reasonable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Takes one answer after the other apart.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    state: State,
    /// The beginning of a head that came in pieces.
    head: Vec<u8>,
    expected: Expected,
    /// Bytes of the head so far.
    head_bytes: u64,
    /// Bytes of the body so far.
    body_bytes: u64,
    /// The body is not the expected one.
    body_differs: bool,
    /// Whether any byte of the answer has come.
    has_begun: bool,
    interim: u32,
    /// The answer whose body is being read.
    answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No answer is expected.
    #[default]
    Idle,
    Head,
    /// So many bytes of body are left.
    Counted(u64),
    Chunked(Chunked),
    /// The body ends with the connection.
    UntilClose,
}

impl Parser {
    /// Expects an answer. What was left of an earlier one is forgotten.
    pub(crate) fn expect(&mut self, expected: &Expected) {
        self.head.clear();
        self.state = State::Head;
        self.answer = None;
        if expected.is_raw {
            self.state = State::Counted(expected.body.as_ref().map_or(0, |body| body.len() as u64));
            self.answer = Some(Answer { keep_alive: true, ..Answer::default() });
        }
        // An expectation of a body is shared by all threads, and so is not touched without need.
        if expected.body.is_some() || self.expected.body.is_some() {
            self.expected.body.clone_from(&expected.body);
        }
        self.expected.head_only = expected.head_only;
        self.expected.body_bytes = expected.body_bytes;
        (self.head_bytes, self.body_bytes, self.body_differs) = (0, 0, false);
        self.has_begun = false;
        self.interim = 0;
    }

    /// True if a byte of the expected answer has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Takes in the next piece, up to the end of the answer. Nothing is consumed while no answer is expected.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Result<Fed, Malformed> {
        let mut consumed = 0;
        while consumed < input.len() {
            let rest = &input[consumed..];
            self.has_begun |= self.state != State::Idle;
            consumed += match self.state {
                State::Idle => break,
                State::Head => self.feed_head(rest)?,
                State::Counted(left) => {
                    let taken = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.state = State::Counted(left - taken as u64);
                    self.take_body(&rest[..taken]);
                    taken
                }
                State::Chunked(mut chunked) => {
                    let taken = chunked.feed(rest, |data| self.take_body(data))?;
                    self.state = State::Chunked(chunked);
                    taken
                }
                State::UntilClose => {
                    self.take_body(rest);
                    rest.len()
                }
            };
            if matches!(self.state, State::Counted(0) | State::Chunked(Chunked { step: Step::Done, .. })) {
                return Ok(Fed { consumed, answer: self.complete() });
            }
        }
        Ok(Fed { consumed, answer: None })
    }

    /// The connection has ended in order: that completes a body without a length.
    pub(crate) fn end(&mut self) -> Option<Answer> {
        if self.state != State::UntilClose {
            return None;
        }
        self.complete()
    }

    fn complete(&mut self) -> Option<Answer> {
        self.state = State::Idle;
        let answer = self.answer.take()?;
        let Expected { body, body_bytes, head_only, .. } = &self.expected;
        let length = body.as_ref().map(|body| body.len() as u64).or(*body_bytes);
        let length_differs = !head_only && length.is_some_and(|length| length != self.body_bytes);
        Some(Answer {
            head_bytes: self.head_bytes,
            head_plain_bytes: self.head_bytes,
            body_bytes: self.body_bytes,
            body_is_right: !self.body_differs && !length_differs,
            ..answer
        })
    }

    fn take_body(&mut self, piece: &[u8]) {
        let at = self.body_bytes;
        self.body_bytes += piece.len() as u64;
        if let Some(body) = &self.expected.body {
            let is_same = usize::try_from(at).is_ok_and(|at| body.get(at..at + piece.len()) == Some(piece));
            self.body_differs |= !is_same;
        }
    }

    /// Takes the bytes of a head; a head that comes in one piece is not copied.
    fn feed_head(&mut self, input: &[u8]) -> Result<usize, Malformed> {
        if self.head.is_empty() {
            if let Some(len) = self.parse_head(input)? {
                return Ok(len);
            }
            if input.len() > HEAD_BYTES_MAX {
                return Err(Malformed);
            }
            self.head.extend_from_slice(input);
            return Ok(input.len());
        }
        let before = self.head.len();
        let room = (HEAD_BYTES_MAX + 1).saturating_sub(before);
        self.head.extend_from_slice(&input[..input.len().min(room)]);
        // Parsing only once the blank line is there keeps a server that drips byte by byte from costing
        // quadratic work.
        if !has_blank_line(&self.head, before) {
            return if self.head.len() > HEAD_BYTES_MAX { Err(Malformed) } else { Ok(input.len()) };
        }
        let head = std::mem::take(&mut self.head);
        let parsed = self.parse_head(&head);
        self.head = head;
        self.head.clear();
        // A blank line before the status line looks like the end of the head and is not; nobody sends one.
        let len = parsed?.ok_or(Malformed)?;
        len.checked_sub(before).ok_or(Malformed)
    }

    /// Parses a head if all of it is there, gives its length, and goes on to the body.
    fn parse_head(&mut self, input: &[u8]) -> Result<Option<usize>, Malformed> {
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default()
            .parse_response_with_uninit_headers(&mut response, input, &mut fields)
            .map_err(|_| Malformed)?;
        let httparse::Status::Complete(len) = parsed else { return Ok(None) };
        self.head_bytes += len as u64;
        let (Some(status), Some(version)) = (response.code, response.version) else { return Err(Malformed) };
        match status {
            // An upgrade was never asked for (RFC 9110, section 15.2.2).
            0..100 | 101 | 600.. => return Err(Malformed),
            100..200 => {
                self.interim += 1;
                return if self.interim > INTERIM_MAX { Err(Malformed) } else { Ok(Some(len)) };
            }
            _ => {}
        }
        let framing = Framing::read(response.headers, version)?;
        let without_body = self.expected.head_only || matches!(status, 204 | 304);
        self.state = match framing.body {
            _ if without_body => State::Counted(0),
            Body::Chunked => State::Chunked(Chunked::default()),
            Body::Counted(bytes) => State::Counted(bytes),
            Body::UntilClose => State::UntilClose,
        };
        let keep_alive = framing.keep_alive && self.state != State::UntilClose;
        self.answer = Some(Answer { status: Some(status), keep_alive, ..Answer::default() });
        Ok(Some(len))
    }
}

/// True if a blank line ends within `head`, looking only where `before` bytes were already searched.
fn has_blank_line(head: &[u8], before: usize) -> bool {
    // The blank line may have begun in the earlier part, by up to three bytes.
    let new = &head[before.saturating_sub(3)..];
    new.windows(2).any(|pair| pair == b"\n\n") || new.windows(3).any(|three| three == b"\n\r\n")
}

/// What the fields of a head say about its body and its connection.
struct Framing {
    body: Body,
    keep_alive: bool,
}

enum Body {
    Counted(u64),
    Chunked,
    UntilClose,
}

impl Framing {
    /// RFC 9112, section 6.3, and section 9.3 for the connection.
    fn read(fields: &[httparse::Header<'_>], version: u8) -> Result<Self, Malformed> {
        let mut length = None;
        let mut coded = false;
        let mut chunked = false;
        let mut keep_alive = version == 1;
        for field in fields {
            let name = field.name;
            if name.eq_ignore_ascii_case("content-length") {
                let bytes = content_length(field.value).ok_or(Malformed)?;
                if length.is_some_and(|earlier| earlier != bytes) {
                    return Err(Malformed);
                }
                length = Some(bytes);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                coded = true;
                // Only the last coding frames the body.
                chunked =
                    tokens(field.value).last().is_some_and(|last| last.eq_ignore_ascii_case(b"chunked"));
            } else if name.eq_ignore_ascii_case("connection") {
                for token in tokens(field.value) {
                    if token.eq_ignore_ascii_case(b"close") {
                        keep_alive = false;
                    } else if token.eq_ignore_ascii_case(b"keep-alive") && version == 0 {
                        keep_alive = true;
                    }
                }
            }
        }
        let body = match (coded, chunked, length) {
            (true, true, _) => Body::Chunked,
            (true, false, _) | (false, _, None) => Body::UntilClose,
            (false, _, Some(bytes)) => Body::Counted(bytes),
        };
        // Both framings at once may be an attempt at smuggling: what follows cannot be trusted.
        let keep_alive = keep_alive && !(coded && length.is_some());
        Ok(Self { body, keep_alive })
    }
}

fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|b| *b == b',').map(<[u8]>::trim_ascii)
}

/// A number of bytes, or a list of the same number (RFC 9110, section 8.6).
fn content_length(value: &[u8]) -> Option<u64> {
    let mut all = tokens(value).map(|digits| {
        let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
        plain.then(|| std::str::from_utf8(digits).ok()?.parse::<u64>().ok()).flatten()
    });
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// The chunked coding, taken off as it comes (RFC 9112, section 7.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Chunked {
    step: Step,
    /// Bytes of extensions and trailers so far, which are bounded.
    overhead: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// In the digits of a size: the value so far, and how many digits there were.
    Size {
        size: u64,
        digits: u32,
    },
    /// In the rest of a line with this chunk's size.
    Extension {
        size: u64,
    },
    /// So many bytes of the chunk are left.
    Data(u64),
    /// At the line break after a chunk; a line feed alone will do.
    AfterData,
    /// In a trailer line that has so many bytes; an empty one ends the body.
    Trailer {
        len: u32,
    },
    Done,
}

impl Default for Step {
    fn default() -> Self {
        Self::Size { size: 0, digits: 0 }
    }
}

impl Chunked {
    /// Takes bytes up to the end of the body, gives their number, and hands on what is not framing.
    fn feed(&mut self, input: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, Malformed> {
        let mut at = 0;
        while at < input.len() && self.step != Step::Done {
            if let Step::Data(left) = self.step {
                let taken = (input.len() - at).min(usize::try_from(left).unwrap_or(usize::MAX));
                data(&input[at..at + taken]);
                at += taken;
                let left = left - taken as u64;
                self.step = if left == 0 { Step::AfterData } else { Step::Data(left) };
            } else {
                self.step = self.next(input[at])?;
                at += 1;
            }
        }
        Ok(at)
    }

    fn next(&mut self, byte: u8) -> Result<Step, Malformed> {
        Ok(match (self.step, byte) {
            (Step::Size { size, digits }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') if digits < 15 => {
                let digit = char::from(byte).to_digit(16).ok_or(Malformed)?;
                Step::Size { size: size * 16 + u64::from(digit), digits: digits + 1 }
            }
            (Step::Size { digits: 0, .. }, _) => return Err(Malformed),
            (Step::Size { size, .. } | Step::Extension { size }, b'\n') => match size {
                0 => Step::Trailer { len: 0 },
                size => Step::Data(size),
            },
            (Step::Size { size, .. }, b'\r' | b';' | b' ' | b'\t') => Step::Extension { size },
            (Step::Extension { size }, _) => {
                self.spend()?;
                Step::Extension { size }
            }
            (Step::AfterData, b'\r') => Step::AfterData,
            (Step::AfterData, b'\n') => Step::default(),
            (Step::Trailer { len: 0 }, b'\n') => Step::Done,
            (Step::Trailer { .. }, b'\n') => Step::Trailer { len: 0 },
            (Step::Trailer { len }, b'\r') => Step::Trailer { len },
            (Step::Trailer { len }, _) => {
                self.spend()?;
                Step::Trailer { len: len + 1 }
            }
            _ => return Err(Malformed),
        })
    }

    fn spend(&mut self) -> Result<(), Malformed> {
        self.overhead += 1;
        if self.overhead > HEAD_BYTES_MAX { Err(Malformed) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds an input in pieces of these sizes, again and again from the first.
    fn feed(
        parser: &mut Parser,
        input: &[u8],
        sizes: &[usize],
    ) -> Result<(usize, Option<Answer>), Malformed> {
        let mut consumed = 0;
        for size in sizes.iter().cycle() {
            let end = (consumed + size).min(input.len());
            let fed = parser.feed(&input[consumed..end])?;
            consumed += fed.consumed;
            if fed.answer.is_some() || consumed == input.len() {
                return Ok((consumed, fed.answer));
            }
        }
        unreachable!("the sizes are above zero")
    }

    fn parse(input: &[u8]) -> Result<(usize, Option<Answer>), Malformed> {
        let mut parser = Parser::default();
        parser.expect(&Expected::default());
        feed(&mut parser, input, &[usize::MAX / 2])
    }

    fn kept(input: &str) -> bool {
        parse(input.as_bytes()).unwrap().1.unwrap().keep_alive
    }

    #[test]
    fn the_answer_ends_where_its_body_does() {
        let input = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 ...";
        let (consumed, answer) = parse(input).unwrap();
        assert_eq!(consumed, input.len() - b"HTTP/1.1 ...".len());
        let Answer { status, keep_alive, body_bytes, .. } = answer.unwrap();
        assert_eq!((status, keep_alive, body_bytes), (Some(200), true, 3));
    }

    #[test]
    fn nothing_is_taken_while_nothing_is_expected() {
        let mut parser = Parser::default();
        assert_eq!(parser.feed(b"HTTP/1.1 408 \r\n"), Ok(Fed { consumed: 0, answer: None }));
    }

    #[test]
    fn the_connection_is_kept_as_version_and_fields_say() {
        assert!(kept("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(!kept("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: foo, Close\r\n\r\n"));
        assert!(!kept("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(kept("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n"));
        // Both framings: the coding wins, and the connection is not used again (RFC 9112, section 6.3).
        assert!(!kept("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
    }

    #[test]
    fn a_body_without_a_length_ends_with_the_connection() {
        let mut parser = Parser::default();
        parser.expect(&Expected::default());
        let input = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nanything";
        assert_eq!(feed(&mut parser, input, &[7]), Ok((input.len(), None)));
        assert!(matches!(
            parser.end(),
            Some(Answer { status: Some(200), keep_alive: false, body_bytes: 8, .. })
        ));
        assert_eq!(parser.end(), None);
    }

    #[test]
    fn an_end_in_the_middle_completes_nothing() {
        let cases = ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"];
        for input in cases {
            let mut parser = Parser::default();
            parser.expect(&Expected::default());
            parser.feed(input.as_bytes()).unwrap();
            assert_eq!(parser.end(), None, "{input:?}");
            assert_eq!(parser.has_begun(), !input.is_empty());
        }
    }

    #[test]
    fn a_list_of_equal_lengths_is_one_length() {
        let same = b"HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\nContent-Length: 3\r\n\r\nabc";
        assert_eq!(parse(same).unwrap().0, same.len());
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc"), Err(Malformed));
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"), Err(Malformed));
        assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc"), Err(Malformed));
    }

    #[test]
    fn heads_are_bounded_however_they_come() {
        let mut input = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
        input.resize(2 * HEAD_BYTES_MAX, b'y');
        for size in [1, 1_000, HEAD_BYTES_MAX, 2 * HEAD_BYTES_MAX] {
            let mut parser = Parser::default();
            parser.expect(&Expected::default());
            assert_eq!(feed(&mut parser, &input, &[size]), Err(Malformed), "in pieces of {size}");
            assert!(parser.head.len() <= HEAD_BYTES_MAX + 1);
        }
    }

    /// An answer in chunks, written out with the sizes given, and its length.
    fn chunked(sizes: &[usize], extension: &str, trailer: &str) -> Vec<u8> {
        let mut input = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for size in sizes {
            input.extend_from_slice(format!("{size:x}{extension}\r\n").as_bytes());
            input.resize(input.len() + size, b'\n');
            input.extend_from_slice(b"\r\n");
        }
        input.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
        input
    }

    #[test]
    fn a_body_is_held_to_what_is_expected() {
        let is_right = |body: &str, expected: Expected| {
            let mut parser = Parser::default();
            parser.expect(&expected);
            let input = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            feed(&mut parser, input.as_bytes(), &[2]).unwrap().1.unwrap().body_is_right
        };
        let same = |body: &str| Expected { body: Some(body.as_bytes().into()), ..Expected::default() };
        assert!(is_right("hello", same("hello")));
        for other in ["hellp", "hell", "helloo", ""] {
            assert!(!is_right(other, same("hello")), "{other}");
        }
        let long = |bytes| Expected { body_bytes: Some(bytes), ..Expected::default() };
        assert!(is_right("hello", long(5)));
        assert!(!is_right("hello", long(6)));
    }

    #[test]
    fn an_echo_is_a_body_alone() {
        let mut parser = Parser::default();
        parser.expect(&Expected { body: Some(b"ping"[..].into()), is_raw: true, ..Expected::default() });
        let (consumed, answer) = feed(&mut parser, b"pingpong", &[3]).unwrap();
        let answer = answer.unwrap();
        assert_eq!((consumed, answer.status, answer.body_is_right), (4, None, true));
        assert!(answer.keep_alive);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            chunks in proptest::collection::vec(1_usize..300, 0..6),
            body in 0_usize..500,
            extension in prop_oneof![Just(""), Just(";a=b"), Just(" ; a=\"b\"")],
            trailer in prop_oneof![Just(""), Just("A: b\r\nC: d\r\n")],
            pieces in proptest::collection::vec(1_usize..40, 1..20),
        ) {
            let mut counted = format!("HTTP/1.1 404 No\r\nContent-Length: {body}\r\n\r\n").into_bytes();
            counted.resize(counted.len() + body, b'\r');
            let interim = [b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), counted.clone()].concat();
            let in_chunks = chunks.iter().sum::<usize>();
            let cases = [
                (chunked(&chunks, extension, trailer), 200, in_chunks),
                (counted, 404, body),
                (interim, 404, body),
            ];
            for (input, status, body_bytes) in cases {
                let mut parser = Parser::default();
                parser.expect(&Expected::default());
                let excess = [input.clone(), b"HTTP/1.1".to_vec()].concat();
                let (consumed, answer) = feed(&mut parser, &excess, &pieces).unwrap();
                prop_assert_eq!(consumed, input.len());
                prop_assert_eq!(parse(&excess), Ok((consumed, answer)));
                let answer = answer.unwrap();
                prop_assert_eq!((answer.status, answer.keep_alive), (Some(status), true));
                prop_assert_eq!(answer.body_bytes, body_bytes as u64);
            }
        }

        #[test]
        fn no_input_makes_the_parser_panic_or_take_too_much(
            head in prop_oneof![
                Just(&b""[..]),
                Just(&b"HTTP/1.1 200 OK\r\n"[..]),
                Just(&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..]),
            ],
            noise in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b'0')], 1..300),
            pieces in proptest::collection::vec(1_usize..40, 1..20),
        ) {
            let input = [head, &noise].concat();
            let mut parser = Parser::default();
            parser.expect(&Expected::default());
            if let Ok((consumed, _)) = feed(&mut parser, &input, &pieces) {
                prop_assert!(consumed <= input.len());
            }
        }
    }
}
