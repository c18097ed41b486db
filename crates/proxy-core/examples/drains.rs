//! Connections that a drain loses: the program is started and ended again and again while clients keep connecting.
//!
//! ```text
//! just drains [--drains 100] [--rate 1000] [--user NAME]
//! ```
//!
//! A connection is established when `connect` returns, and lost if it ends without a byte. The clients speak no TLS, which
//! the proxy answers with an alert: that costs both little, and shows that the proxy has accepted the connection. Run
//! it as another user, or with `--user` as root, to see what a process without privileges does.

use std::error::Error;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const CLIENTS: u32 = 16;
/// How long clients connect before the drain begins.
const BEFORE: Duration = Duration::from_millis(500);
/// A client that is turned away does not try again by itself.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<()> {
    let program = argument("program").unwrap_or_else(|| "target/release/tlsdash".to_owned());
    let drains: u32 = argument("drains").map_or(Ok(100), |text| text.parse())?;
    let rate: u32 = argument("rate").map_or(Ok(1_000), |text| text.parse())?;
    let mut total = ClientResults::default();
    let began_at = Instant::now();
    for _ in 0..drains {
        total.add(&drain(&program, rate)?);
    }
    let ClientResults { established, served, turned_away, lasted } = total;
    #[expect(clippy::print_stdout, reason = "a program")]
    {
        println!("{drains} drains in {:.0} s, as {}", began_at.elapsed().as_secs_f64(), who());
        println!(
            "{:.0} connections/s until the socket was closed",
            f64::from(established) / lasted.as_secs_f64()
        );
        println!("{established} established, {} lost, {turned_away} turned away", established - served);
    }
    Ok(())
}

fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip(1);
    arguments.find(|argument| argument.strip_prefix("--") == Some(name))?;
    arguments.next()
}

fn who() -> String {
    let uid = rustix::process::getuid().as_raw();
    argument("user").map_or_else(|| format!("uid {uid}"), |user| format!("uid {uid} with --user {user}"))
}

/// What clients saw.
#[derive(Debug, Default)]
struct ClientResults {
    established: u32,
    served: u32,
    /// Tries that had no answer.
    turned_away: u32,
    /// Until the drain began.
    lasted: Duration,
}

impl ClientResults {
    fn add(&mut self, other: &Self) {
        self.established += other.established;
        self.served += other.served;
        self.turned_away += other.turned_away;
        self.lasted += other.lasted;
    }
}

/// Starts the program, has clients connect, and ends it.
fn drain(program: &str, rate: u32) -> Result<ClientResults> {
    let mut command = Command::new(program);
    command.args(["--headless", "--workers", "2", "--journal", "off", "--listen", "127.0.0.1:0"]);
    command.args(["--upstream", "unix:/nonexistent/app.sock"]);
    if let Some(user) = argument("user") {
        command.args(["--user", &user]);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut said = BufReader::new(child.stderr.take().ok_or("its stderr is not piped")?).lines();
    let line = said.find_map(|line| line.ok()?.split_once("listening on ").map(|(_, rest)| rest.to_owned()));
    let line = line.ok_or("it did not start to listen")?;
    let addr: SocketAddr = line.split(',').next().unwrap_or_default().parse()?;
    thread::spawn(move || said.count());
    let began_at = Instant::now();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let first = began_at + Duration::from_secs(1) * client / rate;
            thread::spawn(move || connect_until_refused(addr, first, Duration::from_secs(1) * CLIENTS / rate))
        })
        .collect();
    thread::sleep(BEFORE);
    kill_process(Pid::from_raw(i32::try_from(child.id())?).ok_or("it has no process id")?, Signal::TERM)?;
    let mut seen = ClientResults { lasted: began_at.elapsed(), ..ClientResults::default() };
    for client in clients {
        seen.add(&client.join().map_err(|_| "a client panicked")??);
    }
    let status = child.wait()?;
    if status.success() { Ok(seen) } else { Err(format!("{program}: {status}").into()) }
}

fn connect_until_refused(addr: SocketAddr, mut next: Instant, interval: Duration) -> Result<ClientResults> {
    let mut seen = ClientResults::default();
    loop {
        thread::sleep(next.saturating_duration_since(Instant::now()));
        next += interval;
        let mut socket = match TcpStream::connect_timeout(&addr, CONNECT_TIMEOUT) {
            Ok(socket) => socket,
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                seen.turned_away += 1;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(seen),
            Err(error) => return Err(error.into()),
        };
        seen.established += 1;
        socket.set_read_timeout(Some(PATIENCE))?;
        let answered = socket.write_all(b"this is no TLS").and_then(|()| socket.read(&mut [0; 1]));
        seen.served += u32::from(answered.is_ok_and(|n| n > 0));
    }
}
