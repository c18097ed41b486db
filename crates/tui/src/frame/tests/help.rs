//! The help: its keys, its search, and how it scrolls.

use super::*;
use crate::state::screen::Screen;

#[test]
fn help_names_every_key() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.want(Intent::Help);
    assert_snapshot!(stage.screen(80, 230));
    let mut watched = TestDashboard::live(watching(), 3);
    watched.want(Intent::Help);
    let mut http = TestDashboard::live_http(options(), 3);
    http.want(Intent::Help);
    let mut hosts = hosts::watching_hosts();
    hosts.want(Intent::Help);
    let mut services = services::watching_services();
    services.want(Intent::Help);
    let mut upstreams = upstreams::seen(2);
    upstreams.want(Intent::Help);
    let mut certificates = certificates::seen();
    certificates.want(Intent::Help);
    let screens = [
        certificates.screen(80, 260),
        stage.screen(80, 230),
        watched.screen(80, 230),
        http.screen(80, 260),
        hosts.screen(80, 260),
        services.screen(80, 260),
        upstreams.screen(80, 260),
    ];
    for binding in crate::input::keymap::BINDINGS {
        assert!(
            screens.iter().any(|screen| screen.contains(&binding.meaning[..binding.meaning.len().min(40)])),
            "{}",
            binding.meaning
        );
    }
}

#[test]
fn help_is_searched_and_defines_every_class() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.want(Intent::Help);
    let screen = stage.screen(80, 230);
    for class in records::metrics::LatencyClass::all() {
        assert!(screen.contains(class.names().start.split(' ').next().unwrap()), "{}", class.title());
    }
    for key in "/undo".chars() {
        stage.press(key);
    }
    let screen = stage.screen(80, 24);
    assert!(screen.contains("help with undo") && screen.contains("undo the last change"), "{screen}");
    assert!(!screen.contains("to the worst latency"), "{screen}");
    stage.press('\x1b');
    assert!(stage.screen(80, 230).contains("to the worst latency"));
}

#[test]
fn help_scrolls_by_pages_without_a_gap() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.want(Intent::Help);
    let body = |stage: &mut TestDashboard| {
        let screen = stage.screen(80, 24);
        let inside = |line: &str| Some(line.split('│').nth(1)?.to_owned());
        screen.lines().filter_map(inside).collect::<Vec<_>>()
    };
    let first = body(&mut stage);
    stage.want(Intent::Scroll(ListMove::Down));
    assert_eq!(body(&mut stage)[..first.len() - 1], first[1..]);
    stage.want(Intent::Scroll(ListMove::First));
    stage.want(Intent::Scroll(ListMove::PageDown));
    let next = body(&mut stage);
    stage.want(Intent::Scroll(ListMove::Up));
    assert_eq!(body(&mut stage)[0], first[first.len() - 1], "{next:?}");
}

#[test]
fn help_scrolls_where_it_does_not_fit() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.want(Intent::Help);
    let _ = stage.screen(50, 12);
    stage.want(Intent::Scroll(ListMove::Last));
    let screen = stage.screen(50, 12);
    assert!(screen.contains("no reason is known") && !screen.contains("close this help"), "{screen}");
}

#[test]
fn a_narrow_help_continues_meanings_below_instead_of_cutting_them() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.want(Intent::Help);
    let mut cut = |columns| {
        let screen = stage.screen(columns, 400);
        let inside = |line: &str| Some(line.split('│').nth(1)?.matches('…').count());
        screen.lines().filter_map(inside).sum::<usize>()
    };
    let of_texts = cut(80);
    assert_eq!([cut(40), cut(60)], [of_texts; 2], "no more than the texts have themselves");
    let screen = stage.screen(40, 10);
    assert!(screen.contains("│ ? F1       show or close this help   │"), "{screen}");
}

/// The lines in the box of the help.
fn inside(screen: &str) -> Vec<String> {
    let inside = |line: &str| Some(line.split('│').nth(1)?.trim_end().to_owned());
    let below = screen.lines().skip_while(|line| !line.contains("┌ help")).skip(1);
    below.map_while(inside).collect()
}

