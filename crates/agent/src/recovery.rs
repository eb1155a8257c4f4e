//! What a crash left unfinished, put in order by rule. Nothing is run again by itself.

use helve_protocol::{
    Body, CallId, Event, Outcome, Part, ToolEnded, ToolState, TurnEnded, TurnId, TurnMetrics,
};

use crate::record::{Error, Recorder};

/// Gives every call that has no result one that says how far it came, and ends the turn that was cut off.
pub(crate) fn put_in_order(record: &mut Recorder, open_turn: Option<TurnId>) -> Result<(), Error> {
    record.turn = open_turn;
    let unfinished: Vec<(CallId, ToolState)> = record
        .history
        .messages()
        .flat_map(|message| &message.parts)
        .filter_map(|part| match part {
            Part::Tool(tool) if !tool.state.is_ended() => Some((tool.call, tool.state.settled())),
            _ => None,
        })
        .collect();
    for (call, end) in unfinished {
        record.tell(ToolEnded { call, end })?;
    }
    if open_turn.is_some() {
        record.tell(TurnEnded { outcome: Outcome::Error, metrics: TurnMetrics::default() })?;
    }
    record.turn = None;
    Ok(())
}

/// Follows which turn has begun and not ended, event by event.
pub(crate) fn follow(open_turn: &mut Option<TurnId>, event: &Event) {
    match event.body {
        Body::TurnStarted(_) => *open_turn = event.turn,
        Body::TurnEnded(_) => *open_turn = None,
        _ => {}
    }
}
