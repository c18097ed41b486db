//! Redirects from HTTP without TLS: a listener that answers each request with 308, to https on the same host.
//!
//! One thread serves all clients. Each has one request of HTTP/1.x and a bounded time and head. One client more than
//! there are places takes the place of the one that has been there for longest, so slow clients keep nobody out.
//! Requests for the challenges of ACME (HTTP-01) are answered, not redirected.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hyper::Uri;
use hyper::http::uri::Authority;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;

/// Clients at a time, within the descriptors that the proxy leaves to the process.
const CLIENTS_MAX: usize = 64;
/// The time of a client, from accept to its end.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often timeouts are checked.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Connections that are accepted before clients have their turn.
const ACCEPTS_MAX: usize = 16;
/// What a client may send after its head, which is dropped.
const DROPPED_BYTES_MAX: usize = 1 << 20;
/// Pause after an error of accept, such as a lack of descriptors.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);
/// Longest head of a request, and most fields of it.
const HEAD_BYTES_MAX: usize = 8 << 10;
const FIELDS_MAX: usize = 64;

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// Where the challenges of ACME are (RFC 8555, 8.3).
const CHALLENGE_PATH: &str = "/.well-known/acme-challenge/";

/// Finds the response to a challenge of ACME by its token.
pub type FindChallenge = dyn Fn(&str) -> Option<String> + Send;

/// What clients of this listener are answered.
pub struct RedirectAnswers {
    /// The port that they are redirected to.
    pub https_port: u16,
    pub challenge: Box<FindChallenge>,
}

/// The thread that redirects. It ends when this is dropped.
#[derive(Debug)]
pub struct RedirectServer {
    addr: SocketAddr,
    waker: Waker,
    is_ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RedirectServer {
    /// Redirects the clients of `listener`.
    ///
    /// # Errors
    /// If the kernel refuses an event loop or a thread.
    pub fn start(listener: std::net::TcpListener, answers: RedirectAnswers) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        let mut listener = TcpListener::from_std(listener);
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let is_ending = Arc::new(AtomicBool::new(false));
        let redirector = Redirector {
            poll,
            listener: Some(listener),
            has_backlog: false,
            is_ending: Arc::clone(&is_ending),
            answers,
            clients: Slab::new(),
        };
        let thread = thread::Builder::new().name("redirect".to_owned()).spawn(|| redirector.run())?;
        Ok(Self { addr, waker, is_ending, thread: Some(thread) })
    }

    /// Leaves further clients to another process that has the socket, too.
    pub fn leave(&self) {
        // Otherwise both processes serve them.
        let _ = self.waker.wake();
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }
}

impl Drop for RedirectServer {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Release);
        if self.waker.wake().is_ok()
            && let Some(thread) = self.thread.take()
        {
            // A panic has been printed by the thread itself.
            let _ = thread.join();
        }
    }
}

struct Redirector {
    poll: Poll,
    /// `None` once another process serves its clients.
    listener: Option<TcpListener>,
    /// Whether more connections may wait to be accepted.
    has_backlog: bool,
    is_ending: Arc<AtomicBool>,
    answers: RedirectAnswers,
    clients: Slab<Client>,
}

struct Client {
    stream: TcpStream,
    accepted_at: Instant,
    /// What it has sent of a head; `None` once it is answered.
    head: Option<Vec<u8>>,
    /// Bytes that were read after that: closing without reading them would reset the connection.
    dropped_bytes: usize,
}

impl Redirector {
    fn run(mut self) {
        let mut events = Events::with_capacity(CLIENTS_MAX);
        loop {
            let wait = if self.has_backlog { Duration::ZERO } else { CHECK_INTERVAL };
            if let Err(error) = self.poll.poll(&mut events, Some(wait))
                && error.kind() != io::ErrorKind::Interrupted
            {
                return;
            }
            for event in &events {
                match event.token() {
                    WAKER if self.is_ending.load(Ordering::Acquire) => return,
                    WAKER => self.leave(),
                    LISTENER => self.has_backlog = true,
                    Token(key) => self.serve(key),
                }
            }
            if self.has_backlog {
                self.accept();
            }
            let now = Instant::now();
            self.clients
                .retain(|_, client| now.saturating_duration_since(client.accepted_at) < CLIENT_TIMEOUT);
        }
    }

    /// Accepts no more. The other process has the same socket, so closing this one does not end its events.
    fn leave(&mut self) {
        if let Some(mut listener) = self.listener.take() {
            let _ = self.poll.registry().deregister(&mut listener);
        }
    }

    /// Accepts some of the connections that wait.
    fn accept(&mut self) {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else { break };
            match listener.accept() {
                Ok((stream, _)) => self.add(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.has_backlog = false;
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => return thread::sleep(ACCEPT_BACK_OFF),
            }
        }
        self.has_backlog &= self.listener.is_some();
    }

    fn add(&mut self, mut stream: TcpStream) {
        if self.clients.len() >= CLIENTS_MAX
            && let Some((oldest, _)) = self.clients.iter().min_by_key(|(_, client)| client.accepted_at)
        {
            self.clients.remove(oldest);
        }
        let entry = self.clients.vacant_entry();
        // Registering reports what has arrived before.
        if self.poll.registry().register(&mut stream, Token(entry.key()), Interest::READABLE).is_ok() {
            entry.insert(Client {
                stream,
                accepted_at: Instant::now(),
                head: Some(Vec::new()),
                dropped_bytes: 0,
            });
        }
    }

    fn serve(&mut self, key: usize) {
        // It may have had to leave in this turn.
        let Some(client) = self.clients.get_mut(key) else { return };
        if !client.serve(&self.answers) {
            self.clients.remove(key);
        }
    }
}

