//! How requests end, as clients see it, and whether the proxy has counted the same.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::Method;
use records::delta::HttpDelta;
use records::metrics::{Counters, HttpCounter, RequestFailure};
use records::values::StatusCounts;

use crate::calls::CALLS;
use crate::clients::STREAMS;
use crate::slow::SlowClient;
use crate::{CALL_CLIENTS, CLIENTS1, CLIENTS2, Failure};

/// How long after its upstream has closed its connections a client may learn that a request is lost.
const LOSS_TIME: Duration = Duration::from_secs(3);

/// How the requests of a kind of client ended.
#[derive(Debug)]
pub(crate) struct EndCounts {
    name: &'static str,
    /// Requests at once: an upstream that closes its connections can lose no more.
    at_once: usize,
    whole: Cell<u64>,
    /// The proxy's 502 in place of a response, to requests that may not be sent twice.
    bad_gateway: Cell<u64>,
    /// The same to a `GET`: its connection was new.
    bad_gateway_get: Cell<u64>,
    /// A response that was not complete.
    cut: Cell<u64>,
    grpc_statuses: RefCell<StatusCounts>,
    /// How often the upstream has closed its connections at once, and until when a request may be lost by it.
    closed: Cell<u64>,
    lost_until: Cell<Option<Instant>>,
}

