//! What the line below the input can tell: a setting, and what an interface draws.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that the status line of the terminal interface can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatusBarItem {
    /// which model answers
    Model,
    /// which agent answers, if it is not the usual one
    Agent,
    /// how freely it may act
    Mode,
    /// how full the model's memory is
    Context,
    /// what the session cost
    Cost,
    /// the branch, with a star if something is not committed
    Branch,
    /// how commands are confined
    Sandbox,
    /// how many messages wait
    Queue,
}

impl StatusBarItem {
    /// Every item, in the usual order.
    pub const ALL: [StatusBarItem; 8] = [
        StatusBarItem::Model,
        StatusBarItem::Agent,
        StatusBarItem::Mode,
        StatusBarItem::Context,
        StatusBarItem::Cost,
        StatusBarItem::Branch,
        StatusBarItem::Sandbox,
        StatusBarItem::Queue,
    ];
}
