//! Descriptions of settings for the dashboard, each from the place that declares it.

use std::sync::LazyLock;

use proxy_core::LiveOptions;
use proxy_http::HttpLimits;
use records::setting::SettingInfo;

use super::ProxyArgs;
use super::effective_options::PROXY;

/// Describes every setting: limits and TLS as the proxy declares them, the load's, and of other options their help.
pub(crate) fn all() -> &'static [SettingInfo] {
    static ALL: LazyLock<Vec<SettingInfo>> = LazyLock::new(describe);
    &ALL
}

fn describe() -> Vec<SettingInfo> {
    let mut infos = proxy_core::setting_infos();
    infos.extend(LiveOptions::<HttpLimits>::infos());
    let command = ProxyArgs::command();
    for argument in command.get_arguments() {
        let (Some(long), Some(help)) = (argument.get_long(), argument.get_help()) else { continue };
        let name = format!("{PROXY}{}", if long == "cert" { "certificate" } else { long });
        // The default is shown separately.
        let about = help.to_string().split(" [default").next().unwrap_or_default().to_owned();
        match infos.iter_mut().find(|info| info.name == name) {
            Some(info) if info.about.is_empty() => info.about = about,
            Some(_) => {}
            None => infos.push(SettingInfo { name, about, ..SettingInfo::default() }),
        }
    }
    infos.extend(loadgen::setting_infos());
    infos.push(SettingInfo {
        name: "alert".to_owned(),
        about: "FIGURE OP VALUE [for TIME] [over WINDOW], such as response.p99 > 5ms for 30s; off removes it"
            .to_owned(),
        ..SettingInfo::default()
    });
    infos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_have_a_description_and_a_fitting_default() {
        let infos = all();
        for name in [
            "proxy.listen",
            "proxy.workers",
            "proxy.drain-quiet",
            "proxy.tls-min",
            "proxy.mode",
            "proxy.route",
            "proxy.pass",
            "proxy.queue-max",
            "load.rate",
        ] {
            let info = infos.iter().find(|info| info.name == name).unwrap();
            assert!(!info.about.is_empty(), "{name}");
        }
        let timeout = infos.iter().find(|info| info.name == "proxy.handshake-timeout").unwrap();
        assert_eq!(timeout.default, Some(records::setting::Value::Number(10.0)));
    }
}
