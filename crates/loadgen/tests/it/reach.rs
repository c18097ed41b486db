//! Servers over unix sockets and without a protocol, and finding out beforehand whether one can be reached.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

use loadgen::{ConnectTo, DemoUpstream, Destination, LoadConfig, Template, Trust, UpstreamAddr, probe};
use records::metrics::LoadCounter as C;

use crate::support::{ServerAction, TestServer, TlsVersion, config, plan, run};

const PATIENCE: Duration = Duration::from_millis(500);

#[test]
fn a_unix_socket_is_reached_like_any_server() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("app.sock");
    let _upstream = DemoUpstream::start(UpstreamAddr::Unix(socket.clone())).unwrap();
    let target = "http://localhost/bytes/100".parse().unwrap();
    let config = LoadConfig {
        destination: Some(Destination::Unix(socket)),
        ..LoadConfig::new(target, plan("connections=2,keep-alive=5,requests=50"), Trust::Roots)
    };
    probe(&config, PATIENCE).unwrap();
    let (all, _) = run(config);
    // The two connections may both end with requests to go.
    assert!(matches!((all.counters[C::Ok], all.counters[C::Opened]), (50, 10 | 11)), "{:?}", all.counters);
    assert_eq!(all.counters[C::BodyOut], 5_000);
}

#[test]
fn another_address_is_reached_under_the_name_of_the_url() {
    let server = TestServer::tls(TlsVersion::V13, |exchange| {
        assert_eq!(exchange.host, "localhost:1");
        ServerAction::ok(1)
    });
    let good = config(&server, "connections=1,requests=3");
    let rule = format!("localhost:1:127.0.0.1:{}", good.target.port());
    let rule: ConnectTo = rule.parse().unwrap();
    // Nothing listens on port 1.
    let target = "https://localhost:1/".parse().unwrap();
    let destination = rule.destination(&target);
    let redirected = LoadConfig { target, destination, ..good };
    probe(&redirected, PATIENCE).unwrap();
    assert_eq!(run(redirected).0.counters[C::Ok], 3);
}

/// Sends back what it gets, over so many connections, but for the letter x in place of each y.
fn echo(listener: TcpListener, connections: usize) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let serve = |mut stream: std::net::TcpStream| {
            let mut buffer = [0; 10_000];
            while let Ok(len @ 1..) = stream.read(&mut buffer) {
                buffer[..len].iter_mut().filter(|b| **b == b'y').for_each(|b| *b = b'x');
                if stream.write_all(&buffer[..len]).is_err() {
                    return;
                }
            }
        };
        let threads: Vec<_> = listener
            .incoming()
            .take(connections)
            .map(|stream| std::thread::spawn(move || serve(stream.unwrap())))
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    })
}

#[test]
fn an_echo_is_verified_byte_for_byte() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("tcp://{}", listener.local_addr().unwrap()).parse().unwrap();
    let server = echo(listener, 5);
    // The pattern reaches the letter y after 24 bytes.
    let requests = vec![Template::post("/", 24), Template::post("/", 100_000)];
    let config = LoadConfig::new(target, plan("connections=1,keep-alive=4,requests=20"), Trust::Roots);
    let (all, _) = run(LoadConfig { requests, ..config });
    server.join().unwrap();
    let counts = &all.counters;
    assert_eq!((counts[C::Ok], counts[C::FailedBody], counts[C::Opened]), (10, 10, 5), "{counts:?}");
    assert_eq!(counts[C::BodyIn], 10 * 100_024);
    assert_eq!((counts[C::BytesIn], counts[C::BytesOut]), (10 * 100_024, 10 * 100_024));
    assert_eq!(counts[C::Status2xx], 0, "an echo has no status");
}

fn refusal(config: &LoadConfig) -> String {
    probe(config, PATIENCE).unwrap_err().to_string()
}

#[test]
fn a_probe_names_the_obstacle() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(1));
    let good = config(&server, "connections=1");
    probe(&good, PATIENCE).unwrap();
    let untrusted = refusal(&LoadConfig { trust: Trust::Roots, ..good.clone() });
    assert!(
        untrusted.contains("the certificate is signed by nobody who is trusted")
            && untrusted.contains("--insecure"),
        "{untrusted}"
    );
    let mut incompatible = good.clone();
    incompatible.tls.version = Some(TlsVersion::V12);
    assert!(refusal(&incompatible).contains("ProtocolVersion"), "{}", refusal(&incompatible));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let silent = LoadConfig { target: silent, ..good.clone() };
    assert!(refusal(&silent).contains("no answer within 500ms"), "{}", refusal(&silent));
    drop(listener);
    assert!(refusal(&silent).contains("Connection refused"), "{}", refusal(&silent));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 10_000]).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    });
    let plain = refusal(&LoadConfig { target: plain, ..good.clone() });
    assert!(plain.contains("the server does not speak TLS on this port"), "{plain}");
    server.join().unwrap();

    let nowhere = LoadConfig { destination: Some(Destination::Unix("/no/such.sock".into())), ..good };
    assert!(refusal(&nowhere).contains("/no/such.sock"), "{}", refusal(&nowhere));
}
