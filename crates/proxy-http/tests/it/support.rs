//! What the tests share: a proxy with its counts, and a client of HTTP/1.1 over TLS.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proxy_core::{Certificate, Proxy, ProxyConfig, Tls, Upstream};
use proxy_http::HttpConfig;
use records::delta::{HttpDelta, ProxyDelta};
use records::kinds::HttpGauges;
use records::metrics::{ClientCounter, Counters, FullReason, HttpCounter, HttpLatency, ProxyCounter};
use records::values::WorkerCounts;
use rustls::ClientConfig;

use crate::common;
use crate::common::TlsStream;
pub(crate) use crate::common::{PATIENCE, eventually};

/// A running proxy with everything it has counted so far.
pub(crate) struct TestHttpProxy {
    pub(crate) proxy: Proxy,
    pub(crate) total: ProxyDelta,
    certificate: Vec<u8>,
}

impl TestHttpProxy {
    pub(crate) fn start(upstream: &Upstream) -> Self {
        Self::start_with(upstream, |_, _| {})
    }

    pub(crate) fn start_with(
        upstream: &Upstream,
        change: impl FnOnce(&mut ProxyConfig, &mut HttpConfig),
    ) -> Self {
        let certificate = Certificate::generate(&["localhost".to_owned()]).unwrap();
        let leaf = certificate.leaf_der().to_vec();
        let mut tls = Tls::new(certificate);
        tls.settings.alpn = vec!["h2".to_owned(), "http/1.1".to_owned()];
        let mut config = ProxyConfig::new(vec!["127.0.0.1:0".parse().unwrap()], upstream.clone(), tls);
        config.workers = 1.try_into().unwrap();
        config.tls.upstream.is_insecure = true;
        config.limits.drain_quiet = Duration::from_millis(100);
        let mut http = HttpConfig { records_paths: true, ..HttpConfig::default() };
        change(&mut config, &mut http);
        let proxy =
            proxy_http::bind(config, http, proxy_core::ListenerSource::Bind).unwrap().start().unwrap();
        Self { proxy, total: ProxyDelta::default(), certificate: leaf }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.proxy.local_addrs()[0]
    }

    pub(crate) fn collect(&mut self) -> &HttpDelta {
        self.proxy.collect(&mut self.total, PATIENCE);
        self.total.http.get_or_insert_default()
    }

    pub(crate) fn count(&mut self, counter: HttpCounter) -> u64 {
        self.collect().counters[counter]
    }

    /// What its notices have said since the last call.
    pub(crate) fn said(&self) -> String {
        self.proxy.take_notices().iter().map(|notice| notice.text.clone()).collect()
    }

    /// Waits until `counter` is `n`.
    pub(crate) fn expect(&mut self, counter: HttpCounter, n: u64) {
        eventually(&format!("{counter:?} reaches {n}"), || self.count(counter) >= n);
        assert_eq!(self.count(counter), n, "{counter:?}");
    }

    /// Drains, and checks what must hold of the totals of any proxy.
    pub(crate) fn finish(mut self) -> ProxyDelta {
        self.proxy.drain();
        assert!(self.proxy.wait(PATIENCE), "the drain does not end");
        self.collect();
        let total = std::mem::take(&mut self.total);
        let http = total.http.clone().unwrap();
        let count = |counter| http.counters[counter];
        let of_status = [
            HttpCounter::Status1xx,
            HttpCounter::Status2xx,
            HttpCounter::Status3xx,
            HttpCounter::Status4xx,
            HttpCounter::Status5xx,
            HttpCounter::Unanswered,
        ];
        assert_eq!(http.counters.sum(&of_status), count(HttpCounter::Requests), "each has one status");
        let of_protocol = [HttpCounter::Requests11, HttpCounter::Requests2];
        assert_eq!(http.counters.sum(&of_protocol), count(HttpCounter::Requests));
        assert_eq!(http.latency(HttpLatency::Request).count(), count(HttpCounter::Requests));
        assert_eq!(http.gauges, HttpGauges::default(), "nothing is left open");
        let reasons = FullReason::ALL.map(|(_, counter, _)| counter);
        let full = total.counters[ProxyCounter::HandshakesFull];
        assert_eq!(total.tls.counters.sum(&reasons), full, "each full handshake has one reason");
        let mut of_clients = Counters::default();
        total.clients.iter().for_each(|client| of_clients.add(&client.counters));
        for (of_client, of_proxy) in [
            (ClientCounter::Connections, ProxyCounter::Accepted),
            (ClientCounter::BytesIn, ProxyCounter::BytesIn),
            (ClientCounter::BytesOut, ProxyCounter::BytesOut),
            (ClientCounter::Exchanges, ProxyCounter::Exchanges),
        ] {
            assert_eq!(of_clients[of_client], total.counters[of_proxy], "{of_client:?}");
        }
        let handshakes = total.workers.iter().map(WorkerCounts::handshakes).sum::<u64>();
        assert_eq!(handshakes, full + total.counters[ProxyCounter::HandshakesResumed], "by worker");
        assert_eq!(total.workers.iter().map(|worker| worker.open).sum::<i64>(), 0);
        assert_eq!(
            http.latency(HttpLatency::Upstream).count(),
            total.counters[ProxyCounter::Exchanges],
            "an exchange is a request that an upstream has answered"
        );
        total
    }

