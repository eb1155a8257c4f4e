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

pub(crate) fn run(setup: &Setup, screen: &mut Screen) -> Result<Exit, Failure> {
    let models = Models::new(setup)?;
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
        let Some(input) = self.call_in(&first.answer) else {
            let said = fit(&one_line(&first.answer.text()), 60);
            tell(screen, Mark::Bad, "calls tools", &format!("no: it said {said:?} instead"))?;
            return self.tell_cost(screen, Exit::Error);
        };
        let sum = add(&input);
        tell(screen, Mark::Good, "calls tools", &format!("add {input}"))?;
        self.push_result(&first.answer, sum);
        let second = self.ask().await?;
        let said = one_line(&second.answer.text());
        let mark = if said.contains(&SUM.to_string()) { Mark::Good } else { Mark::Note };
        tell(screen, mark, "uses results", &format!("{:?}", fit(&said, 60)))?;
        self.tell_cost(screen, Exit::Fine)
    }

    async fn ask(&mut self) -> Result<Timed, Failure> {
        let request = self.dialogue.prepare(&self.messages, &NoFiles);
        let timed = send(&self.dialogue, &request).await?;
        let cost = self.dialogue.target().cost(timed.answer.usage);
        self.usage += timed.answer.usage;
        self.cost = self.cost.zip(cost).map(|(sum, cost)| [sum, cost].into_iter().sum());
        Ok(timed)
    }

    fn call_in(&self, answer: &Answer) -> Option<Value> {
        let call = answer.calls().find(|call| call.name == "add")?;
        helve_models::repair::arguments(&call.arguments).ok().map(|arguments| arguments.value)
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
        tell(screen, Mark::Good, "thinks", &format!("{:?}", fit(&one_line(thinking.trim()), 60)))
    }

    fn tell_cost(&self, screen: &mut Screen, exit: Exit) -> Result<Exit, Failure> {
        let Usage { input, output, cache_read, cache_write, .. } = self.usage;
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

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

async fn send(dialogue: &Dialogue, request: &Request) -> Result<Timed, Failure> {
    let start = Instant::now();
    let mut first = None;
    let mut progress = Progress::new();
    progress.tell("waiting for the model");
    let mut hear = |heard: Heard<'_>| match heard {
        Heard::Said(
            ModelEvent::Text { .. } | ModelEvent::Thinking { .. } | ModelEvent::CallStarted { .. },
        ) => {
            first.get_or_insert_with(|| start.elapsed());
            progress.tell("the model answers");
        }
        Heard::Waiting { delay, failure, .. } => {
            first = None;
            screen::complain(&format!(
                "{WARN}waiting {}: {}{WARN:#}",
                seconds(delay),
                one_line(&failure.to_string())
            ));
        }
        Heard::Began | Heard::Said(_) => {}
    };
    let answer = dialogue.send(request, &mut hear, &CancellationToken::new()).await;
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
