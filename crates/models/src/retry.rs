//! When a failed request is sent again. Pure: the time and the jitter are passed in.

use std::time::Duration;

use helve_protocol::Timestamp;

use crate::failure::{FailureKind, RequestFailure};

/// How patient we are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RetryStrategy {
    /// With longer and longer waits, until [`RETRY_BUDGET`] has passed. A rate limit that names no time starts the budget anew, up to
    /// [`MAX_REQUEST_TIME`]: such limits often pass only after minutes or hours.
    #[default]
    Long,
    /// With longer and longer waits, until so much time has passed since the first failure, whatever fails. For a time that
    /// somebody chose.
    Within(Duration),
    /// A few tries, for what somebody waits for.
    Short,
}

/// All the tries of one request together, rate limits aside.
pub const RETRY_BUDGET: Duration = Duration::from_secs(5 * 60);
/// Whatever happens, nobody waits longer.
pub const MAX_REQUEST_TIME: Duration = Duration::from_secs(12 * 60 * 60);

const FIRST_RETRY_DELAY: Duration = Duration::from_millis(500);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);
const RATE_LIMIT_DELAY: Duration = Duration::from_secs(10);
/// What is added at random, so that many clients do not come back at once, is never more.
pub const MAX_JITTER: Duration = Duration::from_secs(1);

const SHORT_MAX_ATTEMPTS: u32 = 3;
const SHORT_MAX_SERVER_DELAY: Duration = Duration::from_secs(10);
const SHORT_MAX_BACKOFF: Duration = Duration::from_secs(2);

/// The tries of one request.
#[derive(Clone, Debug)]
pub struct RetryState {
    patience: RetryStrategy,
    began: Timestamp,
    /// Where the budget is counted from: the first failure, not the request, for an answer may take long.
    counted_from: Option<Timestamp>,
    tries: u32,
    /// How often the wait has doubled.
    doublings: u32,
}

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Try again after this.
    Wait(Duration),
    /// Do not try again.
    GiveUp,
    /// It would take longer than we wait.
    TooLong {
        /// When it could be tried again.
        resets: Timestamp,
    },
}

impl RetryState {
    /// No try has failed yet of a request that begins now.
    pub fn new(patience: RetryStrategy, now: Timestamp) -> RetryState {
        RetryState { patience, began: now, counted_from: None, tries: 0, doublings: 0 }
    }

    /// How many tries have failed.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// How long the request may take still, all its tries and waits together.
    pub fn left(&self, now: Timestamp) -> Duration {
        MAX_REQUEST_TIME.saturating_sub(passed(self.began, now))
    }

    /// What to do after a failure, `jitter` being drawn anew for each.
    pub fn after(&mut self, failure: &RequestFailure, now: Timestamp, jitter: Duration) -> RetryDecision {
        self.tries = self.tries.saturating_add(1);
        if !failure.kind.is_retryable() {
            return RetryDecision::GiveUp;
        }
        match self.patience {
            RetryStrategy::Long => self.long(failure, now, jitter.min(MAX_JITTER)),
            RetryStrategy::Within(limit) => self.within(limit, failure, now, jitter.min(MAX_JITTER)),
            RetryStrategy::Short => self.short(failure, now, jitter.min(MAX_JITTER)),
        }
    }

    fn long(&mut self, failure: &RequestFailure, now: Timestamp, jitter: Duration) -> RetryDecision {
        if !is_untold_limit(failure) {
            return self.within(RETRY_BUDGET, failure, now, jitter);
        }
        self.counted_from = Some(now);
        self.doublings = 0;
        if RATE_LIMIT_DELAY <= self.left(now) {
            RetryDecision::Wait(RATE_LIMIT_DELAY)
        } else {
            RetryDecision::GiveUp
        }
    }

    fn within(
        &mut self,
        budget: Duration,
        failure: &RequestFailure,
        now: Timestamp,
        jitter: Duration,
    ) -> RetryDecision {
        let counted_from = *self.counted_from.get_or_insert(now);
        let wait = match failure.wait {
            Some(told) if !told.is_zero() => told,
            None if is_untold_limit(failure) => RATE_LIMIT_DELAY,
            // "At once" is no time to wait: a broken server would be asked a thousand times.
            _ => self.doubled().min(MAX_RETRY_DELAY) + jitter,
        };
        let patience = budget.saturating_sub(passed(counted_from, now)).min(self.left(now));
        match failure.wait {
            _ if wait <= patience => RetryDecision::Wait(wait),
            Some(told) => RetryDecision::TooLong { resets: later(now, told) },
            None => RetryDecision::GiveUp,
        }
    }

