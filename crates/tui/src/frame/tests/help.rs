//! The help: its keys, its search, and how it scrolls.

use super::*;

#[test]
fn help_names_every_key() {
    let mut stage = TestDashboard::live(options(), 3);
    stage.want(Intent::Help);
    assert_snapshot!(stage.screen(80, 220));
    let mut watched = TestDashboard::live(watching(), 3);
    watched.want(Intent::Help);
    let mut http = TestDashboard::live_http(options(), 3);
    http.want(Intent::Help);
    let mut hosts = hosts::watching_hosts();
    hosts.want(Intent::Help);
    let screens =
        [stage.screen(80, 220), watched.screen(80, 220), http.screen(80, 260), hosts.screen(80, 260)];
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
    let screen = stage.screen(80, 220);
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
    assert!(stage.screen(80, 220).contains("to the worst latency"));
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
    assert!(screen.contains("gaps, lost") && !screen.contains("leave this help"), "{screen}");
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
