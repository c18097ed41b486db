//! An anonymous report. Its content is an allow-list: a new part of a summary does not compile until this file handles
//! it, and a new setting with a text is omitted until it is listed here.

use model::insight::{FindingSummary, FindingText};
use model::summary::{
    AlertSummary, ClientSummary, ExperimentSummary, JournalSummary, LoadSummary, ProxySummary, Summary,
};
use records::delta::OTHER_VALUE;
use records::metrics::Dimension;
use records::setting::{Setting, Value};

/// Replaces a text that is left out.
pub(crate) const LEFT_OUT: &str = "(left out)";

/// Settings whose text is one of a few words, or made of numbers. Numbers and flags are always anonymous.
const TEXTS: [&str; 13] = [
    "load.keep-alive",
    "load.plan",
    "load.protocol",
    "load.rate",
    "proxy.cipher-order",
    "proxy.ciphers",
    "proxy.cpus",
    "proxy.groups",
    "proxy.proxy-protocol",
    "proxy.resumption",
    "proxy.ticket-send",
    "proxy.tls-max",
    "proxy.tls-min",
];

/// Whether a setting's value is anonymous. If runs of several hosts differ, the value is a text with the names of
/// these hosts.
pub(crate) fn shows(setting: &Setting, is_of_several: bool) -> bool {
    match &setting.value {
        Value::Flag(_) | Value::Number(_) => true,
        // Rules for server names follow a comma.
        Value::Text(text) if setting.name == "proxy.client-auth" => !is_of_several && !text.contains(','),
        Value::Text(_) => !is_of_several && TEXTS.contains(&&*setting.name),
    }
}

/// The anonymous part of a summary. Clients are numbered; `shows` decides which settings are shown.
pub(crate) fn summary(summary: Summary, shows: impl Fn(&str) -> bool) -> Summary {
    let Summary {
        schema,
        run,
        uid: _,
        unit: _,
        duration_s,
        ended,
        log,
        proxy,
        load,
        tls_cost,
        clients,
        experiments,
        alerts,
        findings,
        journal,
        cpu_s,
        process,
        observed,
    } = summary;
    let numbered = (1..)
        .zip(clients)
        .map(|(number, client)| ClientSummary { client: format!("client {number}"), ..client });
    Summary {
        schema,
        run,
        uid: None,
        unit: String::new(),
        duration_s,
        ended,
        log,
        proxy: proxy.map(anonymised_proxy),
        load: load.map(anonymised_load),
        tls_cost,
        clients: numbered.collect(),
        experiments: experiments.into_iter().map(|experiment| self::experiment(experiment, &shows)).collect(),
        // Those of several runs name their hosts.
        alerts: alerts
            .into_iter()
            .map(|alert| AlertSummary { condition: alert.figure.clone(), ..alert })
            .collect(),
        findings: findings.into_iter().map(anonymised_finding).collect(),
        journal: journal.map(|journal| JournalSummary { source: LEFT_OUT.to_owned(), ..journal }),
        cpu_s,
        process,
        observed,
    }
}

/// The finding without clients, names and messages. Its sentences and figures are anonymous.
fn anonymised_finding(finding: FindingSummary) -> FindingSummary {
    let text = FindingText { whom: Vec::new(), whom_more: 0, ..finding.text };
    FindingSummary { run: None, text, ..finding }
}

/// Upstreams, routes, server names and certificates name hosts, and a fingerprint may identify a client.
fn anonymised_proxy(mut proxy: ProxySummary) -> ProxySummary {
    let routes = proxy.http.iter_mut().flat_map(|http| &mut http.routes);
    (1..).zip(routes).for_each(|(number, route)| route.route = format!("route {number}"));
    (1..).zip(&mut proxy.upstreams).for_each(|(number, upstream)| {
        upstream.upstream = format!("upstream {number}");
        upstream.reason.clear();
    });
    proxy.certificates.clear();
    let naming = [
        Dimension::Certificate,
        Dimension::Name,
        Dimension::Fingerprint,
        Dimension::Issuer,
        Dimension::Service,
    ];
    for dimension in naming {
        let values = proxy.tls.iter_mut().filter_map(|tls| tls.usage.get_mut(dimension.word())).flatten();
        let named = values.filter(|usage| usage.value != OTHER_VALUE && usage.value != "none");
        (1..).zip(named).for_each(|(number, usage)| usage.value = format!("{dimension} {number}"));
    }
    proxy
}

/// Examples of requests and failures hold addresses.
fn anonymised_load(mut load: LoadSummary) -> LoadSummary {
    load.events.iter_mut().for_each(|event| event.example.clear());
    load
}

fn experiment(mut experiment: ExperimentSummary, shows: impl Fn(&str) -> bool) -> ExperimentSummary {
    if !shows(&experiment.setting) {
        for value in [&mut experiment.a, &mut experiment.b] {
            LEFT_OUT.clone_into(value);
        }
    }
    experiment
}

#[cfg(test)]
mod tests {
    use records::setting::Applies;

    use super::*;

    #[test]
    fn a_setting_that_may_name_hosts_is_shown_where_it_does_not() {
        let setting = |text: &str| Setting {
            name: "proxy.client-auth".to_owned(),
            value: Value::Text(text.to_owned()),
            unit: String::new(),
            applies: Applies::NewConnections,
            range: None,
        };
        assert!(shows(&setting("required"), false));
        assert!(!shows(&setting("off,admin.example=required"), false));
        assert!(!shows(&setting("required"), true));
    }
}
