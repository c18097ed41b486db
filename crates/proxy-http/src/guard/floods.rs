//! Floods of HTTP/2: frames that cost the client nothing and the proxy work. A connection has a budget for each kind,
//! which grows with time and with what the client does that is no flood. h2 has limits of its own, which end a
//! connection with a GOAWAY that [`Flood::of_goaway`] tells apart.

use std::time::{Duration, Instant};

use records::metrics::HttpCounter;

use crate::config::limits::HttpLimits;

/// How long an empty budget takes to be full again.
pub(crate) const REFILL_TIME: Duration = Duration::from_secs(30);
/// The cost of a reset, if a stream earns 1: a client may reset every fourth stream for ever.
const RESET_COST: u32 = 4;
/// Control frames that a new stream explains, such as `WINDOW_UPDATE` and `PRIORITY_UPDATE`.
const CONTROL_OF_STREAM: u32 = 8;
/// Control frames that DATA to the client explains: `WINDOW_UPDATE` of the stream and of the connection, a PING that
/// measures the round trip, and one more.
const CONTROL_OF_DATA_SENT: u32 = 4;

/// The kind of flood that ends a connection: frames that cost work and request nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    /// Rapid reset (CVE-2023-44487) or `MadeYouReset` (CVE-2025-8671).
    Resets,
    /// PING, SETTINGS, PRIORITY or `WINDOW_UPDATE`.
    Control,
    /// CONTINUATION without an end, or a header block that grows too large.
    Headers,
    /// DATA that carries nothing, or next to nothing.
    Empty,
}

impl Flood {
    /// The flood for which h2 ends a connection, if any: only the debug data of its GOAWAY shows it.
    pub(crate) fn of_goaway(payload: &[u8]) -> Option<Self> {
        match payload.get(8..)? {
            b"too_many_resets" | b"too_many_internal_resets" => Some(Self::Resets),
            b"too_many_continuations" | b"header_list_way_too_large" => Some(Self::Headers),
            b"too_many_data_frames" => Some(Self::Empty),
            _ => None,
        }
    }

    pub(crate) fn counter(self) -> HttpCounter {
        match self {
            Self::Resets => HttpCounter::FloodResets,
            Self::Control => HttpCounter::FloodControl,
            Self::Headers => HttpCounter::FloodHeaders,
            Self::Empty => HttpCounter::FloodEmpty,
        }
    }

    /// The description in the connection's record.
    pub(crate) fn detail(self) -> &'static str {
        match self {
            Self::Resets => "flood: too many streams were reset",
            Self::Control => "flood: too many PING, SETTINGS, PRIORITY or WINDOW_UPDATE frames",
            Self::Headers => "flood: a header block without end",
            Self::Empty => "flood: too many DATA frames with next to no data",
        }
    }
}

/// The budgets of a connection against floods.
#[derive(Debug)]
pub(crate) struct FloodBudgets {
    resets: TokenBucket,
    control: TokenBucket,
}

impl FloodBudgets {
    pub(crate) fn new(limits: &HttpLimits, now: Instant) -> Self {
        let capacity =
            |max: usize, cost: u32| u32::try_from(max).unwrap_or(u32::MAX / 8).saturating_mul(cost);
        Self {
            resets: TokenBucket::new(capacity(limits.resets_max, RESET_COST), now),
            control: TokenBucket::new(capacity(limits.control_frames_max, 1), now),
        }
    }

    pub(crate) fn earn_stream(&mut self) {
        self.resets.earn(1);
        self.control.earn(CONTROL_OF_STREAM);
    }

    #[inline]
    pub(crate) fn earn_data_received(&mut self, has_content: bool) {
        self.control.earn(u32::from(has_content));
    }

    #[inline]
    pub(crate) fn earn_data_sent(&mut self) {
        self.control.earn(CONTROL_OF_DATA_SENT);
    }

    pub(crate) fn spend_reset(&mut self, now: Instant) -> Option<Flood> {
        self.resets.spend(RESET_COST, now).err().map(|BucketEmpty| Flood::Resets)
    }

    #[inline]
    pub(crate) fn spend_control(&mut self, now: Instant) -> Option<Flood> {
        self.control.spend(1, now).err().map(|BucketEmpty| Flood::Control)
    }
}

/// Tokens that come back with time. The clock is looked at only when none are left.
#[derive(Debug)]
struct TokenBucket {
    tokens: u32,
    capacity: u32,
    filled_at: Instant,
}

struct BucketEmpty;

impl TokenBucket {
    fn new(capacity: u32, now: Instant) -> Self {
        Self { tokens: capacity, capacity, filled_at: now }
    }

    #[inline]
    fn earn(&mut self, tokens: u32) {
        self.tokens = self.tokens.saturating_add(tokens).min(self.capacity);
    }

    #[inline]
    fn spend(&mut self, cost: u32, now: Instant) -> Result<(), BucketEmpty> {
        if self.tokens < cost {
            self.refill(now);
        }
        self.tokens = self.tokens.checked_sub(cost).ok_or(BucketEmpty)?;
        Ok(())
    }

    #[cold]
    fn refill(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.filled_at).min(REFILL_TIME);
        let tokens = u64::from(self.capacity) * elapsed.as_micros() as u64 / REFILL_TIME.as_micros() as u64;
        if tokens > 0 {
            self.earn(tokens as u32);
            self.filled_at = now;
        }
    }
}
