//! The dashboard's state and how events change it. No clock, no I/O.

pub(crate) mod arrangement;
pub(crate) mod control;
mod keys;
pub(crate) mod lists;
pub(crate) mod log;
pub(crate) mod message;
pub(crate) mod moment;
mod panes;
pub(crate) mod screen;
pub(crate) mod sight;
pub(crate) mod status;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use model::runs::{Level, LogLine, Marker, Model, Run};
use records::ids::RunId;

use crate::clock::ClockReading;
use crate::options::Options;
use crate::panes::system::model::WorkerRow;
use crate::panes::tables::certificates::rows::CertificateList;
use crate::panes::tables::clients::model::ClientRow;
use crate::panes::tables::hosts::model::HostTable;
use crate::panes::tables::hosts::rows::HostList;
use crate::panes::tables::routes::model::RouteRow;
use crate::panes::tables::services::model::ServiceRow;
use crate::panes::tables::upstreams::model::UpstreamRow;
use crate::panes::tables::usage::rows::UsageList;
use crate::panes::timeline::model::{ColumnArm, LatencyTimeline};
use crate::panes::{PaneId, PaneLayout};
use crate::screens::experiments::form::ExperimentForm;
use crate::screens::prompt::history::PromptHistory;
use crate::screens::prompt::state::Prompt;
use crate::screens::requests::model::RequestRow;
use crate::screens::runs::model::RunRow;
use crate::screens::settings::model::Tuning;
use crate::table::{RowList, TableState};
use crate::theme::Theme;
use crate::view_model::ViewModel;
use crate::view_model::span::Span;
use control::Control;
use control::access::RemoteAccess;
use control::recording::RecordingState;
use message::Message;
use moment::View;
use moment::replay::reads::JournalReads;
use moment::snapshot::Snapshot;
use moment::zoom::TimeView;
use screen::{HelpState, Screen};
use sight::Sight;
use status::{LastRecord, ViewStatus};

pub(crate) struct State {
    pub(crate) options: Options,
    pub(crate) theme: Theme,
    pub(crate) screen: Screen,
    pub(crate) span: Span,
    pub(crate) clients: TableState<ClientRow>,
    pub(crate) routes: TableState<RouteRow>,
    pub(crate) requests: RowList<RequestRow>,
    pub(crate) usage: UsageList,
    pub(crate) runs: RowList<RunRow>,
    pub(crate) hosts: HostList,
    pub(crate) services: RowList<ServiceRow>,
    pub(crate) upstreams: RowList<UpstreamRow>,
    pub(crate) certificates: CertificateList,
    pub(crate) workers: RowList<WorkerRow>,
    pub(crate) panes: PaneLayout,
    pub(crate) time: TimeView,
    pub(crate) timeline: LatencyTimeline,
    /// Marks and changes on it, with their columns.
    pub(crate) markers: Vec<(usize, Marker)>,
    /// The values that experiments had in force in each column; empty without experiments.
    pub(crate) arms: Vec<Option<ColumnArm>>,
    pub(crate) status: ViewStatus,
    pub(crate) control: Control,
    pub(crate) tuning: Tuning,
    pub(crate) prompt: Option<Prompt>,
    pub(crate) prompt_history: PromptHistory,
    /// The form of the last experiment that was begun here.
    pub(crate) last_form: Option<ExperimentForm>,
    pub(crate) help: HelpState,
    pub(crate) model: Model,
    /// True if the model, the span or the order has changed since the figures were taken.
    pub(crate) stale: bool,
    /// The present, whether or not it is shown.
    pub(crate) live: Snapshot,
    pub(crate) view: View,
    pub(crate) reads: JournalReads,
    /// True once the run's end has been seen, and the span has followed it.
    pub(crate) end_seen: bool,
    /// The experiments of the shown run that are over, once they were counted.
    experiments_over: Option<usize>,
    /// True once all that the journal held at the start has been read.
    pub(crate) caught_up: bool,
    pub(crate) last_record: Option<LastRecord>,
    /// The run that was shown last.
    pub(crate) shown: Option<RunId>,
    /// The run that started last, of any account.
    pub(crate) newest: Option<RunId>,
    pub(crate) notices: VecDeque<LogLine>,
    /// What the last key has changed.
    pub(crate) message: Option<Message>,
    /// The arrangement as it was written last.
    pub(crate) kept_text: String,
    /// Where a drag of the mouse began: the pane above the boundary.
    pub(crate) dragged: Option<PaneId>,
    /// The column of the plot where it began, on the run's monotonic clock.
    pub(crate) drag_from_us: Option<u64>,
    pub(crate) recorded: RecordingState,
    pub(crate) access: RemoteAccess,
    /// Columns and rows of the terminal.
    pub(crate) size: (u16, u16),
    pub(crate) sight: Sight,
}

