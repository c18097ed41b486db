//! When a response, or the content of its request, is late.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use records::metrics::RequestFailure;

use super::Http2Exchange;

/// How long a call may last beyond its own timeout: the client and the upstream end it before.
const CALL_GRACE: Duration = Duration::from_secs(1);

impl Http2Exchange {
    /// Waits until the client or the upstream has made no progress for too long.
    pub(super) fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<RequestFailure> {
        let Some((due_at, failure)) = self.due() else { return Poll::Pending };
        let worker = &self.lease.worker;
        if due_at <= worker.now() {
            if failure == RequestFailure::UpstreamTimeout {
                // A connection is not to blame for one late response of several.
                let since = self.content.moved_at();
                let halfway = since + due_at.saturating_duration_since(since) / 2;
                worker.pool.borrow_mut().http2.set_silent(self.lease.stream.key, halfway);
            }
            return Poll::Ready(failure);
        }
        // A timer that ends early finds the present deadline.
        if self.timer.as_ref().is_none_or(|(at, _)| due_at < *at || *at <= worker.now()) {
            self.timer = Some((due_at, worker.timers.at(due_at)));
        }
        if let Some((_, timer)) = &mut self.timer {
            ready!(Pin::new(timer).poll(cx));
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// When what is late then.
    fn due(&self) -> Option<(Instant, RequestFailure)> {
        let worker = &self.lease.worker;
        let response_timeout = self.request.timeouts().response;
        if let Some(call) = self.call {
            // It may be silent as long as both ends want, unless its route says otherwise.
            let timeout = response_timeout.or_else(|| Some(call.timeout? + CALL_GRACE))?;
            return Some((self.sent_at.checked_add(timeout)?, RequestFailure::UpstreamTimeout));
        }
        let moved_at = self.content.moved_at();
        if self.send.is_none() {
            let timeout = response_timeout.unwrap_or_else(|| worker.limits().response_timeout);
            return Some((moved_at + timeout, RequestFailure::UpstreamTimeout));
        }
        // While content is sent, either the client does not send, or the upstream does not take.
        let is_upstream = !self.unsent.is_empty();
        let failure = if is_upstream { RequestFailure::UpstreamTimeout } else { RequestFailure::BodyTimeout };
        Some((self.content.stalled_at(), failure))
    }
}
