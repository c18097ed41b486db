//! The page of a run.

mod findings;
mod first;
mod over_time;
mod tls;

use maud::{Markup, html};

use self::over_time::PlotColumns;
use super::plot::curves::{self, CURVES, curve_name};
use super::tables::{LINES_SHOWN, folded, whole};
use super::{made_by, page, rare, section};
use crate::report::Report;

impl Report<'_> {
    pub fn html(&self) -> String {
        let title = self.title();
        let plots = PlotColumns::of(self);
        let body = html! {
            (self.first_screenful(&plots))
            (section("Where a handshake's time goes", &self.wall_time_part()))
            (section("Why handshakes were full", &self.full_reasons_part()))
            (section("Handshakes", &whole(&self.handshake_rows())))
            (section("Latencies", &self.latency_table()))
            (section("What changed", &folded(&self.changes_table(), LINES_SHOWN)))
            (section("Alerts", &whole(&self.alert_rows())))
            (section("Failures", &whole(&self.error_table())))
            (section("Over time", &self.over_time(&plots)))
            (section("Percentile curves", &self.curves()))
            (section("HTTP", &self.http_tables()))
            (section("Upstreams and certificates", &self.upstream_tables()))
            (section("Who uses what", &self.usage_part()))
            (section("Clients", &self.client_table()))
            (rare("Load", &self.load_tables()))
            (rare("CPU", &whole(&self.cpu_rows())))
            (rare("What happened", &self.event_table()))
            (rare("Environment and settings", &self.environment_tables()))
            (rare("Quality of the data", &self.quality_list()))
            (rare("What the words mean", &self.definitions()))
            (made_by(&self.command))
        };
        page(&title, &body)
    }

    fn curves(&self) -> Markup {
        let latencies = self.latencies().into_iter();
        // There are five line styles.
        let shown = latencies.filter(|latency| CURVES.contains(&latency.class)).take(5);
        let shown: Vec<_> = shown.map(|latency| (curve_name(latency.class), latency)).collect();
        curves::markup("Latency by percentile".to_owned(), &shown)
    }
}
