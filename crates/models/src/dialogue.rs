//! A conversation with one model, and with the next one if that fails.

use std::borrow::{Borrow, Cow};
use std::sync::Arc;

use helve_protocol::{
    BlobStore, ConversationHistory, Cost, Message, ModelSwitchReason, ModelSwitched, TokenUsage,
};
use tokio_util::sync::CancellationToken;

use crate::client::{ModelClient, OnStream};
use crate::{
    Conversation, EncodingProfile, ModelAnswer, ModelPrompt, ModelRequest, ModelTarget, PrefixChange,
    RequestFailure, ToolChoice,
};

/// Keeps one conversation going. The caller records each request before it is sent:
/// [`prepare`](Dialogue::prepare), then [`send`](Dialogue::send); on failure [`fall_back`](Dialogue::fall_back), and again.
#[derive(Debug)]
pub struct Dialogue {
    client: Arc<ModelClient>,
    target: ModelTarget,
    /// Those that take over, in their order.
    fallbacks: Vec<ModelTarget>,
    prompt: ModelPrompt,
    conversation: Conversation,
}

/// A conversation as the model is to see it.
pub trait ConversationView {
    /// The messages without the first so many.
    fn from(&self, first: usize) -> Vec<Cow<'_, Message>>;
}

impl ConversationView for ConversationHistory {
    fn from(&self, first: usize) -> Vec<Cow<'_, Message>> {
        self.messages_for_model_from(first)
    }
}

impl<M: Borrow<Message>> ConversationView for [M] {
    fn from(&self, first: usize) -> Vec<Cow<'_, Message>> {
        let rest = self.get(first..).unwrap_or_default();
        rest.iter().map(|message| Cow::Borrowed(message.borrow())).collect()
    }
}

impl<M: Borrow<Message>, const N: usize> ConversationView for [M; N] {
    fn from(&self, first: usize) -> Vec<Cow<'_, Message>> {
        ConversationView::from(self.as_slice(), first)
    }
}

impl<M: Borrow<Message>> ConversationView for Vec<M> {
    fn from(&self, first: usize) -> Vec<Cow<'_, Message>> {
        ConversationView::from(self.as_slice(), first)
    }
}

impl Dialogue {
    /// A dialogue in which nothing was said yet. The fallbacks take over in their order.
    pub fn new(
        client: Arc<ModelClient>,
        target: ModelTarget,
        fallbacks: Vec<ModelTarget>,
        prompt: ModelPrompt,
    ) -> Dialogue {
        let conversation = Conversation::new(target.dialect(), &prompt);
        Dialogue { client, target, fallbacks, prompt, conversation }
    }

    /// The same conversation, as far as it went, with models that answer from elsewhere and write alike.
    pub fn again(
        mut self,
        target: ModelTarget,
        fallbacks: Vec<ModelTarget>,
        prompt: ModelPrompt,
    ) -> Dialogue {
        (self.target, self.fallbacks, self.prompt) = (target, fallbacks, prompt);
        self
    }

    /// The model that is spoken to now.
    pub fn target(&self) -> &ModelTarget {
        &self.target
    }

    /// What stands before the conversation in each request.
    pub fn prompt(&self) -> &ModelPrompt {
        &self.prompt
    }

    /// The next request. `messages` is the whole conversation; only those that came since the last request cost anything.
    /// Those that were there before must be the same, unless [`renew`](Dialogue::renew) was called: if they are others, the
    /// request says what broke.
    pub fn prepare(
        &mut self,
        messages: &(impl ConversationView + ?Sized),
        blobs: &dyn BlobStore,
    ) -> ModelRequest {
        let last = self.conversation.len().saturating_sub(1);
        let mut new = messages.from(last);
        if let Some(known) = self.conversation.last_message() {
            if new.first().map(|message| message.id) == Some(known) {
                new.remove(0);
            } else {
                self.begin_anew(PrefixChange::Unexplained);
                new = messages.from(0);
            }
        }
        for message in &new {
            self.conversation.push(message, blobs);
        }
        let mut request = self.conversation.next_request();
        if let Some(broken) = &mut request.broken {
            broken.price = self.price_of_rereading(broken.tokens);
        }
        request
    }

    /// How the model is written to, for the record.
    pub fn encoding_profile(&self) -> EncodingProfile {
        EncodingProfile::of(&self.target, &self.prompt)
    }

    /// What it costs to read tokens afresh that could have come from the cache.
    fn price_of_rereading(&self, tokens: u64) -> Option<Cost> {
        let afresh = self.target.cost(TokenUsage { input: tokens, ..TokenUsage::default() })?;
        let cached = self.target.cost(TokenUsage { cache_read: tokens, ..TokenUsage::default() })?;
        Some(afresh.checked_sub(cached).unwrap_or_default())
    }

    /// Sends a request until it is answered. A call that the model wrote as text counts as one.
    pub async fn send(
        &self,
        request: &ModelRequest,
        ear: OnStream<'_>,
        stop: &CancellationToken,
    ) -> Result<ModelAnswer, RequestFailure> {
        let mut answer = self.client.answer(&self.target, request, ear, stop).await?;
        if self.prompt.tool_choice != ToolChoice::None {
            answer.settle(&self.prompt.tools);
        }
        Ok(answer)
    }

    /// Goes over to the next model, if there is one and the failure is of a kind that another model may not have.
    pub fn fall_back(&mut self, failure: &RequestFailure) -> Option<ModelSwitched> {
        if !failure.kind.allows_fallback() || self.fallbacks.is_empty() {
            return None;
        }
        let next = self.fallbacks.remove(0);
        Some(self.switch(next, ModelSwitchReason::Fallback { failure: failure.text.clone() }))
    }

    /// Goes over to another model, for the rest of the dialogue.
    pub fn switch(&mut self, to: ModelTarget, reason: ModelSwitchReason) -> ModelSwitched {
        let from = std::mem::replace(&mut self.target, to).name;
        self.begin_anew(PrefixChange::Explained);
        ModelSwitched { from, to: self.target.name.clone(), reason }
    }

    /// What was said before is another from here on: cleared, summarised, rewound.
    pub fn renew(&mut self) {
        self.begin_anew(PrefixChange::Explained);
    }

    /// Other tools, another system prompt, another effort.
    pub fn set_prompt(&mut self, prompt: ModelPrompt) {
        self.prompt = prompt;
        self.begin_anew(PrefixChange::Explained);
    }

    fn begin_anew(&mut self, change: PrefixChange) {
        self.conversation.renew(self.target.dialect(), &self.prompt, change);
    }
}
