//! Counts packets as they come, on a thread of its own.

use std::io;
use std::time::{Duration, Instant};

use recorder::observer::{Observer, ObserverLink};
use records::delta::HandoverResult;
use records::kinds::{Level, NoticeRecord};
use records::metrics::ProxyCounter;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::capture::PacketSocket;
use crate::counter::WireCounter;
use crate::options::WireOptions;
use crate::packet::Packet;

/// The longest wait for packets: so often the thread looks whether its counts are wanted.
const PATIENCE: Duration = Duration::from_millis(20);
/// The longest that packets which never end are read after the end.
const END_PATIENCE: Duration = Duration::from_secs(2);
/// The shortest time between two notices about lost packets.
const NOTICE_EVERY: Duration = Duration::from_secs(10);

/// Begins to count what a packet socket captures. The thread that reads what anybody on the network may have sent has no
/// capabilities.
///
/// # Errors
/// If the thread cannot be started, or its capabilities cannot be given up.
pub fn observe_packets(socket: PacketSocket, options: WireOptions) -> io::Result<Observer> {
    let open = move || give_up_capabilities().map(|()| socket);
    // CPU time is accounted by the beginning of the name.
    Observer::start("observe-wire", open, |socket, link| {
        let counter = WireCounter::new(options);
        PacketThread { socket, link, counter, dropped: 0, told: None }.run();
    })
}

/// Gives up every capability of this thread, and of those that it starts later.
///
/// # Errors
/// If the kernel refuses.
pub fn give_up_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

struct PacketThread {
    socket: PacketSocket,
    link: ObserverLink,
    counter: WireCounter,
    /// Packets that the kernel dropped for us, as far as they are counted.
    dropped: u64,
    /// When there was a notice of lost packets, and of how many.
    told: Option<(Instant, u64)>,
}

impl PacketThread {
    fn run(mut self) {
        let mut ends_at: Option<Instant> = None;
        loop {
            let must_end = self.link.must_end();
            if must_end {
                ends_at.get_or_insert_with(|| Instant::now() + END_PATIENCE);
            }
            let counter = &mut self.counter;
            let read = self.socket.read(if must_end { Duration::ZERO } else { PATIENCE }, &mut |frame| {
                if let Packet::Tcp(segment) = Packet::parse(&frame) {
                    counter.segment(&frame, &segment);
                }
            });
            self.note_drops();
            let is_late = ends_at.is_some_and(|at| Instant::now() >= at);
            if read.is_err() || (must_end && matches!(read, Ok(0))) || is_late {
                if let Err(error) = read {
                    let text = format!("cannot read packets any more: {error}; the counts end here");
                    self.link.tell([NoticeRecord::new(Level::Warning, "packets", &text)]);
                }
                break;
            }
            let (delta, seal) = self.counter.counted.parts();
            if self.link.reporter.answer(delta, seal) == HandoverResult::CollectorGone {
                return;
            }
        }
        self.counter.counted.seal();
        self.link.reporter.finish(self.counter.counted.delta, |_| {});
    }

    fn note_drops(&mut self) {
        let dropped = self.socket.dropped();
        let lost = dropped - self.dropped;
        self.dropped = dropped;
        self.counter.counted.add(ProxyCounter::PacketsLost, lost);
        let (is_due, told) = self.told.map_or((true, 0), |(at, told)| (at.elapsed() >= NOTICE_EVERY, told));
        if is_due && dropped > told {
            self.told = Some((Instant::now(), dropped));
            let text = format!(
                "the kernel dropped {} packets for lack of room: handshakes among them are not judged",
                dropped - told
            );
            self.link.tell([NoticeRecord::new(Level::Warning, "packets", &text)]);
        }
    }
}
