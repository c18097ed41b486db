//! Socket options for which the libraries in use have no function.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use socket2::TcpKeepalive;

sockopt_impl!(MinTtl, SetOnly, libc::IPPROTO_IP, libc::IP_MINTTL, libc::c_int);
sockopt_impl!(MinHopLimit, SetOnly, libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT, libc::c_int);
sockopt_impl!(TcpInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, libc::tcp_info);

/// The state in which our FIN, or something before it, is not acknowledged yet (`include/net/tcp_states.h`).
const TCP_FIN_WAIT1: u8 = 4;

/// Sets the smallest TTL and hop limit of packets that a TCP socket takes; 0 takes all (`IP_MINTTL` in ip(7)).
///
/// # Errors
/// When the kernel refuses.
pub(crate) fn set_min_ttl(socket: &impl AsFd, is_ipv6: bool, min: u8) -> io::Result<()> {
    // An IPv6 socket may take IPv4 too, and then has both bounds.
    setsockopt(socket, MinTtl, &min.into())?;
    if is_ipv6 {
        setsockopt(socket, MinHopLimit, &min.into())?;
    }
    Ok(())
}

/// How long a peer that has vanished is waited for.
pub(crate) const VANISHED_AFTER: Duration = Duration::from_secs(120);

/// Detects within two minutes that a peer has vanished, for a packet a minute and idle peer. Accepted connections inherit
/// it from their listener.
pub(crate) fn keepalive() -> TcpKeepalive {
    TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(15))
        .with_retries(4)
}

/// Whether the peer of a TCP socket that was shut down for writing has acknowledged all bytes.
///
/// # Errors
/// If the kernel does not report this.
pub(crate) fn is_end_acknowledged(socket: &impl AsFd) -> io::Result<bool> {
    Ok(getsockopt(socket, TcpInfo)?.tcpi_state != TCP_FIN_WAIT1)
}

/// The kernel's knowledge of the path to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathInfo {
    /// The smoothed round-trip time (`tcpi_rtt`); `None` before the first.
    pub(crate) rtt: Option<Duration>,
    /// Segments sent again since the connection began, its SYN-ACK among them (`tcpi_total_retrans`).
    pub(crate) retransmits: u32,
}

/// Reads the kernel's knowledge of the path to the peer of a TCP socket.
///
/// # Errors
/// If the kernel does not report it.
pub(crate) fn path_info(socket: &impl AsFd) -> io::Result<PathInfo> {
    let info = getsockopt(socket, TcpInfo)?;
    let rtt = (info.tcpi_rtt > 0).then(|| Duration::from_micros(info.tcpi_rtt.into()));
    Ok(PathInfo { rtt, retransmits: info.tcpi_total_retrans })
}
