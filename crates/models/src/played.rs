//! A scripted model in the place of a server: the same requests go in, the same bytes come out, and no network is used.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use helve_protocol::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::failure::{Failure, FailureKind};
use crate::retry::{told_wait, told_wait_in};
use crate::script::{Asked, Frame, Player, Script, failure, frames};
use crate::transport::pause;
use crate::{Wire, error_in};

/// The wire that scripts are played on: the one that loses nothing of what a script can say.
pub(crate) const WIRE: Wire = Wire::Messages;

/// A script that is being played. Its copies play the same one.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Mutex<Player>>);

impl Stage {
    pub fn new(script: Script) -> Stage {
        Stage(Arc::new(Mutex::new(Player::new(script))))
    }

    /// What the script answers to a request.
    pub(crate) async fn post(
        &self,
        body: &[u8],
        now: Timestamp,
        stop: &CancellationToken,
    ) -> Result<Played, Failure> {
        let (delay, played) = self.play(body, now)?;
        pause(delay, stop).await?;
        played
    }

    /// How long the script thinks, and what comes then.
    fn play(&self, body: &[u8], now: Timestamp) -> Result<(Duration, Result<Played, Failure>), Failure> {
        let wrong = |error: &dyn std::fmt::Display| Failure::new(FailureKind::BadRequest, error.to_string());
        let asked = Asked::read(WIRE, None, body).map_err(|error| wrong(&error))?;
        let mut player = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let step = player.next(&asked);
        let step = step.map_err(|error| Failure::new(FailureKind::NoStep, error.to_string()))?;
        if let Some(refusal) = failure(step, WIRE) {
            let body: Value = serde_json::from_slice(&refusal.body).unwrap_or_default();
            let header = |name: &str| {
                let found = refusal.headers.iter().find(|(of, _)| of.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.as_str())
            };
            let told = error_in(&body.to_string());
            let wait = told_wait(header, now).or_else(|| told_wait_in(&body));
            let failure = Failure { wait, ..Failure::of_status(refusal.status, told.as_ref()) };
            return Ok((step.delay, Err(failure)));
        }
        // The delay of an answer is part of its frames.
        Ok((Duration::ZERO, Ok(Played { frames: frames(step, WIRE, &asked, 0).into() })))
    }
}

/// An answer of a script, frame by frame.
#[derive(Debug)]
pub(crate) struct Played {
    frames: VecDeque<Frame>,
}

impl Played {
    pub(crate) async fn piece(&mut self, stop: &CancellationToken) -> Result<Option<Bytes>, Failure> {
        let Some(frame) = self.frames.pop_front() else { return Ok(None) };
        pause(frame.wait, stop).await?;
        Ok(Some(frame.bytes.into()))
    }
}
