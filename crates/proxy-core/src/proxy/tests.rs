use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;

use super::*;
use crate::tls::Certificate;
use crate::upstream::target::Upstream;
use crate::worker::pool::WorkerCommand;

const PATIENCE: Duration = Duration::from_secs(20);

fn config(workers: usize) -> ProxyConfig {
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let upstream = Upstream::unix("/nonexistent/app.sock");
    let mut config = ProxyConfig::new(listen, upstream, Certificate::generate(&[]).unwrap());
    config.workers = workers.try_into().unwrap();
    config
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_panicked_worker_is_a_failure_and_its_backlog_is_served() {
    let proxy = Proxy::start(config(2)).unwrap();
    assert_eq!(proxy.failure(), None);
    proxy.pool().tell(1, WorkerCommand::Panic);
    eventually("the failure is noticed", || proxy.failure().is_some());
    assert!(!proxy.is_drained(), "the other one goes on");
    // The kernel spreads them over both sockets by chance.
    let clients: Vec<_> = (0..32).map(|_| TcpStream::connect(proxy.local_addrs()[0]).unwrap()).collect();
    proxy.drain();
    for mut client in clients {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(b"this is no TLS").unwrap();
        client.read_exact(&mut [0; 1]).expect("an alert comes");
    }
    assert!(proxy.wait(PATIENCE));
    let failure = proxy.join().unwrap_err();
    assert_eq!(failure.to_string(), "the proxy's worker 1 panicked: told to panic");
}

#[test]
fn a_retired_worker_fails_only_if_it_panics() {
    let proxy = Proxy::start(config(3)).unwrap();
    proxy.set("proxy.workers", &Value::Number(2.0)).unwrap();
    eventually("the worker ends", || proxy.pool().have_retired_ended());
    assert_eq!(proxy.failure(), None);
    // So each of the others has a connection that keeps it from ending, except with a chance of one in 2^63.
    let _held: Vec<_> = (0..64).map(|_| TcpStream::connect(proxy.local_addrs()[0]).unwrap()).collect();
    proxy.set("proxy.workers", &Value::Number(1.0)).unwrap();
    proxy.pool().tell(1, WorkerCommand::Panic);
    eventually("the failure is noticed", || proxy.failure().is_some());
}

#[test]
fn a_drain_that_cannot_turn_connections_away_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = Proxy::start(config(1)).unwrap();
    // A Unix socket, for which the kernel refuses a TCP option.
    let socket = UnixListener::bind(folder.path().join("socket")).unwrap();
    socket.set_nonblocking(true).unwrap();
    proxy.pool().tell(0, WorkerCommand::ShareListeners(1, vec![TcpListener::from(OwnedFd::from(socket))]));
    proxy.drain();
    assert!(proxy.wait(PATIENCE));
    let said = proxy.take_notices();
    assert!(said.len() == 1 && said[0].text.contains("cannot turn new connections away"), "{said:?}");
    proxy.join().unwrap();
}
