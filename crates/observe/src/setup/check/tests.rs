use super::*;

fn lines(kind: LogKind, version: Version) -> String {
    crate::setup::lines(kind, version, &"unix:/run/log.sock".parse().unwrap())
}

fn lacks(kind: LogKind, configuration: &str) -> Vec<String> {
    let version = if kind == LogKind::Haproxy { Version(2, 6, 12) } else { Version(1, 22, 1) };
    missing(kind, version, configuration).iter().map(|missing| missing.in_file("conf")).collect()
}

/// The lines of `setup haproxy` for HTTP mode.
fn haproxy_http(version: Version) -> String {
    let lines = lines(LogKind::Haproxy, version);
    lines.split("# In each frontend with mode tcp:").next().unwrap().to_owned()
}

#[test]
fn what_setup_prints_lacks_nothing() {
    for (kind, context, version) in
        [(LogKind::Nginx, "http", Version(1, 22, 1)), (LogKind::NginxStream, "stream", Version(1, 18, 0))]
    {
        let configuration =
            format!("{context} {{\n{}\nserver {{ listen 443 ssl; }}\n}}", lines(kind, version));
        assert_eq!(missing(kind, version, &configuration), [], "{kind} {version}");
    }
    for version in [Version(2, 4, 0), Version(2, 6, 12), Version(3, 0, 0)] {
        let http = haproxy_http(version);
        let printed = lines(LogKind::Haproxy, version);
        let tcp = printed.split("# In each frontend with mode tcp:").nth(1).unwrap();
        let configuration = format!(
            "defaults\n mode http\nfrontend a\n bind :443 ssl crt a\n{http}\nlisten b\n mode tcp\n bind :444 ssl crt a\n{tcp}"
        );
        assert_eq!(missing(LogKind::Haproxy, version, &configuration), [], "{version}");
    }
    let stunnel = lines(LogKind::Stunnel, Version(5, 68, 0)) + "[web]\naccept = 443\n";
    assert_eq!(missing(LogKind::Stunnel, Version(5, 68, 0), &stunnel), []);
}

#[test]
fn each_line_that_is_missing_in_a_frontend_is_named() {
    let http = haproxy_http(Version(2, 6, 12))
        .replace("http-request set-var", "# http-request set-var")
        .replacen("\"cipher\":\"%sslc\",", "", 1);
    let with = |before: &str| format!("{before}frontend web\n mode http\n bind :443 ssl crt a\n{http}");
    let format_line = with("").lines().position(|line| line.trim().starts_with("log-format")).unwrap() + 1;
    assert_eq!(
        lacks(LogKind::Haproxy, &with("")),
        [
            format!("conf:{format_line}: log-format: \"cipher\":\"%sslc\" in the format"),
            "conf:1: frontend web: http-request set-var(…tlsdash): connections and handshakes are not counted"
                .to_owned()
        ]
    );
    // What another section has does not count here.
    let elsewhere = format!("listen admin\n mode http\n{}\n", haproxy_http(Version(2, 6, 12)));
    assert_eq!(lacks(LogKind::Haproxy, &with(&elsewhere)).len(), 2);
}

#[test]
fn the_group_of_a_failed_handshake_must_not_be_asked_for() {
    let stream =
        lines(LogKind::NginxStream, Version(1, 22, 1)).replace("$ssl_cipher", "$ssl_cipher$ssl_curve");
    let lacking =
        lacks(LogKind::NginxStream, &format!("stream {{\n{stream}\nserver {{ listen 443 ssl; }}\n}}"));
    assert!(lacking.iter().any(|what| what.contains("without $ssl_curve: with OpenSSL")), "{lacking:?}");
    let http = haproxy_http(Version(2, 9, 0)).replace("%sslc", "%sslc%[ssl_fc_curve]");
    let configuration = format!("frontend web\n mode http\n bind :443 ssl crt a\n{http}");
    let lacking = lacks(LogKind::Haproxy, &configuration);
    assert!(
        lacking.len() == 1 && lacking[0].contains("error-log-format without ssl_fc_curve"),
        "{lacking:?}"
    );
}

