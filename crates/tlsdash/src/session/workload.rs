//! The proxy and the load of a run, and their settings.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use loadgen::Load;
use model::figures::{FigureSide, FigureSubjects};
use proxy_core::Proxy;
use recorder::host::ProcessObserver;
use recorder::observer::Observer;
use records::delta::LoadState;
use records::setting::{Applies, Setting, SettingError, Value};
use records::text::Cpus;
use records::values::ArrivalCounts;

use crate::session::acme::OrderedCertificate;

/// The subjects that a run measures.
#[derive(Debug, Default)]
pub(crate) struct Workload {
    pub(crate) proxy: Option<Proxy>,
    /// The observer of another terminator, by its log or by packets.
    pub(crate) observer: Option<Observer>,
    /// Settings for the certificates of that terminator which were unknown at the start.
    pub(crate) late_certificates: Option<Receiver<Setting>>,
    /// The proxy's certificate that is ordered by ACME.
    pub(crate) acme: Option<OrderedCertificate>,
    /// The names of the proxy's routes; `None` in TCP mode.
    pub(crate) routes: Option<Vec<String>>,
    pub(crate) load: Option<Load>,
    /// The cores of the generator, if it keeps to some.
    pub(crate) load_cpus: Option<Cpus>,
    pub(crate) load_start: LoadStart,
    /// The processes of `--observe-pid`.
    pub(crate) observed: Option<ProcessObserver>,
    /// True if the run ends when its load does.
    pub(crate) ends_with_load: bool,
}

/// When a load starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LoadStart {
    #[default]
    Now,
    /// At this time of `CLOCK_MONOTONIC`, in microseconds.
    At(u64),
    /// At the next tenth of a second of `CLOCK_MONOTONIC`, since arrivals are counted by these.
    NextTenth,
}

impl LoadStart {
    /// How long to wait for it at this time of `CLOCK_MONOTONIC`, in microseconds.
    pub(crate) fn after(self, now_us: u64) -> Duration {
        Duration::from_micros(match self {
            Self::Now => 0,
            Self::At(us) => us.saturating_sub(now_us),
            Self::NextTenth => ArrivalCounts::TENTH_US - now_us % ArrivalCounts::TENTH_US,
        })
    }
}

impl Workload {
    /// The subjects that the run has figures for.
    pub(crate) fn figure_subjects(&self) -> FigureSubjects {
        let of = |is_there: bool, side| is_there.then_some(side);
        let parts = [
            of(self.observed.is_some(), FigureSide::Observed),
            of(self.counts_traffic(), FigureSide::Proxy),
            // Whether a log has requests is known once it has lines.
            of(self.routes.is_some() || self.observer.is_some(), FigureSide::Http),
            of(self.load.is_some(), FigureSide::Load),
        ];
        let sides = [FigureSide::Run, FigureSide::Process].into_iter().chain(parts.into_iter().flatten());
        FigureSubjects::new(
            sides.collect(),
            self.routes.as_deref().unwrap_or_default(),
            &self.upstream_names(),
        )
    }

    /// The names of the proxy's upstreams, by index; none without our own proxy.
    pub(crate) fn upstream_names(&self) -> Vec<String> {
        self.proxy.as_ref().map(Proxy::upstream_names).unwrap_or_default()
    }

    /// Whether a proxy, ours or another, is counted.
    pub(super) fn counts_traffic(&self) -> bool {
        self.proxy.is_some() || self.observer.is_some()
    }

    /// Lets the proxy serve its connections to their end, and the observer count the lines that have arrived.
    pub(super) fn drain(&self) {
        if let Some(proxy) = &self.proxy {
            proxy.drain();
        }
        if let Some(observer) = &self.observer {
            observer.stop();
        }
    }

    /// Cuts the connections that a drain still waits for.
    pub(super) fn cut(&self) {
        if let Some(proxy) = &self.proxy {
            proxy.cut();
        }
    }

    pub(super) fn is_drained(&self) -> bool {
        self.proxy.as_ref().is_none_or(Proxy::is_drained)
            && self.observer.as_ref().is_none_or(Observer::is_ended)
    }

    pub(super) fn settings(&self) -> Vec<Setting> {
        let mut settings = self.proxy.as_ref().map(Proxy::settings).unwrap_or_default();
        settings.extend(self.load.as_ref().map(Load::settings).unwrap_or_default());
        settings.extend(self.load_cpus.as_ref().map(|cpus| Setting {
            name: "load.cpus".to_owned(),
            value: Value::Text(cpus.to_string()),
            unit: String::new(),
            applies: Applies::Restart,
            range: None,
        }));
        settings
    }

    /// Changes a setting. Returns it as it was before, and as it is now.
    pub(super) fn set(&self, name: &str, value: &Value) -> Result<(Setting, Setting), SettingError> {
        let unknown = || SettingError::Unknown(name.to_owned());
        let (before, now) = match name.split_once('.') {
            Some(("proxy", _)) => {
                let proxy = self.proxy.as_ref().ok_or_else(unknown)?;
                (proxy.set(name, value)?, proxy.settings())
            }
            Some(("load", _)) => {
                let load = self.load.as_ref().ok_or_else(unknown)?;
                (load.set(name, value)?, load.settings())
            }
            _ => return Err(unknown()),
        };
        let after = now.into_iter().find(|setting| setting.name == name).ok_or_else(unknown)?;
        Ok((before, after))
    }

    /// The state of the load; `None` without one.
    pub(super) fn load_state(&self) -> Option<LoadState> {
        let load = self.load.as_ref()?;
        let settings = load.settings();
        let value =
            |name: &str| settings.iter().find(|setting| setting.name == name).map(|setting| &setting.value);
        let number = |name| match value(name) {
            Some(Value::Number(number)) => *number,
            // In a closed loop the rate is a text.
            Some(Value::Text(_) | Value::Flag(_)) | None => 0.0,
        };
        let measured = load.measured();
        Some(LoadState {
            running: value("load.running") == Some(&Value::Flag(true)) && !load.is_finished(),
            rate: number("load.rate"),
            resume_percent: number("load.resume"),
            connections: number("load.connections") as u64,
            threads: number("load.threads") as u64,
            due_us: measured.scheduled.as_micros() as u64,
            sending_us: measured.sending.as_micros() as u64,
            measured_us: measured.whole.as_micros() as u64,
        })
    }
}
