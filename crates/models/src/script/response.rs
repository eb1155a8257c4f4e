//! A step's answer as a server of any wire would send it.

use super::frames::{ScriptFrame, ScriptFrameWriter};
use super::outline::ResponseOutline;
use super::request::ScriptRequest;
use super::step::{ScriptStep, ScriptedReply};
use super::{chat, gemini, messages, responses};
use crate::WireProtocol;

/// The events with which a server of this wire gives the step's answer; none if the step is a failure. The seed tells one
/// response's ids from another's.
pub fn response_frames(
    step: &ScriptStep,
    wire: WireProtocol,
    asked: &ScriptRequest,
    id_seed: u64,
) -> Vec<ScriptFrame> {
    let ScriptedReply::Answer(answer) = &step.reply else { return Vec::new() };
    let outline = ResponseOutline::of(answer, asked, id_seed);
    let mut tape = ScriptFrameWriter::starting_after(step.delay);
    match wire {
        WireProtocol::Messages => messages::write(&outline, &mut tape),
        WireProtocol::Chat => chat::write(&outline, &mut tape),
        WireProtocol::Responses => responses::write(&outline, &mut tape),
        WireProtocol::Gemini => gemini::write(&outline, &mut tape),
    }
    tape.into_frames()
}