impl State {
    /// The state before anything has been read.
    pub(crate) fn new(options: Options, size: (u16, u16)) -> Self {
        let mut state = Self {
            theme: Theme::new(options.glyphs, options.palette),
            options,
            screen: Screen::Dashboard,
            span: Span::default(),
            clients: TableState::by(ClientRow::FAILED),
            routes: TableState::by(RouteRow::RATE),
            requests: RowList::by(RequestRow::TOTAL),
            usage: UsageList::default(),
            runs: RowList::default(),
            hosts: HostList::default(),
            services: RowList::default(),
            upstreams: RowList::default(),
            certificates: CertificateList::default(),
            workers: RowList::default(),
            panes: PaneLayout::default(),
            time: TimeView::default(),
            timeline: LatencyTimeline::default(),
            markers: Vec::new(),
            arms: Vec::new(),
            status: ViewStatus::Waiting,
            control: Control::default(),
            tuning: Tuning::default(),
            prompt: None,
            prompt_history: PromptHistory::default(),
            last_form: None,
            help: HelpState::default(),
            model: Model::default(),
            stale: true,
            live: Snapshot::default(),
            view: View::default(),
            reads: JournalReads::default(),
            end_seen: false,
            experiments_over: None,
            caught_up: false,
            last_record: None,
            shown: None,
            newest: None,
            notices: VecDeque::new(),
            message: None,
            kept_text: String::new(),
            dragged: None,
            drag_from_us: None,
            recorded: RecordingState::default(),
            access: RemoteAccess::default(),
            size,
            sight: Sight::default(),
        };
        state.kept_text = state.kept();
        state
    }

    pub(crate) fn into_model(self) -> Model {
        self.model
    }

    /// The model with all that was read.
    pub(crate) fn live_model(&self) -> &Model {
        &self.model
    }

    /// The last record of the shown run, by the wall clock.
    pub(crate) fn last_realtime_us(&self) -> u64 {
        self.run().map_or(0, Run::last_realtime_us)
    }

    /// The last record of the shown run, by the monotonic clock.
    pub(crate) fn last_us(&self) -> u64 {
        self.run().map_or(0, Run::last_us)
    }

    /// Returns whether the proxy that is shown still waits for its first client.
    pub(crate) fn awaits_clients(&self) -> bool {
        let counts_nothing = |figures: &ViewModel| {
            let is_untouched = figures.proxy.as_ref().is_some_and(|proxy| proxy.accepted == 0);
            is_untouched && figures.load.is_none() && !figures.ended
        };
        !self.has_hosts() && self.figures().is_some_and(counts_nothing)
    }

    /// Takes the figures of the shown run, if something has changed.
    pub(crate) fn renew(&mut self, now: ClockReading) {
        self.recorded.tick(now);
        self.drop_old_message(now);
        let has_news = std::mem::take(&mut self.stale);
        if has_news {
            self.refresh(now);
        }
        if self.has_due_hosts(now) || (has_news && self.options.watches && self.hosts.are_few()) {
            self.refresh_hosts(now);
        }
    }

