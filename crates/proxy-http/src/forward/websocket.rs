//! Requests for a WebSocket: upgrades of HTTP/1.1 (RFC 6455), and extended CONNECTs of HTTP/2 (RFC 8441). Clients and
//! upstreams may differ in their version: the handshake is translated, and what follows is the same.

use std::cell::RefCell;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Version};
use records::metrics::RequestFailure;

use super::failure::RefusedRequest;
use super::fields::words;
use crate::client::ClientConn;
use crate::request::RequestHandle;
use crate::request::special_fields::{SpecialField, SpecialFields};
use crate::upstream::content::ContentSource;
use crate::upstream::exchange::Exchange;
use crate::upstream::request_head::RequestFraming;
use crate::upstream::response_body::ResponseBody;
use crate::upstream::tunnel::Tunnel;

/// What a server puts behind the key (RFC 6455, section 1.3).
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const KEY_BYTES: usize = 16;

/// The tunnel of a client of HTTP/1.1, which begins once hyper has ended.
pub(crate) type PendingTunnel = RefCell<Option<Tunnel>>;

/// A request for a WebSocket.
#[derive(Debug)]
pub(super) struct WebSocketRequest<'a> {
    /// The key of the side that speaks HTTP/1.1, if the other speaks HTTP/2, which has none: that of the client, or the
    /// proxy's own.
    pub(super) key: Option<HeaderValue>,
    /// What a client of HTTP/2 sends once the upstream has agreed.
    pub(super) content: Option<ContentSource>,
    /// `None` for a client of HTTP/2.
    tunnel: Option<&'a PendingTunnel>,
}

impl<'a> WebSocketRequest<'a> {
    /// An extended CONNECT of HTTP/2, for an upstream of either version.
    pub(super) fn of_http2(is_upstream_http2: bool) -> Self {
        Self { key: (!is_upstream_http2).then(new_key), content: None, tunnel: None }
    }

    /// The upgrade that a request of HTTP/1.1 asks for, if it may.
    pub(super) fn of_http1<B>(
        request: &Request<B>,
        special: SpecialFields,
        framing: RequestFraming,
        is_upstream_http2: bool,
        tunnel: &'a PendingTunnel,
    ) -> Option<Self> {
        // What content is left would be sent as the other protocol. A server may ignore the field (RFC 9110, section 7.8). Only
        // GET asks for a WebSocket (RFC 6455, section 4.1).
        let may_ask = special.has(SpecialField::Upgrade)
            && request.version() == Version::HTTP_11
            && *request.method() == Method::GET
            && framing == RequestFraming::None;
        if !may_ask {
            return None;
        }
        let fields = request.headers();
        let is_listed = || words(fields, &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
        if !is_websocket(fields.get(UPGRADE)?) || !is_listed() {
            return None;
        }
        let mut key = None;
        if is_upstream_http2 {
            key = Some(fields.get(SEC_WEBSOCKET_KEY)?.clone());
        }
        Some(Self { key, content: None, tunnel: Some(tunnel) })
    }

    /// Answers the client once the upstream has agreed, and begins the tunnel.
    ///
    /// # Errors
    /// If the upstream proves to have understood another request.
    pub(super) fn begin(
        self,
        client: &ClientConn,
        handle: &RequestHandle,
        mut response: Response<()>,
        mut exchange: Exchange,
    ) -> Result<Response<ResponseBody>, RefusedRequest> {
        let accept = self.key.as_ref().map(|key| accept_of(key.as_bytes()));
        let fields = response.headers_mut();
        fields.remove(CONTENT_LENGTH);
        if let Some(tunnel) = self.tunnel {
            set_upgrade(fields);
            if let Some(accept) = accept {
                fields.insert(SEC_WEBSOCKET_ACCEPT, accept);
            }
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            tunnel.replace(Some(Tunnel::new(exchange, handle)));
            return Ok(response.map(|()| ResponseBody::empty(handle)));
        }
        let proof = fields.remove(SEC_WEBSOCKET_ACCEPT);
        if accept.is_some_and(|accept| proof != Some(accept)) {
            return Err(RequestFailure::UpstreamInvalid.into());
        }
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            *response.status_mut() = StatusCode::OK;
        }
        exchange.open_tunnel(self.content);
        let body = Tunnel::new(exchange, handle).spawn(client);
        Ok(response.map(|()| ResponseBody::of_tunnel(body, handle)))
    }
}

fn is_websocket(protocol: &HeaderValue) -> bool {
    protocol.as_bytes().eq_ignore_ascii_case(b"websocket")
}

fn set_upgrade(fields: &mut HeaderMap) {
    fields.insert(UPGRADE, HeaderValue::from_static("websocket"));
    fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
}

/// A key that no request has had (RFC 6455, section 4.1).
fn new_key() -> HeaderValue {
    let mut bytes = [0; KEY_BYTES];
    // Without random bytes the upstream's proof proves less, and the WebSocket is the same.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    base64_of(&bytes)
}

/// What a server answers to a key (RFC 6455, section 4.2.2).
fn accept_of(key: &[u8]) -> HeaderValue {
    let text = [key, ACCEPT_SUFFIX.as_bytes()].concat();
    base64_of(digest(&SHA1_FOR_LEGACY_USE_ONLY, &text).as_ref())
}

fn base64_of(bytes: &[u8]) -> HeaderValue {
    HeaderValue::try_from(STANDARD.encode(bytes)).expect("base64 is visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_proved_as_in_the_standard() {
        assert_eq!(accept_of(b"dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let keys = [new_key(), new_key()];
        assert_ne!(keys[0], keys[1]);
        assert_eq!(STANDARD.decode(&keys[0]).unwrap().len(), KEY_BYTES);
    }
}
