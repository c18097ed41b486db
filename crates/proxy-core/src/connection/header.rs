//! The PROXY protocol on a connection: the header that a trusted peer must send, and the one for the upstream.

use std::io;
use std::net::{IpAddr, SocketAddr};

use mio::net::TcpStream;
use telemetry::{ClientId, Level, Outcome};

use super::{Connection, Phase};
use crate::accept::proxy_protocol::{self, ClientCertificate, Endpoints, Negotiated, Parsed, ProxyProtocol};
use crate::notices::Subject;
use crate::worker::context::Context;

/// What the PROXY protocol needs to know of a connection, where it is used at all.
#[derive(Debug)]
pub(super) struct Header {
    endpoints: Endpoints,
    /// What has come of the header that the peer must send; `None` once it is whole, or if it needs none.
    awaited: Option<Vec<u8>>,
}

impl Header {
    /// What is to be remembered of a connection from `peer`, if anything.
    pub(super) fn of(
        socket: &TcpStream,
        peer: SocketAddr,
        context: &Context,
    ) -> io::Result<Option<Box<Self>>> {
        let is_trusted = !context.trusted.is_empty() && context.trusted.contains(peer.ip());
        if context.sends_header.is_none() && !is_trusted {
            return Ok(None);
        }
        let endpoints = Endpoints::new(peer, socket.local_addr()?);
        Ok(Some(Box::new(Self { endpoints, awaited: is_trusted.then(Vec::new) })))
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.is_some()
    }
}

impl Connection {
    /// Bytes that were received and are not whole enough to be processed: they go in front of the next read.
    pub(super) fn partial_len(&self) -> usize {
        let header = self.header.as_ref().and_then(|header| header.awaited.as_ref());
        header.map_or_else(|| self.engine.partial_len(), Vec::len)
    }

    pub(super) fn awaits_header(&self) -> bool {
        self.header.as_ref().is_some_and(|header| header.is_awaited())
    }

    /// Takes the awaited header off the front of the first `len` bytes of the scratch buffer, where room was left
    /// for what came of it before. Returns how many bytes behind it have been moved to the front, for TLS.
    pub(super) fn receive_header(&mut self, len: usize, context: &mut Context) -> usize {
        let Some(header) = &mut self.header else { return len };
        let Some(awaited) = &mut header.awaited else { return len };
        let bytes = &mut context.scratch[..len];
        bytes[..awaited.len()].copy_from_slice(awaited);
        match proxy_protocol::parse(bytes) {
            Ok(Parsed::Partial) => {
                awaited.clear();
                awaited.extend_from_slice(bytes);
                0
            }
            Ok(Parsed::Header(endpoints, used)) => {
                header.awaited = None;
                header.endpoints = endpoints.unwrap_or(header.endpoints);
                bytes.copy_within(used.., 0);
                let client = header.endpoints.source.ip();
                self.belongs_to(client, context);
                if self.is_over() { 0 } else { len - used }
            }
            Err(error) => {
                self.end(Outcome::HandshakeOther, error, context);
                self.phase = Phase::Done;
                0
            }
        }
    }

    /// Accounts the connection to `client` from now on, which the header of its peer has named.
    fn belongs_to(&mut self, client: IpAddr, context: &mut Context) {
        let clients = &mut context.account.clients;
        clients.release(self.slot);
        self.client_id = ClientId::from(client);
        self.slot = clients.hold(self.client_id);
        self.admit(context);
    }

    /// Puts the header for the upstream in front of what waits for it, so that it goes out with the first bytes.
    pub(super) fn write_header(&mut self, context: &Context) {
        let Some(header) = self.header.take() else { return };
        let Some(version) = context.sends_header else { return };
        let session = self.engine.session();
        let cipher = session.cipher_name();
        let common_name = match version {
            ProxyProtocol::V1 => Ok(None),
            ProxyProtocol::V2 => session.common_name(),
        };
        let common_name = common_name.unwrap_or_else(|error| {
            let client = header.endpoints.source.ip();
            let text = format!("the upstream is not told whom the certificate of {client} names: {error}");
            context.notices.say(Subject::CommonName, Level::Warning, &text, context.now);
            None
        });
        let client_certificate = session.has_client_certificate().then_some(ClientCertificate {
            is_of_connection: !session.is_resumed(),
            common_name: common_name.as_deref(),
        });
        let negotiated = Negotiated {
            version: session.version_name(),
            cipher: &cipher,
            alpn: session.raw_alpn(),
            server_name: session.raw_server_name(),
            client_certificate,
        };
        let bytes = proxy_protocol::encode(version, header.endpoints, &negotiated);
        self.inward.pending.prepend(&bytes);
        self.header_left = bytes.len();
    }
}
