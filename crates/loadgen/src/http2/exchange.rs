//! A request and its answer over a stream, and what can become of them.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use h2::{Reason, RecvStream};
use http::Response;
use telemetry::{LoadCounter, LoadEvent};

use super::Shared;
use super::lane::{Lane, Live};
use super::seats::Number;
use crate::clock::now_ns;
use crate::http1::{Answer, Expected};
use crate::ledger::{Arrived, Failure, Over, Request};
use crate::plan::KeepAlive;
use crate::tls;

/// First wait after a connection that came to nothing; it doubles with each further one.
const BACKOFF_MIN: Duration = Duration::from_millis(10);
/// Longest such wait.
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// So much of a body is read before more is let in. The end of a stream lets in the rest.
const RELEASED_BYTES: usize = 1 << 20;

/// How far a request has come; says what it was waiting for when its time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Sent,
    Answering,
}

/// Why an attempt came to nothing.
enum Ended {
    /// The request has failed.
    Failed(Failure),
    /// The connection had ended before the request reached the server, which so may have it again.
    Unheard(Failure),
}

impl Shared {
    /// One stream of a lane: request after request, until the load ends.
    pub(super) async fn stream(self: Rc<Self>, lane: Rc<Lane>, keepalive: KeepAlive) {
        let mut backoff = BACKOFF_MIN;
        let seat = self.seats.add();
        loop {
            let request = self.next(seat).await;
            let stage = Cell::new(Stage::Connecting);
            let attempt = self.request(&lane, seat, request, keepalive, &stage);
            let outcome = self.seats.in_time(seat, attempt).await;
            let client = match &outcome {
                Some(Ok((_, _, client))) => Some(*client),
                Some(Err(_)) | None => None,
            };
            let has_reached = stage.get() != Stage::Connecting;
            if self.account(seat, outcome.ok_or_else(|| stage.get()))
                && let Some(client) = client
            {
                self.clients.borrow_mut()[client].totals.requests_ok += 1;
            }
            // The end of the load may have waited for this request.
            if self.course.borrow().is_draining() {
                self.changed.notify_one();
            }
            if has_reached {
                backoff = BACKOFF_MIN;
            } else {
                tokio::time::sleep(backoff).await;
                backoff = (backoff * 2).min(BACKOFF_MAX);
            }
        }
    }

    /// Enters what became of a request; true if it is a success.
    fn account(
        &self,
        seat: Number,
        outcome: Result<Result<(Answer, Arrived, usize), Failure>, Stage>,
    ) -> bool {
        // It is not there any more if the load has given it up.
        let Some(request) = self.seats.leave(seat) else { return false };
        let name = &self.requests[request.template].name;
        let mut ledger = self.ledger.borrow_mut();
        match outcome {
            Ok(Ok((answer, arrived, _))) => ledger.answered(&request, answer, arrived, || name.clone()),
            Ok(Err(failure)) => {
                ledger.failed(&request, failure, now_ns());
                false
            }
            Err(stage) => {
                let event = match stage {
                    Stage::Connecting => LoadEvent::ConnectTimeout,
                    Stage::Sent => LoadEvent::AnswerTimeout,
                    Stage::Answering => LoadEvent::BodyTimeout,
                };
                ledger.failed(&request, Failure::new(event, name.clone()), now_ns());
                false
            }
        }
    }

    async fn request(
        self: &Rc<Self>,
        lane: &Rc<Lane>,
        seat: Number,
        request: Request,
        keepalive: KeepAlive,
        stage: &Cell<Stage>,
    ) -> Result<(Answer, Arrived, usize), Failure> {
        let mut is_retry = false;
        loop {
            let live = lane.connection(self, &request, keepalive).await?;
            match self.attempt(&live, seat, stage).await {
                Ok((answer, arrived)) => return Ok((answer, arrived, live.client)),
                Err(Ended::Unheard(failure)) if is_retry || live.carried.get() <= 1 => {
                    lane.retire_this(&live);
                    return Err(failure);
                }
                Err(Ended::Unheard(_)) => {
                    lane.retire_this(&live);
                    is_retry = true;
                    let mut ledger = self.ledger.borrow_mut();
                    ledger.count(LoadCounter::Retried);
                    ledger.tally(LoadEvent::Retried, || self.requests[request.template].name.clone());
                }
                Err(Ended::Failed(failure)) => return Err(failure),
            }
        }
    }

