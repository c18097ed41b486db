//! Messages between two processes: JSON in packets of a socket pair, with descriptors.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use records::setting::Value;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize};

/// The version of the messages. A program that speaks another one is not started this way.
pub(super) const VERSION: u32 = 3;
/// Descriptors in a packet; the kernel takes 253.
const PACKET_FDS_MAX: usize = 64;
const MESSAGE_BYTES_MAX: usize = 128 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub(super) enum UpgradeMessage {
    /// To the new process: the sockets that it may take over.
    Offer(UpgradeOffer),
    /// More descriptors of the offer.
    Descriptors {},
    /// To the old process: the new one can serve.
    Prepared(PreparedProcess),
    /// To the old process: the new one ends, and why.
    Refused { reason: String },
    /// To the new process: serve. The ticket keys come as a descriptor.
    Serve { settings: Vec<CarriedSetting> },
    /// To the old process: the new one serves.
    Serving {},
}

/// The sockets that a new process may take over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UpgradeOffer {
    pub(super) version: u32,
    /// The run of the old process.
    pub(super) run: String,
    /// The addresses as its configuration has them.
    pub(super) listen: Vec<String>,
    /// Sets of listening sockets, each with one for every address. Their descriptors come first.
    pub(super) sets: usize,
    /// Whether the sockets come from a service manager.
    pub(super) is_managed: bool,
    /// The address of `--metrics`, whose descriptor comes next.
    pub(super) metrics: Option<SocketAddr>,
    /// The path of the control socket, whose descriptor comes next.
    pub(super) control: Option<PathBuf>,
    /// The address of `--redirect-http` as the configuration has it, whose descriptor comes last.
    pub(super) redirect: Option<String>,
}

impl UpgradeOffer {
    /// How many descriptors come with it; `None` if there can be no such number.
    pub(super) fn descriptors(&self) -> Option<usize> {
        let endpoints = [self.metrics.is_some(), self.control.is_some(), self.redirect.is_some()];
        let endpoints = endpoints.into_iter().filter(|is_offered| *is_offered).count();
        self.sets.checked_mul(self.listen.len())?.checked_add(endpoints)
    }
}

/// A new process that can serve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PreparedProcess {
    /// The process that will serve, a child of the one that was started.
    pub(crate) pid: u32,
    pub(crate) run: String,
    pub(crate) listen: Vec<SocketAddr>,
    /// Whether it took over the socket of `--metrics`.
    pub(crate) has_metrics: bool,
    /// Whether it took over the control socket.
    pub(crate) has_control: bool,
    /// Whether it took over the socket of `--redirect-http`.
    pub(crate) has_redirect: bool,
}

/// A setting that was changed while the old process ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CarriedSetting {
    pub(crate) name: String,
    pub(crate) value: Value,
    /// When it is restored, and to which value.
    pub(crate) revert: Option<CarriedRevert>,
}

/// The value to which a setting is restored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CarriedRevert {
    /// The time left, in milliseconds.
    pub(crate) after_ms: u64,
    pub(crate) to: Value,
    /// Who set it for a time.
    pub(crate) by: String,
}

#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub(super) message: UpgradeMessage,
    pub(super) descriptors: Vec<OwnedFd>,
}

/// Both ends of a channel.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Whether this is an end of a channel.
pub(super) fn is_channel(fd: BorrowedFd<'_>) -> bool {
    sockopt::socket_domain(fd).is_ok_and(|domain| domain == AddressFamily::UNIX)
        && sockopt::socket_type(fd).is_ok_and(|kind| kind == SocketType::SEQPACKET)
}

/// Sends a message with descriptors. Descriptors that do not fit into a packet follow in further ones.
///
/// # Errors
/// If the other process has ended, or does not read for the timeout.
pub(super) fn send(
    channel: BorrowedFd<'_>,
    message: &UpgradeMessage,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    sockopt::set_socket_timeout(channel, Timeout::Send, Some(super::READY_PATIENCE))?;
    let (first, rest) = descriptors.split_at(descriptors.len().min(PACKET_FDS_MAX));
    send_packet(channel, message, first)?;
    rest.chunks(PACKET_FDS_MAX).try_for_each(|fds| send_packet(channel, &UpgradeMessage::Descriptors {}, fds))
}

fn send_packet(channel: BorrowedFd<'_>, message: &UpgradeMessage, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(io::Error::other("a message of an upgrade is too long"));
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PACKET_FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::other("too many descriptors in a message of an upgrade"));
    }
    sendmsg(channel, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives a message; `None` if the other process has ended.
///
/// # Errors
/// If it is not a message, or does not arrive in time ([`io::ErrorKind::WouldBlock`]).
pub(super) fn receive(channel: BorrowedFd<'_>, deadline: Instant) -> io::Result<Option<ReceivedMessage>> {
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    sockopt::set_socket_timeout(channel, Timeout::Recv, Some(left))?;
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(PACKET_FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = match recvmsg(channel, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
        // The other end was closed with unread bytes.
        Err(rustix::io::Errno::CONNRESET) => return Ok(None),
        received => received?,
    };
    let mut descriptors = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = part {
            descriptors.extend(fds);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::other(
            "a message of an upgrade is too long, or descriptors are at their limit",
        ));
    }
    let message = serde_json::from_slice(&bytes[..received.bytes])?;
    Ok(Some(ReceivedMessage { message, descriptors }))
}

/// Descriptors as they are sent.
pub(super) fn borrowed(descriptors: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    descriptors.iter().map(AsFd::as_fd).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn many_descriptors_arrive_in_order_and_are_not_inherited() {
        let (one, other) = pair().unwrap();
        let files: Vec<OwnedFd> = (0..150).map(|_| tempfile::tempfile().unwrap().into()).collect();
        let inode = |fd: &OwnedFd| rustix::fs::fstat(fd).unwrap().st_ino;
        let offer = UpgradeMessage::Offer(UpgradeOffer { sets: 150, ..UpgradeOffer::default() });
        send(one.as_fd(), &offer, &borrowed(&files)).unwrap();
        let first = receive(other.as_fd(), soon()).unwrap().unwrap();
        assert_eq!(first.message, offer);
        let mut all = first.descriptors;
        while all.len() < files.len() {
            all.extend(receive(other.as_fd(), soon()).unwrap().unwrap().descriptors);
        }
        assert_eq!(all.iter().map(inode).collect::<Vec<_>>(), files.iter().map(inode).collect::<Vec<_>>());
        let is_cloexec = |fd: &OwnedFd| rustix::io::fcntl_getfd(fd).unwrap() == rustix::io::FdFlags::CLOEXEC;
        assert!(all.iter().all(is_cloexec));
    }

    #[test]
    fn silence_the_end_and_other_bytes_are_told_apart() {
        let (one, other) = pair().unwrap();
        assert!(is_channel(one.as_fd()));
        assert!(!is_channel(tempfile::tempfile().unwrap().as_fd()));
        let silent = receive(other.as_fd(), Instant::now() + Duration::from_millis(20)).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::WouldBlock);
        rustix::io::write(&one, b"hello").unwrap();
        assert_eq!(receive(other.as_fd(), soon()).unwrap_err().kind(), io::ErrorKind::InvalidData);
        drop(one);
        assert!(receive(other.as_fd(), soon()).unwrap().is_none());
    }
}
