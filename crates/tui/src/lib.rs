//! The terminal interface.
//!
//! - [`App`] is the interface as a value: what is typed, what the session tells and what errands bring comes in; orders for
//!   the session and errands for the machine come out.
//! - [`run`] is the loop around it. It has the terminal ([`TerminalDevice`]), the way to the session ([`SessionLink`]) and what the machine can
//!   do ([`MachineAccess`]).
//! - `transcript`, `transcript_items` and `cards` show what happens, `composer` takes what a person writes, `approvals` what a person decides,
//!   `status` tells how things stand, `pager_view` fills the window with something to read or to choose from, `layout` says what is
//!   drawn where.
//! - [`SetupGuide`] is the first start, before there is a session.
//! - [`keys`] is the table of keys, [`KeyMap`] what the user made of it.
//!
//! Nothing here knows the agent, the environment or the clock: they are handed in.

mod app;
mod approvals;
mod cards;
mod commands;
mod composer;
mod guide;
mod guide_view;
mod history;
mod keymap;
pub mod keys;
mod link;
mod machine_jobs;
mod menu;
mod pager_entries;
mod pager_pages;
mod pager_view;
mod pickers;
mod plain;
mod run;
mod slash;
mod status;
mod terminal;
mod text_format;
mod transcript;
mod transcript_items;

pub use app::App;
pub use approvals::{APPROVAL_GUARD_TIME, TYPING_GUARD_TIME};
pub use guide::{ApiKeyStorer, GuideOutcome, LocalModelScan, SetupGuide, SetupServices, run_guide};
pub use keymap::{BindingProblem, KeyMap, RefusedBinding, keys_reference};
pub use link::{
    AppContext, AppExitReason, AppOptions, CommandStopFlag, ContextSizeLookup, EventHistoryReader,
    EventPayloadReader, FileAttacher, MachineAccess, MachineCall, MachineTextCall, ModelChoice,
    SessionFileChange, SessionLink, SessionMessage, SessionOverview, SessionPreview, SessionPreviewReader,
    SessionRow, UiRequest, UserCommandResult, UserCommandRunner,
};
pub use plain::run_plain;
pub use run::{TerminalDevice, run};
pub use terminal::{KeyboardReader, RawMode, repair_terminal, restore_on_panic};
