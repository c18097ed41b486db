//! HTTP/2: a thread with a runtime of its own, a task for each stream of each connection, and one that governs them.
//!
//! The tasks of a thread share everything through [`Shared`]; nothing is borrowed over an await. The course of the
//! load, the ledger and the schedule are the same as those of HTTP/1.1.

mod exchange;
mod lane;
mod seats;
mod wire;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use telemetry::{Asked, LoadCounter, LoadDelta, Reporter};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::LocalSet;

use crate::client::Client;
use crate::clock::{Alarm, now_ns};
use crate::course::{Course, Obeyed};
use crate::ledger::{Ledger, Over, Request};
use crate::pacer::Due;
use crate::plan::Share;
use crate::request::Prepared;
use crate::worker::{Setup, Start};
use lane::Lane;
use seats::{Number, Seats};
use wire::Wire;

/// How often the rate is noted, and a drain looked at.
const TICK_NS: u64 = 10_000_000;
/// How long connections may take to end in order.
const PARTING: Duration = Duration::from_millis(200);

/// What the tasks of a thread share.
struct Shared {
    setup: Arc<Setup>,
    course: RefCell<Course>,
    ledger: RefCell<Ledger>,
    requests: Arc<[Prepared]>,
    clients: RefCell<Vec<Client>>,
    /// The client that makes the next connection.
    next_client: Cell<usize>,
    /// The server's address that worked last.
    address: Cell<usize>,
    next_place: Cell<usize>,
    resume: Cell<Share>,
    /// Requests that a stream has taken on.
    seats: Seats,
    /// What goes over open connections, each with its client.
    wires: RefCell<Vec<(usize, Rc<Wire>)>>,
    /// Wakes streams that have nothing to do.
    due: Notify,
    /// Wakes the task that governs.
    changed: Arc<Notify>,
}

