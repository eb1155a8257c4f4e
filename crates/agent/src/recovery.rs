//! What a crash left unfinished, put in order by rule. Nothing that may have changed something is run again by itself.

use helve_protocol::{
    CallId, ErrorRaised, EventBody, Interruption, ToolClass, ToolEnded, ToolState, TurnEnded, TurnMetrics,
    TurnOutcome,
};

use crate::change_watcher::{CallEffects, ChangeWatcher};
use crate::recorder::{Recorder, SessionError};

/// Ends a turn that was cut off, and says how far it came. A call that may have changed something gets the result that nobody
/// knows; the others stay open: [`settle`] ends them if the user says something else, and going on runs them.
pub(crate) fn end_broken_turn(record: &Recorder, watcher: &dyn ChangeWatcher) -> Result<(), SessionError> {
    let (turn, running) = record.state(|state| (state.turn, state.running.clone()));
    let unknown = running.iter().filter(|(_, class)| **class != ToolClass::Reads);
    let mut events: Vec<EventBody> = Vec::new();
    for (call, _) in unknown {
        // If there are several, nobody knows which of them it was.
        let CallEffects { events: files, changed, .. } = watcher.changes_since_crash(*call);
        let end = ToolState::Interrupted { how: Interruption::Unknown, changed };
        events.extend(files);
        events.push(ToolEnded { call: *call, end }.into());
    }
    if let Some(turn) = turn {
        record.set_turn(Some(turn.id));
    }
    // The model had said all it had to say: only the end was not written down.
    let is_answered = record.state(|state| state.history.is_answered());
    if let Some(turn) = turn {
        let why = match (running.is_empty(), turn.step.is_some()) {
            (false, _) => "the program ended while a tool ran",
            (true, true) => "the program ended while the model was asked",
            (true, false) => "the program ended before the turn did",
        };
        let what = "the last turn broke off".to_owned();
        let hint = "Go on with it, or say something else.".to_owned();
        if !is_answered {
            events.push(ErrorRaised { what, why: why.to_owned(), hint, is_about_keys: false }.into());
        }
        let outcome = if is_answered { TurnOutcome::EndTurn } else { TurnOutcome::Error };
        events.push(TurnEnded { outcome, metrics: TurnMetrics::default() }.into());
    }
    record.emit_all(events)?;
    record.set_turn(None);
    Ok(())
}

/// Gives every call that has no result one that says how far it came: the user has something else in mind.
pub(crate) fn settle_open_calls(record: &Recorder) -> Result<(), SessionError> {
    let ends: Vec<(CallId, Interruption)> = record.state(|state| {
        let how = |call: CallId| match state.running.contains_key(&call) {
            true => Interruption::Stopped,
            false => Interruption::NotStarted,
        };
        state.history.unfinished_calls().iter().map(|tool| (tool.call, how(tool.call))).collect()
    });
    let end = |(call, how)| ToolEnded { call, end: ToolState::interrupted(how) }.into();
    record.emit_all(ends.into_iter().map(end).collect())
}
