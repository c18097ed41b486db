//! The same TLS for a protocol whose library wants a stream that it can await.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::{ClientTls, Handshake, TlsError};
use crate::ledger::Failure;

/// A stream with TLS on it, and what both ends agreed upon.
type Connected<S> = (TlsStream<S>, Option<Handshake>);

impl ClientTls {
    /// Begins a connection over a stream. Gives also whether a session is offered, as [`ClientTls::begin`] does.
    pub(crate) fn connect<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        wanted: bool,
        stream: S,
    ) -> (impl Future<Output = io::Result<Connected<S>>> + use<S>, bool) {
        self.sessions.allow(wanted);
        // The library asks for a session right here, before it is awaited.
        let connecting = TlsConnector::from(Arc::clone(&self.config)).connect(self.name.clone(), stream);
        let offered = self.sessions.was_offered();
        let connected = async move {
            let stream = connecting.await?;
            let handshake = Handshake::of(stream.get_ref().1);
            Ok((stream, handshake))
        };
        (connected, offered)
    }
}

/// What an error of a stream means for a request, if it is one of TLS.
pub(crate) fn failure(error: &io::Error) -> Option<Failure> {
    let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    Some(TlsError(inner.clone()).failure())
}
