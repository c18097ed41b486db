//! The figures of a cell: those of the load, by the catalogue, and the resources that the processes used.

use std::fmt;
use std::str::FromStr;

use model::figures::{Figure, FigureName, FigureSide, FigureUnit, Statistic, UnknownFigure};
use records::metrics::{LatencyClass, LoadLatency};
use records::text::clean;

use crate::results::{CellResult, ResourceUsage};

#[derive(Clone, Debug, PartialEq)]
pub enum CellFigure {
    /// Resources that processes used.
    Usage(&'static UsageFigure),
    /// A figure of the load, by the catalogue.
    Load(Figure),
}

/// A figure of used resources.
#[derive(Debug)]
pub struct UsageFigure {
    /// Its name, such as `target.cpu.per_request`.
    pub name: &'static str,
    pub unit: FigureUnit,
    /// The definition, in a sentence.
    pub definition: &'static str,
    value: fn(&CellResult) -> Option<f64>,
}

/// When a figure of two targets may be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparability {
    /// If the cells ran as requested: used resources.
    Usage,
    /// If the generator kept up too: counts and rates.
    Rate,
    /// If the load was an open loop too, and both achieved the same rate.
    Latency,
    /// Never: it is not corrected for coordinated omission.
    Uncorrected,
}

/// The primary figure of cost.
pub(crate) const CPU_PER_REQUEST: &str = "target.cpu.per_request";
/// The primary figure of capacity.
pub(crate) const RATE_ACHIEVED: &str = "rate.achieved";

const fn figure(
    name: &'static str,
    unit: FigureUnit,
    definition: &'static str,
    value: fn(&CellResult) -> Option<f64>,
) -> UsageFigure {
    UsageFigure { name, unit, definition, value }
}

/// Used resources of processes. `docs/bench.md` lists them.
pub static USAGE_FIGURES: [UsageFigure; 16] = [
    figure(
        CPU_PER_REQUEST,
        FigureUnit::Micros,
        "CPU time of the target's processes over the requests answered.",
        |cell| per_request(cell, cell.target_usage?.cpu_us()),
    ),
    figure("target.cpu.user_per_request", FigureUnit::Micros, "The part of it in user mode.", |cell| {
        per_request(cell, cell.target_usage?.user_us)
    }),
    figure("target.cpu.system_per_request", FigureUnit::Micros, "The part of it in the kernel.", |cell| {
        per_request(cell, cell.target_usage?.system_us)
    }),
    figure(
        "target.cpu.percent",
        FigureUnit::Percent,
        "CPU time of the target's processes over the time measured: 100 is one core.",
        |cell| percent(&cell.target_usage?),
    ),
    figure(
        "target.requests.per_cpu_second",
        FigureUnit::PerSecond,
        "Requests answered over the CPU time of the target's processes, in seconds.",
        |cell| per_request(cell, cell.target_usage?.cpu_us()).filter(|us| *us > 0.0).map(|us| 1e6 / us),
    ),
    figure(
        "target.memory.pss_at_rest",
        FigureUnit::Bytes,
        "Proportional set size of the target's processes before the first request.",
        |cell| known(cell.target_usage?.pss_at_rest),
    ),
    figure(
        "target.memory.pss_peak",
        FigureUnit::Bytes,
        "The largest proportional set size of the target's processes.",
        |cell| known(cell.target_usage?.pss_peak),
    ),
    figure(
        "target.memory.rss_at_rest",
        FigureUnit::Bytes,
        "Resident memory of the target's processes before the first request; shared pages count for each process.",
        |cell| known(cell.target_usage?.rss_at_rest),
    ),
    figure(
        "target.memory.rss_peak",
        FigureUnit::Bytes,
        "The largest resident memory of the target's processes; shared pages count for each process.",
        |cell| known(cell.target_usage?.rss_peak),
    ),
    figure(
        "target.memory.rss_per_connection",
        FigureUnit::Bytes,
        "Resident memory of the target's processes at the end less that at rest, over the connections that are open.",
        rss_per_connection,
    ),
    figure("target.threads", FigureUnit::Count, "The most threads of the target's processes.", |cell| {
        known(cell.target_usage?.threads_max)
    }),
    figure(
        "target.descriptors",
        FigureUnit::Count,
        "The most open descriptors of the target's processes.",
        |cell| known(cell.target_usage?.descriptors_max),
    ),
    figure(
        "target.context_switches.per_request",
        FigureUnit::Count,
        "Context switches of the target's processes over the requests answered.",
        |cell| per_request(cell, cell.target_usage?.context_switches),
    ),
    figure(
        "generator.cpu.per_request",
        FigureUnit::Micros,
        "CPU time of the generator over the requests answered.",
        |cell| per_request(cell, cell.load_usage.cpu_us()),
    ),
    figure(
        "generator.cpu.percent",
        FigureUnit::Percent,
        "CPU time of the generator over the time measured: 100 is one core.",
        |cell| percent(&cell.load_usage),
    ),
    figure(
        "upstream.cpu.per_request",
        FigureUnit::Micros,
        "CPU time of the upstream over the requests answered.",
        |cell| per_request(cell, cell.upstream_usage?.cpu_us()),
    ),
];

