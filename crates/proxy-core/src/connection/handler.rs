//! The [`Handler`] trait, which serves a connection after its handshake.

use std::time::Instant;

use mio::Token;
use mio::event::Event;
use records::delta::ProxyDelta;
use records::kinds::ConnectionOutcome;

pub use super::ending::{ConnEnd, NextStep};
pub use super::session::ClientSession;
use super::socket_role::{SocketRole, token};
use crate::accept::proxy_protocol::Endpoints;
pub use crate::worker::context::WorkerContext;

/// Serves one client once its handshake is complete. The worker is generic over the handler, so all calls are direct.
///
/// In each iteration of its loop, the worker calls [`Handler::note`] for events, then [`Handler::read`], and
/// [`Handler::write`] once all other connections of the batch have read.
pub trait Handler: Sized + 'static {
    /// Resources that the handlers of one worker share, such as upstream connections. They never leave the worker's
    /// thread.
    type Resources;

    /// Begins when the handshake is complete. `endpoints` are known if a PROXY header is sent or was received.
    fn start(
        session: &mut ClientSession,
        endpoints: Option<Endpoints>,
        context: &mut WorkerContext,
        resources: &mut Self::Resources,
    ) -> Self;

    /// Notes an event of the socket that is registered with [`ClientSession::handler_token`].
    fn note(&mut self, event: &Event);

    /// Notes that the resources have woken it.
    fn wake(&mut self);

    /// Reads available bytes, from the client by [`ClientSession::read`] and from its own socket.
    ///
    /// # Errors
    /// How the connection ends.
    fn read(&mut self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd>;

    /// Writes pending bytes, for the client by [`ClientSession::flush`].
    ///
    /// # Errors
    /// How the connection ends.
    fn write(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
        resources: &mut Self::Resources,
    ) -> Result<NextStep, ConnEnd>;

    /// Acts on the deadline of [`ClientSession::set_deadline`], which is not armed any more; `write` follows.
    ///
    /// # Errors
    /// How the connection ends.
    fn expired(&mut self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd>;

    /// Takes the limits as they are after a change, or at the beginning of a drain.
    fn limits_changed(&mut self, session: &mut ClientSession, context: &mut WorkerContext);

    /// Whether nothing is pending in either direction, so a draining proxy may close the connection cleanly.
    fn is_unused(&self, session: &ClientSession) -> bool;

    /// Since when nothing is under way in either direction; `None` while something may be.
    fn idle_since(&self, session: &ClientSession) -> Option<Instant>;

    /// Ends the idle connection, to free its memory; `write` follows.
    ///
    /// # Errors
    /// How the connection ends.
    fn close_idle(&mut self, session: &mut ClientSession, context: &mut WorkerContext)
    -> Result<(), ConnEnd>;

    /// Returns its shared resources, before it is dropped. `outcome` is the end of the connection.
    fn stop(
        &mut self,
        outcome: ConnectionOutcome,
        session: &ClientSession,
        context: &mut WorkerContext,
        resources: &mut Self::Resources,
    );

    /// The keys of connections to wake. One of them may have been closed since.
    fn take_woken(resources: &mut Self::Resources) -> Vec<usize>;

    /// Notes an event of the socket that the resources have registered with [`resources_token`] of this key.
    fn note_resources(_resources: &mut Self::Resources, _key: usize, _event: &Event) {}

    /// Takes over changed [`HandlerSettings`](crate::HandlerSettings).
    fn settings_changed(_resources: &mut Self::Resources) {}

    /// Adds the resources' counts since the last call to `delta`.
    fn hand_over(_resources: &mut Self::Resources, _delta: &mut ProxyDelta) {}

    /// Gives the resources up, since the worker serves no more connections; [`Handler::hand_over`] follows a last time.
    fn end_resources(_resources: &mut Self::Resources) {}

    /// Closes the resources' sockets that have been unused since `until`, to free their memory.
    fn close_idle_resources(_resources: &mut Self::Resources, _until: Instant) {}

    /// Acts on the resources' deadlines; connections that this wakes are served in this turn.
    fn expire_resources(_resources: &mut Self::Resources, _now: Instant) {}

    /// When [`Handler::expire_resources`] is due.
    fn next_deadline(_resources: &Self::Resources) -> Option<Instant> {
        None
    }
}

/// The token for a socket of the resources; its events come to [`Handler::note_resources`] with this key.
pub fn resources_token(key: usize) -> Token {
    token(key, SocketRole::Resources)
}