#[test]
fn help_opens_at_the_focused_pane() {
    for pane in [PaneId::Clients, PaneId::Timeline, PaneId::Handshakes, PaneId::System] {
        let mut stage = TestDashboard::live(options(), 3);
        stage.state.panes.focus = Some(pane);
        stage.press('?');
        for (columns, rows) in [(80, 24), (160, 48)] {
            let lines = inside(&stage.screen(columns, rows));
            let heading = format!(" {}: {}", pane.name(), pane.meaning());
            assert!(lines[0].starts_with(&heading), "{lines:#?}");
        }
    }
}

#[test]
fn help_opens_at_the_screen_below_and_leads_back_to_it() {
    for (key, heading, screen) in [
        ('t', " settings:", Screen::Tuning),
        ('a', " experiments:", Screen::Experiments),
        ('H', " runs and hosts:", Screen::Runs),
    ] {
        let mut stage = TestDashboard::live(options(), 3);
        stage.press(key);
        stage.press('?');
        let lines = inside(&stage.screen(80, 24));
        assert!(lines[0].starts_with(heading), "{lines:#?}");
        stage.press('\x1b');
        assert_eq!(stage.state.screen, screen);
        stage.press('?');
        stage.press('?');
        assert_eq!(stage.state.screen, screen);
    }
}

#[test]
fn a_wide_help_has_two_columns() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.press('?');
    assert_snapshot!("help_160x48", stage.screen(160, 48));
    let all = inside(&stage.screen(80, 300)).len();
    let wide = inside(&stage.screen(160, 300)).len();
    assert_eq!(wide, all.div_ceil(2), "half as many lines");
}

#[test]
fn help_is_found_by_the_word_that_a_person_has_for_it() {
    for (word, name, meaning) in [
        ("filter", "/", "show only clients that match"),
        ("expir", "cert 89 days", "until the first certificate expires"),
        ("pause", "Space", "freeze the view"),
    ] {
        let mut stage = TestDashboard::live(options(), 3);
        stage.press('?');
        for key in format!("/{word}\n").chars() {
            stage.press(key);
        }
        let lines = inside(&stage.screen(80, 24));
        let is_found = |line: &String| line.trim_start().starts_with(name) && line.contains(meaning);
        assert!(lines.iter().any(is_found), "{word}: {lines:#?}");
    }
}

#[test]
fn every_screen_names_its_own_keys() {
    let footer = |stage: &mut TestDashboard| stage.screen(160, 48).lines().last().unwrap().to_owned();
    let mut stage = TestDashboard::live(options(), 3);
    for (keys, own) in [
        ("?", "Esc ? leave  / search  Up Down scroll"),
        ("j\n", "Esc leave  Up Down previous, next  y copy"),
        ("x", "Space show or hide  Backspace usual  Esc leave"),
        ("H", "Enter show  / filter by host  Esc leave"),
        ("t", "Left Right step  e type  Enter apply"),
        ("a", "e begin  x end  Esc leave"),
        ("ae", "Ctrl-s starts"),
    ] {
        keys.chars().for_each(|key| drop(stage.press(key)));
        let footer = footer(&mut stage);
        assert!(footer.starts_with(own) || keys == "ae", "{keys}: {footer}");
        assert!(keys != "ae" || stage.screen(160, 48).contains(own), "{}", stage.screen(160, 48));
        (0..4).for_each(|_| drop(stage.press('\x1b')));
    }
    let mut http = TestDashboard::live_http(options(), 3);
    http.press('r');
    let requests = footer(&mut http);
    assert!(requests.starts_with("r slowest, failed, close  s sort  / filter"), "{requests}");
    assert!(requests.contains("Esc leave") && requests.contains("? help"), "{requests}");
    let mut hosts = hosts::watching_hosts();
    assert!(footer(&mut hosts).contains("hH hosts"), "{}", footer(&mut hosts));
    hosts.press('7');
    let focused = footer(&mut hosts);
    assert!(focused.contains("Enter show host") && focused.contains("hH next, list"), "{focused}");
}