fn per_request(cell: &CellResult, amount: u64) -> Option<f64> {
    Some(amount as f64 / cell.answered()?)
}

/// What open connections take; `None` if they were closed meanwhile.
fn rss_per_connection(cell: &CellResult) -> Option<f64> {
    let (usage, connections) = (cell.target_usage?, cell.connections_kept?);
    let grown = usage.rss_at_end.checked_sub(usage.rss_at_rest)?;
    (usage.rss_at_end > 0 && connections > 0).then(|| grown as f64 / connections as f64)
}

fn percent(usage: &ResourceUsage) -> Option<f64> {
    (usage.wall_us > 0).then(|| usage.cpu_us() as f64 / usage.wall_us as f64 * 100.0)
}

/// The kernel hides values that are 0.
fn known(value: u64) -> Option<f64> {
    (value > 0).then_some(value as f64)
}

fn load_value(cell: &CellResult, short_name: &str) -> Option<f64> {
    cell.figures.get(short_name).copied().filter(|value| value.is_finite())
}

impl CellFigure {
    /// Its name: short, without the `load.` of the catalogue.
    pub fn name(&self) -> String {
        match self {
            Self::Usage(figure) => figure.name.to_owned(),
            Self::Load(figure) => figure.short_name(),
        }
    }

    pub fn unit(&self) -> FigureUnit {
        match self {
            Self::Usage(figure) => figure.unit,
            Self::Load(figure) => figure.unit(),
        }
    }

    /// Its value in a cell; `None` if the cell does not have it.
    pub fn value(&self, cell: &CellResult) -> Option<f64> {
        match self {
            Self::Usage(figure) => (figure.value)(cell),
            Self::Load(figure) => load_value(cell, &figure.short_name()),
        }
    }

    pub(crate) fn comparability(&self) -> Comparability {
        match self {
            Self::Usage(_) => Comparability::Usage,
            Self::Load(Figure::Latency(_, Statistic::Count)) => Comparability::Rate,
            Self::Load(Figure::Latency(LatencyClass::Load(class), _)) => match class {
                LoadLatency::Response
                | LoadLatency::Connect
                | LoadLatency::HandshakeFull
                | LoadLatency::HandshakeResumed
                | LoadLatency::HandshakeEarly => Comparability::Latency,
                _ => Comparability::Uncorrected,
            },
            Self::Load(_) => Comparability::Rate,
        }
    }

    /// For a percentile: how many samples it takes, and the figure that counts them.
    pub(crate) fn samples_min(&self) -> Option<(f64, Self)> {
        match self {
            Self::Load(Figure::Latency(class, Statistic::Percentile(q))) => {
                Some((10.0 / (1.0 - q) * (1.0 - 1e-9), Self::Load(Figure::Latency(*class, Statistic::Count))))
            }
            _ => None,
        }
    }
}

impl fmt::Display for CellFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl PartialEq for UsageFigure {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// No figure of a cell has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownCellFigure {
    /// No figure of processes has it.
    #[error("there is no figure {0}; there are {names}", names = usage_names())]
    Usage(String),
    /// The catalogue does not have it.
    #[error(transparent)]
    Catalogue(#[from] UnknownFigure),
    /// It is a figure of something else.
    #[error("{0} is no figure of a load")]
    OtherSide(String),
}

fn usage_names() -> String {
    USAGE_FIGURES.iter().map(|figure| figure.name).collect::<Vec<_>>().join(", ")
}

impl FromStr for CellFigure {
    type Err = UnknownCellFigure;

    fn from_str(text: &str) -> Result<Self, UnknownCellFigure> {
        let name = text.trim();
        if let Some(figure) = USAGE_FIGURES.iter().find(|figure| figure.name == name) {
            return Ok(Self::Usage(figure));
        }
        if ["target.", "generator.cpu.", "upstream."].iter().any(|prefix| name.starts_with(prefix)) {
            return Err(UnknownCellFigure::Usage(clean::text(name)));
        }
        let found: FigureName = name.parse()?;
        let of_load = found.figures().find(|figure| figure.side() == FigureSide::Load);
        of_load.map(Self::Load).ok_or_else(|| UnknownCellFigure::OtherSide(clean::text(name)))
    }
}
