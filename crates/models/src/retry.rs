//! When a failed request is sent again. Pure: the time and the jitter are passed in.

use std::time::Duration;

use helve_protocol::Timestamp;

use crate::failure::{Failure, FailureKind};

/// How patient we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Until so much time has passed, with longer and longer waits.
    Long { budget: Duration },
    /// A few tries, for what somebody waits for.
    Short,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::Long { budget: BUDGET }
    }
}

/// All the tries of one request together, rate limits aside.
pub const BUDGET: Duration = Duration::from_secs(5 * 60);
/// Whatever happens, nobody waits longer.
pub const HARD_STOP: Duration = Duration::from_secs(12 * 60 * 60);

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
const RATE_LIMIT: Duration = Duration::from_secs(10);
/// What is added at random, so that many clients do not come back at once, is never more.
pub const JITTER: Duration = Duration::from_secs(1);

const SHORT_TRIES: u32 = 3;
const SHORT_TOLD: Duration = Duration::from_secs(10);
const SHORT_UNTOLD: Duration = Duration::from_secs(2);

/// The tries of one request.
#[derive(Clone, Debug)]
pub struct Retry {
    patience: Patience,
    began: Timestamp,
    /// Where the budget is counted from.
    counted_from: Timestamp,
    tries: u32,
    /// How often the wait has doubled.
    doublings: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Try again after this.
    Wait(Duration),
    GiveUp,
    /// It would take longer than we wait.
    TooLong {
        resets: Timestamp,
    },
}

impl Retry {
    pub fn new(patience: Patience, now: Timestamp) -> Retry {
        Retry { patience, began: now, counted_from: now, tries: 0, doublings: 0 }
    }

    /// How many tries have failed.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// What to do after a failure, `jitter` being drawn anew for each.
    pub fn after(&mut self, failure: &Failure, now: Timestamp, jitter: Duration) -> Verdict {
        self.tries = self.tries.saturating_add(1);
        if !failure.kind.is_retried() {
            return Verdict::GiveUp;
        }
        match self.patience {
            Patience::Long { budget } => self.long(failure, now, jitter.min(JITTER), budget.min(HARD_STOP)),
            Patience::Short => self.short(failure, now, jitter.min(JITTER)),
        }
    }

    fn long(&mut self, failure: &Failure, now: Timestamp, jitter: Duration, budget: Duration) -> Verdict {
        let is_untold_limit = failure.kind == FailureKind::RateLimited && failure.wait.is_none();
        let wait = match failure.wait {
            Some(told) => told,
            None if is_untold_limit => RATE_LIMIT,
            None => self.doubled().min(LONGEST) + jitter,
        };
        if is_untold_limit {
            self.counted_from = now;
            self.doublings = 0;
        }
        let left = |of: Duration, since: Timestamp| of.saturating_sub(passed(since, now));
        let mut patience = left(HARD_STOP, self.began);
        if !is_untold_limit {
            patience = patience.min(left(budget, self.counted_from));
        }
        match failure.wait {
            _ if wait <= patience => Verdict::Wait(wait),
            Some(told) => Verdict::TooLong { resets: later(now, told) },
            None => Verdict::GiveUp,
        }
    }

    fn short(&mut self, failure: &Failure, now: Timestamp, jitter: Duration) -> Verdict {
        if self.tries >= SHORT_TRIES {
            return Verdict::GiveUp;
        }
        match failure.wait {
            Some(told) if told > SHORT_TOLD => Verdict::TooLong { resets: later(now, told) },
            Some(told) => Verdict::Wait(told),
            None => Verdict::Wait((self.doubled() + jitter).min(SHORT_UNTOLD)),
        }
    }

    fn doubled(&mut self) -> Duration {
        let wait = FIRST.saturating_mul(1 << self.doublings.min(16));
        self.doublings = self.doublings.saturating_add(1);
        wait
    }
}

fn passed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(now.millis_since(since))
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(now.millis().saturating_add(wait))
}

/// How long a server asks us to wait, from its headers: `Retry-After-Ms`, then `Retry-After` as seconds or as a date.
pub(crate) fn told_wait<'a>(header: impl Fn(&str) -> Option<&'a str>, now: Timestamp) -> Option<Duration> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
    let millis = header("retry-after-ms").and_then(number);
    let wait = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok());
    wait.or_else(|| {
        let text = header("retry-after")?;
        match number(text) {
            Some(seconds) => Duration::try_from_secs_f64(seconds).ok(),
            None => until(text, now),
        }
    })
}

fn until(date: &str, now: Timestamp) -> Option<Duration> {
    let date = httpdate::parse_http_date(date.trim()).ok()?;
    let since_1970 = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since_1970.saturating_sub(Duration::from_millis(now.millis())))
}

/// Google tells the wait in the body: `retryDelay` of an error's details, such as `34.07s`.
pub(crate) fn told_wait_in(body: &serde_json::Value) -> Option<Duration> {
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}
