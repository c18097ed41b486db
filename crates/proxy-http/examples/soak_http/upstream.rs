//! Upstreams of HTTP/1.1: each works for a moment on each request, and restarts when it is told to.

use std::io;
use std::time::Duration;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

use crate::Failure;
use crate::websocket_accept::websocket_accept;

/// How long the upstream works on a request, so that restarts meet some.
pub(crate) const WORK: Duration = Duration::from_millis(2);
/// Bytes of a large response, and of the pieces in which it comes.
pub(crate) const LARGE_BYTES: (usize, usize) = (100_000, 10_000);
/// The same of a long response, which is more than the kernel and the proxy hold.
pub(crate) const LONG_BYTES: (usize, usize) = (12_000_000, 4_000);
static PIECE: [u8; 10_000] = [b'x'; 10_000];
/// Bytes of a message over a WebSocket.
pub(crate) const MESSAGE_BYTES: usize = 1_000;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl Listener {
    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Unix(listener) => Box::new(listener.accept().await?.0),
            Self::Tcp(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

/// Serves on a thread until the value that it returns is dropped. Whoever changes the value restarts it: `serve` gets each
/// connection, and a receiver of changes.
pub(crate) fn serve_on_a_thread<F: Future<Output: Send> + Send + 'static>(
    listen: impl FnOnce() -> io::Result<Listener>,
    serve: impl Fn(Box<dyn Stream>, watch::Receiver<u64>) -> F + Send + 'static,
) -> Result<watch::Sender<u64>, Failure> {
    let (restart, restarts) = watch::channel(0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _in_runtime = runtime.enter();
        listen()?
    };
    std::thread::spawn(move || {
        runtime.block_on(async {
            let mut ended = restarts.clone();
            let ended = ended.wait_for(|_| false);
            tokio::pin!(ended);
            loop {
                tokio::select! {
                    stream = listener.accept() => {
                        let mut restarts = restarts.clone();
                        restarts.mark_unchanged();
                        tokio::spawn(serve(stream?, restarts));
                    }
                    _ = &mut ended => return io::Result::Ok(()),
                }
            }
        })
    });
    Ok(restart)
}

/// Serves HTTP/1.1 on a connection until the upstream restarts.
pub(crate) async fn serve1(stream: Box<dyn Stream>, mut restarts: watch::Receiver<u64>) {
    tokio::select! {
        _ = serve(stream) => {}
        _ = restarts.changed() => {}
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let mut stream = BufReader::with_capacity(1 << 10, stream);
    while let Some(head) = read_head(&mut stream).await? {
        let mut body = vec![0; content_length(&head)];
        stream.read_exact(&mut body).await?;
        tokio::time::sleep(WORK).await;
        let (bytes, piece) = match head.split(' ').nth(1).and_then(|path| path.rsplit('/').next()) {
            Some("large") => LARGE_BYTES,
            Some("long") => LONG_BYTES,
            Some("socket") => return echo(stream, &head).await,
            _ => (5, 5),
        };
        stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n").as_bytes()).await?;
        for _ in 0..bytes / piece {
            stream.write_all(&PIECE[..piece]).await?;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// Switches protocols, and sends each message back until one begins with a `q`.
async fn echo(mut stream: BufReader<impl AsyncRead + AsyncWrite + Unpin>, head: &str) -> io::Result<()> {
    let accept = websocket_accept(field(head, "sec-websocket-key").unwrap_or_default());
    let switched = format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {accept}\r\n\r\n"
    );
    stream.write_all(switched.as_bytes()).await?;
    let mut message = [0; MESSAGE_BYTES];
    loop {
        stream.read_exact(&mut message).await?;
        if message[0] == b'q' {
            return Ok(());
        }
        stream.write_all(&message).await?;
    }
}

/// Reads a head; `None` at the end of the stream.
pub(crate) async fn read_head(stream: &mut BufReader<impl AsyncRead + Unpin>) -> io::Result<Option<String>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}

pub(crate) fn content_length(head: &str) -> usize {
    field(head, "content-length").and_then(|value| value.parse().ok()).unwrap_or(0)
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    fields.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}
