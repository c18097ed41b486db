//! The list of upstreams, at the start and at each reload: those that stay keep their state and counts, others come and go.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::choice::bits;
use super::{UPSTREAMS_MAX, UpstreamMember, Upstreams};
use crate::upstream::names::is_any_own;
use crate::upstream::names::resolver::Resolver;
use crate::upstream::route::{repeated, upstream_bits};
use crate::upstream::target::{ResolveError, Upstream, UpstreamTarget};

/// Why a proxy cannot have these upstreams.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamListError {
    #[error("{0} upstreams were given; expected 1 to {UPSTREAMS_MAX}")]
    Count(usize),
    #[error("upstream {0}: it is given twice, or with two weights")]
    Twice(Upstream),
    /// It would forward to itself.
    #[error("the upstream {0} is where the proxy itself listens")]
    Itself(Upstream),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// What is gone keeps its place, as its counts do.
    #[error(
        "a run has at most {UPSTREAMS_MAX} upstreams, and has had {had} already, with those that are gone; a restart or an upgrade begins a new run"
    )]
    Full { had: usize },
    /// Authorities and certificates for upstreams are read at the start only.
    #[error(
        "the upstream {0} speaks TLS, and no upstream did at the start: that needs a restart or an upgrade"
    )]
    FirstTls(Upstream),
    /// A route speaks HTTP/2 with all its upstreams or with none.
    #[error(
        "the upstream {0} speaks another version of HTTP than those of its route did at the start: that needs a restart or an upgrade"
    )]
    OtherProtocol(Upstream),
}

impl Upstreams {
    /// Gives each destination other upstreams. Nothing changes if one of them is refused. `own` are the proxy's own
    /// addresses.
    pub(crate) fn replace(
        &self,
        destinations: &[Vec<Upstream>],
        resolver: &Resolver,
        own: &[SocketAddr],
        now: Instant,
    ) -> Result<(), UpstreamListError> {
        let arrivals = self.arrivals(destinations, resolver, own)?;
        let is_start = self.len() == 0;
        for (upstream, target) in arrivals {
            let known = self.position(&upstream);
            let index = known.unwrap_or(self.len());
            match known {
                Some(index) => self.return_member(index, &target, now),
                None => self.push(UpstreamMember::new(&upstream, target, now)),
            }
            if !is_start {
                self.start_slowly(index, now);
            }
        }
        let mut present = 0;
        for (of, word) in destinations.iter().zip(&self.destinations) {
            let mut places = 0;
            for upstream in of {
                let Some(index) = self.position(upstream) else { continue };
                self.member(index).share.set_weight(upstream.weight);
                places |= 1 << index;
            }
            present |= places;
            word.store(places, Ordering::Release);
        }
        let all = (0..self.len()).fold(0, |all, index| all | 1 << index);
        let before = self.gone.swap(all & !present, Ordering::Relaxed);
        for index in bits(all & !present & !before) {
            let member = self.member(index);
            member.set_changed(now);
            if let UpstreamTarget::Tcp(addresses) = &member.target {
                addresses.set_vanished(true);
            }
        }
        self.address_generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// The upstreams of these destinations that are not in service, and where they are.
    pub(crate) fn arrivals(
        &self,
        destinations: &[Vec<Upstream>],
        resolver: &Resolver,
        own: &[SocketAddr],
    ) -> Result<Vec<(Upstream, UpstreamTarget)>, UpstreamListError> {
        let mut all = Vec::new();
        for of in destinations {
            upstream_bits(&mut all, of);
        }
        if !(1..=UPSTREAMS_MAX).contains(&all.len()) {
            return Err(UpstreamListError::Count(all.len()));
        }
        if let Some(twice) = repeated(&all) {
            return Err(UpstreamListError::Twice(twice));
        }
        let new = all.iter().filter(|upstream| self.position(upstream).is_none()).count();
        let had = self.len();
        if had + new > UPSTREAMS_MAX {
            return Err(UpstreamListError::Full { had });
        }
        all.retain(|upstream| !self.is_present(upstream));
        let resolve = |upstream: Upstream| match upstream.resolve(resolver)? {
            UpstreamTarget::Tcp(addresses) if is_any_own(&addresses.addrs(), own) => {
                Err(UpstreamListError::Itself(upstream))
            }
            target => Ok((upstream, target)),
        };
        all.into_iter().map(resolve).collect()
    }

    /// Whether an upstream is in service.
    pub(crate) fn is_present(&self, upstream: &Upstream) -> bool {
        self.position(upstream).is_some_and(|index| !self.is_gone(index))
    }

    /// The index of an upstream, gone or not.
    fn position(&self, upstream: &Upstream) -> Option<usize> {
        let name = upstream.unweighted().to_string();
        self.members().position(|member| member.name == name)
    }

    /// Lets an upstream that was gone begin again as a new one does. Its counts go on.
    fn return_member(&self, index: usize, target: &UpstreamTarget, now: Instant) {
        let member = self.member(index);
        if let (UpstreamTarget::Tcp(addresses), UpstreamTarget::Tcp(new)) = (&member.target, target) {
            addresses.replace(&new.addrs());
            addresses.set_vanished(false);
        }
        for word in [&self.drained, &self.failing] {
            word.fetch_and(!(1 << index), Ordering::Relaxed);
        }
        member.health.succeed();
        member.is_unresolved.store(false, Ordering::Relaxed);
        member.set_changed(now);
    }
}

#[cfg(test)]
impl Upstreams {
    /// Those of a single destination.
    pub(crate) fn resolve(
        upstreams: &[Upstream],
        resolver: &Resolver,
        notices: std::sync::Arc<crate::notices::NoticeLog>,
    ) -> Result<Self, UpstreamListError> {
        let all = Self::new(1, notices);
        all.replace(&[upstreams.to_vec()], resolver, &[], Instant::now())?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests;