    /// Returns whether the list of hosts is too old to be shown.
    pub(crate) fn has_due_hosts(&self, now: ClockReading) -> bool {
        self.options.watches && self.hosts.is_due(now)
    }

    fn refresh_hosts(&mut self, now: ClockReading) {
        let table = HostTable::of(&self.model.runs().collect::<Vec<_>>(), now);
        let notices = if self.caught_up { self.hosts.notices(&table) } else { Vec::new() };
        self.hosts.refresh(table, now);
        for (level, text) in notices {
            self.notice(level, text, now);
        }
    }

    /// The last change of a setting made here while the past is shown, which does not show it.
    pub(crate) fn unseen_change(&self) -> Option<String> {
        self.control.changed_since(self.view.past()?.since.realtime_us)
    }

    pub(crate) fn refresh(&mut self, now: ClockReading) {
        let Some(run) = shown_run(&self.model, &self.options) else { return };
        self.control.settle(run, now);
        let (id, began_us) = (run.id(), run.began_realtime_us());
        let ended = run.stopped().is_some();
        if ended != std::mem::replace(&mut self.end_seen, ended) {
            // An ended run has no current rates: show its totals.
            self.span = if ended { Span::WholeRun } else { Span::default() };
        }
        let over: Vec<_> = run.experiments().filter(|experiment| experiment.is_over()).collect();
        let verdict = over.last().and_then(|experiment| experiment.sentence(experiment.primary()?));
        let over = over.len();
        self.live.take(None, (&self.model, run), run.last_us(), self.span);
        let before = self.shown.replace(id);
        let had = self.experiments_over.replace(over).filter(|_| self.caught_up && before == Some(id));
        if had.is_some_and(|had| over > had) {
            let verdict = verdict.unwrap_or_else(|| "it ended early".to_owned());
            self.say(format!("A/B {over} is over: {verdict}"), now);
        }
        if self.caught_up && before.is_some_and(|before| before != id) {
            let began = self.time_of_day(began_us);
            self.notice(Level::Notice, format!("a new run is shown: {}, begun {began}", id.short()), now);
        }
        self.stay(id, now);
        self.renew_status(now);
    }

    /// Keeps showing runs of the same account, and reports every run of another one once.
    fn stay(&mut self, id: RunId, now: ClockReading) {
        if !self.caught_up || self.options.run.is_some() {
            return;
        }
        self.model.hold(Some(id));
        let newest = self.model.runs().max_by_key(|run| run.began_realtime_us());
        let Some(newest) = newest.map(|run| (run.id(), run.writer().account(), run.began_realtime_us()))
        else {
            return;
        };
        let (newest, account, began_us) = newest;
        if self.newest.replace(newest).is_some_and(|known| known != newest) && newest != id {
            let (began, id) = (self.time_of_day(began_us), newest.short());
            let text =
                format!("run {id} of {account} began {began}; it is in the list of runs, and not shown");
            self.notice(Level::Notice, text, now);
        }
    }

    pub(crate) fn run(&self) -> Option<&Run> {
        shown_run(&self.model, &self.options)
    }

    /// Shows, on a visible screen, why the dashboard does not suspend.
    pub(crate) fn refuse_to_stop(&mut self, now: ClockReading) {
        let is_load = self.run().and_then(Run::began).is_some_and(|began| began.listen.is_empty());
        let what = if is_load { "load" } else { "proxy" };
        let text = format!("Ctrl-Z would stop the {what}: use --headless and `tlsdash watch`");
        self.answer(Level::Warning, text, now);
        self.screen = Screen::Dashboard;
    }

    /// Columns and rows of the terminal.
    pub(crate) fn size(&self) -> (u16, u16) {
        self.size
    }
}

pub(crate) fn shown_run<'m>(model: &'m Model, options: &Options) -> Option<&'m Run> {
    match options.run {
        Some(id) => model.run(id),
        None => model.current(),
    }
}
