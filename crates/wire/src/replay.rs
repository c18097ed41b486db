//! Counts a capture by its own times, into the intervals of a run.

use recorder::observer::{Intervals, PublishError};
use recorder::publish::Sink;
use records::metrics::{Counters, ProxyCounter};

use crate::capture::{CaptureError, CaptureReader};
use crate::counter::WireCounter;
use crate::packet::Packet;

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// No packet belongs to a connection that is counted.
    #[error("none of its {packets} packets is of a TLS connection{}", if *.is_cut { "; the capture ends in the middle of a packet" } else { "" })]
    Empty { packets: u64, is_cut: bool },
    #[error(transparent)]
    Refused(#[from] PublishError),
}

/// A capture that was counted.
#[derive(Debug)]
pub struct ReplayedCapture<S> {
    /// The sink, which has the records.
    pub sink: S,
    /// Packets of every protocol.
    pub packets: u64,
    /// Packets that are not in the capture, as far as it says.
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
    /// What was counted in the intervals before.
    totals: Counters<ProxyCounter>,
}

impl<S: Sink> CaptureReplay<S> {
    pub fn new(intervals: Intervals<S>, counter: WireCounter) -> Self {
        Self { intervals, counter, packets: 0, totals: Counters::default() }
    }

    /// Reads the capture to its end and closes the run.
    ///
    /// # Errors
    /// When the capture cannot be read, has no TLS, or its records cannot be written.
    pub fn run(mut self, capture: &mut CaptureReader) -> Result<ReplayedCapture<S>, ReplayError> {
        while let Some(frame) = capture.next_frame()? {
            self.packets += 1;
            let packet = Packet::parse(&frame);
            if packet == Packet::Other {
                continue;
            }
            let Self { intervals, counter, totals, .. } = &mut self;
            intervals.advance(frame.time_ns / 1_000, &mut counter.counted, |_, counted| {
                totals.add(&counted.counters());
            });
            intervals.check()?;
            counter.packet(&frame, &packet);
        }
        let Self { intervals, mut counter, packets, mut totals } = self;
        let (dropped, is_cut) = (capture.dropped(), capture.is_cut());
        counter.counted.add(ProxyCounter::PacketsLost, dropped);
        totals.add(&counter.counted.counters());
        let (connections, unjudged) = (totals[ProxyCounter::Accepted], totals[ProxyCounter::Unjudged]);
        if connections == 0 {
            return Err(ReplayError::Empty { packets, is_cut });
        }
        let sink = intervals.finish(&mut counter.counted)?;
        Ok(ReplayedCapture { sink, packets, dropped, connections, unjudged, is_cut })
    }
}
