//! Counts packets as they come, on a thread of its own.

use std::io;
use std::time::{Duration, Instant};

use recorder::observer::{Counting, ObservedCounter, Observer};
use records::kinds::{Level, NoticeRecord};
use records::metrics::ProxyCounter;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use crate::capture::PacketSocket;
use crate::counter::WireCounter;
use crate::options::WireOptions;
use crate::packet::Packet;

/// The longest wait for packets: so often the thread looks whether its counts are wanted.
const PATIENCE: Duration = Duration::from_millis(20);
/// The same at the end: longer than the kernel keeps back what it has captured.
const LAST_PATIENCE: Duration = Duration::from_millis(50);
/// The shortest time between two notices about lost packets.
const NOTICE_EVERY: Duration = Duration::from_secs(10);

/// Begins to count what a packet socket captures. The thread that reads what anybody on the network may have sent has no
/// capabilities.
///
/// # Errors
/// If the thread cannot be started, or its capabilities cannot be given up.
pub fn observe_packets(socket: PacketSocket, options: WireOptions) -> io::Result<Observer> {
    // CPU time is accounted by the beginning of the name.
    Observer::start("observe-wire", move || {
        give_up_capabilities()?;
        let mut counter = WireCounter::new(options);
        counter.counted = ObservedCounter::live();
        Ok(PacketThread { socket, counter, dropped: 0, told: None })
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
    counter: WireCounter,
    /// Packets that the kernel dropped for us, as far as they are counted.
    dropped: u64,
    /// When there was a notice of lost packets, and of how many.
    told: Option<(Instant, u64)>,
}

impl Counting for PacketThread {
    const SOURCE: (&'static str, &'static str) = ("packets", "packets");

    fn read(&mut self, may_wait: bool) -> io::Result<usize> {
        let Self { socket, counter, .. } = self;
        socket.read(if may_wait { PATIENCE } else { LAST_PATIENCE }, &mut |frame| {
            counter.packet(&frame, &Packet::parse(&frame));
        })
    }

    fn counter(&mut self) -> &mut ObservedCounter {
        &mut self.counter.counted
    }

    fn report(&mut self, _is_last: bool) -> Vec<NoticeRecord> {
        let dropped = self.socket.dropped();
        let lost = dropped - self.dropped;
        self.dropped = dropped;
        self.counter.counted.add(ProxyCounter::PacketsLost, lost);
        let (is_due, told) = self.told.map_or((true, 0), |(at, told)| (at.elapsed() >= NOTICE_EVERY, told));
        if !is_due || dropped == told {
            return Vec::new();
        }
        self.told = Some((Instant::now(), dropped));
        let text = format!(
            "the kernel dropped {} packets for lack of room: handshakes among them are not judged",
            dropped - told
        );
        vec![NoticeRecord::new(Level::Warning, "packets", &text)]
    }
}
