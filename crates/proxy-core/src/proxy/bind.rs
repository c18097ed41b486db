//! Starting a proxy: everything that can be refused comes first, then the workers start.

use std::fmt;
use std::io;
use std::mem;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use records::text::{Cpus, CpusError};

use super::Proxy;
use crate::accept::descriptors::{self, Descriptors, DescriptorsError};
use crate::accept::listen::{self, BoundListeners, ListenAddr, ListenError, ListenerSets, ListenerSource};
use crate::config::ProxyConfig;
use crate::config::handler_settings::HandlerSettings;
use crate::config::settings::{self, ConfigError};
use crate::connection::handler::Handler;
use crate::memory;
use crate::notices::NoticeLog;
use crate::relay::{PassingHandler, PassingResources, Relay, RelaySettings};
use crate::tls::{LiveTls, TicketKeySnapshot, Tls, TlsConfigError};
use crate::upstream::balance::Upstreams;
use crate::upstream::balance::replace::UpstreamListError;
use crate::upstream::check::checker::CheckSettings;
use crate::upstream::dial::UpstreamDialer;
use crate::upstream::route::{DuplicateHost, NameRoute, NameRoutes};
use crate::upstream::target::Upstream;
use crate::worker::control::ProxyControl;
use crate::worker::pool::{RunWorker, WorkerPool, run_with};
use crate::worker::setup::WorkerShared;

/// Why a proxy did not start. None of its threads are left running then.
#[derive(Debug, thiserror::Error)]
pub enum ProxyStartError {
    #[error("there is no address to listen on")]
    NoListener,
    /// A value of the configuration is out of its range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It speaks HTTP/2, which only HTTP mode does.
    #[error("the upstream {0} speaks HTTP/2, for which there is --mode http")]
    Http2(Upstream),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Upstreams(#[from] UpstreamListError),
    #[error(transparent)]
    Routes(#[from] DuplicateHost),
    /// There are not enough descriptors for the connections asked for.
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
    /// A core chosen for the workers does not exist.
    #[error(transparent)]
    Cpus(#[from] CpusError),
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// The kernel refused an event loop or a thread.
    #[error("cannot start the proxy's worker {worker}: {source}")]
    Worker { worker: usize, source: io::Error },
    /// The kernel refused the thread that resolves the names of upstreams.
    #[error("cannot start the resolver of upstreams: {0}")]
    Resolver(io::Error),
    /// The kernel refused a thread that checks an upstream.
    #[error("cannot start the checks of upstreams: {0}")]
    Checks(io::Error),
    #[error("cannot start the thread that measures memory: {0}")]
    Memory(io::Error),
}

/// A proxy that listens and does not serve yet: connections wait in its backlog. Dropping it gives its
/// addresses back.
pub struct BoundProxy(Proxy);

#[cfg(test)]
impl BoundProxy {
    /// Where it listens, and a worker to be driven by hand.
    pub(crate) fn into_first_worker(self) -> (SocketAddr, crate::worker::Worker<Relay>) {
        let Self(proxy) = self;
        let dialer = UpstreamDialer::new(Arc::clone(&proxy.upstreams), 0);
        let worker = crate::worker::Worker::new(proxy.pool().take_first_prepared(), dialer);
        (proxy.addrs[0], worker)
    }
}

impl BoundProxy {
    /// Where it will serve, in the order of the configuration.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        self.0.local_addrs()
    }

    /// Uses the ticket keys of the process that this one replaces: sessions that began there resume here.
    ///
    /// # Errors
    /// When the library of cryptography refuses.
    pub fn restore_ticket_keys(&mut self, keys: &TicketKeySnapshot) -> Result<(), TlsConfigError> {
        let tls = self.0.lock_tls().restore_ticket_keys(keys)?;
        self.0.control.set_tls(tls);
        Ok(())
    }

    /// Starts the workers, named `proxy-0`, `proxy-1` and so on.
    ///
    /// # Errors
    /// When the kernel refuses a thread; none is left running.
    pub fn start(self) -> Result<Proxy, ProxyStartError> {
        // Threads started before a failure end when the incomplete proxy is dropped here.
        let Self(proxy) = self;
        memory::start(&proxy.control, Arc::clone(&proxy.notices), proxy.config.memory.clone())
            .map_err(ProxyStartError::Memory)?;
        proxy.begin_names().map_err(ProxyStartError::Resolver)?;
        proxy.begin_checks().map_err(ProxyStartError::Checks)?;
        proxy.pool().start().map_err(|(worker, source)| ProxyStartError::Worker { worker, source })?;
        Ok(proxy)
    }
}

impl fmt::Debug for BoundProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundProxy").field("addrs", &self.0.addrs).finish_non_exhaustive()
    }
}

