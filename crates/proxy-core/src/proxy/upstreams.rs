//! The upstreams of a running proxy: which there are, and which serve.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use records::kinds::Level;

use super::Proxy;
use crate::notices::Subject;
use crate::upstream::balance::replace::UpstreamListError;
use crate::upstream::balance::{UnknownUpstream, UpstreamChange};
use crate::upstream::check::checker;
use crate::upstream::names::refresh;
use crate::upstream::names::resolver::Resolver;
use crate::upstream::target::Upstream;

impl Proxy {
    /// The names of its upstreams, in the order in which they are counted; those that are gone included.
    pub fn upstream_names(&self) -> Vec<String> {
        (0..self.upstreams.len()).map(|index| self.upstreams.name(index).to_owned()).collect()
    }

    /// Drains the upstream of this name, or returns it to service; false if it already is as wanted. Open connections end
    /// by themselves.
    ///
    /// # Errors
    /// When there is no such upstream.
    pub fn change_upstream(&self, name: &str, change: UpstreamChange) -> Result<bool, UnknownUpstream> {
        self.upstreams.change(name, change)
    }

    /// Resolves the names of upstreams within a second, on their own thread. Each is resolved every 30 s anyway.
    pub fn resolve_upstreams(&self) {
        self.upstreams.want_all_names();
    }

    /// Looks up the names of upstreams that are not in service, on a thread that may block. What it returns is for
    /// [`Proxy::replace_upstreams`].
    pub fn look_up(&self) -> impl Fn(&[Upstream]) -> Resolver + Send + use<> {
        let (upstreams, resolver) = (Arc::downgrade(&self.upstreams), self.config.resolver.clone());
        move |new| {
            let present = upstreams.upgrade();
            let is_new = |upstream: &&Upstream| present.as_ref().is_none_or(|all| !all.is_present(upstream));
            let new: Vec<_> = new.iter().filter(is_new).cloned().collect();
            drop(present);
            resolver.looked_up(new.iter().filter_map(Upstream::name))
        }
    }

    /// Whether [`Proxy::replace_upstreams`] takes these.
    ///
    /// # Errors
    /// When one of them cannot be an upstream of this proxy.
    pub fn check_upstreams(
        &self,
        destinations: &[Vec<Upstream>],
        resolver: &Resolver,
    ) -> Result<(), UpstreamListError> {
        for (before, after) in self.handler_settings.destinations().iter().zip(destinations) {
            let is_http2 = before.iter().any(|upstream| upstream.scheme.is_http2());
            if let Some(other) = after.iter().find(|upstream| upstream.scheme.is_http2() != is_http2) {
                return Err(UpstreamListError::OtherProtocol(other.clone()));
            }
        }
        let tls = destinations.iter().flatten().find(|upstream| upstream.is_tls());
        match tls.filter(|_| !self.lock_tls().speaks_to_upstreams()) {
            Some(first) => Err(UpstreamListError::FirstTls(first.clone())),
            None => self.upstreams.arrivals(destinations, resolver, &self.addrs).map(drop),
        }
    }

    /// Gives each destination other upstreams: the first is that of all other names in TCP mode, and the last that of all
    /// other requests in HTTP mode. Those that stay keep their health and counts, new ones begin, and those that are gone
    /// get no new connections and close idle ones. `resolver` must not block.
    ///
    /// # Errors
    /// When one of them cannot be an upstream of this proxy. Nothing changes then.
    pub fn replace_upstreams(
        &self,
        destinations: Vec<Vec<Upstream>>,
        resolver: &Resolver,
    ) -> Result<(), UpstreamListError> {
        self.check_upstreams(&destinations, resolver)?;
        let now = Instant::now();
        self.upstreams.replace(&destinations, resolver, &self.addrs, now)?;
        self.handler_settings.set_destinations(destinations);
        if let Err(error) = self.begin_names().and_then(|()| self.begin_checks()) {
            let text = format!("a new upstream is neither checked nor resolved again: {error}");
            self.notices.say(Subject::Upstream(0), Level::Warning, &text, now);
        }
        self.pool().wake();
        Ok(())
    }

    /// Resolves the names of upstreams again and again.
    pub(super) fn begin_names(&self) -> io::Result<()> {
        refresh::start(&self.upstreams, self.addrs.clone(), self.config.resolver.clone())
    }

    /// Checks the upstreams that are not checked yet.
    pub(super) fn begin_checks(&self) -> io::Result<()> {
        self.checks.as_ref().map_or(Ok(()), |checks| checker::start(&self.upstreams, checks))
    }
}
