//! Chooses the requests of an interval that get a record.

use crate::delta::FinishedRequest;
use crate::kinds::RequestRecord;
use crate::text::clean;

/// Errors that are kept of an interval; further ones are counted.
const ERRORS_MAX: usize = 48;
/// The slowest requests that are kept of an interval.
const SLOWEST_MAX: usize = 8;
/// Other requests that are kept of an interval.
const SAMPLES_MAX: usize = 8;

/// Requests that one worker keeps in an interval for separate records.
pub const REQUEST_RECORDS_MAX: usize = ERRORS_MAX + SLOWEST_MAX + SAMPLES_MAX;

/// A request that is kept, with the index of its route: the publisher knows the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledRequest {
    pub route: Option<usize>,
    pub record: RequestRecord,
}

/// The requests of an interval that are kept: the first errors, the slowest others, and a sample of the rest. Only these
/// are copied.
#[derive(Clone, Debug, Default)]
pub struct RequestSamples {
    pub errors: Vec<SampledRequest>,
    pub slowest: Vec<SampledRequest>,
    /// The first, second, fourth, eighth and so on of the rest, the latest of these.
    pub others: Vec<SampledRequest>,
    /// Requests that are neither errors nor among the slowest.
    rest: u64,
}

impl RequestSamples {
    /// Keeps the request if it is one to keep. False if it is an error without room.
    pub fn offer(&mut self, request: &FinishedRequest<'_>) -> bool {
        if request.failure.is_some() || request.status >= Some(500) {
            let has_room = self.errors.len() < ERRORS_MAX;
            if has_room {
                self.errors.push(SampledRequest::of(request));
            }
            return has_room;
        }
        if !self.keep_slow(request) {
            self.rest += 1;
            if self.rest.is_power_of_two() {
                let at = self.rest.ilog2() as usize % SAMPLES_MAX;
                match self.others.get_mut(at) {
                    Some(place) => *place = SampledRequest::of(request),
                    None => self.others.push(SampledRequest::of(request)),
                }
            }
        }
        true
    }

    /// Keeps the request if it is slower than one of the slowest.
    fn keep_slow(&mut self, request: &FinishedRequest<'_>) -> bool {
        if self.slowest.len() < SLOWEST_MAX {
            self.slowest.push(SampledRequest::of(request));
            return true;
        }
        let fastest = self.slowest.iter_mut().min_by_key(|kept| kept.record.duration_us);
        let Some(fastest) = fastest.filter(|kept| {
            u128::from(kept.record.duration_us) < request.duration.unwrap_or_default().as_micros()
        }) else {
            return false;
        };
        *fastest = SampledRequest::of(request);
        true
    }

    /// Adds the samples of another worker, or of the same worker later.
    pub fn add(&mut self, other: &Self) {
        self.errors.extend_from_slice(&other.errors);
        self.slowest.extend_from_slice(&other.slowest);
        self.others.extend_from_slice(&other.others);
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        let Self { errors, slowest, others, rest } = self;
        [errors, slowest, others].into_iter().for_each(Vec::clear);
        *rest = 0;
    }
}

impl SampledRequest {
    fn of(request: &FinishedRequest<'_>) -> Self {
        let micros = |took: Option<std::time::Duration>| took.map_or(0, |took| took.as_micros() as u64);
        // The query may contain secrets. The caller has removed it; this is a safeguard.
        let path = request.path.split(['?', '#']).next().unwrap_or_default();
        let record = RequestRecord {
            route: String::new(),
            conn: request.conn,
            client: request.client,
            version: request.version,
            method: clean::text(request.method),
            path: clean::text(path),
            upstream: clean::text(request.upstream),
            status: request.status.map_or(0, u64::from),
            failure: request.failure,
            queue_us: micros(request.queue),
            upstream_us: micros(request.upstream_time),
            first_byte_us: micros(request.first_byte),
            duration_us: micros(request.duration),
            body_in: request.body_in.unwrap_or(0),
            body_out: request.body_out.unwrap_or(0),
            reused: request.is_reused,
            retried: request.is_retried,
        };
        Self { route: request.route, record }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::RequestFailure;
    use crate::testing::finished;

    #[test]
    fn errors_come_first_then_the_slowest_and_a_sample_of_the_rest() {
        let mut samples = RequestSamples::default();
        let mut without_room = 0;
        for n in 0..10_000_u64 {
            let duration = Duration::from_micros(n * 7_919 % 10_000);
            let failure = (n % 100 == 0).then_some(RequestFailure::ClientGone);
            let request = FinishedRequest { failure, duration: Some(duration), ..finished() };
            without_room += u64::from(!samples.offer(&request));
        }
        assert_eq!((samples.errors.len() as u64, without_room), (ERRORS_MAX as u64, 100 - ERRORS_MAX as u64));
        let slowest = samples.slowest.iter().map(|kept| kept.record.duration_us);
        assert_eq!((samples.slowest.len(), slowest.min()), (SLOWEST_MAX, Some(10_000 - SLOWEST_MAX as u64)));
        assert_eq!(samples.others.len(), SAMPLES_MAX);
    }

    #[test]
    fn a_path_is_recorded_without_its_query_and_cleaned() {
        let mut samples = RequestSamples::default();
        let long = format!("/{}", "x".repeat(100_000));
        for path in ["/a?token=1", "/b#c", "/\u{1b}[2J", &long] {
            samples.offer(&FinishedRequest { path, ..finished() });
        }
        let paths: Vec<&str> = samples.slowest.iter().map(|kept| &*kept.record.path).collect();
        assert_eq!(paths[..3], ["/a", "/b", "/\\u{1b}[2J"]);
        assert_eq!(paths[3].chars().count(), clean::PEER_TEXT_MAX);
    }
}