fn increment(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

impl EndCounts {
    fn new(name: &'static str, at_once: usize) -> Rc<Self> {
        Rc::new(Self {
            name,
            at_once,
            whole: Cell::default(),
            bad_gateway: Cell::default(),
            bad_gateway_get: Cell::default(),
            cut: Cell::default(),
            grpc_statuses: RefCell::default(),
            closed: Cell::default(),
            lost_until: Cell::default(),
        })
    }

    pub(crate) fn add_whole(&self) {
        increment(&self.whole);
    }

    /// Counts a whole call of gRPC.
    pub(crate) fn add_call(&self, status: u16) {
        increment(&self.whole);
        self.grpc_statuses.borrow_mut().count(status, 1);
    }

    /// # Errors
    /// When the request had no reason to be lost, as with [`EndCounts::add_cut`].
    pub(crate) fn add_bad_gateway(&self, method: &Method) -> Result<(), Failure> {
        increment(if *method == Method::GET { &self.bad_gateway_get } else { &self.bad_gateway });
        self.expect_loss("answered with 502")
    }

    pub(crate) fn add_cut(&self) -> Result<(), Failure> {
        increment(&self.cut);
        self.expect_loss("cut")
    }

    fn expect_loss(&self, end: &str) -> Result<(), Failure> {
        let may_be_lost = self.lost_until.get().is_some_and(|until| Instant::now() < until);
        if may_be_lost {
            Ok(())
        } else {
            Err(format!("{}: {end}, and no upstream had closed", self.name).into())
        }
    }

    /// Notes that the upstream closes all its connections.
    pub(crate) fn set_closed(&self) {
        increment(&self.closed);
        self.lost_until.set(Some(Instant::now() + LOSS_TIME));
    }

    fn all_bad_gateway(&self) -> u64 {
        self.bad_gateway.get() + self.bad_gateway_get.get()
    }

    /// What is wrong with these counts alone.
    fn check(&self, wrong: &mut Vec<String>) {
        let (whole, closed, cut, of_get) =
            (self.whole.get(), self.closed.get(), self.cut.get(), self.bad_gateway_get.get());
        println!(
            "{}: {whole} whole, {} answered 502 ({of_get} GET on a new connection), {cut} cut; closed {closed} times",
            self.name,
            self.all_bad_gateway(),
        );
        if whole == 0 {
            wrong.push(format!("{}: nothing was answered", self.name));
        }
        if self.all_bad_gateway() + cut > closed * self.at_once as u64 {
            wrong.push(format!("{}: more was lost than was in flight", self.name));
        }
        // Connections are kept, so few are new when a restart comes.
        if of_get > closed {
            wrong.push(format!("{}: requests that may be sent twice were not", self.name));
        }
    }
}

/// How the requests of all clients ended.
#[derive(Debug)]
pub(crate) struct RequestEnds {
    /// Requests and calls to upstreams that restart.
    pub(crate) restarting: Rc<EndCounts>,
    pub(crate) calls: Rc<EndCounts>,
    pub(crate) long_calls: Rc<EndCounts>,
    /// The same to names that move.
    pub(crate) moving: Rc<EndCounts>,
    pub(crate) moving_calls: Rc<EndCounts>,
    pub(crate) moves: Cell<u64>,
    /// Whole exchanges of slow clients.
    pub(crate) slow: RefCell<BTreeMap<SlowClient, u64>>,
    /// Requests of clients that read nothing.
    pub(crate) unread: Cell<u64>,
}

impl RequestEnds {
    pub(crate) fn new() -> Self {
        Self {
            restarting: EndCounts::new("requests", CLIENTS1 + CLIENTS2 * STREAMS),
            calls: EndCounts::new("calls", CALL_CLIENTS * CALLS),
            long_calls: EndCounts::new("long calls", CALL_CLIENTS * CALLS),
            moving: EndCounts::new("requests to a name that moves", 0),
            moving_calls: EndCounts::new("calls to a name that moves", 0),
            moves: Cell::default(),
            slow: RefCell::default(),
            unread: Cell::default(),
        }
    }

    /// Compares it with what the proxy has counted. Returns what is wrong.
    pub(crate) fn check(&self, total: &HttpDelta) -> Vec<String> {
        let mut wrong = Vec::new();
        let kinds = [&self.restarting, &self.calls, &self.long_calls, &self.moving, &self.moving_calls];
        for kind in kinds {
            kind.check(&mut wrong);
        }
        let sum = |count: fn(&EndCounts) -> u64| kinds.iter().map(|kind| count(kind)).sum::<u64>();
        let (bad_gateway, cut) = (sum(EndCounts::all_bad_gateway), sum(|kind| kind.cut.get()));
        let (slow, unread) = (self.slow.borrow(), self.unread.get());
        println!("the names moved {} times", self.moves.get());
        println!("slow clients, none of them cut: {slow:?}");
        println!("clients that read nothing: {unread} requests");
        if slow.len() < SlowClient::ALL.len() {
            wrong.push("not all kinds of slow clients were answered".to_owned());
        }

        let counters = &total.counters;
        let (requests, retried) = (counters[HttpCounter::Requests], counters[HttpCounter::Retried]);
        println!("proxy: {requests} requests, {retried} retried");
        check_failures(counters, (bad_gateway, cut, unread), &mut wrong);
        let seen = sum(|kind| kind.whole.get()) + bad_gateway + cut + slow.values().sum::<u64>() + unread;
        if requests != seen {
            wrong.push(format!("clients saw {seen} requests, the proxy counted {requests}"));
        }
        if self.restarting.closed.get() > 0 && retried == 0 {
            wrong.push("no restart met a request that may be sent twice".to_owned());
        }
        let mut statuses = StatusCounts::default();
        for kind in kinds {
            statuses.add(&kind.grpc_statuses.borrow());
        }
        if statuses != total.grpc_statuses {
            wrong.push(format!(
                "statuses of gRPC: clients saw {statuses}, the proxy counted {}",
                total.grpc_statuses
            ));
        }
        wrong
    }
}

/// Compares the requests that failed with what clients saw: 502, cut responses, and all those of clients that read nothing.
fn check_failures(
    counters: &Counters<HttpCounter>,
    (bad_gateway, cut, unread): (u64, u64, u64),
    wrong: &mut Vec<String>,
) {
    let mut cut_unread = 0;
    for (cause, counter) in RequestFailure::ALL {
        let counted = counters[counter];
        if counted > 0 {
            println!("{cause}: {counted}");
        }
        let expected = match counter {
            HttpCounter::FailedUpstreamClosed => bad_gateway,
            HttpCounter::FailedUpstreamCut => cut,
            HttpCounter::FailedPendingBound
            | HttpCounter::FailedSendTimeout
            | HttpCounter::FailedClientGone => {
                cut_unread += counted;
                continue;
            }
            _ => 0,
        };
        if counted != expected {
            wrong.push(format!("{cause}: clients saw {expected}, the proxy counted {counted}"));
        }
    }
    if cut_unread != unread {
        wrong.push(format!("{unread} requests of clients that read nothing, {cut_unread} cut"));
    }
    if unread > 0 && counters[HttpCounter::FailedPendingBound] == 0 {
        wrong.push("clients that read nothing never reached the bound".to_owned());
    }
}
