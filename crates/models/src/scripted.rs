//! A scripted model in the place of a server: the same requests go in, the same bytes come out, and no network is used.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use helve_protocol::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::failure::{FailureKind, RequestFailure};
use crate::retry::{wait_from_body, wait_from_headers};
use crate::script::{
    ModelScript, ScriptFrame, ScriptPlayer, ScriptRequest, failure_response, response_frames,
};
use crate::transport::pause;
use crate::{WireProtocol, parse_error_body};

/// The wire that scripts are played on: the one that loses nothing of what a script can say.
pub(crate) const SCRIPT_WIRE: WireProtocol = WireProtocol::Messages;

/// A script that is being played. Its copies play the same one.
#[derive(Clone, Debug)]
pub struct ScriptedModel(Arc<Mutex<ScriptPlayer>>);

impl ScriptedModel {
    /// Plays a script from its beginning.
    pub fn new(script: ModelScript) -> ScriptedModel {
        ScriptedModel(Arc::new(Mutex::new(ScriptPlayer::new(script))))
    }

    /// What the script answers to a request.
    pub(crate) async fn post(
        &self,
        body: &[u8],
        now: Timestamp,
        stop: &CancellationToken,
    ) -> Result<ScriptedResponse, RequestFailure> {
        let (delay, played) = self.play(body, now)?;
        pause(delay, stop).await?;
        played
    }

    /// How long the script thinks, and what comes then.
    fn play(
        &self,
        body: &[u8],
        now: Timestamp,
    ) -> Result<(Duration, Result<ScriptedResponse, RequestFailure>), RequestFailure> {
        let wrong =
            |error: &dyn std::fmt::Display| RequestFailure::new(FailureKind::BadRequest, error.to_string());
        let asked = ScriptRequest::read(SCRIPT_WIRE, None, body).map_err(|error| wrong(&error))?;
        let mut player = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let step = player.next(&asked);
        let step = step.map_err(|error| RequestFailure::new(FailureKind::NoStep, error.to_string()))?;
        if let Some(refusal) = failure_response(step, SCRIPT_WIRE) {
            let body: Value = serde_json::from_slice(&refusal.body).unwrap_or_default();
            let header = |name: &str| {
                let found = refusal.headers.iter().find(|(of, _)| of.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.as_str())
            };
            let told = parse_error_body(&body.to_string());
            let wait = wait_from_headers(header, now).or_else(|| wait_from_body(&body));
            let failure =
                RequestFailure { wait, ..RequestFailure::from_status(refusal.status, told.as_ref()) };
            return Ok((step.delay, Err(failure)));
        }
        // The delay of an answer is part of its frames.
        Ok((
            Duration::ZERO,
            Ok(ScriptedResponse { frames: response_frames(step, SCRIPT_WIRE, &asked, 0).into() }),
        ))
    }
}

/// An answer of a script, frame by frame.
#[derive(Debug)]
pub(crate) struct ScriptedResponse {
    frames: VecDeque<ScriptFrame>,
}

impl ScriptedResponse {
    pub(crate) async fn piece(&mut self, stop: &CancellationToken) -> Result<Option<Bytes>, RequestFailure> {
        let Some(frame) = self.frames.pop_front() else { return Ok(None) };
        pause(frame.wait, stop).await?;
        Ok(Some(frame.bytes.into()))
    }
}
