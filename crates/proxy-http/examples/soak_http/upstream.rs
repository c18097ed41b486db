//! The upstream: it works for a moment on each request, and restarts when it is told to.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::UnixListener;
use tokio::sync::watch;

use crate::Failure;

/// How long the upstream works on a request, so that restarts meet some.
const WORK: Duration = Duration::from_millis(2);
/// Bytes of a large response, and of the pieces in which it comes.
pub(crate) const LARGE_BYTES: (usize, usize) = (100_000, 10_000);
/// The same of a long response, which is more than the kernel and the proxy hold.
pub(crate) const LONG_BYTES: (usize, usize) = (12_000_000, 4_000);
static PIECE: [u8; 10_000] = [b'x'; 10_000];
/// Bytes of a message over a WebSocket.
pub(crate) const MESSAGE_BYTES: usize = 1_000;

/// Serves until the process ends. Whoever changes the value that it returns restarts it.
pub(crate) fn serve_on_a_thread(socket: &Path) -> Result<watch::Sender<u64>, Failure> {
    let (restart, restarts) = watch::channel(0);
    let listener = std::os::unix::net::UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let listener = UnixListener::from_std(listener)?;
            loop {
                let (stream, _) = listener.accept().await?;
                let mut restarts = restarts.clone();
                restarts.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = serve(stream) => {}
                        _ = restarts.changed() => {}
                    }
                });
            }
            #[expect(unreachable_code, reason = "names the type of its errors")]
            io::Result::Ok(())
        })
    });
    Ok(restart)
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let mut stream = BufReader::with_capacity(1 << 10, stream);
    while let Some(head) = read_head(&mut stream).await? {
        let mut body = vec![0; content_length(&head)];
        stream.read_exact(&mut body).await?;
        tokio::time::sleep(WORK).await;
        let (bytes, piece) = match head.split(' ').nth(1) {
            Some("/large") => LARGE_BYTES,
            Some("/steady/long") => LONG_BYTES,
            Some("/steady/socket") => return echo(stream).await,
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
async fn echo(mut stream: BufReader<impl AsyncRead + AsyncWrite + Unpin>) -> io::Result<()> {
    let switched = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
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
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}
