//! The way to the upstream: connecting, and leaving it.

use std::time::Instant;

use telemetry::{Outcome, ProxyCounter, ProxyLatency};

use super::{Connection, Link, Phase, Which, token};
use crate::upstream::dial::{Caller, ConnectProgress};
use crate::worker::context::Context;
use crate::worker::timers::Kind;

impl Connection {
    pub(super) fn dial(&mut self, context: &mut Context) {
        self.dial_is_due = false;
        let Link::Dialling(dial) = &mut self.link else { return };
        let began_at = dial.began_at();
        let token = token(self.key, Which::Upstream);
        let caller = Caller { registry: &context.registry, key: self.key, token, now: context.now };
        match dial.advance(&mut context.dialer, caller) {
            Ok(ConnectProgress::Established(side, upstream)) => {
                let now = Instant::now();
                context.account.count(ProxyCounter::UpstreamConnects, 1);
                context.account.time(ProxyLatency::Connect, now - began_at);
                self.link = Link::Open(side);
                self.upstream = upstream;
                self.phase = Phase::Open;
                self.moved_at = now;
                self.arm_idle(context);
            }
            Ok(ConnectProgress::Wait(until)) => {
                context.timers.arm(&mut self.deadline, self.key, Kind::Phase, until);
            }
            Err(error) => {
                self.release_ticket(context);
                self.notify_close();
                self.begin_closing(Outcome::UpstreamConnect, &error, context);
            }
        }
    }

    /// Lets the attempt to connect go on, as its turn has come.
    pub(crate) fn wake(&mut self) {
        self.dial_is_due = true;
    }

    /// Leaves the upstream.
    pub(super) fn unlink(&mut self, context: &mut Context) {
        match std::mem::replace(&mut self.link, Link::None) {
            Link::None => {}
            Link::Dialling(mut dial) => dial.abandon(&mut context.dialer),
            Link::Open(_) => context.dialer.upstreams.leave(self.upstream),
        }
    }
}