/// The handler of a proxy: how a worker runs it, and its settings.
struct ServiceSetup<F> {
    run: F,
    settings: Arc<dyn HandlerSettings>,
}

/// Workers that relay bytes to the upstreams.
fn relay_service(config: &ProxyConfig) -> ServiceSetup<impl FnOnce(Arc<Upstreams>) -> RunWorker + use<>> {
    let dialer = |upstreams: &Arc<Upstreams>, worker| UpstreamDialer::new(Arc::clone(upstreams), worker);
    let settings = Arc::new(RelaySettings::new(&config.upstreams, &config.routes));
    ServiceSetup { run: run::<Relay, _>(&config.routes, dialer), settings }
}

/// Workers whose clients are served by `H`, but for those whose TLS is passed.
fn run<H: Handler, R>(
    routes: &[NameRoute],
    resources: R,
) -> impl FnOnce(Arc<Upstreams>) -> RunWorker + use<H, R>
where
    R: Fn(&Arc<Upstreams>, usize) -> H::Resources + Send + Sync + 'static,
{
    let passes = routes.iter().any(NameRoute::is_passed);
    move |upstreams| {
        if !passes {
            return run_with::<H>(move |worker| resources(&upstreams, worker));
        }
        run_with::<PassingHandler<H>>(move |worker| PassingResources {
            dialer: UpstreamDialer::new(Arc::clone(&upstreams), worker),
            terminated: resources(&upstreams, worker),
        })
    }
}

impl Proxy {
    /// Binds every address and prepares the workers, without serving yet. Raises the process's limit on
    /// descriptors as far as it may.
    ///
    /// # Errors
    /// When an address is taken, the upstream's name is unknown, or the kernel or the library of cryptography
    /// refuses.
    pub fn bind(config: ProxyConfig) -> Result<BoundProxy, ProxyStartError> {
        Self::bind_on(config, ListenerSource::Bind)
    }

    /// Binds a proxy on these `listeners`.
    ///
    /// # Errors
    /// When a socket cannot be used, or for the reasons of [`Proxy::bind`].
    pub fn bind_on(config: ProxyConfig, listeners: ListenerSource) -> Result<BoundProxy, ProxyStartError> {
        let of_routes = config.routes.iter().flat_map(NameRoute::upstreams);
        let mut upstreams = config.upstreams.iter().chain(of_routes);
        if let Some(upstream) = upstreams.find(|upstream| upstream.scheme.is_http2()) {
            return Err(ProxyStartError::Http2(upstream.clone()));
        }
        let service = relay_service(&config);
        Self::bind_to(config, listeners, service)
    }

    /// Binds a proxy whose clients are served by the handler `H` instead of being relayed to an upstream, but for those
    /// whose TLS is passed. `resources` is called on each worker's thread, with all upstreams and the worker's number.
    /// `settings` are listed and changed with the proxy's own.
    ///
    /// # Errors
    /// For the reasons of [`Proxy::bind`].
    pub fn bind_with<H: Handler>(
        config: ProxyConfig,
        listeners: ListenerSource,
        settings: Arc<dyn HandlerSettings>,
        resources: impl Fn(&Arc<Upstreams>, usize) -> H::Resources + Send + Sync + 'static,
    ) -> Result<BoundProxy, ProxyStartError> {
        let run = run::<H, _>(&config.routes, resources);
        Self::bind_to(config, listeners, ServiceSetup { run, settings })
    }

    fn bind_to(
        config: ProxyConfig,
        source: ListenerSource,
        service: ServiceSetup<impl FnOnce(Arc<Upstreams>) -> RunWorker>,
    ) -> Result<BoundProxy, ProxyStartError> {
        settings::check(&config)?;
        let workers = config.workers.get();
        let bind = |addr: &ListenAddr| listen::bind(*addr, workers);
        let bound = match source {
            ListenerSource::ServiceManager(listeners) => return Self::inherit(config, listeners, service),
            ListenerSource::Predecessor(ListenerSets { sets, is_managed: true, .. }) => {
                return Self::inherit(config, sets.into_iter().next().unwrap_or_default(), service);
            }
            ListenerSource::Predecessor(mut former) => {
                // Sets of sockets for all addresses: one for each worker, and for sets of the other process beyond
                // that.
                let sets = workers.max(former.sets.len());
                let take_over = |addr: &ListenAddr| listen::take_over(*addr, sets, &mut former);
                config.listen.iter().map(take_over).collect::<Result<Vec<_>, _>>()?
            }
            ListenerSource::Bind => config.listen.iter().map(bind).collect::<Result<_, _>>()?,
        };
        let sets = bound.iter().map(|bound| bound.listeners.len()).max().unwrap_or(workers);
        let addrs = bound.iter().map(|bound| bound.addr).collect();
        let listeners = |bound: BoundListeners| bound.listeners.into_iter();
        let mut listeners: Vec<_> = bound.into_iter().map(listeners).collect();
        let set = |_| listeners.iter_mut().filter_map(Iterator::next).collect();
        let sets = (0..sets).map(set).collect();
        Self::prepare(config, addrs, sets, false, service)
    }

