//! What the kernel keeps from a packet socket: programs of classic BPF (`linux/filter.h`,
//! <https://docs.kernel.org/networking/filter.html>). A packet begins with its IP header here.

use nix::libc;
use socket2::SockFilter;

/// The longest frame that is let through, in bytes: with offload, a segment is as long as an IP packet may be.
pub(super) const FRAME_BYTES_MAX: usize = 64 << 10;
/// Ports that a program may name. Twice for each version of IP, they fit the 4,096 instructions that the kernel takes.
pub(super) const PORTS_MAX: usize = 256;

/// What is kept of a longer segment, in bytes, unless it begins with a handshake record: the rest of a large answer is of
/// no use and costs a copy. No flight of a handshake is so long that it could begin elsewhere.
const SEGMENT_SNAP_BYTES: u32 = 16 << 10;
/// What is kept of QUIC, in bytes: any headers of IP and UDP.
const QUIC_SNAP_BYTES: u32 = 128;
const QUIC_PORT: u16 = 443;
/// The content type of a record (RFC 8446, 5.1).
const HANDSHAKE: u32 = 22;
/// What of an IPv4 header tells of fragments: more of them, and an offset.
const FRAGMENT_BITS: u32 = 0x3fff;

/// An instruction: code, instructions to pass over if true and if false, operand (`BPF_K`, which is 0 as `BPF_W` and
/// `BPF_IMM` are).
type Instruction = (u32, u8, u8, u32);

const DROP: Instruction = (libc::BPF_RET, 0, 0, 0);

/// Lets TCP through, and UDP of port 443: of some ports or all. Of TCP over IPv6 with extension headers nothing comes
/// through; it does not exist in practice. Neither do packets with a VLAN tag more than the one that the kernel takes off.
pub(super) fn tls(ports: &[u16]) -> Vec<SockFilter> {
    // On loopback every packet is there twice, when it leaves and when it arrives.
    let mut code = vec![load_ancillary(libc::SKF_AD_HATYPE)];
    let drop_outgoing = when_equal(u32::from(libc::PACKET_OUTGOING), &[DROP]);
    let on_loopback = [&[load_ancillary(libc::SKF_AD_PKTTYPE)], &drop_outgoing[..]].concat();
    code.extend(when_equal(u32::from(libc::ARPHRD_LOOPBACK), &on_loopback));
    code.push(load_ancillary(libc::SKF_AD_PROTOCOL));
    code.extend(when_equal(libc::ETH_P_IP as u32, &ipv4(ports)));
    code.extend(when_equal(libc::ETH_P_IPV6 as u32, &ipv6(ports)));
    code.push(DROP);
    assemble(&code)
}

/// RFC 791. X becomes the length of the header.
fn ipv4(ports: &[u16]) -> Vec<Instruction> {
    let mut code = vec![load(libc::BPF_H | libc::BPF_ABS, 6)];
    code.extend(when(libc::BPF_JSET, FRAGMENT_BITS, &[DROP]));
    code.push((libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0, 0, 0));
    code.push(load(libc::BPF_B | libc::BPF_ABS, 9));
    code.extend(transport(ports));
    code
}

/// RFC 8200. X becomes the length of the header.
fn ipv6(ports: &[u16]) -> Vec<Instruction> {
    let mut code = vec![(libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM, 0, 0, 40)];
    code.push(load(libc::BPF_B | libc::BPF_ABS, 6));
    code.extend(transport(ports));
    code
}

/// By the protocol in A, whose header begins at X.
fn transport(ports: &[u16]) -> Vec<Instruction> {
    let mut tcp = if ports.is_empty() { Vec::new() } else { drop_unless_port(ports) };
    tcp.extend(keep_segment());
    let mut udp = Vec::new();
    if ports.is_empty() || ports.contains(&QUIC_PORT) {
        udp.extend(drop_unless_port(&[QUIC_PORT]));
        udp.push(keep(QUIC_SNAP_BYTES));
    }
    udp.push(DROP);
    let mut code = when_equal(libc::IPPROTO_TCP as u32, &tcp);
    code.extend(when_equal(libc::IPPROTO_UDP as u32, &udp));
    code.push(DROP);
    code
}

/// Goes on if the source or the destination is one of the ports.
fn drop_unless_port(ports: &[u16]) -> Vec<Instruction> {
    let len = 2 * (1 + 2 * ports.len()) + 1;
    let mut code = Vec::with_capacity(len);
    for offset in [0, 2] {
        code.push(load(libc::BPF_H | libc::BPF_IND, offset));
        for port in ports {
            code.push((libc::BPF_JMP | libc::BPF_JEQ, 0, 1, u32::from(*port)));
            code.push(pass_over(len - code.len() - 1));
        }
    }
    code.push(DROP);
    code
}

/// Keeps a segment, and as much of it as is of use.
fn keep_segment() -> Vec<Instruction> {
    let mut long = vec![
        // The length of the TCP header, in units of four bytes, is in the upper half of its byte.
        load(libc::BPF_B | libc::BPF_IND, 12),
        (libc::BPF_ALU | libc::BPF_AND, 0, 0, 0xf0),
        (libc::BPF_ALU | libc::BPF_RSH, 0, 0, 2),
        (libc::BPF_ALU | libc::BPF_ADD | libc::BPF_X, 0, 0, 0),
        (libc::BPF_MISC | libc::BPF_TAX, 0, 0, 0),
        load(libc::BPF_B | libc::BPF_IND, 0),
    ];
    long.extend(when_equal(HANDSHAKE, &[keep(FRAME_BYTES_MAX as u32)]));
    let mut code = vec![load(libc::BPF_W | libc::BPF_LEN, 0)];
    code.extend(when(libc::BPF_JGT, SEGMENT_SNAP_BYTES, &long));
    code.push(keep(SEGMENT_SNAP_BYTES));
    code
}

/// Does what a block says if a test of A is true, and goes on behind it otherwise.
fn when(test: u32, operand: u32, block: &[Instruction]) -> Vec<Instruction> {
    // A conditional jump passes over 255 instructions at most.
    let mut code = vec![(libc::BPF_JMP | test, 1, 0, operand), pass_over(block.len())];
    code.extend(block);
    code
}

fn when_equal(operand: u32, block: &[Instruction]) -> Vec<Instruction> {
    when(libc::BPF_JEQ, operand, block)
}

fn pass_over(instructions: usize) -> Instruction {
    (libc::BPF_JMP | libc::BPF_JA, 0, 0, instructions as u32)
}

/// Into A.
fn load(size_and_mode: u32, offset: u32) -> Instruction {
    (libc::BPF_LD | size_and_mode, 0, 0, offset)
}

/// Into A, what the kernel knows of a packet beside its bytes.
fn load_ancillary(field: i32) -> Instruction {
    load(libc::BPF_W | libc::BPF_ABS, (libc::SKF_AD_OFF + field) as u32)
}

fn keep(bytes: u32) -> Instruction {
    (libc::BPF_RET, 0, 0, bytes)
}

fn assemble(code: &[Instruction]) -> Vec<SockFilter> {
    code.iter().map(|&(code, jt, jf, k)| SockFilter::new(code as u16, jt, jf, k)).collect()
}
