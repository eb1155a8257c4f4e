//! What may become of a call, and who decides that.

use std::sync::Arc;

use helve_permissions::Rule;
use helve_protocol::{ApprovalAnswer, ApprovalId, CallId, CallPermissions, PermissionMode, ToolAction};
use helve_tools::{AccessTest, DeniedPaths, HiddenPathTest};
use tokio_util::sync::CancellationToken;

use crate::boxed_future::BoxFuture;
use crate::recorder::{Recorder, SessionError};
use crate::spec::SessionSpec;

/// Decides about calls: by rules and people ([`RuleJudge`](crate::rule_judge::RuleJudge)), or by what was decided when the session
/// was recorded.
pub(crate) trait CallJudge: Send + Sync {
    /// Decides about a call, or says what a person has to be asked.
    fn judge(&self, question: &PermissionQuestion<'_>, session: &JudgedSession<'_>) -> CallJudgement;

    /// Asks a person about a call.
    fn ask<'a>(
        &'a self,
        call: CallId,
        pending: PendingApproval,
        diff: Option<String>,
        record: &'a Recorder,
        stop: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<CallDecision, SessionError>> {
        let _ = (call, pending, diff, record, stop);
        Box::pin(std::future::ready(Ok(CallDecision::Interrupted)))
    }

    /// Takes a person's answer. One that comes too late, or twice, changes nothing, and says so.
    fn answer(&self, approval: ApprovalId, answer: ApprovalAnswer) -> Result<(), &'static str> {
        let _ = (approval, answer);
        Err("nobody waits for this answer (any more)")
    }

    /// Reads the rules again. Those that can't be read leave the last ones in force.
    fn refresh(&self, record: &Recorder) -> Result<(), SessionError> {
        let _ = record;
        Ok(())
    }

    /// The loosest mode that the administrator allows.
    fn loosest_mode(&self) -> PermissionMode {
        PermissionMode::Bypass
    }

    /// Which files are shown only to whoever asks for them by name.
    fn hidden_path_test(&self, session: &JudgedSession<'_>) -> HiddenPathTest {
        let _ = session;
        Arc::new(|_| false)
    }

    /// Which paths are denied to commands, whatever they run.
    fn denied_paths(&self, session: &JudgedSession<'_>) -> DeniedPaths {
        let _ = session;
        DeniedPaths::default()
    }

    /// What a call may do with what it finds: what was judged before, and what needs no asking. A path may lead elsewhere by
    /// the time it is opened.
    fn access_test(&self, tool: &str, judged: Vec<ToolAction>, session: &JudgedSession<'_>) -> AccessTest {
        let _ = (tool, judged, session);
        Arc::new(|_, _| true)
    }
}

/// The session whose call is judged.
#[derive(Clone, Copy)]
pub(crate) struct JudgedSession<'a> {
    pub(crate) record: &'a Recorder,
    pub(crate) spec: &'a SessionSpec,
}

/// What a call is about.
pub(crate) struct PermissionQuestion<'a> {
    pub(crate) call: CallId,
    pub(crate) tool: &'a str,
    pub(crate) intent: String,
    pub(crate) actions: Vec<ToolAction>,
    /// The same, and what they amount to where a path leads elsewhere.
    pub(crate) real_actions: &'a [ToolAction],
    pub(crate) weight: ApprovalWeight,
}

/// Whether a general yes is enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalWeight {
    Ordinary,
    /// The same call over and over: only a person can tell whether that makes sense.
    DoomLoop,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallDecision {
    /// It runs, with what it may do beyond what any call may.
    Allowed(CallPermissions),
    Refused(String),
    Interrupted,
    /// It could not be done anyway, for the reason that the model is told.
    Impossible(String),
}

/// What the rules say of a call.
pub(crate) enum CallJudgement {
    Settled(CallDecision),
    /// A person has to say.
    NeedsApproval(PendingApproval),
}

/// What a person is asked about a call.
pub(crate) struct PendingApproval {
    pub(crate) effects: Vec<String>,
    pub(crate) reason: String,
    /// The rules that would allow it from now on.
    pub(crate) rules: Vec<Rule>,
    pub(crate) needs: CallPermissions,
}
