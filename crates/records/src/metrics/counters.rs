//! Families of counters: an enum names them, an array holds them, the field table describes them.

use std::fmt;
use std::ops::{Index, IndexMut};

use crate::metrics::Field;

/// One family of metrics, indexed by an enum and described by one field each.
pub trait Metric: Copy + Eq + fmt::Debug + 'static {
    /// An array with one `u64` for every member of the family.
    type Values: AsRef<[u64]> + AsMut<[u64]> + Copy + PartialEq + Eq + fmt::Debug + Send;
    /// All counters at nothing.
    const ZERO: Self::Values;
    /// Every member, in the order of the array.
    const ALL: &'static [Self];

    /// The place in the array.
    fn index(self) -> usize;
    /// The journal field that carries the value, or whose name is the prefix of several.
    fn field(self) -> &'static Field;
    /// Where else it is shown, and under which names.
    fn names(self) -> &'static MetricNames;

    /// The members that share a metric of scrapers, each with its label, in the order of the family.
    fn labelled(metric: &str) -> impl Iterator<Item = (&'static str, Self)> {
        let labelled = Self::ALL.iter().map(|&member| (member.names(), member));
        let labelled = labelled.filter(move |(names, _)| names.metric == metric && !names.label.is_empty());
        labelled.map(|(names, member)| (names.label, member))
    }

    /// Pairs of members that share a metric and a label: of full and of resumed handshakes.
    fn by_kind(metric: &str) -> Vec<(&'static str, [Self; 2])> {
        let of_kind = |kind| Self::labelled(metric).filter(move |(_, member)| member.names().kind == kind);
        let resumed = |label| of_kind("resumed").find(|(known, _)| *known == label);
        let pairs = of_kind("full").filter_map(|(label, full)| Some((label, [full, resumed(label)?.1])));
        pairs.collect()
    }
}

/// The names of a metric, from its declaration. An empty name: it is not shown there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricNames {
    /// Its figure, without the prefix of the side; of a client its key in JSON, where a dot begins an object.
    pub figure: &'static str,
    /// Its title on the screen and in plots.
    pub title: &'static str,
    /// A short form of the title that the screen uses too.
    pub alias: &'static str,
    /// A note for the reader besides the title.
    pub note: &'static str,
    /// The event that starts a sample of a latency.
    pub start: &'static str,
    /// The event that ends a sample of a latency.
    pub end: &'static str,
    /// The metric of scrapers, without prefix and suffix.
    pub metric: &'static str,
    /// The label that distinguishes it within its metric, also on the screen.
    pub label: &'static str,
    /// `full` or `resumed`, if it is of one kind of handshakes.
    pub kind: &'static str,
    /// The column of the table of clients.
    pub column: &'static str,
}

impl MetricNames {
    /// It is shown nowhere else.
    pub(crate) const NONE: Self = Self {
        figure: "",
        title: "",
        alias: "",
        note: "",
        start: "",
        end: "",
        metric: "",
        label: "",
        kind: "",
        column: "",
    };
}

/// A value for each metric of a family: cumulative totals, or increments since the last reading.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Counters<M: Metric>(M::Values);

impl<M: Metric> Default for Counters<M> {
    fn default() -> Self {
        Self(M::ZERO)
    }
}

impl<M: Metric> Counters<M> {
    /// Each metric with its value, in the order of the family.
    pub fn iter(&self) -> impl Iterator<Item = (M, u64)> + '_ {
        M::ALL.iter().map(|&metric| (metric, self[metric]))
    }

    pub fn add(&mut self, delta: &Self) {
        for (total, more) in self.0.as_mut().iter_mut().zip(delta.0.as_ref()) {
            *total = total.saturating_add(*more);
        }
    }

    /// The increase since `earlier`; 0 where a counter went backwards.
    pub fn since(&self, earlier: &Self) -> Self {
        let mut delta = *self;
        for (now, before) in delta.0.as_mut().iter_mut().zip(earlier.0.as_ref()) {
            *now = now.saturating_sub(*before);
        }
        delta
    }

    pub fn is_zero(&self) -> bool {
        self.0.as_ref().iter().all(|&value| value == 0)
    }

    /// The sum over some of the metrics.
    pub fn sum(&self, metrics: &[M]) -> u64 {
        metrics.iter().fold(0, |sum, &metric| sum.saturating_add(self[metric]))
    }
}

impl<M: Metric> Index<M> for Counters<M> {
    type Output = u64;

    fn index(&self, metric: M) -> &u64 {
        &self.0.as_ref()[metric.index()]
    }
}

impl<M: Metric> IndexMut<M> for Counters<M> {
    fn index_mut(&mut self, metric: M) -> &mut u64 {
        &mut self.0.as_mut()[metric.index()]
    }
}

impl<M: Metric> fmt::Debug for Counters<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().filter(|&(_, value)| value != 0)).finish()
    }
}

/// Declares a family: the enum, its array, its part of the field table, and where its members are shown.
macro_rules! metrics {
    (
        $(#[$meta:meta])*
        $family:ident {
            $(
                $(#[$doc:meta])*
                $name:ident = $field:literal, $unit:ident, $example:literal, $meaning:literal
                    $(=> $($place:ident: $shown:expr),+)?;
            )*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $family {
            $(#[doc = $meaning] $(#[$doc])* $name,)*
        }

        impl $crate::metrics::Metric for $family {
            type Values = [u64; [$($family::$name),*].len()];
            const ZERO: Self::Values = [0; [$($family::$name),*].len()];
            const ALL: &'static [Self] = &[$($family::$name),*];

            fn index(self) -> usize {
                self as usize
            }

            fn field(self) -> &'static $crate::metrics::Field {
                static FIELDS: [$crate::metrics::Field; [$($family::$name),*].len()] = [$(
                    $crate::metrics::Field {
                        name: std::borrow::Cow::Borrowed(concat!("TLSDASH_", $field)),
                        unit: $crate::metrics::Unit::$unit,
                        example: $example,
                        meaning: std::borrow::Cow::Borrowed($meaning),
                    },
                )*];
                &FIELDS[self as usize]
            }

            fn names(self) -> &'static $crate::metrics::MetricNames {
                static NAMES: [$crate::metrics::MetricNames; [$($family::$name),*].len()] = [$(
                    $crate::metrics::MetricNames {
                        $($($place: $shown,)+)?
                        ..$crate::metrics::MetricNames::NONE
                    },
                )*];
                &NAMES[self as usize]
            }
        }
    };
}
pub(crate) use metrics;
