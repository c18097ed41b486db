//! The framing of a response: the length of its body, and whether the connection is kept.

use super::MalformedResponse;

/// The framing of a response's body, and whether its connection is kept, from the fields of its head.
pub(super) struct ResponseFraming {
    pub(super) body: BodyFraming,
    pub(super) keep_alive: bool,
}

pub(super) enum BodyFraming {
    Counted(u64),
    Chunked,
    UntilClose,
}

impl ResponseFraming {
    /// RFC 9112, section 6.3, and section 9.3 for the connection.
    pub(super) fn read(fields: &[httparse::Header<'_>], version: u8) -> Result<Self, MalformedResponse> {
        let mut length = None;
        let mut coded = false;
        let mut chunked = false;
        let mut keep_alive = version == 1;
        for field in fields {
            let name = field.name;
            if name.eq_ignore_ascii_case("content-length") {
                let bytes = content_length(field.value).ok_or(MalformedResponse)?;
                if length.is_some_and(|earlier| earlier != bytes) {
                    return Err(MalformedResponse);
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
            (true, true, _) => BodyFraming::Chunked,
            (true, false, _) | (false, _, None) => BodyFraming::UntilClose,
            (false, _, Some(bytes)) => BodyFraming::Counted(bytes),
        };
        // Both framings at once may be an attempt at smuggling: the following bytes cannot be trusted.
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