#[test]
fn a_frontend_takes_what_its_defaults_and_global_have() {
    let http = haproxy_http(Version(2, 6, 12)).replace("    log /run", "    log global\n#   log /run");
    let configuration = |global| {
        format!("global\n {global}\ndefaults\n mode http\n{http}\nfrontend web\n bind :443 ssl crt a\n")
    };
    assert_eq!(
        lacks(LogKind::Haproxy, &configuration("log 127.0.0.1:5514 len 8192 format raw local0")),
        [""; 0]
    );
    let lacking = lacks(LogKind::Haproxy, &configuration("log 127.0.0.1:5514 local0"));
    assert!(lacking.len() == 1 && lacking[0].contains("frontend web: log … format raw"), "{lacking:?}");
    assert_eq!(
        lacks(LogKind::Haproxy, "frontend web\n bind :80\n"),
        ["conf: no frontend or listen section has a bind line with ssl"]
    );
}

#[test]
fn a_format_of_the_other_mode_is_not_taken() {
    let configuration =
        format!("frontend web\n mode tcp\n bind :443 ssl crt a\n{}", haproxy_http(Version(2, 6, 12)));
    let lacking = lacks(LogKind::Haproxy, &configuration);
    assert!(lacking.len() == 1 && lacking[0].contains("log-format with \"kind\":\"tcp\""), "{lacking:?}");
}

#[test]
fn a_directive_of_nginx_counts_in_its_block_only() {
    let ours = lines(LogKind::Nginx, Version(1, 22, 1));
    let server = "server { listen 443 ssl; }";
    assert_eq!(
        lacks(LogKind::Nginx, &format!("stream {{\n{ours}\n}}\nhttp {{ {server} }}"))
            .iter()
            .filter(|what| what.contains("log_format of tlsdash in http { }"))
            .count(),
        1
    );
    let commented = ours.replace("\naccess_log", "\n#access_log");
    let lacking = lacks(LogKind::Nginx, &format!("http {{\n{commented}\n{server}\n}}"));
    assert!(lacking.len() == 1 && lacking[0].contains("server: access_log … tlsdash"), "{lacking:?}");
}

#[test]
fn files_that_a_single_file_includes_are_named_as_not_read() {
    let ours = lines(LogKind::Nginx, Version(1, 22, 1));
    let text = format!(
        "include m/*.conf; http {{ include mime.types; include conf.d/*.conf; server {{ listen 443 ssl; }}\n{ours}\n}}"
    );
    let lacking = lacks(LogKind::Nginx, &text);
    assert_eq!(lacking, ["conf:1: include conf.d/*.conf: pipe what nginx -T prints into --check -"]);
    let whole = format!("# configuration file conf:\n{text}");
    assert_eq!(lacks(LogKind::Nginx, &whole), [""; 0]);
}

#[test]
fn a_log_of_an_inner_block_replaces_that_of_tlsdash() {
    let ours = lines(LogKind::Nginx, Version(1, 22, 1));
    let with = |server: &str| lacks(LogKind::Nginx, &format!("http {{ server {{ {server} }}\n{ours}\n}}"));
    assert_eq!(with("location /a { access_log off; }"), [""; 0]);
    assert_eq!(
        with("location /a { access_log /a.log; }"),
        ["conf:1: access_log of a location replaces that of tlsdash: repeat it"]
    );
    assert_eq!(with("access_log /a.log;"), ["conf:1: server: access_log … tlsdash: its lines are not sent"]);
    let errors = with("error_log /a.log info;");
    assert!(errors.len() == 1 && errors[0].starts_with("conf:1: server: error_log syslog:"), "{errors:?}");
}

#[test]
fn options_of_stunnel_count_before_its_first_service_as_it_reads_them() {
    for (configuration, lacking) in [
        ("[web]\naccept = 443\ndebug = info\noutput = /a\n", 2),
        ("\u{feff}debug = info\noutput = /a\n", 0),
        ("DEBUG = 6\nOutput=/a\n", 0),
        ("debug=daemon.INFO\nsyslog = Yes\n", 0),
        ("debug = 7\ndebug = daemon.notice\noutput = /a\n", 1),
        ("debug = 7\noutput = /a\nlogId = unique\n", 0),
        ("debug = 7\noutput = /a\nlogid = process\n", 1),
    ] {
        assert_eq!(lacks(LogKind::Stunnel, configuration).len(), lacking, "{configuration}");
    }
}
