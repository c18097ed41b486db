//! What clients cost that ask and then read nothing. It is the upstream too, on the unix socket PATH, and writes 64 MB to
//! each connection; the terminator at ADDR is another process, PID, which forwards to that socket:
//!
//! `cargo run --release -p tlsdash-proxy-core --example stalled -- PATH ADDR PID [CLIENTS [SECONDS]]`
//!
//! Every second it prints the memory of the process (its proportional set size), what the kernel holds for TCP, of both
//! ends where they are on one host, and how many clients the terminator has closed.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use rustix::param::page_size;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use tls_client::{Trust, verifier};

const ANSWER_BYTES: usize = 64_000_000;
const CHUNK_BYTES: usize = 64 << 10;
/// Enough for a thread that writes.
const STACK_BYTES: usize = 64 << 10;

type Failure = Box<dyn Error + Send + Sync>;
type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Accepts for ever, and writes the answer to whoever asks, as far as it is taken.
fn serve(listener: &UnixListener) -> io::Result<()> {
    for stream in listener.incoming() {
        let mut stream = stream?;
        thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
            let _ = stream.read(&mut [0; 100]);
            let chunk = vec![0; CHUNK_BYTES];
            let mut left = ANSWER_BYTES;
            while left > 0 && stream.write_all(&chunk[..left.min(CHUNK_BYTES)]).is_ok() {
                left -= left.min(CHUNK_BYTES);
            }
        })?;
    }
    Ok(())
}

fn connect(addr: &str, config: &Arc<ClientConfig>) -> Result<Tls, Failure> {
    let connection = ClientConnection::new(Arc::clone(config), ServerName::try_from("localhost")?)?;
    let mut tls = StreamOwned::new(connection, TcpStream::connect(addr)?);
    tls.write_all(b"go")?;
    tls.flush()?;
    tls.sock.set_nonblocking(true)?;
    Ok(tls)
}

/// The proportional set size of a process, in KiB.
fn memory_kib(pid: &str) -> Result<f64, Failure> {
    number_after(&fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?, "Pss:")
}

/// What the kernel holds for TCP, in KiB.
fn kernel_kib() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/net/sockstat")?;
    let tcp = text.lines().find(|line| line.starts_with("TCP:")).unwrap_or_default();
    Ok(number_after(tcp, " mem ")? * page_size() as f64 / 1024.0)
}

fn number_after(text: &str, word: &str) -> Result<f64, Failure> {
    let (_, rest) = text.split_once(word).ok_or_else(|| format!("no {word:?} in {text:?}"))?;
    Ok(rest.split_whitespace().next().unwrap_or_default().parse()?)
}

/// How many of them have been closed by the other side; what is readable stays unread.
fn closed(clients: &[Tls]) -> usize {
    let is_closed = |tls: &&Tls| {
        let socket = socket2::SockRef::from(&tls.sock);
        socket.take_error().ok().flatten().is_some() || socket.peer_addr().is_err()
    };
    clients.iter().filter(is_closed).count()
}

fn main() -> Result<(), Failure> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let [path, addr, pid, rest @ ..] = &words[..] else {
        return Err("usage: stalled PATH ADDR PID [CLIENTS [SECONDS]]".into());
    };
    let number = |i: usize, otherwise| rest.get(i).map_or(Ok(otherwise), |word| word.parse());
    let (count, seconds) = (number(0, 2_000)?, number(1, 10)?);
    let _ = fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    thread::spawn(move || serve(&listener));
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier(&Trust::Insecure, &provider)?)
        .with_no_client_auth();
    let config = Arc::new(config);
    drop(connect(addr, &config)?);
    thread::sleep(Duration::from_secs(1));
    let (memory, kernel) = (memory_kib(pid)?, kernel_kib()?);
    let clients = (0..count).map(|_| connect(addr, &config)).collect::<Result<Vec<_>, _>>()?;
    let began_at = Instant::now();
    for _ in 0..seconds {
        thread::sleep(Duration::from_secs(1));
        let (memory, kernel) = (memory_kib(pid)? - memory, kernel_kib()? - kernel);
        println!(
            "{:3} s: process {:.1} MiB, {:.1} KiB a client; kernel {:.1} MiB, {:.1} KiB a client; {} closed",
            began_at.elapsed().as_secs(),
            memory / 1024.0,
            memory / f64::from(count),
            kernel / 1024.0,
            kernel / f64::from(count),
            closed(&clients)
        );
    }
    Ok(())
}
