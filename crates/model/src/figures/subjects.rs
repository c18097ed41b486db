//! The subjects of a run's figures.

use std::fmt;

use super::{Figure, FigureName, FigureSide, JournalCounts, routes};
use crate::runs::Run;
use records::delta::counted_routes;
use records::metrics::TimeResolution;
use records::text::clean;

#[derive(Clone, Debug, Default)]
pub struct FigureSubjects {
    sides: Vec<FigureSide>,
    /// By their indices while the run is counted.
    routes: Vec<String>,
    /// How finely the times of the terminator are known.
    resolution: TimeResolution,
}

/// The subject of a figure, which the run lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbsentSubject {
    Side(FigureSide),
    /// A route, and the routes of the run.
    Route(String, Vec<String>),
}

impl FigureSubjects {
    /// These sides, and these routes of the proxy.
    pub fn new(sides: Vec<FigureSide>, routes: &[String]) -> Self {
        let routes = routes.iter().map(|name| clean::text(name)).collect();
        Self { sides, routes: counted_routes(routes), resolution: TimeResolution::FINE }
    }

    /// Sets the resolution of the times, for runs from a log.
    #[must_use]
    pub fn with_resolution(self, resolution: TimeResolution) -> Self {
        Self { resolution, ..self }
    }

    /// The subjects of a run that was read.
    pub fn of(run: &Run, journal: Option<JournalCounts>) -> Self {
        let sides = FigureSide::ALL.into_iter().filter(|side| side.is_in(run, journal)).collect();
        Self { sides, routes: routes::names(run), resolution: run.log_resolution() }
    }

    /// How finely the times of the terminator are known.
    pub(crate) fn resolution(&self) -> TimeResolution {
        self.resolution
    }

    /// The index of a route.
    pub(crate) fn route(&self, name: &str) -> Option<usize> {
        self.routes.iter().position(|route| route == name)
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
            Figure::Route(figure) if self.route(&figure.route).is_none() => {
                Err(AbsentSubject::Route(figure.route.to_string(), self.routes.clone()))
            }
            Figure::Route(_) | Figure::Latency(..) | Figure::Scalar(_) | Figure::Quotient(_) => Ok(()),
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
            Self::Route(route, others) if others.is_empty() => write!(f, "route {route}"),
            Self::Route(route, others) => write!(f, "route {route}; it has {}", others.join(", ")),
        }
    }
}
