//! Responses and expected responses, common to all protocols.

use std::sync::Arc;

/// Most interim answers (1xx) before the final one.
pub(super) const INTERIM_MAX: u32 = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CompleteResponse {
    /// The status code; an echo has none.
    pub(crate) status: Option<u16>,
    /// True if the server allows another request on the connection.
    pub(crate) keep_alive: bool,
    /// Bytes of its head as received, including interim answers.
    pub(crate) head_bytes: u64,
    /// Equal to `head_bytes`, since this protocol has no header compression.
    pub(crate) head_plain_bytes: u64,
    /// Bytes of its body, without framing.
    pub(crate) body_bytes: u64,
    /// False if another body was expected.
    pub(crate) body_is_right: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ExpectedResponse {
    /// The request was a `HEAD`: its answer has no body, whatever its header fields.
    pub(crate) head_only: bool,
    /// The expected body, byte for byte.
    pub(crate) body: Option<Arc<[u8]>>,
    pub(crate) body_bytes: Option<u64>,
    /// A status that is no failure, even from 400 up.
    pub(crate) status: Option<u16>,
    /// There is only a body.
    pub(crate) is_raw: bool,
}

/// The received part of an answer's body, compared with the expected body.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BodyCheck {
    pub(super) bytes: u64,
    differs: bool,
}

impl BodyCheck {
    pub(super) fn take(&mut self, piece: &[u8], expected: &ExpectedResponse) {
        if let Some(body) = &expected.body {
            let at = usize::try_from(self.bytes).unwrap_or(usize::MAX);
            let is_same = at.checked_add(piece.len()).and_then(|end| body.get(at..end)) == Some(piece);
            self.differs |= !is_same;
        }
        self.bytes += piece.len() as u64;
    }

    /// True if the body is the expected one, now that it is complete.
    pub(super) fn is_right(&self, expected: &ExpectedResponse) -> bool {
        let length = expected.body.as_ref().map(|body| body.len() as u64).or(expected.body_bytes);
        !self.differs && (expected.head_only || length.is_none_or(|length| length == self.bytes))
    }
}
