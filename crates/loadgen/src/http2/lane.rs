//! A lane: a place for one connection at a time, which all its streams share.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use bytes::Bytes;
use h2::client::SendRequest;
use telemetry::{LoadCounter, LoadEvent, LoadLatency};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Mutex;

use super::Shared;
use super::wire::{Counted, Wire};
use crate::clock::now_ns;
use crate::ledger::{Failure, Over, Request};
use crate::plan::KeepAlive;
use crate::socket::{Address, begin_tcp};
use crate::tls::{self, Alpn};

/// Window for data of a connection and of each of its streams, as h2load offers it: the load is not to be held back.
const WINDOW_BYTES: u32 = (1 << 30) - 1;

#[derive(Debug, Default)]
pub(super) struct Lane {
    live: RefCell<Option<Rc<Live>>>,
    /// Taken by the stream that makes the connection; the others wait for it.
    dialling: Mutex<()>,
    /// Connections that it had before.
    generation: Cell<u64>,
}

/// A connection that can carry requests.
#[derive(Debug)]
pub(super) struct Live {
    sender: SendRequest<Bytes>,
    /// Others like it that no stream uses now: to make and drop one takes the connection's lock each time.
    spare: RefCell<Vec<SendRequest<Bytes>>>,
    pub(super) client: usize,
    /// Requests that it carries or has carried.
    pub(super) carried: Cell<u32>,
    opened_ns: u64,
    /// When it could carry its first request.
    pub(super) ready_ns: u64,
    /// How it was made.
    pub(super) over: Over,
    generation: u64,
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<S: AsyncRead + AsyncWrite + Unpin> Duplex for S {}

impl Lane {
    /// Lets go of the connection; it ends once its requests have.
    pub(super) fn retire(&self) {
        self.live.borrow_mut().take();
    }

    /// Lets go of a connection that turned out to be of no use, unless another has taken its place.
    pub(super) fn retire_this(&self, live: &Live) {
        self.live.borrow_mut().take_if(|other| other.generation == live.generation);
    }

    /// A connection for one more request: the one that there is, or a new one.
    pub(super) async fn connection(
        self: &Rc<Self>,
        shared: &Rc<Shared>,
        request: &Request,
        keepalive: KeepAlive,
    ) -> Result<Rc<Live>, Failure> {
        if let Some(live) = self.take(shared, keepalive) {
            return Ok(live);
        }
        let _only_one = self.dialling.lock().await;
        if let Some(live) = self.take(shared, keepalive) {
            return Ok(live);
        }
        let live = self.dial(shared, request).await?;
        *self.live.borrow_mut() = Some(Rc::new(live));
        self.take(shared, keepalive)
            .ok_or_else(|| Failure::new(LoadEvent::Reset, "the connection ended as it was made"))
    }

    fn take(&self, shared: &Shared, keepalive: KeepAlive) -> Option<Rc<Live>> {
        let mut slot = self.live.borrow_mut();
        let live = slot.as_ref()?;
        let is_old = shared.setup.lifetime_ns.is_some_and(|most_ns| {
            now_ns().saturating_sub(live.opened_ns) >= most_ns && live.carried.get() > 0
        });
        let is_spent = matches!(keepalive, KeepAlive::Requests(most) if live.carried.get() >= most);
        if is_old || is_spent {
            slot.take();
            return None;
        }
        live.carried.set(live.carried.get() + 1);
        Some(Rc::clone(live))
    }

    async fn dial(self: &Rc<Self>, shared: &Rc<Shared>, request: &Request) -> Result<Live, Failure> {
        let client = shared.next_client.get();
        shared.next_client.set((client + 1) % shared.clients.borrow().len());
        let opened_ns = now_ns();
        let stream = reach(shared, client).await?;
        let established_ns = now_ns();
        shared.ledger.borrow_mut().count(LoadCounter::Opened);
        if !request.warmup {
            let mut ledger = shared.ledger.borrow_mut();
            ledger.time(LoadLatency::Connect, Some(opened_ns), established_ns);
        }
        // From here on the connection counts as open, and as closed once its wire has ended.
        let wire = Rc::new(Wire::default());
        let end = EndOfWire(Rc::clone(&wire));
        shared.wires.borrow_mut().push((client, Rc::clone(&wire)));
        let (stream, over) = secure(shared, client, stream, request, established_ns).await?;
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
        builder.enable_push(false);
        let shaken = builder.handshake::<_, Bytes>(Counted { inner: stream, wire }).await;
        let (sender, connection) =
            shaken.map_err(|error| Failure::new(LoadEvent::Protocol, error.to_string()))?;
        let generation = self.generation.get() + 1;
        self.generation.set(generation);
        let lane = Rc::clone(self);
        tokio::task::spawn_local(async move {
            // What ended it is what its requests tell.
            let _ = connection.await;
            lane.live.borrow_mut().take_if(|live| live.generation == generation);
            drop(end);
        });
        Ok(Live {
            sender,
            spare: RefCell::default(),
            client,
            carried: Cell::new(0),
            opened_ns,
            ready_ns: now_ns(),
            over,
            generation,
        })
    }
}

impl Live {
    /// What sends a request.
    pub(super) fn sender(&self) -> SendRequest<Bytes> {
        self.spare.borrow_mut().pop().unwrap_or_else(|| self.sender.clone())
    }

