//! `helve models probe`

use std::io::Write;
use std::time::{Duration, Instant};

use helve_models::{
    Dialogue, ModelAnswer, ModelEvent, ModelPrompt, ModelRequest, ModelTarget, StreamEvent, ToolSpec,
};
use helve_protocol::{
    BlobError, BlobId, BlobStore, CallId, Clock, Cost, Message, MessagePart, MessageRole, StepId, StopReason,
    TextPart, Timestamp, TokenUsage, ToolOutput, ToolState,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::models_list::place_of;
use crate::console::{self, BAD, ConsoleOutput, DIM, GOOD, HEADING, ProgressLine, WARN};
use crate::failure::{CliFailure, ProgramExit};
use crate::setup::{CliSetup, SystemClock};
use crate::text::{fit, one_line, pad, thousands};
use crate::user_models::{UserModels, block_on};

const PROBE_SYSTEM_PROMPT: &str = "You are an assistant that uses tools. Keep your answers short.";
const PROBE_QUESTION: &str = "What is 17 plus 25? Use the tool add, then tell me the sum.";
const PROBE_SUM: i64 = 42;

pub(crate) fn run(
    name: Option<String>,
    setup: &CliSetup,
    screen: &mut ConsoleOutput,
) -> Result<ProgramExit, CliFailure> {
    // Somebody waits for it, so it is not tried for minutes.
    let models = UserModels::with_short_retries(setup)?.choosing(name);
    block_on(async {
        let target = models.main().await?;
        let place = place_of(&target);
        writeln!(
            screen,
            "{HEADING}{}{HEADING:#} {DIM}at {place}{DIM:#}",
            one_line(&target.name.to_string())
        )?;
        screen.finish()?;
        ModelProbe::new(&models, target).run(screen).await
    })?
}

/// One small piece of work: a question that wants a tool, the tool's result, the answer.
struct ModelProbe {
    dialogue: Dialogue,
    messages: Vec<Message>,
    usage: TokenUsage,
    cost: Option<Cost>,
}

/// An answer and how long it took.
struct TimedAnswer {
    answer: ModelAnswer,
    first: Duration,
    whole: Duration,
}

impl ModelProbe {
    fn new(models: &UserModels, target: ModelTarget) -> ModelProbe {
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
        let prompt = ModelPrompt {
            system: PROBE_SYSTEM_PROMPT.to_owned(),
            tools: vec![add],
            effort: models.effort,
            max_output: Some(4_096),
            ..ModelPrompt::default()
        };
        let question = vec![MessagePart::Text(TextPart::said(PROBE_QUESTION))];
        let messages = vec![message(1, MessageRole::User, question)];
        let dialogue = Dialogue::new(models.client.clone(), target, Vec::new(), prompt);
        ModelProbe { dialogue, messages, usage: TokenUsage::default(), cost: Some(Cost::ZERO) }
    }

    async fn run(mut self, screen: &mut ConsoleOutput) -> Result<ProgramExit, CliFailure> {
        let first = self.ask().await?;
        tell(screen, ProbeMark::Good, "answers", &first.speed())?;
        self.tell_thinking(&first.answer, screen)?;
        let sum = match self.call_in(&first.answer) {
            Ok(input) => {
                tell(screen, ProbeMark::Good, "calls tools", &format!("add {input}"))?;
                add(&input)
            }
            Err(why) => {
                tell(screen, ProbeMark::Bad, "calls tools", &fit(&one_line(&why), 100))?;
                return self.tell_cost(screen, ProgramExit::Error);
            }
        };
        self.push_result(&first.answer, sum);
        let second = self.ask().await?;
        let said = quoted(&second.answer.text());
        if said.contains(&PROBE_SUM.to_string()) {
            tell(screen, ProbeMark::Good, "uses results", &said)?;
            return self.tell_cost(screen, ProgramExit::Success);
        }
        tell(
            screen,
            ProbeMark::Bad,
            "uses results",
            &format!("no: the sum is {PROBE_SUM}, and it said {said}"),
        )?;
        self.tell_cost(screen, ProgramExit::Error)
    }

    async fn ask(&mut self) -> Result<TimedAnswer, CliFailure> {
        let request = self.dialogue.prepare(&self.messages, &NoProbeFiles);
        let timed = send(&self.dialogue, &request).await?;
        let cost = self.dialogue.target().cost(timed.answer.usage);
        self.usage += timed.answer.usage;
        self.cost = self.cost.zip(cost).map(|(sum, cost)| [sum, cost].into_iter().sum());
        Ok(timed)
    }

    /// The input of the call that was wanted, or what came instead.
    fn call_in(&self, answer: &ModelAnswer) -> Result<Value, String> {
        let Some(call) = answer.calls().next() else {
            return Err(format!("no: it said {} instead", quoted(&answer.text())));
        };
        if call.name != "add" {
            return Err(format!("wrongly: it called {:?}, which was not offered", call.name));
        }
        let input = helve_models::repair::parse_arguments(&call.arguments);
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
    fn push_result(&mut self, answer: &ModelAnswer, sum: Option<i64>) {
        let step: StepId = uuid(2).into();
        let mut drawn = 100;
        let mut parts = vec![MessagePart::StepStart { step, model: self.dialogue.target().name.clone() }];
        parts.extend(answer.parts(|| {
            drawn += 1;
            CallId::from(uuid(drawn))
        }));
        for part in &mut parts {
            if let MessagePart::Tool(tool) = part {
                let text =
                    sum.map_or_else(|| "a and b must be whole numbers".to_owned(), |sum| sum.to_string());
                tool.state = ToolState::Completed { output: ToolOutput { text, ..ToolOutput::default() } };
            }
        }
        self.messages.push(message(3, MessageRole::Assistant, parts));
    }

    fn tell_thinking(&self, answer: &ModelAnswer, screen: &mut ConsoleOutput) -> Result<(), CliFailure> {
        let thinking = answer.thinking();
        if thinking.trim().is_empty() {
            return Ok(());
        }
        tell(screen, ProbeMark::Good, "thinks", &quoted(&thinking))
    }

    fn tell_cost(&self, screen: &mut ConsoleOutput, exit: ProgramExit) -> Result<ProgramExit, CliFailure> {
        let TokenUsage { input, output, cache_read, cache_write, .. } = self.usage;
        if self.usage == TokenUsage::default() {
            tell(screen, ProbeMark::Note, "cost", "the server does not tell how many tokens it took")?;
            return Ok(exit);
        }
        let read = thousands(input.saturating_add(cache_read).saturating_add(cache_write));
        let cost = self.cost.map_or("at an unknown price".to_owned(), |cost| format!("for {cost}"));
        let says = format!("{read} tokens read, {} written, {cost}", thousands(output));
        tell(screen, ProbeMark::Note, "cost", &says)?;
        Ok(exit)
    }
}

impl TimedAnswer {
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

async fn send(dialogue: &Dialogue, request: &ModelRequest) -> Result<TimedAnswer, CliFailure> {
    let mut start = Instant::now();
    let mut first = None;
    let progress = std::sync::Mutex::new(ProgressLine::new());
    let told = |text: &str| progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner).tell(text);
    let clear = || progress.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    let mut hear = |heard: StreamEvent<'_>| match heard {
        StreamEvent::Received(
            ModelEvent::Text { .. } | ModelEvent::Thinking { .. } | ModelEvent::CallStarted { .. },
        ) => {
            first.get_or_insert_with(|| start.elapsed());
            told("the model answers");
        }
        StreamEvent::Retrying { attempt, delay, failure } => {
            first = None;
            start = Instant::now() + delay;
            clear();
            let why = one_line(&failure.to_string());
            let delay = seconds(delay);
            console::print_to_stderr(&format!(
                "{WARN}try {attempt} failed, the next one follows in {delay}: {why}{WARN:#}"
            ));
        }
        StreamEvent::Started | StreamEvent::Received(_) => {}
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
    let answer = answer.map_err(|failure| CliFailure::model(format!("{name} does not answer"), &failure))?;
    let whole = start.elapsed();
    if answer.stop == Some(StopReason::MaxTokens) {
        console::print_to_stderr(&format!("{WARN}the answer was cut off at its limit{WARN:#}"));
    }
    Ok(TimedAnswer { answer, first: first.unwrap_or(whole), whole })
}

enum ProbeMark {
    Good,
    Note,
    Bad,
}

fn tell(screen: &mut ConsoleOutput, mark: ProbeMark, about: &str, says: &str) -> Result<(), CliFailure> {
    let (style, mark) = match mark {
        ProbeMark::Good => (GOOD, "✓"),
        ProbeMark::Note => (DIM, "·"),
        ProbeMark::Bad => (BAD, "✗"),
    };
    writeln!(screen, "{style}{mark}{style:#} {}  {says}", pad(about, 12))?;
    Ok(screen.finish()?)
}

fn add(input: &Value) -> Option<i64> {
    let number = |name: &str| input.get(name).and_then(Value::as_i64);
    number("a")?.checked_add(number("b")?)
}

fn message(n: u128, role: MessageRole, parts: Vec<MessagePart>) -> Message {
    let time: Timestamp = SystemClock.now();
    Message { id: uuid(n).into(), role, time, parts }
}

/// Nothing of a probe is kept, so its ids need to differ only from each other.
fn uuid(n: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(n)
}

/// A probe shows no files.
struct NoProbeFiles;

impl BlobStore for NoProbeFiles {
    fn put(&self, _: &[u8]) -> Result<BlobId, BlobError> {
        Err(BlobError("nothing is kept here".into()))
    }

    fn get(&self, _: BlobId) -> Result<Vec<u8>, BlobError> {
        Err(BlobError("nothing is kept here".into()))
    }
}