    async fn attempt(
        &self,
        live: &Live,
        seat: Number,
        stage: &Cell<Stage>,
    ) -> Result<(Answer, Arrived), Ended> {
        let mut sender = live.sender();
        let ready = poll_fn(|context| sender.poll_ready(context)).await;
        ready.map_err(|error| Ended::of(&error, Stage::Connecting))?;
        let Some(template) = self.seats.with(seat, |request| request.template) else {
            return Err(Ended::Failed(Failure::new(LoadEvent::Reset, "the load has ended")));
        };
        let prepared = &self.requests[template];
        let Some(parts) = &prepared.parts else {
            return Err(Ended::Failed(Failure::new(LoadEvent::Protocol, "an echo has no HTTP/2")));
        };
        let is_bodiless = parts.body.is_empty();
        let begun = sender.send_request(parts.head.clone(), is_bodiless);
        let (response, mut stream) = begun.map_err(|error| Ended::of(&error, Stage::Connecting))?;
        live.keep(sender);
        stage.set(Stage::Sent);
        self.note_sent(live, seat, prepared.body_bytes);
        if !is_bodiless {
            stream.send_data(parts.body.clone(), true).map_err(|error| Ended::of(&error, Stage::Sent))?;
        }
        let response = response.await.map_err(|error| Ended::of(&error, Stage::Sent))?;
        let first_ns = now_ns();
        stage.set(Stage::Answering);
        let answer = receive(response, &prepared.expected).await?;
        Ok((answer, Arrived { first_ns, done_ns: now_ns() }))
    }

    fn note_sent(&self, live: &Live, seat: Number, body_bytes: u64) {
        let mut ledger = self.ledger.borrow_mut();
        self.seats.with(seat, |request| {
            if !request.warmup && request.sent_ns.is_none() {
                ledger.add(LoadCounter::BodyIn, body_bytes);
                ledger.add(LoadCounter::Reused, u64::from(live.carried.get() > 1));
            }
            request.over = if request.begun_ns <= live.ready_ns { live.over } else { Over::Kept };
            ledger.sent(request, now_ns());
        });
    }
}

/// Reads a body to its end, and compares it with what is expected.
async fn receive(response: Response<RecvStream>, expected: &Expected) -> Result<Answer, Ended> {
    let status = response.status().as_u16();
    // As h2load counts: names and values, without what a protocol puts between them.
    let plain = |(name, value): (&http::HeaderName, &http::HeaderValue)| name.as_str().len() + value.len();
    let head_plain_bytes = ":status200".len() + response.headers().iter().map(plain).sum::<usize>();
    let mut body = response.into_body();
    let mut body_bytes = 0_u64;
    let mut is_same = true;
    let mut unreleased = 0;
    while let Some(piece) = body.data().await {
        let piece = piece.map_err(|error| Ended::of(&error, Stage::Answering))?;
        if let Some(expected) = &expected.body {
            let at = usize::try_from(body_bytes).unwrap_or(usize::MAX);
            let same = at.checked_add(piece.len()).and_then(|end| expected.get(at..end));
            is_same &= same == Some(&*piece);
        }
        body_bytes += piece.len() as u64;
        unreleased += piece.len();
        if unreleased >= RELEASED_BYTES {
            // It only fails when more is released than was received.
            let _ = body.flow_control().release_capacity(std::mem::take(&mut unreleased));
        }
    }
    let length = expected.body.as_ref().map(|body| body.len() as u64).or(expected.body_bytes);
    let body_is_right = is_same && (expected.head_only || length.is_none_or(|length| length == body_bytes));
    Ok(Answer {
        status: Some(status),
        keep_alive: true,
        // Counted on the wire, for all answers of a connection together.
        head_bytes: 0,
        head_plain_bytes: head_plain_bytes as u64,
        body_bytes,
        body_is_right,
    })
}

impl Ended {
    /// What an error means for a request that has come so far.
    fn of(error: &h2::Error, stage: Stage) -> Self {
        // The server says itself that it has not looked at the request (RFC 9113, section 8.7).
        let is_refused = error.reason() == Some(Reason::REFUSED_STREAM)
            || (error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR));
        let is_unheard =
            stage != Stage::Answering && (is_refused || error.is_io() || stage == Stage::Connecting);
        let failure = Self::failure(error, stage);
        if is_unheard { Self::Unheard(failure) } else { Self::Failed(failure) }
    }

    fn failure(error: &h2::Error, stage: Stage) -> Failure {
        if let Some(io) = error.get_io()
            && let Some(failure) = tls::failure(io)
        {
            return failure;
        }
        let event = match stage {
            _ if error.is_library() => LoadEvent::Protocol,
            Stage::Answering => LoadEvent::Short,
            Stage::Connecting | Stage::Sent => LoadEvent::Reset,
        };
        Failure::new(event, error.to_string())
    }
}
