//! TLS on a page: reasons of full handshakes, parts of their time, and usage.

use maud::{Markup, html};
use records::metrics::{FullReason, TlsCounter, TlsLatency};

use crate::html::plot::stacked::{self, NamedBar, PARTS_MAX, TimeBar};
use crate::html::plot::time_ticks;
use crate::html::tables::{folded, whole};
use crate::report::Report;
use crate::report::columns::{PlotColumn, columns};
use crate::report::tls::{mean_ms, parts, words};

/// Values of a dimension that are not folded.
const VALUES_SHOWN: usize = 10;

impl Report<'_> {
    pub(super) fn full_reasons_part(&self) -> Markup {
        html! { (whole(&self.full_reason_rows())) (self.reasons_over_time()) }
    }

    /// The most frequent reasons over time, and the others as one.
    fn reasons_over_time(&self) -> Markup {
        let Some(series) = self.run.tls() else { return html! {} };
        let reasons: Vec<FullReason> = self.full_reasons().into_iter().map(|(reason, _)| reason).collect();
        let own = if reasons.len() > PARTS_MAX { PARTS_MAX - 1 } else { reasons.len() };
        let (first, rest) = reasons.split_at(own);
        let others: Vec<TlsCounter> = rest.iter().map(|reason| reason.counter()).collect();
        let names = first.iter().map(|reason| words(*reason));
        let names: Vec<String> = names.chain((!others.is_empty()).then(|| "others".to_owned())).collect();
        let bar = |column: &PlotColumn<TlsCounter>| {
            let own = first.iter().map(|reason| column.counters[reason.counter()]);
            let amounts = own.chain((!others.is_empty()).then(|| column.counters.sum(&others)));
            let parts = amounts.map(|amount| column.rate(amount)).collect();
            TimeBar { start_s: column.start_s, end_s: column.end_s, parts }
        };
        let bars: Vec<TimeBar> = columns(self, series, TlsLatency::KeyExchange).iter().map(bar).collect();
        let last_s = bars.last().map_or(0.0, |bar| bar.end_s);
        stacked::over_time("Full handshakes by reason", "1/s", &names, &bars, &time_ticks(0.0, last_s))
    }

    pub(super) fn wall_time_part(&self) -> Markup {
        let bars = self.wall_times().map(|(kind, wall)| NamedBar {
            name: format!("{kind}, n {}", crate::numbers::grouped(wall.network.n)),
            parts: parts(wall).map(|(part, of)| (part, mean_ms(of))).collect(),
        });
        let bars: Vec<NamedBar> = bars.collect();
        let note = "Network is estimated: the kernel's round-trip time for each flight awaited. Loop delay: data had come and the \
            worker was busy with other connections. Compute: inside the TLS library. Key exchange and signature are parts of it.";
        html! {
            (stacked::each("The mean handshake of each type", "ms", &bars))
            (whole(&self.wall_time_rows()))
            @if !bars.is_empty() { p.dim { (note) } }
        }
    }

    pub(super) fn usage_part(&self) -> Markup {
        let tables = self.usage_tables();
        html! {
            @for table in &tables { (folded(table, VALUES_SHOWN)) }
            @if !tables.is_empty() {
                p.dim { "Shares are within each table. CPU: inside the TLS library during handshakes. Bytes are of connections that are over. Only choice: handshakes whose client offered nothing else that the proxy allows; without this value they would fail." }
            }
        }
    }
}