    fn inherit(
        mut config: ProxyConfig,
        listeners: Vec<TcpListener>,
        service: ServiceSetup<impl FnOnce(Arc<Upstreams>) -> RunWorker>,
    ) -> Result<BoundProxy, ProxyStartError> {
        let inherited = listeners.into_iter().map(listen::inherit).collect::<io::Result<Vec<_>>>();
        let (addrs, set): (Vec<_>, Vec<_>) = inherited.map_err(ListenError::Inherited)?.into_iter().unzip();
        config.listen = addrs.iter().copied().map(ListenAddr::Addr).collect();
        let clones = |_| set.iter().map(TcpListener::try_clone).collect();
        let sets = (0..config.workers.get()).map(clones).collect::<io::Result<_>>();
        Self::prepare(config, addrs, sets.map_err(ListenError::Inherited)?, true, service)
    }

    fn prepare(
        mut config: ProxyConfig,
        addrs: Vec<SocketAddr>,
        sets: Vec<Vec<TcpListener>>,
        is_managed: bool,
        ServiceSetup { run, settings: handler_settings }: ServiceSetup<
            impl FnOnce(Arc<Upstreams>) -> RunWorker,
        >,
    ) -> Result<BoundProxy, ProxyStartError> {
        if addrs.is_empty() {
            return Err(ProxyStartError::NoListener);
        }
        let limit = descriptors::raise_limit();
        let descriptors = Descriptors::new(limit, config.workers.get(), addrs.len());
        let upstream_sockets = handler_settings.upstream_sockets();
        let connections_max = descriptors.connections_max(config.limits.connections_max, upstream_sockets)?;
        config.cpus.as_ref().map_or(Ok(()), Cpus::check)?;
        let destinations = handler_settings.destinations();
        let own = handler_settings.own_destinations();
        let has_default = destinations.iter().take(own).any(|upstreams| !upstreams.is_empty());
        let routes = Arc::new(NameRoutes::new(has_default, own, &config.routes)?);
        // Taken out, so replaced keys are not kept here.
        let tls = Tls {
            certificates: mem::take(&mut config.tls.certificates),
            ticket_keys: config.tls.ticket_keys.take(),
            ..config.tls.clone()
        };
        let speaks_to_upstreams = destinations.iter().flatten().any(Upstream::is_tls);
        let mut tls = LiveTls::new(tls, speaks_to_upstreams)?;
        if routes.is_without_default() || routes.has_passed() {
            tls.refuse_other_names(Arc::clone(&routes));
        }
        let notices = Arc::new(NoticeLog::default());
        let control = ProxyControl::new(config.limits.clone(), connections_max, tls.config()?, is_managed);
        control.set_access(Arc::clone(&config.access));
        let control = Arc::new(control);
        control.set_workers(config.workers.get());
        let upstreams = Upstreams::new(destinations.len(), Arc::clone(&notices));
        let upstreams = Arc::new(upstreams.balanced(config.balance.clone(), config.slow_start));
        upstreams.replace(&destinations, &config.resolver, &addrs, Instant::now())?;
        let checks = config.upstream_check.clone().map(|check| CheckSettings {
            check,
            header: config.proxy_protocol,
            // A connection of a pool has many clients, and no header.
            passed_header_only: handler_settings.upstream_sockets().pooled > 0,
            control: Arc::clone(&control),
            routes: Arc::clone(&routes),
        });
        let shared = WorkerShared {
            clients_max: config.clients_max,
            records_names: config.records_names,
            seen: Arc::default(),
            cpus: config.cpus.clone(),
            sends_header: config.proxy_protocol,
            trusted: Arc::new(config.accept_proxy.clone()),
            routes,
            control: Arc::clone(&control),
            notices: Arc::clone(&notices),
        };
        let run = run(Arc::clone(&upstreams));
        let pool = WorkerPool::new(run, shared, addrs.clone(), sets, config.workers.get())
            .map_err(|(worker, source)| ProxyStartError::Worker { worker, source })?;
        Ok(BoundProxy(Self {
            config,
            descriptors,
            addrs,
            control,
            notices,
            upstreams,
            checks,
            files: tls.files(),
            tls: Mutex::new(tls),
            handler_settings,
            pool: Mutex::new(pool),
        }))
    }
}