/// Runs a thread's part of the load to its end.
pub(crate) fn run(start: Start, runtime: &Runtime, changed: &Arc<Notify>, streams: u32) {
    let Start { setup, course, clients, part, reporter } = start;
    let wanted = setup.control.wanted();
    let shared = Rc::new(Shared {
        course: RefCell::new(course),
        ledger: RefCell::default(),
        requests: wanted.requests,
        clients: RefCell::new(clients),
        next_client: Cell::new(0),
        address: Cell::new(0),
        next_place: Cell::new(part.thread as usize % setup.sequence.len()),
        resume: Cell::new(wanted.resume),
        seats: Seats::default(),
        wires: RefCell::default(),
        due: Notify::new(),
        changed: Arc::clone(changed),
        setup,
    });
    let connections = part.of(wanted.connections.into());
    let tasks = LocalSet::new();
    tasks.block_on(runtime, async {
        let lanes: Vec<Rc<Lane>> = (0..connections).map(|_| Rc::default()).collect();
        for lane in &lanes {
            for _ in 0..streams {
                tokio::task::spawn_local(Rc::clone(&shared).stream(Rc::clone(lane), wanted.keepalive));
            }
        }
        // Without its alarm a thread can do nothing but say what became of its requests.
        let _ = shared.govern(&reporter).await;
        shared.give_up();
        for lane in &lanes {
            lane.retire();
        }
        let ended = tokio::time::Instant::now() + PARTING;
        while !shared.wires.borrow().is_empty() && tokio::time::Instant::now() < ended {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    // Whatever is left ends here, cut.
    drop(tasks);
    shared.finish(reporter);
}

impl Shared {
    /// Lets requests fall due, obeys, reports, and ends the load.
    async fn govern(&self, reporter: &Reporter<LoadDelta>) -> std::io::Result<()> {
        let alarm = Alarm::new()?;
        while !self.course.borrow().has_ended() {
            let now_ns = now_ns();
            self.turn(now_ns);
            self.report(reporter);
            if self.course.borrow().has_ended() {
                break;
            }
            let at_ns = self.next_moment_ns(now_ns);
            tokio::select! {
                () = self.changed.notified() => {}
                fired = alarm.until(at_ns) => fired?,
            }
        }
        Ok(())
    }

    fn turn(&self, now_ns: u64) {
        let (mut course, mut ledger) = (self.course.borrow_mut(), self.ledger.borrow_mut());
        match course.obey(&self.setup.control, &mut ledger, now_ns) {
            Obeyed::Nothing => {}
            Obeyed::Abandoned => return course.end(&mut ledger, now_ns),
            Obeyed::Changed(wanted, _) => {
                self.resume.set(wanted.resume);
                self.due.notify_waiters();
            }
        }
        let fell_due = course.advance(&mut ledger, now_ns);
        course.give_up_late(&mut ledger, now_ns);
        self.seats.look(self.setup.timeout_ns, now_ns);
        for _ in 0..fell_due {
            self.due.notify_one();
        }
        self.setup.control.note_rate(course.rate_at(now_ns));
        if !course.is_draining() {
            return;
        }
        if course.is_overdue(now_ns) {
            course.give_up_backlog(&mut ledger, now_ns);
            self.seats.clear(|request| ledger.ended(request, now_ns));
        }
        if !course.has_backlog() && self.seats.are_empty() {
            course.settle();
        }
    }

    fn next_moment_ns(&self, now_ns: u64) -> Option<u64> {
        let course = self.course.borrow();
        let is_quiet = course.is_paused() && self.seats.are_empty();
        let tick_ns = (!is_quiet).then_some(now_ns + TICK_NS);
        course.next_due_ns().into_iter().chain(course.next_change_ns()).chain(tick_ns).min()
    }

    /// The next request for a stream; waits for one.
    async fn next(&self, seat: Number) -> Request {
        let free_ns = now_ns();
        loop {
            if let Some(request) = self.try_next(seat, free_ns) {
                return request;
            }
            self.due.notified().await;
        }
    }

    fn try_next(&self, seat: Number, free_ns: u64) -> Option<Request> {
        let (mut course, mut ledger) = (self.course.borrow_mut(), self.ledger.borrow_mut());
        let due: Due = course.take(&mut ledger)?;
        let now_ns = now_ns();
        course.note_late(due, free_ns, &mut ledger, now_ns);
        let sequence = &self.setup.sequence;
        let place = self.next_place.replace((self.next_place.get() + 1) % sequence.len());
        let request = Request {
            template: sequence[place].into(),
            intended_ns: due.intended_ns,
            begun_ns: now_ns,
            sent_ns: None,
            deadline_ns: now_ns.saturating_add(self.setup.timeout_ns),
            retried: false,
            warmup: course.is_warmup(due, now_ns),
            over: Over::default(),
        };
        self.seats.take(seat, request);
        Some(request)
    }

    fn report(&self, reporter: &Reporter<LoadDelta>) {
        self.gather();
        let mut ledger = self.ledger.borrow_mut();
        let span = ledger.span;
        match reporter.answer(&mut ledger.delta, |_| {}) {
            Asked::Yes => self.setup.control.note_span(span),
            Asked::No => {}
            Asked::Gone => self.course.borrow_mut().end(&mut ledger, now_ns()),
        }
    }

    /// Takes in what went over the connections since the last time.
    fn gather(&self) {
        let now_ns = now_ns();
        let is_warmup = self.course.borrow().is_warmup(Due { intended_ns: None }, now_ns);
        let (mut ledger, mut clients) = (self.ledger.borrow_mut(), self.clients.borrow_mut());
        self.wires.borrow_mut().retain(|(client, wire)| {
            let (bytes_in, bytes_out, head_bytes) = wire.take();
            ledger.add(LoadCounter::BytesIn, bytes_in);
            ledger.add(LoadCounter::BytesOut, bytes_out);
            ledger.add(LoadCounter::HeadOut, if is_warmup { 0 } else { head_bytes });
            clients[*client].totals.bytes_in += bytes_in;
            clients[*client].totals.bytes_out += bytes_out;
            let has_ended = wire.has_ended();
            ledger.add(LoadCounter::Closed, u64::from(has_ended));
            !has_ended
        });
    }

    /// Accounts for what has no answer yet.
    fn give_up(&self) {
        let now_ns = now_ns();
        let mut ledger = self.ledger.borrow_mut();
        self.course.borrow_mut().end(&mut ledger, now_ns);
        self.seats.clear(|request| ledger.ended(request, now_ns));
    }

    fn finish(&self, reporter: Reporter<LoadDelta>) {
        self.wires.borrow().iter().for_each(|(_, wire)| wire.end());
        self.gather();
        for client in self.clients.borrow().iter() {
            if let Some(address) = client.address {
                self.setup.control.account(address, client.totals);
            }
        }
        let ledger = self.ledger.take();
        self.setup.control.note_span(ledger.span);
        self.setup.control.thread_ended();
        reporter.finish(ledger.delta, |_| {});
    }
}
