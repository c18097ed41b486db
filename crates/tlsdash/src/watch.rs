//! `tlsdash watch`: the dashboard, or the summary, over a journal that is or was written elsewhere.

use std::sync::mpsc::sync_channel;

use telemetry::model::Level;
use telemetry::{Follower, Update};
use tui::Event;

use crate::args::WatchArgs;
use crate::frontend::{self, Frontend, Unattended};
use crate::look::Look;
use crate::reading::{newest, opener, place, read_all, run_named, run_prefix};
use crate::session::spawn;
use crate::signals::{self, HangUp, Reload};
use crate::summary;

/// Watches until a person leaves, or prints the summary.
pub(crate) fn run(args: &WatchArgs) -> anyhow::Result<()> {
    let prefix = args.run.as_deref().map(run_prefix).transpose()?;
    let place = place("watch", args.source.as_deref())?;
    let source = place.to_string();
    let look = Look::with_file(&args.look, args.config.as_deref())?;
    let frontend = Frontend::choose(args.headless, &look);
    frontend.say_if_forced(args.headless);
    let (events, inbox) = tui::channel();
    match frontend {
        Frontend::Headless => {
            let model = read_all(&place, 1)?;
            let run = match prefix {
                Some(prefix) => run_named(&model, prefix, &place)?,
                None => newest(&model, &place)?,
            };
            summary::print(&model.summary(run, Some(&source)), args.format.unwrap_or_default())
        }
        Frontend::Dashboard | Frontend::Plain => {
            let run = match prefix {
                Some(prefix) => Some(run_named(&read_all(&place, 1)?, prefix, &place)?.id()),
                None => None,
            };
            let told = events.clone();
            let deliver = move |update| told.send(Event::Update(update)).is_ok();
            let warned = events.clone();
            let warn = move |text| {
                // Only fails once nobody watches any more.
                let _ = warned.send(Event::Update(Update::Notice(Level::Warning, text)));
            };
            let follower = Follower::start(opener(&place, warn), deliver)?;
            signals::listen(frontend, HangUp::Ends, events, Reload::default())?;
            let options = frontend::Options {
                title: String::new(),
                source,
                read_only: true,
                run,
                look,
                drains: false,
                keep_running: false,
                unattended: Unattended::default(),
            };
            // Nobody takes commands: the dashboard is read-only.
            let (commands, _) = sync_channel(1);
            let shown = frontend::show(frontend, options, inbox, commands)?;
            let ending = spawn("ending", move || follower.finish())?;
            let (_, failure) = shown.until_ended(&ending);
            failure.map_or(Ok(()), Err)
        }
    }
}
