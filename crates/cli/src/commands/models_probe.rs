//! `helve models probe`

use std::io::Write;
use std::time::{Duration, Instant};

use helve_models::{Answer, Dialogue, Heard, ModelEvent, Prompt, Request, Target, ToolSpec};
use helve_protocol::{
    BlobError, BlobId, Blobs, CallId, Clock, Cost, Message, Part, Role, StepId, StopReason, TextPart,
    Timestamp, ToolOutput, ToolState, Usage,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::models_list::place_of;
use crate::failure::{Exit, Failure};
use crate::models::{Models, block_on};
use crate::screen::{self, BAD, DIM, GOOD, HEADING, Progress, Screen, WARN};
use crate::setup::{Setup, SystemClock};
use crate::text::{fit, one_line, pad, thousands};

const SYSTEM: &str = "You are an assistant that uses tools. Keep your answers short.";
const QUESTION: &str = "What is 17 plus 25? Use the tool add, then tell me the sum.";
const SUM: i64 = 42;

pub(crate) fn run(name: Option<String>, setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    // Somebody waits for it, so it is not tried for minutes.
    let models = Models::impatient(setup)?.choosing(name);
    block_on(async {
        let target = models.main().await?;
        let place = place_of(&target);
        writeln!(
            screen,
            "{HEADING}{}{HEADING:#} {DIM}at {place}{DIM:#}",
            one_line(&target.name.to_string())
        )?;
        screen.finish()?;
        Probe::new(&models, target).run(screen).await
    })?
}

/// One small piece of work: a question that wants a tool, the tool's result, the answer.
struct Probe {
    dialogue: Dialogue,
    messages: Vec<Message>,
    usage: Usage,
    cost: Option<Cost>,
}

/// An answer and how long it took.
struct Timed {
    answer: Answer,
    first: Duration,
    whole: Duration,
}

impl Probe {
    fn new(models: &Models, target: Target) -> Probe {
        let number = json!({"type": "integer"});
        let add = ToolSpec {
            name: "add".to_owned(),
            description: "Adds two whole numbers.".to_owned(),
            schema: json!({
                "type": "object",
                "properties": {"a": number, "b": number},
                "required": ["a", "b"],
                "additionalProperties": false,
            }),
        };
        let prompt = Prompt {
            system: SYSTEM.to_owned(),
            tools: vec![add],
            effort: models.effort,
            max_output: Some(4_096),
            ..Prompt::default()
        };
        let question = vec![Part::Text(TextPart::said(QUESTION))];
        let messages = vec![message(1, Role::User, question)];
        let dialogue = Dialogue::new(models.client.clone(), target, Vec::new(), prompt);
        Probe { dialogue, messages, usage: Usage::default(), cost: Some(Cost::ZERO) }
    }

    async fn run(mut self, screen: &mut Screen) -> Result<Exit, Failure> {
        let first = self.ask().await?;
        tell(screen, Mark::Good, "answers", &first.speed())?;
        self.tell_thinking(&first.answer, screen)?;
        let sum = match self.call_in(&first.answer) {
            Ok(input) => {
                tell(screen, Mark::Good, "calls tools", &format!("add {input}"))?;
                add(&input)
            }
            Err(why) => {
                tell(screen, Mark::Bad, "calls tools", &fit(&one_line(&why), 100))?;
                return self.tell_cost(screen, Exit::Error);
            }
        };
        self.push_result(&first.answer, sum);
        let second = self.ask().await?;
        let said = quoted(&second.answer.text());
        if said.contains(&SUM.to_string()) {
            tell(screen, Mark::Good, "uses results", &said)?;
            return self.tell_cost(screen, Exit::Fine);
        }
        tell(screen, Mark::Bad, "uses results", &format!("no: the sum is {SUM}, and it said {said}"))?;
        self.tell_cost(screen, Exit::Error)
    }

    async fn ask(&mut self) -> Result<Timed, Failure> {
        let request = self.dialogue.prepare(&self.messages, &NoFiles);
        let timed = send(&self.dialogue, &request).await?;
        let cost = self.dialogue.target().cost(timed.answer.usage);
        self.usage += timed.answer.usage;
        self.cost = self.cost.zip(cost).map(|(sum, cost)| [sum, cost].into_iter().sum());
        Ok(timed)
    }

    /// The input of the call that was wanted, or what came instead.
    fn call_in(&self, answer: &Answer) -> Result<Value, String> {
        let Some(call) = answer.calls().next() else {
            return Err(format!("no: it said {} instead", quoted(&answer.text())));
        };
        if call.name != "add" {
            return Err(format!("wrongly: it called {:?}, which was not offered", call.name));
        }
        let input = helve_models::repair::arguments(&call.arguments);
        let input = input.map_err(|error| format!("wrongly: {error}"))?.value;
        let schema = self.dialogue.prompt().tools.first().map(|tool| &tool.schema);
        match schema.map(|schema| helve_models::schema::check(schema, &input)) {
            Some(Err(misfits)) => {
                let misfits: Vec<String> = misfits.iter().map(ToString::to_string).collect();
                Err(format!("wrongly: add {input}: {}", misfits.join("; ")))
            }
            _ => Ok(input),
        }
    }

    /// Takes the answer into the conversation, with the results of its calls.
    fn push_result(&mut self, answer: &Answer, sum: Option<i64>) {
        let step: StepId = uuid(2).into();
        let mut drawn = 100;
        let mut parts = vec![Part::StepStart { step, model: self.dialogue.target().name.clone() }];
        parts.extend(answer.parts(|| {
            drawn += 1;
            CallId::from(uuid(drawn))
        }));
        for part in &mut parts {
            if let Part::Tool(tool) = part {
                let text =
                    sum.map_or_else(|| "a and b must be whole numbers".to_owned(), |sum| sum.to_string());
                tool.state = ToolState::Completed { output: ToolOutput { text, ..ToolOutput::default() } };
            }
        }
        self.messages.push(message(3, Role::Assistant, parts));
    }

    fn tell_thinking(&self, answer: &Answer, screen: &mut Screen) -> Result<(), Failure> {
        let thinking = answer.thinking();
        if thinking.trim().is_empty() {
            return Ok(());
        }
        tell(screen, Mark::Good, "thinks", &quoted(&thinking))
    }

    fn tell_cost(&self, screen: &mut Screen, exit: Exit) -> Result<Exit, Failure> {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
        if self.usage == Usage::default() {
            tell(screen, Mark::Note, "cost", "the server does not tell how many tokens it took")?;
            return Ok(exit);
        }
        let read = thousands(input.saturating_add(cache_read).saturating_add(cache_write));
        let cost = self.cost.map_or("at an unknown price".to_owned(), |cost| format!("for {cost}"));
        let says = format!("{read} tokens read, {} written, {cost}", thousands(output));
        tell(screen, Mark::Note, "cost", &says)?;
        Ok(exit)
    }
}

impl Timed {
    fn speed(&self) -> String {
        let written = self.answer.usage.output;
        let writing = self.whole.saturating_sub(self.first).as_secs_f64();
        let first = format!("first word after {}", seconds(self.first));
        if written < 2 || writing < 0.01 {
            return first;
        }
        #[expect(clippy::cast_precision_loss, reason = "nobody counts tokens by the quadrillion")]
        let speed = written as f64 / writing;
        format!("{first}, {speed:.0} tokens a second")
    }
}

/// The beginning of what was said, on one line.
fn quoted(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    format!("“{}”", fit(&one_line(&words.join(" ")), 60))
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

async fn send(dialogue: &Dialogue, request: &Request) -> Result<Timed, Failure> {
    let mut start = Instant::now();
    let mut first = None;
    let progress = std::sync::Mutex::new(Progress::new());
    let told = |text: &str| progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner).tell(text);
    let clear = || progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    let mut hear = |heard: Heard<'_>| match heard {
        Heard::Said(
            ModelEvent::Text { .. } | ModelEvent::Thinking { .. } | ModelEvent::CallStarted { .. },
        ) => {
            first.get_or_insert_with(|| start.elapsed());
            told("the model answers");
        }
        Heard::Waiting { attempt, delay, failure } => {
            first = None;
            start = Instant::now() + delay;
            clear();
            let why = one_line(&failure.to_string());
            let delay = seconds(delay);
            screen::complain(&format!(
                "{WARN}try {attempt} failed, the next one follows in {delay}: {why}{WARN:#}"
            ));
        }
        Heard::Began | Heard::Said(_) => {}
    };
    let stop = CancellationToken::new();
    let answer = {
        let work = dialogue.send(request, &mut hear, &stop);
        tokio::pin!(work);
        let begun = Instant::now();
        loop {
            let second = tokio::time::sleep(Duration::from_secs(1));
            tokio::select! {
                answer = &mut work => break answer,
                () = second => told(&format!("waiting for the model, {} s", begun.elapsed().as_secs())),
            }
        }
    };
    clear();
    let name = one_line(&dialogue.target().name.to_string());
    let answer = answer.map_err(|failure| Failure::model(format!("{name} does not answer"), &failure))?;
    let whole = start.elapsed();
    if answer.stop == Some(StopReason::MaxTokens) {
        screen::complain(&format!("{WARN}the answer was cut off at its limit{WARN:#}"));
    }
    Ok(Timed { answer, first: first.unwrap_or(whole), whole })
}

