//! The subjects of a run's figures.

use std::fmt;

use super::{Figure, FigureName, FigurePart, FigureSide, JournalCounts, NamedFigure, named};
use crate::runs::Run;
use records::delta::counted_routes;
use records::kinds::{RouteRecord, UpstreamRecord};
use records::metrics::TimeResolution;
use records::text::clean;

#[derive(Clone, Debug, Default)]
pub struct FigureSubjects {
    sides: Vec<FigureSide>,
    /// By their indices while the run is counted.
    routes: Vec<String>,
    upstreams: Vec<String>,
    /// How finely the times of the terminator are known.
    resolution: TimeResolution,
}

/// The subject of a figure, which the run lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbsentSubject {
    Side(FigureSide),
    /// A part: the word for its kind, its name, and the parts of this kind that the run has.
    Named(&'static str, String, Vec<String>),
}

impl FigureSubjects {
    /// These sides, and these routes and upstreams of the proxy, by index.
    pub fn new(sides: Vec<FigureSide>, routes: &[String], upstreams: &[String]) -> Self {
        let [routes, upstreams] =
            [routes, upstreams].map(|names| names.iter().map(|name| clean::text(name)).collect());
        Self { sides, routes: counted_routes(routes), upstreams, resolution: TimeResolution::FINE }
    }

    /// Sets the resolution of the times, for runs from a log.
    #[must_use]
    pub fn with_resolution(self, resolution: TimeResolution) -> Self {
        Self { resolution, ..self }
    }

    /// The subjects of a run that was read.
    pub fn of(run: &Run, journal: Option<JournalCounts>) -> Self {
        let sides = FigureSide::ALL.into_iter().filter(|side| side.is_in(run, journal)).collect();
        Self {
            sides,
            routes: named::names::<RouteRecord>(run),
            upstreams: named::names::<UpstreamRecord>(run),
            resolution: run.log_resolution(),
        }
    }

    /// Takes over that the proxy has more upstreams.
    pub(crate) fn set_upstreams(&mut self, names: &[String]) {
        self.upstreams = names.iter().map(|name| clean::text(name)).collect();
    }

    /// How finely the times of the terminator are known.
    pub(crate) fn resolution(&self) -> TimeResolution {
        self.resolution
    }

    /// The index of a figure's route or upstream; `None` if the run lacks it.
    pub(crate) fn index(&self, figure: &NamedFigure) -> Option<usize> {
        let (_, name, names) = self.part(figure);
        names.iter().position(|known| known == name)
    }

    /// The word for a figure's part, its name, and the parts of this kind.
    fn part<'a>(&'a self, figure: &'a NamedFigure) -> (&'static str, &'a str, &'a [String]) {
        match figure {
            NamedFigure::Route(figure) => (RouteRecord::NOUN, &figure.name, &self.routes),
            NamedFigure::Upstream(figure) => (UpstreamRecord::NOUN, &figure.name, &self.upstreams),
        }
    }

    /// Checks that the run has the subject of a figure.
    ///
    /// # Errors
    /// With the subject that it lacks.
    pub fn check(&self, figure: &Figure) -> Result<(), AbsentSubject> {
        if !self.sides.contains(&figure.side()) {
            return Err(AbsentSubject::Side(figure.side()));
        }
        match figure {
            Figure::Named(figure) if self.index(figure).is_none() => {
                let (noun, name, names) = self.part(figure);
                Err(AbsentSubject::Named(noun, name.to_owned(), names.to_vec()))
            }
            Figure::Named(_) | Figure::Latency(..) | Figure::Scalar(_) | Figure::Quotient(_) => Ok(()),
        }
    }
}

impl FigureName {
    /// The first figure of this name whose subject the run has.
    ///
    /// # Errors
    /// With the subject that the run lacks.
    pub fn first_of(
        &self,
        check: impl Fn(&Figure) -> Result<(), AbsentSubject>,
    ) -> Result<Figure, AbsentSubject> {
        let mut absent = None;
        for figure in self.figures() {
            match check(&figure) {
                Ok(()) => return Ok(figure),
                Err(error) => drop(absent.get_or_insert(error)),
            }
        }
        Err(absent.unwrap_or(AbsentSubject::Side(FigureSide::Run)))
    }
}

impl fmt::Display for AbsentSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Side(side) => side.fmt(f),
            Self::Named(noun, name, others) if others.is_empty() => write!(f, "{noun} {name}"),
            Self::Named(noun, name, others) => write!(f, "{noun} {name}; it has {}", others.join(", ")),
        }
    }
}
