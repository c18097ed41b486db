//! HTTP/2 with upstreams: many exchanges at once on few connections.
//!
//! The h2 library speaks the protocol. A connection is a future that the worker polls whenever its socket has an event
//! or an exchange has given it something to send; both happen between two turns, so that the frames of all exchanges of
//! a turn are written together. Exchanges hold their streams themselves.
//!
//! | who does not read | what waits, and where |
//! |---|---|
//! | the client | at most the window of its stream, in the library |
//! | the upstream | a few pieces of content in the exchange, and 16 KiB in the library |
//!
//! Both are counted as held by the client's connection. The window of a connection is that of all its streams together:
//! a client that does not read never stops another.

pub(crate) mod connection;
pub(crate) mod connections;
pub(crate) mod exchange;
pub(crate) mod head;
mod io;
mod received;