enum Mark {
    Good,
    Note,
    Bad,
}

fn tell(screen: &mut Screen, mark: Mark, about: &str, says: &str) -> Result<(), Failure> {
    let (style, mark) = match mark {
        Mark::Good => (GOOD, "✓"),
        Mark::Note => (DIM, "·"),
        Mark::Bad => (BAD, "✗"),
    };
    writeln!(screen, "{style}{mark}{style:#} {}  {says}", pad(about, 12))?;
    screen.finish()
}

fn add(input: &Value) -> Option<i64> {
    let number = |name: &str| input.get(name).and_then(Value::as_i64);
    number("a")?.checked_add(number("b")?)
}

fn message(n: u128, role: Role, parts: Vec<Part>) -> Message {
    let time: Timestamp = SystemClock.now();
    Message { id: uuid(n).into(), role, time, parts }
}

/// Nothing of a probe is kept, so its ids need to differ only from each other.
fn uuid(n: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(n)
}

/// A probe shows no files.
struct NoFiles;

impl Blobs for NoFiles {
    fn put(&self, _: &[u8]) -> Result<BlobId, BlobError> {
        Err(BlobError("nothing is kept here".into()))
    }

    fn get(&self, _: BlobId) -> Result<Vec<u8>, BlobError> {
        Err(BlobError("nothing is kept here".into()))
    }
}
