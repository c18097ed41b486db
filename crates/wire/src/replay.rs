//! Counts a capture by its own times, into the intervals of a run.

use std::fmt::{self, Display};

use recorder::observer::{Intervals, PublishError, plausible_us};
use recorder::publish::Sink;
use records::kinds::{Level, NoticeRecord};
use records::metrics::{Counters, ProxyCounter};

use crate::capture::{CaptureError, CaptureReader};
use crate::counter::WireCounter;
use crate::packet::Packet;

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// No packet belongs to a connection that is counted.
    #[error("none of its {packets} packets is of a TLS connection{damage}")]
    Empty { packets: u64, damage: CaptureDamage },
    #[error(transparent)]
    Refused(#[from] PublishError),
}

/// What is wrong with a capture that can be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureDamage {
    /// Segments of which only the beginning was captured.
    pub snapped: u64,
    /// Packets whose time cannot be true.
    pub misdated: u64,
    /// Whether the capture ends in the middle of a packet.
    pub is_cut: bool,
}

impl Display for CaptureDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { snapped, misdated, is_cut } = *self;
        if snapped > 0 {
            write!(f, "; {snapped} of them are cut by a snap length: `tcpdump -s 0` captures them whole")?;
        }
        if misdated > 0 {
            write!(
                f,
                "; {misdated} of them have a time before 2000 or in the future: `editcap -t` corrects it"
            )?;
        }
        if is_cut {
            f.write_str("; the capture ends in the middle of a packet")?;
        }
        Ok(())
    }
}

/// A capture that was counted.
#[derive(Debug)]
pub struct ReplayedCapture<S> {
    /// The sink, which has the records.
    pub sink: S,
    /// Packets of every protocol.
    pub packets: u64,
    /// Packets that are not in the capture, as far as it says, and those whose time cannot be true.
    pub dropped: u64,
    pub connections: u64,
    /// Handshakes that could not be judged.
    pub unjudged: u64,
    /// Whether the capture ends in the middle of a packet.
    pub is_cut: bool,
}

/// Counts a capture and publishes its intervals.
#[derive(Debug)]
pub struct CaptureReplay<S> {
    intervals: Intervals<S>,
    counter: WireCounter,
    packets: u64,
    damage: CaptureDamage,
    /// What was counted in the intervals before.
    totals: Counters<ProxyCounter>,
}

impl<S: Sink> CaptureReplay<S> {
    pub fn new(intervals: Intervals<S>, counter: WireCounter) -> Self {
        let damage = CaptureDamage::default();
        Self { intervals, counter, packets: 0, damage, totals: Counters::default() }
    }

    /// Reads the capture to its end and closes the run.
    ///
    /// # Errors
    /// When the capture cannot be read, has no TLS, or its records cannot be written.
    pub fn run(mut self, capture: &mut CaptureReader) -> Result<ReplayedCapture<S>, ReplayError> {
        let plausible_us = plausible_us();
        while let Some(frame) = capture.next_frame()? {
            self.packets += 1;
            let packet = Packet::parse(&frame);
            if packet == Packet::Other {
                continue;
            }
            if !plausible_us.contains(&(frame.time_ns / 1_000)) {
                self.damage.misdated += 1;
                continue;
            }
            if let Packet::Tcp(segment) = &packet {
                self.damage.snapped += u64::from(segment.payload.len() < segment.len as usize);
            }
            let Self { intervals, counter, totals, .. } = &mut self;
            intervals.advance(frame.time_ns / 1_000, &mut counter.counted, |_, counted| {
                totals.add(&counted.counters());
            });
            intervals.check()?;
            counter.packet(&frame, &packet);
        }
        let Self { mut intervals, mut counter, packets, mut damage, mut totals } = self;
        damage.is_cut = capture.is_cut();
        let dropped = capture.dropped() + damage.misdated;
        counter.counted.add(ProxyCounter::PacketsLost, dropped);
        totals.add(&counter.counted.counters());
        let (connections, unjudged) = (totals[ProxyCounter::Accepted], totals[ProxyCounter::Unjudged]);
        if connections == 0 {
            return Err(ReplayError::Empty { packets, damage });
        }
        if damage.misdated > 0 {
            let text = format!(
                "{} packets have a time before 2000 or in the future, and count as lost",
                damage.misdated
            );
            intervals.notice(NoticeRecord::new(Level::Warning, "packets", &text));
        }
        let sink = intervals.finish(&mut counter.counted)?;
        Ok(ReplayedCapture { sink, packets, dropped, connections, unjudged, is_cut: damage.is_cut })
    }
}
