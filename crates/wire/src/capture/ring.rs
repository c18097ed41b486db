//! The memory into which the kernel copies captured packets: no system call and no buffer of its own for each of them
//! (`TPACKET_V3`, <https://docs.kernel.org/networking/packet_mmap.html>). All `unsafe` of this crate is here.

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use memmap2::{MmapOptions, MmapRaw};
use nix::libc;
use socket2::Socket;

use super::filter::FRAME_BYTES_MAX;

/// The size of a block. The kernel cuts what does not fit one, so it holds the longest frame with its header.
const BLOCK_BYTES: usize = 2 * FRAME_BYTES_MAX;
/// With the size of a block, 32 MiB.
const BLOCKS: usize = 256;
/// After this time the kernel hands over a block that is not full. Waking up for a few packets costs more than to read them,
/// and their time is the kernel's.
const BLOCK_TIMEOUT: Duration = Duration::from_millis(10);
/// Where the status of a block is: whether it is the kernel's or ours.
const STATUS: usize =
    offset_of!(libc::tpacket_block_desc, hdr) + offset_of!(libc::tpacket_hdr_v1, block_status);

/// Blocks that the kernel fills in turn.
#[derive(Debug)]
pub(super) struct Ring {
    memory: MmapRaw,
    /// The block that is read next.
    next: usize,
}

impl Ring {
    /// Gives a packet socket a ring, which takes the place of its receive buffer.
    ///
    /// # Errors
    /// When the kernel refuses, or has no memory.
    pub(super) fn new(socket: &Socket) -> io::Result<Self> {
        set_option(socket, libc::PACKET_VERSION, &(libc::tpacket_versions::TPACKET_V3 as libc::c_int))?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            // Frames have the length of their packets; the kernel only checks that these fit the blocks.
            tp_frame_size: BLOCK_BYTES as u32,
            tp_frame_nr: BLOCKS as u32,
            tp_retire_blk_tov: BLOCK_TIMEOUT.as_millis() as u32,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(socket, libc::PACKET_RX_RING, &request)?;
        Ok(Self { memory: MmapOptions::new().len(BLOCK_BYTES * BLOCKS).map_raw(socket)?, next: 0 })
    }

    /// Shows the next block to `read` and gives it back to the kernel. False if the kernel has not handed it over.
    pub(super) fn read_block(&mut self, read: impl FnOnce(&[u8])) -> bool {
        // SAFETY: `next` is less than `BLOCKS`, so that the block is within the memory, which is mapped while `self` lives.
        let start = unsafe { self.memory.as_mut_ptr().add(self.next * BLOCK_BYTES) };
        // SAFETY: blocks begin at pages and `STATUS` is a multiple of 4. Here nobody else uses the memory, and the kernel
        // writes this word whole.
        let status = unsafe { AtomicU32::from_ptr(start.add(STATUS).cast()) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the block is mapped as above. The kernel wrote it before it set the status, and writes no more into it
        // before it is given back, which is after the last use of these bytes.
        read(unsafe { std::slice::from_raw_parts(start, BLOCK_BYTES) });
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        true
    }
}

/// Begins to capture on the interface of this index, or on all of them if it is 0.
///
/// # Errors
/// When the kernel refuses.
pub(super) fn bind(socket: &Socket, interface: u32) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
        sll_ifindex: interface as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is valid for reads of its length during the call.
    result(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) })
}

/// Packets that found no room since the last call.
///
/// # Errors
/// When the kernel gives one.
pub(super) fn take_dropped(socket: &Socket) -> io::Result<u32> {
    let mut statistics = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
    let mut len = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
    let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    // SAFETY: `statistics` is valid for writes of `len` bytes during the call, and any bytes are valid in it.
    result(unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, option, (&raw mut statistics).cast(), &raw mut len)
    })?;
    Ok(statistics.tp_drops)
}

/// Sets an option of packet sockets, whose value has the type that the kernel expects.
fn set_option<T: Copy>(socket: &Socket, option: libc::c_int, value: &T) -> io::Result<()> {
    let (value, len) = (std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t);
    // SAFETY: `value` is valid for reads of `len` bytes during the call. The kernel keeps no pointer to it.
    result(unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, value, len) })
}

fn result(returned: libc::c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
