//! The options of the mode that the proxy is not in.

use proxy_http::HttpLimits;

use super::ProxyOptions;
use crate::cli::options::http::HttpOptions;
use crate::cli::options::mode::ProxyMode;
use crate::value::options::OptionValues;

/// Options of HTTP mode only, besides the limits.
const HTTP_ONLY: [&str; 5] =
    ["trust-forwarded", "tls-headers", "request-header", "response-header", "log-paths"];
/// Why the PROXY header means nothing in HTTP mode, unless TLS is passed.
const NO_PROXY_PROTOCOL: &str = "goes with --mode tcp or --pass only: upstream connections serve many clients; \
    X-Forwarded-For names the client, and --tls-headers tells how it speaks TLS";

impl ProxyOptions {
    /// Options of the other mode, each with the reason why it is refused.
    pub(super) fn other_mode_options(&self) -> impl Iterator<Item = (&'static str, String)> {
        let of_tcp = [("proxy-protocol", NO_PROXY_PROTOCOL.to_owned())].into_iter();
        let limits = OptionValues::<HttpLimits>::names();
        let of_http = HTTP_ONLY.into_iter().chain(limits);
        let of_http = of_http.map(|word| (word, "goes with --mode http only".to_owned()));
        let is_tcp = self.mode == ProxyMode::Tcp;
        let sends_header = is_tcp || !self.pass.is_empty();
        of_tcp.filter(move |_| !sends_header).chain(of_http.filter(move |_| is_tcp))
    }

    pub(super) fn is_given(&self, word: &str) -> bool {
        match word {
            "proxy-protocol" => self.proxy_protocol.is_some(),
            word => self.http.is_given(word) || self.http_limits.is_given(word),
        }
    }

    /// The same with the defaults of the other mode's options.
    pub(super) fn without_other_mode_options(&self) -> Self {
        match self.mode {
            ProxyMode::Tcp => {
                Self { http: HttpOptions::default(), http_limits: OptionValues::default(), ..self.clone() }
            }
            ProxyMode::Http if self.pass.is_empty() => Self { proxy_protocol: None, ..self.clone() },
            ProxyMode::Http => self.clone(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn options(text: &str) -> ProxyOptions {
        ProxyOptions::parse(text).unwrap()
    }

    pub(crate) fn refused(text: &str) -> String {
        options(text).http_config().unwrap_err().to_string()
    }

    #[test]
    fn options_of_the_other_mode_are_refused() {
        for (text, part) in [
            ("trust-forwarded = \"10.0.0.0/8\"", "--trust-forwarded goes with --mode http only"),
            ("tls-headers = true", "--tls-headers goes with --mode http only"),
            ("request-header = \"remove x\"", "--request-header goes with --mode http only"),
            ("log-paths = \"on\"", "--log-paths goes with --mode http only"),
            ("header-timeout = \"1s\"", "--header-timeout goes with --mode http only"),
            (
                "mode = \"http\"\nproxy-protocol = \"v2\"",
                "serve many clients; X-Forwarded-For names the client",
            ),
        ] {
            assert!(refused(text).contains(part), "{}", refused(text));
        }
        assert!(options("proxy-protocol = \"v2\"").http_config().unwrap().is_none());
        let passing =
            "mode = \"http\"\nproxy-protocol = \"v2\"\n[[pass]]\nhost = \"x\"\nupstreams = \"h:1\"\n";
        assert!(options(passing).http_config().unwrap().is_some());
        let printed = options(passing).to_toml().unwrap();
        assert!(printed.contains("\nproxy-protocol = ") && printed.contains("\n[[pass]]\n"), "{printed}");
    }
}