    fn short(&mut self, failure: &RequestFailure, now: Timestamp, jitter: Duration) -> RetryDecision {
        if self.tries >= SHORT_MAX_ATTEMPTS {
            return RetryDecision::GiveUp;
        }
        match failure.wait {
            Some(told) if told > SHORT_MAX_SERVER_DELAY => {
                RetryDecision::TooLong { resets: later(now, told) }
            }
            Some(told) if !told.is_zero() => RetryDecision::Wait(told),
            _ => RetryDecision::Wait((self.doubled() + jitter).min(SHORT_MAX_BACKOFF)),
        }
    }

    fn doubled(&mut self) -> Duration {
        let wait = FIRST_RETRY_DELAY.saturating_mul(1 << self.doublings.min(16));
        self.doublings = self.doublings.saturating_add(1);
        wait
    }
}

/// A rate limit that does not say when it ends.
fn is_untold_limit(failure: &RequestFailure) -> bool {
    failure.kind == FailureKind::RateLimited && failure.wait.is_none()
}

fn passed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::from_millis(now.millis_since(since))
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Timestamp::from_millis(now.millis().saturating_add(wait))
}

/// How long a server asks us to wait, from its headers: `RetryState-After-Ms`, then `RetryState-After` as seconds or as a date.
pub(crate) fn wait_from_headers<'a>(
    header: impl Fn(&str) -> Option<&'a str>,
    now: Timestamp,
) -> Option<Duration> {
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
pub(crate) fn wait_from_body(body: &serde_json::Value) -> Option<Duration> {
    let details = body.pointer("/error/details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOON: u64 = 1_800_000_000_000;

    fn at(after: Duration) -> Timestamp {
        later(Timestamp::from_millis(NOON), after)
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// A failure as a server tells it: a status and its headers.
    fn refused(status: u16, headers: &[(&str, &str)], now: Timestamp) -> RequestFailure {
        let header = |name: &str| headers.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
        RequestFailure { wait: wait_from_headers(header, now), ..RequestFailure::from_status(status, None) }
    }

    /// The waits of a request that fails the same way each time, on a clock that only waiting moves, and how it ended.
    fn waits(
        patience: RetryStrategy,
        status: u16,
        headers: &[(&str, &str)],
        jitter: Duration,
    ) -> (Vec<Duration>, RetryDecision) {
        let mut now = at(Duration::ZERO);
        let mut retry = RetryState::new(patience, now);
        let mut waits = Vec::new();
        loop {
            match retry.after(&refused(status, headers, now), now, jitter) {
                RetryDecision::Wait(wait) => {
                    waits.push(wait);
                    now = later(now, wait);
                }
                end => return (waits, end),
            }
        }
    }

    const LONG: RetryStrategy = RetryStrategy::Long;
    const RETRIED: [u16; 7] = [408, 500, 502, 503, 504, 520, 529];

    #[test]
    fn without_a_header_waits_double_up_to_thirty_seconds_and_five_minutes_in_all() {
        for status in RETRIED {
            for jitter in [0.0, 0.25, 1.0] {
                let (waits, end) = waits(LONG, status, &[], seconds(jitter));
                let doubled = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0, 30.0];
                for (wait, expected) in waits.iter().zip(doubled) {
                    assert_eq!(*wait, seconds(expected + jitter), "{status} {jitter}");
                }
                let sum: Duration = waits.iter().sum();
                assert!(
                    sum <= RETRY_BUDGET && sum + MAX_RETRY_DELAY + seconds(jitter) > RETRY_BUDGET,
                    "{status} {jitter}: {sum:?}"
                );
                assert_eq!(end, RetryDecision::GiveUp);
            }
        }
    }

    #[test]
    fn a_header_comes_first() {
        let date = "Fri, 15 Jan 2027 08:00:07 GMT";
        assert_eq!(
            httpdate::parse_http_date(date).unwrap(),
            std::time::UNIX_EPOCH + Duration::from_millis(NOON + 7_000)
        );
        for status in RETRIED.into_iter().chain([429]) {
            for (headers, expected) in [
                (vec![("retry-after-ms", "1500")], 1.5),
                (vec![("retry-after-ms", "1500"), ("retry-after", "9")], 1.5),
                (vec![("retry-after", "9")], 9.0),
                (vec![("retry-after", "0.25")], 0.25),
                (vec![("retry-after", date)], 7.0),
                (vec![("retry-after-ms", "soon"), ("retry-after", "9")], 9.0),
            ] {
                let mut retry = RetryState::new(LONG, at(Duration::ZERO));
                for attempt in 1..=3 {
                    let now = at(Duration::ZERO);
                    let verdict = retry.after(&refused(status, &headers, now), now, seconds(0.7));
                    assert_eq!(
                        verdict,
                        RetryDecision::Wait(seconds(expected)),
                        "{status} {headers:?} {attempt}"
                    );
                }
            }
        }
    }

    #[test]
    fn at_once_is_not_taken_at_its_word() {
        for header in ["0", "Fri, 15 Jan 2027 07:00:00 GMT"] {
            let (waits, _) = waits(LONG, 503, &[("retry-after", header)], Duration::ZERO);
            assert_eq!(waits[..4], [0.5, 1.0, 2.0, 4.0].map(seconds), "{header}");
        }
    }

    #[test]
    fn the_budget_begins_with_the_first_failure() {
        let mut retry = RetryState::new(LONG, at(Duration::ZERO));
        let late = at(seconds(3_600.0));
        let broken = RequestFailure::new(FailureKind::CutOff, "");
        assert_eq!(retry.after(&broken, late, Duration::ZERO), RetryDecision::Wait(FIRST_RETRY_DELAY));
        let later = at(seconds(3_600.0) + RETRY_BUDGET);
        assert_eq!(retry.after(&broken, later, Duration::ZERO), RetryDecision::GiveUp);
    }

    #[test]
    fn headers_that_say_nothing_do_not_count() {
        for text in ["", "soon", "-5", "NaN", "inf", "1e999", "99999999999999999999999"] {
            let now = at(Duration::ZERO);
            let wait = refused(503, &[("retry-after", text)], now).wait;
            assert!(wait.is_none() || wait > Some(MAX_REQUEST_TIME), "{text:?}: {wait:?}");
        }
    }

    #[test]
    fn a_rate_limit_without_a_header_waits_ten_seconds_until_the_hard_stop() {
        let (waits, end) = waits(LONG, 429, &[], seconds(1.0));
        assert!(waits.iter().all(|wait| *wait == RATE_LIMIT_DELAY));
        assert_eq!(waits.iter().sum::<Duration>(), MAX_REQUEST_TIME);
        assert_eq!(end, RetryDecision::GiveUp);
    }

    #[test]
    fn a_time_that_somebody_chose_bounds_rate_limits_too() {
        for (limit, expected) in [(0.0, 0), (9.0, 0), (25.0, 2), (300.0, 30), (1e9, 4_320)] {
            let (waits, end) = waits(RetryStrategy::Within(seconds(limit)), 429, &[], seconds(1.0));
            assert_eq!((waits, end), (vec![RATE_LIMIT_DELAY; expected], RetryDecision::GiveUp), "{limit}");
        }
        let mut retry = RetryState::new(RetryStrategy::Within(seconds(60.0)), at(Duration::ZERO));
        for (status, passed, expected) in [
            (500, 0.0, RetryDecision::Wait(FIRST_RETRY_DELAY)),
            (429, 45.0, RetryDecision::Wait(RATE_LIMIT_DELAY)),
            (500, 59.5, RetryDecision::GiveUp),
        ] {
            let now = at(seconds(passed));
            assert_eq!(retry.after(&refused(status, &[], now), now, Duration::ZERO), expected, "{passed}");
        }
    }

    #[test]
    fn a_rate_limit_starts_the_budget_anew() {
        let mut retry = RetryState::new(LONG, at(Duration::ZERO));
        let first = at(Duration::ZERO);
        assert_eq!(
            retry.after(&refused(500, &[], first), first, Duration::ZERO),
            RetryDecision::Wait(FIRST_RETRY_DELAY)
        );
        let late = at(RETRY_BUDGET - seconds(0.1));
        assert_eq!(
            retry.after(&refused(429, &[], late), late, Duration::ZERO),
            RetryDecision::Wait(RATE_LIMIT_DELAY)
        );
        let later = at(RETRY_BUDGET + seconds(20.0));
        assert_eq!(
            retry.after(&refused(500, &[], later), later, Duration::ZERO),
            RetryDecision::Wait(FIRST_RETRY_DELAY)
        );
    }

    #[test]
    fn a_wait_longer_than_what_is_left_ends_at_once_and_names_the_reset() {
        for (status, headers, passed, wait) in
            [(429, [("retry-after", "301")], 0.0, 301.0), (503, [("retry-after", "200")], 150.0, 200.0)]
        {
            let mut retry = RetryState::new(LONG, at(Duration::ZERO));
            retry.after(&RequestFailure::new(FailureKind::Server, ""), at(Duration::ZERO), Duration::ZERO);
            let now = at(seconds(passed));
            let verdict = retry.after(&refused(status, &headers, now), now, Duration::ZERO);
            assert_eq!(verdict, RetryDecision::TooLong { resets: at(seconds(passed + wait)) });
        }
    }

    #[test]
    fn the_hard_stop_bounds_any_budget() {
        let forever = RetryStrategy::Within(Duration::MAX);
        let (waits, end) = waits(forever, 500, &[], Duration::ZERO);
        assert!(waits.iter().sum::<Duration>() <= MAX_REQUEST_TIME);
        assert_eq!(end, RetryDecision::GiveUp);
        let mut retry = RetryState::new(forever, at(Duration::ZERO));
        let now = at(MAX_REQUEST_TIME - seconds(5.0));
        let verdict = retry.after(&refused(429, &[], now), now, Duration::ZERO);
        assert_eq!(verdict, RetryDecision::GiveUp, "ten seconds are more than the five that are left");
    }

    #[test]
    fn tries_and_waits_share_the_hard_stop() {
        let retry = RetryState::new(LONG, at(Duration::ZERO));
        assert_eq!(retry.left(at(Duration::ZERO)), MAX_REQUEST_TIME);
        assert_eq!(retry.left(at(MAX_REQUEST_TIME - seconds(5.0))), seconds(5.0));
        assert_eq!(retry.left(at(MAX_REQUEST_TIME + seconds(5.0))), Duration::ZERO);
    }

    #[test]
    fn the_short_profile_tries_three_times() {
        for status in RETRIED.into_iter().chain([429]) {
            assert_eq!(
                waits(RetryStrategy::Short, status, &[], Duration::ZERO),
                (vec![seconds(0.5), seconds(1.0)], RetryDecision::GiveUp)
            );
            assert_eq!(
                waits(RetryStrategy::Short, status, &[], seconds(1.0)),
                (vec![seconds(1.5), seconds(2.0)], RetryDecision::GiveUp)
            );
            let told = [("retry-after", "10")];
            assert_eq!(
                waits(RetryStrategy::Short, status, &told, seconds(1.0)),
                (vec![seconds(10.0); 2], RetryDecision::GiveUp)
            );
            let too_long = [("retry-after", "11")];
            assert_eq!(
                waits(RetryStrategy::Short, status, &too_long, Duration::ZERO),
                (vec![], RetryDecision::TooLong { resets: at(seconds(11.0)) })
            );
        }
    }

    #[test]
    fn what_will_not_get_better_is_not_tried_again() {
        for status in [300, 302, 400, 401, 402, 403, 404, 405, 410, 413, 415, 418, 422, 451] {
            for patience in [LONG, RetryStrategy::Short] {
                for headers in [vec![], vec![("retry-after", "1")]] {
                    assert_eq!(
                        waits(patience, status, &headers, Duration::ZERO),
                        (vec![], RetryDecision::GiveUp),
                        "{status}"
                    );
                }
            }
        }
    }

    #[test]
    fn broken_connections_and_streams_are_tried_again_and_interrupts_are_not() {
        use FailureKind::*;
        for (kind, is_retried) in [
            (Network, true),
            (Timeout, true),
            (CutOff, true),
            (Garbled, true),
            (Overloaded, true),
            (Interrupted, false),
            (Certificate, false),
            (NotRunning, false),
            (NotAModel, false),
            (TooLarge, false),
            (TooLong, false),
        ] {
            let now = at(Duration::ZERO);
            let verdict =
                RetryState::new(LONG, now).after(&RequestFailure::new(kind, ""), now, Duration::ZERO);
            assert_eq!(verdict == RetryDecision::Wait(FIRST_RETRY_DELAY), is_retried, "{kind:?}");
        }
    }

    #[test]
    fn google_tells_the_wait_in_the_body() {
        let body = serde_json::json!({"error": {"details": [{"@type": "x"}, {"retryDelay": "34.5s"}]}});
        assert_eq!(wait_from_body(&body), Some(seconds(34.5)));
    }

    proptest! {
        #[test]
        fn waiting_always_ends(
            budget in 0u64..100_000_000,
            failures in prop::collection::vec((0usize..4, prop::option::of(0u64..100_000_000), 0u64..2_000), 1..200),
        ) {
            let mut now = at(Duration::ZERO);
            let budget = Duration::from_millis(budget);
            let mut retry = RetryState::new(RetryStrategy::Within(budget), now);
            let mut first = None;
            for (kind, wait, jitter) in failures {
                let kind = [FailureKind::RateLimited, FailureKind::Server, FailureKind::Network, FailureKind::Auth][kind];
                let failure = RequestFailure { wait: wait.map(Duration::from_millis), ..RequestFailure::new(kind, "") };
                let end = later(*first.get_or_insert(now), budget.min(MAX_REQUEST_TIME));
                match retry.after(&failure, now, Duration::from_millis(jitter)) {
                    RetryDecision::Wait(wait) => now = later(now, wait),
                    RetryDecision::TooLong { resets } => { prop_assert!(resets > now); break }
                    RetryDecision::GiveUp => break,
                }
                prop_assert!(now <= end);
            }
        }
    }
}
