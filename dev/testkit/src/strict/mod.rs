//! What the real servers refuse. A server of tests that takes anything would let a request pass that fails at the first real
//! provider, so this is as strict as the strictest of them, and here and there a little more.
//!
//! The rules are those of each wire's inventor: fields that only other servers of a wire know are refused too.

mod body_value;
mod chat;
mod conversation_order;
mod gemini;
mod messages;
mod responses;
mod tools;

use helve_models::WireProtocol;
use serde_json::Value;

use body_value::BodyValue;

/// Nothing, or what is wrong and where.
type CheckResult<T = ()> = Result<T, String>;

/// Checks the body of a request that was sent on a wire. What is wrong is told with the way to it.
pub fn check(wire: WireProtocol, body: &Value) -> Result<(), String> {
    let body = BodyValue::top(body);
    match wire {
        WireProtocol::Messages => messages::check(&body),
        WireProtocol::Chat => chat::check(&body),
        WireProtocol::Responses => responses::check(&body),
        WireProtocol::Gemini => gemini::check(&body),
    }
}