    /// How clients of this protocol speak TLS to it.
    pub(crate) fn client_config(&self, alpn: &[&str]) -> Arc<ClientConfig> {
        common::client_config(&self.certificate, alpn)
    }

    /// Connects a client of HTTP/1.1.
    pub(crate) fn connect(&self) -> Http1Client {
        self.connect_with("http/1.1")
    }

    /// Connects a client of this protocol, which sends what it is told.
    pub(crate) fn connect_with(&self, alpn: &str) -> Http1Client {
        self.connect_as(self.client_config(&[alpn]))
    }

    pub(crate) fn connect_as(&self, config: Arc<ClientConfig>) -> Http1Client {
        Http1Client { tls: common::connect(self.addr(), config), received: Vec::new() }
    }

    /// Sends a request on a connection of its own, and returns the response.
    pub(crate) fn ask(&self, request: &str) -> Http1Response {
        let mut client = self.connect();
        client.send(request);
        client.answer()
    }

    /// Asks for a path by GET.
    pub(crate) fn get(&self, path: &str) -> Http1Response {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"))
    }
}

/// A client of HTTP/1.1, which sends what it is told.
pub(crate) struct Http1Client {
    pub(crate) tls: TlsStream,
    pub(crate) received: Vec<u8>,
}

/// A response of HTTP/1.1.
#[derive(Debug)]
pub(crate) struct Http1Response {
    pub(crate) status: u16,
    /// The header as it came, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// The errors of all clients.
pub(crate) fn client_errors(total: &ProxyDelta) -> u64 {
    total.clients.iter().map(|client| client.counters[ClientCounter::Errors]).sum()
}

impl Http1Response {
    /// The value of a field; all of them, if there are several.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        field(&self.head, name)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// The values of a field in a head, with commas between them.
pub(crate) fn field(head: &str, name: &str) -> Option<String> {
    let values: Vec<&str> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
        .collect();
    (!values.is_empty()).then(|| values.join(", "))
}

impl Http1Client {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.tls.write_all(bytes.as_ref()).unwrap();
        self.tls.flush().unwrap();
    }

    /// Reads until `is_enough`, or the end; true if the end came without a `close_notify` or with a reset.
    pub(crate) fn read_until(&mut self, is_enough: impl Fn(&[u8]) -> bool) -> Result<(), bool> {
        let mut bytes = [0; 16 << 10];
        while !is_enough(&self.received) {
            match self.tls.read(&mut bytes) {
                Ok(0) => return Err(false),
                Ok(n) => self.received.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("no answer in time"),
                Err(_) => return Err(true),
            }
        }
        Ok(())
    }

    /// Reads the head of a response.
    pub(crate) fn head(&mut self) -> String {
        let end = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let read = self.read_until(|bytes| end(bytes).is_some());
        assert!(read.is_ok(), "no head: {:?}", String::from_utf8_lossy(&self.received));
        let at = end(&self.received).unwrap() + 4;
        let head = self.received.drain(..at).collect::<Vec<_>>();
        String::from_utf8(head).unwrap().to_ascii_lowercase()
    }

    /// Reads a response, whose content has a length, or chunks.
    pub(crate) fn answer(&mut self) -> Http1Response {
        self.answer_to("GET")
    }

    pub(crate) fn answer_to(&mut self, method: &str) -> Http1Response {
        let head = self.head();
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        let has_content = method != "HEAD" && status >= 200 && status != 204 && status != 304;
        let body = if !has_content {
            Vec::new()
        } else if let Some(length) = field(&head, "content-length") {
            let length: usize = length.parse().unwrap();
            self.read_until(|bytes| bytes.len() >= length).unwrap();
            self.received.drain(..length).collect()
        } else if field(&head, "transfer-encoding").is_some() {
            self.chunks()
        } else {
            let _ = self.read_until(|_| false);
            std::mem::take(&mut self.received)
        };
        Http1Response { status, head, body }
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            self.read_until(|bytes| bytes.windows(2).any(|two| two == b"\r\n")).unwrap();
            let at = self.received.windows(2).position(|two| two == b"\r\n").unwrap();
            let line: Vec<u8> = self.received.drain(..at + 2).collect();
            let n = usize::from_str_radix(std::str::from_utf8(&line[..at]).unwrap(), 16).unwrap();
            self.read_until(|bytes| bytes.len() >= n + 2).unwrap();
            if n == 0 {
                // Trailers stay in `received`.
                if self.received.starts_with(b"\r\n") {
                    self.received.drain(..2);
                }
                return body;
            }
            body.extend(self.received.drain(..n));
            self.received.drain(..2);
        }
    }

    /// Closes with a reset.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.tls.sock).set_linger(Some(Duration::ZERO)).unwrap();
    }
}
