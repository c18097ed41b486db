//! `tlsdash wire`: what the TLS connections of this machine do, from their packets.

mod args;

use std::path::Path;

use anyhow::Context;
use records::kinds::{OF_PACKETS, RunRecord};
use records::values::{AbsentFigures, LogFigure};
use wire::capture::{CaptureReader, PacketSocket, SocketOptions};
use wire::{
    CaptureReplay, ReplayedCapture, Services, WireCounter, WireOptions, give_up_capabilities, observe_packets,
};

use crate::cli::Flags;
use crate::cli::options::http::OnOff;
use crate::commands::observed::replayed;
use crate::commands::observed::session::{self, Started};
use crate::service::{environment, privileges};

pub(crate) use args::WireArgs;

/// Figures that packets do not have.
const ABSENT: [(LogFigure, &str); 6] = [
    (LogFigure::HandshakeCpu, "packets do not show what a server computes"),
    (LogFigure::Connect, "connections to upstreams are not told from others"),
    (LogFigure::FirstByte, "requests are encrypted"),
    (LogFigure::Queue, "requests are encrypted"),
    (LogFigure::RequestBodies, "requests are encrypted"),
    (LogFigure::ResponseBodies, "requests are encrypted"),
];

/// Counts packets until it must end, or to the end of a capture.
pub(crate) fn run(args: &WireArgs, flags: &Flags) -> anyhow::Result<()> {
    match &args.file {
        Some(path) => replay(args, path, flags),
        None => live(args, flags),
    }
}

/// Counts packets as they come.
fn live(args: &WireArgs, flags: &Flags) -> anyhow::Result<()> {
    let session = args.observing.resolve(flags)?;
    let options = SocketOptions { interface: args.interface.clone(), ports: args.port.clone() };
    let socket = PacketSocket::open(&options)?;
    // Root keeps them for the rest of the program: files in folders of others, names of their processes.
    if !privileges::is_root() {
        give_up_capabilities().context("cannot give up capabilities")?;
    }
    session::run(session, &args.observing.certificate_of, None, || {
        let services = Services::of_this_machine().context("cannot start the thread observe-names")?;
        let observer = observe_packets(socket, wire_options(args, Some(args.outgoing), services))
            .context("cannot start the thread observe-wire")?;
        let place = args.interface.as_deref().unwrap_or("all interfaces");
        Ok(Started {
            observer,
            header: header(args, place),
            title: format!("wire < {place}"),
            does: format!("reading packets of {place}"),
            notices: Vec::new(),
        })
    })
}

/// Counts a capture that is whole.
fn replay(args: &WireArgs, path: &Path, flags: &Flags) -> anyhow::Result<()> {
    replayed::refuse_live_options(flags, "a running capture")?;
    let (file, name) = replayed::open(path)?;
    let failed = || format!("wire --file {name}");
    let mut capture = CaptureReader::new(file).with_context(failed)?;
    replayed::run(&args.observing, flags, header(args, &name), args.observing.run.interval.0, |intervals| {
        let counter = WireCounter::new(wire_options(args, None, Services::default()));
        let replayed = CaptureReplay::new(intervals, counter).run(&mut capture).with_context(failed)?;
        let ReplayedCapture { sink, packets, dropped, connections, unjudged, is_cut } = replayed;
        let cut = if is_cut { "; it ends in the middle of a packet" } else { "" };
        crate::say(format_args!(
            "{packets} packets of {name}, {dropped} dropped; {connections} connections, {unjudged} handshakes not judged{cut}"
        ));
        Ok(sink)
    })
}

fn wire_options(args: &WireArgs, outgoing: Option<bool>, services: Services) -> WireOptions {
    WireOptions {
        ports: args.port.clone(),
        process: args.process.clone(),
        outgoing,
        hides_names: args.log_names == OnOff::Off,
        services,
    }
}

/// The first record of a run of packets from this place.
fn header(args: &WireArgs, place: &str) -> RunRecord {
    let ports: Vec<_> = args.port.iter().map(|port| format!(":{port}")).collect();
    RunRecord {
        listen: ports.join(" "),
        upstream: records::text::clean::text(&format!("packets of {place}")),
        log: OF_PACKETS.to_owned(),
        absent: AbsentFigures::new(ABSENT),
        ..environment::header()
    }
}