impl Client {
    /// Reads what has come, and answers a whole head. False if the connection is over.
    fn serve(&mut self, answers: &RedirectAnswers) -> bool {
        let mut bytes = [0; 2048];
        loop {
            let n = match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            let Some(head) = &mut self.head else {
                self.dropped_bytes += n;
                if self.dropped_bytes > DROPPED_BYTES_MAX {
                    return false;
                }
                continue;
            };
            head.extend_from_slice(&bytes[..n]);
            if let Some(response) = response(head, answers) {
                self.head = None;
                // The buffer of a new connection has room for it. A client that is gone needs none.
                if self.stream.write_all(response.as_bytes()).is_err()
                    || self.stream.shutdown(Shutdown::Write).is_err()
                {
                    return false;
                }
            }
        }
    }
}

/// The response to a head; `None` while it is not whole.
fn response(head: &[u8], answers: &RedirectAnswers) -> Option<String> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() < HEAD_BYTES_MAX => return None,
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Some(plain("431 Request Header Fields Too Large", "the request's header is too large\n"));
        }
        Err(_) => return Some(plain("400 Bad Request", "the request is malformed\n")),
    }
    let is_get = matches!(request.method, Some("GET"));
    let token = request.path.filter(|_| is_get).and_then(|path| path.strip_prefix(CHALLENGE_PATH));
    if let Some(answer) = token.and_then(|token| (answers.challenge)(token)) {
        return Some(plain("200 OK", &answer));
    }
    Some(match location(&request, answers.https_port) {
        Some(location) => format!(
            "HTTP/1.1 308 Permanent Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        None => plain("400 Bad Request", "the request names no host, or no path\n"),
    })
}

fn plain(status: &str, text: &str) -> String {
    let length = text.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{text}"
    )
}

/// The same resource over https; `None` if the request does not name it without doubt.
fn location(request: &httparse::Request<'_, '_>, https_port: u16) -> Option<String> {
    let mut hosts = request.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return None };
    let target: Uri = request.path?.parse().ok()?;
    let host: Authority = std::str::from_utf8(host.value).ok()?.parse().ok()?;
    // A target in absolute form has precedence (RFC 9112, section 3.2.2).
    let host = target.authority().unwrap_or(&host);
    let path = target.path_and_query()?.as_str();
    if host.as_str().contains('@') || host.host().is_empty() || !path.starts_with('/') {
        return None;
    }
    // `Location` is in ASCII; a path may have been sent with other bytes.
    path.bytes().all(|byte| byte.is_ascii_graphic()).then(|| match https_port {
        443 => format!("https://{}{path}", host.host()),
        port => format!("https://{}:{port}{path}", host.host()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(https_port: u16) -> RedirectAnswers {
        let challenge = |token: &str| (token == "token").then(|| "token.key".to_owned());
        RedirectAnswers { https_port, challenge: Box::new(challenge) }
    }

    fn answer(head: &str) -> String {
        response(head.as_bytes(), &answers(443)).unwrap()
    }

    #[test]
    fn a_challenge_is_answered_and_an_unknown_one_redirected() {
        let ask =
            |token| answer(&format!("GET /.well-known/acme-challenge/{token} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let known = ask("token");
        assert!(known.starts_with("HTTP/1.1 200 OK\r\n") && known.ends_with("\r\n\r\ntoken.key"), "{known}");
        assert!(ask("other").starts_with("HTTP/1.1 308 "));
        let posted = answer("POST /.well-known/acme-challenge/token HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(posted.starts_with("HTTP/1.1 308 "));
    }

    #[test]
    fn a_request_is_redirected_to_its_host_and_path() {
        for (request, location) in [
            ("GET /a/b?c=d HTTP/1.1\r\nHost: shop.example\r\n\r\n", "https://shop.example/a/b?c=d"),
            ("POST / HTTP/1.1\r\nhost: shop.example:80\r\n\r\n", "https://shop.example/"),
            ("GET //other/ HTTP/1.0\r\nHost: shop.example\r\n\r\n", "https://shop.example//other/"),
            ("GET http://other.example/x HTTP/1.1\r\nHost: a\r\n\r\n", "https://other.example/x"),
            ("GET / HTTP/1.1\r\nHost: [2001:db8::1]:8080\r\n\r\n", "https://[2001:db8::1]/"),
        ] {
            let answer = answer(request);
            assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
            assert!(answer.contains(&format!("\r\nLocation: {location}\r\n")), "{answer}");
        }
        let other_port = response(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &answers(8443)).unwrap();
        assert!(other_port.contains("Location: https://a:8443/\r\n"), "{other_port}");
    }

    #[test]
    fn a_request_without_one_host_is_refused() {
        for request in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost:\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: user@a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
            "GET x HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
            "\u{16}\u{3}\u{1}\r\n\r\n",
        ] {
            assert!(answer(request).starts_with("HTTP/1.1 400 "), "{request:?}");
        }
    }

    #[test]
    fn a_head_is_bounded() {
        let head = |fields: usize| format!("GET / HTTP/1.1\r\n{}", "x: y\r\n".repeat(fields));
        assert_eq!(response(head(10).as_bytes(), &answers(443)), None, "it is not whole");
        assert!(answer(&head(FIELDS_MAX + 1)).starts_with("HTTP/1.1 431 "));
        let long = format!("GET /{}", "x".repeat(HEAD_BYTES_MAX));
        assert!(answer(&long).starts_with("HTTP/1.1 431 "));
    }
}
