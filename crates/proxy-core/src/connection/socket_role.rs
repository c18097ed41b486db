//! Which socket of a connection an event is for.

use mio::Token;

/// The socket of a connection that an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketRole {
    Client,
    /// The socket that the handler registered, such as the one to the upstream.
    Handler,
    /// A socket of the resources that the worker's handlers share.
    Resources,
}

/// The token of a connection's socket, or of one of the resources.
pub(super) fn token(key: usize, role: SocketRole) -> Token {
    let role = match role {
        SocketRole::Client => 0,
        SocketRole::Handler => 1,
        SocketRole::Resources => 2,
    };
    Token(key * 4 + role)
}

/// The inverse of [`token`]: the connection's key, and which of its sockets.
pub(crate) fn parse_token(token: Token) -> (usize, SocketRole) {
    let role = match token.0 % 4 {
        0 => SocketRole::Client,
        1 => SocketRole::Handler,
        _ => SocketRole::Resources,
    };
    (token.0 / 4, role)
}
