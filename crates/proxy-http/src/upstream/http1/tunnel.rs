//! Tunnels: bytes both ways on a connection that has switched protocols.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use hyper::rt::{Read as _, ReadBuf, Write as _};

use super::exchange::Http1Exchange;
use crate::runtime::io::WireIo;

/// Most that is taken from the client at once.
const READ_BYTES_MAX: usize = 16 << 10;

/// A tunnel between a client and an upstream after `101 Switching Protocols`.
struct Tunnel {
    client: WireIo,
    upstream: Http1Exchange,
    from_client: BytesMut,
    from_upstream: Bytes,
    has_client_ended: bool,
    has_told_upstream: bool,
    has_upstream_ended: bool,
}

/// Passes bytes until both sides have ended. `received` came from the client behind its request.
///
/// # Errors
/// When the upstream breaks.
pub(crate) async fn run(client: WireIo, received: Bytes, upstream: Http1Exchange) -> io::Result<()> {
    let mut tunnel = Tunnel {
        client,
        upstream,
        from_client: received.into(),
        from_upstream: Bytes::new(),
        has_client_ended: false,
        has_told_upstream: false,
        has_upstream_ended: false,
    };
    let ended = poll_fn(|cx| tunnel.poll(cx)).await;
    tunnel.upstream.end_tunnel(ended.is_ok());
    ended
}

impl Tunnel {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let _ = self.poll_to_upstream(cx)?;
        // After the upstream has ended, bytes of the client have no reader.
        self.poll_to_client(cx)
    }

    fn poll_to_upstream(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.upstream.poll_send(&mut self.from_client, cx))?;
            if self.from_client.has_remaining() {
                continue;
            }
            if self.has_client_ended {
                if !self.has_told_upstream {
                    ready!(self.upstream.poll_shut_down(cx))?;
                    self.has_told_upstream = true;
                }
                return Poll::Ready(Ok(()));
            }
            let mut bytes = [0; READ_BYTES_MAX];
            let mut buf = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.client).poll_read(cx, buf.unfilled()))?;
            self.has_client_ended = buf.filled().is_empty();
            self.from_client.extend_from_slice(buf.filled());
        }
    }

    fn poll_to_client(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while self.from_upstream.has_remaining() {
                let n = ready!(Pin::new(&mut self.client).poll_write(cx, &self.from_upstream))?;
                self.from_upstream.advance(n);
            }
            if self.has_upstream_ended {
                return Pin::new(&mut self.client).poll_flush(cx);
            }
            let bytes = ready!(self.upstream.poll_received(cx))?;
            self.has_upstream_ended = bytes.is_empty();
            self.from_upstream = bytes;
        }
    }
}
