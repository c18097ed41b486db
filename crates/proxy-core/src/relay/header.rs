//! The PROXY header that names the client to the upstream.

use records::kinds::Level;

use crate::accept::proxy_protocol::{self, ClientCertificate, Endpoints, NegotiatedInfo, ProxyProtocol};
use crate::connection::handler::{ClientSession, WorkerContext};
use crate::notices::Subject;

/// The header of a client; empty if none is sent.
pub(super) fn encode(
    session: &ClientSession,
    endpoints: Option<Endpoints>,
    context: &WorkerContext,
) -> Vec<u8> {
    let (Some(endpoints), Some(version)) = (endpoints, context.sends_header) else { return Vec::new() };
    let negotiated = session.negotiated();
    let cipher = negotiated.cipher_name();
    let common_name = match version {
        ProxyProtocol::V1 => Ok(None),
        ProxyProtocol::V2 => negotiated.common_name(),
    };
    let common_name = common_name.unwrap_or_else(|error| {
        let client = endpoints.source.ip();
        let text = format!("the upstream is not told whom the certificate of {client} names: {error}");
        context.notices.say(Subject::CommonName, Level::Warning, &text, context.now);
        None
    });
    let client_certificate = negotiated.has_client_certificate().then_some(ClientCertificate {
        is_of_connection: !negotiated.is_resumed(),
        common_name: common_name.as_deref(),
    });
    let negotiated = NegotiatedInfo {
        version: negotiated.version_name(),
        cipher: &cipher,
        alpn: negotiated.raw_alpn(),
        server_name: negotiated.raw_server_name(),
        client_certificate,
    };
    proxy_protocol::encode(version, endpoints, &negotiated)
}