    /// Keeps what has sent a request for the next one.
    pub(super) fn keep(&self, sender: SendRequest<Bytes>) {
        self.spare.borrow_mut().push(sender);
    }
}

/// Ends a wire when whatever holds it does, a task that is dropped included.
struct EndOfWire(Rc<Wire>);

impl Drop for EndOfWire {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Connects to the server, trying its addresses in turn.
async fn reach(shared: &Shared, client: usize) -> Result<Box<dyn Duplex>, Failure> {
    let addresses = &shared.setup.addresses;
    let from = shared.clients.borrow()[client].bind;
    let mut failure = Failure::new(LoadEvent::ConnectFailed, "");
    for _ in 0..addresses.len() {
        let address = &addresses[shared.address.get()];
        let connected: io::Result<(Box<dyn Duplex>, _)> = match address {
            Address::Unix(path) => UnixStream::connect(path)
                .await
                .map(|unix| (Box::new(unix) as Box<dyn Duplex>, Some(std::net::Ipv4Addr::LOCALHOST.into()))),
            Address::Tcp(to) => connect_tcp(*to, from).await.map(|tcp| {
                let local = tcp.local_addr().ok().map(|address| address.ip().to_canonical());
                (Box::new(tcp) as Box<dyn Duplex>, local)
            }),
        };
        match connected {
            Ok((stream, local)) => {
                let client = &mut shared.clients.borrow_mut()[client];
                client.totals.connections += 1;
                client.address = client.address.or(local);
                return Ok(stream);
            }
            Err(error) => failure = Failure::connect(address, &error),
        }
        shared.address.set((shared.address.get() + 1) % addresses.len());
    }
    Err(failure)
}

async fn connect_tcp(to: std::net::SocketAddr, from: Option<std::net::Ipv4Addr>) -> io::Result<TcpStream> {
    let tcp = TcpStream::from_std(begin_tcp(to, from)?)?;
    tcp.writable().await?;
    match tcp.take_error()? {
        Some(error) => Err(error),
        None => Ok(tcp),
    }
}

/// Shakes hands, if there is TLS; gives also what that makes of the connection.
async fn secure(
    shared: &Shared,
    client: usize,
    stream: Box<dyn Duplex>,
    request: &Request,
    established_ns: u64,
) -> Result<(Box<dyn Duplex>, Over), Failure> {
    let (connecting, offered, wanted) = {
        let mut clients = shared.clients.borrow_mut();
        let client = &mut clients[client];
        let Some(tls) = &client.tls else { return Ok((stream, Over::Plain)) };
        let wanted = client.resume.next(shared.resume.get());
        let (connecting, offered) = tls.connect(wanted, stream);
        (connecting, offered, wanted)
    };
    {
        let mut ledger = shared.ledger.borrow_mut();
        ledger.add(LoadCounter::ResumptionsWanted, u64::from(wanted));
        ledger.add(LoadCounter::ResumptionsOffered, u64::from(offered));
    }
    let connected = connecting.await;
    let mut ledger = shared.ledger.borrow_mut();
    let (stream, handshake) = connected.map_err(|error| {
        ledger.count(LoadCounter::HandshakesFailed);
        tls::failure(&error).unwrap_or_else(|| Failure::new(LoadEvent::HandshakeCut, error.to_string()))
    })?;
    let mut over = Over::Full;
    if let Some(handshake) = handshake {
        over = ledger.shaken(&handshake, established_ns, request.warmup);
        let totals = &mut shared.clients.borrow_mut()[client].totals;
        totals.handshakes_resumed += u64::from(handshake.resumed);
        totals.handshakes_full += u64::from(!handshake.resumed);
        if handshake.alpn != Some(Alpn::Http2) {
            return Err(Failure::new(LoadEvent::Protocol, "the server did not agree to h2"));
        }
    }
    Ok((Box::new(stream), over))
}
