//! What the real servers refuse. A server of tests that takes anything would let a request pass that fails at the first real
//! provider, so this is as strict as the strictest of them, and here and there a little more.
//!
//! The rules are those of each wire's inventor: fields that only other servers of a wire know are refused too.

mod at;
mod chat;
mod gemini;
mod messages;
mod order;
mod responses;
mod tools;

use helve_models::Wire;
use serde_json::Value;

use at::At;

/// Nothing, or what is wrong and where.
type Checked<T = ()> = Result<T, String>;

/// Checks the body of a request that was sent on a wire. What is wrong is told with the way to it.
pub fn check(wire: Wire, body: &Value) -> Result<(), String> {
    let body = At::top(body);
    match wire {
        Wire::Messages => messages::check(&body),
        Wire::Chat => chat::check(&body),
        Wire::Responses => responses::check(&body),
        Wire::Gemini => gemini::check(&body),
    }
}
