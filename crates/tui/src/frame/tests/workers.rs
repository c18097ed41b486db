//! The table of the proxy's workers, in the maximised pane `system`.

use insta::assert_snapshot;
use records::kinds::Body;
use records::values::{WorkerCounts, WorkerList};

use crate::app::testing::{TestDashboard, options};
use crate::options::Options;
use crate::panes::PaneId;
use crate::theme::Glyphs;

/// The pane after so many seconds, each with these workers.
fn system(options: Options, workers: impl Fn(u64) -> WorkerList) -> TestDashboard {
    let mut stage = TestDashboard::empty(options);
    let mut records = vec![stage.run.start()];
    for second in 1..=12 {
        records.extend(stage.run.second().into_iter().map(|mut record| {
            if let Body::Host(host) = &mut record.body {
                host.workers = workers(second);
            }
            record
        }));
    }
    stage.read(records);
    stage.state.panes.maximised = Some(PaneId::System);
    stage
}

/// Workers of which each is busier than the one before.
fn uneven(second: u64, n: u32) -> WorkerList {
    let mut workers = WorkerList::default();
    for number in 0..n {
        let share = u64::from(number + 1);
        workers.add(&WorkerCounts {
            number,
            cpu_us: second * share * 800_000 / u64::from(n),
            open: share as i64,
            accepted: second * share * 10,
            handshakes_full: second * share,
            handshakes_resumed: second * share * 9,
            loop_delay_us_max: share * 350,
        });
    }
    workers
}

#[test]
fn each_worker_has_a_line() {
    let mut stage = TestDashboard::live(options(), 12);
    stage.state.panes.maximised = Some(PaneId::System);
    assert_snapshot!("workers_160x48", stage.screen(160, 48));
    assert_snapshot!("workers_80x24", stage.screen(80, 24));
    let mut stage = system(Options { glyphs: Glyphs::Ascii, ..options() }, |second| uneven(second, 4));
    assert_snapshot!("workers_ascii_80x24", stage.screen(80, 24));
}

#[test]
fn the_tile_has_the_busiest_worker_beside_load_and_upstream() {
    for workers in [2, 4, 120] {
        let mut stage = system(options(), |second| uneven(second, workers));
        let screen = stage.screen(160, 48);
        assert!(screen.contains("max worker 80%  "), "{screen}");
        assert!(screen.contains("│ load "), "{screen}");
    }
}

#[test]
fn many_workers_are_scrolled_and_sorted() {
    let mut stage = system(options(), |second| uneven(second, 120));
    let screen = stage.screen(80, 24);
    assert!(screen.contains("workers 1-12/120 "), "{screen}");
    stage.press('G');
    let screen = stage.screen(80, 24);
    assert!(screen.contains("workers 109-120/120") && screen.contains("▶119 "), "{screen}");
    stage.press('s');
    let screen = stage.screen(80, 24);
    let first = screen.lines().skip_while(|line| !line.starts_with("─ workers ")).nth(1).unwrap();
    assert!(screen.contains("CPU▼") && first.starts_with("▶119 "), "{screen}");
}

#[test]
fn figures_of_a_worker_without_handshakes_are_unknown() {
    let idle = |second| {
        let mut workers = uneven(second, 1);
        workers.add(&WorkerCounts { number: 1, cpu_us: second * 50, ..WorkerCounts::default() });
        workers
    };
    let mut stage = system(options(), idle);
    let screen = stage.screen(80, 24);
    let line = screen.lines().find(|line| line.starts_with(" 1 ")).unwrap();
    assert_eq!(line.split_whitespace().filter(|word| *word == "–").count(), 2, "{line}");
}

#[test]
fn a_recording_without_workers_says_so() {
    let mut stage = system(options(), |_| WorkerList::default());
    let screen = stage.screen(80, 24);
    assert!(screen.contains(" no record says what each worker does"), "{screen}");
    assert!(!screen.contains("proxy-0"), "{screen}");
}

#[test]
fn keys_act_on_the_workers_while_the_pane_has_the_focus() {
    let mut stage = TestDashboard::live(options(), 12);
    for (focus, is_of_workers) in [(None, false), (Some(PaneId::System), true)] {
        stage.state.panes.focus = focus;
        stage.screen(160, 48);
        stage.press('j');
        assert_eq!(stage.state.workers.table.selected.is_some(), is_of_workers);
    }
    stage.press('\x1b');
    assert_eq!(stage.state.workers.table.selected, None);
}
