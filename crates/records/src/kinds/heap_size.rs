//! Measures the memory of records and of data kept from them, so it can be bounded: a short text may expand to much.

use crate::histogram::{Histograms, Sketch, SparseHistogram};
use crate::kinds::{
    AlertRecord, Body, CertificateRecord, ConnectionRecord, ExperimentRecord, HttpRecord, LoadRecord,
    NoticeRecord, ProxyRecord, Record, RequestRecord, RouteRecord, RunRecord, TlsRecord, UpstreamRecord,
    UsageRecord,
};
use crate::metrics::Metric;
use crate::setting::{Setting, Value};
use crate::values::{EventCount, EventCounts, Latencies};

pub trait HeapSize {
    /// Bytes on the heap, without the allocator's overhead.
    fn heap_bytes(&self) -> usize;
}

impl HeapSize for String {
    fn heap_bytes(&self) -> usize {
        self.capacity()
    }
}

impl<T: HeapSize> HeapSize for Box<T> {
    fn heap_bytes(&self) -> usize {
        size_of::<T>() + (**self).heap_bytes()
    }
}

impl<T: HeapSize> HeapSize for Option<T> {
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, T::heap_bytes)
    }
}

impl<T: HeapSize> HeapSize for Vec<T> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<T>() + self.iter().map(T::heap_bytes).sum::<usize>()
    }
}

impl HeapSize for SparseHistogram {
    fn heap_bytes(&self) -> usize {
        self.buckets().len() * Self::BUCKET_BYTES
    }
}

impl HeapSize for Sketch {
    fn heap_bytes(&self) -> usize {
        self.capacity_bytes()
    }
}

impl<M: Metric> HeapSize for Histograms<M> {
    fn heap_bytes(&self) -> usize {
        self.iter().map(|(_, histogram)| size_of_val(histogram) + histogram.bucket_bytes()).sum()
    }
}

impl<M: Metric> HeapSize for Latencies<M> {
    fn heap_bytes(&self) -> usize {
        self.iter().map(|(_, latency)| size_of_val(latency) + latency.interval.heap_bytes()).sum()
    }
}

impl HeapSize for Setting {
    fn heap_bytes(&self) -> usize {
        let value = if let Value::Text(text) = &self.value { text.heap_bytes() } else { 0 };
        self.name.heap_bytes() + self.unit.heap_bytes() + value
    }
}

impl HeapSize for EventCounts {
    fn heap_bytes(&self) -> usize {
        self.iter().map(|entry| size_of::<EventCount>() + entry.example.heap_bytes()).sum()
    }
}

impl HeapSize for ProxyRecord {
    fn heap_bytes(&self) -> usize {
        self.latencies.heap_bytes()
    }
}

impl HeapSize for TlsRecord {
    fn heap_bytes(&self) -> usize {
        let ages = self.ages_accepted.capacity_bytes() + self.ages_expired.capacity_bytes();
        ages + self.latencies.heap_bytes()
    }
}

impl HeapSize for UsageRecord {
    fn heap_bytes(&self) -> usize {
        self.value.heap_bytes()
    }
}

impl HeapSize for CertificateRecord {
    fn heap_bytes(&self) -> usize {
        let Self { fingerprint, file, names, issuer, serial, key, faults, refusal, renewal_error, .. } = self;
        let texts = [fingerprint, file, names, issuer, serial, key, faults, refusal, renewal_error];
        texts.into_iter().map(String::heap_bytes).sum()
    }
}

impl HeapSize for HttpRecord {
    fn heap_bytes(&self) -> usize {
        self.statuses.capacity_bytes() + self.grpc_statuses.capacity_bytes() + self.latencies.heap_bytes()
    }
}

impl HeapSize for UpstreamRecord {
    fn heap_bytes(&self) -> usize {
        self.upstream.heap_bytes() + self.reason.heap_bytes() + self.latencies.heap_bytes()
    }
}

impl HeapSize for RouteRecord {
    fn heap_bytes(&self) -> usize {
        self.route.heap_bytes() + self.latencies.heap_bytes()
    }
}

impl HeapSize for RequestRecord {
    fn heap_bytes(&self) -> usize {
        let Self { route, method, path, upstream, .. } = self;
        [route, method, path, upstream].into_iter().map(String::heap_bytes).sum()
    }
}

impl HeapSize for LoadRecord {
    fn heap_bytes(&self) -> usize {
        self.latencies.heap_bytes() + self.events.heap_bytes()
    }
}

impl HeapSize for RunRecord {
    fn heap_bytes(&self) -> usize {
        let Self { version, host, listen, upstream, certificate, control_socket, next_run, .. } = self;
        let Self { kernel, cpu_model, governor, clock_source, settings, proxy, http, load, .. } = self;
        let texts = [version, host, listen, upstream, certificate, kernel, cpu_model, governor, clock_source];
        let texts = texts.into_iter().chain([control_socket, next_run]);
        let texts: usize = texts.map(String::heap_bytes).sum();
        texts
            + self.absent.as_str().len()
            + settings.heap_bytes()
            + proxy.heap_bytes()
            + http.heap_bytes()
            + load.heap_bytes()
    }
}

impl HeapSize for ConnectionRecord {
    fn heap_bytes(&self) -> usize {
        let Self { detail, tls_version, cipher, group, sni, alpn, client_name, .. } = self;
        let texts = [detail, tls_version, cipher, group, sni, alpn, client_name];
        texts.into_iter().map(String::heap_bytes).sum()
    }
}

impl HeapSize for ExperimentRecord {
    fn heap_bytes(&self) -> usize {
        let Self { setting, a, b, metric, reason, .. } = self;
        [setting, a, b, metric, reason].into_iter().map(String::heap_bytes).sum()
    }
}

impl HeapSize for AlertRecord {
    fn heap_bytes(&self) -> usize {
        let Self { condition, figure, operator, sentence, .. } = self;
        [condition, figure, operator, &sentence.0].into_iter().map(String::heap_bytes).sum()
    }
}

impl HeapSize for Record {
    fn heap_bytes(&self) -> usize {
        match &self.body {
            Body::Run(run) => run.heap_bytes(),
            Body::Proxy(proxy) => proxy.heap_bytes(),
            Body::Tls(tls) => tls.heap_bytes(),
            Body::Usage(usage) => usage.heap_bytes(),
            Body::Certificate(certificate) => certificate.heap_bytes(),
            Body::Upstream(upstream) => upstream.heap_bytes(),
            Body::Http(http) => http.heap_bytes(),
            Body::Route(route) => route.heap_bytes(),
            Body::Request(request) => request.heap_bytes(),
            Body::Load(load) => load.heap_bytes(),
            Body::Client(client) => client.exchange.heap_bytes(),
            Body::Connection(connection) => connection.heap_bytes(),
            Body::Setting(setting) => {
                let crate::kinds::SettingRecord { name, before, after, by } = setting;
                name.heap_bytes() + before.heap_bytes() + after.heap_bytes() + by.heap_bytes()
            }
            Body::Mark(mark) => mark.text.heap_bytes(),
            Body::Calibration(costs) => costs.heap_bytes(),
            Body::Notice(NoticeRecord { topic, text, absent, level: _ }) => {
                topic.heap_bytes() + text.heap_bytes() + absent.as_str().len()
            }
            Body::Health(health) => health.error.heap_bytes(),
            Body::Experiment(experiment) => experiment.heap_bytes(),
            Body::Alert(alert) => alert.heap_bytes(),
            Body::Host(_) | Body::Unknown => 0,
        }
    }
}
